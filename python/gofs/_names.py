# SPDX-License-Identifier: Apache-2.0
"""What `os` and `os.path` have for paths: directories, names and attributes."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Any, cast, overload

from gofs._buffers import memory_to_read
from gofs._directories import makedirs, removedirs, renames, walk
from gofs._entries import ScandirIterator
from gofs._glob import glob
from gofs._numbers import LONG_MAX, pair, permissions_number, truth_value, whole_number
from gofs._stat import (
    NOW,
    created_seconds,
    stat_result,
    time_from_nanoseconds,
    time_from_seconds,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gofs import _core
    from gofs._typing import AnyPath, BytesPath, Memory, StrPath

# Flags of rename().
RENAME_NOREPLACE = 1
RENAME_EXCHANGE = 2

# gofs::kKeepId.
_KEEP_ID = 0xFFFFFFFF


class Names:
    """The calls of a volume about its tree, which never open a file to read or write it."""

    def __init__(self, core: _core.Volume, device: int) -> None:
        """`device` is st_dev of all files: which volume they are of."""
        self._core = core
        self._device = device

    # --- Directories -----------------------------------------------------------------------------

    @overload
    def scandir(self, path: StrPath = "/") -> ScandirIterator[str]: ...

    @overload
    def scandir(self, path: BytesPath) -> ScandirIterator[bytes]: ...

    def scandir(self, path: AnyPath = "/") -> ScandirIterator[str] | ScandirIterator[bytes]:
        """The entries of a directory, in no order; a context manager, too."""
        directory = os.fspath(path)
        core = self._core.open(directory, os.O_RDONLY | os.O_DIRECTORY, 0)
        if isinstance(directory, bytes):
            return ScandirIterator(self, core, directory)
        return ScandirIterator(self, core, directory)

    @overload
    def listdir(self, path: StrPath = "/") -> list[str]: ...

    @overload
    def listdir(self, path: BytesPath) -> list[bytes]: ...

    def listdir(self, path: AnyPath = "/") -> list[str] | list[bytes]:
        """The names in a directory, in no order."""
        with self.scandir(path) as entries:
            return cast("list[str] | list[bytes]", [entry.name for entry in entries])

    @overload
    def walk(
        self,
        top: StrPath = "/",
        topdown: bool = True,
        onerror: Callable[[OSError], object] | None = None,
        followlinks: bool = False,
    ) -> Iterator[tuple[str, list[str], list[str]]]: ...

    @overload
    def walk(
        self,
        top: BytesPath,
        topdown: bool = True,
        onerror: Callable[[OSError], object] | None = None,
        followlinks: bool = False,
    ) -> Iterator[tuple[bytes, list[bytes], list[bytes]]]: ...

    def walk(
        self,
        top: AnyPath = "/",
        topdown: bool = True,
        onerror: Callable[[OSError], object] | None = None,
        followlinks: bool = False,
    ) -> Iterator[tuple[Any, list[Any], list[Any]]]:
        """(path, directories, other names) of each directory below `top`, as os.walk().

        As there, directories that cannot be read are left out where no `onerror` is given.
        """
        truth_value("topdown", topdown)
        truth_value("followlinks", followlinks)
        return walk(self, top, topdown, onerror, followlinks)

    def glob(
        self, pathname: AnyPath, *, recursive: bool = False, include_hidden: bool = False
    ) -> list[str]:
        """The paths that match a pattern, in no order, as glob.glob(): `*`, `?` and `[...]` within
        a name, and with `recursive` `**` for any folders. Names that begin with a dot have to be
        asked for by a dot, or by `include_hidden`."""
        return glob(
            self,
            os.fsdecode(pathname),
            recursive=truth_value("recursive", recursive),
            include_hidden=truth_value("include_hidden", include_hidden),
        )

    def mkdir(self, path: AnyPath, mode: int = 0o777) -> None:
        """There is no umask."""
        self._core.mkdir(path, permissions_number(mode, "mode"))

    def makedirs(self, name: AnyPath, mode: int = 0o777, exist_ok: bool = False) -> None:
        """mkdir() with all parents that are missing, which have mode 0o777."""
        # Else parents would be made first.
        made, may_exist = permissions_number(mode, "mode"), truth_value("exist_ok", exist_ok)
        makedirs(self, os.fsdecode(name), made, exist_ok=may_exist)

    def rmdir(self, path: AnyPath) -> None:
        self._core.rmdir(path)

    def removedirs(self, name: AnyPath) -> None:
        """rmdir(), and that of all parents up to the first that is not empty."""
        removedirs(self, os.fspath(name))

    # --- Names -----------------------------------------------------------------------------------

    def rename(self, src: AnyPath, dst: AnyPath, *, flags: int = 0) -> None:
        """Renames `src` to `dst`, which replaces what had that name.

        `flags` may be RENAME_NOREPLACE (FileExistsError if something has it) or RENAME_EXCHANGE
        (each gets the other's name).
        """
        self._core.rename(src, dst, whole_number("flags", flags))

    def replace(self, src: AnyPath, dst: AnyPath) -> None:
        """rename() without flags."""
        self._core.rename(src, dst, 0)

    def renames(self, old: AnyPath, new: AnyPath) -> None:
        """rename() to where parents may be missing, which are made; those of `old` that are empty
        then are removed."""
        renames(self, os.fspath(old), os.fspath(new))

    def unlink(self, path: AnyPath) -> None:
        """Removes a name of what is not a directory."""
        self._core.unlink(path)

    def remove(self, path: AnyPath) -> None:
        """The same as unlink()."""
        self._core.unlink(path)

    def symlink(self, src: AnyPath, dst: AnyPath, target_is_directory: bool = False) -> None:
        """Makes `dst` a symbolic link to `src`. The last argument means nothing, as on Linux."""
        truth_value("target_is_directory", target_is_directory)
        self._core.symlink(src, dst)

    def link(self, src: AnyPath, dst: AnyPath) -> None:
        """Makes `dst` another name of `src`, which is not followed where it is a symbolic link."""
        self._core.link(src, dst)

    @overload
    def readlink(self, path: StrPath) -> str: ...

    @overload
    def readlink(self, path: BytesPath) -> bytes: ...

    def readlink(self, path: AnyPath) -> str | bytes:
        target = self._core.readlink(path)
        return target if isinstance(os.fspath(path), bytes) else os.fsdecode(target)

    def mknod(self, path: AnyPath, mode: int = 0o600, device: int = 0) -> None:
        """Makes a FIFO, a socket, a device or an empty file, as the type in `mode` says."""
        device = whole_number("device", device, most=LONG_MAX)
        self._core.mknod(
            path, permissions_number(mode, "mode"), os.major(device), os.minor(device)
        )

    def mkfifo(self, path: AnyPath, mode: int = 0o666) -> None:
        permissions = stat.S_IMODE(permissions_number(mode, "mode"))
        self._core.mknod(path, stat.S_IFIFO | permissions, 0, 0)

    # --- Attributes ------------------------------------------------------------------------------

    def stat(self, path: AnyPath, *, follow_symlinks: bool = True) -> os.stat_result:
        """What os.stat() says. `st_dev` is made of the volume's UUID."""
        follow = truth_value("follow_symlinks", follow_symlinks)
        return self._result_of(self._core.stat(path) if follow else self._core.lstat(path))

    def lstat(self, path: AnyPath) -> os.stat_result:
        return self._result_of(self._core.lstat(path))

    def _result_of(self, stat: _core.Stat) -> os.stat_result:
        return stat_result(stat, self._device)

    def created(self, path: AnyPath) -> float:
        """When the inode was made, in seconds since 1970; 0 where the volume does not keep that."""
        return created_seconds(self._core.stat(path))

    def access(self, path: AnyPath, mode: int) -> bool:
        """Whether the volume's user may do what `mode` says, of os.R_OK and the others."""
        wanted = whole_number("mode", mode)
        try:
            self._core.access(path, wanted)
        except OSError:
            return False
        return True

    def exists(self, path: AnyPath) -> bool:
        """False for a symbolic link that leads nowhere."""
        return self._mode_of(path) is not None

    def lexists(self, path: AnyPath) -> bool:
        return self._mode_of(path, follow_symlinks=False) is not None

    def isdir(self, path: AnyPath) -> bool:
        mode = self._mode_of(path)
        return mode is not None and stat.S_ISDIR(mode)

    def isfile(self, path: AnyPath) -> bool:
        mode = self._mode_of(path)
        return mode is not None and stat.S_ISREG(mode)

    def islink(self, path: AnyPath) -> bool:
        mode = self._mode_of(path, follow_symlinks=False)
        return mode is not None and stat.S_ISLNK(mode)

    def _mode_of(self, path: AnyPath, *, follow_symlinks: bool = True) -> int | None:
        """None where it cannot be reached, or no file can be called so, as in os.path."""
        core = self._core
        try:
            return (core.stat(path) if follow_symlinks else core.lstat(path)).mode
        except OSError:
            return None
        except ValueError:
            if core.closed:
                raise
            return None

    def chmod(self, path: AnyPath, mode: int) -> None:
        """The permissions of `mode`; an access list follows them."""
        self._core.chmod(path, permissions_number(mode, "mode"))

    def chown(self, path: AnyPath, uid: int, gid: int, *, follow_symlinks: bool = True) -> None:
        """-1 leaves the owner or the group as it is."""
        follow = truth_value("follow_symlinks", follow_symlinks)
        self._core.chown(path, _id("uid", uid), _id("gid", gid), follow)

    def lchown(self, path: AnyPath, uid: int, gid: int) -> None:
        self.chown(path, uid, gid, follow_symlinks=False)

    def utime(
        self,
        path: AnyPath,
        times: tuple[float, float] | None = None,
        *,
        ns: tuple[int, int] | None = None,
        follow_symlinks: bool = True,
    ) -> None:
        """Sets the times of access and change, in seconds or nanoseconds; to now without them."""
        if times is not None and ns is not None:
            raise ValueError("utime: you may specify either 'times' or 'ns' but not both")
        accessed = modified = NOW
        if times is not None:
            accessed, modified = map(time_from_seconds, pair("times", times))
        elif ns is not None:
            accessed, modified = map(time_from_nanoseconds, pair("ns", ns))
        follow = truth_value("follow_symlinks", follow_symlinks)
        self._core.utimens(path, accessed, modified, follow)

    def getxattr(self, path: AnyPath, attribute: AnyPath, *, follow_symlinks: bool = True) -> bytes:
        """The value of an extended attribute; its name has a prefix, as in "user.colour"."""
        follow = truth_value("follow_symlinks", follow_symlinks)
        return self._core.getxattr(path, attribute, follow)

    def listxattr(self, path: AnyPath = "/", *, follow_symlinks: bool = True) -> list[str]:
        """The names of all that the caller may know of."""
        follow = truth_value("follow_symlinks", follow_symlinks)
        return self._core.listxattr(path, follow)

    def setxattr(
        self,
        path: AnyPath,
        attribute: AnyPath,
        value: Memory,
        flags: int = 0,
        *,
        follow_symlinks: bool = True,
    ) -> None:
        """`flags`: 0, os.XATTR_CREATE or os.XATTR_REPLACE. ENOSPC where the inode has no room."""
        flags = whole_number("flags", flags)
        follow = truth_value("follow_symlinks", follow_symlinks)
        self._core.setxattr(path, attribute, memory_to_read(value), flags, follow)

    def removexattr(
        self, path: AnyPath, attribute: AnyPath, *, follow_symlinks: bool = True
    ) -> None:
        follow = truth_value("follow_symlinks", follow_symlinks)
        self._core.removexattr(path, attribute, follow)


def _id(name: str, given: int) -> int:
    number = whole_number(name, given, least=-1)
    return _KEEP_ID if number == -1 else number
