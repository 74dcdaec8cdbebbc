# SPDX-License-Identifier: Apache-2.0
"""Arrays of numpy and tensors of torch: what they are of, and how they are made over memory.

Neither is imported before it is asked for by name.
"""

from __future__ import annotations

import array
import importlib
import importlib.util
import operator
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from gofs._buffers import bytes_to_read

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gofs._volume import Volume

# The dtypes of safetensors by the names that numpy, ml_dtypes and torch share.
_DTYPES = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "float8_e5m2": "F8_E5M2",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e8m0fnu": "F8_E8M0",
    "float8_e4m3fnuz": "F8_E4M3FNUZ",
    "float8_e5m2fnuz": "F8_E5M2FNUZ",
    "int16": "I16",
    "uint16": "U16",
    "float16": "F16",
    "bfloat16": "BF16",
    "int32": "I32",
    "uint32": "U32",
    "float32": "F32",
    "complex64": "C64",
    "float64": "F64",
    "int64": "I64",
    "uint64": "U64",
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
_FRAMEWORKS = {"np": "numpy", "numpy": "numpy", "pt": "torch", "torch": "torch"}


class Framework(Protocol):
    """What makes arrays of memory that was read."""

    stream: Any  # in whose order that memory is filled, where it is a GPU's; else None

    def staged(self) -> Framework:
        """The same, but what is read goes through memory of the host in any case."""

    def empty(self, count: int) -> Any:
        """An array of `count` bytes, with anything in them."""

    def address(self, flat: Any) -> int: ...

    def place(self, flat: Any) -> Any:
        """`flat` where its values are wanted."""

    def view(self, flat: Any, dtype: str, shape: Sequence[int]) -> Any:
        """All of `flat`, as an array of this dtype of safetensors: over the same memory, or a copy
        where that is not aligned. Raises TypeError for a dtype that the framework lacks."""


def default_framework() -> str:
    """torch's name where it is installed, else numpy's."""
    return "pt" if importlib.util.find_spec("torch") is not None else "np"


def framework_named(name: str, device: Any = "cpu", volume: Volume | None = None) -> Framework:
    """For what is read from `volume`: straight to `device` where that is the GPU that has it
    mounted. Raises ValueError for what is none, and ImportError where it is not installed."""
    if name not in _FRAMEWORKS:
        raise ValueError(f"framework={name!r}: 'numpy' or 'np', 'torch' or 'pt'")
    if _FRAMEWORKS[name] == "torch":
        torch = importlib.import_module("torch")
        if volume is not None and volume._reaches_gpu and str(device).split(":")[0] == "cuda":
            probe = torch.empty(1, dtype=torch.uint8, device=device)
            if volume._core.reaches(probe.data_ptr(), 1):
                return _TorchOnGpu(torch, device)
        return _Torch(torch, device)
    if str(device) != "cpu":
        raise ValueError(f"device={device!r}: arrays of numpy are on the CPU: use framework='pt'")
    return _Numpy(importlib.import_module("numpy"))


class _Numpy:
    stream = None

    def __init__(self, numpy: Any) -> None:
        self._numpy = numpy

    def staged(self) -> Framework:
        return self

    def empty(self, count: int) -> Any:
        return self._numpy.empty(count, dtype=self._numpy.uint8)

    def address(self, flat: Any) -> int:
        return int(flat.ctypes.data)

    def place(self, flat: Any) -> Any:
        return flat

    def view(self, flat: Any, dtype: str, shape: Sequence[int]) -> Any:
        array = flat.view(self._dtype(dtype)).reshape(shape)
        return array if array.flags.aligned else array.copy()

    def _dtype(self, dtype: str) -> Any:
        name = _NAMES.get(dtype, dtype)
        try:
            return self._numpy.dtype(name)
        except TypeError:
            pass  # it is one of those that ml_dtypes has
        try:
            return self._numpy.dtype(getattr(importlib.import_module("ml_dtypes"), name))
        except (ImportError, AttributeError):
            raise TypeError(
                f"numpy has no type for {dtype}: install ml_dtypes, or use framework='pt'"
            ) from None


class _Torch:
    stream: Any = None

    def __init__(self, torch: Any, device: Any) -> None:
        self._torch = torch
        self._device = device

    def staged(self) -> Framework:
        return self

    def empty(self, count: int) -> Any:
        return self._torch.empty(count, dtype=self._torch.uint8)

    def address(self, flat: Any) -> int:
        return int(flat.data_ptr())

    def place(self, flat: Any) -> Any:
        return flat if str(self._device) == "cpu" else flat.to(self._device)

    def view(self, flat: Any, dtype: str, shape: Sequence[int]) -> Any:
        wanted = getattr(self._torch, _NAMES.get(dtype, ""), None)
        if wanted is None:
            raise TypeError(f"this version of torch has no type for {dtype}")
        if flat.numel() == 0:
            return self._torch.empty(tuple(shape), dtype=wanted, device=flat.device)
        if flat.storage_offset() % wanted.itemsize != 0:
            flat = flat.clone()
        return flat.view(wanted).reshape(tuple(shape))


