# SPDX-License-Identifier: Apache-2.0
"""Many whole files in one piece of memory."""

from __future__ import annotations

import errno
import itertools
import os
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gofs._arrays import Framework
    from gofs._typing import AnyPath
    from gofs._volume import Volume


class PackedFiles(NamedTuple):
    """The contents of many files, one after the other in one piece of memory.

    File i has the bytes from `offsets[i]` to `offsets[i + 1]`; there is one offset more than files.
    """

    data: Any  # a bytearray, or an array or a tensor of bytes
    offsets: list[int]
    names: list[Any]  # as they were given; of a directory: str


def read_packed(volume: Volume, names: Sequence[AnyPath]) -> PackedFiles:
    """As a bytearray. Of a file that grows meanwhile, what is new may be missing."""
    sizes = volume._core.sizes(names)
    offsets = [0, *itertools.accumulate(sizes)]
    data = bytearray(offsets[-1])
    counts = volume.read_many_into(names, data, offsets)
    if counts != sizes:
        offsets = _close_gaps(data, offsets, counts)
    return PackedFiles(data, offsets, list(names))


def read_packed_array(
    volume: Volume, names: Sequence[AnyPath], framework: Framework
) -> PackedFiles:
    """As an array of bytes that `framework` has made and is still to place. Raises OSError for a
    file that becomes shorter meanwhile."""
    sizes = volume._core.sizes(names)
    offsets = [0, *itertools.accumulate(sizes)]
    data = framework.empty(offsets[-1])
    counts = volume.read_many_into(names, data, offsets, stream=framework.stream)
    if counts != sizes:
        name = next(name for name, count, size in zip(names, counts, sizes) if count < size)
        words = "the file has become shorter while it was read"
        raise OSError(errno.EIO, words, os.fspath(name))
    return PackedFiles(data, offsets, list(names))


def _close_gaps(data: bytearray, offsets: list[int], counts: list[int]) -> list[int]:
    """Moves parts that have become shorter to the ends of those before; the new offsets."""
    new = [0, *itertools.accumulate(counts)]
    for old_begin, begin, count in zip(offsets, new, counts):
        data[begin : begin + count] = data[old_begin : old_begin + count]
    del data[new[-1] :]
    return new
