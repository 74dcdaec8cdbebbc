# SPDX-License-Identifier: Apache-2.0
"""copy(): files and trees, between the host and volumes."""

from __future__ import annotations

import errno
import os
import posixpath
import shutil
import stat
from typing import TYPE_CHECKING, Any, NamedTuple, Union

from gofs._directories import mode_reached
from gofs._numbers import truth_value
from gofs._progress import Progress
from gofs._volume import Volume

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typing_extensions import TypeAlias

    from gofs._typing import StrPath

    Place: TypeAlias = Union[StrPath, tuple[Volume, StrPath]]

# Small files are read and written many at a time, larger ones by parts.
_SMALL_BYTES = 128 << 10
_BATCH_FILES = 1024
_BATCH_BYTES = 32 << 20
_PART_BYTES = 8 << 20


class Copied(NamedTuple):
    """What copy() has copied."""

    files: int
    directories: int
    links: int
    bytes: int


class _Entry(NamedTuple):
    """Something to be copied."""

    path: str  # from where the copy begins; empty: that itself
    status: os.stat_result


class _Side:
    """The host, or a volume: which has the names of `os`."""

    def __init__(self, place: Any) -> None:
        """Raises TypeError for what is no place."""
        self.volume: Volume | None = None
        if isinstance(place, tuple):
            if len(place) != 2 or not isinstance(place[0], Volume):
                raise TypeError(f"{place!r}: a path of the host, or the pair (volume, path)")
            self.volume, place = place
        self.root: str = os.fsdecode(place)
        self.os: Any = os if self.volume is None else self.volume

    def join(self, path: str) -> str:
        return posixpath.join(self.root, path) if path else self.root

    def open(self, path: str, mode: str) -> Any:
        if self.volume is not None:
            return self.volume.open(path, mode)
        return open(path, mode, buffering=0)

    def isdir(self, path: str) -> bool:
        return os.path.isdir(path) if self.volume is None else self.volume.isdir(path)

    def is_volume_of(self, other: _Side) -> bool:
        """Whether both are one volume, by whichever mount."""
        mine, theirs = self.volume, other.volume
        return (
            mine is not None
            and theirs is not None
            and (mine is theirs or mine.info.uuid == theirs.info.uuid)
        )


def copy(
    src: Place,
    dst: Place,
    *,
    recursive: bool = False,
    overwrite: bool = True,
    preserve: bool = True,
    sync: bool = False,
    callback: Any = None,
) -> Copied:
    """Copies a file, or with `recursive` a directory and all below, to or from a volume.

    A place is a path of the host, or a pair `(volume, path)`. A file that is copied to a directory
    there is goes into it; a directory is what `dst` is then, with what `dst` had before.

    Args:
        recursive: copy directories; else IsADirectoryError.
        overwrite: files that are there, where they are; else FileExistsError.
        preserve: permissions and times. Owners, access lists and attributes are the new files' own,
            and symbolic links are copied as such.
        sync: all is durable on a volume when this returns, and on the host what is in the files.
        callback: a Callback of fsspec or a bar of tqdm, which is told of bytes.

    Within one mounted volume data does not leave it. Others may see a part of a file. Where OSError
    is raised, what was copied before stays.

    Raises shutil.SpecialFileError before anything is copied where there is a FIFO, a device or a
    socket, and shutil.SameFileError for a file that is copied to itself.
    """
    source, target = _Side(src), _Side(dst)
    for name, flag in (
        ("recursive", recursive),
        ("overwrite", overwrite),
        ("preserve", preserve),
        ("sync", sync),
    ):
        truth_value(name, flag)
    if source.volume is None and target.volume is None:
        raise ValueError(
            "neither is of a volume: give (volume, path) for one of them, or use shutil"
        )
    progress = Progress(callback)
    entries = list(_entries(source, recursive))
    if not stat.S_ISDIR(entries[0].status.st_mode) and target.isdir(target.root):
        name = posixpath.basename(source.root.rstrip("/"))
        target.root = posixpath.join(target.root, name)
    _refuse_copy_into_itself(source, target, entries[0])
    progress.expect(
        sum(each.status.st_size for each in entries if stat.S_ISREG(each.status.st_mode))
    )
    return _Copy(source, target, progress, overwrite, preserve, sync).all_of(entries)


def _entries(source: _Side, recursive: bool) -> Iterator[_Entry]:
    """What is to be copied, each directory before what it has."""
    status = source.os.stat(source.root)  # a link to what is to be copied is followed, others not
    if stat.S_ISDIR(status.st_mode) and not recursive:
        raise IsADirectoryError(
            errno.EISDIR, "a directory: copy it with recursive=True", source.root
        )
    left = [_Entry("", status)]
    while left:
        here = left.pop()
        mode = here.status.st_mode
        if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
            raise shutil.SpecialFileError(
                f"{source.join(here.path)}: neither a file, a directory nor a link"
            )
        yield here
        if stat.S_ISDIR(mode):
            with source.os.scandir(source.join(here.path)) as entries:
                names = sorted((entry.name for entry in entries), reverse=True)
            for name in names:
                path = posixpath.join(here.path, name)
                left.append(_Entry(path, source.os.lstat(source.join(path))))


def _refuse_copy_into_itself(source: _Side, target: _Side, first: _Entry) -> None:
    if not stat.S_ISDIR(first.status.st_mode) or not source.is_volume_of(target):
        return
    assert target.volume is not None
    above = target.root
    # What is to be made is missing.
    while not stat.S_ISDIR(mode_reached(target.volume, above) or 0):
        above = posixpath.dirname(above.rstrip("/")) or "/"
    inode, below = target.os.stat(above).st_ino, None
    while inode != below:  # which it is of the root
        if inode == first.status.st_ino:
            raise ValueError(
                f"{target.root}: within {source.root}, which would be copied into itself"
            )
        above = posixpath.join(above, "..")
        inode, below = target.os.stat(above).st_ino, inode


