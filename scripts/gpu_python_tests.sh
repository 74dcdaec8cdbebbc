#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs the Python package with device code beside the torch, CuPy and Numba that a machine with
# a GPU has, without a network and without changing them, and runs the tests that want that GPU, and
# those of fsspec and of its users with volumes that the GPU has mounted.
# usage: gpu_python_tests.sh [ARGUMENT OF PYTEST...]
#   GOFS_WHEELS   a folder with wheels of what builds and tests the package; else that of
#                 scripts/setup.sh, where it is; else what the machine has
#   GOFS_BUILD_DIR  a build with gofsd, for the tests of programs that share a volume: build/cuda
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
  # What may be missing too, where there is a wheel of it for this Python.
  for name in zarr donfig numcodecs google-crc32c fastsafetensors torch-geometric xxhash psutil \
    nvidia-ml-py; do
    install "$site-tools" --find-links "$wheels" --no-deps "$name" 2>/dev/null || true
  done
fi
export PYTHONPATH=$site:$site-tools:$PWD/python/tests
export PYTHONDONTWRITEBYTECODE=1
GOFS_CUDA=${GOFS_CUDA:-1} install "$site" --no-build-isolation --no-deps .

# Kernels that wait for each other are not loaded while they do.
export CUDA_MODULE_LOADING=EAGER
export GOFS_BUILD_DIR=${GOFS_BUILD_DIR:-$PWD/build/cuda} GOFS_TEST_BACKEND=cuda
cd python/tests
exec "$python" -m pytest -q -p no:cacheprovider "$@" \
  test_with_real_torch.py test_on_gpu.py test_kernels_on_gpu.py \
  test_fsspec*.py test_consumers.py test_batches.py test_ranges.py test_safetensors.py
