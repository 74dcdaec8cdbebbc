# SPDX-License-Identifier: Apache-2.0
"""Arrays of numpy and tensors of torch: what they are of, and how they are made over memory.

Neither is imported before it is asked for by name.
"""

from __future__ import annotations

import array
import importlib
import importlib.util
import itertools
import operator
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from gofs._buffers import bytes_to_read
from gofs._numbers import kind_of

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
_FRAMEWORKS = {
    "np": "numpy",
    "numpy": "numpy",
    "pt": "torch",
    "torch": "torch",
    "cp": "cupy",
    "cupy": "cupy",
}


class Framework(Protocol):
    """What makes arrays of memory that was read."""

    stream: Any  # in whose order that memory is filled, where it is a GPU's; else None
    is_on_gpu: bool  # whether that memory is the GPU's that has mounted the volume

    def empty(self, count: int) -> Any:
        """An array of `count` bytes, with anything in them."""

    def address(self, flat: Any) -> int: ...

    def parts(self, flat: Any, rooms: list[int], counts: list[int]) -> list[Any]:
        """`flat` as many arrays: the i-th has `rooms[i]` bytes behind the one before, and is of the
        first `counts[i]` of them."""

    def place(self, flat: Any) -> Any:
        """`flat` where its values are wanted."""

    def view(self, flat: Any, dtype: str, shape: Sequence[int]) -> Any:
        """All of `flat`, as an array of this dtype of safetensors: over the same memory, or a copy
        where that is not aligned. Raises TypeError for a dtype that the framework lacks."""

    def typed(self, flat: Any, dtype: Any) -> Any:
        """`flat` as an array of a dtype of the framework, or of its name. ValueError or
        RuntimeError where it has no whole number of them."""


def default_framework(device: Any = "cpu") -> str:
    """torch's name where it is installed, else numpy's, which has arrays on the CPU alone: then
    raises ImportError for another device."""
    if importlib.util.find_spec("torch") is not None:
        return "pt"
    if str(device) != "cpu":
        raise ImportError(
            f"device={device!r} is for tensors of torch: pip install torch, or name another "
            "framework, as framework='cp'"
        )
    return "np"


def framework_named(name: str, device: Any = "cpu", volume: Volume | None = None) -> Framework:
    """For what is read from `volume`: straight to `device` where that is the GPU that has it
    mounted. Raises ValueError for what is none, and ImportError where it is not installed."""
    found = _FRAMEWORKS.get(name)
    if found == "torch":
        torch = importlib.import_module("torch")
        is_cuda = str(device).split(":")[0] == "cuda"
        if volume is not None and is_cuda and _reaches_torch(volume, torch, device):
            return _TorchOnGpu(torch, device)
        return _Torch(torch, device)
    if found == "cupy":
        numpy, cupy = importlib.import_module("numpy"), importlib.import_module("cupy")
        if str(device) not in ("cpu", "cuda"):
            raise ValueError(f"device={device!r}: arrays of CuPy are on its current GPU")
        return _Cupy(numpy, cupy, volume)
    if found is None:
        raise ValueError(
            f"framework={name!r}: 'numpy' or 'np', 'torch' or 'pt', 'cupy' or 'cp'"
        )
    if str(device) != "cpu":
        raise ValueError(f"device={device!r}: arrays of numpy are on the CPU: use framework='pt'")
    return _Numpy(importlib.import_module("numpy"))


def framework_beside(volume: Volume, name: str) -> Framework:
    """The same for arrays on the GPU that has mounted the volume, where one has and the framework
    uses it; else on the host, and of CuPy on its current GPU."""
    if _FRAMEWORKS.get(name) == "torch" and volume._reaches_gpu:
        torch = importlib.import_module("torch")
        for number in range(torch.cuda.device_count()):
            if _reaches_torch(volume, torch, f"cuda:{number}"):
                return _TorchOnGpu(torch, f"cuda:{number}")
    return framework_named(name, volume=volume)


def _reaches_torch(volume: Volume, torch: Any, device: Any) -> bool:
    if not volume._reaches_gpu:
        return False
    probe = torch.empty(1, dtype=torch.uint8, device=device)
    return bool(volume._core.reaches(probe.data_ptr(), 1))


