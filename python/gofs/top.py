# SPDX-License-Identifier: Apache-2.0
"""python -m gofs top VOL: what goes on in a volume, on a terminal, as top has it for processes.

It is meant for a server's socket: there it shows what all clients do. It needs textual:
pip install 'gofs[top]'.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping

from rich.text import Text
from textual.app import App, ComposeResult
from textual.containers import Grid
from textual.widgets import DataTable, Footer, Header, Sparkline, Static

from gofs._core import Statistics
from gofs._delays import Delays, delays_between
from gofs._looks import Look, looks
from gofs._rates import Rates, rates_between
from gofs._units import size_text

HISTORY = 120  # looks, in the curves
CURVES = ("read", "written")


def percent_text(percent: float | None) -> str:
    return "-" if percent is None else f"{percent:.1f} %"


def delay_texts(delays: Delays | None, kind: str) -> tuple[str, str, str]:
    """On average, and of 50 and 99 of 100."""
    delay = delays.kinds[kind] if delays else None
    if delay is None:
        return ("-", "-", "-")
    return (f"{delay.average_ms:.3f}", f"{delay.p50_ms:.3f}", f"{delay.p99_ms:.3f}")


class VolumeTop(App[None]):
    """Looks at a volume every so often. `look` may take its time: the screen goes on meanwhile."""

    CSS = """
    Grid { grid-size: 2; grid-rows: 5 1fr 1fr; grid-gutter: 0 1; }
    .curve { height: 5; border: round $primary; }
    #state { column-span: 1; border: round $primary; padding: 0 1; }
    Sparkline { height: 3; }
    .-narrow Grid { grid-size: 1; grid-rows: auto; overflow-y: auto; }
    .-narrow DataTable, .-narrow #state { height: auto; }
    """
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]
    BINDINGS = [("q", "quit", "Quit"), ("ctrl+c", "quit", "Quit")]

    def __init__(self, name: str, look: Callable[[], Look], seconds: float = 1.0) -> None:
        super().__init__()
        self.title = "gofs top"
        self.sub_title = name
        self._look = look
        self._seconds = seconds
        self._before: tuple[Look, float] | None = None
        self._curves = {name: deque([0.0] * HISTORY, HISTORY) for name in CURVES}

    def compose(self) -> ComposeResult:
        yield Header()
        with Grid():
            for name in CURVES:
                curve = Sparkline(list(self._curves[name]), id=name, classes="curve")
                curve.border_title = name
                yield curve
            yield DataTable(id="calls", cursor_type="none")
            yield DataTable(id="commands", cursor_type="none")
            yield DataTable(id="lookups", cursor_type="none")
            yield Static(id="state")
        yield Footer()

    def on_mount(self) -> None:
        columns: Mapping[str, tuple[str, ...]] = {
            "calls": ("calls", "/s", "failed/s", "failed"),
            "commands": ("NVMe commands", "/s", "ms", "p50", "p99", "failed"),
            "lookups": ("look-ups", "hits", "since mounting"),
        }
        for name, headings in columns.items():
            table = self.query_one(f"#{name}", DataTable)
            for heading in headings:
                table.add_column(heading, key=heading)
        self.run_worker(self._watch(), exclusive=True)

    async def _watch(self) -> None:
        async for seen in looks(self._look, self._seconds):
            if not self.query("#state"):  # it ends, and there is nothing left to show it on
                return
            if seen.look is None:
                self.query_one("#state", Static).update(Text(f"no answer: {seen.problem}"))
            else:
                self.show(seen.look, seen.at)

    def show(self, look: Look, at: float) -> None:
        delays = None
        if self._before is not None and at > self._before[1]:
            before, seconds = self._before[0], at - self._before[1]
            rates = rates_between(before.statistics, look.statistics, seconds)
            delays = delays_between(before.times, look.times, seconds)
            self._show_rates(rates, look.statistics, delays)
        self._show_state(look, delays)
        self._before = (look, at)

    def _show_rates(self, rates: Rates, now: Statistics, delays: Delays | None) -> None:
        for name, value in zip(CURVES, (rates.read_bytes, rates.written_bytes), strict=True):
            self._curves[name].append(value)
            curve = self.query_one(f"#{name}", Sparkline)
            curve.data = list(self._curves[name])
            curve.border_title = f"{name}: {size_text(value)}/s"
        failed = {kind: str(counts.failed) for kind, counts in now.calls.items()}
        self._fill(
            "calls",
            {
                kind: (f"{rate:.0f}", f"{rates.failed_calls[kind]:.0f}", failed[kind])
                for kind, rate in rates.calls.items()
            },
        )
        self._fill(
            "commands",
            {
                kind: (f"{rate:.0f}", *delay_texts(delays, kind), str(now.commands[kind].failed))
                for kind, rate in rates.commands.items()
            },
        )
        totals = {
            kind: 100 * counts.hits / (counts.hits + counts.misses)
            if counts.hits + counts.misses
            else None
            for kind, counts in now.lookups.items()
        }
        self._fill(
            "lookups",
            {
                kind: (percent_text(percent), percent_text(totals[kind]))
                for kind, percent in rates.hit_percent.items()
            },
        )

    def _fill(self, name: str, rows: Mapping[str, tuple[str, ...]]) -> None:
        table = self.query_one(f"#{name}", DataTable)
        for kind, cells in rows.items():
            if kind not in table.rows:
                table.add_row(kind, *cells, key=kind)
                continue
            for column, cell in zip(list(table.columns)[1:], cells, strict=True):
                table.update_cell(kind, column, cell)

    def _show_state(self, look: Look, delays: Delays | None) -> None:
        now = look.statistics
        busy = "-"
        if delays:
            busy = f"{percent_text(delays.busy_percent)}, {delays.queue:.2f} commands"
        segments = ", ".join(f"{count} {state}" for state, count in now.segments.items())
        gpus = "".join(f"\nGPU {i:<9} {gpu}" for i, gpu in enumerate(look.gpus))
        text = (
            f"under way     {now.commands_under_way} commands, {now.command_timeouts} timeouts\n"
            f"busy          {busy}\n"
            f"dirty         {now.dirty_pages} of {now.cache_pages} pages, "
            f"{now.dirty_node_pages} nodes\n"
            f"segments      {segments}\n"
            f"checkpoints   {now.checkpoints}\n"
            f"cleaned       {now.cleaned_segments} segments, {now.moved_blocks} blocks moved\n"
            f"by the SSD    {size_text(now.ssd_bytes_read)} read, "
            f"{size_text(now.ssd_bytes_written)} written{gpus}"
        )
        self.query_one("#state", Static).update(Text(text))
