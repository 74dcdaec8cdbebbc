# SPDX-License-Identifier: Apache-2.0
"""Reading and writing memory of all kinds, in place; and files that are read or written at once."""

from __future__ import annotations

import array
import ctypes
import errno
import gc
import mmap
import os
import weakref
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import gofs
from fake_tensors import FakeDeviceArray, FakeTensor
from gofs._buffers import bytes_to_fill, bytes_to_read, memory_to_fill, memory_to_read
from watched import Watched

DATA = bytes(range(256)) * 16

WRITABLE: dict[str, Callable[[], Any]] = {
    "bytearray": lambda: bytearray(4096),
    "memoryview": lambda: memoryview(bytearray(4096)),
    "part of a memoryview": lambda: memoryview(bytearray(8192))[1000:5096],
    "array": lambda: array.array("d", [0] * 512),
    "mmap": lambda: mmap.mmap(-1, 4096),
    "ctypes": lambda: (ctypes.c_uint16 * 2048)(),
    "numpy bytes": lambda: numpy.zeros(4096, dtype=numpy.uint8),
    "numpy matrix": lambda: numpy.zeros((16, 32, 2), dtype=numpy.float32),
    "numpy rows": lambda: numpy.zeros((64, 128), dtype=numpy.uint8)[16:48],
    "numpy unaligned": lambda: numpy.zeros(4097, dtype=numpy.uint8)[1:],
    "numpy times": lambda: numpy.zeros(512, dtype="datetime64[ns]"),
    "numpy records": lambda: numpy.zeros(512, dtype=[("a", "<i4"), ("b", "<f4")]),
    "tensor": lambda: FakeTensor(numpy.zeros((2, 1024), dtype=numpy.float16)),
}


def bytes_of(memory: Any) -> bytes:
    if isinstance(memory, FakeTensor):
        return memory.array.tobytes()
    return memory.tobytes() if isinstance(memory, numpy.ndarray) else bytes(memoryview(memory))


@pytest.mark.parametrize("kind", WRITABLE)
def test_memory_is_filled_in_place(volume: gofs.Volume, kind: str) -> None:
    volume.write("/file", DATA)
    memory = WRITABLE[kind]()
    assert volume.read_into("/file", memory) == 4096
    assert bytes_of(memory) == DATA
    with volume.open("/file") as file:
        for fill in (lambda into: file.pread(into, 0), file.readinto):
            memory = WRITABLE[kind]()
            assert fill(memory) == 4096
            assert bytes_of(memory) == DATA
    memory = WRITABLE[kind]()
    assert volume.read_many_into(["/file", "/file"], memory, [0, 1000, 4096]) == [1000, 3096]
    assert bytes_of(memory) == DATA[:1000] + DATA[:3096]


@pytest.mark.parametrize("kind", WRITABLE)
def test_memory_is_written_from_where_it_is(volume: gofs.Volume, kind: str) -> None:
    volume.write("/source", DATA)
    memory = WRITABLE[kind]()
    volume.read_into("/source", memory)
    assert volume.write("/file", memory) == 4096
    with volume.open("/by_file", "wb") as file:
        assert file.write(memory) == 4096
        assert file.pwrite(memory, 4096) == 4096
    volume.mkdir("/many")
    volume.write_many("/many", {"one": memory})
    assert volume.read("/file") == volume.read("/many/one") == DATA
    assert volume.read("/by_file") == DATA * 2


def test_memory_keeps_what_it_is_of() -> None:
    for memory_of in (memory_to_read, memory_to_fill, bytes_to_read, bytes_to_fill):
        tensor = FakeTensor(numpy.arange(5, dtype=numpy.int64))
        is_there = weakref.ref(tensor)
        memory = memory_of(tensor)
        del tensor
        gc.collect()
        assert is_there() is not None
        part = memoryview(memory).cast("B")[8:16]
        del memory
        gc.collect()
        assert is_there() is not None
        assert bytes(part) == (1).to_bytes(8, "little")
        del part
        gc.collect()
        assert is_there() is None


READ_ONLY: dict[str, Callable[[], Any]] = {
    "bytes": lambda: bytes(4096),
    "memoryview": lambda: memoryview(bytes(4096)),
    "numpy": lambda: numpy.frombuffer(bytes(4096), dtype=numpy.uint8),
    "numpy broadcast": lambda: numpy.broadcast_to(numpy.zeros(4, dtype=numpy.uint8), (1, 4)),
}


