# SPDX-License-Identifier: Apache-2.0
"""Where the package has what programs and kernels are built with."""

from __future__ import annotations

import pathlib

FOLDER = pathlib.Path(__file__).parent
INCLUDE = FOLDER / "include"
LIB = FOLDER / "lib"
CMAKE = LIB / "cmake" / "gofs"

_NO_DEVICE_CODE = (
    "this gofs was installed without device code: where nvcc 13.0 or newer is, "
    "`GOFS_CUDA=1 pip install .` in its source tree builds that"
)


def device_library() -> pathlib.Path:
    """The archive that kernels are linked with. ImportError where the package has none."""
    path = LIB / "libgofs_device.a"
    if not path.exists():
        raise ImportError(_NO_DEVICE_CODE)
    return path


def device_architectures() -> str:
    """What the archive has machine code for, as CMake was told: "80 90"."""
    for line in (LIB / "pkgconfig" / "gofs-device.pc").read_text().splitlines():
        name, _, value = line.partition("=")
        if name == "architectures":
            return value
    return ""


def compiler_flags() -> str:
    """For g++ and nvcc."""
    return f"-I{INCLUDE}"


def linker_flags() -> str:
    """For g++ and nvcc. A program finds the library where it is now."""
    return f"-L{LIB} -lgofs -Xlinker -rpath -Xlinker {LIB}"
