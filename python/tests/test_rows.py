# SPDX-License-Identifier: Apache-2.0
"""Rows of one file by one call, and many whole files with few descriptors."""

from __future__ import annotations

import errno
import pathlib
import random
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import gofs
from fake_tensors import FakeTensor

ROW = 1000
DATA = random.Random(1).randbytes(300 * ROW + 77)


@pytest.fixture
def file(volume: gofs.Volume) -> str:
    volume.write("/rows", DATA)
    return "/rows"


def some_offsets(count: int) -> list[int]:
    draw = random.Random(2)
    return [draw.randrange(len(DATA) - ROW) for _ in range(count)]


@pytest.mark.parametrize(
    "given",
    [
        list,
        tuple,
        iter,
        numpy.array,
        lambda offsets: numpy.array(offsets, dtype=numpy.int32),
        lambda offsets: numpy.array(offsets * 2)[: len(offsets)],
        lambda offsets: numpy.array([offsets, offsets]).T[:, 0],
        lambda offsets: memoryview(numpy.array(offsets)),
    ],
)
def test_rows_are_those_of_the_file(
    volume: gofs.Volume, file: str, given: Callable[[list[int]], Any]
) -> None:
    offsets = some_offsets(200)
    rows = numpy.zeros((200, ROW), dtype=numpy.uint8)
    assert volume.read_rows(file, given(offsets), rows) == [ROW] * 200
    for begin, row in zip(offsets, rows):
        assert row.tobytes() == DATA[begin : begin + ROW]


def test_rows_of_any_shape_and_of_an_open_file(volume: gofs.Volume, file: str) -> None:
    offsets = [0, 5000, 16]
    rows = numpy.zeros((3, 5, 25), dtype=numpy.float64)
    tensor = FakeTensor(numpy.zeros((3, 100), dtype=numpy.int16))
    flat = bytearray(3 * 11)
    with volume.open(file) as opened:
        assert volume.read_rows(opened, offsets, rows) == [ROW] * 3
        assert volume.read_rows(opened, offsets, tensor) == [200] * 3
        assert volume.read_rows(opened, offsets, flat) == [11] * 3
        assert volume.read_rows(opened, [], bytearray()) == []
        assert opened.tell() == 0
    assert rows.tobytes() == b"".join(DATA[n : n + ROW] for n in offsets)
    assert tensor.array.tobytes() == b"".join(DATA[n : n + 200] for n in offsets)
    assert flat == b"".join(DATA[n : n + 11] for n in offsets)


def test_rows_end_where_the_file_does(volume: gofs.Volume, file: str) -> None:
    rows = bytearray(b"x" * 40)
    offsets = [len(DATA) - 3, len(DATA), 2**62, 0]
    assert volume.read_rows(file, offsets, rows) == [3, 0, 0, 10]
    assert rows == DATA[-3:] + b"x" * 27 + DATA[:10]


def test_rows_are_written(volume: gofs.Volume, file: str) -> None:
    wanted = bytearray(DATA)
    offsets = random.Random(3).sample(range(0, len(DATA) - ROW, ROW), 100)
    rows = numpy.frombuffer(random.Random(4).randbytes(100 * ROW), dtype=numpy.uint8)
    for number, begin in enumerate(offsets):
        wanted[begin : begin + ROW] = rows[number * ROW : (number + 1) * ROW].tobytes()
    volume.write_rows(file, numpy.array(offsets), rows)
    assert volume.read(file) == wanted
    with volume.open(file, "r+b") as opened:
        volume.write_rows(opened, [len(DATA) + 5, 0], b"abcd")
    assert volume.read(file) == b"cd" + wanted[2:] + bytes(5) + b"ab"


def test_rows_that_do_not_fit_the_volume_are_an_error(volume: gofs.Volume, file: str) -> None:
    size = 1 << 20
    count = volume.statvfs().f_bfree * 4096 // size + 8
    with pytest.raises(OSError, match="/rows") as raised:
        volume.write_rows(file, range(0, count * size, size), bytes(count * size))
    assert raised.value.errno == errno.ENOSPC


