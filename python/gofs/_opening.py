# SPDX-License-Identifier: Apache-2.0
"""Opening files, with the modes and buffers of the built-in open()."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, BinaryIO, cast

from gofs._file import File
from gofs._modes import parse_mode
from gofs._numbers import LONG_MAX, permissions_number, whole_number

if TYPE_CHECKING:
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
    core = volume._core.open(path, parsed.flags, permissions)
    file = File(volume, core, os.fspath(path), parsed, is_buffered=buffering != 0)
    if buffering == 0:
        return file
    size = buffering if buffering > 0 else _BUFFER_BYTES
    if parsed.readable and parsed.writable:
        return cast(BinaryIO, io.BufferedRandom(file, size))
    if parsed.readable:
        return io.BufferedReader(file, size)
    return io.BufferedWriter(file, size)
