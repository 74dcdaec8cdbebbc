# SPDX-License-Identifier: Apache-2.0
"""Memory of a GPU that a volume's calls move bytes to and from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gofs._buffers import gpu_memory_to_fill, gpu_memory_to_read
from gofs._device import DeviceMemory

if TYPE_CHECKING:
    from gofs._typing import Memory
    from gofs._volume import Volume


def gpu_memory(
    volume: Volume, data: Memory | DeviceMemory, *, fills: bool
) -> DeviceMemory | None:
    """Where the bytes of `data` are on a GPU, and are moved there; None: on the host, or nowhere
    that can be reached. That of another GPU than the volume's is refused when it is moved."""
    if isinstance(data, DeviceMemory):
        return data
    if isinstance(data, (bytes, bytearray, memoryview)):
        return None
    memory = gpu_memory_to_fill(data) if fills else gpu_memory_to_read(data)
    if memory is None or volume._reaches_gpu:
        return memory
    is_moved = not memory.is_pinned and volume._core.reaches(memory.address, memory.size)
    return memory if is_moved else None


def reached_memory(volume: Volume, data: Memory) -> DeviceMemory | None:
    """The same, but None for that of another GPU, too: asks the volume's, by a launch. Calls that
    are given the answer instead of `data` do not ask again."""
    memory = gpu_memory(volume, data, fills=False)
    if memory is None or memory.is_pinned or not volume._reaches_gpu:
        return memory
    return memory if volume._core.reaches(memory.address, memory.size) else None
