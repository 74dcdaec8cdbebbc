#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the tests of the Python package by other Pythons than the machine's own, with the newest
# releases of what they are given that pip finds: from 3.12 on by one wheel, which abi3audit judges.
# usage: python_versions.sh PYTHON...        (needs PyPI, and what scripts/setup.sh has fetched)
# The last line of each is `N passed, N failed, N skipped`; an error where some failed.
set -euo pipefail
cd "$(dirname "$0")/.."

[ $# -gt 0 ] || { sed -n '4,7s/^# //p' "$0" >&2; exit 2; }

work=build/python-versions
rm -rf "$work"
mkdir -p "$work"
grep -v -e '^#' -e '^scikit-build-core' -e '^nanobind' scripts/python.txt |
  sed 's/==.*//' > "$work/wanted.txt"
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_QUIET=1 PIP_ROOT_USER_ACTION=ignore
export GOFS_BUILD_DIR=${GOFS_BUILD_DIR:-$PWD/build/cpu} PYTHONDONTWRITEBYTECODE=1
export GOFS_DEVICE_BUILD_DIR=${GOFS_DEVICE_BUILD_DIR:-$PWD/build/cuda}

build_wheel() { # into the folder $2, by the Python $1
  "$1" -m pip wheel --no-deps --wheel-dir "$2" \
    --config-settings=cmake.define.GOFS_FAST_BUILD="${GOFS_FAST_BUILD:-OFF}" \
    --config-settings=cmake.define.GOFS_CUDA=OFF .
}

failed=0
for python in "$@"; do
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  echo "== Python $version"
  venv=$work/$version
  "$python" -m venv "$venv"
  venv_python=$venv/bin/python
  wheels=$work/wheels-$version
  [ "${version#3.}" -ge 12 ] && wheels=$work/wheels-abi3
  if [ ! -d "$wheels" ]; then
    build_wheel "$venv_python" "$wheels"
    if [ "$wheels" = "$work/wheels-abi3" ]; then
      "$python" -m venv "$work/audit"
      "$work/audit/bin/python" -m pip install abi3audit
      "$work/audit/bin/abi3audit" --strict "$wheels"/*.whl
    fi
  fi
  "$venv_python" -m pip install "$(echo "$wheels"/*.whl)[fsspec,top]" \
    --requirement "$work/wanted.txt"
  if [ -d build/toolchain/nvidia ]; then
    ln -sfn "$PWD"/build/toolchain/nvidia* "$venv"/lib/python3*/site-packages/
  fi
  "$venv_python" -m pytest -q -p no:cacheprovider || failed=1
done
exit $failed