@pytest.mark.parametrize("kind", READ_ONLY)
def test_read_only_memory_is_written_from_and_not_filled(volume: gofs.Volume, kind: str) -> None:
    memory = READ_ONLY[kind]()
    volume.write("/file", memory)
    with pytest.raises(BufferError, match="read-only: read into a bytearray"):
        volume.read_into("/file", memory)
    with volume.open("/file") as file, pytest.raises(BufferError, match="read-only"):
        file.readinto(memory)


class Owner(ctypes.Structure):
    _fields_ = (("number", ctypes.c_int), ("object", ctypes.py_object))


REFERENCES: dict[str, Callable[[], Any]] = {
    "numpy": lambda: numpy.array([object()]),
    "numpy records": lambda: numpy.zeros(1, dtype=[("a", "<i4"), ("b", object)]),
    "memoryview": lambda: memoryview(numpy.array([object()])),
    "ctypes": lambda: (ctypes.py_object * 1)(object()),
    "ctypes records": lambda: (Owner * 1)(),
}


@pytest.mark.parametrize("kind", REFERENCES)
def test_memory_with_references_to_objects_is_refused(volume: gofs.Volume, kind: str) -> None:
    memory = REFERENCES[kind]()
    volume.write("/file", bytes(64))
    with volume.open("/file", "r+b") as file:
        for call in (
            lambda: volume.write("/file", memory),
            lambda: volume.write_many("/", {"other": memory}),
            lambda: volume.write_ranges([("/file", 0, memory)]),
            lambda: volume.read_into("/file", memory),
            lambda: volume.read_ranges([("/file", 0, memory)]),
            lambda: volume.read_many_into(["/file"], memory, [0, 1]),
            lambda: file.write(memory),
            lambda: file.pwrite(memory, 0),
            lambda: file.readinto(memory),
            lambda: file.pread(memory, 0),
        ):
            with pytest.raises(TypeError, match="references to Python's objects"):
                call()
    assert volume.read("/file") == bytes(64)
    assert not volume.exists("/other")


def test_offsets_are_whole_numbers_that_linux_has(volume: gofs.Volume) -> None:
    volume.write("/file", DATA)
    half: Any = 1.5
    with pytest.raises(TypeError, match=r"^offset: a whole number is wanted, not 1.5$"):
        volume.read("/file", offset=half)
    with pytest.raises(OverflowError, match=r"Linux counts to 2\*\*63 - 1$"):
        volume.read("/file", offset=1 << 63)
    with pytest.raises(OverflowError, match=r"Linux counts to 2\*\*63 - 1$"):
        volume.read_into("/file", bytearray(1), offset=1 << 70)
    assert volume.read("/file", offset=numpy.int64(4000)) == DATA[4000:]


def test_a_field_whose_name_looks_like_a_type_is_none(volume: gofs.Volume) -> None:
    class Named(ctypes.Structure):
        _fields_ = (("O", ctypes.c_int),)

    assert volume.write("/file", (Named * 2)(Named(1), Named(2))) == 8


STRIDED: dict[str, Callable[[], Any]] = {
    "columns": lambda: numpy.zeros((64, 64), dtype=numpy.float32)[:, ::2],
    "transposed": lambda: numpy.zeros((64, 32), dtype=numpy.float32).T,
    "memoryview": lambda: memoryview(bytearray(4096))[::2],
    "backwards": lambda: numpy.zeros(64, dtype=numpy.uint8)[::-1],
}


@pytest.mark.parametrize("kind", STRIDED)
def test_memory_with_gaps_is_refused_and_never_copied(volume: gofs.Volume, kind: str) -> None:
    volume.write("/file", DATA)
    memory = STRIDED[kind]()
    with pytest.raises(ValueError, match="read into a contiguous one"):
        volume.read_into("/file", memory)
    with pytest.raises(ValueError, match="read into a contiguous one"):
        volume.read_many_into(["/file"], memory, [0, 10])
    with pytest.raises(ValueError, match="write a contiguous copy"):
        volume.write("/file", memory)
    with volume.open("/new", "wb") as file, pytest.raises(ValueError, match="contiguous"):
        file.write(memory)
    volume.mkdir("/many")
    with pytest.raises(ValueError, match="contiguous"):
        volume.write_many("/many", {"one": memory})
    assert not numpy.asarray(memory).any()
    assert volume.listdir("/many") == []


