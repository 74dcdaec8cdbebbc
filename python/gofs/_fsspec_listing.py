# SPDX-License-Identifier: Apache-2.0
"""What fsspec is told of files: of a directory by one batch of stats."""

from __future__ import annotations

import posixpath
import stat
from typing import TYPE_CHECKING, Any, Union

from gofs._errors import LEADS_NOWHERE
from gofs._stat import created_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from typing_extensions import TypeAlias

    from gofs import _core
    from gofs._volume import Volume

    Info: TypeAlias = dict[str, Any]
    Walked: TypeAlias = tuple[str, Any, Any]  # a path, its directories, what else it has
    OnError: TypeAlias = Union[str, Callable[[OSError], object]]

_KINDS = {stat.S_IFDIR: "directory", stat.S_IFREG: "file", stat.S_IFLNK: "link"}


def info_of(volume: Volume, path: str) -> Info:
    """Of a link it is what it leads to; of one that leads nowhere the type is "link"."""
    found = volume._core.lstat(path)
    if stat.S_ISLNK(found.mode):
        return _info_of_link(volume, path, volume._core.stat_many([path])[0])
    return _info(volume, path, found)


def infos_below(volume: Volume, directory: str) -> list[Info]:
    """Of all entries, in their order."""
    with volume.scandir(directory) as entries:
        are_links = {entry.path: entry.is_symlink() for entry in entries}
    paths = sorted(are_links)
    infos = []
    for path, found in zip(paths, volume._core.stat_many(paths)):
        try:
            if are_links[path]:
                infos.append(_info_of_link(volume, path, found))
            else:
                infos.append(_info(volume, path, _taken(found)))
        except FileNotFoundError:
            pass  # it has gone since
    return infos


def _info_of_link(volume: Volume, path: str, target: _core.Stat | OSError) -> Info:
    if isinstance(target, OSError) and target.errno in LEADS_NOWHERE:
        info = {**_info(volume, path, volume._core.lstat(path)), "size": 0}
    else:
        info = _info(volume, path, _taken(target))
    return {**info, "islink": True, "destination": volume.readlink(path)}


def _taken(found: _core.Stat | OSError) -> _core.Stat:
    if isinstance(found, OSError):
        raise found
    return found


def _info(volume: Volume, path: str, core: _core.Stat) -> Info:
    found = volume._result_of(core)
    return {
        "name": path,
        "size": found.st_size,
        "type": _KINDS.get(stat.S_IFMT(found.st_mode), "other"),
        "created": created_seconds(core) or found.st_ctime,
        "islink": False,
        "mode": found.st_mode,
        "uid": found.st_uid,
        "gid": found.st_gid,
        "mtime": found.st_mtime,
        "ino": found.st_ino,
        "nlink": found.st_nlink,
    }


def walk(
    list_of: Callable[[str], list[Info]],
    top: str,
    *,
    maxdepth: int | None,
    topdown: bool,
    on_error: OnError,
    detail: bool,
) -> Iterator[Walked]:
    """AbstractFileSystem.walk(). Links to directories are listed, and not gone into."""
    if maxdepth is not None and maxdepth < 1:
        raise ValueError("maxdepth must be at least 1")
    left: list[tuple[str, int] | Walked] = [(top, 1)]
    while left:
        here = left.pop()
        if len(here) == 3:
            yield here
            continue
        path, depth = here
        try:
            listing = list_of(path)
        except OSError as error:
            if on_error == "raise":
                raise
            if callable(on_error):
                on_error(error)
            continue
        directories, others, links = _sorted_out(path, listing)
        walked = (path, directories, others) if detail else (path, list(directories), list(others))
        if topdown:
            yield walked
        else:
            left.append(walked)
        if maxdepth is None or depth < maxdepth:
            # The caller may have changed them.
            below = [name for name in walked[1] if name not in links]
            left += ((posixpath.join(path, name), depth + 1) for name in reversed(below))


def _sorted_out(
    path: str, listing: list[Info]
) -> tuple[dict[str, Info], dict[str, Info], set[str]]:
    """Directories and others by name, of a file that is itself by no name; which are links."""
    directories: dict[str, Info] = {}
    others: dict[str, Info] = {}
    for info in listing:
        name = "" if info["name"] == path else posixpath.basename(info["name"])
        (directories if info["type"] == "directory" else others)[name] = info
    return directories, others, {name for name, info in directories.items() if info["islink"]}
