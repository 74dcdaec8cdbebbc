# SPDX-License-Identifier: Apache-2.0
"""`python -m gofs --cflags --libs`: what programs in C and C++ are built with; `python -m gofs top
VOL`: what goes on in a volume."""

from __future__ import annotations

import argparse
import sys

from gofs import _config_command, _top_command


def main(arguments: list[str] | None = None) -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(prog="python -m gofs", description=__doc__)
    options = _config_command.add_arguments(parser)
    commands = parser.add_subparsers(dest="command")
    _top_command.add_arguments(commands.add_parser("top", help="show what goes on in a volume"))
    given = parser.parse_args(arguments)
    if given.command == "top":
        return _top_command.top(given.volume, given.seconds, given.web)
    if not given.wanted:
        parser.error("say what is wanted: " + ", ".join([*options, "top"]))
    print(*given.wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