@pytest.mark.parametrize(
    ("tensor", "reading", "writing"),
    [
        (FakeTensor(numpy.zeros(8), device="cuda:1"), "on cuda:1.*on the CPU", r"\.cpu\(\)"),
        (FakeTensor(numpy.zeros((8, 8))[:, 1]), r"contiguous.*copy_\(\)", r"\.contiguous\(\)"),
        (FakeTensor(numpy.zeros(8), conjugated=True), "resolve_conj", "resolve_conj"),
        (FakeTensor(numpy.zeros(8), negated=True), "resolve_neg", "resolve_neg"),
        (FakeDeviceArray(), "memory of a GPU", "memory of a GPU"),
    ],
    ids=["device", "strided", "conjugated", "negated", "cuda array"],
)
def test_tensors_that_are_not_as_they_lie_are_refused(
    volume: gofs.Volume, tensor: Any, reading: str, writing: str
) -> None:
    volume.write("/file", DATA)
    with pytest.raises(ValueError, match=reading):
        volume.read_into("/file", tensor)
    with pytest.raises(ValueError, match=writing):
        volume.write("/file", tensor)
    assert volume.read("/file") == DATA


def test_a_refused_write_leaves_the_file_as_it_was(volume: gofs.Volume) -> None:
    volume.write("/file", DATA)
    for wrong in ("text", 5, None, [1, 2], numpy.zeros((4, 4))[:, 0]):
        with pytest.raises((TypeError, ValueError)):
            volume.write("/file", wrong)  # type: ignore[arg-type]
    assert volume.read("/file") == DATA


@pytest.mark.parametrize("wrong", ["text", 5, None, [1, 2]])
def test_what_has_no_memory_is_refused_with_what_has(volume: gofs.Volume, wrong: Any) -> None:
    volume.write("/file", DATA)
    with pytest.raises(TypeError, match="give bytes, a bytearray, a memoryview, an array"):
        volume.write("/other", wrong)
    with pytest.raises(TypeError, match="has no memory"):
        volume.read_into("/file", wrong)


def test_memory_is_registered_and_is_not_any_more(volume: gofs.Volume) -> None:
    volume.write("/file", bytes(range(100)))
    buffer = bytearray(10_000)
    array = numpy.zeros((10, 10))
    with volume.register(buffer), volume.register(array) as registered:
        assert volume.read_into("/file", buffer) == 100
        assert buffer[:100] == bytes(range(100))
        with pytest.raises(FileExistsError):
            volume.register(memoryview(buffer)[5000:])
        with pytest.raises(BufferError):
            buffer.clear()  # it is kept as it is
        assert not registered.closed
    assert registered.closed
    registered.close()
    buffer.clear()
    forgotten = volume.register(array)
    del forgotten
    kept = volume.register(array)
    with pytest.raises(BufferError):
        volume.register(b"read-only")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="without any bytes"):
        volume.register(bytearray())
    volume.close()
    kept.close()
    with pytest.raises(ValueError, match="closed"):
        volume.register(array)


def test_nothing_is_read_into_and_written_from_nothing(volume: gofs.Volume) -> None:
    assert volume.write("/empty", b"") == 0
    assert volume.write("/empty", FakeTensor(numpy.zeros(0))) == 0
    assert volume.read("/empty") == b""
    assert volume.read_into("/empty", bytearray(10)) == 0
    volume.write("/file", DATA)
    assert volume.read_into("/file", bytearray()) == 0
    empty = (numpy.zeros((0, 5)), numpy.zeros((3, 0)), memoryview(b""), FakeTensor(numpy.zeros(0)))
    for nothing in empty:
        assert volume.write("/nothing", nothing) == 0
        with volume.open("/nothing", "wb") as file:
            assert file.write(nothing) == file.pwrite(nothing, 0) == 0
    for nothing in (numpy.zeros((0, 5)), numpy.zeros((3, 0)), bytearray()):
        assert volume.read_into("/file", nothing) == 0
        assert volume.read_many_into([], nothing, [0]) == []
        assert volume.read_many_into(["/file"], nothing, [0, 0]) == [0]


def test_ranges_of_files_end_where_they_end(volume: gofs.Volume) -> None:
    volume.write("/file", DATA)
    assert volume.read("/file", offset=10, size=5) == DATA[10:15]
    assert volume.read("/file", offset=4090) == DATA[4090:]
    assert volume.read("/file", offset=4090, size=100) == DATA[4090:]
    assert volume.read("/file", offset=5000) == volume.read("/file", size=0) == b""
    buffer = bytearray(b"\xaa" * 10)
    assert volume.read_into("/file", buffer, offset=4092) == 4
    assert buffer == DATA[4092:] + b"\xaa" * 6
    for offset, size in ((-1, None), (0, -1)):
        with pytest.raises(OSError) as raised:
            volume.read("/file", offset=offset, size=size)
        assert raised.value.errno == errno.EINVAL


