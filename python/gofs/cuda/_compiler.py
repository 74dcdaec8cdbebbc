# SPDX-License-Identifier: Apache-2.0
"""NVRTC: from a source to relocatable machine code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gofs.cuda import _bindings
from gofs.cuda._errors import CompileError

if TYPE_CHECKING:
    from collections.abc import Sequence

# What messages call the source.
_NAME = b"kernel.cu"


def version() -> tuple[int, int]:
    _, major, minor = _bindings.nvrtc().nvrtcVersion()
    return major, minor


def compile_source(source: str, options: Sequence[str]) -> bytes:
    """The machine code. CompileError has the log of what is wrong."""
    nvrtc = _bindings.nvrtc()
    status, program = nvrtc.nvrtcCreateProgram(source.encode(), _NAME, 0, [], [])
    if int(status) != 0:
        raise CompileError(status.name)
    try:
        words = [option.encode() for option in options]
        (status,) = nvrtc.nvrtcCompileProgram(program, len(words), words)
        if int(status) != 0:
            log = _bytes_of(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program)
            raise CompileError(log.decode(errors="replace").strip("\0\n") or status.name)
        return _bytes_of(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _bytes_of(size_of: Any, copy: Any, program: Any) -> bytes:
    status, size = size_of(program)
    data = bytearray(size) if int(status) == 0 else bytearray()
    copy(program, data)
    return bytes(data)
