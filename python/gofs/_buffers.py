# SPDX-License-Identifier: Apache-2.0
"""Where the bytes of a buffer, an array or a tensor are. Nothing is ever copied."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from gofs._typing import Memory, Tensor


def memory_to_read(data: Memory) -> Buffer:
    """The bytes of what is to be written to a file, as an object with the buffer protocol.

    It refers to memory of `data`, which has to live as long. Raises ValueError for a tensor whose
    bytes are on a GPU, or do not follow each other.
    """
    return _memory_of(data, elsewhere="write its .cpu()", strided="write its .contiguous()")


def memory_to_fill(data: Memory) -> Buffer:
    """The same of what is to be read into."""
    return _memory_of(
        data,
        elsewhere="read into a tensor on the CPU, and copy that with .to()",
        strided="read into a contiguous one, and copy that with .copy_()",
    )


def _memory_of(data: Memory, *, elsewhere: str, strided: str) -> Buffer:
    if isinstance(data, (bytes, bytearray, memoryview)):
        return data
    # Tensors of torch have no buffer protocol, and torch is not imported for them.
    if hasattr(data, "data_ptr"):
        return _memory_of_tensor(cast("Tensor", data), elsewhere, strided)
    if hasattr(data, "__cuda_array_interface__"):
        raise ValueError(
            "the array is in the memory of a GPU, which calls of the host do not reach: "
            "use one in the host's memory"
        )
    return data


def _memory_of_tensor(tensor: Tensor, elsewhere: str, strided: str) -> Buffer:
    device = str(tensor.device)
    if device != "cpu":
        raise ValueError(
            f"the tensor is on {device}, which calls of the host do not reach: {elsewhere}"
        )
    if not tensor.is_contiguous():
        raise ValueError(f"the tensor's bytes do not follow each other: {strided}")
    for is_lazy, resolved in (("is_conj", "resolve_conj"), ("is_neg", "resolve_neg")):
        # Then the bytes in memory are not yet those of the tensor's values.
        if hasattr(tensor, is_lazy) and getattr(tensor, is_lazy)():
            raise ValueError(f"the tensor is a view of other values: use its .{resolved}()")
    size = tensor.numel() * tensor.element_size()
    if size == 0:
        return bytearray()
    return (ctypes.c_ubyte * size).from_address(tensor.data_ptr())
