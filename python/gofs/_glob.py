# SPDX-License-Identifier: Apache-2.0
"""Paths that match a pattern, as the module glob of Python finds them."""

from __future__ import annotations

import fnmatch
import posixpath
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gofs._entries import DirEntry
    from gofs._names import Names

_MAGIC = re.compile(r"[*?[]")


def glob(volume: Names, pattern: str, *, recursive: bool, include_hidden: bool) -> list[str]:
    """Volume.glob()."""
    root = pattern[: len(pattern) - len(pattern.lstrip("/"))]
    *folders, last = pattern[len(root) :].split("/")
    search = _Search(volume, recursive, include_hidden)
    bases = [root]
    for part in folders:
        bases = [path for base in bases for path in search.folders(base, part)]
    found = (path for base in bases for path in search.last(base, last))
    return [path for path in dict.fromkeys(found) if path]


class _Search:
    def __init__(self, volume: Names, recursive: bool, include_hidden: bool) -> None:
        self._volume = volume
        self._recursive = recursive
        self._include_hidden = include_hidden

    def folders(self, base: str, part: str) -> Iterator[str]:
        """Those in `base` that a part of the pattern names, which is not the last one."""
        if self._is_recursive(part):
            yield base
            yield from (path for path, is_dir in self._below(base) if is_dir)
        elif _MAGIC.search(part):
            yield from (path for path, is_dir in self._matching(base, part) if is_dir)
        else:
            yield posixpath.join(base, part) if part else base

    def last(self, base: str, part: str) -> Iterator[str]:
        """All in `base` that the last part names; the folder itself where it ends by a slash."""
        path = posixpath.join(base, "" if self._is_recursive(part) else part)
        if self._is_recursive(part):
            if self._is_folder(base):
                yield path
            yield from (below for below, _ in self._below(base))
        elif _MAGIC.search(part):
            yield from (matching for matching, _ in self._matching(base, part))
        elif self._is_folder(base) if not part else self._volume.lexists(path):
            yield path

    def _is_recursive(self, part: str) -> bool:
        return self._recursive and part == "**"

    def _is_folder(self, path: str) -> bool:
        return self._volume.isdir(path or "/")

    def _matching(self, base: str, part: str) -> Iterator[tuple[str, bool]]:
        matches = re.compile(fnmatch.translate(part)).match
        for name, is_dir in self._entries(base, with_hidden=part.startswith(".")):
            if matches(name):
                yield posixpath.join(base, name), is_dir

    def _below(self, base: str) -> Iterator[tuple[str, bool]]:
        left = [base]
        while left:
            here = left.pop()
            for name, is_dir in self._entries(here, with_hidden=False):
                path = posixpath.join(here, name)
                yield path, is_dir
                if is_dir:
                    left.append(path)

    def _entries(self, folder: str, *, with_hidden: bool) -> list[tuple[str, bool]]:
        """Names, and whether they are folders; none where it cannot be read."""
        try:
            with self._volume.scandir(folder or "/") as entries:
                return [
                    (entry.name, _is_dir(entry))
                    for entry in entries
                    if with_hidden or self._include_hidden or not entry.name.startswith(".")
                ]
        except OSError:
            return []


def _is_dir(entry: DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False
