# SPDX-License-Identifier: Apache-2.0
"""`python -m gofs --cflags --libs`: what programs in C and C++ are built with; `python -m gofs top
VOL`: what goes on in a volume."""

from __future__ import annotations

import argparse
import sys

import gofs
from gofs import _installed, _top_command


def main(arguments: list[str] | None = None) -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(prog="python -m gofs", description=__doc__)
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
    commands = parser.add_subparsers(dest="command")
    _top_command.add_arguments(commands.add_parser("top", help="show what goes on in a volume"))
    given = parser.parse_args(arguments)
    if given.command == "top":
        return _top_command.top(given.volume, given.seconds)
    if not given.wanted:
        parser.error("say what is wanted: " + ", ".join([*answers, "top"]))
    print(*given.wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
