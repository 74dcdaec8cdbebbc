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

`gofs.cuda`, `gofs.torch` and the other modules of the package are imported when they are first
used.
"""

import importlib
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from gofs import cuda as cuda
    from gofs import fastsafetensors as fastsafetensors
    from gofs import fsspec as fsspec
    from gofs import numba as numba
    from gofs import safetensors as safetensors
    from gofs import top as top
    from gofs import torch as torch
else:
    _MODULES = ("cuda", "fastsafetensors", "fsspec", "numba", "safetensors", "top", "torch")

    def __getattr__(name: str) -> object:
        if name in _MODULES:
            return importlib.import_module(f"gofs.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *_MODULES})


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
