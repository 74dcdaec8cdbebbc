# SPDX-License-Identifier: Apache-2.0
"""Memory of a GPU, and the streams in whose order it is read and written."""

from __future__ import annotations

import sys
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from gofs._dlpack import dlpack_memory, is_contiguous, is_dlpack_for_gpu, is_dlpack_pinned
from gofs._numbers import kind_of

if TYPE_CHECKING:
    from gofs._typing import Stream, Tensor

# What CUDA calls its default stream.
_DEFAULT_STREAM = 0


class DeviceMemory(NamedTuple):
    """Where the bytes of an array or a tensor are that a GPU reaches."""

    address: int
    size: int  # bytes
    stream: int  # that its program uses at the moment: a cudaStream_t
    owner: object  # whose memory it is
    is_pinned: bool = False  # the host's, which any stream may use

    def behind(self, count: int) -> DeviceMemory:
        """What is left of it after so many bytes."""
        return self.part(count, self.size - count)

    def part(self, begin: int, size: int) -> DeviceMemory:
        """`size` of its bytes, from byte `begin` on."""
        return DeviceMemory(
            self.address + begin, size, self.stream, self.owner, self.is_pinned
        )


def device_memory(data: object, *, fills: bool) -> DeviceMemory | None:
    """The memory of `data`, where that is a GPU's; else None. `fills`: it is to be changed.

    Raises ValueError where the bytes do not follow each other, and BufferError for memory that may
    not be changed. Tensors of torch have been looked at before (_buffers.py).
    """
    if hasattr(data, "data_ptr"):
        return _memory_of_tensor(cast("Tensor", data))
    interface = getattr(data, "__cuda_array_interface__", None)
    if interface is None and not is_dlpack_for_gpu(data):
        return None
    settle(data, fills=fills)
    if interface is not None:
        return _memory_of_interface(data, interface, fills)
    address, size, owner = dlpack_memory(data)
    return DeviceMemory(address, size, _DEFAULT_STREAM, (data, owner), is_dlpack_pinned(data))


def settle(data: object, *, fills: bool) -> None:
    """Waits for an array of jax, which is computed on streams that nobody else knows. Raises
    BufferError where it is to be changed, which those are never."""
    if not hasattr(data, "block_until_ready"):
        return
    if fills:
        raise BufferError(f"{kind_of(data)} is read-only: read into another array")
    data.block_until_ready()


def _memory_of_tensor(tensor: Tensor) -> DeviceMemory | None:
    device = str(tensor.device).split(":")[0]
    # Kernels reach pinned memory as well.
    is_pinned = device == "cpu" and hasattr(tensor, "is_pinned") and tensor.is_pinned()
    if device != "cuda" and not is_pinned:
        return None
    size = tensor.numel() * tensor.element_size()
    stream = _DEFAULT_STREAM if is_pinned else _stream_of_torch(tensor)
    return DeviceMemory(tensor.data_ptr(), size, stream, tensor, is_pinned)


def _memory_of_interface(data: object, interface: dict[str, Any], fills: bool) -> DeviceMemory:
    address, read_only = interface["data"]
    if fills and read_only:
        raise BufferError("the array on the GPU is read-only: read into one that can be changed")
    shape = interface["shape"]
    # As numpy has it: the last digits of "<f4" are the bytes of an element.
    item = int(interface["typestr"][2:])
    strides = interface.get("strides")
    if strides is not None and not is_contiguous(shape, strides, item):
        raise ValueError(
            "the array's bytes do not follow each other in C's order: use a contiguous one "
            "(cupy.ascontiguousarray)"
        )
    return DeviceMemory(address, prod(shape) * item, _stream_of_interface(data, interface), data)


def _stream_of_torch(tensor: Any) -> int:
    torch = sys.modules.get("torch")  # who has a tensor of it has imported it
    if torch is None:
        return _DEFAULT_STREAM
    return int(torch.cuda.current_stream(tensor.device).cuda_stream)


def _stream_of_interface(data: object, interface: dict[str, Any]) -> int:
    named = interface.get("stream")
    if named is not None:
        return int(named)
    package = type(data).__module__.partition(".")[0]
    if package == "cupy":
        return int(sys.modules["cupy"].cuda.get_current_stream().ptr)
    return _DEFAULT_STREAM


def handle_of_stream(stream: Stream) -> int:
    """The cudaStream_t of a stream of torch, CuPy or cuda.core, or of the number that it is."""
    if isinstance(stream, int):
        return stream
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    for name in ("cuda_stream", "ptr", "handle"):
        if hasattr(stream, name):
            return int(getattr(stream, name))
    raise TypeError(f"{kind_of(stream)} is no stream of CUDA")


def common_stream(parts: list[DeviceMemory], stream: Stream | None) -> int:
    """In whose order all of them are moved: `stream`, or the one that their program uses."""
    if stream is not None:
        return handle_of_stream(stream)
    streams = {part.stream for part in parts if not part.is_pinned}
    if len(streams) > 1:
        raise ValueError("the buffers are used by several streams: say by stream= which one it is")
    return streams.pop() if streams else _DEFAULT_STREAM
