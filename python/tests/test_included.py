# SPDX-License-Identifier: Apache-2.0
"""Which sources of kernels the cache may know by what they say."""

from __future__ import annotations

import pytest

from gofs.cuda._included import reads_other_files

COMPLETE = [
    "",
    "#include <gofs/gofs_device.h>",
    '#include "gofs/gofs_device.h"',
    "  #  include<cuda/std/atomic>  // and no other",
    "#/* */include /* */ <gofs/gofs_device.h>",
    "#inc\\\nlude <gofs/gofs_device.h>",
    "#if __has_include(<cuda_fp16.h>)",
    "// It does not include /tmp/x.h, and embeds nothing.",
    '#define TEXT "include"',
]
OPEN = [
    '#include "/tmp/mine.h"',
    "#include </tmp/mine.h>",
    '#include "../mine.h"',
    "#include <gofs/../../mine.h>",
    "#include HEADER",
    '%:include "/tmp/mine.h"',
    '#/* */include/* */"/tmp/mine.h"',
    '#inc\\\nlude "/tmp/mine.h"',
    '#include_next "/tmp/mine.h"',
    '#embed "/tmp/table.bin"',
    '#if __has_include("/tmp/mine.h")',
    '#include <gofs/gofs_device.h>\n#include "/tmp/mine.h"\nint x;',
]
READING = ["-I/tmp", "--include-path=/tmp", "-include", "--pre-include=a.h", "--use-pch=a.pch"]


@pytest.mark.parametrize("source", COMPLETE)
def test_what_is_installed_may_be_included(source: str) -> None:
    assert not reads_other_files(source, ["-lineinfo", "-DN=4"])


@pytest.mark.parametrize("source", OPEN)
def test_other_files_may_change(source: str) -> None:
    assert reads_other_files(source, [])


@pytest.mark.parametrize("option", READING)
def test_options_may_read_files(option: str) -> None:
    assert reads_other_files("", [option])
