#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Prints the python3 that GoFS uses where it needs pip, or nothing and exit status 1.
# Order: PATH (a venv, pyenv), Debian's.
for candidate in python3 /usr/bin/python3; do
  if "$candidate" -m pip --version > /dev/null 2>&1; then
    command -v "$candidate"
    exit 0
  fi
done
exit 1
