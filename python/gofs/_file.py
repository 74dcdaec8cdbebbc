# SPDX-License-Identifier: Apache-2.0
"""Open files."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import stat
import threading
import warnings
from typing import TYPE_CHECKING, Any, NoReturn

from gofs import _moving
from gofs._buffers import memory_to_fill, memory_to_read
from gofs._device import common_stream
from gofs._gpu_memory import gpu_memory
from gofs._identity import identity_of
from gofs._numbers import LONG_MAX, not_negative, whole_number
from gofs._read_sizes import within
from gofs._whole_writes import pwrite_all, write_rest

if TYPE_CHECKING:
    from gofs import _core
    from gofs._device import DeviceMemory
    from gofs._identity import Identity
    from gofs._modes import Mode
    from gofs._typing import Memory
    from gofs._volume import Volume


class File(io.RawIOBase):
    """A file of a volume, without a buffer: what io.FileIO is for files of the host.

    Every call goes to the file system, and what it has written is seen by all others at once.
    `Volume.open()` makes it. Buffers may also be arrays and contiguous tensors, on the CPU or on
    the GPU that has mounted the volume.
    Several threads may use a file; closing waits for the calls under way.
    """

    def __init__(
        self,
        volume: Volume,
        core: _core.OpenFile,
        name: str | bytes,
        mode: Mode,
        *,
        is_buffered: bool = False,
    ) -> None:
        """For Volume.open(). `is_buffered`: a buffer of `io` is above, which wants to know how much
        of it was written, and goes on with the rest."""
        super().__init__()
        self._volume = volume  # which stays mounted as long
        self._core = core
        self._mode = mode
        self._is_buffered = is_buffered
        # The position moves as part of a call of the file system, but where memory of a GPU is
        # moved: then calls wait for each other.
        self._position: contextlib.AbstractContextManager[Any] = (
            threading.Lock() if volume._reaches_gpu else contextlib.nullcontext()
        )
        if not mode.writable and stat.S_ISDIR(core.stat().mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
        if mode.appends:
            core.seek(0, os.SEEK_END)
        self.name = name  # the last: from here on somebody has to close it

    @property
    def mode(self) -> str:
        """As io.FileIO has it: "rb", "rb+", "wb", "xb", "ab" and the like."""
        return self._mode.text

    def readable(self) -> bool:
        self._checkClosed()
        return self._mode.readable

    def writable(self) -> bool:
        self._checkClosed()
        return self._mode.writable

    def seekable(self) -> bool:
        self._checkClosed()
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        """Up to `size` bytes from the position on, fewer only at the end of the file."""
        self._require(self._mode.readable, "reading")
        if size is None:
            return self.readall()
        count = whole_number("size", size, least=-LONG_MAX, most=LONG_MAX)
        if count < 0:
            return self.readall()
        with self._position:
            return self._core.read(within(self._core, count))

    def readall(self) -> bytes:
        """All that is left of the file."""
        self._require(self._mode.readable, "reading")
        with self._position:
            left = max(self._core.stat().size_bytes - self.tell(), 0)
            data = self._core.read(left)
            # It may have grown since.
            while more := self._core.read(io.DEFAULT_BUFFER_SIZE):
                data += more
        return data

    def readinto(self, buffer: Memory, /) -> int:
        """Fills the buffer from the position on; how many bytes, fewer only at the file's end."""
        self._require(self._mode.readable, "reading")
        memory = gpu_memory(self._volume, buffer, fills=True)
        with self._position:
            if memory is None:
                return self._core.read_into(memory_to_fill(buffer))
            begin = self.tell()
            count = self._read_to_gpu(begin, memory)
            self._core.seek(begin + count, os.SEEK_SET)
        return count

    def pread(self, buffer: Memory, offset: int, /) -> int:
        """readinto() from `offset` on, in bytes. The position is neither used nor changed."""
        self._require(self._mode.readable, "reading")
        memory = gpu_memory(self._volume, buffer, fills=True)
        begin = not_negative("offset", offset, self.name)
        if memory is None:
            return self._core.pread_into(memory_to_fill(buffer), begin)
        return self._read_to_gpu(begin, memory)

    def write(self, data: Memory, /) -> int:
        """Writes all of it at the position, or at the end where the mode appends; how many bytes.

        Where it raises, as where the volume is full, a part may have been written, and the position
        is where it was.
        """
        self._require(self._mode.writable, "writing")
        memory = self._gpu_memory_to_write(data)
        with self._position:
            if memory is None:
                return self._write_from_host(data)
            begin = self.tell()
            count = self._write_from_gpu(begin, memory)
            self._core.seek(begin + count, os.SEEK_SET)
        return count

    def pwrite(self, data: Memory, offset: int, /) -> int:
        """write() at `offset`, in bytes. The position is neither used nor changed."""
        self._require(self._mode.writable, "writing")
        memory = self._gpu_memory_to_write(data)
        begin = not_negative("offset", offset, self.name)
        if memory is None:
            return pwrite_all(self._volume._core, self._core, data, begin, self.name)
        return self._write_from_gpu(begin, memory)

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """`whence` may be os.SEEK_DATA and os.SEEK_HOLE, too."""
        offset = whole_number("offset", offset, least=-LONG_MAX, most=LONG_MAX)
        whence = whole_number("whence", whence)
        with self._position:
            return self._core.seek(offset, whence)

    def tell(self) -> int:
        return self._core.seek(0, os.SEEK_CUR)

    def truncate(self, size: int | None = None, /) -> int:
        """Makes the file `size` bytes long: shorter, or longer with zeros."""
        self._require(self._mode.writable, "writing")
        if size is None:
            size = self.tell()
        self._core.truncate(not_negative("size", size))
        return size

    def stat(self) -> os.stat_result:
        """As os.fstat()."""
        return self._volume._result_of(self._core.stat())

    def identity(self) -> Identity:
        """As Volume.identity()."""
        return identity_of(self._core)

    def fsync(self) -> None:
        """Returns when the contents, the attributes and, of a new file, the name are durable."""
        self._core.sync()

    def fdatasync(self) -> None:
        """fsync(), but for times where nothing else of the inode has changed."""
        self._core.sync_data()

    def fallocate(self, mode: int, offset: int, length: int, /) -> None:
        """As fallocate(2): 0 reserves what the range lacks, FALLOC_FL_KEEP_SIZE (1) beside it
        leaves the size as it is, FALLOC_FL_PUNCH_HOLE (2) with that makes a hole, and
        FALLOC_FL_ZERO_RANGE (16) makes zeros."""
        self._core.allocate(
            whole_number("mode", mode),
            not_negative("offset", offset, self.name),
            not_negative("length", length, self.name),
        )

    def fileno(self) -> NoReturn:
        """Raises io.UnsupportedOperation: Linux knows nothing of the file."""
        raise io.UnsupportedOperation(
            "a file of a volume has no descriptor of Linux: use its methods, or copy it to the host"
        )

    def isatty(self) -> bool:
        self._checkClosed()
        return False

    def close(self) -> None:
        """Closes the file. What was written is not made durable by that."""
        if self.closed:
            return
        try:
            super().close()
        finally:
            self._core.close()

    def __del__(self) -> None:
        if not self.closed and hasattr(self, "name"):
            warnings.warn(f"unclosed file {self!r}", ResourceWarning, stacklevel=2, source=self)
            self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"cannot pickle {self!r}: send its path, and open it there")

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"name={self.name!r} mode={self.mode!r}"
        return f"<gofs.File {state}>"

    def _expect_of(self, volume: Volume) -> None:
        """For calls of a volume that are given files: ValueError for one of another volume, which
        they would read or write instead."""
        if self._volume is not volume:
            raise ValueError("the file is of another volume")

    def _core_to_read(self, volume: Volume) -> _core.OpenFile:
        """The same for calls that read, and to have what they use. `volume` is whose call it is."""
        self._expect_of(volume)
        self._require(self._mode.readable, "reading")
        return self._core

    def _core_to_write(self, volume: Volume) -> _core.OpenFile:
        self._expect_of(volume)
        self._require(self._mode.writable, "writing")
        return self._core

    def _read_to_gpu(self, offset: int, memory: DeviceMemory) -> int:
        """Waits for the bytes; how many."""
        order = common_stream([memory], None)
        part = (self._core, offset, memory)
        return _moving.read(self._volume._core, [part], [self.name], order)[0]

    def _write_from_gpu(self, offset: int, memory: DeviceMemory) -> int:
        """The same of what is written."""
        order = common_stream([memory], None)
        part = (self._core, offset, memory)
        _moving.write(self._volume._core, [part], [self.name], order)
        return memory.size

    def _write_from_host(self, data: Memory) -> int:
        done = self._core.write(memory_to_read(data))
        if self._is_buffered and done > 0:
            return done

        def go_on(rest: memoryview, so_far: int) -> int:
            nonlocal done
            done = so_far
            return self._core.write(rest)

        try:
            return write_rest(self._volume._core, data, done, go_on, self.name)
        except OSError:
            # A buffer that the program has put above this writes all of it again.
            if not self._mode.appends:
                self._core.seek(-done, os.SEEK_CUR)
            raise

    def _gpu_memory_to_write(self, data: Memory) -> DeviceMemory | None:
        """None: it is to be written from memory of the host."""
        memory = gpu_memory(self._volume, data, fills=False)
        if memory is None or not self._mode.appends:
            return memory
        if memory.is_pinned:
            return None
        raise ValueError(
            "bytes in the memory of a GPU are not appended, since their parts come in any order: "
            "open the file with mode='r+b', and pwrite() them at its size"
        )

    def _require(self, able: bool, what: str) -> None:
        self._checkClosed()
        if not able:
            raise io.UnsupportedOperation(f"File not open for {what}")
