# SPDX-License-Identifier: Apache-2.0
"""Memory of a GPU that a volume's calls move bytes to and from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gofs._buffers import gpu_memory_to_fill, gpu_memory_to_read

if TYPE_CHECKING:
    from gofs._device import DeviceMemory
    from gofs._typing import Memory
    from gofs._volume import Volume


def gpu_memory(volume: Volume, data: Memory, *, fills: bool) -> DeviceMemory | None:
    """Where the bytes of `data` are on a GPU, and are moved there; None: on the host, or nowhere
    that can be reached."""
    if isinstance(data, (bytes, bytearray, memoryview)):
        return None
    memory = gpu_memory_to_fill(data) if fills else gpu_memory_to_read(data)
    if memory is None or volume._reaches_gpu:
        return memory
    is_moved = not memory.is_pinned and volume._core.reaches(memory.address, memory.size)
    return memory if is_moved else None


def reaches(volume: Volume, data: Memory) -> bool:
    """Whether the bytes of `data` are on a GPU, or of memory that it reaches, and can be moved from
    there and to there."""
    memory = gpu_memory_to_read(data)
    return memory is not None and volume._core.reaches(memory.address, memory.size)
