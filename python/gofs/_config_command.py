# SPDX-License-Identifier: Apache-2.0
"""`gofs-config --cflags --libs`: what programs in C and C++ are built with.

`python -m gofs` has the same options.
"""

from __future__ import annotations

import argparse

import gofs
from gofs import _installed


def add_arguments(parser: argparse.ArgumentParser) -> list[str]:
    """What is asked for is in `wanted` then: the answers. The names of the options."""
    parser.add_argument("--version", action="version", version=gofs.__version__)
    answers = {
        "--include-dir": (str(_installed.INCLUDE), "the folder of gofs/gofs.h"),
        "--lib-dir": (str(_installed.LIB), "the folder of libgofs.so, and of libgofs_device.a"),
        "--cmake-dir": (str(_installed.CMAKE), "for CMAKE_PREFIX_PATH or gofs_DIR"),
        "--cflags": (_installed.compiler_flags(), "flags to compile with, of g++ and nvcc"),
        "--libs": (_installed.linker_flags(), "flags to link with; before them -lgofs_device, "
                   "where there are kernels"),
    }
    for option, (answer, says) in answers.items():
        parser.add_argument(
            option, dest="wanted", action="append_const", const=answer, help=says
        )
    return list(answers)


def main(arguments: list[str] | None = None) -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(prog="gofs-config", description=__doc__)
    options = add_arguments(parser)
    given = parser.parse_args(arguments)
    if not given.wanted:
        parser.error("say what is wanted: " + ", ".join(options))
    print(*given.wanted)
    return 0
