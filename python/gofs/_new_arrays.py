# SPDX-License-Identifier: Apache-2.0
"""A file's bytes as a new array, where the volume can read them to."""

from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING, Any

from gofs._arrays import framework_beside
from gofs._numbers import not_negative

if TYPE_CHECKING:
    from gofs._typing import AnyPath
    from gofs._volume import Volume


def read_array(
    volume: Volume, path: AnyPath, offset: int, size: int | None, dtype: Any, like: Any
) -> Any:
    """Volume.read() with `dtype` or `like`."""
    made = framework_beside(volume, _framework_of(dtype, like))
    begin = not_negative("offset", offset, path)
    with closing(volume.open(path)) as file:
        left = max(file.stat().st_size - begin, 0)
        wanted = left if size is None else min(not_negative("size", size, path), left)
        flat = made.empty(wanted)
        [count] = volume.read_ranges([(file, begin, flat)], stream=made.stream)
    flat = made.place(flat)[:count]
    if dtype is None:
        return flat
    try:
        return made.typed(flat, dtype)
    except (ValueError, RuntimeError) as error:
        raise ValueError(f"{os.fsdecode(path)!r}: {count} bytes as {dtype}: {error}") from None


def _framework_of(dtype: Any, like: Any) -> str:
    """The name of a framework: of what was given as it, else of the type."""
    if like is None:
        return "torch" if str(dtype).startswith("torch.") else "numpy"
    return like if isinstance(like, str) else str(getattr(like, "__name__", like))
