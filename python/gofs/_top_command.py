# SPDX-License-Identifier: Apache-2.0
"""`python -m gofs top VOL`: see gofs.top."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from gofs._mount_or_attach import mount_or_attach

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What follows the word `top`."""
    parser.add_argument(
        "volume", metavar="VOL", help="a server's socket, or a volume, which is then only read"
    )
    parser.add_argument(
        "--seconds", type=_interval, default=1.0, help="between two looks; 1 if not given"
    )


def top(volume: str, seconds: float) -> int:
    """The exit status; 1 after a message."""
    try:
        from gofs.top import VolumeTop
    except ImportError as error:
        if not (error.name or "").startswith(("textual", "rich")):
            raise
        print("gofs: top needs textual: pip install 'gofs[top]'", file=sys.stderr)
        return 1
    try:
        mounted = mount_or_attach(volume)
    except (OSError, ValueError) as error:
        print(f"gofs: {error}", file=sys.stderr)
        return 1
    with mounted:
        VolumeTop(volume, mounted.statistics, seconds).run()
    return 0


def _interval(text: str) -> float:
    seconds = float(text)
    if not 0.05 <= seconds <= 86400:
        raise ValueError(text)
    return seconds