class _Copy:
    """One call of copy()."""

    def __init__(
        self,
        source: _Side,
        target: _Side,
        progress: Progress,
        overwrite: bool,
        preserve: bool,
        sync: bool,
    ) -> None:
        self._source = source
        self._target = target
        self._progress = progress
        self._overwrite = overwrite
        self._preserve = preserve
        self._sync = sync
        self._in_one_volume = source.is_volume_of(target)
        self._small: list[_Entry] = []
        self._small_bytes = 0

    def all_of(self, entries: list[_Entry]) -> Copied:
        files = directories = links = count = 0
        for each in entries:
            if stat.S_ISREG(each.status.st_mode):
                files += 1
                count += each.status.st_size
                if self._is_small(each):
                    self._copy_later(each)
                else:
                    self._copy_file(each)
            elif stat.S_ISDIR(each.status.st_mode):
                directories += 1
                if not self._target.isdir(self._target.join(each.path)):
                    self._target.os.mkdir(self._target.join(each.path))
            else:
                links += 1
                self._copy_link(each)
        self._copy_small()
        # Last, since what is made in them changes their times, and they may be read-only.
        for each in reversed(entries):
            if stat.S_ISDIR(each.status.st_mode):
                self._keep_attributes(each)
        if self._sync and self._target.volume is not None:
            self._target.volume.sync()
        return Copied(files, directories, links, count)

    def _is_small(self, each: _Entry) -> bool:
        return self._overwrite and not self._in_one_volume and each.status.st_size <= _SMALL_BYTES

    def _copy_later(self, each: _Entry) -> None:
        """With others, when there are enough of them."""
        size = each.status.st_size
        if len(self._small) >= _BATCH_FILES or self._small_bytes + size > _BATCH_BYTES:
            self._copy_small()
        self._small.append(each)
        self._small_bytes += size

    def _copy_small(self) -> None:
        small = self._small
        self._small, self._small_bytes = [], 0
        paths = [self._source.join(each.path) for each in small]
        contents = _contents_of(self._source.volume, paths)
        names = [self._target.join(each.path) for each in small]
        if self._target.volume is not None:
            _write_to_volume(self._target.volume, names, contents)
        else:
            for name, data in zip(names, contents):
                with open(name, "wb", buffering=0) as file:
                    _write_all(file, data)
                    self._sync_file(file)
        for each, data in zip(small, contents):
            self._keep_attributes(each)
            self._progress.add(len(data))

    def _copy_file(self, each: _Entry) -> None:
        path = self._target.join(each.path)
        if self._in_one_volume and self._is_there(path, each.status.st_ino):
            raise shutil.SameFileError(f"{self._source.join(each.path)} and {path} are one file")
        with (
            self._source.open(self._source.join(each.path), "rb") as reader,
            self._target.open(path, "wb" if self._overwrite else "xb") as writer,
        ):
            if self._source.volume is not None and self._source.volume is self._target.volume:
                self._copy_within(self._source.volume, reader, writer)
            else:
                self._copy_through(reader, writer)
            self._sync_file(writer)
        self._keep_attributes(each)

    def _is_there(self, path: str, inode: int) -> bool:
        try:
            return bool(self._target.os.stat(path).st_ino == inode)
        except OSError:
            return False

    def _copy_within(self, volume: Volume, reader: Any, writer: Any) -> None:
        while count := volume.copy_file_range(reader, writer, _PART_BYTES):
            self._progress.add(count)

    def _copy_through(self, reader: Any, writer: Any) -> None:
        memory = memoryview(bytearray(_PART_BYTES))
        while count := reader.readinto(memory):
            _write_all(writer, memory[:count])
            self._progress.add(count)

    def _copy_link(self, each: _Entry) -> None:
        path = self._target.join(each.path)
        leads_to = self._source.os.readlink(self._source.join(each.path))
        try:
            self._target.os.symlink(leads_to, path)
        except FileExistsError:
            if not self._overwrite or not self._is_link(path):
                raise
            self._target.os.unlink(path)
            self._target.os.symlink(leads_to, path)

    def _is_link(self, path: str) -> bool:
        return stat.S_ISLNK(self._target.os.lstat(path).st_mode)

    def _sync_file(self, file: Any) -> None:
        if self._sync and self._target.volume is None:
            os.fsync(file.fileno())

    def _keep_attributes(self, each: _Entry) -> None:
        if not self._preserve:
            return
        path = self._target.join(each.path)
        self._target.os.chmod(path, stat.S_IMODE(each.status.st_mode))
        self._target.os.utime(path, ns=(each.status.st_atime_ns, each.status.st_mtime_ns))


def _contents_of(volume: Volume | None, paths: list[str]) -> list[memoryview]:
    """Of all these files, of a volume by one call."""
    if volume is not None:
        data, offsets, _ = volume.read_many(paths, packed=True)
        whole = memoryview(data)
        return [whole[begin:end] for begin, end in zip(offsets, offsets[1:])]
    contents = []
    for path in paths:
        with open(path, "rb", buffering=0) as file:
            contents.append(memoryview(file.readall()))
    return contents


def _write_to_volume(volume: Volume, paths: list[str], contents: list[memoryview]) -> None:
    folders: dict[str, dict[str, memoryview]] = {}
    for path, data in zip(paths, contents):
        folder, name = posixpath.split(path)
        folders.setdefault(folder, {})[name] = data
    for folder, files in folders.items():
        volume.write_many(folder, files)


def _write_all(file: Any, data: Any) -> None:
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]
