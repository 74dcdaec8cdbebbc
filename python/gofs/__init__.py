# SPDX-License-Identifier: Apache-2.0
"""GoFS, a file system that runs on the GPU, for Python.

    import gofs

    gofs.mkfs("vol.img", 1 << 30)
    with gofs.mount("vol.img", writable=True) as volume:
        volume.write("/hello.txt", b"Hello")
        with volume.open("/hello.txt") as file:
            print(file.read())

A `Volume` has the names of `os` and `os.path`, and its files are those of `io`. Errors are the
subclasses of OSError that Python has for them. All calls release the GIL and may be made by several
threads at once.
"""

from gofs._core import VERSION as __version__
from gofs._core import (
    CachedPages,
    CleaningReport,
    CommandTimes,
    LookupCounts,
    MemoryPart,
    MemoryReport,
    OutcomeCounts,
    Statistics,
    TimedCommands,
    VolumeInfo,
)
from gofs._copying import Copied, copy
from gofs._entries import DirEntry, ScandirIterator
from gofs._errors import CorruptionError
from gofs._file import File
from gofs._identity import Identity
from gofs._mounting import attach, mkfs, mount
from gofs._names import RENAME_EXCHANGE, RENAME_NOREPLACE
from gofs._packed import PackedFiles
from gofs._registering import Registration
from gofs._transfer import Transfer
from gofs._volume import Volume

__all__ = [
    "RENAME_EXCHANGE",
    "RENAME_NOREPLACE",
    "CachedPages",
    "CleaningReport",
    "CommandTimes",
    "Copied",
    "CorruptionError",
    "DirEntry",
    "File",
    "Identity",
    "LookupCounts",
    "MemoryPart",
    "MemoryReport",
    "OutcomeCounts",
    "PackedFiles",
    "Registration",
    "ScandirIterator",
    "Statistics",
    "TimedCommands",
    "Transfer",
    "Volume",
    "VolumeInfo",
    "__version__",
    "attach",
    "copy",
    "mkfs",
    "mount",
]
