# SPDX-License-Identifier: Apache-2.0
"""What scandir() finds."""

from __future__ import annotations

import os
import posixpath
import stat
from typing import TYPE_CHECKING, AnyStr, Generic, cast

from gofs._closing import Closing
from gofs._errors import refuse_closed
from gofs._numbers import truth_value

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from typing_extensions import Self

    from gofs import _core
    from gofs._names import Names

# FileType of gofs/types.h.
_UNKNOWN = 0
_REGULAR = 1
_DIRECTORY = 2
_SYMLINK = 7


class DirEntry(Generic[AnyStr]):
    """An entry of a directory, as os.DirEntry.

    `name` is the entry's, and `path` that after the directory's as scandir() was given it. Stats
    are asked for when they are wanted first, and kept.
    """

    __slots__ = ("_before", "_ino", "_lstat", "_stat", "_type", "_volume", "name")

    name: AnyStr
    _before: AnyStr

    def __init__(
        self, volume: Names, before: AnyStr, name: AnyStr, ino: int, file_type: int
    ) -> None:
        """`before`: what stands before all names of the directory."""
        self.name = name
        self._before = before
        self._volume = volume
        self._ino = ino
        self._type = file_type
        self._stat: os.stat_result | None = None
        self._lstat: os.stat_result | None = None

    @property
    def path(self) -> AnyStr:
        return self._before + self.name

    def inode(self) -> int:
        return self._ino

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """False where it is gone, or a link leads nowhere."""
        return self._is(_DIRECTORY, stat.S_ISDIR, truth_value("follow_symlinks", follow_symlinks))

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        """False where it is gone, or a link leads nowhere."""
        return self._is(_REGULAR, stat.S_ISREG, truth_value("follow_symlinks", follow_symlinks))

    def is_symlink(self) -> bool:
        return self._is(_SYMLINK, stat.S_ISLNK, False)

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        if truth_value("follow_symlinks", follow_symlinks) and self._may_be_link():
            if self._stat is None:
                self._stat = self._volume.stat(self.path)
            return self._stat
        if self._lstat is None:
            self._lstat = self._volume.lstat(self.path)
        return self._lstat

    def __fspath__(self) -> AnyStr:
        return self.path

    def __repr__(self) -> str:
        return f"<gofs.DirEntry {self.name!r}>"

    def _may_be_link(self) -> bool:
        return self._type in (_SYMLINK, _UNKNOWN)

    def _is(self, file_type: int, test: Callable[[int], bool], follow_symlinks: bool) -> bool:
        if self._type != _UNKNOWN and not (follow_symlinks and self._type == _SYMLINK):
            return self._type == file_type
        try:
            return test(self.stat(follow_symlinks=follow_symlinks).st_mode)
        except FileNotFoundError:
            return False


class ScandirIterator(Closing, Generic[AnyStr]):
    """The entries of a directory, in no order, without `.` and `..`; as os.scandir() gives them.

    Where some cannot be read, the iteration raises the error after all others.
    """

    def __init__(self, volume: Names, core: _core.OpenFile, directory: AnyStr) -> None:
        self._core = core
        self._entries: Generator[DirEntry[AnyStr], None, None] = _entries(volume, core, directory)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> DirEntry[AnyStr]:
        return next(self._entries)

    def close(self) -> None:
        """Ends the iteration."""
        self._entries.close()
        self._core.close()


def _entries(
    volume: Names, core: _core.OpenFile, directory: AnyStr
) -> Generator[DirEntry[AnyStr], None, None]:
    as_given = cast(
        "Callable[[bytes], AnyStr]", os.fsdecode if isinstance(directory, str) else bytes
    )
    before = posixpath.join(directory, as_given(b""))
    try:
        while batch := core.readdir():
            for name, ino, file_type in batch:
                refuse_closed(volume._core)
                yield DirEntry(volume, before, as_given(name), ino, file_type)
    finally:
        core.close()
