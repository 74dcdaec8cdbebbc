# SPDX-License-Identifier: Apache-2.0
"""A stand-in for CuPy over numpy: what gofs uses of it. Its GPU is memory of the host."""

from __future__ import annotations

import types
from typing import Any

import numpy


class ndarray(numpy.ndarray[Any, Any]):
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        interface = self.__array_interface__
        return {**interface, "data": (interface["data"][0], False), "version": 3, "stream": 1}


class FakeCupy(types.ModuleType):
    def __init__(self) -> None:
        super().__init__("cupy")
        self.copies = 0  # of arrays of the host

    def empty(self, count: int, dtype: Any) -> ndarray:
        # Not zeros, so that what is not read is seen.
        return numpy.full(count, 0xA5, dtype=dtype).view(ndarray)

    def asarray(self, array: Any) -> ndarray:
        self.copies += 1
        return numpy.array(array).view(ndarray)
