# SPDX-License-Identifier: Apache-2.0
"""Mounted volumes."""

from __future__ import annotations

import io
import itertools
import os
import posixpath
import stat
import warnings
import weakref
import zlib
from contextlib import closing
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, cast, overload

from gofs import _moving
from gofs._arrays import default_framework, framework_named
from gofs._buffers import (
    bytes_to_fill,
    gpu_memory_to_fill,
    gpu_memory_to_read,
    memory_to_fill,
    memory_to_read,
)
from gofs._closing import Closing
from gofs._device import common_stream
from gofs._entries import ScandirIterator
from gofs._file import File
from gofs._glob import glob
from gofs._modes import REPLACES, parse_mode
from gofs._new_arrays import read_array
from gofs._packed import PackedFiles, read_packed, read_packed_array
from gofs._ranges import read_ranges, write_ranges
from gofs._stat import (
    NOW,
    created_seconds,
    not_negative,
    stat_result,
    statvfs_result,
    time_from_nanoseconds,
    time_from_seconds,
)
from gofs._transfer import Transfer, read_async, write_async
from gofs._write_many import write_many

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from gofs import _core
    from gofs._device import DeviceMemory
    from gofs._typing import AnyPath, BytesPath, Memory, Stream, StrPath

# Flags of Volume.rename().
RENAME_NOREPLACE = 1
RENAME_EXCHANGE = 2

# Of buffered files, unless the caller says how large: calls of the file system cost more than
# those of the host, on a GPU.
_BUFFER_BYTES = 128 << 10
# Where each of several files begins in one piece of memory: no type is aligned to more.
_ALIGNMENT = 256
# gofs::kKeepId.
_KEEP_ID = 0xFFFFFFFF


