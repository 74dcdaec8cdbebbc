# SPDX-License-Identifier: Apache-2.0
"""What is read as new arrays: of a file, of many files, of those of a directory."""

from __future__ import annotations

import sys
from typing import Any

import numpy
import pytest

import fake_cupy
import gofs
from fake_torch import DTYPES, FakeTorch, Tensor
from gofs.safetensors import load_file, save_file
from watched import Watched

NUMBERS = numpy.arange(1000, dtype="<i4")
FILES = {"a": b"12345", "b": b"", "c": bytes(range(200))}


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> fake_cupy.FakeCupy:
    module = fake_cupy.FakeCupy()
    monkeypatch.setitem(sys.modules, "cupy", module)
    return module


def test_a_file_is_read_as_an_array_of_numpy(volume: gofs.Volume) -> None:
    volume.write("/file", NUMBERS)
    for dtype in ("int32", "<i4", numpy.int32, numpy.dtype("i4")):
        array = volume.read("/file", dtype=dtype)
        assert type(array) is numpy.ndarray
        assert array.dtype == numpy.int32
        assert numpy.array_equal(array, NUMBERS)
    part = volume.read("/file", offset=8, size=12, dtype="int32", like=numpy)
    assert part.tolist() == [2, 3, 4]
    assert volume.read("/file", like="np").tobytes() == volume.read("/file") == NUMBERS.tobytes()
    assert volume.read("/file", dtype="M8[s]", size=16).dtype == numpy.dtype("M8[s]")
    assert volume.read("/file", offset=3990, size=100, like=numpy).nbytes == 10
    assert volume.read("/file", offset=5000, dtype=float).shape == (0,)
    part[:] = 0  # it is the program's own


def test_what_cannot_be_an_array_is_refused(volume: gofs.Volume) -> None:
    volume.write("/file", NUMBERS)
    with pytest.raises(ValueError, match="'/file': 7 bytes as int32: "):
        volume.read("/file", size=7, dtype="int32")
    with pytest.raises(ValueError, match="framework='jax'"):
        volume.read("/file", like="jax")
    with pytest.raises(TypeError, match="no type for nothing"):
        volume.read("/file", dtype="nothing")
    with pytest.raises(FileNotFoundError):
        volume.read("/none", like="numpy")
    for wrong in ({"offset": -1}, {"size": -1}):
        with pytest.raises(OSError, match="Invalid argument"):
            volume.read("/file", like="numpy", **wrong)


def test_a_file_is_read_as_a_tensor(volume: gofs.Volume) -> None:
    volume.write("/file", NUMBERS)
    torch = FakeTorch()
    with torch.installed():
        for options in ({"dtype": DTYPES["int32"]}, {"dtype": "int32", "like": torch}):
            tensor = volume.read("/file", **options)
            assert isinstance(tensor, Tensor)
            assert (tensor.dtype, tensor.device) == (DTYPES["int32"], "cpu")
            assert numpy.array_equal(tensor.numpy(), NUMBERS)
        assert volume.read("/file", like="torch", size=3).dtype is DTYPES["uint8"]
        with pytest.raises(TypeError, match="no type for int33"):
            volume.read("/file", dtype="int33", like="torch")


@pytest.mark.parametrize("on_gpu", [True, False])
def test_files_are_read_as_arrays_of_cupy(
    volume: gofs.Volume,
    cupy: fake_cupy.FakeCupy,
    monkeypatch: pytest.MonkeyPatch,
    on_gpu: bool,
) -> None:
    monkeypatch.setattr(volume, "_reaches_gpu", on_gpu)
    monkeypatch.setattr(volume, "_core", Watched(volume, reaches=lambda *_: True))
    volume.write("/file", NUMBERS)
    array = volume.read("/file", dtype="int32", like=cupy)
    assert type(array) is fake_cupy.ndarray
    assert numpy.array_equal(array, NUMBERS)
    volume.mkdir("/d")
    volume.write_many("/d", FILES)
    data, offsets, names = volume.read_dir("/d", packed=True, framework="cp", device="cuda")
    assert type(data) is fake_cupy.ndarray
    assert (data.tobytes(), offsets) == (b"".join(FILES.values()), [0, 5, 5, 205])
    assert names == list(FILES)
    arrays = volume.read_many([f"/d/{name}" for name in FILES], framework="cupy")
    assert [one.tobytes() for one in arrays] == list(FILES.values())
    tensors = {"x": numpy.arange(3, dtype="u1"), "y": NUMBERS}
    save_file(volume, tensors, "/model")
    loaded = load_file(volume, "/model", framework="cp")
    assert all(type(each) is fake_cupy.ndarray for each in loaded.values())
    assert {name: each.tobytes() for name, each in loaded.items()} == {
        name: each.tobytes() for name, each in tensors.items()
    }
    assert cupy.copies == (0 if on_gpu else 4)
    with pytest.raises(ValueError, match="its current GPU"):
        volume.read_dir("/d", packed=True, framework="cp", device="cuda:1")


def test_many_files_are_read_into_one_new_array(
    volume: gofs.Volume, monkeypatch: pytest.MonkeyPatch
) -> None:
    volume.mkdir("/d")
    volume.write_many("/d", FILES)
    paths = [f"/d/{name}" for name in FILES]
    for packed in (
        volume.read_many(paths, packed=True, framework="np"),
        volume.read_dir("/d", packed=True, framework="numpy", device="cpu"),
    ):
        assert type(packed.data) is numpy.ndarray
        assert packed.data.tobytes() == b"".join(FILES.values())
        assert packed.offsets == [0, 5, 5, 205]
    torch = FakeTorch()
    with torch.installed():
        packed = volume.read_dir("/d", packed=True, framework="pt", device="fake:0")
        assert packed.data.device == "fake:0"
        assert (torch.moves, packed.data.array.tobytes()) == (1, b"".join(FILES.values()))
    for arrays in (
        volume.read_many(paths, device="cpu", framework="np"),
        list(volume.read_dir("/d", framework="np").values()),
    ):
        assert [type(each) for each in arrays] == [numpy.ndarray] * 3
        assert [each.tobytes() for each in arrays] == list(FILES.values())
    sizes: Any = [5, 0, 300]
    monkeypatch.setattr(volume, "_core", WithSizes(volume._core, sizes))
    with pytest.raises(OSError, match="shorter while it was read") as cut:
        volume.read_many(paths, packed=True, framework="np")
    assert cut.value.filename == "/d/c"


class WithSizes:
    """A volume of the binding whose files were larger a moment ago."""

    def __init__(self, core: Any, sizes: list[int]) -> None:
        self._real = core
        self._sizes = sizes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def sizes(self, paths: Any) -> list[int]:
        return self._sizes
