# SPDX-License-Identifier: Apache-2.0
"""Moving bytes between open files and the memory of a GPU."""

from __future__ import annotations

import contextlib
import errno
from typing import TYPE_CHECKING

from gofs._errors import raise_first

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from typing_extensions import TypeAlias

    from gofs import _core
    from gofs._device import DeviceMemory
    from gofs._typing import AnyPath

    # An offset in a file, and the memory whose bytes are there or are to be there.
    Part: TypeAlias = tuple[_core.OpenFile, int, DeviceMemory]


def check(core: _core.Volume, memories: Sequence[DeviceMemory], stream: int) -> None:
    """Raises what to move them would, before a file is changed for it."""
    with refusals():
        core.check_memory([(memory.address, memory.size) for memory in memories], stream)


def begin(
    core: _core.Volume, parts: Sequence[Part], stream: int, *, writes: bool
) -> _core.Transfer:
    """Begins to read or to write, and does not wait."""
    with refusals():
        return core.begin_ranges(_ranges_of(parts), writes, stream)


def read(
    core: _core.Volume, parts: Sequence[Part], names: Sequence[AnyPath], stream: int
) -> list[int]:
    """Reads, and waits. The bytes of each part; raises the error of the first that has one."""
    return counts_of(core, read_each(core, parts, stream), names)


def read_each(core: _core.Volume, parts: Sequence[Part], stream: int) -> list[int]:
    """The same; a negative errno for each part that has an error."""
    with refusals():
        return core.move_ranges(_ranges_of(parts), False, stream)


def read_files(
    core: _core.Volume,
    names: Sequence[AnyPath],
    offsets: Sequence[int],
    memory: DeviceMemory,
    stream: int,
) -> list[int]:
    """Reads whole files, from `offsets[i]` to `offsets[i + 1]` of the memory, and waits."""
    with refusals():
        results = core.read_files(names, offsets, memory.address, stream)
    return counts_of(core, results, names)


def write(
    core: _core.Volume, parts: Sequence[Part], names: Sequence[AnyPath], stream: int
) -> None:
    """Writes all of each part, and waits. Raises the error of the first one that has one, after
    the others have been written."""
    raise_first(core, write_each(core, parts, stream), names)


def write_each(core: _core.Volume, parts: Sequence[Part], stream: int) -> dict[int, int]:
    """The same, but the errors are returned: the errno of each part that has one, by its number."""
    errors: dict[int, int] = {}
    left = dict(enumerate(parts))
    while left:
        with refusals():
            results = core.move_ranges(_ranges_of(list(left.values())), True, stream)
        rest: dict[int, Part] = {}
        for (number, (file, offset, memory)), count in zip(left.items(), results):
            if count < 0 or (count == 0 and memory.size > 0):
                errors[number] = -count or errno.ENOSPC
            elif count < memory.size:  # the next round says why
                rest[number] = (file, offset + count, memory.behind(count))
        left = rest
    return errors


def counts_of(
    core: _core.Volume, results: list[int], names: Sequence[AnyPath]
) -> list[int]:
    """The bytes of each range. Raises the error of the first one that has one."""
    if min(results, default=0) < 0:
        errors = {number: -result for number, result in enumerate(results) if result < 0}
        raise_first(core, errors, names)
    return results


def _ranges_of(parts: Sequence[Part]) -> list[tuple[_core.OpenFile, int, int, int]]:
    return [(file, offset, memory.address, memory.size) for file, offset, memory in parts]


@contextlib.contextmanager
def refusals() -> Iterator[None]:
    """Memory that the volume's GPU does not reach is a mistake in the program: ValueError."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.EFAULT:
            raise
        words = str(error.strerror).rpartition(": ")[2]
        raise ValueError(
            f"{words}: use memory of the GPU that has mounted the volume, or of the host"
        ) from None
