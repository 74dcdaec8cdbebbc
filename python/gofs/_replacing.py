# SPDX-License-Identifier: Apache-2.0
"""Files that are replaced as a whole: others see the old one or the new one, never a part."""

from __future__ import annotations

import contextlib
import errno
import os
import posixpath
import secrets
from typing import TYPE_CHECKING, NamedTuple, cast

from gofs._errors import raise_error

if TYPE_CHECKING:
    import io
    from collections.abc import Iterator

    from gofs._file import File
    from gofs._volume import Volume

_BUFFER_BYTES = 1 << 20
_NAME_BYTES = 200  # of the name, in that of a file that is to have it
_PERMISSIONS = 0o777  # which writing to a file leaves as they are
_LINKS_MAX = 40  # as Linux follows


def pending_name(path: str) -> str:
    """What a file that is to be `path` is called until it is complete: in the same folder."""
    folder, name = posixpath.split(path)
    return posixpath.join(folder, _pending_prefix(name) + secrets.token_hex(8))


def is_pending(name: str, of: str) -> bool:
    """Whether a process that died may have left `name` of a file that was to be `of`."""
    return name.startswith(_pending_prefix(of))


def _pending_prefix(name: str) -> str:
    # A name has 255 bytes at most, and is not to be cut within a character.
    beginning = os.fsencode(name)[:_NAME_BYTES].decode(errors="ignore")
    return f".{beginning}."


@contextlib.contextmanager
def replacing(
    volume: Volume, path: str, *, sync: bool, permissions: int | None = None
) -> Iterator[io.BufferedWriter]:
    """A file to write to, which becomes `path` at the end of the `with` block.

    What is there is replaced as open() would have it: where it is a symbolic link, what that leads
    to is, and the new file has its owner, where the caller may say so. It has its permissions as
    well, or 0o666 where nothing is there, unless others are given.

    With `sync` its contents are durable before it has that name, and the name is when the block
    has ended. Where the block raises, nothing is left of the file.
    """
    old = replaced_by(volume, path)
    pending = pending_name(old.path)
    if permissions is None:
        permissions = old.permissions
    with named(pending, path):
        opened = volume.open(pending, "xb", buffering=_BUFFER_BYTES, permissions=permissions)
        file = cast("io.BufferedWriter", opened)
        raw = cast("File", file.raw)
        # It stays open until it is durable: its permissions may not allow to read it.
        with file:
            try:
                yield file
                file.flush()
                hand_over(volume, old, pending, permissions)
                if sync:
                    raw.fsync()
                volume.rename(pending, old.path)
            except BaseException:
                with contextlib.suppress(OSError, ValueError):
                    volume.unlink(pending)
                raise
            if sync:
                raw.fsync()


@contextlib.contextmanager
def named(pending: str, path: str) -> Iterator[None]:
    """Errors about the file that is to be `path` have that name, which the caller knows."""
    try:
        yield
    except OSError as error:
        if error.filename != pending:
            raise
        raise type(error)(error.errno, error.strerror, path) from None


class Replaced(NamedTuple):
    """What a new file replaces."""

    path: str  # which symbolic links lead to
    status: os.stat_result | None  # None: nothing is there

    @property
    def permissions(self) -> int:
        return 0o666 if self.status is None else self.status.st_mode & _PERMISSIONS


def replaced_by(volume: Volume, path: str) -> Replaced:
    """What a file that is to be `path` replaces, as open() would have it."""
    target = _followed(volume, path)
    return Replaced(target, _status_of(volume, target))


def hand_over(volume: Volume, old: Replaced, pending: str, permissions: int) -> None:
    """Gives a file that is complete the owner of the one it replaces, and its permissions."""
    if old.status is not None:
        _keep_owner(volume, pending, old.status)
        volume.chmod(pending, permissions)  # which an access list may have lessened


def _followed(volume: Volume, path: str) -> str:
    """What `path` leads to, where it is a symbolic link; it may be missing."""
    target = path
    for _ in range(_LINKS_MAX):
        if not volume.islink(target):
            return target
        target = posixpath.join(posixpath.dirname(target), volume.readlink(target))
    raise_error(errno.ELOOP, path)


def _status_of(volume: Volume, path: str) -> os.stat_result | None:
    try:
        return volume.lstat(path)
    except FileNotFoundError:
        return None


def _keep_owner(volume: Volume, path: str, old: os.stat_result) -> None:
    new = volume.lstat(path)
    if (new.st_uid, new.st_gid) == (old.st_uid, old.st_gid):
        return
    with contextlib.suppress(OSError):
        volume.chown(path, old.st_uid, old.st_gid)
