# SPDX-License-Identifier: Apache-2.0
"""Many ranges by one call, and what stands on it."""

from __future__ import annotations

import errno
import io
import pathlib
import random
import threading
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import gofs
from fake_tensors import FakeTensor
from gofs import _ranges
from watched import Watched

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
    wrong: Any
    for wrong, shown in (
        ([("/a", 0)], r"\(str, int\)"),
        ([5], "5"),
        (["/a"], "'/a'"),
        (["abc"], "'abc'"),
        ({"/a": bytearray(4)}, "'/a'"),
    ):
        for call in (volume.read_ranges, volume.write_ranges):
            words = rf"^ranges: each is \(file or path, offset, buffer\), and not {shown}$"
            with pytest.raises(TypeError, match=words):
                call(wrong)
    with pytest.raises(TypeError, match="^ranges: several are wanted, not None$"):
        volume.read_ranges(None)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        volume.read_ranges([(5, 0, bytearray(4))])  # type: ignore[list-item]
    with volume.open("/new", "wb") as writer, pytest.raises(io.UnsupportedOperation):
        volume.read_ranges([(writer, 0, bytearray(4))])
    closed = volume.open("/a")
    closed.close()
    with pytest.raises(ValueError, match="closed file"):
        volume.read_ranges([(closed, 0, bytearray(4))])


def test_no_call_takes_a_file_of_another_volume(
    volume: gofs.Volume, tmp_path: pathlib.Path
) -> None:
    volume.write("/a", DATA)
    gofs.mkfs(tmp_path / "other.img", 64 << 20)
    with gofs.mount(tmp_path / "other.img", writable=True, backend="cpu") as other:
        other.write("/a", DATA)
        with other.open("/a", "r+b") as file, volume.open("/a", "r+b") as own:
            calls: list[Callable[[], object]] = [
                lambda: volume.read_ranges([("/a", 0, bytearray(4)), (file, 0, bytearray(4))]),
                lambda: volume.write_ranges([("/a", 0, b"new"), (file, 0, b"new")]),
                lambda: volume.read_rows(file, [0], bytearray(4)),
                lambda: volume.write_rows(file, [0], b"new"),
                lambda: volume.copy_file_range(file, own, 4, 0, 100),
                lambda: volume.copy_file_range(own, file, 4, 0, 100),
                lambda: volume.copy_file_range(file, file, 4, 0, 100),
                lambda: volume.fsync(file),
                lambda: volume.fdatasync(file),
                lambda: volume.identity(file),
            ]
            for call in calls:
                with pytest.raises(ValueError, match="^the file is of another volume$"):
                    call()
        assert other.read("/a") == volume.read("/a") == DATA


def test_a_negative_place_is_named_with_its_file(volume: gofs.Volume) -> None:
    volume.write("/a", DATA)
    with volume.open("/a", "r+b") as file:
        calls: list[tuple[str, Callable[[], object]]] = [
            ("offset", lambda: volume.read_ranges([("/a", -1, bytearray(4))])),
            ("offset", lambda: volume.write_ranges([(file, -1, b"1")])),
            ("offset", lambda: file.pread(bytearray(4), -1)),
            ("offset", lambda: file.pwrite(b"1", -1)),
            ("length", lambda: file.fallocate(0, 0, -1)),
            ("count", lambda: volume.copy_file_range(file, file, -1)),
            ("offset_src", lambda: volume.copy_file_range(file, file, 1, -1, 0)),
            ("size", lambda: volume.read("/a", size=-1)),
            ("length", lambda: volume.truncate("/a", -1)),
        ]
        for name, call in calls:
            with pytest.raises(OSError, match=f"Invalid argument: {name} is -1: ") as raised:
                call()
            assert (raised.value.errno, raised.value.filename) == (errno.EINVAL, "/a")
    with pytest.raises(ValueError, match="null byte"):  # first, as `os` has it
        volume.truncate("/a\0b", -1)


