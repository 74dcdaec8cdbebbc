#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Prints a clang++ that has libFuzzer, or nothing and exit status 1. 16 is in Debian 12 and in
# Ubuntu 24.04 and is what `make test` uses; a newer one does where that is missing.
for candidate in clang++-16 clang++ clang++-20 clang++-19 clang++-18 clang++-17; do
  if command -v "$candidate" > /dev/null 2>&1; then
    runtime=$("$candidate" -print-file-name=libclang_rt.fuzzer-x86_64.a)
    # Newer layouts name the folder, not the file, after the machine.
    [ -e "$runtime" ] || runtime=$("$candidate" -print-file-name=libclang_rt.fuzzer.a)
    if [ -e "$runtime" ]; then
      command -v "$candidate"
      exit 0
    fi
  fi
done
exit 1
