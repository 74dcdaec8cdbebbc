# SPDX-License-Identifier: Apache-2.0
"""Many ranges by one call, and what stands on it."""

from __future__ import annotations

import errno
import io
import pathlib
import random
import threading

import numpy
import pytest

import gofs
from fake_tensors import FakeTensor

DATA = bytes(range(256)) * 64


def test_ranges_of_files_and_paths_fill_their_buffers(volume: gofs.Volume) -> None:
    volume.write("/a", DATA)
    volume.write("/b", DATA[::-1])
    array = numpy.zeros((2, 50), dtype=numpy.uint16)
    tensor = FakeTensor(numpy.zeros(10, dtype=numpy.float32))
    buffers = [bytearray(100), bytearray(7), bytearray(0)]
    with volume.open("/a") as file:
        counts = volume.read_ranges(
            [
                (file, 5, buffers[0]),
                ("/b", 0, array),
                (b"/b", 100, tensor),
                (pathlib.PurePosixPath("/a"), 1, buffers[1]),
                (file, 3, buffers[2]),
            ]
        )
        assert file.tell() == 0
    assert counts == [100, 200, 40, 7, 0]
    assert buffers == [DATA[5:105], DATA[1:8], b""]
    assert array.tobytes() == DATA[::-1][:200]
    assert tensor.array.tobytes() == DATA[::-1][100:140]
    assert volume.read_ranges(iter([])) == []


def test_random_ranges_are_those_of_the_file(volume: gofs.Volume) -> None:
    seed = 20
    draw = random.Random(seed)
    size = 20 << 20
    data = draw.randbytes(size)
    volume.write("/large", data)
    with volume.open("/large") as file:
        ranges = []
        for number in range(200):
            begin = draw.randrange(size + 1000)
            count = draw.choice([0, 1, 4096, draw.randrange(9 << 20 if number % 50 == 0 else 9000)])
            ranges.append((draw.choice([file, "/large"]), begin, bytearray(count)))
        ranges.append((file, 0, bytearray(size)))
        counts = volume.read_ranges(ranges)
    for count, (_, begin, buffer) in zip(counts, ranges):
        wanted = data[begin : begin + len(buffer)]
        assert count == len(wanted), (seed, begin)
        assert buffer[:count] == wanted, (seed, begin)
        assert not any(buffer[count:])


def test_a_range_ends_where_its_file_does(volume: gofs.Volume) -> None:
    volume.write("/a", bytes(5 << 20))
    buffers = [bytearray(b"\xaa") * 10, bytearray(b"\xaa") * 10, bytearray(b"\xaa") * (12 << 20)]
    with volume.open("/a") as file:
        counts = volume.read_ranges(
            [("/a", (5 << 20) - 4, buffers[0]), (file, 6 << 20, buffers[1]), (file, 1, buffers[2])]
        )
    assert counts == [4, 0, (5 << 20) - 1]
    assert buffers[0] == bytes(4) + b"\xaa" * 6
    assert buffers[2][counts[2] :] == b"\xaa" * ((7 << 20) + 1)


def test_the_first_error_is_raised_and_the_others_are_read(volume: gofs.Volume) -> None:
    volume.write("/a", DATA)
    volume.mkdir("/d")
    buffers = [bytearray(4) for _ in range(4)]
    names = ["/a", "/none", "/d", "/a"]
    with pytest.raises(FileNotFoundError) as missing:
        volume.read_ranges((name, 1, buffer) for name, buffer in zip(names, buffers))
    assert missing.value.filename == "/none"
    assert buffers[0] == buffers[3] == DATA[1:5]
    with pytest.raises(IsADirectoryError):
        volume.read_ranges([("/d", 0, bytearray(4)), ("/none", 0, bytearray(4))])
    with pytest.raises(FileNotFoundError):
        volume.read_ranges([("/none", 0, bytearray())])


def test_what_cannot_be_read_is_refused(volume: gofs.Volume, tmp_path: pathlib.Path) -> None:
    volume.write("/a", DATA)
    with pytest.raises(BufferError, match="read-only"):
        volume.read_ranges([("/a", 0, b"1234")])
    with pytest.raises(ValueError, match="read into a contiguous one"):
        volume.read_ranges([("/a", 0, numpy.zeros((8, 8))[:, 1])])
    with pytest.raises(OSError) as raised:
        volume.read_ranges([("/a", -1, bytearray(4))])
    assert raised.value.errno == errno.EINVAL
    for wrong in ([("/a", 0)], [5], ["/a"]):
        with pytest.raises((TypeError, ValueError)):
            volume.read_ranges(wrong)  # type: ignore[arg-type, list-item]
    with pytest.raises(TypeError):
        volume.read_ranges([(5, 0, bytearray(4))])  # type: ignore[list-item]
    with volume.open("/new", "wb") as writer, pytest.raises(io.UnsupportedOperation):
        volume.read_ranges([(writer, 0, bytearray(4))])
    closed = volume.open("/a")
    closed.close()
    with pytest.raises(ValueError, match="closed file"):
        volume.read_ranges([(closed, 0, bytearray(4))])
    gofs.mkfs(tmp_path / "other.img", 64 << 20)
    with gofs.mount(tmp_path / "other.img", writable=True, backend="cpu") as other:
        other.write("/a", DATA)
        with other.open("/a") as file, pytest.raises(ValueError, match="of another volume"):
            volume.read_ranges([(file, 0, bytearray(4))])