class Volume(Closing):
    """A mounted volume, with the names of `os` and `os.path`.

    `mount()` and `attach()` make it, `close()` or the end of a `with` block unmounts it. Paths are
    str, bytes or os.PathLike, and start at the volume's root; names that are no UTF-8 are as `os`
    has them (surrogateescape).

    Errors are subclasses of OSError: besides those that `os` has for a call, `CorruptionError`
    (the volume contradicts itself), EIO (the SSD), TimeoutError, EBUSY and ENOMEM (others have all
    of what it needs for a while). Where the volume is not mounted for writing, changes raise EROFS.
    After close() calls raise ValueError, and in a child of fork() RuntimeError.

    Others see a change at once. It is durable after sync(), fsync() or close().

    All calls may be made from several threads, and release the GIL. A volume that is mounted for
    reading, or attached, can be pickled: it is mounted again where it is unpickled.
    """

    def __init__(
        self,
        core: _core.Volume,
        reopen: Callable[[], Volume],
        *,
        writable: bool,
        attached: bool = False,
    ) -> None:
        """For mount() and attach(). `reopen` does again what made it."""
        info = core.info()
        self._core = core
        self._reopen = reopen
        self._writable = writable
        self._attached = attached
        self._name = info.spec
        self._reaches_gpu = core.reaches_gpu
        # The handle of a volume that the CPU has mounted here is an address of the host.
        self._is_for_kernels = attached or info.backend == "cuda"
        # Which volume a file is of: st_dev.
        self._device = zlib.crc32(info.uuid.encode())
        self._finalizer = weakref.finalize(self, _close_forgotten, core, info.spec)

    # --- The volume ------------------------------------------------------------------------------

    def close(self) -> None:
        """Makes all changes durable, in the image as well, and releases it.

        Nothing where it was closed before, or in a child of fork(). Where OSError says that the
        volume stays mounted, or that its image could not be written, close() may be called again.
        """
        self._core.close()
        self._finalizer.detach()

    @property
    def closed(self) -> bool:
        return self._core.closed

    def __reduce__(self) -> tuple[Callable[[], Volume], tuple[()]]:
        if self._writable:
            raise TypeError(
                f"cannot pickle {self!r}: one process alone may write to a volume: mount it "
                "without writable=True, or attach to a server (gofsd)"
            )
        return self._reopen, ()

    def __repr__(self) -> str:
        how = "attached" if self._attached else "writable" if self._writable else "read-only"
        # With what tells it from others of the name: fsspec knows what it was given by its repr.
        state = "closed" if self.closed else how
        return f"<gofs.Volume {self._name!r} {state} at {id(self):#x}>"

    @property
    def writable(self) -> bool:
        """Whether it was mounted for writing. A server says so only when it is asked to write."""
        return self._writable

    @property
    def info(self) -> _core.VolumeInfo:
        """What was found as it was mounted, and how many segments are free now."""
        return self._core.info()

    @property
    def device_handle(self) -> int:
        """What kernels take for the volume (gofs.cuda, gofs.numba), until close().

        0 where they cannot use it, as where the CPU has mounted it: their calls give -EINVAL then.
        """
        handle = self._core.device_handle()
        return handle if self._is_for_kernels else 0

    def memory(self) -> _core.MemoryReport:
        """What the volume takes of memory, which is counted for some milliseconds."""
        return self._core.memory()

    def statistics(self) -> _core.Statistics:
        """What the volume has done since it was mounted, by whomever, and how it is now.

        Of a server's volume: what all its clients do. Counts only grow.
        """
        return self._core.statistics()

    def command_times(self) -> _core.CommandTimes | None:
        """How long NVMe commands have taken since the volume was mounted, and how busy its SSD was.

        None where that is not measured: it is for hosted SSDs (media=hosted). Of a server's volume:
        of the commands for all its clients.
        """
        return self._core.command_times()

    def warnings(self) -> list[str]:
        """What one should know although nothing failed, such as damage that was met.

        Sentences; those that were returned before are not repeated.
        """
        return self._core.warnings()

    def statvfs(self) -> os.statvfs_result:
        """As os.statvfs(). A server's volume counts as one to write to: it says so when it is asked
        to."""
        may_write = self._writable or self._attached
        return statvfs_result(self._core.statfs(), writable=may_write, device=self._device)

    def sync(self) -> None:
        """Returns when all changes whose calls have returned are durable, in the image as well."""
        self._core.sync()

    def fsync(self, file: File | AnyPath) -> None:
        """The same for one file or directory: contents, attributes and, if it is new, the name."""
        if isinstance(file, File):
            file.fsync()
            return
        with closing(self._core.open(file, os.O_RDONLY, 0)) as opened:
            opened.sync()

    def fdatasync(self, file: File | AnyPath) -> None:
        """fsync(), but for times where nothing else of the inode has changed."""
        if isinstance(file, File):
            file.fdatasync()
            return
        with closing(self._core.open(file, os.O_RDONLY, 0)) as opened:
            opened.sync_data()

    def collect_garbage(
        self, *, segments_max: int = 0, emptiest_first: bool = False
    ) -> _core.CleaningReport:
        """Empties segments that are only partly in use, and makes that durable.

        At most `segments_max`, or all that are worth it (0).
        """
        return self._core.collect_garbage(segments_max, emptiest_first)

    # --- Files -----------------------------------------------------------------------------------

    @overload
    def open(  # type: ignore[overload-overlap]
        self,
        path: AnyPath,
        mode: str = "rb",
        *,
        buffering: Literal[0] = 0,
        permissions: int = 0o666,
    ) -> File: ...

    @overload
    def open(
        self, path: AnyPath, mode: str = "rb", *, buffering: int, permissions: int = 0o666
    ) -> BinaryIO: ...

    def open(
        self, path: AnyPath, mode: str = "rb", *, buffering: int = 0, permissions: int = 0o666
    ) -> File | BinaryIO:
        """Opens a file, with the modes of the built-in open() for binary files.

        Without a buffer, if not told otherwise. `buffering` is its size in bytes, -1 for one of
        128 KiB. A file that is made has `permissions`; there is no umask.
        """
        parsed = parse_mode(mode)
        if buffering == 1:
            raise ValueError("buffering=1 is for text: give a size in bytes, or -1")
        core = self._core.open(path, parsed.flags, permissions)
        file = File(self, core, os.fspath(path), parsed, is_buffered=buffering != 0)
        if buffering == 0:
            return file
        size = buffering if buffering > 0 else _BUFFER_BYTES
        if parsed.readable and parsed.writable:
            return cast(BinaryIO, io.BufferedRandom(file, size))
        if parsed.readable:
            return io.BufferedReader(file, size)
        return io.BufferedWriter(file, size)

    @overload
    def read(self, path: AnyPath, *, offset: int = 0, size: int | None = None) -> bytes: ...

    @overload
    def read(
        self,
        path: AnyPath,
        *,
        offset: int = 0,
        size: int | None = None,
        dtype: Any = None,
        like: Any = None,
    ) -> Any: ...

    def read(
        self,
        path: AnyPath,
        *,
        offset: int = 0,
        size: int | None = None,
        dtype: Any = None,
        like: Any = None,
    ) -> Any:
        """What a file has from byte `offset` on: `size` bytes, fewer where it ends, or all.

        As bytes, or with a `dtype` or a module of arrays that it is to be `like` (numpy, torch,
        cupy, or their names) as a new array in one dimension: of numpy if only a dtype is named
        that is none of torch's, and of bytes without one. Tensors of torch and arrays of CuPy are
        on the GPU that has mounted the volume, where one has.
        Raises ValueError where the bytes are no whole number of the type's.
        """
        if dtype is not None or like is not None:
            return read_array(self, path, offset, size, dtype, like)
        not_negative(offset, path)
        with closing(self._core.open(path, os.O_RDONLY, 0)) as file:
            if size is None:
                size = max(file.stat().size_bytes - offset, 0)
            return file.pread(not_negative(size, path), offset)

    def read_into(
        self, path: AnyPath, buffer: Memory, *, offset: int = 0, stream: Stream | None = None
    ) -> int:
        """Fills an array, a tensor or another buffer from byte `offset` of a file on.

        Directly where the SSD reaches it. How many bytes: fewer than it has only where the file
        ends. Memory of the GPU that has mounted the volume is filled in the order of `stream`,
        which is the current one of torch or CuPy if it is not given, and waited for.
        Raises BufferError for memory that is read-only, and ValueError for a tensor that is not
        contiguous, or on a GPU that has not mounted the volume.
        """
        memory = self._gpu_memory(buffer, fills=True)
        with closing(self._core.open(path, os.O_RDONLY, 0)) as file:
            if memory is not None:
                begin = not_negative(offset, path)
                return self._move(file, begin, memory, path, writes=False, stream=stream)
            return file.pread_into(memory_to_fill(buffer), not_negative(offset, path))

    def read_into_async(
        self, path: AnyPath, buffer: Memory, *, offset: int = 0, stream: Stream | None = None
    ) -> Transfer:
        """read_into() that does not wait where the buffer is in the memory of the GPU.

        What the stream gets next finds the bytes. `result()` of the answer, which can also be
        awaited, waits for them and says how many there are.
        """
        memory = self._gpu_memory(buffer, fills=True)
        if memory is None:
            return Transfer(path, self.read_into(path, buffer, offset=offset))
        begin = not_negative(offset, path)
        order = common_stream([memory], stream)
        return read_async(self._core, path, memory, begin, order)

    def write(
        self,
        path: AnyPath,
        data: Memory,
        *,
        sync: bool = False,
        permissions: int = 0o666,
        stream: Stream | None = None,
    ) -> int:
        """Makes a file of these bytes, or gives the file there is these contents; how many bytes.

        With `sync` they are durable when this returns. Another reader may see a part of them, and a
        part stays where it raises, as where the volume is full.
        Memory of the GPU is read in the order of `stream`, as by read_into().
        """
        memory = self._gpu_memory(data, fills=False)
        if memory is None:
            return self._core.write(path, memory_to_read(data), REPLACES, permissions, sync)
        # What can be refused is, before the file that is there is emptied.
        order = common_stream([memory], stream)
        _moving.check(self._core, [memory], order)
        with closing(self._core.open(path, REPLACES, permissions)) as file:
            _moving.write(self._core, [(file, 0, memory)], [path], order)
            if sync:
                file.sync()
        return memory.size

    def write_async(
        self,
        path: AnyPath,
        data: Memory,
        *,
        sync: bool = False,
        permissions: int = 0o666,
        stream: Stream | None = None,
    ) -> Transfer:
        """write() that does not wait where the bytes are in the memory of the GPU.

        They are those that the stream comes to; what it gets next may change the memory. `result()`
        of the answer, which can also be awaited, waits until the file has them, and with `sync`
        until they are durable: that is begun there.
        """
        memory = self._gpu_memory(data, fills=False)
        if memory is None:
            return Transfer(path, self.write(path, data, sync=sync, permissions=permissions))
        order = common_stream([memory], stream)
        return write_async(self._core, path, memory, permissions, order, sync=sync)

    def _gpu_memory(self, data: Memory, *, fills: bool) -> DeviceMemory | None:
        """Where the bytes of `data` are on a GPU, and are moved there; None: on the host, or
        nowhere that can be reached."""
        if isinstance(data, (bytes, bytearray, memoryview)):
            return None
        memory = gpu_memory_to_fill(data) if fills else gpu_memory_to_read(data)
        if memory is None or self._reaches_gpu:
            return memory
        is_moved = not memory.is_pinned and self._core.reaches(memory.address, memory.size)
        return memory if is_moved else None

    def _reaches(self, data: Memory) -> bool:
        """Whether the bytes of `data` are on a GPU, or of memory that it reaches, and can be moved
        from there and to there."""
        memory = gpu_memory_to_read(data)
        return memory is not None and self._core.reaches(memory.address, memory.size)

    def _move(
        self,
        file: _core.OpenFile,
        offset: int,
        memory: DeviceMemory,
        path: AnyPath,
        *,
        writes: bool,
        stream: Stream | None = None,
    ) -> int:
        """Bytes between a file and the GPU's memory, which are waited for; how many."""
        order = common_stream([memory], stream)
        part = (file, offset, memory)
        if not writes:
            return _moving.read(self._core, [part], [path], order)[0]
        _moving.write(self._core, [part], [path], order)
        return memory.size

    @overload
    def read_many(
        self, paths: Iterable[AnyPath], *, packed: Literal[False] = False
    ) -> list[bytes]: ...

    @overload
    def read_many(
        self,
        paths: Iterable[AnyPath],
        *,
        packed: Literal[True],
        framework: str | None = None,
        device: Any = None,
    ) -> PackedFiles: ...

    def read_many(
        self,
        paths: Iterable[AnyPath],
        *,
        packed: bool = False,
        framework: str | None = None,
        device: Any = None,
    ) -> list[bytes] | PackedFiles:
        """The contents of many files, or with `packed` in one piece of memory.

        That is a bytearray, or, where a `framework` or a `device` is named, what read_arrays()
        makes: a tensor or an array of bytes. Raises the error of the first one that cannot be read.
        Of one that grows meanwhile, what is new may be missing; one that becomes shorter is an
        error (EIO) where it is read into a tensor or an array.
        """
        names = list(paths)
        if framework is None and device is None:
            return read_packed(self, names) if packed else [self.read(path) for path in names]
        if not packed:
            raise ValueError("framework and device are for packed=True, and for read_arrays()")
        made = framework_named(framework or default_framework(), device or "cpu", self)
        files = read_packed_array(self, names, made)
        return files._replace(data=made.place(files.data))

    def read_arrays(
        self, paths: Iterable[AnyPath], *, framework: str | None = None, device: Any = "cpu"
    ) -> list[Any]:
        """The contents of many files, each as an array of bytes, all in one piece of memory.

        Each begins at a multiple of 256 bytes of it, so that it can be viewed as any type. Arrays
        are tensors of torch, on `device`, where torch is installed, else arrays of numpy;
        `framework` ("pt" or "np") chooses. On the GPU that has mounted the volume they are read
        straight to where they lie, and may be used by what the current stream gets next; to
        another device they go through memory of the host.

        Raises the error of the first file that cannot be read. Of one that grows meanwhile, what is
        new may be missing.
        """
        made = framework_named(framework or default_framework(), device, self)
        names = list(paths)
        rooms = (-(-size // _ALIGNMENT) * _ALIGNMENT for size in self._core.sizes(names))
        offsets = [0, *itertools.accumulate(rooms)]
        data = made.empty(offsets[-1])
        counts = self.read_many_into(names, data, offsets, stream=made.stream)
        data = made.place(data)
        return [data[begin : begin + count] for begin, count in zip(offsets, counts)]

    def read_many_into(
        self,
        paths: Iterable[AnyPath],
        buffer: Memory,
        offsets: Sequence[int],
        *,
        stream: Stream | None = None,
    ) -> list[int]:
        """Reads many files into one buffer: file i from `offsets[i]` to `offsets[i + 1]`, in bytes.

        There is one offset more than files. Into the memory of the GPU they are read in the order
        of `stream` as by read_into(), with a few launches for all of them. How many bytes of each:
        fewer than it has room for only where the file ends, and what is more than that is left out.
        Raises the error of the first one that cannot be read, after all others have been.
        """
        names = list(paths)
        ends = list(offsets)
        if len(ends) != len(names) + 1:
            raise ValueError(f"{len(ends)} offsets for {len(names)} files: one more than files")
        if ends[0] < 0 or any(begin > end for begin, end in itertools.pairwise(ends)):
            raise ValueError("offsets: none is negative, or less than the one before")
        memory = self._gpu_memory(buffer, fills=True)
        if memory is None:
            flat = bytes_to_fill(buffer)
            _expect_room(ends[-1], len(flat))
            return self.read_ranges(
                (name, 0, flat[begin:end]) for name, begin, end in zip(names, ends, ends[1:])
            )
        _expect_room(ends[-1], memory.size)
        order = common_stream([memory], stream)
        return _moving.read_files(self._core, names, ends, memory, order)

    def read_ranges(
        self,
        ranges: Iterable[tuple[File | AnyPath, int, Memory]],
        *,
        stream: Stream | None = None,
    ) -> list[int]:
        """Fills many buffers, each from a file's byte `offset` on: (file or path, offset, buffer).

        In one call, and by several threads where there is enough to read; those in the memory of
        the GPU by one launch, in the order of `stream` as by read_into(). How many bytes of each:
        fewer than its buffer has only where the file ends. Raises the error of the first one that
        cannot be read, after all others have been; buffers are refused as by read_into(). A path is
        opened for each of its ranges.
        """
        return read_ranges(self, list(ranges), stream)

    def write_ranges(
        self,
        ranges: Iterable[tuple[File | AnyPath, int, Memory]],
        *,
        stream: Stream | None = None,
    ) -> None:
        """Writes many buffers, each to a file from its byte `offset` on: (file or path, offset,
        buffer).

        Files that are named by a path have to be there. Those in the memory of the GPU are written
        by one launch, in the order of `stream` as by read_into(). Of ranges that overlap either may
        win. Raises the error of the first one that cannot be written whole, after all others have
        been; buffers are refused as by write(), before anything is written.
        """
        write_ranges(self, list(ranges), stream)

    def copy_file_range(
        self,
        src: File,
        dst: File,
        count: int,
        offset_src: int | None = None,
        offset_dst: int | None = None,
    ) -> int:
        """Copies `count` bytes within the volume, as os.copy_file_range(); how many were.

        No data passes through memory of this process. Fewer are copied only at the end of `src`,
        and where the volume is full. Without an offset it is the file's position, which moves on.
        """
        begin = src.tell() if offset_src is None else not_negative(offset_src)
        target = dst.tell() if offset_dst is None else not_negative(offset_dst)
        done = src._core_to_read().copy_range(
            dst._core_to_write(), begin, target, not_negative(count)
        )
        for file, given, place in ((src, offset_src, begin), (dst, offset_dst, target)):
            if given is None:
                file.seek(place + done)
        return done

    @overload
    def read_dir(self, path: AnyPath, *, packed: Literal[False] = False) -> dict[str, bytes]: ...

    @overload
    def read_dir(
        self,
        path: AnyPath,
        *,
        packed: Literal[True],
        framework: str | None = None,
        device: Any = None,
    ) -> PackedFiles: ...

    def read_dir(
        self,
        path: AnyPath,
        *,
        packed: bool = False,
        framework: str | None = None,
        device: Any = None,
    ) -> dict[str, bytes] | PackedFiles:
        """The contents of all regular files of a directory, by name and in the names' order; with
        `packed` and what follows as read_many() has them."""
        directory = os.fsdecode(path)
        with self.scandir(directory) as entries:
            names = sorted(entry.name for entry in entries if entry.is_file())
        paths = [posixpath.join(directory, name) for name in names]
        if packed:
            files = self.read_many(paths, packed=True, framework=framework, device=device)
            return files._replace(names=names)
        return dict(zip(names, self.read_many(paths)))

    def write_many(
        self,
        directory: AnyPath,
        files: Mapping[str, Memory],
        *,
        sync: bool = False,
        permissions: int = 0o666,
        stream: Stream | None = None,
    ) -> None:
        """write() for many files of one directory, by name: new ones are made together.

        Memory of the GPU is written by one launch for all of it, in the order of `stream` as by
        read_into(). With `sync` they are durable when this returns. Where some cannot be made, the
        others are, and the error is the first one's. Buffers are refused as by write(), before
        anything is made.
        """
        write_many(self, os.fsdecode(directory), files, permissions, stream)
        if sync:
            self.sync()

    def truncate(self, path: AnyPath, length: int) -> None:
        """Makes the file `length` bytes long: shorter, or longer with zeros."""
        self._core.truncate(path, not_negative(length, path))

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
        left: list[Any] = [os.fspath(top)]
        while left:
            here = left.pop()
            if isinstance(here, tuple):
                yield here
                continue
            try:
                directories, others, below = self._sorted_out(here, followlinks)
            except OSError as error:
                if onerror is not None:
                    onerror(error)
                continue
            if not topdown:
                left.append((here, directories, others))
                left += (posixpath.join(here, name) for name in reversed(below))
                continue
            yield here, directories, others
            # The caller may have changed the list.
            for name in reversed(directories):
                path = posixpath.join(here, name)
                if followlinks or not self.islink(path):
                    left.append(path)

    def _sorted_out(self, path: Any, followlinks: bool) -> tuple[list[Any], list[Any], list[Any]]:
        """The names of directories, those of all else, and the former that a walk goes into."""
        directories: list[Any] = []
        others: list[Any] = []
        below: list[Any] = []
        with self.scandir(path) as entries:
            for entry in entries:
                try:
                    is_dir = entry.is_dir()
                except OSError:
                    is_dir = False
                (directories if is_dir else others).append(entry.name)
                if is_dir and (followlinks or not entry.is_symlink()):
                    below.append(entry.name)
        return directories, others, below

    def glob(
        self, pathname: AnyPath, *, recursive: bool = False, include_hidden: bool = False
    ) -> list[str]:
        """The paths that match a pattern, in no order, as glob.glob(): `*`, `?` and `[...]` within
        a name, and with `recursive` `**` for any folders. Names that begin with a dot have to be
        asked for by a dot, or by `include_hidden`."""
        return glob(
            self, os.fsdecode(pathname), recursive=recursive, include_hidden=include_hidden
        )

    def mkdir(self, path: AnyPath, mode: int = 0o777) -> None:
        """There is no umask."""
        self._core.mkdir(path, mode)

    def makedirs(self, name: AnyPath, mode: int = 0o777, exist_ok: bool = False) -> None:
        """mkdir() with all parents that are missing, which have mode 0o777."""
        path = os.fsdecode(name)
        parents = self._missing_parents(path)
        for parent in reversed(parents):
            try:
                self.mkdir(parent)
            except FileExistsError:
                pass  # another has made it, or it is a dot
        if parents and posixpath.basename(path.rstrip("/")) == ".":
            return
        try:
            self.mkdir(path, mode)
        except OSError:
            if not exist_ok or not self.isdir(path):
                raise

    def _missing_parents(self, path: str) -> list[str]:
        """The longest first."""
        missing: list[str] = []
        parent = posixpath.dirname(path.rstrip("/"))
        while parent and not self.exists(parent):
            missing.append(parent)
            parent = posixpath.dirname(parent)
        return missing

    def rmdir(self, path: AnyPath) -> None:
        self._core.rmdir(path)

    # --- Names -----------------------------------------------------------------------------------

    def rename(self, src: AnyPath, dst: AnyPath, *, flags: int = 0) -> None:
        """Renames `src` to `dst`, which replaces what had that name.

        `flags` may be RENAME_NOREPLACE (FileExistsError if something has it) or RENAME_EXCHANGE
        (each gets the other's name).
        """
        self._core.rename(src, dst, flags)

    def replace(self, src: AnyPath, dst: AnyPath) -> None:
        """rename() without flags."""
        self._core.rename(src, dst, 0)

    def unlink(self, path: AnyPath) -> None:
        """Removes a name of what is not a directory."""
        self._core.unlink(path)

    def remove(self, path: AnyPath) -> None:
        """The same as unlink()."""
        self._core.unlink(path)

    def symlink(self, src: AnyPath, dst: AnyPath, target_is_directory: bool = False) -> None:
        """Makes `dst` a symbolic link to `src`. The last argument means nothing, as on Linux."""
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
        self._core.mknod(path, mode, os.major(device), os.minor(device))

    def mkfifo(self, path: AnyPath, mode: int = 0o666) -> None:
        self._core.mknod(path, stat.S_IFIFO | stat.S_IMODE(mode), 0, 0)

    # --- Attributes ------------------------------------------------------------------------------

    def stat(self, path: AnyPath, *, follow_symlinks: bool = True) -> os.stat_result:
        """What os.stat() says. `st_dev` is made of the volume's UUID."""
        return self._result_of(self._core.stat(path) if follow_symlinks else self._core.lstat(path))

    def lstat(self, path: AnyPath) -> os.stat_result:
        return self._result_of(self._core.lstat(path))

    def _result_of(self, stat: _core.Stat) -> os.stat_result:
        return stat_result(stat, self._device)

    def created(self, path: AnyPath) -> float:
        """When the inode was made, in seconds since 1970; 0 where the volume does not keep that."""
        return created_seconds(self._core.stat(path))

    def access(self, path: AnyPath, mode: int) -> bool:
        """Whether the volume's user may do what `mode` says, of os.R_OK and the others."""
        try:
            self._core.access(path, mode)
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
        """None where it cannot be reached, as in os.path."""
        core = self._core
        try:
            return (core.stat(path) if follow_symlinks else core.lstat(path)).mode
        except OSError:
            return None

    def chmod(self, path: AnyPath, mode: int) -> None:
        """The permissions of `mode`; an access list follows them."""
        self._core.chmod(path, mode)

    def chown(self, path: AnyPath, uid: int, gid: int, *, follow_symlinks: bool = True) -> None:
        """-1 leaves the owner or the group as it is."""
        uid, gid = (_KEEP_ID if id == -1 else id for id in (uid, gid))
        self._core.chown(path, uid, gid, follow_symlinks)

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
            accessed, modified = map(time_from_seconds, times)
        elif ns is not None:
            accessed, modified = map(time_from_nanoseconds, ns)
        self._core.utimens(path, accessed, modified, follow_symlinks)

    def getxattr(self, path: AnyPath, attribute: AnyPath, *, follow_symlinks: bool = True) -> bytes:
        """The value of an extended attribute; its name has a prefix, as in "user.colour"."""
        return self._core.getxattr(path, attribute, follow_symlinks)

    def listxattr(self, path: AnyPath = "/", *, follow_symlinks: bool = True) -> list[str]:
        """The names of all that the caller may know of."""
        return self._core.listxattr(path, follow_symlinks)

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
        self._core.setxattr(path, attribute, memory_to_read(value), flags, follow_symlinks)

    def removexattr(
        self, path: AnyPath, attribute: AnyPath, *, follow_symlinks: bool = True
    ) -> None:
        self._core.removexattr(path, attribute, follow_symlinks)


def _expect_room(wanted: int, size: int) -> None:
    if wanted > size:
        raise ValueError(f"the buffer has {size} bytes, and the files are to have {wanted}")


def _close_forgotten(core: _core.Volume, name: str) -> None:
    """Where a program, or a part of it, ends without closing a volume."""
    if core.closed or not core.is_ours:
        return
    warnings.warn(f"unclosed volume {name!r}", ResourceWarning, stacklevel=2)
    core.close()
