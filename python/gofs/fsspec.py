# SPDX-License-Identifier: Apache-2.0
"""gofs:// for fsspec, and so for pandas, PyArrow, zarr, Dask and others.

    pandas.read_parquet("gofs:///data.parquet", storage_options={"volume": "vol.img"})
    fsspec.open("gofs://data/log.txt", "wb")    # where GOFS_VOLUMES is "data=vol.img"

The host of a URL is the name of a volume that `register()` or GOFS_VOLUMES names; without one it is
what the option `volume` says.
"""

from __future__ import annotations

import datetime
import os
import posixpath
import shutil
from functools import partial
from glob import has_magic
from typing import TYPE_CHECKING, Any

from fsspec.spec import (  # type: ignore[import-untyped, import-not-found, unused-ignore]
    AbstractFileSystem,
)
from fsspec.utils import (  # type: ignore[import-untyped, import-not-found, unused-ignore]
    stringify_path,
)

from gofs._errors import LEADS_NOWHERE
from gofs._fsspec_files import Opened, PendingFile, opened
from gofs._fsspec_listing import info_of, infos_below, walk
from gofs._fsspec_names import expanded, inside, moves
from gofs._fsspec_reading import Part, first_error, parts_of, read_parts
from gofs._fsspec_removing import remove
from gofs._fsspec_transaction import GofsTransaction
from gofs._fsspec_volumes import VARIABLE, made_again, sent, volumes
from gofs._numbers import truth_value
from gofs._volume import Volume

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typing_extensions import TypeGuard

_PROTOCOL = "gofs://"
_COPY_BYTES = 1 << 30

# Options that fsspec has for all file systems, and gives to each.
_OF_ALL = {
    "add_aliases",
    "add_docs",
    "asynchronous",
    "batch_size",
    "listings_expiry_time",
    "loop",
    "max_paths",
    "skip_instance_cache",
    "use_listings_cache",
}


def register(name: str, volume: Volume) -> None:
    """Has gofs://NAME/path mean files of this volume, in this process, until it is closed.

    Raises ValueError for a name that the host of a URL cannot be, as one with a slash or a colon.
    """
    volumes.register(name, volume)


class GofsFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """The files of a volume, by fsspec.

    Folders that a new file lacks are made, as in an object store (`auto_mkdir`). Nothing is cached:
    listings are those of the moment.
    """

    protocol = "gofs"
    root_marker = "/"
    local_file = False
    transaction_type = GofsTransaction

    def __init__(
        self,
        volume: Volume | str | os.PathLike[str] | None = None,
        writable: bool = False,
        auto_mkdir: bool = True,
        **options: Any,
    ) -> None:
        """`volume`: one that is mounted, the name of one, or what gofs.mount() or attach() takes.

        One that is mounted by this stays mounted until the program ends, or `volume.close()`.
        Other options are those that fsspec has for all file systems; TypeError for what is none.
        """
        for name in options:
            if name not in _OF_ALL and not name.startswith("target_"):
                raise TypeError(f"{name!r} is no option: volume, writable and auto_mkdir are")
        super().__init__(**options)
        if volume is None:
            raise ValueError(
                "which volume? Give storage_options={'volume': 'vol.img'}, or name it as the host "
                f"of the URL, gofs://NAME/path, and in {VARIABLE}='NAME=vol.img'"
            )
        self.auto_mkdir = truth_value("auto_mkdir", auto_mkdir)
        self._given = volume
        self._writable = truth_value("writable", writable)

    @property
    def volume(self) -> Volume:
        """The volume below."""
        if isinstance(self._given, Volume):
            return self._given
        return volumes.find(os.fsdecode(self._given), self._writable)

    def __reduce__(self) -> Any:
        """A volume that was given is mounted again elsewhere, and once for all its file systems."""
        if not isinstance(self._given, Volume):
            return super().__reduce__()
        return made_again, sent(type(self), self.storage_args, self.storage_options)

    @property
    def fsid(self) -> str:
        return self.volume.info.uuid

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(each) for each in path]
        path = stringify_path(path)
        if path.startswith(_PROTOCOL):
            path = path[len(_PROTOCOL) :].partition("/")[2]
        elif path.startswith("gofs:"):
            path = path[len("gofs:") :]
        return "/" + path.strip("/")

    def unstrip_protocol(self, name: str) -> str:
        """The URL of a path: with the volume's name, where it has one."""
        given = self._given if isinstance(self._given, Volume) else os.fsdecode(self._given)
        return _PROTOCOL + volumes.name_of(given) + str(self._strip_protocol(name))

    @staticmethod
    def _get_kwargs_from_urls(path: str) -> dict[str, str]:
        path = stringify_path(path)
        name = path[len(_PROTOCOL) :].partition("/")[0] if path.startswith(_PROTOCOL) else ""
        return {"volume": name} if name else {}

    # --- What is there ---------------------------------------------------------------------------

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """Of a link it is what it leads to, with `islink` and `destination`.

        One that leads nowhere has the type "link" and no bytes.
        """
        return info_of(self.volume, self._strip_protocol(path))

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        path = self._strip_protocol(path)
        truth_value("detail", detail)
        try:
            if detail:
                return infos_below(self.volume, path)
            with self.volume.scandir(path) as entries:
                return sorted(entry.path for entry in entries)
        except OSError as error:
            if error.errno not in LEADS_NOWHERE:
                raise
            found = self.info(path)
            if found["type"] == "directory":  # and not a file, or a link that leads nowhere
                raise
            return [found] if detail else [path]

    def walk(
        self,
        path: str,
        maxdepth: int | None = None,
        topdown: bool = True,
        on_error: Any = "omit",
        detail: bool = False,
        **options: Any,
    ) -> Iterator[tuple[str, Any, Any]]:
        """As that of others. Links to directories are listed, and not gone into."""
        return walk(
            lambda each: self.ls(each, detail=True, **options),
            self._strip_protocol(path),
            maxdepth=maxdepth,
            topdown=truth_value("topdown", topdown),
            on_error=on_error,
            detail=truth_value("detail", detail),
        )

    def exists(self, path: str, **_: Any) -> bool:
        return self.volume.exists(self._strip_protocol(path))

    def lexists(self, path: str, **_: Any) -> bool:
        return self.volume.lexists(self._strip_protocol(path))

    def isdir(self, path: str) -> bool:
        return self.volume.isdir(self._strip_protocol(path))

    def isfile(self, path: str) -> bool:
        return self.volume.isfile(self._strip_protocol(path))

    def islink(self, path: str) -> bool:
        return self.volume.islink(self._strip_protocol(path))

    def is_same(self, path1: str, path2: str) -> bool:
        """Whether both are names of one file, or lead to one."""
        try:
            found = [self.volume.stat(self._strip_protocol(path)) for path in (path1, path2)]
        except OSError:
            return False
        return os.path.samestat(*found)

    def expand_path(
        self,
        path: str | list[str],
        recursive: bool = False,
        maxdepth: int | None = None,
        assume_literal: bool = False,
        **options: Any,
    ) -> list[str]:
        """As that of others. What a file is called names it, also where it looks like a glob."""
        truth_value("recursive", recursive)
        truth_value("assume_literal", assume_literal)
        expand = partial(super().expand_path, recursive=recursive, maxdepth=maxdepth, **options)
        return expanded(self, path, expand, assume_literal=assume_literal)

    def sizes(self, paths: list[str]) -> list[int]:
        """By one batch."""
        return self.volume._core.sizes([self._strip_protocol(path) for path in paths])

    def du(
        self,
        path: str,
        total: bool = True,
        maxdepth: int | None = None,
        withdirs: bool = False,
        **options: Any,
    ) -> Any:
        truth_value("total", total)
        truth_value("withdirs", withdirs)
        found = self.find(path, maxdepth=maxdepth, withdirs=withdirs, detail=True, **options)
        sizes = {name: info["size"] for name, info in found.items()}
        return sum(sizes.values()) if total else sizes

    def created(self, path: str) -> datetime.datetime:
        """Of the last change of the inode, where the volume does not keep it."""
        return _utc(self.info(path)["created"])

    def modified(self, path: str) -> datetime.datetime:
        return _utc(self.volume.stat(self._strip_protocol(path)).st_mtime)

    def ukey(self, path: str) -> str:
        """Changes where the contents do."""
        found = self.volume.stat(self._strip_protocol(path))
        return f"{self.fsid}-{found.st_ino}-{found.st_mtime_ns}-{found.st_size}"

    # --- Directories -----------------------------------------------------------------------------

    def mkdir(self, path: str, create_parents: bool = True, **_: Any) -> None:
        path = self._strip_protocol(path)
        if truth_value("create_parents", create_parents):
            self.volume.makedirs(path)
        else:
            self.volume.mkdir(path)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        self.volume.makedirs(self._strip_protocol(path), exist_ok=exist_ok)

    def rmdir(self, path: str) -> None:
        self.volume.rmdir(self._strip_protocol(path))

    def rm_file(self, path: str) -> None:
        self.volume.unlink(self._strip_protocol(path))

    def _rm(self, path: str) -> None:
        self.rm_file(path)

    def rm(
        self, path: str | list[str], recursive: bool = False, maxdepth: int | None = None
    ) -> None:
        """Links are removed, and what they lead to is not.

        With `maxdepth` a directory is removed if nothing below that depth is in it.
        """
        truth_value("recursive", recursive)
        remove(self.volume, self.expand_path(path), recursive, maxdepth)

    # --- Files -----------------------------------------------------------------------------------

    def _make_folder_of(self, path: str) -> None:
        if self.auto_mkdir:
            self.volume.makedirs(posixpath.dirname(path), exist_ok=True)

    def _open(
        self,
        path: str,
        mode: str = "rb",
        block_size: int | None = None,
        autocommit: bool = True,
        cache_options: Any = None,
        **_: Any,
    ) -> Opened:
        path = self._strip_protocol(path)
        if "r" not in mode:
            self._make_folder_of(path)
        if autocommit or "r" in mode:
            return opened(self, path, mode, block_size)
        if "a" in mode or "+" in mode:
            raise ValueError(
                f"{path}: mode {mode!r}: in a transaction files are written anew (wb or xb)"
            )
        return PendingFile(self, path, block_size, replaces="x" not in mode)

    def touch(self, path: str, truncate: bool = True, **_: Any) -> None:
        path = self._strip_protocol(path)
        mode = "wb" if truth_value("truncate", truncate) else "ab"
        self._make_folder_of(path)
        self.volume.open(path, mode).close()
        self.volume.utime(path)

    def cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **_: Any
    ) -> bytes:
        path = self._strip_protocol(path)
        if (start or 0) < 0 or (end or 0) < 0:
            start, end, _step = slice(start, end).indices(self.volume.stat(path).st_size)
        offset = start or 0
        size = None if end is None else max(end - offset, 0)
        return self.volume.read(path, offset=offset, size=size)

    def cat_ranges(
        self,
        paths: list[str],
        starts: int | None | list[int | None],
        ends: int | None | list[int | None],
        max_gap: int | None = None,
        on_error: str = "return",
        **options: Any,
    ) -> list[Any]:
        """By one batch for all of them. No gaps are read."""
        parts = [
            part._replace(path=self._strip_protocol(part.path))
            for part in parts_of(paths, starts, ends)
        ]
        contents = read_parts(self.volume, parts)
        error = first_error(contents)
        if on_error != "return" and error is not None:
            raise error
        return list(contents)

    def cat(
        self,
        path: str | list[str],
        recursive: bool = False,
        on_error: str = "raise",
        start: int | None = None,
        end: int | None = None,
        **options: Any,
    ) -> Any:
        """By one batch, where it is more than one file."""
        names = self.expand_path(path, recursive=recursive, **options)
        if not isinstance(path, list) and names == [self._strip_protocol(path)]:
            return self.cat_file(names[0], start, end)
        contents = read_parts(self.volume, [Part(name, start, end) for name in names])
        error = first_error(contents)
        if on_error == "raise" and error is not None:
            raise error
        return {
            name: each
            for name, each in zip(names, contents)
            if on_error == "return" or not isinstance(each, OSError)
        }

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_: Any) -> None:
        path = self._strip_protocol(path)
        if self._intrans:
            with self.open(path, "xb" if mode == "create" else "wb") as pending:
                pending.write(value)
            return
        self._make_folder_of(path)
        if mode == "create":
            with self.volume.open(path, "xb", buffering=-1) as file:
                file.write(value)
        else:
            self.volume.write(path, value)

    def cp_file(self, path1: str, path2: str, **_: Any) -> None:
        source, target = self._strip_protocol(path1), self._strip_protocol(path2)
        if self.isdir(source):
            self.volume.makedirs(target, exist_ok=True)
            return
        if self.is_same(source, target):
            raise shutil.SameFileError(f"{source} and {target} are one file")
        with self.volume.open(source) as reader:
            self._make_folder_of(target)
            with self.volume.open(target, "wb") as writer:
                while self.volume.copy_file_range(reader, writer, _COPY_BYTES):
                    pass

    def copy(
        self, path1: str | list[str], path2: str | list[str], *rest: Any, **options: Any
    ) -> None:
        if isinstance(path2, str) and self._is_literal_file(path1):
            path2 = [inside(self, path1, path2)]
            path1 = [path1]
        super().copy(path1, path2, *rest, **options)

    def get(
        self, rpath: str | list[str], lpath: str | list[str], *rest: Any, **options: Any
    ) -> None:
        if isinstance(lpath, str) and self._is_literal_file(rpath):
            into = lpath.endswith("/") or os.path.isdir(lpath)
            lpath = [posixpath.join(lpath, posixpath.basename(rpath)) if into else lpath]
            rpath = [rpath]
        super().get(rpath, lpath, *rest, **options)

    def _is_literal_file(self, path: str | list[str]) -> TypeGuard[str]:
        """Whether it is what a file is called, although it looks like a glob."""
        return isinstance(path, str) and has_magic(path) and self.isfile(path)

    def mv(
        self,
        path1: str | list[str],
        path2: str | list[str],
        recursive: bool = False,
        maxdepth: int | None = None,
        **_: Any,
    ) -> None:
        """Renames, files and directories alike.

        `path2` is the new name; of a directory there is, or with a slash at its end, it is what
        `path1` is moved into. What a list or a glob names is moved into `path2`.
        """
        for source, target in moves(self, path1, path2):
            self._make_folder_of(target)
            self.volume.rename(source, target)

    def chmod(self, path: str, mode: int) -> None:
        self.volume.chmod(self._strip_protocol(path), mode)

    def invalidate_cache(self, path: str | None = None) -> None:
        """There is no cache."""


def _utc(seconds: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(seconds, tz=datetime.timezone.utc)
