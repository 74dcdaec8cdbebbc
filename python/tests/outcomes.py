# SPDX-License-Identifier: Apache-2.0
"""What a call does, so that two can be compared: its value, or its error."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any


def outcome(call: Callable[[], Any], root: str = "") -> tuple[Any, ...]:
    """("value", V), or ("error", TYPE, ERRNO, FILE NAMES). `root` is taken from their beginning."""
    try:
        return ("value", call())
    except (OSError, ValueError, TypeError) as error:
        names = [getattr(error, name, None) for name in ("filename", "filename2")]
        shown = [os.fsdecode(name).removeprefix(root) for name in names if name is not None]
        return ("error", type(error).__name__, getattr(error, "errno", None), *shown)
