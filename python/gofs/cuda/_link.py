# SPDX-License-Identifier: Apache-2.0
"""From a source to kernels that call the file system."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import gofs
from gofs import _installed
from gofs.cuda import _bindings, _cache, _compiler, _linker
from gofs.cuda._included import reads_other_files
from gofs.cuda._module import Module, Timings

if TYPE_CHECKING:
    from collections.abc import Sequence



def link(source: str, *, options: Sequence[str] = (), arch: str | None = None) -> Module:
    """Compiles kernels and links them with GoFS's device code.

    `source` is CUDA C++, which finds <gofs/gofs_device.h>; its kernels are `extern "C"`. `options`
    are those of NVRTC, such as "-DN=4" or "-lineinfo". `arch` is that of the device that is
    current, if it is not given; one that the device code was not built for is refused.

    What was linked before comes from a cache ($XDG_CACHE_HOME/gofs), unless the source includes
    files that are not installed with the package or the compiler, or options name files or folders.
    Needs no GPU if `arch` is given.

    Raises CompileError and LinkError with the log of the compiler or linker, ImportError where
    these or the device code are not installed, and RuntimeError where there is no GPU to ask.
    """
    if isinstance(options, str):
        raise TypeError("options is a sequence of strings, not one string")
    archive = _installed.device_library()
    arch = arch or _bindings.current_architecture()
    words = [f"-arch={arch}", "-rdc=true", "--no-source-include", f"-I{_installed.INCLUDE}"]
    words.extend(options)

    cacheable = not reads_other_files(source, options)
    identity = archive.stat()
    key = _cache.key_of(
        source,
        words,
        (gofs.__version__, identity.st_size, identity.st_mtime_ns),
        _compiler.version(),
        _linker.version(),
    )
    kept = _cache.load(key) if cacheable else None
    if kept is not None:
        return Module(kept, arch, Timings(0, 0), cached=True)

    begin = time.perf_counter()
    code = _compiler.compile_source(source, words)
    compiled = time.perf_counter()
    cubin = _linker.link_with_archive(code, archive, arch)
    timings = Timings(compiled - begin, time.perf_counter() - compiled)
    if cacheable:
        _cache.store(key, cubin)
    return Module(cubin, arch, timings, cached=False)
