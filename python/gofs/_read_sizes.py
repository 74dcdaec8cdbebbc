# SPDX-License-Identifier: Apache-2.0
"""How much memory a read takes for what the file may have less of."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gofs import _core

# Up to so many bytes the file is not asked: memory for them costs less.
_NOT_ASKED_BYTES = 1 << 20


def within(file: _core.OpenFile, size: int, offset: int | None = None) -> int:
    """`size`, or how many bytes the file has behind `offset`, or behind its position, where they
    are fewer: of what is asked for by a number that no file has, as 1 << 40."""
    if size <= _NOT_ASKED_BYTES:
        return size
    begin = file.seek(0, os.SEEK_CUR) if offset is None else offset
    return min(size, max(file.stat().size_bytes - begin, 0))
