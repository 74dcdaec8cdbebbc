# SPDX-License-Identifier: Apache-2.0
"""Open files, with what fsspec asks of its own: `fs`, `path`, `size`, and that they are pickled."""

from __future__ import annotations

import contextlib
import errno
import io
import os
from typing import TYPE_CHECKING, Any, cast

from gofs._closing import closed_on_error
from gofs._errors import raise_error
from gofs._modes import parse_mode
from gofs._names import RENAME_NOREPLACE
from gofs._replacing import Replaced, hand_over, named, pending_name, replaced_by

if TYPE_CHECKING:
    from collections.abc import Callable

    from gofs._file import File
    from gofs.fsspec import GofsFileSystem

_BUFFER_BYTES = 1 << 20


def opened(fs: GofsFileSystem, path: str, mode: str, block_size: int | None) -> Opened:
    """`block_size` is that of the buffer."""
    parsed = parse_mode(mode)
    file = fs.volume.open(path, mode)
    with closed_on_error(file):
        if parsed.readable and parsed.writable:
            return UpdatedFile(fs, path, file, block_size)
        return (ReadFile if parsed.readable else WrittenFile)(fs, path, file, block_size)


class Opened(io.BufferedIOBase):
    """What all of them have."""

    def __init__(
        self, fs: GofsFileSystem, path: str, file: File, block_size: int | None
    ) -> None:
        self.fs = fs
        self.path = path
        self.blocksize = block_size if block_size and block_size > 0 else _BUFFER_BYTES
        # Of io.BufferedReader and its like, which follow in the order of bases.
        super().__init__(file, self.blocksize)  # type: ignore[call-arg]

    @property
    def size(self) -> int:
        """How large the file is now; what is still in the buffer does not count."""
        return int(cast("Any", self).raw.stat().st_size)

    def __reduce__(self) -> tuple[Callable[..., Opened], tuple[Any, ...]]:
        """Opened again where it is unpickled, at the same position."""
        if self.writable():
            raise TypeError(f"cannot pickle {self.path}: open for writing")
        return _opened_again, (self.fs, self.path, self.blocksize, self.tell())

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.__reduce__()  # and not that of io.BufferedReader, which refuses


class ReadFile(Opened, io.BufferedReader):
    """A file that is read."""


class WrittenFile(Opened, io.BufferedWriter):
    """A file that is written."""


class UpdatedFile(Opened, io.BufferedRandom):
    """A file that is read and written."""


class PendingFile(WrittenFile):
    """A file of a transaction: it has another name until it is complete."""

    def __init__(
        self, fs: GofsFileSystem, path: str, block_size: int | None, *, replaces: bool
    ) -> None:
        self._volume = fs.volume
        self._old = replaced_by(self._volume, path) if replaces else Replaced(path, None)
        self._pending = pending_name(self._old.path)
        self._flags = 0 if replaces else RENAME_NOREPLACE
        permissions = self._old.permissions
        with named(self._pending, path):
            file = self._volume.open(self._pending, "xb", permissions=permissions)
        try:
            with closed_on_error(file):
                super().__init__(fs, path, file, block_size)
        except BaseException:
            with contextlib.suppress(OSError):
                self._volume.unlink(self._pending)
            raise

    @property
    def target(self) -> str:
        """The name that it is to get: of a symbolic link, what that leads to."""
        return self._old.path

    @property
    def replaces(self) -> bool:
        """Whether it may take the name of another file."""
        return self._flags == 0

    def commit(self) -> None:
        """Makes the contents durable, and then gives the file its name."""
        self.make_ready()
        self.take_name()

    def make_ready(self) -> None:
        """Makes the contents durable. Raises what take_name() would, by what is there now."""
        with named(self._pending, self.path):
            self.close()  # which its program has done, mostly
            self._volume.fsync(self._pending)
            hand_over(self._volume, self._old, self._pending, self._old.permissions)
        if not self.replaces and self._volume.lexists(self.target):
            raise_error(errno.EEXIST, self.path)
        if self._volume.isdir(self.target):
            raise_error(errno.EISDIR, self.path)

    def take_name(self) -> None:
        with named(self._pending, self.path):
            self._volume.rename(self._pending, self.target, flags=self._flags)

    def discard(self) -> None:
        with contextlib.suppress(OSError):  # what is in the buffer is not wanted any more
            self.close()
        self._volume.unlink(self._pending)


def _opened_again(fs: GofsFileSystem, path: str, block_size: int, position: int) -> Opened:
    file = opened(fs, path, "rb", block_size)
    file.seek(position, os.SEEK_SET)
    return file
