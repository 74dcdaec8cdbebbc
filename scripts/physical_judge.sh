#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Drives QEMU's NVMe controller by VFIO in a guest: see --help, and tests/physical/README.md.
exec python3 "$(dirname "$0")/../tests/physical/judge.py" "$@"
