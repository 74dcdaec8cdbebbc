# SPDX-License-Identifier: Apache-2.0
"""nvJitLink: from relocatable machine code and an archive to what the driver loads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gofs import _installed
from gofs.cuda import _bindings
from gofs.cuda._errors import LinkError

if TYPE_CHECKING:
    import pathlib


def version() -> tuple[int, int]:
    _bindings.core()  # what importing it takes is none of linking
    major, minor = _bindings.nvjitlink().version()
    return major, minor


def link_with_archive(code: bytes, archive: pathlib.Path, arch: str) -> bytes:
    """The cubin. LinkError has the log of what is wrong."""
    core = _bindings.core()
    kernel = core.ObjectCode.from_cubin(code, name="kernel.cu")
    library = core.ObjectCode.from_library(str(archive), name=archive.name)
    try:
        linker = core.Linker(kernel, library, options=core.LinkerOptions(arch=arch))
        return bytes(linker.link("cubin").code)
    except Exception as error:  # cuda.core names no class of its errors
        said = str(error).strip("\0\n")
        raise LinkError(
            f"{said}\n(for {arch}; the device code of GoFS is for "
            f"{_installed.device_architectures()})"
        ) from error
