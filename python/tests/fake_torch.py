# SPDX-License-Identifier: Apache-2.0
"""A stand-in for torch over numpy: what gofs uses of it, with torch's signatures.

Real torch is too large for most machines that run the tests; test_with_real_torch.py has it.
"""

from __future__ import annotations

import contextlib
import importlib.machinery
import itertools
import sys
import types
from collections.abc import Iterator, Sequence
from typing import Any

import numpy

import fake_checkpoint
import fake_geometric


class DType:
    """As torch.float32 and the others: a name and a size."""

    def __init__(self, name: str, kind: str) -> None:
        self.kind = kind  # what numpy has its bytes as
        self.itemsize = numpy.dtype(kind).itemsize
        self._name = name

    def __str__(self) -> str:
        return f"torch.{self._name}"

    def __reduce__(self) -> str | tuple[Any, ...]:
        return (dtype_named, (self._name,))


_KINDS = {
    "bool": "?",
    "uint8": "u1",
    "int8": "i1",
    "float8_e4m3fn": "u1",
    "float8_e5m2": "u1",
    "bfloat16": "u2",
    "int16": "i2",
    "float16": "f2",
    "int32": "i4",
    "float32": "f4",
    "int64": "i8",
    "float64": "f8",
    "complex64": "c8",
    "complex128": "c16",
}
DTYPES = {name: DType(name, kind) for name, kind in _KINDS.items()}


def dtype_named(name: str) -> DType:
    return DTYPES[name]


class Size(tuple[int, ...]):
    def numel(self) -> int:
        return int(numpy.prod(self, dtype=object))


class Tensor:
    """Values of a dtype that lie in an array of numpy, on the CPU or a device of pretence."""

    def __init__(self, array: numpy.ndarray[Any, Any], dtype: DType, device: str = "cpu") -> None:
        self.array = array
        self.dtype = dtype
        self.device = device
        self.is_conjugated = False

    @property
    def shape(self) -> Size:
        return Size(self.array.shape)

    def size(self) -> Size:
        return self.shape

    def dim(self) -> int:
        return self.array.ndim

    def data_ptr(self) -> int:
        # That of "cuda" is memory of the host, which stands for that of the volume's GPU.
        on_gpu = self.device.split(":")[0] == "cuda"
        assert on_gpu or self.device == "cpu", "memory of a device was asked for"
        return int(self.array.ctypes.data)

    def numel(self) -> int:
        return self.array.size

    def element_size(self) -> int:
        return self.dtype.itemsize

    def storage_offset(self) -> int:
        root = self.array
        while isinstance(root.base, numpy.ndarray):
            root = root.base
        return (int(self.array.ctypes.data) - int(root.ctypes.data)) // self.dtype.itemsize

    def is_contiguous(self) -> bool:
        return self.array.flags.c_contiguous

    def is_conj(self) -> bool:
        return self.is_conjugated

    def is_neg(self) -> bool:
        return False

    def contiguous(self) -> Tensor:
        return self if self.is_contiguous() else self.clone()

    def clone(self) -> Tensor:
        return self._like(self.array.copy())

    def detach(self) -> Tensor:
        return self._like(self.array)

    def resolve_conj(self) -> Tensor:
        return Tensor(self.array.conj(), self.dtype, self.device) if self.is_conjugated else self

    def resolve_neg(self) -> Tensor:
        return self

    def to(self, device: str) -> Tensor:
        FakeTorch.moves += 1
        return Tensor(self.array.copy(), self.dtype, str(device))

    def cpu(self) -> Tensor:
        return self if self.device == "cpu" else self.to("cpu")

    def numpy(self) -> numpy.ndarray[Any, Any]:
        assert self.device == "cpu"
        return self.array

    def view(self, dtype: DType) -> Tensor:
        assert self.storage_offset() * self.dtype.itemsize % dtype.itemsize == 0, "as torch says"
        return Tensor(self.array.view(dtype.kind), dtype, self.device)

    def reshape(self, shape: Sequence[int]) -> Tensor:
        return self._like(self.array.reshape(tuple(shape)))

    def split(self, sizes: Sequence[int]) -> tuple[Tensor, ...]:
        assert sum(sizes) == len(self), "as torch says"
        ends = list(itertools.accumulate(sizes))
        return tuple(self[end - size : end] for size, end in zip(sizes, ends))

    def narrow(self, dim: int, start: int, length: int) -> Tensor:
        assert 0 <= start <= start + length <= self.shape[dim]
        return self[(slice(None),) * dim + (slice(start, start + length),)]

    def copy_(self, other: Tensor) -> Tensor:
        assert self.shape == other.shape
        self.array[...] = other.array
        return self

    def record_stream(self, stream: Stream) -> None:
        assert stream is Stream.current

    def tolist(self) -> Any:
        return self.array.tolist()

    def __iter__(self) -> Iterator[Tensor]:
        return (self[number] for number in range(len(self)))

    def __index__(self) -> int:
        return int(self.array.item())

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, index: Any) -> Tensor:
        if isinstance(index, Tensor):
            index = index.array
        return self._like(numpy.asarray(self.array[index]))

    def _like(self, array: numpy.ndarray[Any, Any]) -> Tensor:
        like = Tensor(array, self.dtype, self.device)
        like.is_conjugated = self.is_conjugated
        return like


