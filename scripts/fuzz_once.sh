#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs one libFuzzer binary for GOFS_FUZZ_SECONDS (default 20) from its seed corpus.
# usage: fuzz_once.sh BINARY [CORPUS]
# New inputs go to a folder beside the binary; a finding is left there too, with the command that
# repeats it printed by libFuzzer. The seed is fixed unless GOFS_FUZZ_SEED says otherwise.
set -eu
binary=$1
seeds=${2:-}
work="$binary.corpus"
seconds=${GOFS_FUZZ_SECONDS:-20}
mkdir -p "$work"
# libFuzzer looks at its clock between inputs only.
exec timeout $((seconds + 120)) "$binary" -max_total_time="$seconds" -seed="${GOFS_FUZZ_SEED:-1}" \
  -timeout=10 -rss_limit_mb=4096 -print_final_stats=1 -artifact_prefix="$work/finding-" \
  "$work" ${seeds:+"$seeds"}
