# SPDX-License-Identifier: Apache-2.0
"""Whether a source is all that a compiler reads, beside what is installed with the package."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

# Of options that have NVRTC read files.
_READS_FILES = ("-I", "--include-path", "-include", "--pre-include", "--use-pch", "-pch", "--pch")

# A directive, and what it names, after which nothing matters; `%:` is another way to write `#`.
_DIRECTIVE = re.compile(
    r"(?:#|%:)(?:\s|/\*.*?\*/)*(?:include|include_next|embed|import)\b(.*)"
    r"|\b__has_(?:include|embed)\b(.*)"
)
# Within the folders that are installed: NVRTC looks into no others.
_INSTALLED = re.compile(r"""(?:\s|/\*.*?\*/|\()*(?:<(?!/)[^<>]+>|"(?!/)[^"]+")""")


def reads_other_files(source: str, options: Sequence[str]) -> bool:
    """Whether the compiler may read files that a cache of its results does not know.

    True as well where that is not plain, such as for the name of a macro.
    """
    if any(option.startswith(_READS_FILES) for option in options):
        return True
    for line in source.replace("\\\n", "").splitlines():
        for found in _DIRECTIVE.finditer(line):
            name = _INSTALLED.match(found[1] if found[1] is not None else found[2])
            if name is None or ".." in name[0]:
                return True
    return False