def test_write_replaces_all_of_a_file(volume: gofs.Volume) -> None:
    volume.write("/file", b"long contents")
    assert volume.write("/file", b"short", sync=True, permissions=0o600) == 5
    assert volume.read("/file") == b"short"
    volume.write("/new", b"", permissions=0o600)
    assert volume.stat("/new").st_mode & 0o777 == 0o600


def test_a_full_volume_says_so(volume: gofs.Volume) -> None:
    with pytest.raises(OSError) as raised:
        volume.write("/file", bytes(150 << 20))
    assert raised.value.errno == errno.ENOSPC
    volume.unlink("/file")
    volume.write("/file", bytes(50 << 20))


def test_many_files_are_read_in_one_piece(volume: gofs.Volume) -> None:
    volume.mkdir("/d")
    contents = {f"{number:03}": os.urandom(number * 37) for number in range(100)}
    volume.write_many("/d", contents)
    volume.mkdir("/d/folder")
    volume.symlink("050", "/d/link")
    contents["link"] = contents["050"]
    assert volume.read_dir("/d") == contents
    data, offsets, names = volume.read_dir("/d", packed=True)
    assert names == list(contents)
    assert len(offsets) == len(names) + 1
    for number, name in enumerate(names):
        assert data[offsets[number] : offsets[number + 1]] == contents[name]
    assert len(data) == offsets[-1]
    paths = ["/d/007", b"/d/003"]
    assert volume.read_many(paths) == [contents["007"], contents["003"]]
    packed = volume.read_many(iter(paths), packed=True)
    assert packed == (contents["007"] + contents["003"], [0, 7 * 37, 10 * 37], paths)
    for is_packed in (True, False):
        with pytest.raises(FileNotFoundError):
            volume.read_many(["/d/001", "/none"], packed=is_packed)


def test_many_files_are_made_and_replaced(volume: gofs.Volume) -> None:
    volume.mkdir("/d")
    volume.mkdir("/d/folder")
    volume.write("/d/old", b"something longer")
    files = {"new": b"1", "old": bytearray(b"2"), "array": numpy.ones(3), "folder": b"", "z": b"3"}
    with pytest.raises(IsADirectoryError) as raised:
        volume.write_many("/d", files, sync=True)
    assert raised.value.filename == "/d/folder"
    assert sorted(volume.listdir("/d")) == sorted(files)
    assert volume.read_many(["/d/new", "/d/old", "/d/z"]) == [b"1", b"2", b"3"]
    assert volume.read("/d/array") == numpy.ones(3).tobytes()
    del files["folder"]
    volume.write_many("/d", files, sync=True)
    with pytest.raises(OSError) as refused:
        volume.write_many("/d", {"a/b": b""})
    assert refused.value.errno == errno.EINVAL
    volume.write_many("/", {})
    with pytest.raises(FileNotFoundError) as missing:
        volume.write_many("/none", {})
    with pytest.raises(NotADirectoryError) as no_folder:
        volume.write_many("/d/old", {})
    assert [each.value.filename for each in (missing, no_folder)] == ["/none", "/d/old"]
    with pytest.raises(FileNotFoundError):
        volume.write_many("/none", {"a": b""})


def test_a_contradiction_is_told_as_one_by_all_calls(
    volume: gofs.Volume, monkeypatch: pytest.MonkeyPatch
) -> None:
    def corrupt(directory: str, names: list[str], *arguments: object) -> list[int]:
        return [errno.EUCLEAN for _ in names]

    monkeypatch.setattr(volume, "_core", Watched(volume, batch_create=corrupt))
    with pytest.raises(gofs.CorruptionError) as raised:
        volume.write_many("/", {"a": b"1"})
    assert raised.value.filename == "/a"


def test_a_large_file_is_read_as_it_was_written(volume: gofs.Volume) -> None:
    data = numpy.random.default_rng(1).integers(0, 256, 40 << 20, dtype=numpy.uint8)
    volume.write("/large", data)
    back = numpy.empty_like(data)
    assert volume.read_into("/large", back) == data.nbytes
    assert numpy.array_equal(back, data)
    with volume.open("/large") as file:
        assert file.read() == data.tobytes()
