# SPDX-License-Identifier: Apache-2.0
"""Many ranges by one call: of memory of the host, and of the GPU that has mounted the volume."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from gofs import _moving
from gofs._buffers import bytes_to_read, memory_to_fill
from gofs._device import DeviceMemory, common_stream
from gofs._errors import raise_first
from gofs._file import File
from gofs._gpu_memory import gpu_memory
from gofs._numbers import not_negative
from gofs._whole_writes import pwrite_all

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from typing_extensions import TypeAlias

    from gofs import _core
    from gofs._typing import AnyPath, Memory, Stream
    from gofs._volume import Volume

    # A file, an offset in it, and memory of the GPU.
    Part: TypeAlias = tuple[File | AnyPath, int, DeviceMemory]

# A volume has some 65,000 descriptors.
_FILES_AT_ONCE = 8192


def read_ranges(
    volume: Volume, wanted: Sequence[tuple[File | AnyPath, int, Memory]], stream: Stream | None
) -> list[int]:
    """Volume.read_ranges()."""
    memories = [gpu_memory(volume, buffer, fills=True) for _, _, buffer in wanted]
    counts = iter(
        volume._core.read_ranges(
            [
                (
                    file._core_to_read() if isinstance(file, File) else file,
                    not_negative(offset),
                    memory_to_fill(buffer),
                )
                for (file, offset, buffer), memory in zip(wanted, memories)
                if memory is None
            ]
        )
    )
    on_gpu = iter(
        _read_to_gpu(
            volume,
            [
                (file, not_negative(offset), memory)
                for (file, offset, _), memory in zip(wanted, memories)
                if memory is not None
            ],
            stream,
        )
    )
    return [next(counts if memory is None else on_gpu) for memory in memories]


def write_ranges(
    volume: Volume,
    given: Sequence[tuple[File | AnyPath, int, Memory | DeviceMemory]],
    stream: Stream | None,
) -> None:
    """Volume.write_ranges(). A DeviceMemory is one of which reached_memory() has asked."""
    # What can be refused is, before anything is written.
    files = [file for file, _, _ in given]
    offsets = [not_negative(offset) for _, offset, _ in given]
    memories = [_to_write(volume, file, data) for file, _, data in given]
    on_gpu = [memory for memory in memories if not isinstance(memory, _Host)]
    order = common_stream(on_gpu, stream)
    unknown = [
        memory
        for (_, _, data), memory in zip(given, memories)
        if not isinstance(memory, _Host) and not isinstance(data, DeviceMemory)
    ]
    if unknown:
        _moving.check(volume._core, unknown, order)
    with _opened(volume, files, os.O_WRONLY) as cores:
        names = _names_of(files)
        numbers = [i for i, memory in enumerate(memories) if not isinstance(memory, _Host)]
        parts = [(cores[i], offsets[i], memory) for i, memory in zip(numbers, on_gpu)]
        errors: dict[int, OSError | int] = {
            numbers[i]: code for i, code in _moving.write_each(volume._core, parts, order).items()
        }
        for i, memory in enumerate(memories):
            if isinstance(memory, _Host):
                try:
                    pwrite_all(volume._core, cores[i], memory.data, offsets[i], names[i])
                except OSError as error:
                    errors[i] = error
    raise_first(volume._core, errors, names)


class _Host:
    """Memory that threads of the host write from."""

    def __init__(self, data: memoryview) -> None:
        self.data = data


def _to_write(
    volume: Volume, file: File | AnyPath, data: Memory | DeviceMemory
) -> DeviceMemory | _Host:
    if isinstance(data, DeviceMemory):
        return data
    if isinstance(file, File):
        memory = file._gpu_memory_to_write(data)
    else:
        memory = gpu_memory(volume, data, fills=False)
    return _Host(bytes_to_read(data)) if memory is None else memory


def _read_to_gpu(
    volume: Volume,
    parts: Sequence[Part],
    stream: Stream | None,
) -> list[int]:
    if not parts:
        return []
    order = common_stream([memory for _, _, memory in parts], stream)
    results: list[int] = []
    for some in _portions(parts):
        with _opened(volume, [file for file, _, _ in some], os.O_RDONLY) as cores:
            wanted = [(core, offset, memory) for core, (_, offset, memory) in zip(cores, some)]
            results += _moving.read_each(volume._core, wanted, order)
    return _moving.counts_of(volume._core, results, _names_of([file for file, _, _ in parts]))


def _portions(parts: Sequence[Part]) -> Iterator[Sequence[Part]]:
    """Of no more paths than can be open at once."""
    paths = sum(not isinstance(file, File) for file, _, _ in parts)
    step = len(parts) if paths <= _FILES_AT_ONCE else _FILES_AT_ONCE
    for first in range(0, len(parts), step):
        yield parts[first : first + step]


def _names_of(files: Sequence[File | AnyPath]) -> list[str | bytes]:
    return [file.name if isinstance(file, File) else os.fspath(file) for file in files]


@contextlib.contextmanager
def _opened(
    volume: Volume, files: Sequence[File | AnyPath], flags: int
) -> Iterator[list[_core.OpenFile]]:
    """Each path is opened once, and all of them together."""
    reads = flags == os.O_RDONLY
    given = {
        id(file): file._core_to_read() if reads else file._core_to_write()
        for file in files
        if isinstance(file, File)
    }
    paths = {os.fspath(file): 0 for file in files if not isinstance(file, File)}
    opened = dict(zip(paths, volume._core.open_many(list(paths), flags)))
    try:
        yield [
            given[id(file)] if isinstance(file, File) else opened[os.fspath(file)]
            for file in files
        ]
    finally:
        volume._core.close_many(list(opened.values()))
