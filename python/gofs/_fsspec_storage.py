# SPDX-License-Identifier: Apache-2.0
"""What the specs of volumes name, whichever way they are spelled."""

from __future__ import annotations

import os
import re
import stat
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote_to_bytes

from gofs._mount_or_attach import is_socket

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typing_extensions import TypeAlias

    # Of a member of a volume: what it is, and its options as they are written.
    Member: TypeAlias = tuple[str | tuple[str, int, int], str]

_ENDS = re.compile(r"[?+]")
_FILE = "file:"
_PROVIDER = re.compile(r"[^/]+:")  # as in vfio:ADDRESS and ram:SIZE


class Storage(NamedTuple):
    """What a volume is known by. Those of one storage share `found`."""

    found: tuple[Member, ...]  # files and devices by what they are, not by their names
    place: tuple[Member, ...]  # all by their paths, as long as a file has no name


def storage_of(spec: str) -> Storage:
    """Of the moment, and of the folder that the process is in."""
    # A server that has ended comes back at the same path, with another socket.
    members = [(spec, "")] if is_socket(spec) else list(_members(spec))
    return Storage(
        tuple((_found(path), options) for path, options in members),
        tuple((_place(path), options) for path, options in members),
    )


def _members(spec: str) -> Iterator[tuple[str, str]]:
    """The path of each, and its options, as the volume's own reader takes them apart."""
    plus, rest = "+", spec
    while plus:
        end = _path_end(rest)
        options, plus, behind = rest[end:].partition("+")
        yield rest[:end], options
        rest = behind


def _path_end(text: str) -> int:
    """A path may have what would end it, where there is such a file."""
    ends = [found.start() for found in _ENDS.finditer(text)] + [len(text)]
    if _PROVIDER.match(text):
        return ends[0]
    return next((end for end in reversed(ends) if os.path.exists(text[:end])), ends[0])


def _found(path: str) -> str | tuple[str, int, int]:
    try:
        status = os.stat(_decoded(path))
    except (OSError, ValueError):
        return _place(path)
    if stat.S_ISBLK(status.st_mode):
        return "device", os.major(status.st_rdev), os.minor(status.st_rdev)
    if stat.S_ISSOCK(status.st_mode):
        return _place(path)
    return "file", status.st_dev, status.st_ino


def _place(path: str) -> str:
    decoded = _decoded(path)
    is_path = decoded != path or not _PROVIDER.match(path) or os.path.exists(path)
    return os.path.realpath(decoded) if is_path else path


def _decoded(path: str) -> str:
    if not path.startswith(_FILE):
        return path
    return os.fsdecode(unquote_to_bytes(path.removeprefix(_FILE)))
