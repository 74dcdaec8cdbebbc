# SPDX-License-Identifier: Apache-2.0
"""Memory of a GPU that has not mounted the volume, in a process that has loaded a driver without a
GPU (src/testing/fake_cuda.cpp): a program for test_gpu_elsewhere.py.

usage: fake_gpu.py DRIVER mount|attach VOLUME
"""

from __future__ import annotations

import ctypes
import errno
import sys
import types
from typing import Any

import numpy
import pytest

import gofs
from fake_tensors import FakeTensor

DATA = bytes(i * 7 % 251 for i in range(5_000_000))
STREAM = 0x5000


class Gpu:
    def __init__(self, driver: str) -> None:
        library = ctypes.CDLL(driver)
        self._allocate = library.fake_gpu_allocate
        self._look = library.fake_gpu_look
        self._fill = library.fake_gpu_fill
        for function in (self._allocate, self._look, library.fake_gpu_captured_stream):
            function.restype = ctypes.c_void_p
        self._allocate.argtypes = [ctypes.c_uint64]
        self._look.argtypes = [ctypes.c_void_p]
        self._fill.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64]
        self.captured = int(library.fake_gpu_captured_stream())

    def tensor(self, size: int) -> GpuTensor:
        return GpuTensor(self, int(self._allocate(max(size, 1))), size)

    def bytes_of(self, tensor: GpuTensor) -> bytes:
        return ctypes.string_at(int(self._look(tensor.data_ptr())), tensor.numel())

    def fill(self, tensor: GpuTensor, byte: int) -> None:
        """Is under way until the stream is waited for."""
        self._fill(STREAM, tensor.data_ptr(), byte, tensor.numel())


class GpuTensor:
    """As torch's of bytes. Whoever touches its memory by its address dies."""

    device = "cuda:0"

    def __init__(self, gpu: Gpu, address: int, size: int) -> None:
        self._gpu, self._address, self._size = gpu, address, size

    def data_ptr(self) -> int:
        return self._address

    def numel(self) -> int:
        return self._size

    def element_size(self) -> int:
        return 1

    def is_contiguous(self) -> bool:
        return True


class PinnedTensor(FakeTensor):
    def is_pinned(self) -> bool:
        return True


def check(volume: gofs.Volume, gpu: Gpu) -> None:
    volume.write("/file", DATA)
    whole: Any = gpu.tensor(len(DATA) + 10)
    gpu.fill(whole, 1)
    assert volume.read_into("/file", whole) == len(DATA)
    assert gpu.bytes_of(whole) == DATA + bytes([1] * 10)
    gpu.fill(whole, 2)
    assert volume.write("/new", whole, sync=True) == len(DATA) + 10
    assert volume.read("/new") == bytes([2] * (len(DATA) + 10))
    part: Any = gpu.tensor(100)
    with volume.open("/file", "r+b", buffering=0) as file:
        assert file.readinto(part) == 100
        assert file.readinto(part) == 100
        assert (gpu.bytes_of(part), file.tell()) == (DATA[100:200], 200)
        gpu.fill(part, 3)
        assert file.write(part) == 100
        assert file.pwrite(part, len(DATA)) == 100
        assert file.tell() == 300
    assert volume.read("/file", offset=150, size=100) == DATA[150:200] + bytes([3] * 50)
    own = bytearray(50)
    assert volume.read_ranges([("/file", 0, part), ("/file", 10, own)]) == [100, 50]
    assert (gpu.bytes_of(part), bytes(own)) == (DATA[:100], DATA[10:60])
    volume.write_ranges([("/file", 1000, part), ("/file", 2000, own)])
    assert volume.read("/file", offset=1000, size=100) == DATA[:100]
    volume.mkdir("/d")
    volume.write_many("/d", {"a": part, "b": own})
    assert [volume.read("/d/a"), volume.read("/d/b")] == [DATA[:100], DATA[10:60]]
    begun = volume.read_into_async("/new", part)
    assert begun.result() == 100
    assert gpu.bytes_of(part) == bytes([2] * 100)
    assert volume.write_async("/later", part).result() == 100
    assert volume.read("/later") == bytes([2] * 100)
    with volume.register(part) as registered:
        assert volume.read_into("/file", part) == 100
        assert gpu.bytes_of(part) == DATA[:100]
        with pytest.raises(FileExistsError):
            volume.register(part)
        assert not registered.closed
    assert registered.closed
    volume.register(part).close()
    empty: Any = gpu.tensor(0)
    assert volume.write("/later", empty) == 0
    assert volume.read("/later") == b""
    pinned: Any = PinnedTensor(numpy.arange(11, dtype="u1"))
    assert volume.write("/later", pinned) == 11


def check_refusals(volume: gofs.Volume, gpu: Gpu) -> None:
    part: Any = gpu.tensor(100)
    with pytest.raises(OSError, match="captured") as raised:
        volume.write("/new", part, stream=gpu.captured)
    assert raised.value.errno == errno.EOPNOTSUPP
    assert volume.stat("/new").st_size == len(DATA) + 10  # it was not emptied
    other: Any = gpu.tensor(100)
    other._address = 0x1000  # no memory of this driver
    with pytest.raises(ValueError, match="does not reach.*CUDA"):
        volume.read_into("/new", other)
    with pytest.raises(ValueError, match="does not reach.*CUDA"):
        volume.write("/new", other)
    assert volume.stat("/new").st_size == len(DATA) + 10


def main(driver: str, how: str, name: str) -> None:
    gpu = Gpu(driver)
    stream = types.SimpleNamespace(cuda_stream=STREAM)
    torch = types.SimpleNamespace(cuda=types.SimpleNamespace(current_stream=lambda _: stream))
    sys.modules["torch"] = torch  # type: ignore[assignment]
    opened = (
        gofs.attach(name) if how == "attach" else gofs.mount(name, writable=True, backend="cpu")
    )
    with opened as volume:
        check(volume, gpu)
        check_refusals(volume, gpu)


if __name__ == "__main__":
    main(*sys.argv[1:])
