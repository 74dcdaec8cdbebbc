# SPDX-License-Identifier: Apache-2.0
"""Arrays that show their memory by DLPack alone, such as those of jax of the types of ml_dtypes."""

from __future__ import annotations

import ctypes
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

# Of DLDeviceType.
_CPU = 1
_CUDA = 2
_CUDA_HOST = 3  # pinned
_CUDA_MANAGED = 13

# What DLPack calls CUDA's default stream.
_LEGACY_STREAM = 1


class DLPackMemory(NamedTuple):
    """Where the bytes of an array are."""

    address: int
    size: int  # bytes
    owner: object  # keeps the memory


class _Device(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int32), ("id", ctypes.c_int32))


class _DataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Tensor(ctypes.Structure):
    """DLTensor, which a DLManagedTensor begins with."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]
_pointer_of.restype = ctypes.c_void_p


def is_dlpack_on_host(data: Any) -> bool:
    """Whether it is an array of DLPack whose memory is the host's, pinned or not."""
    return _kind_of(data) in (_CPU, _CUDA_HOST)


def is_dlpack_pinned(data: Any) -> bool:
    return _kind_of(data) == _CUDA_HOST


def is_dlpack_for_gpu(data: Any) -> bool:
    """Whether it is an array of DLPack whose memory a GPU of CUDA reaches."""
    return _kind_of(data) in (_CUDA, _CUDA_HOST, _CUDA_MANAGED)


def _kind_of(data: Any) -> int | None:
    return int(data.__dlpack_device__()[0]) if hasattr(data, "__dlpack_device__") else None


def dlpack_memory(data: Any) -> DLPackMemory:
    """Of an array of DLPack. What computes it is waited for, by CUDA's default stream where it is
    on a GPU. Raises ValueError where its bytes do not follow each other."""
    on_gpu = _kind_of(data) in (_CUDA, _CUDA_MANAGED)
    capsule = data.__dlpack__(stream=_LEGACY_STREAM) if on_gpu else data.__dlpack__()
    # It is not taken over: as long as the capsule lives, so does the memory.
    tensor = _Tensor.from_address(_pointer_of(capsule, b"dltensor"))
    shape = tensor.shape[: tensor.ndim]
    if tensor.strides and not is_contiguous(shape, tensor.strides[: tensor.ndim]):
        raise ValueError(
            "the array's bytes do not follow each other in C's order: use a contiguous copy"
        )
    size = prod(shape) * tensor.dtype.bits * tensor.dtype.lanes // 8
    address = (tensor.data or 0) + tensor.byte_offset
    return DLPackMemory(address, size, capsule)


def is_contiguous(shape: Sequence[int], strides: Sequence[int], item: int = 1) -> bool:
    """Whether an array's elements follow each other in C's order. `strides` are in what an element
    has `item` of."""
    step = item
    for extent, stride in zip(reversed(shape), reversed(strides)):
        if extent != 1 and stride != step:
            return 0 in shape
        step *= extent
    return True
