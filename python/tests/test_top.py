# SPDX-License-Identifier: Apache-2.0
"""python -m gofs top, on a terminal that textual plays."""

from __future__ import annotations

import asyncio
import pathlib
import re
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable

import pytest
from textual.pilot import Pilot
from textual.widgets import DataTable, Sparkline, Static

import gofs
from gofs import __main__ as command
from gofs._looks import Look, look_at
from gofs.top import VolumeTop


def shown(app: VolumeTop, table: str) -> dict[str, list[str]]:
    found = app.query_one(f"#{table}", DataTable)
    return {str(row[0]): list(row[1:]) for row in map(found.get_row, found.rows)}


def run(
    app: VolumeTop,
    body: Callable[[Pilot[None]], Awaitable[None]],
    size: tuple[int, int] = (120, 40),
) -> None:
    async def all_of_it() -> None:
        async with app.run_test(size=size) as pilot:
            await body(pilot)

    asyncio.run(all_of_it())


async def comes_true(pilot: Pilot[None], condition: Callable[[], bool]) -> None:
    for _ in range(600):
        if condition():
            return
        await pilot.pause(0.05)
    raise AssertionError("it does not come true")


def test_what_goes_on_is_shown(volume: gofs.Volume) -> None:
    app = VolumeTop("a volume", lambda: look_at(volume), 0.05)

    async def body(pilot: Pilot[None]) -> None:
        await comes_true(pilot, lambda: "read" in shown(app, "calls"))
        assert set(shown(app, "calls")) == set(volume.statistics().calls)
        assert set(shown(app, "commands")) == {"read", "write", "flush", "deallocate"}
        assert "nodes" in shown(app, "lookups")
        volume.write("/file", b"x" * 1_000_000)
        with pytest.raises(FileNotFoundError):
            volume.open("/none")
        written = app.query_one("#written", Sparkline)
        await comes_true(pilot, lambda: any(written.data or ()))
        await comes_true(pilot, lambda: shown(app, "calls")["open"][-1] == "1")
        assert "checkpoints" in str(app.query_one("#state", Static).render())
        assert app.sub_title == "a volume"
        await pilot.press("q")
        await comes_true(pilot, lambda: not app.is_running)

    run(app, body)


def test_rates_are_those_of_the_time_between_two_looks(volume: gofs.Volume) -> None:
    app = VolumeTop("a volume", lambda: look_at(volume), 3600)

    async def body(pilot: Pilot[None]) -> None:
        app.show(look_at(volume), 1e9)
        for _ in range(40):
            volume.write("/file", b"x" * 100_000)
        app.show(look_at(volume), 1e9 + 4)
        assert shown(app, "calls")["write"] == ["10", "0", "0"]
        written = app.query_one("#written", Sparkline)
        assert written.data is not None
        assert list(written.data)[-1] == 1_000_000
        assert written.border_title == "written: 1.0 MB/s"
        assert shown(app, "lookups")["nat"][0] != ""

    run(app, body)


def test_a_volume_that_does_not_answer_is_told_and_looked_at_again(volume: gofs.Volume) -> None:
    answers = False

    def look() -> Look:
        if not answers:
            raise TimeoutError(110, "no answer in time", "[/no] [markup")
        return look_at(volume)

    app = VolumeTop("a volume", look, 0.05)

    async def body(pilot: Pilot[None]) -> None:
        nonlocal answers
        state = app.query_one("#state", Static)
        await comes_true(pilot, lambda: "no answer in time" in str(state.render()))
        answers = True
        await comes_true(pilot, lambda: "segments" in str(state.render()))

    run(app, body)


def test_a_narrow_terminal_has_everything_below_each_other(volume: gofs.Volume) -> None:
    app = VolumeTop("[/a] [volume", lambda: look_at(volume), 0.05)

    async def body(pilot: Pilot[None]) -> None:
        await comes_true(pilot, lambda: "read" in shown(app, "calls"))
        regions = [app.query_one(f"#{name}").region for name in ("calls", "commands", "lookups")]
        assert {region.x for region in regions} == {0}
        await pilot.resize_terminal(120, 40)
        await comes_true(
            pilot,
            lambda: app.query_one("#commands").region.x > app.query_one("#lookups").region.x,
        )
        await pilot.resize_terminal(20, 4)
        await comes_true(pilot, lambda: app.query_one("#commands").region.x == 0)

    run(app, body, (20, 10))


def test_a_look_that_comes_when_the_screen_has_gone_is_not_shown(volume: gofs.Volume) -> None:
    looked = threading.Event()
    goes_on = threading.Event()

    def look() -> Look:
        looked.set()
        goes_on.wait(60)
        return look_at(volume)

    app = VolumeTop("a volume", look, 0.05)

    async def body(pilot: Pilot[None]) -> None:
        await comes_true(pilot, looked.is_set)
        await app.query("Grid").remove()
        goes_on.set()
        await comes_true(pilot, lambda: all(worker.is_finished for worker in app.workers))

    run(app, body)


@pytest.mark.parametrize("key", ["q", "ctrl+c"])
def test_keys_end_it_while_the_volume_does_not_answer(volume: gofs.Volume, key: str) -> None:
    answers = threading.Event()

    def look() -> Look:
        answers.wait(60)
        return look_at(volume)

    app = VolumeTop("a volume", look, 0.05)

    async def body(pilot: Pilot[None]) -> None:
        await pilot.press(key)
        await comes_true(pilot, lambda: not app.is_running)

    run(app, body)
    assert not answers.is_set()
    answers.set()


def test_delays_are_shown_where_they_are_known(image: pathlib.Path) -> None:
    with gofs.mount(f"{image}?media=hosted") as hosted:
        app = VolumeTop("a volume", lambda: look_at(hosted), 3600)

        async def body(pilot: Pilot[None]) -> None:
            app.show(look_at(hosted), 1e9)
            hosted.listdir("/")
            app.show(look_at(hosted), 1e9 + 4)
            assert len(shown(app, "commands")["read"]) == 5
            assert shown(app, "commands")["deallocate"][1:4] == ["-", "-", "-"]
            assert re.search(r"busy +[0-9.]+ %, ", str(app.query_one("#state", Static).render()))

        run(app, body)


def test_the_command_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["top", "/no/such/volume"]) == 1
    assert "/no/such/volume" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "textual", None)
    monkeypatch.setitem(sys.modules, "textual.app", None)
    monkeypatch.delitem(sys.modules, "gofs.top")
    assert command.main(["top", "/no/such/volume"]) == 1
    assert "pip install 'gofs[top]'" in capsys.readouterr().err


def test_the_command_is_for_terminals(
    image: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["top", str(image)]) == 1
    shown, said = capsys.readouterr()
    assert (shown, said) == ("", "gofs: top is shown on a terminal, or with --web in browsers\n")


def test_the_command_has_help_and_refuses_what_makes_no_sense() -> None:
    def said(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "gofs", *words],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    assert "VOL" in said("top", "--help").stdout
    assert said().returncode == 2
    assert said("top").returncode == 2
    assert said("top", "a", "--seconds", "0").returncode == 2
