# SPDX-License-Identifier: Apache-2.0
"""Many parts of files for fsspec: by one batch of stats and one of reads."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, NamedTuple, Union

if TYPE_CHECKING:
    from typing_extensions import TypeAlias

    from gofs import _core
    from gofs._volume import Volume

    Contents: TypeAlias = Union[bytes, OSError]


class Part(NamedTuple):
    """A part of a file, as slices have it."""

    path: str
    start: int | None
    end: int | None

    def of(self, size: int) -> range:
        return range(*slice(self.start, self.end).indices(size))


def parts_of(
    paths: list[str],
    starts: int | None | list[int | None],
    ends: int | None | list[int | None],
) -> list[Part]:
    """What cat_ranges() is asked for."""
    if not isinstance(paths, list):
        raise TypeError(f"paths: a list is wanted, not {type(paths).__name__}")
    starts, ends = (
        each if isinstance(each, list) else [each] * len(paths) for each in (starts, ends)
    )
    if len(starts) != len(paths) or len(ends) != len(paths):
        raise ValueError("as many starts and ends as paths are wanted, or one for all")
    return [Part(*each) for each in zip(paths, starts, ends)]


def read_parts(volume: Volume, parts: list[Part]) -> list[Contents]:
    """Of each its bytes, or the error, which is not raised."""
    paths = list(dict.fromkeys(part.path for part in parts))
    sizes = {
        path: _size_of(path, found) for path, found in zip(paths, volume._core.stat_many(paths))
    }
    contents: list[Contents] = []
    ranges = []
    for part in parts:
        size = sizes[part.path]
        if isinstance(size, OSError):
            contents.append(size)
            continue
        wanted = part.of(size)
        ranges.append((len(contents), part.path, wanted.start, bytearray(len(wanted))))
        contents.append(b"")
    try:
        counts = volume.read_ranges((path, start, buffer) for _, path, start, buffer in ranges)
    except OSError:  # of the first that has one: which others have is not said
        for place, path, start, buffer in ranges:
            contents[place] = _read_alone(volume, path, start, len(buffer))
        return contents
    for (place, _, _, buffer), count in zip(ranges, counts):
        contents[place] = bytes(memoryview(buffer)[:count])
        buffer.clear()
    return contents


def first_error(contents: list[Contents]) -> OSError | None:
    return next((each for each in contents if isinstance(each, OSError)), None)


def _size_of(path: str, found: _core.Stat | OSError) -> int | OSError:
    if isinstance(found, OSError):
        return found
    if stat.S_ISDIR(found.mode):
        return IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    return found.size_bytes


def _read_alone(volume: Volume, path: str, start: int, size: int) -> Contents:
    try:
        return volume.read(path, offset=start, size=size)
    except OSError as error:
        return error
