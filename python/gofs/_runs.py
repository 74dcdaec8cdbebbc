# SPDX-License-Identifier: Apache-2.0
"""Runs of an open file that are one piece of memory: the host's, or the volume's GPU's."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from gofs import _moving
from gofs._buffers import bytes_to_fill
from gofs._device import common_stream
from gofs._gpu_memory import gpu_memory
from gofs._whole_writes import pwrite_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from typing_extensions import TypeAlias

    from gofs._device import DeviceMemory
    from gofs._file import File
    from gofs._typing import Memory, Stream
    from gofs._volume import Volume

    # Where it begins in the file, and how many bytes it has.
    Run: TypeAlias = tuple[int, int]
    # And where it begins in memory.
    Part: TypeAlias = tuple[int, int, int]

# Of one call: what it takes to describe them is memory, too.
_CALL_RUNS_MAX = 1 << 16


def read_runs(
    volume: Volume, file: File, runs: Iterable[Run], memory: Memory, stream: Stream | None = None
) -> bool:
    """Fills the memory with runs, one behind the other, and waits; False where the file ends before
    one of them does. Errors are those of Volume.read_ranges()."""
    core = file._core_to_read(volume)
    on_gpu = gpu_memory(volume, memory, fills=True)
    order = 0 if on_gpu is None else common_stream([on_gpu], stream)
    view = bytes_to_fill(memory) if on_gpu is None else memoryview(b"")
    for parts in _portions(runs):
        if on_gpu is None:
            counts = volume._core.read_ranges(
                [(core, offset, view[at : at + size]) for offset, size, at in parts]
            )
        else:
            wanted = [(core, offset, on_gpu.part(at, size)) for offset, size, at in parts]
            counts = _moving.read(volume._core, wanted, [file.name] * len(parts), order)
        if counts != [size for _, size, _ in parts]:
            return False
    return True


def write_runs(
    volume: Volume, file: File, runs: Iterable[Run], memory: DeviceMemory | memoryview
) -> None:
    """Writes the memory to runs, which have it one behind the other, and waits. Where they overlap,
    any of them may win. Errors are those of Volume.write_ranges()."""
    core = file._core_to_write(volume)
    for parts in _portions(runs):
        if isinstance(memory, memoryview):
            for offset, size, at in parts:
                pwrite_all(volume._core, core, memory[at : at + size], offset, file.name)
        else:
            given = [(core, offset, memory.part(at, size)) for offset, size, at in parts]
            names = [file.name] * len(parts)
            _moving.write(volume._core, given, names, common_stream([memory], None))


def merged(runs: Iterable[Run]) -> Iterator[Run]:
    """The same bytes in the same order, with one run where several follow each other."""
    begin = end = 0
    for offset, size in runs:
        if offset != end:
            if end > begin:
                yield begin, end - begin
            begin = offset
        end = offset + size
    if end > begin:
        yield begin, end - begin


def _portions(runs: Iterable[Run]) -> Iterator[list[Part]]:
    at = 0
    left = iter(runs)
    while portion := list(itertools.islice(left, _CALL_RUNS_MAX)):
        parts = []
        for offset, size in portion:
            parts.append((offset, size, at))
            at += size
        yield parts
