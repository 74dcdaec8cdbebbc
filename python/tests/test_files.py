# SPDX-License-Identifier: Apache-2.0
"""Open files, beside io.FileIO on a file of the host; and what is built on such files."""

from __future__ import annotations

import csv
import errno
import gc
import gzip
import io
import itertools
import json
import os
import pathlib
import pickle
import random
import shutil
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest

import gofs
from outcomes import outcome

MODES = ["".join(parts) for parts in itertools.product("rwxa", ("", "b"), ("", "+"))]


@pytest.fixture
def host(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "file"


@pytest.mark.parametrize("exists", [True, False])
@pytest.mark.parametrize("mode", MODES)
def test_modes_are_those_of_fileio(
    volume: gofs.Volume, host: pathlib.Path, mode: str, exists: bool
) -> None:
    if exists:
        host.write_bytes(b"contents")
        volume.write("/file", b"contents")

    def facts(file: Any) -> tuple[Any, ...]:
        with file:
            return (
                file.mode,
                file.readable(),
                file.writable(),
                file.seekable(),
                file.isatty(),
                file.tell(),
                outcome(lambda: file.write(b"12")),
                file.tell(),
                outcome(lambda: file.seek(0)),
                outcome(lambda: file.read()),
                outcome(lambda: file.truncate(3)),
                outcome(lambda: file.readinto(bytearray(2))),
                file.tell(),
            )

    ours = outcome(lambda: facts(volume.open("/file", mode)))
    assert ours == outcome(lambda: facts(io.FileIO(host, mode)), str(host.parent))
    assert (ours[0] == "error") == (exists if "x" in mode else "r" in mode and not exists)
    if host.exists():
        assert volume.read("/file") == host.read_bytes()


@pytest.mark.parametrize("mode", ["", "rw", "b", "r++", "rbb", "U", "rz"])
def test_what_is_no_mode_is_refused(volume: gofs.Volume, mode: str) -> None:
    with pytest.raises(ValueError, match="invalid mode"):
        volume.open("/file", mode)


def test_a_mode_of_text_is_refused_with_the_way_to_it(volume: gofs.Volume) -> None:
    with pytest.raises(ValueError, match="io.TextIOWrapper"):
        volume.open("/file", "wt")
    with io.TextIOWrapper(volume.open("/file", "wb", buffering=-1), encoding="utf-8") as text:
        text.write("über\n")
    assert volume.read("/file") == "über\n".encode()


@pytest.mark.parametrize("mode", ["rb", "r+b", "w+b", "a+b", "wb", "ab"])
@pytest.mark.parametrize("seed", range(4))
def test_random_calls_do_what_fileio_does(
    volume: gofs.Volume, host: pathlib.Path, mode: str, seed: int
) -> None:
    choice = random.Random(seed)
    start = choice.randbytes(20000)
    host.write_bytes(start)
    volume.write("/file", start)
    ours: Any = volume.open("/file", mode)
    theirs: Any = io.FileIO(host, mode)

    def filled(file: Any, size: int) -> tuple[int, bytes]:
        buffer = bytearray(size)
        return file.readinto(memoryview(buffer)), bytes(buffer)

    for step in range(200):
        size = choice.choice((0, 1, 7, 4096, 10000))
        data = choice.randbytes(size)
        offset = choice.randrange(-10, 30000)
        whence = choice.choice((os.SEEK_SET, os.SEEK_CUR, os.SEEK_END))
        calls: list[Callable[[Any], Any]] = [
            lambda file: file.read(size),
            lambda file: file.read(),
            lambda file: file.readall() if file.readable() else None,  # FileIO says EBADF
            lambda file: filled(file, size),
            lambda file: file.write(data),
            lambda file: file.seek(offset, whence),
            lambda file: file.truncate(),
            lambda file: file.truncate(offset),
            lambda file: file.readline(),
        ]
        number = choice.randrange(len(calls))
        call = calls[number]
        assert outcome(lambda: call(ours)) == outcome(lambda: call(theirs)), (step, number)
        assert ours.tell() == theirs.tell(), (step, number)
    ours.close()
    theirs.close()
    assert volume.read("/file") == host.read_bytes()


def test_a_closed_file_refuses_as_fileio_does(volume: gofs.Volume, host: pathlib.Path) -> None:
    ours: Any = volume.open("/file", "w+b")
    theirs: Any = io.FileIO(host, "w+b")
    for file in (ours, theirs):
        file.close()
        file.close()  # nothing, the second time
    for call in (
        "read",
        "readall",
        "tell",
        "seekable",
        "readable",
        "writable",
        "isatty",
        "fileno",
        "truncate",
        "flush",
        "readline",
        "__enter__",
    ):
        if call == "fileno":
            continue  # it is refused in any case
        assert outcome(getattr(ours, call)) == outcome(getattr(theirs, call)), call
        assert outcome(getattr(ours, call))[1] == "ValueError", call
    for name, *arguments in (("seek", 0), ("write", b"1"), ("readinto", bytearray(1))):
        call = getattr(ours, name)
        assert outcome(lambda: call(*arguments))[1] == "ValueError"
    for name in ("stat", "fsync", "fdatasync"):
        assert outcome(getattr(ours, name))[1] == "ValueError"


class ShortWrites:
    """An open file of the binding that writes 10 bytes at a time, and `room` in all."""

    def __init__(self, core: Any, room: int) -> None:
        self._real = core
        self.room = room

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def write(self, data: Any) -> int:
        return int(self._real.write(self._part_of(data)))

    def pwrite(self, data: Any, offset: int) -> int:
        return int(self._real.pwrite(self._part_of(data), offset))

    def _part_of(self, data: Any) -> memoryview:
        part = memoryview(data).cast("B")[: min(10, self.room)]
        self.room -= len(part)
        return part


def test_a_short_write_is_followed_by_the_rest(volume: gofs.Volume) -> None:
    array = numpy.arange(9.0).reshape(3, 3)
    with volume.open("/file", "wb") as file:
        file._core = ShortWrites(file._core, 1000)  # type: ignore[assignment]
        assert file.write(b"0123456789" * 5 + b"end") == file.tell() == 53
        assert file.pwrite(b"abcdefghijklmno", 1) == 15
        assert file.write(array) == array.nbytes
    data = b"0abcdefghijklmno" + (b"0123456789" * 5 + b"end")[16:]
    assert volume.read("/file") == data + array.tobytes()


def test_what_finds_no_room_raises(volume: gofs.Volume) -> None:
    for call in (
        lambda file: file.write(bytes(35)),
        lambda file: file.pwrite(bytes(35), 0),
        lambda file: pickle.dump(bytes(1000), file),
        lambda file: numpy.save(file, numpy.zeros(1000)),
    ):
        with volume.open("/file", "wb") as file:
            file._core = ShortWrites(file._core, 30)  # type: ignore[assignment]
            with pytest.raises(OSError) as raised:
                call(file)
            assert (raised.value.errno, raised.value.filename) == (errno.ENOSPC, "/file")
        assert len(volume.read("/file")) == 30


def test_a_full_volume_is_told_to_who_ignores_counts(volume: gofs.Volume) -> None:
    with volume.open("/file", "wb") as file, pytest.raises(OSError) as raised:
        pickle.dump(bytes(150 << 20), file)
    assert raised.value.errno == errno.ENOSPC


def test_a_buffer_above_knows_what_was_written(volume: gofs.Volume) -> None:
    data = bytes(range(100))
    for mode in ("wb", "ab"):
        volume.write("/file", b"")
        file: Any = volume.open("/file", mode, buffering=200)
        short = file.raw._core = ShortWrites(file.raw._core, 30)
        file.write(data)
        with pytest.raises(OSError, match="No space"):
            file.flush()
        short.room = 1000
        file.close()
        assert volume.read("/file") == data, mode


def test_a_buffer_of_the_program_may_try_again(volume: gofs.Volume) -> None:
    data = bytes(range(100))
    raw = volume.open("/file", "wb")
    short = raw._core = ShortWrites(raw._core, 35)  # type: ignore[assignment]
    with io.BufferedWriter(raw, 200) as file:
        file.write(data)
        with pytest.raises(OSError, match="No space"):
            file.flush()
        assert raw.tell() == 0
        short.room = 1000
    assert volume.read("/file") == data


def test_pread_and_pwrite_leave_the_position(volume: gofs.Volume) -> None:
    with volume.open("/file", "w+b") as file:
        file.write(b"0123456789")
        file.seek(3)
        buffer = bytearray(4)
        assert file.pread(buffer, 5) == 4
        assert buffer == b"5678"
        assert file.pread(buffer, 8) == 2
        assert file.pread(buffer, 100) == 0
        assert file.pwrite(b"ab", 0) == 2
        assert file.tell() == 3
        assert file.read() == b"3456789"
        for call in (lambda: file.pread(buffer, -1), lambda: file.pwrite(b"", -1)):
            assert outcome(call)[:3] == ("error", "OSError", 22)
    assert volume.read("/file") == b"ab23456789"


def test_fileno_says_why_there_is_none(volume: gofs.Volume) -> None:
    with volume.open("/file", "wb") as file, pytest.raises(io.UnsupportedOperation, match="Linux"):
        file.fileno()


def test_an_open_file_tells_its_size_and_is_synced(volume: gofs.Volume) -> None:
    with volume.open("/file", "wb") as file:
        file.write(b"12345")
        file.fsync()
        volume.fsync(file)
        volume.fdatasync(file)
        assert file.stat() == volume.stat("/file")
        assert file.stat().st_size == 5
        assert (file.name, file.mode) == ("/file", "wb")
        assert "/file" in repr(file)
    volume.fsync("/file")
    volume.fdatasync("/")
    with pytest.raises(FileNotFoundError):
        volume.fsync("/none")


def test_room_is_reserved_and_given_back(volume: gofs.Volume) -> None:
    with volume.open("/file", "wb") as file:
        file.fallocate(0, 0, 1 << 20)
        assert file.stat().st_size == 1 << 20
        assert file.stat().st_blocks >= 2048
        file.fallocate(3, 0, 1 << 20)
        assert file.stat().st_blocks < 100


def test_a_directory_is_no_file(volume: gofs.Volume) -> None:
    volume.mkdir("/d")
    for mode in ("rb", "r+b", "wb", "ab"):
        with pytest.raises(IsADirectoryError) as raised:
            volume.open("/d", mode)
        assert raised.value.filename == "/d"


def test_permissions_of_a_new_file_are_those_given(volume: gofs.Volume) -> None:
    volume.open("/file", "wb", permissions=0o640).close()
    assert volume.stat("/file").st_mode & 0o777 == 0o640


def test_a_forgotten_file_is_closed_with_a_warning(volume: gofs.Volume) -> None:
    file = volume.open("/file", "wb")
    with pytest.warns(ResourceWarning, match="unclosed file.*'/file'"):
        del file
        gc.collect()


@pytest.mark.parametrize("mode", ["rb", "r+b", "wb"])
def test_what_is_refused_is_not_open_any_more(
    image: pathlib.Path, mode: str, tmp_path: pathlib.Path
) -> None:
    with gofs.mount(image, writable=True, backend="cpu", descriptors=4) as volume:
        volume.mkdir("/d")
        volume.write("/file", b"contents")
        kept: list[BaseException] = []
        for _ in range(8):
            with pytest.raises(IsADirectoryError) as refused:
                volume.open("/d", mode)
            kept.append(refused.value)
            with pytest.raises((OverflowError, MemoryError)) as too_large:
                volume.open("/file", mode, buffering=(1 << 63) - 1)
            kept.append(too_large.value)
            with pytest.raises(OSError) as no_file:
                volume.open_inode(volume.identity("/d"), "rb")
            kept.append(no_file.value)
        assert len(kept) == 24
        volume.open("/file").close()


@pytest.mark.parametrize("size", [1 << 20, 1 << 40])
def test_a_size_that_no_file_has_is_all_there_is(volume: gofs.Volume, size: int) -> None:
    volume.write("/file", b"contents")
    assert volume.read("/file", size=size, offset=3) == b"tents"
    assert volume.read("/file", size=size, offset=30) == b""
    with volume.open("/file") as file:
        file.seek(3)
        assert file.read(size) == b"tents"
        assert file.read(size) == b""


def test_a_file_is_not_pickled(volume: gofs.Volume) -> None:
    with volume.open("/file", "wb") as file, pytest.raises(TypeError, match="open it there"):
        pickle.dumps(file)


@pytest.mark.parametrize("buffering", [-1, 2, 100, 1 << 20])
def test_buffered_files_are_those_of_io(volume: gofs.Volume, buffering: int) -> None:
    lines = [f"line {number}\n".encode() for number in range(1000)]
    with volume.open("/file", "wb", buffering=buffering) as file:
        assert isinstance(file, io.BufferedWriter)
        file.writelines(lines)
    with volume.open("/file", "rb", buffering=buffering) as file:
        assert isinstance(file, io.BufferedReader)
        assert list(file) == lines
    with volume.open("/file", "r+b", buffering=buffering) as file:
        assert isinstance(file, io.BufferedRandom)
        file.seek(5)
        file.write(b"X")
        assert file.readline() == b"\n"
    assert volume.read("/file").startswith(b"line X\n")
    with pytest.raises(ValueError, match="buffering=1"):
        volume.open("/file", buffering=1)


def test_offsets_beyond_4_gib_are_what_they_are(volume: gofs.Volume) -> None:
    offsets = [(2 << 30) - 3, 2 << 30, (4 << 30) - 2, (4 << 30) + 5, (20 << 30) + 1]
    with volume.open("/sparse", "w+b") as file:
        for number, offset in enumerate(offsets):
            assert file.seek(offset) == offset
            file.write(bytes([number + 1] * 3))
        assert file.seek(0, os.SEEK_END) == offsets[-1] + 3
        for number, offset in enumerate(offsets):
            buffer = bytearray(3)
            assert file.pread(buffer, offset) == 3
            assert buffer[2] == number + 1
        assert file.seek(0, os.SEEK_DATA) >= offsets[0] - 4096
        assert file.truncate(3 << 30) == 3 << 30
    assert volume.stat("/sparse").st_size == 3 << 30
    assert volume.read("/sparse", offset=(2 << 30) - 5, size=8) == bytes([0, 0, 1, 1, 1, 2, 2, 2])
    volume.truncate("/sparse", 1 << 40)
    assert volume.stat("/sparse").st_size == 1 << 40
    assert volume.stat("/sparse").st_blocks < 1000


def test_zip_and_tar_files_are_written_and_read(volume: gofs.Volume) -> None:
    contents = {f"member{number}": os.urandom(number * 1000) for number in range(20)}
    with volume.open("/a.zip", "w+b") as file, zipfile.ZipFile(file, "w") as archive:
        for name, data in contents.items():
            archive.writestr(name, data)
    with volume.open("/a.zip") as file, zipfile.ZipFile(file) as archive:
        assert archive.testzip() is None
        assert {name: archive.read(name) for name in archive.namelist()} == contents
    with volume.open("/a.tar.gz", "wb") as file, tarfile.open(fileobj=file, mode="w:gz") as tape:
        for name, data in contents.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tape.addfile(member, io.BytesIO(data))
    with volume.open("/a.tar.gz") as file, tarfile.open(fileobj=file) as tape:
        read = {member.name: tape.extractfile(member).read() for member in tape}
    assert read == contents


def test_pickle_json_csv_gzip_and_numpy_take_the_files(volume: gofs.Volume) -> None:
    value = {"a": list(range(1000)), "b": b"x" * 100000}
    with volume.open("/value.pickle", "wb") as file:
        pickle.dump(value, file, protocol=5)
    with volume.open("/value.pickle") as file:
        assert pickle.load(file) == value
    with io.TextIOWrapper(volume.open("/rows.csv", "wb", buffering=-1), newline="") as text:
        csv.writer(text).writerows([["1", "zwei"], ["3", "vier"]])
    with io.TextIOWrapper(volume.open("/rows.csv", buffering=-1), newline="") as text:
        assert list(csv.reader(text)) == [["1", "zwei"], ["3", "vier"]]
    with volume.open("/value.json.gz", "wb") as file, gzip.open(file, "wt") as packed:
        json.dump({"a": 1}, packed)
    with volume.open("/value.json.gz") as file, gzip.open(file, "rt") as packed:
        assert json.load(packed) == {"a": 1}
    array = numpy.arange(100000, dtype=numpy.float32).reshape(100, 1000)
    with volume.open("/array.npy", "wb") as file:
        numpy.save(file, array)
    with volume.open("/array.npy") as file:
        assert numpy.array_equal(numpy.load(file), array)
    with volume.open("/arrays.npz", "wb") as file:
        numpy.savez(file, first=array, second=array[0])
    with volume.open("/arrays.npz") as file, numpy.load(file) as arrays:
        assert numpy.array_equal(arrays["second"], array[0])


def test_files_are_copied_by_shutil(volume: gofs.Volume, host: pathlib.Path) -> None:
    data = os.urandom(3_000_001)
    host.write_bytes(data)
    with host.open("rb") as source, volume.open("/copy", "wb") as target:
        shutil.copyfileobj(source, target)
    assert volume.read("/copy") == data
    with volume.open("/copy") as source, host.open("wb") as target:
        shutil.copyfileobj(source, target)
    assert host.read_bytes() == data


def writer_of_torch(file: Any) -> Iterator[int]:
    """What torch.save() does with a file: a ZIP whose records are written by memoryviews."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for number in range(3):
            with archive.open(f"archive/data/{number}", "w", force_zip64=True) as record:
                yield record.write(memoryview(numpy.full(1000, number, dtype=numpy.float64)))


def test_records_are_read_back_where_they_lie(volume: gofs.Volume) -> None:
    with volume.open("/checkpoint.pt", "w+b") as file:
        assert list(writer_of_torch(file)) == [8000] * 3
    with volume.open("/checkpoint.pt") as file, zipfile.ZipFile(file) as archive:
        for number in range(3):
            record = archive.read(f"archive/data/{number}")
            assert (numpy.frombuffer(record, dtype=numpy.float64) == number).all()
