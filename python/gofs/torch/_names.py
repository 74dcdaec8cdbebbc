# SPDX-License-Identifier: Apache-2.0
"""Names of files for what programs call by any text, by several texts, or by none."""

from __future__ import annotations

from typing import Union
from urllib.parse import quote, unquote

Key = Union[str, tuple[str, ...], None]

# Quoting makes no such names: behind its % are two digits.
_NONE = "%none"
_EMPTY = "%empty"


def file_name(key: Key) -> str:
    """Another for each key. Raises TypeError for what is none."""
    if key is None:
        return _NONE
    if isinstance(key, str):
        return _quoted(key)
    if isinstance(key, tuple) and len(key) > 1 and all(isinstance(part, str) for part in key):
        return ",".join(map(_quoted, key))
    raise TypeError(f"{key!r}: names are text, tuples of text, or None")


def key_of(name: str) -> Key:
    """The inverse."""
    if name == _NONE:
        return None
    parts = tuple("" if part == _EMPTY else unquote(part) for part in name.split(","))
    return parts if len(parts) > 1 else parts[0]


def _quoted(text: str) -> str:
    # Dots may not begin names: some have a meaning, and others are hidden.
    quoted = quote(text, safe=" ") or _EMPTY
    return "%2E" + quoted[1:] if quoted.startswith(".") else quoted
