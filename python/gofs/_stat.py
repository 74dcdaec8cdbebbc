# SPDX-License-Identifier: Apache-2.0
"""What the file system says of files, as `os` has it."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING

from gofs._numbers import LONG_MAX, whole_number

if TYPE_CHECKING:
    from gofs import _core

NANOSECONDS = 1_000_000_000
BLOCK_BYTES = 4096

# What TimeStamp::nanoseconds has for the present (kTimeNow).
NOW = (0, 0x3FFFFFFF)


def stat_result(stat: _core.Stat, device: int) -> os.stat_result:
    """`device` becomes st_dev, which says which volume a file is of."""
    times = (stat.accessed, stat.modified, stat.changed)
    sequence = (
        stat.mode,
        stat.ino,
        device,
        stat.links,
        stat.uid,
        stat.gid,
        stat.size_bytes,
        *(time.seconds for time in times),
    )
    names = ("st_atime", "st_mtime", "st_ctime")
    return os.stat_result(
        sequence,
        {
            **{name: _seconds(time) for name, time in zip(names, times)},
            **{f"{name}_ns": _nanoseconds(time) for name, time in zip(names, times)},
            "st_blksize": BLOCK_BYTES,
            "st_blocks": stat.blocks_512,
            "st_rdev": os.makedev(stat.device_major, stat.device_minor),
        },
    )


def statvfs_result(stat: _core.FilesystemStat, *, writable: bool, device: int) -> os.statvfs_result:
    """`device` becomes f_fsid."""
    return os.statvfs_result(
        (
            stat.block_bytes,
            stat.block_bytes,
            stat.blocks,
            stat.blocks_free,
            stat.blocks_available,
            stat.files,
            stat.files_free,
            stat.files_free,
            0 if writable else os.ST_RDONLY,
            stat.name_bytes_max,
            device,
        )
    )


def created_seconds(stat: _core.Stat) -> float:
    return _seconds(stat.created)


def time_from_seconds(seconds: float) -> tuple[int, int]:
    """As the members of a TimeStamp, rounded down as os.utime() does. Raises TypeError for what is
    no number, and OverflowError for a time that 64 bits do not have."""
    if isinstance(seconds, int):
        return _within(seconds), 0
    try:
        fraction, whole = math.modf(seconds)
    except TypeError:
        raise TypeError(f"times: numbers of seconds are wanted, not {seconds!r}") from None
    if not math.isfinite(seconds):
        kind = ValueError if math.isnan(seconds) else OverflowError  # as os.utime() has them
        raise kind(f"times: numbers of seconds are wanted, not {seconds!r}")
    nanoseconds = math.floor(fraction * NANOSECONDS)
    return _within(int(whole) + nanoseconds // NANOSECONDS), nanoseconds % NANOSECONDS


def time_from_nanoseconds(nanoseconds: int) -> tuple[int, int]:
    """The same."""
    bound = LONG_MAX * NANOSECONDS
    return divmod(whole_number("ns", nanoseconds, least=-bound, most=bound), NANOSECONDS)


def _within(seconds: int) -> int:
    return whole_number("times", seconds, least=-LONG_MAX, most=LONG_MAX)


def _seconds(time: _core.TimeStamp) -> float:
    return time.seconds + time.nanoseconds * 1e-9  # to the last bit as `os` has it


def _nanoseconds(time: _core.TimeStamp) -> int:
    return time.seconds * NANOSECONDS + time.nanoseconds
