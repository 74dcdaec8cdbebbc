# SPDX-License-Identifier: Apache-2.0
"""Which files a call of fsspec is about, and what they are to be called."""

from __future__ import annotations

import contextlib
import errno
import os
import posixpath
from glob import has_magic
from typing import TYPE_CHECKING

from fsspec.utils import (  # type: ignore[import-untyped, import-not-found, unused-ignore]
    other_paths,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from gofs.fsspec import GofsFileSystem


def expanded(
    fs: GofsFileSystem,
    path: str | list[str],
    expand: Callable[..., list[str]],
    *,
    assume_literal: bool,
) -> list[str]:
    """GofsFileSystem.expand_path(). `expand` is that of others."""
    given = [path] if isinstance(path, (str, os.PathLike)) else path
    names = [fs._strip_protocol(each) for each in given]
    if assume_literal:
        return list(expand(names, assume_literal=True))
    literal = [name for name in names if has_magic(name) and fs.lexists(name)]
    if not literal:
        return list(expand(names))
    found = set(expand(literal, assume_literal=True))
    with contextlib.suppress(FileNotFoundError):  # something was found
        found.update(expand([name for name in names if name not in literal]))
    return sorted(found)


def outermost(paths: list[str]) -> list[str]:
    """Without those that are below others."""
    kept: list[str] = []
    for path in sorted(paths, key=lambda each: each.split("/")):
        if not kept or not is_below(path, kept[-1]):
            kept.append(path)
    return kept


def is_below(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip("/") + "/")


def moves(
    fs: GofsFileSystem, path1: str | list[str], path2: str | list[str]
) -> list[tuple[str, str]]:
    """What mv() renames to what. Raises before anything is renamed, where some cannot be."""
    if isinstance(path1, list) and isinstance(path2, list):
        if len(path1) != len(path2):
            raise ValueError(f"{len(path1)} paths, and {len(path2)} new ones")
        sources, targets = fs._strip_protocol(path1), fs._strip_protocol(path2)
    else:
        sources = outermost(fs.expand_path(path1))
        targets = _targets(fs, sources, path1, path2)
    if len(set(targets)) != len(targets):
        raise ValueError(f"{path2}: several files would get one name")
    for source, target in zip(sources, targets):
        if not fs.lexists(source):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), source)
        if is_below(target, source):
            raise OSError(errno.EINVAL, "it cannot be moved into itself", source, None, target)
    return list(zip(sources, targets))


def _targets(
    fs: GofsFileSystem, sources: list[str], path1: str | list[str], path2: str | list[str]
) -> list[str]:
    if isinstance(path2, list):
        raise ValueError(f"{path1!r}: new names are given in a list for a list of paths alone")
    new: str = fs._strip_protocol(path2)
    if isinstance(path1, list):
        return [posixpath.join(new, posixpath.basename(each)) for each in sources]
    if sources != [fs._strip_protocol(path1)]:  # of a glob, they keep what tells them apart
        return list(other_paths(sources, new, exists=len(sources) == 1))
    return [inside(fs, sources[0], path2)]


def inside(fs: GofsFileSystem, source: str, target: str) -> str:
    """`target`, or the source's name in it, where it is a directory or ends in a slash."""
    new: str = fs._strip_protocol(target)
    if (target.endswith("/") or fs.isdir(new)) and not fs.is_same(source, new):
        return posixpath.join(new, posixpath.basename(source))
    return new
