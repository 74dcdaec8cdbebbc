# SPDX-License-Identifier: Apache-2.0
"""Opening files, by path or by identity, with the modes and buffers of the built-in open()."""

from __future__ import annotations

import io
import os
import uuid
from typing import TYPE_CHECKING, BinaryIO, cast

from gofs._closing import closed_on_error
from gofs._file import File
from gofs._modes import parse_mode
from gofs._numbers import LONG_MAX, permissions_number, text, whole_number

if TYPE_CHECKING:
    from gofs import _core
    from gofs._identity import Identity
    from gofs._modes import Mode
    from gofs._typing import AnyPath
    from gofs._volume import Volume

# Of buffered files, unless the caller says how large: calls of the file system cost more than
# those of the host, on a GPU.
_BUFFER_BYTES = 128 << 10


def open_file(
    volume: Volume, path: AnyPath, mode: str, buffering: int, permissions: int
) -> File | BinaryIO:
    """Volume.open()."""
    parsed = parse_mode(mode)
    buffering = whole_number("buffering", buffering, least=-1, most=LONG_MAX)
    permissions = permissions_number(permissions)
    if buffering == 1:
        raise ValueError("buffering=1 is for text: give a size in bytes, or -1")
    name = os.fspath(path)
    core = volume._core.open(name, parsed.flags, permissions)
    file = _file_of(volume, core, name, parsed, is_buffered=buffering != 0)
    if buffering == 0:
        return file
    size = buffering if buffering > 0 else _BUFFER_BYTES
    with closed_on_error(file):
        if parsed.readable and parsed.writable:
            return cast(BinaryIO, io.BufferedRandom(file, size))
        if parsed.readable:
            return io.BufferedReader(file, size)
        return io.BufferedWriter(file, size)


def open_inode(volume: Volume, identity: Identity, mode: str) -> File:
    """Volume.open_inode()."""
    try:
        of_volume, ino, generation = identity
    except (TypeError, ValueError):
        raise TypeError(f"identity: what identity() gave is wanted, not {identity!r}") from None
    parsed = parse_mode(mode)
    if parsed.flags & (os.O_EXCL | os.O_TRUNC):
        raise ValueError(f"invalid mode: {mode!r}: the file is there: 'rb', 'r+b', 'ab' or 'a+b'")
    name = f"inode {whole_number('ino', ino, most=2**64 - 1)}"
    core = volume._core.open_inode(
        _bytes_of(text("uuid", of_volume)),
        ino,
        whole_number("generation", generation),
        parsed.flags & ~os.O_CREAT,
        name,
    )
    return _file_of(volume, core, name, parsed)


def _file_of(
    volume: Volume,
    core: _core.OpenFile,
    name: str | bytes,
    mode: Mode,
    *,
    is_buffered: bool = False,
) -> File:
    with closed_on_error(core):
        return File(volume, core, name, mode, is_buffered=is_buffered)


def _bytes_of(of_volume: str) -> bytes:
    try:
        return uuid.UUID(of_volume).bytes
    except ValueError:
        raise ValueError(f"uuid: a UUID is wanted, not {of_volume!r}") from None
