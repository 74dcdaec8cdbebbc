# SPDX-License-Identifier: Apache-2.0
"""Modes of open(): "rb", "r+b", "wb", "xb", "ab" and the like."""

from __future__ import annotations

import os
from typing import NamedTuple


class Mode(NamedTuple):
    """What a mode asks for."""

    flags: int  # of open(2)
    readable: bool
    writable: bool
    text: str  # as io.FileIO has it in its attribute `mode`

    @property
    def appends(self) -> bool:
        return bool(self.flags & os.O_APPEND)


# Flags of open(2) for a file that is made or emptied.
REPLACES = os.O_WRONLY | os.O_CREAT | os.O_TRUNC

_FLAGS = {
    "r": 0,
    "w": os.O_CREAT | os.O_TRUNC,
    "x": os.O_CREAT | os.O_EXCL,
    "a": os.O_CREAT | os.O_APPEND,
}


def parse_mode(mode: str) -> Mode:
    """Raises ValueError for what is no mode, and for one of text; TypeError for what is no str."""
    if not isinstance(mode, str):
        raise TypeError(f"mode: one such as 'rb' is wanted, not {mode!r}")
    if "t" in mode:
        raise ValueError(
            f"invalid mode: {mode!r}: files are binary: open it with buffering=-1 "
            "and give it to io.TextIOWrapper"
        )
    kinds = [letter for letter in mode if letter in _FLAGS]
    if len(kinds) != 1 or len(set(mode)) != len(mode) or set(mode) - set("rwxab+"):
        raise ValueError(f"invalid mode: {mode!r}: one of r, w, x and a, and perhaps b and +")
    kind = kinds[0]
    updates = "+" in mode
    readable = updates or kind == "r"
    writable = updates or kind != "r"
    access = os.O_RDWR if updates else os.O_RDONLY if kind == "r" else os.O_WRONLY
    shown = kind if kind in "xa" or not updates else "r"
    return Mode(access | _FLAGS[kind], readable, writable, shown + "b" + "+" * updates)
