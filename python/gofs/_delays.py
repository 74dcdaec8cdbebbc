# SPDX-License-Identifier: Apache-2.0
"""How long NVMe commands took that ended between two looks, as iostat says of a disk."""

from __future__ import annotations

from dataclasses import dataclass

from gofs._core import CommandTimes, TimedCommands


@dataclass(frozen=True)
class Delay:
    """Of commands of one kind, in milliseconds."""

    average_ms: float
    p50_ms: float
    p99_ms: float


@dataclass(frozen=True)
class Delays:
    kinds: dict[str, Delay | None]
    """None where no such command has ended."""
    queue: float
    """Commands under way, on average over time."""
    busy_percent: float
    """Of the time, and of the SSDs that are timed."""


@dataclass(frozen=True)
class _Ended:
    counts: list[int]
    total_ns: int


def delays_between(
    earlier: CommandTimes | None, now: CommandTimes | None, seconds: float
) -> Delays | None:
    """None where the volume's SSDs are not timed.

    Where any count has gone back, the volume was mounted anew in between: then of all since.
    """
    if now is None:
        return None
    before = None if earlier is None or _has_begun_anew(earlier, now) else earlier
    ended = {
        kind: _between(before.commands[kind] if before else None, timed)
        for kind, timed in now.commands.items()
    }
    ns = seconds * 1e9
    busy_ns = max(0, now.busy_ns - (before.busy_ns if before else 0))
    return Delays(
        kinds={kind: _delay(some) for kind, some in ended.items()},
        queue=sum(some.total_ns for some in ended.values()) / ns,
        busy_percent=min(100.0, 100 * busy_ns / ns / now.ssds),
    )


def quantile_ms(counts: list[int], part: float) -> float:
    """How long the fastest `part` took at most, if times within a bucket are spread evenly.

    Of those beyond the last bucket's beginning no more is known than that.
    """
    left = part * sum(counts)
    for number, here in enumerate(counts):
        begin_us = 2.0 ** (number - 1) if number else 0.0
        if number + 1 == len(counts):
            break
        if here and left <= here:
            return (begin_us + (2.0**number - begin_us) * left / here) / 1000
        left -= here
    return begin_us / 1000


def _delay(ended: _Ended) -> Delay | None:
    count = sum(ended.counts)
    if count == 0:
        return None
    return Delay(
        average_ms=ended.total_ns / 1e6 / count,
        p50_ms=quantile_ms(ended.counts, 0.5),
        p99_ms=quantile_ms(ended.counts, 0.99),
    )


def _between(before: TimedCommands | None, now: TimedCommands) -> _Ended:
    if before is None:
        return _Ended(now.counts, now.total_ns)
    counts = [later - then for then, later in zip(before.counts, now.counts, strict=True)]
    return _Ended(counts, now.total_ns - before.total_ns)


def _has_begun_anew(before: CommandTimes, now: CommandTimes) -> bool:
    if before.ssds != now.ssds:
        return True
    for kind, later in now.commands.items():
        ended = _between(before.commands[kind], later)
        if ended.total_ns < 0 or any(count < 0 for count in ended.counts):
            return True
    return False
