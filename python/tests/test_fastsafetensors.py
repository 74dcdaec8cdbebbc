# SPDX-License-Identifier: Apache-2.0
"""Files of a volume that fastsafetensors loads. What it asks of torch is done by numpy here, but
where torch is installed."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from typing import Any

import numpy
import pytest

import gofs
from gofs.safetensors import SafetensorError, save_file
from watched import Watched

pytest.importorskip("fastsafetensors")
import fastsafetensors.loader  # noqa: E402
from fastsafetensors import cpp  # noqa: E402
from fastsafetensors.allocation import live_allocation_count  # noqa: E402
from fastsafetensors.frameworks import FrameworkOpBase, ProcessGroupBase, TensorBase  # noqa: E402
from fastsafetensors.st_types import DTYPE_SIZES, Device, DeviceType  # noqa: E402

import gofs.fastsafetensors  # noqa: E402

ARRAYS = {
    "a": numpy.arange(6000.0).reshape(60, 100),
    "b": numpy.arange(5, dtype="u1"),
    "c": numpy.arange(700_000, dtype="i4"),
    "d": numpy.zeros((0, 3), dtype="f4"),
    "e": numpy.array(7, dtype="i2"),
}


class Capsule:
    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


class Array(TensorBase):
    """An array of numpy as fastsafetensors has tensors."""

    def __init__(self, device: Device, dtype: Any, array: Any) -> None:
        super().__init__(device, dtype)
        self.array = array

    def get_raw(self) -> Any:
        return self.array

    def clone(self) -> Array:
        return Array(self.device, self.dtype, self.array.copy())

    def detach(self) -> Array:
        return self

    def to(self, device: Any = None, dtype: Any = None) -> Array:
        return self


class OneProcess(ProcessGroupBase):  # type: ignore[type-arg]
    def size(self) -> int:
        return 1

    def rank(self) -> int:
        return 0


class Numpy(FrameworkOpBase):  # type: ignore[type-arg]
    """What of a framework it takes to load files. Memory of "cuda:0" is the host's."""

    def __init__(self) -> None:
        self.buffers = 0

    def get_name(self) -> str:
        return "numpy"

    def get_device(self, device: str, pg: Any) -> Device:
        return Device.from_str(device)

    def set_device(self, device: Device) -> None: ...

    def get_process_group(self, pg: Any) -> OneProcess:
        return OneProcess()

    def get_device_ptr_align(self) -> int:
        return 16

    def alloc_tensor_memory(self, length: int, dev: Device) -> Any:
        self.buffers += 1
        return cpp.gds_device_buffer(cpp.cpu_malloc(length), length, False)

    def free_tensor_memory(self, gbuf: Any, dev: Device) -> None:
        self.buffers -= 1
        cpp.cpu_free(gbuf.get_base_address())

    def get_dtype_size(self, dtype: Any) -> float:
        return float(DTYPE_SIZES[dtype])

    def as_workaround_dtype(self, dtype: Any) -> Any:
        return dtype

    def get_empty_tensor(self, shape: list[int], dtype: Any, device: Device) -> Array:
        return Array(device, dtype, numpy.empty(shape))

    def from_dlpack(self, dl_tensor: Any, device: Device, dtype: Any) -> Array:
        return Array(device, dtype, numpy.from_dlpack(Capsule(dl_tensor)))


# What is not asked for here.
for of in (Array, OneProcess, Numpy):
    of.__abstractmethods__ = frozenset()


@pytest.fixture
def framework(monkeypatch: pytest.MonkeyPatch) -> Numpy:
    framework = Numpy()
    for module in (fastsafetensors.loader, gofs.fastsafetensors):
        monkeypatch.setattr(module, "get_framework_op", lambda name: framework)
    # Its tensors on a GPU of pretence are to be arrays of numpy.
    monkeypatch.setattr("fastsafetensors.dlpack._GPU_DEVICE_TYPE", 1)
    return framework


def loader(volume: gofs.Volume, device: str = "cpu") -> Any:
    return gofs.fastsafetensors.GofsFileLoader(volume, device=device, set_numa=False)


def assert_same(found: Any, wanted: dict[str, Any]) -> None:
    for name, array in wanted.items():
        tensor = numpy.asarray(found.get_tensor(name))
        assert tensor.shape == array.shape
        assert tensor.tobytes() == array.tobytes(), name


