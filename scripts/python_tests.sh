#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs the Python package in a fresh environment, as `pip install .` does and without a network,
# and runs its tests there.
# usage: python_tests.sh [ARGUMENT OF PYTEST...]
#   GOFS_FAST_BUILD=ON   what it is built of is compiled as scripts/build.sh does then, so that
#                        ccache has it
# The wheels are those of scripts/setup.sh. The last line is `N passed, N failed, N skipped`.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=build/python-venv
python=$(scripts/python.sh) ||
  { echo "python: no python3 with pip: run scripts/setup.sh" >&2; exit 1; }

# As scripts/build.sh has it, for ccache, which also knows compilers by their names: CMake's.
export CXX=${CXX:-c++}
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$PWD}
export CCACHE_NOHASHDIR=1
export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS:-pch_defines,time_macros}

mkdir -p build
"$python" -m venv --without-pip --clear $venv
"$python" -m pip --python $venv/bin/python install --quiet --disable-pip-version-check --no-input \
  --no-index --find-links build/wheels --root-user-action=ignore \
  --config-settings=cmake.define.GOFS_FAST_BUILD="${GOFS_FAST_BUILD:-OFF}" \
  --config-settings=cmake.define.GOFS_CUDA=OFF \
  --requirement scripts/python.txt '.[fsspec,top]'

# CUDA's compiler and linker, if scripts/setup.sh has fetched them: as if they were installed there.
if [ -d build/toolchain/nvidia ]; then
  ln -s "$PWD"/build/toolchain/nvidia* $venv/lib/python3*/site-packages/
fi

export GOFS_BUILD_DIR=${GOFS_BUILD_DIR:-$PWD/build/cpu} PYTHONDONTWRITEBYTECODE=1
export GOFS_DEVICE_BUILD_DIR=${GOFS_DEVICE_BUILD_DIR:-$PWD/build/cuda}
exec $venv/bin/python -m pytest -q -p no:cacheprovider "$@"
