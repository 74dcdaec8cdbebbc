#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Judges gofs by the Linux kernel: see --help, and tests/kernel/README.md.
exec python3 "$(dirname "$0")/../tests/kernel/judge.py" "$@"
