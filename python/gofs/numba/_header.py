# SPDX-License-Identifier: Apache-2.0
"""The calls that gofs/gofs_device.h declares, as Numba declares them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

# C's types in the header; all pointers are addresses.
_TYPES = {
    "int": "int32",
    "unsigned int": "uint32",
    "long long": "int64",
    "unsigned long long": "uint64",
}
_POINTER = "uint64"

# A comment of the header, a call, or what ends the calls that a comment is for.
_ITEM = re.compile(
    r"(?P<comment>(?:^/// .*\n)+)"
    r"|^GOFS_DEVICE_CALL\((?P<result>[a-z ]+), gofs_(?P<name>\w+),(?P<parameters>[^;]*)\);"
    r"|^(?P<end>$)",
    re.MULTILINE,
)


class Call(NamedTuple):
    """A call, without the group that makes it."""

    name: str  # "pread"
    result: str  # "int64"
    parameters: list[tuple[str, str]]  # ("fd", "int32")
    says: str


def calls(text: str) -> Iterator[Call]:
    """Of the text of the header, in its order."""
    comment = ""
    for item in _ITEM.finditer(text):
        if item["comment"]:
            comment = " ".join(line[4:] for line in item["comment"].splitlines())
        elif item["name"]:
            parameters = [_parameter(words) for words in item["parameters"].split(",")]
            yield Call(item["name"], _TYPES[item["result"]], parameters, comment)
        else:
            comment = ""


def _parameter(words: str) -> tuple[str, str]:
    kind, name = re.split(r"\s(?=\w+$)", words.strip())
    return name, _POINTER if "*" in kind else _TYPES[kind]