class _Numpy:
    stream = None
    is_on_gpu = False

    def __init__(self, numpy: Any) -> None:
        self._numpy = numpy

    def empty(self, count: int) -> Any:
        return self._numpy.empty(count, dtype=self._numpy.uint8)

    def address(self, flat: Any) -> int:
        return int(flat.ctypes.data)

    def parts(self, flat: Any, rooms: list[int], counts: list[int]) -> list[Any]:
        begins = itertools.accumulate(rooms, initial=0)
        return [flat[begin : begin + count] for begin, count in zip(begins, counts)]

    def place(self, flat: Any) -> Any:
        return flat

    def view(self, flat: Any, dtype: str, shape: Sequence[int]) -> Any:
        array = flat.view(self._dtype(dtype)).reshape(shape)
        return array if array.flags.aligned else array.copy()

    def typed(self, flat: Any, dtype: Any) -> Any:
        return flat.view(self._dtype(dtype))

    def _dtype(self, dtype: Any) -> Any:
        name = _NAMES.get(dtype, dtype) if isinstance(dtype, str) else dtype
        try:
            found = self._numpy.dtype(name)
        except TypeError:
            pass  # it is one of those that ml_dtypes has
        else:
            if found.hasobject:
                raise TypeError(f"dtype: {dtype!r} is of references, which files cannot have")
            return found
        try:
            return self._numpy.dtype(getattr(importlib.import_module("ml_dtypes"), name))
        except (ImportError, AttributeError, TypeError):
            raise TypeError(
                f"numpy has no type for {dtype}: install ml_dtypes, or take tensors of torch"
            ) from None


class _Cupy(_Numpy):
    """Arrays of CuPy on its current GPU: filled where they lie where that has mounted the volume,
    else through memory of the host."""

    def __init__(self, numpy: Any, cupy: Any, volume: Volume | None) -> None:
        super().__init__(numpy)
        self._cupy = cupy
        self.is_on_gpu = False
        if volume is not None and volume._reaches_gpu:
            probe = cupy.empty(1, dtype=numpy.uint8)
            self.is_on_gpu = bool(volume._core.reaches(self._address_on_gpu(probe), 1))

    def empty(self, count: int) -> Any:
        maker = self._cupy if self.is_on_gpu else self._numpy
        return maker.empty(count, dtype=self._numpy.uint8)

    def address(self, flat: Any) -> int:
        return self._address_on_gpu(flat) if self.is_on_gpu else super().address(flat)

    def place(self, flat: Any) -> Any:
        return flat if self.is_on_gpu else self._cupy.asarray(flat)

    def view(self, flat: Any, dtype: str, shape: Sequence[int]) -> Any:
        wanted = self._dtype(dtype)
        if flat.size > 0 and self._address_on_gpu(flat) % wanted.itemsize != 0:
            flat = flat.copy()
        return flat.view(wanted).reshape(shape)

    def _address_on_gpu(self, flat: Any) -> int:
        return int(flat.__cuda_array_interface__["data"][0])


class _Torch:
    stream: Any = None
    is_on_gpu = False

    def __init__(self, torch: Any, device: Any) -> None:
        self._torch = torch
        self._device = device

    def empty(self, count: int) -> Any:
        return self._torch.empty(count, dtype=self._torch.uint8)

    def address(self, flat: Any) -> int:
        return int(flat.data_ptr())

    def parts(self, flat: Any, rooms: list[int], counts: list[int]) -> list[Any]:
        # By one call: to take a slice of a tensor takes as long as to read a small file.
        if rooms == counts:
            return list(flat.split(counts)) if counts else []
        gaps = (room - count for room, count in zip(rooms, counts))
        sizes = list(itertools.chain.from_iterable(zip(counts, gaps)))
        return list(flat.split(sizes)[::2])

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

    def typed(self, flat: Any, dtype: Any) -> Any:
        wanted = getattr(self._torch, dtype, None) if isinstance(dtype, str) else dtype
        if wanted is None:
            raise TypeError(f"this version of torch has no type for {dtype}")
        return flat.view(wanted)


class _TorchOnGpu(_Torch):
    """Memory of a GPU that files are read to by itself: on a stream of its own, beside what the
    program computes on others."""

    is_on_gpu = True

    def __init__(self, torch: Any, device: Any) -> None:
        super().__init__(torch, device)
        self.stream = torch.cuda.Stream(device)

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
            f"{name!r} is {kind_of(data)}: give an array of numpy or a tensor of torch"
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


def rows_within(rows: Any, count: int) -> array.array[int]:
    """What row_numbers() gives, those below 0 counted from the end. IndexError where there are no
    such rows."""
    numbers = array.array("q", bytes(rows))
    for i, row in enumerate(numbers):
        if not -count <= row < count:
            raise IndexError(f"row {row} of a tensor that has {count}")
        if row < 0:
            numbers[i] = row + count
    return numbers


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