def test_files_are_loaded(volume: gofs.Volume, framework: Numpy) -> None:
    save_file(volume, ARRAYS, "/one.safetensors", {"who": "me"})
    save_file(volume, {"f": numpy.arange(9)}, "/two.safetensors")
    of = loader(volume)
    of.add_filenames({0: ["/one.safetensors", "/two.safetensors"]})
    assert sorted(of.get_keys()) == [*ARRAYS, "f"]
    assert of.get_shape("a") == [60, 100]
    tensors = of.copy_files_to_device()
    assert_same(tensors, {**ARRAYS, "f": numpy.arange(9)})
    kept = tensors.get_tensor("c")
    tensors.close()
    of.close()
    assert numpy.array_equal(kept, ARRAYS["c"])
    assert framework.buffers == 1  # kept's
    del kept, tensors
    assert framework.buffers == live_allocation_count() == 0


def test_only_what_is_wanted_is_read(
    volume: gofs.Volume, framework: Numpy, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_file(volume, ARRAYS, "/file")
    sizes: list[int] = []
    core = volume._core

    def read_ranges(ranges: Any) -> Any:
        sizes.extend(memoryview(memory).nbytes for _, _, memory in ranges)
        return core.read_ranges(ranges)

    of = loader(volume)
    of.add_filenames({0: ["/file"]})
    of.set_tensor_filter(lambda name: name in ("a", "b"))
    monkeypatch.setattr(volume, "_core", Watched(volume, read_ranges=read_ranges))
    tensors = of.copy_files_to_device()
    assert_same(tensors, {name: ARRAYS[name] for name in ("a", "b")})
    # What is between them: c is.
    assert sizes == [48_000, 5]
    tensors.close()


def test_the_gpu_of_the_volume_reads_to_its_memory(
    volume: gofs.Volume, framework: Numpy, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_file(volume, ARRAYS, "/file")
    calls: list[int] = []
    core = volume._core

    def move_ranges(ranges: Any, writes: bool, stream: int) -> Any:
        calls.append(len(ranges))
        return core.move_ranges(ranges, writes, stream)

    monkeypatch.setattr(volume, "_reaches_gpu", True)
    watched = Watched(volume, move_ranges=move_ranges, reaches=lambda *_: True)
    monkeypatch.setattr(volume, "_core", watched)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    of = loader(volume, "cuda:0")
    assert of.device == Device(DeviceType.CUDA, 0)
    of.add_filenames({0: ["/file"]})
    tensors = of.copy_files_to_device()
    assert calls == [1]
    assert_same(tensors, ARRAYS)
    tensors.close()


def test_what_cannot_be_loaded_says_why_and_frees_the_memory(
    volume: gofs.Volume, framework: Numpy
) -> None:
    save_file(volume, ARRAYS, "/file")
    of = loader(volume)
    with pytest.raises(FileNotFoundError, match="/none"):
        of.add_filenames({0: ["/none"]})
    for contents, words in (
        (b"", "/wrong: the file has 0 bytes"),
        (b"\xff" * 100, "/wrong: the header would have"),
        (b"\x02" + bytes(7) + b"\xff\xff", "/wrong: the header is no text"),
    ):
        volume.write("/wrong", contents)
        with pytest.raises(SafetensorError, match=words):
            of.add_filenames({0: ["/wrong"]})
    assert of.get_keys() == []
    of.add_filenames({0: ["/file"]})
    volume.truncate("/file", 5000)
    with pytest.raises(SafetensorError, match="'/file' was cut while it was read"):
        of.copy_files_to_device()
    volume.unlink("/file")
    with pytest.raises(FileNotFoundError, match="/file"):
        of.copy_files_to_device()
    assert framework.buffers == 0


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no torch")
def test_tensors_of_torch_are_loaded(volume: gofs.Volume) -> None:
    save_file(volume, ARRAYS, "/file")
    of = loader(volume)
    of.add_filenames({0: ["/file"]})
    tensors = of.copy_files_to_device()
    assert_same(tensors, ARRAYS)
    tensors.close()


def test_where_it_is_missing_that_is_said() -> None:
    program = "import sys; sys.modules['fastsafetensors'] = None; import gofs.fastsafetensors"
    said = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert "ImportError: gofs.fastsafetensors needs fastsafetensors 0.5 or later" in said.stderr
