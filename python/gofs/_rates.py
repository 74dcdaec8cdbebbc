# SPDX-License-Identifier: Apache-2.0
"""How fast things went between two looks at a volume's statistics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gofs._core import LookupCounts, OutcomeCounts, Statistics


def made(counts: OutcomeCounts) -> int:
    return counts.succeeded + counts.failed


@dataclass(frozen=True)
class Rates:
    """A second, if not said otherwise."""

    read_bytes: float
    written_bytes: float
    ssd_read_bytes: float
    ssd_written_bytes: float
    calls: dict[str, float]
    failed_calls: dict[str, float]
    commands: dict[str, float]
    hit_percent: dict[str, float | None]
    """Of what was looked up in between; None where nothing was."""


def hit_percent(before: LookupCounts | None, now: LookupCounts) -> float | None:
    hits = now.hits - (before.hits if before else 0)
    looked_up = hits + now.misses - (before.misses if before else 0)
    return 100 * hits / looked_up if looked_up else None


def rates_between(earlier: Statistics, now: Statistics, seconds: float) -> Rates:
    """Where any count has gone back, the volume was mounted anew in between: then of all since."""
    before = None if has_begun_anew(earlier, now) else earlier

    def rate(name: str) -> float:
        added: int = getattr(now, name) - (getattr(before, name) if before else 0)
        return added / seconds

    def all_made(name: str) -> dict[str, float]:
        later: Mapping[str, OutcomeCounts] = getattr(now, name)
        then: Mapping[str, OutcomeCounts] = getattr(before, name) if before else {}
        return {
            kind: (made(counts) - (made(then[kind]) if then else 0)) / seconds
            for kind, counts in later.items()
        }

    return Rates(
        read_bytes=rate("bytes_read"),
        written_bytes=rate("bytes_written"),
        ssd_read_bytes=rate("ssd_bytes_read"),
        ssd_written_bytes=rate("ssd_bytes_written"),
        calls=all_made("calls"),
        failed_calls={
            kind: (counts.failed - (before.calls[kind].failed if before else 0)) / seconds
            for kind, counts in now.calls.items()
        },
        commands=all_made("commands"),
        hit_percent={
            kind: hit_percent(before.lookups[kind] if before else None, counts)
            for kind, counts in now.lookups.items()
        },
    )


def has_begun_anew(before: Statistics, now: Statistics) -> bool:
    """Counts only grow while a volume is mounted."""
    return any(
        later < earlier for earlier, later in zip(_counts(before), _counts(now), strict=True)
    )


def _counts(seen: Statistics) -> Iterator[int]:
    yield from (seen.bytes_read, seen.bytes_written, seen.ssd_bytes_read, seen.ssd_bytes_written)
    for kinds in (seen.calls, seen.commands):
        for counts in kinds.values():
            yield from (counts.succeeded, counts.failed)
    for lookups in seen.lookups.values():
        yield from (lookups.hits, lookups.misses)
