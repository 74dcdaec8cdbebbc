# SPDX-License-Identifier: Apache-2.0
"""Memory of the program that a volume's SSD or server reaches by itself."""

from __future__ import annotations

import ctypes
import weakref
from typing import TYPE_CHECKING

from gofs._buffers import bytes_to_fill
from gofs._closing import Closing
from gofs._gpu_memory import gpu_memory

if TYPE_CHECKING:
    from gofs._typing import Memory
    from gofs._volume import Volume


class Registration(Closing):
    """Of Volume.register(): until close(), the end of a `with` block, or that of its volume.

    It keeps the buffer.
    """

    def __init__(self, volume: Volume, buffer: Memory) -> None:
        memory = gpu_memory(volume, buffer, fills=True)
        if memory is None:
            view = bytes_to_fill(buffer)
            if view.readonly:
                raise BufferError("the buffer is read-only: register one that can be changed")
            size = view.nbytes
            held: object = (ctypes.c_char * size).from_buffer(view)
            address = ctypes.addressof(held)  # type: ignore[arg-type]
        else:
            address, size, held = memory.address, memory.size, memory.owner
        if size == 0:
            raise ValueError("a buffer without any bytes cannot be registered")
        # Before: whatever comes between, nothing stays registered that nobody keeps.
        numbers: list[int] = []
        self._finalizer = weakref.finalize(self, _end, volume, numbers, held)
        numbers.append(volume._core.register_buffer(address, size))

    def close(self) -> None:
        """No call may use the buffer any more. Does nothing the second time."""
        self._finalizer()

    @property
    def closed(self) -> bool:
        return not self._finalizer.alive


def _end(volume: Volume, numbers: list[int], _held: object) -> None:
    # That of a volume that is closed has ended, and a child of fork() has none.
    if numbers and not volume.closed and volume._core.is_ours:
        volume._core.unregister_buffer(numbers.pop())
