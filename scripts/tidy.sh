#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# clang-tidy (.clang-tidy) over every C++ source that the cpu preset compiles. Headers are seen
# through the sources that include them.
set -euo pipefail
cd "$(dirname "$0")/.."
cmake --preset cpu -Wno-dev > /dev/null
git ls-files -co --exclude-standard 'src/*.cpp' 'tests/*.cpp' |
  xargs -r -n 1 -P "$(nproc)" clang-tidy-16 -p build/cpu --quiet
