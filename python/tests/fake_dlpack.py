# SPDX-License-Identifier: Apache-2.0
"""Arrays that have DLPack alone, over memory of numpy."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy

CPU, CUDA, PINNED, OPENCL = 1, 2, 3, 4

_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_new_capsule.restype = ctypes.py_object


class _Managed(ctypes.Structure):
    """DLManagedTensor of dlpack.h."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


class FakeDLPack:
    def __init__(
        self,
        array: numpy.ndarray[Any, Any],
        device: int = CPU,
        *,
        with_strides: bool = True,
        byte_offset: int = 0,
    ) -> None:
        self.array = array
        self.device = device
        self.streams: list[int | None] = []
        self._shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        self._strides = (ctypes.c_int64 * array.ndim)(
            *(stride // array.itemsize for stride in array.strides)
        )
        self._managed = _Managed(
            data=array.__array_interface__["data"][0] - byte_offset,
            device_type=device,
            ndim=array.ndim,
            bits=array.itemsize * 8,
            lanes=1,
            shape=ctypes.addressof(self._shape),
            strides=ctypes.addressof(self._strides) if with_strides else None,
            byte_offset=byte_offset,
        )

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 0

    def __dlpack__(self, *, stream: int | None = None) -> Any:
        self.streams.append(stream)
        return _new_capsule(ctypes.addressof(self._managed), b"dltensor", None)


class FrozenDLPack(FakeDLPack):
    """As jax's."""

    def block_until_ready(self) -> None:
        self.array[:] = 7
