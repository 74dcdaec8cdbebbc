#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs the Python package with device code beside the torch, CuPy and Numba that a machine with
# a GPU has, without a network and without changing them, and runs the tests that want that GPU.
# usage: gpu_python_tests.sh [ARGUMENT OF PYTEST...]
#   GOFS_WHEELS   a folder with wheels of what builds and tests the package; else that of
#                 scripts/setup.sh, where it is; else what the machine has
# The last line is `N passed, N failed, N skipped`.
set -euo pipefail
cd "$(dirname "$0")/.."

python=$(scripts/python.sh) || { echo "gpu_python_tests: no python3 with pip" >&2; exit 1; }
site=$PWD/build/gpu-python
wheels=${GOFS_WHEELS:-build/wheels}
install() {
  "$python" -m pip install --quiet --disable-pip-version-check --no-input --no-index \
    --root-user-action=ignore --upgrade --target "$@"
}

mkdir -p build
if [ -d "$wheels" ]; then
  install "$site-tools" --find-links "$wheels" scikit-build-core nanobind pytest
fi
export PYTHONPATH=$site:$site-tools:$PWD/python/tests
export PYTHONDONTWRITEBYTECODE=1
GOFS_CUDA=${GOFS_CUDA:-1} install "$site" --no-build-isolation --no-deps .

# Kernels that wait for each other are not loaded while they do.
export CUDA_MODULE_LOADING=EAGER
exec "$python" -m pytest -q -p no:cacheprovider "$@" \
  python/tests/test_on_gpu.py python/tests/test_with_real_torch.py \
  python/tests/test_kernels_on_gpu.py
