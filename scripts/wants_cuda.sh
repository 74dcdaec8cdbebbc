#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Exit status 0 where device code is of use: GOFS_CUDA=1 asks for it, or the driver lists a GPU.
[ "${GOFS_CUDA:-0}" = 1 ] || nvidia-smi -L 2> /dev/null | grep -q GPU
