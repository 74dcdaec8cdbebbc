# SPDX-License-Identifier: Apache-2.0
"""Trees of directories, walked and made as `os` does it."""

from __future__ import annotations

import contextlib
import os
import posixpath
from typing import TYPE_CHECKING, Any

from gofs._errors import LEADS_NOWHERE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gofs._names import Names
    from gofs._typing import AnyPath


def walk(
    volume: Names,
    top: AnyPath,
    topdown: bool,
    onerror: Callable[[OSError], object] | None,
    followlinks: bool,
) -> Iterator[tuple[Any, list[Any], list[Any]]]:
    """Names.walk()."""
    left: list[Any] = [os.fspath(top)]
    while left:
        here = left.pop()
        if isinstance(here, tuple):
            yield here
            continue
        try:
            directories, others, below = _sorted_out(volume, here, followlinks)
        except OSError as error:
            if onerror is not None:
                onerror(error)
            continue
        if not topdown:
            left.append((here, directories, others))
            left += (posixpath.join(here, name) for name in reversed(below))
            continue
        yield here, directories, others
        # The caller may have changed the list.
        for name in reversed(directories):
            path = posixpath.join(here, name)
            if followlinks or not volume.islink(path):
                left.append(path)


def _sorted_out(
    volume: Names, path: Any, followlinks: bool
) -> tuple[list[Any], list[Any], list[Any]]:
    """The names of directories, those of all else, and the former that a walk goes into."""
    directories: list[Any] = []
    others: list[Any] = []
    below: list[Any] = []
    with volume.scandir(path) as entries:
        for entry in entries:
            try:
                is_dir = entry.is_dir()
            except OSError:
                is_dir = False
            (directories if is_dir else others).append(entry.name)
            if is_dir and (followlinks or not entry.is_symlink()):
                below.append(entry.name)
    return directories, others, below


def makedirs(volume: Names, path: str, mode: int, *, exist_ok: bool) -> None:
    """Names.makedirs()."""
    parents = _missing_parents(volume, path)
    for parent in reversed(parents):
        try:
            volume.mkdir(parent)
        except FileExistsError:
            pass  # another has made it, or it is a dot
    if parents and posixpath.basename(path.rstrip("/")) == ".":
        return
    try:
        volume.mkdir(path, mode)
    except OSError:
        if not exist_ok or not volume.isdir(path):
            raise


def removedirs(volume: Names, name: str | bytes) -> None:
    """Names.removedirs()."""
    volume.rmdir(name)
    parent = _parent(os.fsdecode(name))
    with contextlib.suppress(OSError):  # it has something else
        while parent.strip("/"):
            volume.rmdir(parent)
            parent = _parent(parent)


def renames(volume: Names, old: str | bytes, new: str | bytes) -> None:
    """Names.renames()."""
    above, last = posixpath.split(os.fsdecode(new))
    if above and last and not volume.exists(above):
        volume.makedirs(above)
    volume.rename(old, new)
    before, last = posixpath.split(os.fsdecode(old))
    if before.strip("/") and last:
        with contextlib.suppress(OSError):
            removedirs(volume, before)


def _parent(path: str) -> str:
    return posixpath.dirname(path.rstrip("/"))


def _missing_parents(volume: Names, path: str) -> list[str]:
    """The longest first."""
    missing: list[str] = []
    parent = _parent(path)
    while parent and mode_reached(volume, parent) is None:
        missing.append(parent)
        parent = posixpath.dirname(parent)
    return missing


def mode_reached(volume: Names, path: str) -> int | None:
    """Of what a path leads to; None where it leads nowhere, as that of the root never does. Unlike
    exists() this raises the errors of a volume in trouble: all parents would have them."""
    try:
        return volume.stat(path).st_mode
    except OSError as error:
        if error.errno not in LEADS_NOWHERE or not path.strip("/"):
            raise
        return None
