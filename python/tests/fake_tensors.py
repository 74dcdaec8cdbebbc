# SPDX-License-Identifier: Apache-2.0
"""Tensors with what gofs uses of torch.Tensor, over memory of numpy."""

from __future__ import annotations

from typing import Any

import numpy


class FakeTensor:
    """As torch's: without the buffer protocol, and numpy does not know its type."""

    def __init__(
        self,
        array: numpy.ndarray[Any, Any],
        *,
        device: str = "cpu",
        conjugated: bool = False,
        negated: bool = False,
    ) -> None:
        self.array = array
        self.device = device
        self._conjugated = conjugated
        self._negated = negated

    def data_ptr(self) -> int:
        return int(self.array.__array_interface__["data"][0]) if self.device == "cpu" else 0

    def numel(self) -> int:
        return self.array.size

    def element_size(self) -> int:
        return self.array.itemsize

    def is_contiguous(self) -> bool:
        return self.array.flags.c_contiguous

    def is_conj(self) -> bool:
        return self._conjugated

    def is_neg(self) -> bool:
        return self._negated


class FakeDeviceArray:
    """As CuPy's and Numba's."""

    __cuda_array_interface__ = {"shape": (4,), "typestr": "<f4", "data": (16, False), "version": 3}
