# SPDX-License-Identifier: Apache-2.0
"""How fast things went between two looks at a volume's statistics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gofs._core import LookupCounts, OutcomeCounts, Statistics


def since(before: int, now: int) -> int:
    """How much was added; of a count that began anew in between, all of it."""
    return now - before if now >= before else now


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


def hit_percent(before: LookupCounts, now: LookupCounts) -> float | None:
    hits = since(before.hits, now.hits)
    looked_up = hits + since(before.misses, now.misses)
    return 100 * hits / looked_up if looked_up else None


def rates_between(before: Statistics, now: Statistics, seconds: float) -> Rates:
    def rate(then: int, later: int) -> float:
        return since(then, later) / seconds

    def all_made(
        then: Mapping[str, OutcomeCounts], later: Mapping[str, OutcomeCounts]
    ) -> dict[str, float]:
        return {kind: rate(made(then[kind]), made(later[kind])) for kind in later}

    return Rates(
        read_bytes=rate(before.bytes_read, now.bytes_read),
        written_bytes=rate(before.bytes_written, now.bytes_written),
        ssd_read_bytes=rate(before.ssd_bytes_read, now.ssd_bytes_read),
        ssd_written_bytes=rate(before.ssd_bytes_written, now.ssd_bytes_written),
        calls=all_made(before.calls, now.calls),
        failed_calls={
            kind: rate(before.calls[kind].failed, now.calls[kind].failed) for kind in now.calls
        },
        commands=all_made(before.commands, now.commands),
        hit_percent={
            kind: hit_percent(before.lookups[kind], now.lookups[kind]) for kind in now.lookups
        },
    )
