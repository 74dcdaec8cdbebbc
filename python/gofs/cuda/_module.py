# SPDX-License-Identifier: Apache-2.0
"""Linked kernels, and how CuPy and cuda.core get them."""

from __future__ import annotations

import functools
import hashlib
import importlib
import os
from typing import Any, NamedTuple

from gofs._numbers import truth_value
from gofs.cuda import _bindings


class Timings(NamedTuple):
    """Seconds that making a module took; 0 where it was kept from before."""

    compile_seconds: float
    link_seconds: float


class Module:
    """Kernels that are linked with GoFS's device code. `link()` makes it."""

    def __init__(self, cubin: bytes, arch: str, timings: Timings, *, cached: bool) -> None:
        self._cubin = cubin
        self._arch = arch
        self._timings = timings
        self._cached = cached

    def __repr__(self) -> str:
        return f"<gofs.cuda.Module for {self._arch}, {len(self._cubin)} bytes>"

    @property
    def cubin(self) -> bytes:
        """Machine code, for whatever else loads kernels."""
        return self._cubin

    @property
    def arch(self) -> str:
        """What it is for: "sm_90"."""
        return self._arch

    @property
    def timings(self) -> Timings:
        """What compiling and linking took."""
        return self._timings

    @property
    def cached(self) -> bool:
        """Whether it was kept from before, by this program or another one."""
        return self._cached

    def get_function(self, name: str, *, cooperative: bool = False) -> Any:
        """A kernel for CuPy: a cupy.RawKernel, for each device that it is launched on.

        `name` is that of an `extern "C"` function. `cooperative` kernels are launched so that they
        may make the calls of a grid. Raises ImportError without CuPy, and what CuPy raises where
        there is no such kernel.
        """
        truth_value("cooperative", cooperative)
        try:
            cupy = importlib.import_module("cupy")
        except ImportError as error:
            raise ImportError("this kernel is for CuPy: pip install cupy-cuda13x") from error
        path = _as_file(self._cubin)
        return cupy.RawModule(path=path, enable_cooperative_groups=cooperative).get_function(name)

    def get_kernel(self, name: str) -> Any:
        """A kernel for cuda.core: a cuda.core.Kernel, to be launched on the device that is current.

        `name` is that of an `extern "C"` function. What makes the calls of a grid is launched with
        LaunchConfig(is_cooperative=True). Raises what cuda.core raises where there is no such
        kernel.
        """
        return self._object_code.get_kernel(name)

    @functools.cached_property
    def _object_code(self) -> Any:
        return _bindings.core().ObjectCode.from_cubin(self._cubin)


# Paths of cubins, by what these hash to.
_files: dict[bytes, str] = {}


def _as_file(cubin: bytes) -> str:
    """The path of a file in memory with these bytes, as long as the process lives.

    CuPy loads modules from files alone, once for each device and path, and keeps them as long.
    """
    digest = hashlib.sha256(cubin).digest()
    if digest not in _files:
        handle = os.memfd_create("gofs.cubin")
        with open(handle, "wb", closefd=False) as file:
            file.write(cubin)
        _files[digest] = f"/proc/self/fd/{handle}"
    return _files[digest]