@pytest.mark.parametrize(
    ("offsets", "rows", "error", "words"),
    [
        ([0, -1], bytearray(4), ValueError, "none is negative, as -1 is"),
        (numpy.array([-7]), bytearray(4), ValueError, "none is negative, as -7 is"),
        ([0, 2**63], bytearray(4), OverflowError, "offsets: integers from 0"),
        ([0, 1.5], bytearray(4), TypeError, "offsets: integers from 0"),
        (numpy.array([0.5]), bytearray(4), TypeError, "offsets: integers from 0"),
        (numpy.array([True, False]), bytearray(4), TypeError, "offsets: integers .* truth values"),
        (memoryview(numpy.array([True])), bytearray(4), TypeError, "offsets: integers .* truth"),
        (None, bytearray(4), TypeError, "offsets: integers from 0"),
        ("12", bytearray(4), TypeError, "offsets: integers from 0"),
        (numpy.zeros((2, 2), dtype=numpy.int64), bytearray(4), TypeError, "offsets: integers"),
        ([0, 1, 2], bytearray(4), ValueError, "3 offsets, for rows of 4 bytes"),
        ([], bytearray(4), ValueError, "no offsets, for rows of 4 bytes"),
        ([0], b"1234", BufferError, "read-only"),
        ([0], numpy.zeros((4, 4), dtype=numpy.uint8)[:, :2], ValueError, "contiguous"),
    ],
)
def test_wrong_rows_say_what_is_wrong(
    volume: gofs.Volume, file: str, offsets: Any, rows: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        volume.read_rows(file, offsets, rows)


def test_files_that_are_not_there_or_not_open_for_it(volume: gofs.Volume, file: str) -> None:
    with pytest.raises(FileNotFoundError, match="/none"):
        volume.read_rows("/none", [0], bytearray(1))
    with pytest.raises(FileNotFoundError, match="/none"):
        volume.write_rows("/none", [0], b"1")
    with volume.open(file) as opened, pytest.raises(OSError, match="not open for writing"):
        volume.write_rows(opened, [0], b"1")
    with pytest.raises(ValueError, match="closed"):
        volume.read_rows(opened, [0], bytearray(1))
    with pytest.raises(IsADirectoryError):
        volume.read_rows("/", [0], bytearray(1))


def test_more_files_than_can_be_open_are_read_as_a_gpu_reads_them(image: pathlib.Path) -> None:
    """By the call for memory of a GPU, which takes any address where the CPU has the volume."""
    contents = {f"f{number}": bytes([number % 251]) * (number * 7) for number in range(300)}
    sizes = [len(each) for each in contents.values()]
    offsets = [0, *numpy.cumsum(sizes).tolist()]
    paths = [f"/{name}" for name in contents]
    with gofs.mount(image, writable=True, backend="cpu", descriptors=40) as volume:
        volume.write_many("/", contents)
        memory = numpy.zeros(offsets[-1], dtype=numpy.uint8)
        kept = [volume.open("/f1") for _ in range(35)]
        counts = volume._core.read_files(paths, offsets, memory.ctypes.data, 0)
        assert counts == sizes
        assert memory.tobytes() == b"".join(contents.values())
        paths[7] = "/none"
        counts = volume._core.read_files(paths, offsets, memory.ctypes.data, 0)
        assert counts == [*sizes[:7], -errno.ENOENT, *sizes[8:]]
        kept += [volume.open("/f1") for _ in range(5)]
        counts = volume._core.read_files(paths, offsets, memory.ctypes.data, 0)
        assert set(counts) == {-errno.EMFILE, -errno.ENOENT} or set(counts) == {-errno.EMFILE}
        for each in kept:
            each.close()
