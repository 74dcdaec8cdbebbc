# SPDX-License-Identifier: Apache-2.0
"""Mounted volumes."""

from __future__ import annotations

import os
import warnings
import weakref
import zlib
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, overload

from gofs._closing import Closing
from gofs._contents import read_file, read_into, read_into_async, write_file, write_file_async
from gofs._errors import refuse_closed
from gofs._file import File
from gofs._identity import identity_of
from gofs._names import Names
from gofs._numbers import not_negative, several, truth_value, whole_number
from gofs._opening import open_file, open_inode
from gofs._ranges import read_ranges, write_ranges
from gofs._rows import read_rows, write_rows
from gofs._read_many import read_dir, read_many, read_many_into
from gofs._registering import Registration
from gofs._stat import statvfs_result
from gofs._write_many import write_many

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from typing_extensions import Self

    from gofs import _core
    from gofs._identity import Identity
    from gofs._packed import PackedFiles
    from gofs._served_page import ServedPage
    from gofs._transfer import Transfer
    from gofs._typing import AnyPath, Memory, Stream


class Volume(Names, Closing):
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
        super().__init__(core, device=zlib.crc32(info.uuid.encode()))
        self._reopen = reopen
        self._writable = writable
        self._attached = attached
        self._name = info.spec
        self._reaches_gpu = core.reaches_gpu
        # The handle of a volume that the CPU has mounted here is an address of the host.
        self._is_for_kernels = attached or info.backend == "cuda"
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

    def __enter__(self) -> Self:
        refuse_closed(self._core)
        return self

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

    def register(self, buffer: Memory) -> Registration:
        """Lets what moves the volume's data, an SSD or a server, reach `buffer` by itself, until
        what is returned is closed.

        A server of the program's user reaches memory of the GPU that it runs on: torch's and
        CuPy's, but for that of expandable segments. Its calls then move bytes there directly, those
        of kernels too. A physical SSD reaches memory of the host at multiples of 4 KiB, and of a
        GPU at multiples of 64 KiB. Data of other memory is copied, registered or not. Worth it for
        buffers that are used again and again.

        Raises ValueError for no bytes, BufferError for memory that is read-only, and
        FileExistsError where a part of it is registered.
        """
        return Registration(self, buffer)

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

    def metrics(self) -> str:
        """statistics() and command_times() for Prometheus, in its text format of version 0.0.4."""
        return self._core.metrics()

    def serve_page(self, address: str = ":9467") -> ServedPage:
        """Shows what the volume does to browsers, as `python -m gofs top --web` does of a server's,
        and tells it to Prometheus at /metrics: until the page is closed, by a thread.

        `address` is ADDRESS:PORT by numbers. Without an address it is of this machine alone; port 0
        is one that is free. Whoever reaches it may look: there are no passwords. ValueError for
        what is no address, OSError where it cannot be had.
        """
        # Which take time to import.
        from gofs._looks import look_at
        from gofs._served_page import ServedPage
        from gofs._web import WebTop

        self._core.info()  # raises where there is nothing to show
        page = WebTop(self._name, partial(look_at, self), metrics=self.metrics)
        return ServedPage(page, address)

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
            file._expect_of(self)
            file.fsync()
            return
        with closing(self._core.open(file, os.O_RDONLY, 0)) as opened:
            opened.sync()

    def fdatasync(self, file: File | AnyPath) -> None:
        """fsync(), but for times where nothing else of the inode has changed."""
        if isinstance(file, File):
            file._expect_of(self)
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
        count = whole_number("segments_max", segments_max)
        return self._core.collect_garbage(count, truth_value("emptiest_first", emptiest_first))

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
        return open_file(self, path, mode, buffering, permissions)

    def identity(self, file: File | AnyPath, *, follow_symlinks: bool = True) -> Identity:
        """What open_inode() finds the file, the directory or what else it is by.

        It stays the same until the file is removed, whatever its name is, and is durable as the
        file is. No permission of the file itself is needed.
        """
        if isinstance(file, File):
            file._expect_of(self)
            return file.identity()
        keeps = 0 if truth_value("follow_symlinks", follow_symlinks) else os.O_NOFOLLOW
        with closing(self._core.open(file, os.O_PATH | keeps, 0)) as opened:
            return identity_of(opened)

    def open_inode(self, identity: Identity, mode: str = "rb") -> File:
        """Opens a file by its identity, whatever its name is by now, as open_by_handle_at(2) does.

        Without a buffer; `mode` is one of open() that neither makes nor empties a file. The
        directories above it are not asked, so this is for those who may search all of them:
        PermissionError for other users than 0. The file itself is as by open(). One without names
        is found while it is open.

        Raises OSError (ESTALE) where the file has been removed, also if its number is another's
        now, and where it is another volume's.
        """
        return open_inode(self, identity, mode)

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
        return read_file(self, path, offset, size, dtype, like)

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
        return read_into(self, path, buffer, offset, stream)

    def read_into_async(
        self, path: AnyPath, buffer: Memory, *, offset: int = 0, stream: Stream | None = None
    ) -> Transfer:
        """read_into() that does not wait where the buffer is in the memory of the GPU.

        What the stream gets next finds the bytes. `result()` of the answer, which can also be
        awaited, waits for them and says how many there are.
        """
        return read_into_async(self, path, buffer, offset, stream)

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
        return write_file(self, path, data, permissions, stream, sync=sync)

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
        return write_file_async(self, path, data, permissions, stream, sync=sync)

    @overload
    def read_many(
        self,
        paths: Iterable[AnyPath],
        *,
        packed: Literal[False] = False,
        framework: None = None,
        device: None = None,
    ) -> list[bytes]: ...

    @overload
    def read_many(
        self,
        paths: Iterable[AnyPath],
        *,
        packed: Literal[False] = False,
        framework: str | None = None,
        device: Any = None,
    ) -> list[Any]: ...

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
    ) -> list[Any] | PackedFiles:
        """The contents of many files: bytes, or where a `framework` or a `device` is named, arrays.

        Arrays are of bytes: tensors of torch, on `device`, where torch is installed, else arrays of
        numpy; `framework` ("pt", "np" or "cp") chooses. All lie in one piece of memory, where each
        begins at a multiple of 256 bytes, so that it can be viewed as any type. On the GPU that has
        mounted the volume they are read straight to where they lie, and may be used by what the
        current stream gets next; to another device they go through memory of the host.

        With `packed` it is one bytearray, or one array, with all files one after the other.

        Raises the error of the first file that cannot be read. Of one that grows meanwhile, what is
        new may be missing; one that becomes shorter is an error (EIO) in a packed array.
        """
        packs = truth_value("packed", packed)
        return read_many(self, several("paths", paths), packs, framework, device)

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
        return read_many_into(
            self, several("paths", paths), buffer, several("offsets", offsets), stream
        )

    def read_ranges(
        self,
        ranges: Iterable[tuple[File | AnyPath, int, Memory]],
        *,
        stream: Stream | None = None,
    ) -> list[int]:
        """Fills many buffers, each from a file's byte `offset` on: (file or path, offset, buffer).

        In one call; those in the memory of the GPU by one launch, in the order of `stream` as by
        read_into(). How many bytes of each: fewer than its buffer has only where the file ends.
        Raises the error of the first one that cannot be read, after all others have been; buffers
        are refused as by read_into(). A path is opened once for all of its ranges.
        """
        return read_ranges(self, several("ranges", ranges), stream)

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
        write_ranges(self, several("ranges", ranges), stream)

    def read_rows(
        self,
        file: File | AnyPath,
        offsets: Sequence[int] | Any,
        rows: Memory,
        *,
        stream: Stream | None = None,
    ) -> list[int]:
        """Fills `rows`, an array or a tensor, with ranges of one file: row i, the i-th of as many
        equal parts as there are offsets, from byte `offsets[i]` on.

        This is read_ranges() for samples of a dataset, tokens, embeddings: of many thousand rows no
        object is made for each. `offsets` are integers: a sequence, or an array of numpy or a
        tensor, of which one of int64 in the memory of the host is not copied. How many bytes of
        each row: fewer than it has only where the file ends. Rows in the memory of the GPU are read
        by one launch, in the order of `stream` as by read_into(). Raises the error of the first one
        that cannot be read, after all others have been.
        """
        return read_rows(self, file, offsets, rows, stream)

    def write_rows(
        self,
        file: File | AnyPath,
        offsets: Sequence[int] | Any,
        rows: Memory,
        *,
        stream: Stream | None = None,
    ) -> None:
        """Writes `rows` to a file that is there: what read_rows() with the same arguments reads.

        Of rows that overlap either may win. Raises the error of the first one that cannot be
        written whole, after all others have been.
        """
        write_rows(self, file, offsets, rows, stream)

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
        for name, file in (("src", src), ("dst", dst)):
            if not isinstance(file, File):
                raise TypeError(f"{name}: a file that open() has given is wanted, not {file!r}")
        reader, writer = src._core_to_read(self), dst._core_to_write(self)
        size = not_negative("count", count, src.name)
        begin, target = (
            file.tell() if offset is None else not_negative(name, offset, file.name)
            for name, offset, file in (
                ("offset_src", offset_src, src),
                ("offset_dst", offset_dst, dst),
            )
        )
        done = reader.copy_range(writer, begin, target, size)
        for file, given, place in ((src, offset_src, begin), (dst, offset_dst, target)):
            if given is None:
                file.seek(place + done)
        return done

    @overload
    def read_dir(
        self,
        path: AnyPath,
        *,
        packed: Literal[False] = False,
        framework: None = None,
        device: None = None,
    ) -> dict[str, bytes]: ...

    @overload
    def read_dir(
        self,
        path: AnyPath,
        *,
        packed: Literal[False] = False,
        framework: str | None = None,
        device: Any = None,
    ) -> dict[str, Any]: ...

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
    ) -> dict[str, Any] | PackedFiles:
        """The contents of all regular files of a directory, by name and in the names' order; as
        read_many() has them."""
        packs = truth_value("packed", packed)
        return read_dir(self, os.fsdecode(path), packs, framework, device)

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
        durable = truth_value("sync", sync)
        write_many(self, os.fsdecode(directory), files, permissions, stream)
        if durable:
            self.sync()

    def truncate(self, path: AnyPath, length: int) -> None:
        """Makes the file `length` bytes long: shorter, or longer with zeros."""
        self._core.truncate(path, not_negative("length", length, path))


def _close_forgotten(core: _core.Volume, name: str) -> None:
    """Where a program, or a part of it, ends without closing a volume."""
    if core.closed or not core.is_ours:
        return
    warnings.warn(f"unclosed volume {name!r}", ResourceWarning, stacklevel=2)
    core.close()
