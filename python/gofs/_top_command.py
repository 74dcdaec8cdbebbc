# SPDX-License-Identifier: Apache-2.0
"""`python -m gofs top VOL`: see gofs.top, and gofs._web for `--web`."""

from __future__ import annotations

import asyncio
import functools
import signal
import sys
from typing import TYPE_CHECKING

from gofs._looks import look_at
from gofs._mount_or_attach import mount_or_attach

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from gofs._volume import Volume

    Show = Callable[[str, Volume, float], int]

WEB_ADDRESS = ":9467"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What follows the word `top`."""
    parser.add_argument(
        "volume", metavar="VOL", help="a server's socket, or a volume, which is then only read"
    )
    parser.add_argument(
        "--seconds", type=_interval, default=1.0, help="between two looks; 1 if not given"
    )
    parser.add_argument(
        "--web",
        metavar="ADDRESS:PORT",
        nargs="?",
        const=WEB_ADDRESS,
        help="a page for browsers instead of the terminal; "
        f"{WEB_ADDRESS} if no address is given, which is of this machine alone",
    )


def top(volume: str, seconds: float, web: str | None = None) -> int:
    """The exit status; 1 after a message."""
    try:
        show = _on_terminal() if web is None else _on_page(web)
        mounted = mount_or_attach(volume)
    except ImportError as error:
        if not (error.name or "").startswith(("textual", "rich")):
            raise
        print("gofs: top needs textual: pip install 'gofs[top]'", file=sys.stderr)
        return 1
    except (OSError, ValueError) as error:
        print(f"gofs: {error}", file=sys.stderr)
        return 1
    with mounted:
        return show(volume, mounted, seconds)


def _on_terminal() -> Show:
    from gofs.top import VolumeTop

    def show(name: str, volume: Volume, seconds: float) -> int:
        if not sys.stdout.isatty():
            print("gofs: top is shown on a terminal, or with --web in browsers", file=sys.stderr)
            return 1
        VolumeTop(name, functools.partial(look_at, volume), seconds).run()
        return 0

    return show


def _on_page(web: str) -> Show:
    from gofs._web import WebTop, parse_address, url_of

    host, port = parse_address(web)

    def show(name: str, volume: Volume, seconds: float) -> int:
        def tell(port: int) -> None:
            print(f"{url_of(host, port)} shows {name}; Ctrl-C ends it", flush=True)

        look = functools.partial(look_at, volume)
        page = WebTop(name, look, seconds, metrics=volume.metrics)

        async def serve() -> None:
            task = asyncio.current_task()
            assert task is not None
            # Before Python 3.11 an interrupt would end whatever runs just then.
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, task.cancel)
            await page.serve(host, port, tell)

        try:
            asyncio.run(serve())
        except (KeyboardInterrupt, asyncio.CancelledError):
            return 0
        except OSError as error:
            print(f"gofs: {web}: {error}", file=sys.stderr)
            return 1
        return 0

    return show


def _interval(text: str) -> float:
    seconds = float(text)
    if not 0.05 <= seconds <= 86400:
        raise ValueError(text)
    return seconds
