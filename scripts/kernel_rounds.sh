#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Has gofs and the Linux kernel write one volume in turns: see --help, and tests/kernel/README.md.
exec python3 "$(dirname "$0")/../tests/kernel/rounds.py" "$@"
