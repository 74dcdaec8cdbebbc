# SPDX-License-Identifier: Apache-2.0
"""Many ranges by one call: of memory of the host, and of the GPU that has mounted the volume."""

from __future__ import annotations

import contextlib
import errno
import os
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from gofs import _moving
from gofs._buffers import bytes_to_read, memory_to_fill
from gofs._core import FILES_AT_ONCE
from gofs._device import DeviceMemory, common_stream
from gofs._errors import raise_first
from gofs._file import File
from gofs._gpu_memory import gpu_memory
from gofs._numbers import not_negative
from gofs._whole_writes import pwrite_all

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from typing_extensions import TypeAlias

    from gofs import _core
    from gofs._moving import Part as OpenPart
    from gofs._typing import AnyPath, Memory, Stream
    from gofs._volume import Volume

    Place: TypeAlias = File | str | bytes
    # An offset in it, and memory of the GPU.
    Part: TypeAlias = tuple[Place, int, DeviceMemory]
    Error: TypeAlias = OSError | ValueError | int


def read_ranges(
    volume: Volume, wanted: Sequence[tuple[File | AnyPath, int, Memory]], stream: Stream | None
) -> list[int]:
    """Volume.read_ranges()."""
    ranges = [_range_of(volume, each) for each in wanted]
    memories = [gpu_memory(volume, buffer, fills=True) for _, _, buffer in ranges]
    counts = iter(
        volume._core.read_ranges(
            [
                (
                    file._core_to_read(volume) if isinstance(file, File) else file,
                    offset,
                    memory_to_fill(buffer),
                )
                for (file, offset, buffer), memory in zip(ranges, memories)
                if memory is None
            ]
        )
    )
    on_gpu = iter(
        _read_to_gpu(
            volume,
            [
                (file, offset, memory)
                for (file, offset, _), memory in zip(ranges, memories)
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
    ranges = [_range_of(volume, each) for each in given]
    files = [file for file, _, _ in ranges]
    offsets = [offset for _, offset, _ in ranges]
    memories = [_to_write(volume, file, data) for file, _, data in ranges]
    on_gpu = [memory for memory in memories if not isinstance(memory, _Host)]
    order = common_stream(on_gpu, stream)
    unknown = [
        memory
        for (_, _, data), memory in zip(ranges, memories)
        if not isinstance(memory, _Host) and not isinstance(data, DeviceMemory)
    ]
    if unknown:
        _moving.check(volume._core, unknown, order)
    names = _names_of(files)
    paths = list(dict.fromkeys(file for file in files if not isinstance(file, File)))
    if len(paths) > FILES_AT_ONCE:
        volume._core.sizes(paths)  # raises what one that is missing would, later
    errors: dict[int, Error] = {}
    with contextlib.closing(_opened(volume, files, os.O_WRONLY, errors)) as portions:
        for number, cores in enumerate(portions):
            if number == 0:  # nothing is written yet
                raise_first(volume._core, errors, names)
            parts: dict[int, OpenPart] = {}
            for i, core in cores.items():
                memory = memories[i]
                if not isinstance(memory, _Host):
                    parts[i] = (core, offsets[i], memory)
                    continue
                try:
                    pwrite_all(volume._core, core, memory.data, offsets[i], names[i])
                except (OSError, ValueError) as error:  # or another thread has closed the file
                    errors[i] = error
            _write_from_gpu(volume, files, parts, order, errors)
    raise_first(volume._core, errors, names)


def _write_from_gpu(
    volume: Volume,
    files: Sequence[Place],
    parts: dict[int, OpenPart],
    order: int,
    errors: dict[int, Error],
) -> None:
    """`parts` are by the numbers of their files. `errors` gets what they have come to."""
    left = dict(parts)
    while left:
        numbers = list(left)
        try:
            failed = _moving.write_each(volume._core, list(left.values()), order)
        except ValueError as error:
            # Of all of them: the others are written without those that have been closed since.
            closed = [i for i in numbers if _is_closed(files[i])]
            if not closed:
                raise
            for i in closed:
                errors[i] = error
                del left[i]
            continue
        errors.update({numbers[k]: code for k, code in failed.items()})
        return


class _Range(NamedTuple):
    """What is checked of what a caller gives."""

    file: File | str | bytes
    offset: int
    memory: Any


def _range_of(volume: Volume, given: Any) -> _Range:
    """Raises TypeError for what is no range, OSError for a negative offset, and ValueError for a
    file of another volume. A path is asked for here, and nowhere else."""
    if not isinstance(given, (tuple, list)) or len(given) != 3:
        kinds = [type(each).__name__ for each in given] if isinstance(given, (tuple, list)) else []
        shown = f"({', '.join(kinds)})" if kinds else repr(given)
        raise TypeError(f"ranges: each is (file or path, offset, buffer), and not {shown}")
    file, offset, memory = given
    if isinstance(file, File):
        file._expect_of(volume)
        return _Range(file, not_negative("offset", offset, file.name), memory)
    path = os.fspath(file)
    return _Range(path, not_negative("offset", offset, path), memory)


def _is_closed(file: Place) -> bool:
    return isinstance(file, File) and file.closed


class _Host:
    """Memory that threads of the host write from."""

    def __init__(self, data: memoryview) -> None:
        self.data = data


def _to_write(
    volume: Volume, file: Place, data: Memory | DeviceMemory
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
    files = [file for file, _, _ in parts]
    counts = [0] * len(parts)
    errors: dict[int, Error] = {}
    with contextlib.closing(_opened(volume, files, os.O_RDONLY, errors)) as portions:
        for cores in portions:
            wanted = [(core, parts[i][1], parts[i][2]) for i, core in cores.items()]
            for i, count in zip(cores, _moving.read_each(volume._core, wanted, order)):
                counts[i] = count
                if count < 0:
                    errors[i] = -count
    raise_first(volume._core, errors, _names_of(files))
    return counts


def _names_of(files: Sequence[Place]) -> list[str | bytes]:
    return [file.name if isinstance(file, File) else file for file in files]


def _opened(
    volume: Volume,
    files: Sequence[Place],
    flags: int,
    errors: dict[int, Error],
) -> Generator[dict[int, _core.OpenFile], None, None]:
    """The files in portions, by their numbers: of each portion all paths are opened together, each
    once, and closed when the next one is asked for. `errors` gets those that cannot be opened."""
    reads = flags == os.O_RDONLY
    given = {
        id(file): file._core_to_read(volume) if reads else file._core_to_write(volume)
        for file in files
        if isinstance(file, File)
    }
    left = deque(range(len(files)))
    while left:
        some, paths = _next_portion(files, left)
        answers = dict(zip(paths, volume._core.open_many(paths, flags)))
        opened = [each for each in answers.values() if not isinstance(each, OSError)]
        try:
            cores: dict[int, _core.OpenFile] = {}
            for i in some:
                file = files[i]
                answer = given[id(file)] if isinstance(file, File) else answers[file]
                if not isinstance(answer, OSError):
                    cores[i] = answer
                elif answer.errno == errno.EMFILE and opened:
                    left.append(i)  # others are closed soon
                else:
                    errors[i] = answer
            yield cores
        finally:
            volume._core.close_many(opened)


def _next_portion(
    files: Sequence[Place], left: deque[int]
) -> tuple[list[int], list[str | bytes]]:
    """The numbers of the next files, and their paths, of which there are as many as are open at
    once."""
    numbers: list[int] = []
    paths: dict[str | bytes, None] = {}
    while left and len(paths) < FILES_AT_ONCE:
        number = left.popleft()
        numbers.append(number)
        file = files[number]
        if not isinstance(file, File):
            paths[file] = None
    return numbers, list(paths)
