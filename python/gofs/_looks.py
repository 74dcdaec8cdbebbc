# SPDX-License-Identifier: Apache-2.0
"""Looks at what a volume does, again and again, for those who show it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from gofs._core import CommandTimes, Statistics
from gofs._gpu_use import GpuUse, gpu_uses

if TYPE_CHECKING:
    from gofs._volume import Volume

T = TypeVar("T")


class Look(NamedTuple):
    statistics: Statistics
    times: CommandTimes | None
    """None where the volume's SSDs are not timed."""
    gpus: list[GpuUse]
    """Of this machine, whoever uses them."""


def look_at(volume: Volume) -> Look:
    gpus = gpu_uses()  # before what rates are made of, since it takes its time
    return Look(volume.statistics(), volume.command_times(), gpus)


class Seen(NamedTuple):
    look: Look | None
    """None where the volume did not answer."""
    problem: str
    at: float
    """time.monotonic()"""


async def looks(look: Callable[[], Look], seconds: float) -> AsyncIterator[Seen]:
    """One each `seconds`, never two at a time. `look` may take its time."""
    while True:
        begun = time.monotonic()
        try:
            found = await in_a_thread(look)
        except (OSError, ValueError) as error:  # of a closed volume
            yield Seen(None, str(error), time.monotonic())
        else:
            yield Seen(found, "", time.monotonic())
        await asyncio.sleep(max(0.05, begun + seconds - time.monotonic()))


async def in_a_thread(call: Callable[[], T]) -> T:
    """As asyncio.to_thread(), but the program may end while it waits."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def end(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result, error = None, None
        try:
            result = call()
        except BaseException as problem:  # noqa: BLE001: it goes to who waits
            error = problem
        try:
            loop.call_soon_threadsafe(end, result, error)
        except RuntimeError:  # the loop has ended
            pass

    threading.Thread(target=run, daemon=True).start()
    return await future