class Stream:
    """As torch.cuda.Stream: a number."""

    current: Stream
    made = 0

    def __init__(self, device: object = None) -> None:
        self.cuda_stream = Stream.made
        Stream.made += 1

    def wait_stream(self, stream: Stream) -> None:
        assert isinstance(stream, Stream)


Stream.current = Stream()


class Cuda(types.ModuleType):
    """As torch.cuda, with one GPU."""

    Stream = Stream

    @staticmethod
    def device_count() -> int:
        return 1

    @staticmethod
    def current_stream(device: object = None) -> Stream:
        return Stream.current

    @staticmethod
    @contextlib.contextmanager
    def stream(stream: Stream) -> Iterator[None]:
        before, Stream.current = Stream.current, stream
        try:
            yield
        finally:
            Stream.current = before


class FakeTorch(types.ModuleType):
    """The module, which `installed()` has programs import."""

    moves = 0  # of tensors from one device to another

    def __init__(self) -> None:
        super().__init__("torch")
        FakeTorch.moves = 0
        self.__spec__ = importlib.machinery.ModuleSpec("torch", None)
        self.__dict__.update(DTYPES, Tensor=Tensor, Size=Size, cuda=Cuda("torch.cuda"))

    @staticmethod
    def empty(shape: Any, dtype: DType = DTYPES["float32"], device: str = "cpu") -> Tensor:
        # Not zeros, so that what is not read is seen.
        count = int(numpy.prod(shape, dtype=object)) * dtype.itemsize
        array = numpy.full(count, 0xA5, dtype="u1").view(dtype.kind)
        return Tensor(array.reshape(shape), dtype, str(device))

    @staticmethod
    def tensor(array: Any, dtype: DType | None = None) -> Tensor:
        array = numpy.asarray(array)
        if dtype is None:
            dtype = DTYPES[array.dtype.name]
        assert array.dtype == numpy.dtype(dtype.kind)
        return Tensor(array, dtype)

    @staticmethod
    def from_numpy(array: numpy.ndarray[Any, Any]) -> Tensor:
        return FakeTorch.tensor(array)

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """Within it, `import torch` is this, and what was imported on top of it goes with it."""

        def belongs(name: str) -> bool:
            return name.split(".")[0] in ("torch", "torch_geometric") or name.startswith(
                "gofs.torch."
            )

        before = {name: module for name, module in sys.modules.items() if belongs(name)}
        for name in before:
            del sys.modules[name]
        sys.modules["torch"] = self
        sys.modules.update(fake_checkpoint.modules())
        sys.modules.update(fake_geometric.modules())
        try:
            yield
        finally:
            for name in [name for name in sys.modules if belongs(name)]:
                del sys.modules[name]
            sys.modules.update(before)
