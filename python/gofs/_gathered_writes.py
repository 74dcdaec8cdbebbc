# SPDX-License-Identifier: Apache-2.0
"""Parts of one file, written by one call for as much as memory is to hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gofs._arrays import on_host
from gofs._buffers import bytes_to_read
from gofs._gpu_memory import reached_memory

if TYPE_CHECKING:
    from gofs._file import File
    from gofs._volume import Volume

# What is gathered in memory of the host, and in copies, is at most so much, and one part.
_HELD_BYTES_MAX = 256 << 20
# Parts of the host's memory that follow each other are joined up to so many bytes: a call for each
# would cost more than to copy them.
_JOINED_BYTES_MAX = 1 << 20


class GatheredWrites:
    """Takes the parts of an open file, which are there after perform(). Where two of them overlap,
    either may win."""

    def __init__(self, volume: Volume, file: File) -> None:
        self._volume = volume
        self._file = file
        self._ranges: list[tuple[File, int, Any]] = []
        self._held_bytes = 0

    def add(self, offset: int, data: Any, *, is_copy: bool = False) -> int:
        """`data` (an array, a tensor, or other memory) is to be at byte `offset`; how many bytes it
        has. It may not change until perform().

        `is_copy` says that its memory is free again when it is written; that of the host is taken
        to be so. Tensors in the memory of the volume's GPU do not go through the host's. Raises
        ValueError where its bytes have gaps, and OSError as Volume.write_ranges().
        """
        on_gpu = reached_memory(self._volume, data)
        if on_gpu is not None:
            self._ranges.append((self._file, offset, on_gpu))
            self._hold(on_gpu.size if is_copy else 0)
            return on_gpu.size
        contents = bytes_to_read(on_host(data))
        if contents.nbytes > 0 and not self._is_joined(offset, contents):
            is_small = contents.nbytes < _JOINED_BYTES_MAX
            memory = bytearray(contents) if is_small else contents
            self._ranges.append((self._file, offset, memory))
        self._hold(contents.nbytes)
        return contents.nbytes

    def perform(self) -> None:
        """Writes what was added. Raises OSError as Volume.write_ranges()."""
        if self._ranges:
            self._volume.write_ranges(self._ranges)
        self._ranges, self._held_bytes = [], 0

    def _is_joined(self, offset: int, contents: memoryview) -> bool:
        """Whether the range before has taken it."""
        _, begin, last = self._ranges[-1] if self._ranges else (None, 0, None)
        if not isinstance(last, bytearray) or begin + len(last) != offset:
            return False
        if len(last) + contents.nbytes > _JOINED_BYTES_MAX:
            return False
        last += contents
        return True

    def _hold(self, size: int) -> None:
        self._held_bytes += size
        if self._held_bytes >= _HELD_BYTES_MAX:
            self.perform()
