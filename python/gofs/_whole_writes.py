# SPDX-License-Identifier: Apache-2.0
"""Writes that take all of their bytes, or raise.

Who is given a short count would have to ask why: pickle, numpy and others do not look at it.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from gofs._buffers import bytes_to_read, memory_to_read

if TYPE_CHECKING:
    from collections.abc import Callable

    from gofs import _core
    from gofs._typing import AnyPath, Memory


def pwrite_all(
    core: _core.Volume, file: _core.OpenFile, data: Memory, offset: int, name: AnyPath
) -> int:
    count = file.pwrite(memory_to_read(data), offset)
    return write_rest(
        core, data, count, lambda rest, done: file.pwrite(rest, offset + done), name
    )


def write_rest(
    core: _core.Volume,
    data: Memory,
    count: int,
    write: Callable[[memoryview, int], int],
    name: AnyPath,
) -> int:
    """Goes on after a call that wrote `count` bytes, by `write(what is left, how many are there)`;
    how many there are."""
    whole = bytes_to_read(data)
    while count < len(whole):
        more = write(whole[count:], count)
        if more == 0:
            raise core.error_of(errno.ENOSPC, name)
        count += more
    return count
