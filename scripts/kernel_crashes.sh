#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Has the Linux kernel recover crashes of gofs, and gofs those of the kernel: see --help.
exec python3 "$(dirname "$0")/../tests/kernel/crashes.py" "$@"