class Asked:
    """A path that counts how often it is asked for."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.times = 0

    def __fspath__(self) -> str:
        self.times += 1
        return self.path


def test_a_path_is_asked_for_once(volume: gofs.Volume) -> None:
    volume.write("/a", DATA)
    calls: list[Callable[[Any], object]] = [
        lambda path: volume.read_ranges([(path, 0, bytearray(4))]),
        lambda path: volume.write_ranges([(path, 0, b"1")]),
        lambda path: volume.read_rows(path, [0], bytearray(4)),
        lambda path: volume.read_many([path]),
        lambda path: volume.read_many([path], packed=True),
        lambda path: volume.read_many([path], framework="np"),
        lambda path: volume.read_many([path], framework="np", packed=True),
        lambda path: volume.read_many_into([path], bytearray(4), [0, 4]),
        lambda path: volume.open(path).close(),
    ]
    for call in calls:
        path = Asked("/a")
        call(path)
        assert path.times == 1
    assert volume.read_many([path], packed=True).names == [path]  # as it was given


def test_a_range_of_a_file_that_is_closed_meanwhile_does_not_keep_others(
    volume: gofs.Volume, monkeypatch: pytest.MonkeyPatch
) -> None:
    volume.write_many("/", {"a": b"...", "b": b"..."})
    volume.mkdir("/d")
    file = volume.open("/a", "r+b")
    core = volume._core

    def open_many(paths: list[str | bytes], flags: int) -> list[Any]:
        file.close()  # as another thread does it
        return core.open_many(paths, flags)  # type: ignore[no-any-return]

    monkeypatch.setattr(volume, "_core", Watched(volume, open_many=open_many))
    with pytest.raises(ValueError, match="closed file"):
        volume.write_ranges([(file, 0, b"x"), ("/b", 0, b"x"), (file, 1, b"x"), ("/b", 2, b"x")])
    assert volume.read_many(["/a", "/b"]) == [b"...", b"x.x"]


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
    read_many_into = volume.read_many_into

    def cut_first(*given: Any) -> list[int]:
        volume.truncate("/1", 10)
        volume.truncate("/2", 0)
        volume.truncate("/4", 999)
        return read_many_into(*given)

    monkeypatch.setattr(volume, "read_many_into", cut_first)
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


def watch_portions(volume: gofs.Volume, monkeypatch: pytest.MonkeyPatch, least: int) -> list[int]:
    """Has 10 files be open at once, of which all but `least` find no descriptor; how many paths
    each call is given."""
    core = volume._core
    asked = []

    def open_many(paths: list[str | bytes], flags: int) -> list[Any]:
        asked.append(len(paths))
        answers: list[Any] = core.open_many(paths, flags)
        for file in answers[least:]:
            if not isinstance(file, OSError):
                file.close()
        refused = [OSError(errno.EMFILE, "no descriptor", path) for path in paths[least:]]
        return answers[:least] + refused

    monkeypatch.setattr(_ranges, "FILES_AT_ONCE", 10)
    monkeypatch.setattr(volume, "_core", Watched(volume, open_many=open_many))
    return asked


@pytest.mark.parametrize("least", [10, 4])
def test_more_files_are_written_than_can_be_open(
    volume: gofs.Volume, monkeypatch: pytest.MonkeyPatch, least: int
) -> None:
    names = [f"/{number:02}" for number in range(35)]
    volume.write_many("/", {name[1:]: b"....." for name in names})
    asked = watch_portions(volume, monkeypatch, least)
    with volume.open("/00", "r+b", buffering=0) as first:
        # Each path twice, and a file that is open already.
        ranges: list[Any] = [(name, at, name[1:].encode()) for name in names for at in (0, 3)]
        volume.write_ranges([*ranges, (first, 2, b"!")])
    assert max(asked) == 10
    assert len(asked) >= {10: 4, 4: 9}[least]
    wanted = [f"{number:02}.{number:02}".encode() for number in range(35)]
    wanted[0] = b"00!00"
    assert volume.read_many(names) == wanted
    asked.clear()
    volume.write_ranges([("/00", at, b"x") for at in range(100)])
    assert asked == [1]


def test_of_many_files_a_missing_one_is_told_of_before_any_is_written(
    volume: gofs.Volume, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"/{number:02}" for number in range(35)]
    volume.write_many("/", {name[1:]: b"." for name in names})
    asked = watch_portions(volume, monkeypatch, 10)
    with pytest.raises(FileNotFoundError) as raised:
        volume.write_ranges([(name, 0, b"x") for name in [*names, "/none"]])
    assert raised.value.filename == "/none"
    assert asked == []
    # What cannot be written is told of after the others.
    volume.mkdir("/d")
    with pytest.raises(IsADirectoryError) as refused:
        volume.write_ranges([(name, 0, b"x") for name in [*names, "/d"]])
    assert refused.value.filename == "/d"
    assert volume.read_many(names) == [b"x"] * 35


def test_no_descriptor_at_all_is_an_error(
    volume: gofs.Volume, monkeypatch: pytest.MonkeyPatch
) -> None:
    volume.write("/a", b".")
    watch_portions(volume, monkeypatch, 0)
    with pytest.raises(OSError, match="no descriptor") as raised:
        volume.write_ranges([("/a", 0, b"x")])
    assert raised.value.errno == errno.EMFILE


def test_files_are_read_by_names_of_any_kind(volume: gofs.Volume) -> None:
    names = ["/plain", "/\u00fc\u20ac", "/\udcff", b"/\xfe", pathlib.PurePosixPath("/path")]
    for number, name in enumerate(names):
        volume.write(name, DATA[number : 2 * number])
    wanted = [DATA[number : 2 * number] for number in range(len(names))]
    assert volume.read_many(names) == wanted
    assert volume.read_many(names, packed=True).data == b"".join(wanted)
    assert [one.tobytes() for one in volume.read_many(names, framework="np")] == wanted
    for wrong in ("/pl\0ain", "/\u00fc\0", b"/\0"):
        with pytest.raises(ValueError, match="null|NUL"):
            volume.read_many([*names, wrong])
    with pytest.raises(TypeError):
        volume.read_many([*names, 5])  # type: ignore[list-item]
    for kind in ({}, {"packed": True}, {"framework": "np"}):
        with pytest.raises(FileNotFoundError) as raised:
            volume.read_many([*names, b"/\xfd", "/none"], **kind)
        assert raised.value.filename == b"/\xfd"


def test_bytes_of_a_file_that_becomes_shorter_are_those_it_has(
    volume: gofs.Volume, monkeypatch: pytest.MonkeyPatch
) -> None:
    volume.write("/a", DATA)
    volume.write("/b", DATA)
    volume.write("/c", b"1")
    monkeypatch.setattr(
        volume, "_core", Watched(volume, sizes=lambda paths: [len(DATA), len(DATA) + 9, 0])
    )
    assert volume.read_many(["/a", "/b", "/c"]) == [DATA, DATA, b""]
