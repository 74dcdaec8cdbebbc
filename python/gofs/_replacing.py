# SPDX-License-Identifier: Apache-2.0
"""Files that are replaced as a whole: others see the old one or the new one, never a part."""

from __future__ import annotations

import contextlib
import posixpath
import secrets
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from gofs._volume import Volume

_BUFFER_BYTES = 1 << 20


def pending_name(path: str) -> str:
    """What a file that is to be `path` is called until it is complete: in the same folder."""
    folder, name = posixpath.split(path)
    return posixpath.join(folder, _pending_prefix(name) + secrets.token_hex(8))


def is_pending(name: str, of: str) -> bool:
    """Whether a process that died may have left `name` of a file that was to be `of`."""
    return name.startswith(_pending_prefix(of))


def _pending_prefix(name: str) -> str:
    return f".{name[:200]}."


@contextlib.contextmanager
def replacing(
    volume: Volume, path: str, *, sync: bool, permissions: int = 0o666
) -> Iterator[BinaryIO]:
    """A file to write to, which becomes `path` at the end of the `with` block.

    With `sync` its contents are durable before it has that name, and the name is when the block
    has ended. Where the block raises, nothing is left of the file.
    """
    pending = pending_name(path)
    file = volume.open(pending, "xb", buffering=_BUFFER_BYTES, permissions=permissions)
    try:
        with file:
            yield file
        if sync:
            volume.fsync(pending)
        volume.rename(pending, path)
    except BaseException:
        with contextlib.suppress(OSError, ValueError):
            volume.unlink(pending)
        raise
    if sync:
        volume.fsync(path)