class _TorchOnGpu(_Torch):
    """Memory of a GPU that files are read to by itself: on a stream of its own, beside what the
    program computes on others."""

    def __init__(self, torch: Any, device: Any) -> None:
        super().__init__(torch, device)
        self.stream = torch.cuda.Stream(device)

    def staged(self) -> Framework:
        return _Torch(self._torch, self._device)

    def empty(self, count: int) -> Any:
        with self._torch.cuda.stream(self.stream):
            return self._torch.empty(count, dtype=self._torch.uint8, device=self._device)

    def place(self, flat: Any) -> Any:
        # What the program's stream does with it comes after the read, and before the allocator
        # gives the memory away.
        user = self._torch.cuda.current_stream(flat.device)
        user.wait_stream(self.stream)
        flat.record_stream(user)
        return flat


class Described(NamedTuple):
    """An array that is to be written."""

    dtype: str  # of safetensors
    shape: tuple[int, ...]
    data: Any


def described(name: str, data: Any) -> Described:
    """Raises TypeError for what is no array of a dtype that files can have, and ValueError for one
    whose bytes in memory are not those of a file. Nothing is copied."""
    if not hasattr(data, "dtype") or not (hasattr(data, "flags") or hasattr(data, "data_ptr")):
        raise TypeError(
            f"{name!r} is a {type(data).__name__}: give an array of numpy or a tensor of torch"
        )
    dtype = dtype_of(data)
    if dtype is None:
        raise TypeError(
            f"{name!r} is of {data.dtype}, which files cannot have: convert it to one of "
            f"{', '.join(_DTYPES)}"
        )
    if getattr(data.dtype, "byteorder", "") == ">":
        raise ValueError(
            f"{name!r} is big-endian, and files are little-endian: give "
            "its .astype(dtype.newbyteorder('<'))"
        )
    if not _is_contiguous(data):
        raise ValueError(
            f"{name!r}: its bytes do not follow each other in the order of C: give a contiguous "
            "copy (numpy.ascontiguousarray, Tensor.contiguous)"
        )
    return Described(dtype, tuple(int(size) for size in data.shape), data)


def _is_contiguous(data: Any) -> bool:
    for asked in ("is_contiguous", "is_c_contiguous"):  # of torch, of Numba
        if hasattr(data, asked):
            return bool(getattr(data, asked)())
    return bool(data.flags.c_contiguous)


def dtype_of(data: Any) -> str | None:
    """Its dtype as safetensors names it, or None where that has no name for it."""
    return _DTYPES.get(_dtype_name(data))


def _dtype_name(data: Any) -> str:
    return getattr(data.dtype, "name", None) or str(data.dtype).removeprefix("torch.")


def row_numbers(index: Any, count: int) -> Any:
    """What is to be read where an array of `count` rows is indexed by `index`: an array or a tensor
    of numbers or of truth values, or a list of numbers. Memory of 64-bit numbers.

    Raises IndexError for what is none of these, TypeError for what is no number, and leaves it to
    others to look whether there are such rows.
    """
    if hasattr(index, "dtype"):
        if len(index.shape) != 1:
            raise IndexError(f"rows are numbered by one dimension, not by {len(index.shape)}")
        index = on_host(index)
        if _dtype_name(index) == "bool":
            if len(index) != count:
                raise IndexError(f"{len(index)} truth values for {count} rows")
            index = [row for row, wanted in enumerate(index.tolist()) if wanted]
        elif _dtype_name(index) == "int64" and _is_contiguous(index):
            return bytes_to_read(index)
        else:
            index = index.tolist()
    if any(isinstance(row, bool) for row in index):
        raise IndexError("rows are numbers, or an array of truth values")
    return array.array("q", map(operator.index, index))


def is_on_host(data: Any) -> bool:
    if hasattr(data, "data_ptr"):
        return str(data.device) == "cpu"
    return not hasattr(data, "__cuda_array_interface__")


def on_host(data: Any) -> Any:
    """The array, or a copy of one that is on a GPU."""
    if is_on_host(data):
        return data
    if hasattr(data, "data_ptr"):
        return data.detach().cpu()
    for copy in ("get", "copy_to_host"):  # of CuPy, of Numba
        if hasattr(data, copy):
            return getattr(data, copy)()
    return data
