# SPDX-License-Identifier: Apache-2.0
"""Files of safetensors, beside those of the package of that name, which is the judge."""

from __future__ import annotations

import json
import pathlib
import struct
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import gofs
from fake_torch import FakeTorch
from gofs.safetensors import (
    SafetensorError,
    load_file,
    safe_open,
    save_file,
)
from watched import Watched

judge = pytest.importorskip("safetensors")
import safetensors.numpy as judge_numpy  # noqa: E402

NUMPY_TYPES = [
    *("bool", "uint8", "int8", "uint16", "int16", "float16", "uint32", "int32", "float32"),
    *("uint64", "int64", "float64", "complex64"),
]


def some_tensors() -> dict[str, Any]:
    draw = numpy.random.default_rng(5)
    tensors: dict[str, Any] = {
        f"of {name}": draw.integers(0, 2, (3, 5, 7)).astype(name) for name in NUMPY_TYPES
    }
    tensors["scalar"] = numpy.array(5, dtype=numpy.int16)
    tensors["empty"] = numpy.zeros((0, 4), dtype=numpy.float32)
    tensors["one row"] = draw.random((1, 1000))
    tensors['größer, "quoted" \\ and \n broken'] = draw.random(12345).astype(numpy.float32)
    return tensors


def assert_same(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert sorted(found) == sorted(wanted)
    for name, tensor in wanted.items():
        assert found[name].dtype == tensor.dtype, name
        assert found[name].shape == tensor.shape, name
        assert numpy.array_equal(found[name], tensor), name


def file_of(header: Any, data: bytes = b"") -> bytes:
    """A file with a header that is given as text, or as what is to be JSON."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def test_the_judge_reads_what_is_saved(volume: gofs.Volume, tmp_path: pathlib.Path) -> None:
    tensors = some_tensors()
    size = save_file(volume, tensors, "/model.safetensors", metadata={"format": "np", "é": ""})
    data = volume.read("/model.safetensors")
    assert len(data) == size
    assert_same(judge_numpy.load(data), tensors)
    (tmp_path / "file").write_bytes(data)
    with judge.safe_open(tmp_path / "file", framework="np") as file:
        assert file.metadata() == {"format": "np", "é": ""}
        with safe_open(volume, "/model.safetensors") as ours:
            assert ours.keys() == sorted(file.keys())
            assert ours.offset_keys() == file.offset_keys()
            assert ours.metadata() == file.metadata()


def test_what_the_judge_saves_is_read(volume: gofs.Volume) -> None:
    tensors = some_tensors()
    volume.write("/model.safetensors", judge_numpy.save(tensors, metadata={"a": "b"}))
    found = load_file(volume, "/model.safetensors")
    assert_same(found, tensors)
    with safe_open(volume, "/model.safetensors") as file:
        assert file.metadata() == {"a": "b"}
        for name, tensor in tensors.items():
            assert_same({"": file.get_tensor(name)}, {"": tensor})
        with pytest.raises(KeyError, match="has no tensor 'none'"):
            file.get_tensor("none")
    with pytest.raises(ValueError, match="closed file"):
        file.get_tensor("scalar")


def test_tensors_are_in_the_judges_order(volume: gofs.Volume, tmp_path: pathlib.Path) -> None:
    tensors = some_tensors()
    save_file(volume, tensors, "/ours")
    (tmp_path / "file").write_bytes(judge_numpy.save(tensors))
    with (
        judge.safe_open(tmp_path / "file", framework="np") as file,
        safe_open(volume, "/ours") as ours,
    ):
        assert ours.offset_keys() == file.offset_keys()


def test_tensors_share_one_piece_of_memory_that_lies_as_the_file(volume: gofs.Volume) -> None:
    tensors = {f"{number:02}": numpy.full(1000, number, dtype="f4") for number in range(20)}
    for contents in (judge_numpy.save(tensors), None):
        if contents is None:
            save_file(volume, tensors, "/file")
        else:
            volume.write("/file", contents)
        begin = 8 + struct.unpack("<Q", volume.read("/file", size=8))[0]
        found = load_file(volume, "/file")
        first = found["00"].ctypes.data
        assert first % 4096 == begin % 4096
        for number, array in enumerate(found.values()):
            assert array.ctypes.data == first + number * 4000
            assert array.flags.writeable
    assert begin % 4096 == 0  # as saved by us: whole blocks go to where they belong


def test_data_that_is_not_aligned_is_copied(volume: gofs.Volume) -> None:
    header = {
        "a": {"dtype": "U8", "shape": [3], "data_offsets": [0, 3]},
        "b": {"dtype": "F32", "shape": [2], "data_offsets": [3, 11]},
    }
    numbers = numpy.array([1.5, -2.5], dtype="<f4")
    volume.write("/file", file_of(header, b"abc" + numbers.tobytes()))
    torch = FakeTorch()
    found = load_file(volume, "/file")
    assert found["b"].flags.aligned
    assert_same(found, {"a": numpy.frombuffer(b"abc", "u1"), "b": numbers})
    with torch.installed():
        tensors = load_file(volume, "/file", framework="pt")
    assert numpy.array_equal(tensors["b"].numpy(), numbers)


def test_tensors_of_torch_are_saved_and_loaded(volume: gofs.Volume) -> None:
    torch = FakeTorch()
    given = {
        "brain": torch.tensor(numpy.arange(6, dtype="u2").reshape(2, 3), torch.bfloat16),
        "eight": torch.tensor(numpy.arange(6, dtype="u1"), torch.float8_e4m3fn),
        "single": torch.tensor(numpy.arange(6, dtype="f4")),
        "nothing": torch.tensor(numpy.zeros((0, 3), dtype="f4")),
    }
    before = set(sys.modules)
    save_file(volume, given, "/file")
    assert "torch" not in set(sys.modules) - before
    dtypes = {name: info["dtype"] for name, info in judge.deserialize(volume.read("/file"))}
    assert dtypes == {"brain": "BF16", "eight": "F8_E4M3", "single": "F32", "nothing": "F32"}
    with torch.installed():
        found = load_file(volume, "/file", framework="pt")
        moved = load_file(volume, "/file", framework="torch", device="fake:0")
        with safe_open(volume, "/file", framework="pt") as file:
            rows = file.get_slice("brain")[1:]
            chosen = file.get_slice("brain")[torch.tensor(numpy.array([1, -1, 0]))]
    for name, tensor in given.items():
        for copy in (found[name], moved[name]):
            assert copy.dtype is tensor.dtype
            assert copy.shape == tensor.shape
            assert copy.array.tobytes() == tensor.array.tobytes()
        assert moved[name].device == "fake:0"
    assert rows.array.tobytes() == given["brain"].array[1:].tobytes()
    assert chosen.array.tobytes() == given["brain"].array[[1, 1, 0]].tobytes()
    assert torch.moves == 1  # all tensors at once


def test_tensors_on_another_device_are_saved_through_copies(volume: gofs.Volume) -> None:
    torch = FakeTorch()
    tensor = torch.tensor(numpy.arange(8, dtype="f8"))
    save_file(volume, {"a": tensor.to("fake:0")}, "/file")
    assert numpy.array_equal(load_file(volume, "/file")["a"], tensor.numpy())


def test_many_rows_are_read_in_any_order(volume: gofs.Volume) -> None:
    draw = numpy.random.default_rng(11)
    array = draw.random((50_000, 33)).astype("f4")
    save_file(volume, {"a": array}, "/file")
    with safe_open(volume, "/file") as file:
        part = file.get_slice("a")
        for rows in (
            draw.integers(-50_000, 50_000, 20_000),
            numpy.sort(draw.integers(0, 50_000, 20_000)),
            numpy.arange(50_000),
            numpy.full(1000, 7),
        ):
            assert numpy.array_equal(part[rows], array[rows])
        volume.truncate("/file", 4096 + 40_000 * 132)
        with pytest.raises(SafetensorError, match="was cut while it was read"):
            part[[5, 49_999]]
        assert numpy.array_equal(part[[5, 39_999]], array[[5, 39_999]])


@pytest.mark.parametrize(
    "index",
    [
        0,
        -1,
        numpy.int64(3),
        slice(None),
        slice(2, 5),
        slice(5, 2),
        slice(-3, None),
        slice(None, None, 3),
        slice(None, None, -2),
        [5, 0, 5, -1],
        [],
        numpy.array([1, 4]),
        numpy.array([-1, 4], dtype=numpy.int32),
        numpy.arange(14)[::2] // 2,
        numpy.arange(7) % 3 == 0,
        numpy.array(3),
        (numpy.array([6, 5]), 1),
        (slice(1, 4), slice(None), 2),
        (3, slice(None, 2)),
        (2, 3, 1),
        ([2, 0], slice(1, 3)),
        Ellipsis,
        (Ellipsis, 0),
        (None, 2),
        (),
        (slice(None), slice(1, 3)),
        (slice(1, 6, 2), slice(None, None, -1), slice(0, 2)),
        (2, Ellipsis, slice(1, None)),
        (Ellipsis, 1, slice(None), 2),
        (slice(4, 4), 1),
        (slice(None), slice(3, 3)),
        (numpy.int32(5), numpy.array(2)),
        (3, None, slice(None, None, 2)),
        ([0, 1, 6], [4, 3, 0]),
        ([0, 1], slice(None), [2, 0]),
        (3, slice(None), [2, 0]),
        (numpy.arange(7) % 3 == 0, [1, 2, 3]),
    ],
    ids=str,
)
def test_rows_are_those_of_the_array(volume: gofs.Volume, index: Any) -> None:
    array = numpy.arange(7 * 5 * 3, dtype="i4").reshape(7, 5, 3)
    save_file(volume, {"before": numpy.zeros(1), "a": array}, "/file")
    with safe_open(volume, "/file") as file:
        part = file.get_slice("a")
        assert part.get_shape() == [7, 5, 3]
        assert part.get_dtype() == "I32"
        found = part[index]
        wanted = array[index]
        assert found.shape == wanted.shape
        assert numpy.array_equal(found, wanted)


def test_rows_that_are_not_there_are_refused(volume: gofs.Volume) -> None:
    save_file(volume, {"a": numpy.zeros((4, 2)), "scalar": numpy.array(1.5)}, "/file")
    with safe_open(volume, "/file") as file:
        part = file.get_slice("a")
        for index in (4, -5, [0, 4], True, numpy.array([0, -5])):
            with pytest.raises(IndexError, match="of a tensor that has 4"):
                part[index]
        for index, words in (
            ([True, False], "an array of truth values"),
            (numpy.zeros((2, 2), dtype=numpy.int64), "by one dimension, not by 2"),
            (numpy.array([True, False]), "2 truth values for 4 rows"),
        ):
            with pytest.raises(IndexError, match=words):
                part[index]
        with pytest.raises(TypeError):
            part["b"]
        for several in ((0, 2), (slice(None), -3), (0, 0, 0), (Ellipsis, Ellipsis)):
            with pytest.raises(IndexError):
                part[several]
        assert file.get_slice("scalar")[()] == 1.5
        with pytest.raises(IndexError):
            file.get_slice("scalar")[0]


def test_only_the_rows_that_are_asked_for_are_read(
    volume: gofs.Volume, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_file(volume, {"a": numpy.zeros((1000, 100), dtype="f4")}, "/file")
    sizes: list[int] = []
    allocate = gofs.safetensors._allocate

    def counted(framework: Any, count: int, like: int) -> Any:
        sizes.append(count)
        return allocate(framework, count, like)

    monkeypatch.setattr(gofs.safetensors, "_allocate", counted)
    with safe_open(volume, "/file") as file:
        part = file.get_slice("a")
        part[10:20]
        part[[5, 500, 7]]
        part[3]
        file.get_tensor("a")
    assert sizes == [4000, 1200, 400, 400_000]


def test_what_lies_between_long_pieces_is_not_read(
    volume: gofs.Volume, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a program reads the columns that are its own of a matrix that several have."""
    array = numpy.arange(40 * 4 * 3000, dtype="f4").reshape(40, 4, 3000)
    save_file(volume, {"before": numpy.zeros(1), "a": array}, "/file")
    calls: list[list[int]] = []

    def counted(ranges: Any) -> Any:
        calls.append([memory.nbytes for _, _, memory in ranges])
        return core.read_ranges(ranges)

    with safe_open(volume, "/file") as file:
        part = file.get_slice("a")
        core = volume._core
        monkeypatch.setattr(volume, "_core", Watched(volume, read_ranges=counted))
        for index, sizes in (
            ((slice(None), slice(None), slice(1000, 2024)), [4096] * 160),
            ((slice(2, 9, 3), slice(1, 3)), [24_000] * 3),
            ((slice(None, None, -1), 2), [12_000] * 40),
            ((5, 2, slice(7, 9)), [8]),
            ((slice(3, 5), slice(None), slice(7, 9)), [96_000]),  # too short for pieces
        ):
            calls.clear()
            assert numpy.array_equal(part[index], array[index])
            assert calls == [sizes], index
        monkeypatch.setattr("gofs._runs._CALL_RUNS_MAX", 64)
        calls.clear()
        index = (slice(None), slice(None), slice(1000, 2024))
        assert numpy.array_equal(part[index], array[index])
        assert [len(sizes) for sizes in calls] == [64, 64, 32]
        volume.truncate("/file", 4096 + 8 + 30 * 48_000)
        with pytest.raises(SafetensorError, match="was cut while it was read"):
            part[index]


# --- What is refused -----------------------------------------------------------------------------

FINE = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


def with_field(**fields: Any) -> bytes:
    return file_of({"a": {**FINE, **fields}}, bytes(8))


MALFORMED: dict[str, bytes] = {
    "nothing": b"",
    "half of a length": b"\x08\0\0\0",
    "no header": struct.pack("<Q", 0),
    "header of 100 MB and a byte": struct.pack("<Q", 100_000_001) + b"{}",
    "header of 2**64 - 1": b"\xff" * 8 + b"{}",
    "header behind the end": struct.pack("<Q", 3) + b"{}",
    "no JSON": file_of(b"{"),
    "words": file_of(b"hello"),
    "array": file_of(b"[]"),
    "number": file_of(b"5"),
    "null": file_of(b"null"),
    "two objects": file_of(b"{}{}"),
    "trailing comma": file_of(b'{"a":1,}'),
    "trailing NUL": file_of(b"{}\0"),
    "not UTF-8": file_of(b'{"\xff":1}'),
    "UTF-16": file_of("{}".encode("utf-16")),
    "byte order mark": file_of(b"\xef\xbb\xbf{}"),
    "half of a surrogate pair": file_of(json.dumps({"\ud800": FINE}).encode(), bytes(8)),
    "control character": file_of(b'{"a\x01":' + json.dumps(FINE).encode() + b"}", bytes(8)),
    "bytes without a tensor": file_of({}, b"1"),
    "a byte too few": file_of({"a": FINE}, bytes(7)),
    "a byte too many": file_of({"a": FINE}, bytes(9)),
    "hole at the beginning": file_of({"a": {**FINE, "data_offsets": [1, 9]}}, bytes(9)),
    "hole": file_of({"a": FINE, "b": {**FINE, "data_offsets": [9, 17]}}, bytes(17)),
    "overlap": file_of({"a": FINE, "b": {**FINE, "data_offsets": [7, 15]}}, bytes(15)),
    "the same twice": file_of({"a": FINE, "b": FINE}, bytes(8)),
    "ends before it begins": with_field(data_offsets=[8, 0]),
    "too few bytes": file_of({"a": {**FINE, "data_offsets": [0, 7]}}, bytes(7)),
    "no dtype": file_of({"a": {"shape": [2], "data_offsets": [0, 8]}}, bytes(8)),
    "no shape": file_of({"a": {"dtype": "F32", "data_offsets": [0, 8]}}, bytes(8)),
    "no offsets": file_of({"a": {"dtype": "F32", "shape": [2]}}, bytes(8)),
    "unknown dtype": with_field(dtype="F99"),
    "dtype in small letters": with_field(dtype="f32"),
    "dtype of a number": with_field(dtype=32),
    "shape of a number": with_field(shape=2),
    "shape of floats": with_field(shape=[2.0]),
    "shape of texts": with_field(shape=["2"]),
    "shape of booleans": with_field(dtype="F64", shape=[True]),
    "shape below 0": with_field(shape=[-2, -1]),
    "shape of minus 0": file_of(
        b'{"a":{"dtype":"F32","shape":[-0],"data_offsets":[0,0]}}',
    ),
    "shape above 64 bits": with_field(shape=[1 << 64]),
    "shape that overflows": with_field(shape=[1 << 32, 1 << 32]),
    "shape that overflows before a 0": file_of(
        {"a": {"dtype": "F32", "shape": [1 << 40, 1 << 40, 0], "data_offsets": [0, 0]}}
    ),
    "bits that overflow": file_of(
        {"a": {"dtype": "F64", "shape": [1 << 60], "data_offsets": [0, 0]}}
    ),
    "shape of null": with_field(shape=None),
    "one offset": with_field(data_offsets=[8]),
    "three offsets": with_field(data_offsets=[0, 8, 8]),
    "offsets of floats": with_field(data_offsets=[0.0, 8.0]),
    "offsets below 0": with_field(data_offsets=[-8, 0]),
    "offsets in an object": with_field(data_offsets={"0": 0, "1": 8}),
    "ends within a byte": file_of(
        {"a": {"dtype": "F4", "shape": [3], "data_offsets": [0, 1]}}, bytes(1)
    ),
    "tensor that is null": file_of({"a": None}),
    "tensor that is a text": file_of({"a": "F32"}),
    "metadata of numbers": file_of({"__metadata__": {"a": 1}}),
    "metadata that is a list": file_of({"__metadata__": []}),
    "metadata twice": file_of(b'{"__metadata__":{},"__metadata__":{}}'),
    "dtype twice": file_of(
        b'{"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}}', bytes(8)
    ),
    "not a number": with_field(other=float("nan")),
    "infinite": file_of(b'{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"x":1e999}}'),
    "deep": file_of(
        b'{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"x":'
        + b"[" * 200
        + b"]" * 200
        + b"}}"
    ),
    "deeper than Python goes": file_of(b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
}

STRICTER: dict[str, bytes] = {
    "name twice": file_of(b'{"a":%s,"a":%s}' % ((json.dumps(FINE).encode(),) * 2), bytes(8)),
    "key of metadata twice": file_of(b'{"__metadata__":{"a":"b","a":"c"}}'),
    "tensor in an array": file_of({"a": ["F32", [2], [0, 8]]}, bytes(8)),
    "dtype in an object": with_field(dtype={"F32": None}),
}

ACCEPTED: dict[str, bytes] = {
    "no tensors": file_of({}),
    "spaces around": file_of(b" \n\t\r{} \n\t\r"),
    "metadata that is null": file_of({"__metadata__": None}),
    "metadata alone": file_of({"__metadata__": {"a": "b", "": ""}}),
    "other fields": with_field(other=[1, {"x": None}], more=1.5e300),
    "no name": file_of({"": FINE}, bytes(8)),
    "names of all kinds": file_of({"ü/../\n\0 €": FINE}, bytes(8)),
    "escaped characters": file_of(json.dumps({"\U0001f600": FINE}).encode(), bytes(8)),
    "scalar": file_of({"a": {"dtype": "F64", "shape": [], "data_offsets": [0, 8]}}, bytes(8)),
    "no bytes between": file_of(
        {
            "a": FINE,
            "b": {"dtype": "I8", "shape": [0], "data_offsets": [8, 8]},
            "c": {"dtype": "F64", "shape": [5, 0], "data_offsets": [0, 0]},
            "d": {**FINE, "data_offsets": [8, 16]},
        },
        bytes(16),
    ),
    "any order": file_of({"b": {**FINE, "data_offsets": [8, 16]}, "a": FINE}, bytes(16)),
    "half bytes": file_of({"a": {"dtype": "F4", "shape": [2], "data_offsets": [0, 1]}}, b"1"),
    "longer header than one read": file_of(
        json.dumps({"a": FINE}).encode() + b" " * 100_000, bytes(8)
    ),
}


def judge_accepts(contents: bytes) -> bool:
    try:
        judge.deserialize(contents)
    except judge.SafetensorError:
        return False
    return True


def we_accept(volume: gofs.Volume, contents: bytes) -> bool:
    volume.write("/judged", contents)
    try:
        safe_open(volume, "/judged").close()
    except SafetensorError as error:
        assert str(error).startswith("/judged: ")
        return False
    return True


@pytest.mark.parametrize("kind", MALFORMED)
def test_malformed_files_are_refused_as_the_judge_does(volume: gofs.Volume, kind: str) -> None:
    assert not judge_accepts(MALFORMED[kind])
    assert not we_accept(volume, MALFORMED[kind])


@pytest.mark.parametrize("kind", STRICTER)
def test_what_is_ambiguous_is_refused_although_the_judge_takes_it(
    volume: gofs.Volume, kind: str
) -> None:
    assert judge_accepts(STRICTER[kind])
    assert not we_accept(volume, STRICTER[kind])


@pytest.mark.parametrize("kind", ACCEPTED)
def test_odd_files_are_read_as_the_judge_does(volume: gofs.Volume, kind: str) -> None:
    found = judge.deserialize(ACCEPTED[kind])
    assert we_accept(volume, ACCEPTED[kind])
    with safe_open(volume, "/judged") as file:
        assert file.keys() == sorted(name for name, _ in found)
        for name, info in found:
            part = file.get_slice(name)
            assert (part.get_dtype(), part.get_shape()) == (info["dtype"], info["shape"])


def test_mutated_headers_are_judged_as_the_judge_does(volume: gofs.Volume) -> None:
    seed, rounds = 7, 3000
    draw = numpy.random.default_rng(seed)
    names = {
        "a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
        "b": {"dtype": "U8", "shape": [8], "data_offsets": [24, 32]},
        "c": {"dtype": "BF16", "shape": [], "data_offsets": [32, 34]},
    }
    whole = file_of({"__metadata__": {"format": "pt"}, **names}, bytes(34))
    begin = whole.index(b"{")
    end = len(whole) - 34
    pieces = [b'"', b"{", b"}", b"[", b"]", b",", b":", b"0", b"9", b"-", b".", b"e", b" ", b"\\"]
    pieces += [
        b"\\ud8",
        b"null",
        b"true",
        b"1e5",
        b"\x00",
        b"\xc3",
        b"\xff",
        b'"a":',
        b"F64",
        b"24",
    ]
    accepted = 0
    for number in range(rounds):
        text = bytearray(whole[begin:end])
        for _ in range(draw.integers(1, 4)):
            place = int(draw.integers(len(text)))
            piece = pieces[draw.integers(len(pieces))]
            kind = draw.integers(3)
            if kind == 0:
                text[place : place + len(piece)] = piece
            elif kind == 1:
                text[place:place] = piece
            else:
                del text[place : place + int(draw.integers(1, 4))]
        contents = file_of(bytes(text), bytes(34))
        theirs, ours = judge_accepts(contents), we_accept(volume, contents)
        accepted += theirs
        if theirs != ours:
            assert theirs and is_ambiguous(bytes(text)), (seed, number, bytes(text))
    assert 20 < accepted < rounds


def is_ambiguous(text: bytes) -> bool:
    """Whether an object has a name twice: there we are stricter."""

    def look(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        doubles.extend(pairs[len(dict(pairs)) :])
        return dict(pairs)

    doubles: list[Any] = []
    json.loads(text, object_pairs_hook=look)
    return bool(doubles)


class LikeJax:
    """An array of a library that is not known."""

    dtype = numpy.dtype("f4")
    shape = (4,)


# --- Saving --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tensors", "metadata", "error", "words"),
    [
        ({"a": numpy.zeros((4, 4))[:, 1]}, None, ValueError, "'a'.*ascontiguousarray"),
        ({"a": numpy.zeros(4, dtype=">f4")}, None, ValueError, "big-endian.*newbyteorder"),
        ({"a": numpy.zeros(4, dtype="c16")}, None, TypeError, "complex128.*convert it to one of"),
        ({"a": numpy.zeros(4, dtype="M8[s]")}, None, TypeError, "files cannot have"),
        ({"a": [1.0, 2.0]}, None, TypeError, "'a' is a list: give an array of numpy"),
        ({"a": b"1234"}, None, TypeError, "give an array"),
        ({"a": LikeJax()}, None, TypeError, "'a' is a LikeJax: give an array of numpy"),
        ({5: numpy.zeros(4)}, None, TypeError, "names of tensors are text: 5"),
        ({"__metadata__": numpy.zeros(4)}, None, SafetensorError, "another name"),
        ({"\ud800": numpy.zeros(4)}, None, SafetensorError, "Unicode text"),
        ({}, {"a": 5}, SafetensorError, "object of texts"),
        ({}, {"a": "\udcff"}, SafetensorError, "Unicode text"),
        ({}, {"a": "b" * 100_000_000}, SafetensorError, "save the tensors in several files"),
    ],
)
def test_what_a_file_cannot_have_is_refused(
    volume: gofs.Volume, tensors: Any, metadata: Any, error: type[Exception], words: str
) -> None:
    volume.write("/file", b"old")
    with pytest.raises(error, match=words):
        save_file(volume, tensors, "/file", metadata)
    assert volume.read("/file") == b"old"
    assert volume.listdir("/") == ["file"]


def test_a_file_is_replaced_as_a_whole_or_not_at_all(volume: gofs.Volume) -> None:
    save_file(volume, {"a": numpy.ones(5)}, "/file")
    with safe_open(volume, "/file") as old:
        with pytest.raises(OSError, match="No space"):
            save_file(volume, {"a": numpy.zeros(20 << 20)}, "/file")
        assert volume.listdir("/") == ["file"]
        save_file(volume, {"a": numpy.zeros(7)}, "/file", permissions=0o600)
        assert old.get_tensor("a").sum() == 5
    assert volume.listdir("/") == ["file"]
    assert load_file(volume, "/file")["a"].shape == (7,)
    assert volume.stat("/file").st_mode & 0o777 == 0o600


def test_a_saved_file_is_durable(image: pathlib.Path) -> None:
    program = f"""
import os, numpy, gofs
from gofs.safetensors import save_file
volume = gofs.mount({str(image)!r}, writable=True, backend="cpu")
save_file(volume, {{"a": numpy.zeros(10)}}, "/file", sync=True)
save_file(volume, {{"a": numpy.ones(1000)}}, "/file", sync=True)
save_file(volume, {{"a": numpy.ones(1)}}, "/other", sync=False)
os._exit(0)
"""
    subprocess.run([sys.executable, "-c", program], timeout=60, check=True)
    with gofs.mount(image, writable=True, backend="cpu") as volume:
        assert load_file(volume, "/file")["a"].sum() == 1000
        assert not volume.exists("/other")
        volume.warnings()


def test_a_file_that_is_cut_while_it_is_open_says_so(volume: gofs.Volume) -> None:
    save_file(volume, {"a": numpy.ones(1000)}, "/file")
    with safe_open(volume, "/file") as file:
        volume.truncate("/file", 5000)
        with pytest.raises(SafetensorError, match="was cut while it was read"):
            file.get_tensor("a")


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda volume: load_file(volume, "/none"), FileNotFoundError, "/none"),
        (lambda volume: load_file(volume, "/"), IsADirectoryError, "/"),
        (lambda volume: load_file(volume, "/file", "cuda"), ValueError, "use framework='pt'"),
        (lambda volume: load_file(volume, "/file", framework="tf"), ValueError, "'torch' or 'pt'"),
        (lambda volume: load_file(volume, "/file"), TypeError, "F8_E4M3: install ml_dtypes"),
    ],
)
def test_what_cannot_be_loaded_says_why(
    volume: gofs.Volume,
    call: Callable[[gofs.Volume], Any],
    error: type[Exception],
    words: str,
) -> None:
    if "ml_dtypes" in words and "ml_dtypes" in sys.modules:
        pytest.skip("some test before has imported ml_dtypes, and numpy knows its types")
    volume.write(
        "/file",
        file_of({"a": {"dtype": "F8_E4M3", "shape": [2], "data_offsets": [0, 2]}}, b"12"),
    )
    with pytest.raises(error, match=words):
        call(volume)
    volume.unlink("/file")  # nobody has it open


def test_neither_numpy_nor_torch_is_imported_with_the_package() -> None:
    program = "import sys, gofs, gofs.safetensors; print({'numpy', 'torch'} & set(sys.modules))"
    said = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert said.stdout == "set()\n"


def test_slices_of_nothing_are_empty(volume: gofs.Volume) -> None:
    tensor = numpy.zeros((3, 2, 3), "f4")
    gofs.safetensors.save_file(volume, {"a": tensor, "none": tensor[:, :0]}, "/nothing")
    with gofs.safetensors.safe_open(volume, "/nothing") as file:
        piece = file.get_slice("a")
        for index in (numpy.s_[0:0, 1:1], numpy.s_[3:3, 0:1], numpy.s_[1:1, 0:2, 1:1]):
            assert piece[index].shape == tensor[index].shape
        assert file.get_slice("none")[0:2, 3:6].shape == (2, 0, 3)
