# SPDX-License-Identifier: Apache-2.0
"""Where the bytes of a buffer, an array or a tensor are. Nothing is ever copied."""

from __future__ import annotations

import ctypes
import re
from typing import TYPE_CHECKING, Any, cast

from gofs._device import device_memory, settle
from gofs._dlpack import dlpack_memory, is_dlpack_on_host

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from gofs._device import DeviceMemory
    from gofs._typing import Memory, Tensor


# In the format of a buffer, as struct has it: T{<i:count:}.
_FIELD_NAME = re.compile(r":[^:]*:")

# Of memory of a GPU. Calls that move bytes do not come here with what CUDA has given.
_UNREACHED = (
    "which this call does not reach (calls that read and write files reach what CUDA has given)"
)
_ARRAY_UNREACHED = (
    f"the array is in the memory of a GPU, {_UNREACHED}: use one in the host's memory"
)


def memory_to_read(data: Memory) -> Buffer:
    """The bytes of what is to be written to a file, as an object with the buffer protocol.

    It keeps `data` alive, whose memory it is. Raises ValueError for a tensor whose bytes are on a
    GPU, or do not follow each other, and TypeError for an array of Python's objects.
    """
    return _memory_of(
        data, fills=False, elsewhere="write its .cpu()", strided="write its .contiguous()"
    )


def memory_to_fill(data: Memory) -> Buffer:
    """The same of what is to be read into."""
    return _memory_of(
        data,
        fills=True,
        elsewhere="read into a tensor on the CPU, and copy that with .to()",
        strided="read into a contiguous one, and copy that with .copy_()",
    )


def bytes_to_read(data: Memory) -> memoryview:
    """memory_to_read() as bytes in one dimension, to take parts of. ValueError as well for an array
    whose bytes do not follow each other."""
    return _flat(
        memory_to_read(data), strided="write a contiguous copy (numpy.ascontiguousarray)"
    )


def bytes_to_fill(data: Memory) -> memoryview:
    """The same of what is to be read into."""
    return _flat(
        memory_to_fill(data), strided="read into a contiguous one, and copy it from there"
    )


def gpu_memory_to_read(data: Memory) -> DeviceMemory | None:
    """Where the bytes of what is to be written to a file are on a GPU; None: they are not there.

    Raises ValueError where they do not follow each other.
    """
    if hasattr(data, "data_ptr"):
        _check_values(cast("Tensor", data), strided="write its .contiguous()")
    return device_memory(data, fills=False)


def gpu_memory_to_fill(data: Memory) -> DeviceMemory | None:
    """The same of what is to be read into. Raises BufferError for what may not be changed."""
    if hasattr(data, "data_ptr"):
        _check_values(
            cast("Tensor", data), strided="read into a contiguous one, and copy that with .copy_()"
        )
    return device_memory(data, fills=True)


def _flat(memory: Buffer, *, strided: str) -> memoryview:
    is_array = hasattr(memory, "__array_interface__")
    array: Any = memory
    if not (array.flags.c_contiguous if is_array else memoryview(memory).c_contiguous):
        raise ValueError(f"the buffer's bytes do not follow each other in C's order: {strided}")
    # numpy says of some of its types that they have no buffer, but of bytes never.
    view = memoryview(array.reshape(-1).view("uint8") if is_array else memory)
    # One without bytes may have a shape that cannot be cast.
    return view.cast("B") if view.nbytes > 0 else memoryview(bytearray())


def _memory_of(data: Memory, *, fills: bool, elsewhere: str, strided: str) -> Buffer:
    if isinstance(data, (bytes, bytearray)):
        return data
    _refuse_references(data)
    if isinstance(data, memoryview):
        return data
    # Tensors of torch have no buffer protocol, and torch is not imported for them.
    if hasattr(data, "data_ptr"):
        return _memory_of_tensor(cast("Tensor", data), elsewhere, strided)
    if hasattr(data, "__cuda_array_interface__"):
        raise ValueError(_ARRAY_UNREACHED)
    if hasattr(data, "__dlpack_device__") and not _has_buffer(data):
        return _memory_of_dlpack(data, fills)
    return data


def _refuse_references(data: Any) -> None:
    """The bytes of references to objects say nothing in a file, and from there none may come."""
    if hasattr(data, "__array_interface__"):
        has_references = getattr(getattr(data, "dtype", None), "hasobject", False)
    else:
        has_references = "O" in _FIELD_NAME.sub("", _format_of(data))
    if has_references:
        raise TypeError("the buffer holds references to Python's objects: use pickle for these")


def _format_of(data: Any) -> str:
    try:
        with memoryview(data) as view:
            return view.format
    except (TypeError, ValueError, BufferError):  # no buffer, or one that says nothing of it
        return ""


def _has_buffer(data: Any) -> bool:
    if hasattr(data, "__array_interface__"):  # numpy's, also where memoryview has no type for it
        return True
    try:
        memoryview(data).release()
    except (TypeError, ValueError, BufferError):
        return False
    return True


def _memory_of_dlpack(data: Any, fills: bool) -> Buffer:
    if not is_dlpack_on_host(data):
        raise ValueError(_ARRAY_UNREACHED)
    settle(data, fills=fills)
    address, size, owner = dlpack_memory(data)
    return _memory_at(address, size, (data, owner))


def _memory_of_tensor(tensor: Tensor, elsewhere: str, strided: str) -> Buffer:
    device = str(tensor.device)
    if device != "cpu":
        raise ValueError(f"the tensor is on {device}, {_UNREACHED}: {elsewhere}")
    _check_values(tensor, strided=strided)
    return _memory_at(tensor.data_ptr(), tensor.numel() * tensor.element_size(), tensor)


def _memory_at(address: int, size: int, owner: object) -> Buffer:
    if size == 0:
        return bytearray()
    memory: Any = (ctypes.c_ubyte * size).from_address(address)
    memory.owner = owner  # which ctypes knows nothing of
    return cast("Buffer", memory)


def _check_values(tensor: Tensor, *, strided: str) -> None:
    if not tensor.is_contiguous():
        raise ValueError(f"the tensor's bytes do not follow each other: {strided}")
    for is_lazy, resolved in (("is_conj", "resolve_conj"), ("is_neg", "resolve_neg")):
        # Then the bytes in memory are not yet those of the tensor's values.
        if hasattr(tensor, is_lazy) and getattr(tensor, is_lazy)():
            raise ValueError(f"the tensor is a view of other values: use its .{resolved}()")
