# SPDX-License-Identifier: Apache-2.0
"""Files and trees that fsspec has removed."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gofs._volume import Volume


def remove(volume: Volume, paths: list[str], recursive: bool, maxdepth: int | None) -> None:
    """GofsFileSystem.rm(), of paths that are expanded."""
    trees = {each for each in paths if volume.isdir(each) and not volume.islink(each)}
    if trees and not recursive:
        raise IsADirectoryError(f"{min(trees)}: a directory: remove it with recursive=True")
    for each in reversed(paths):  # what is in a directory before that
        if each in trees:
            _remove_tree(volume, each, maxdepth)
        else:
            volume.unlink(each)


def _remove_tree(volume: Volume, path: str, maxdepth: int | None) -> None:
    top = path.rstrip("/").count("/")
    for here, folders, files in volume.walk(path, topdown=False):
        if maxdepth is not None and here.rstrip("/").count("/") - top >= maxdepth:
            continue
        for name in files:
            volume.unlink(posixpath.join(here, name))
        for name in folders:
            below = posixpath.join(here, name)
            if volume.islink(below):
                volume.unlink(below)
            else:
                volume.rmdir(below)
    if path != "/":
        volume.rmdir(path)