def test_a_file_may_be_closed_by_another_thread_meanwhile(volume: gofs.Volume) -> None:
    volume.write("/a", bytes(16 << 20))
    for _ in range(20):
        file = volume.open("/a")
        closer = threading.Thread(target=file.close)
        ranges = [(file, 0, bytearray(16 << 20)), (file, 1, bytearray(100))]
        closer.start()
        try:
            assert volume.read_ranges(ranges) == [16 << 20, 100]
        except ValueError as error:
            assert "closed file" in str(error)
        closer.join(timeout=60)
        assert file.closed


def test_files_that_become_shorter_leave_no_gaps(
    volume: gofs.Volume, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"/{number}" for number in range(5)]
    for number, name in enumerate(names):
        volume.write(name, bytes([number]) * 1000)
    read_ranges = volume.read_ranges

    def cut_first(ranges: object) -> list[int]:
        volume.truncate("/1", 10)
        volume.truncate("/2", 0)
        volume.truncate("/4", 999)
        return read_ranges(ranges)  # type: ignore[arg-type]

    monkeypatch.setattr(volume, "read_ranges", cut_first)
    packed = volume.read_many(names, packed=True)
    assert packed.offsets == [0, 1000, 1010, 1010, 2010, 3009]
    for number, (begin, end) in enumerate(zip(packed.offsets, packed.offsets[1:])):
        assert packed.data[begin:end] == bytes([number]) * (end - begin)
    assert len(packed.data) == 3009


def test_many_files_fill_one_buffer(volume: gofs.Volume) -> None:
    sizes = [100, 0, 4096, 7, 5000]
    for number, size in enumerate(sizes):
        volume.write(f"/file-{number}", DATA[number : number + size])
    names = [f"/file-{number}" for number in range(len(sizes))]
    array = numpy.zeros((3, 2000), dtype=numpy.int16)
    # The third has room for less than it is, and the last one for more.
    offsets = [10, 110, 110, 1000, 1007, 12000]
    assert volume.read_many_into(names, array, offsets) == [100, 0, 890, 7, 5000]
    flat = array.tobytes()
    assert flat[10:110] == DATA[:100]
    assert flat[110:1000] == DATA[2:892]
    assert flat[1000:1007] == DATA[3:10]
    assert flat[1007:6007] == DATA[4:5004]
    assert not any(flat[:10])
    assert not any(flat[6007:])
    assert volume.read_many_into([], array, [0]) == []
    with pytest.raises(FileNotFoundError) as failure:
        volume.read_many_into(["/file-0", "/none"], array, [0, 10, 20])
    assert failure.value.filename == "/none"
    for wrong in ([0, 10], [0, 20, 10], [-1, 0, 5], [0, 10, 12001]):
        with pytest.raises(ValueError, match="offsets|buffer has"):
            volume.read_many_into(names[:2], array, wrong)
    with pytest.raises((TypeError, ValueError, BufferError)):
        volume.read_many_into(names[:1], b"read only", [0, 3])


def test_many_files_are_arrays_in_one_piece_of_memory(volume: gofs.Volume) -> None:
    sizes = [100, 0, 4096, 7]
    for number, size in enumerate(sizes):
        volume.write(f"/file-{number}", DATA[number : number + size])
    names = [f"/file-{number}" for number in range(len(sizes))]
    arrays = volume.read_many(iter(names), framework="np")
    assert [one.tobytes() for one in arrays] == [DATA[n : n + s] for n, s in enumerate(sizes)]
    assert all(one.dtype == numpy.uint8 and one.ctypes.data % 8 == 0 for one in arrays)
    first = arrays[0].ctypes.data
    # numpy says nothing of where an array without bytes is.
    assert [one.ctypes.data - first for one in arrays if one.size] == [0, 256, 256 + 4096]
    assert arrays[2].view(numpy.float64).shape == (512,)
    assert volume.read_many([], framework="np") == []
    with pytest.raises(FileNotFoundError):
        volume.read_many(["/file-0", "/none"], framework="np")
    with pytest.raises(ValueError, match="framework"):
        volume.read_many(names, framework="none")
