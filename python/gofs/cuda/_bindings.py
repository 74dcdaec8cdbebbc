# SPDX-License-Identifier: Apache-2.0
"""CUDA's compiler, linker and driver, of NVIDIA's packages cuda-core and cuda-bindings."""

from __future__ import annotations

import importlib
from typing import Any


def _load(module: str, library: str) -> Any:
    try:
        importlib.import_module("cuda.pathfinder").load_nvidia_dynamic_lib(library)
        return importlib.import_module(module)
    except (ImportError, RuntimeError) as error:  # the latter where the library is missing
        raise ImportError(
            f"gofs.cuda needs CUDA's {library} and cuda-core: pip install 'cuda-core[cu13]'"
        ) from error


def nvrtc() -> Any:
    """The module cuda.bindings.nvrtc. ImportError where it is not installed."""
    return _load("cuda.bindings.nvrtc", "nvrtc")


def nvjitlink() -> Any:
    """The module cuda.bindings.nvjitlink. ImportError where it is not installed."""
    return _load("cuda.bindings.nvjitlink", "nvJitLink")


def core() -> Any:
    """The module cuda.core. ImportError where it is not installed."""
    return _load("cuda.core", "nvJitLink")


def current_architecture() -> str:
    """Of the device that is current, or the first one: "sm_90". RuntimeError without any."""
    cuda_core = core()
    try:
        return f"sm_{cuda_core.Device().arch}"
    except Exception as error:  # cuda.core names no class of its errors
        raise RuntimeError("there is no GPU to compile for: say which, as arch='sm_90'") from error
