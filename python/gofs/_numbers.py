# SPDX-License-Identifier: Apache-2.0
"""Arguments of calls as the binding takes them; what is none of its kind is named."""

from __future__ import annotations

import errno
import math
import operator
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gofs._typing import AnyPath

WORD_MAX = 2**32 - 1
LONG_MAX = 2**63 - 1

_NANOSECONDS = 1_000_000_000


def whole_number(name: str, given: Any, *, least: int = 0, most: int = WORD_MAX) -> int:
    """Raises TypeError for what is no whole number, and OverflowError for one out of bounds."""
    try:
        number = operator.index(given)
    except TypeError:
        raise TypeError(f"{name}: a whole number is wanted, not {given!r}") from None
    if not least <= number <= most:
        raise OverflowError(f"{name}: a number from {least} to {most} is wanted, not {number}")
    return number


def not_negative(name: str, given: Any, path: AnyPath | None = None) -> int:
    """The number, of bytes, as Linux takes it. Raises OSError (EINVAL), about `path`, for one below
    0, OverflowError for one from 2**63 on, TypeError for what is no whole number, and what is wrong
    about the path itself before that about the number."""
    try:
        number = operator.index(given)
    except TypeError:
        raise TypeError(f"{name}: a whole number is wanted, not {given!r}") from None
    if number > LONG_MAX:
        raise OverflowError(f"{name}: {number} bytes: Linux counts to 2**63 - 1")
    if number < 0:
        about = None if path is None else os.fspath(path)
        if about is not None and b"\0" in os.fsencode(about):
            raise ValueError("embedded null byte")
        raise OSError(errno.EINVAL, f"{os.strerror(errno.EINVAL)}: {name} is {number}", about)
    return number


def permissions_number(given: Any, name: str = "permissions") -> int:
    """The same of permissions, which are often tried as text."""
    if isinstance(given, str):
        raise TypeError(f"{name}: a whole number such as 0o644 is wanted, not {given!r}")
    return whole_number(name, given)


def text(name: str, given: Any) -> str:
    """Raises TypeError for what is none, and ValueError for what UTF-8 cannot have."""
    if not isinstance(given, str):
        raise TypeError(f"{name}: text is wanted, not {given!r}")
    try:
        given.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name}: {given!r} has what UTF-8 cannot have") from None
    return given


def truth_value(name: str, given: Any) -> bool:
    """Raises TypeError for all but True and False: what else is meant by a text such as "no"?"""
    if not isinstance(given, bool):
        raise TypeError(f"{name}: True or False is wanted, not {given!r}")
    return given


def kind_of(given: object) -> str:
    """Its type, as words say it."""
    name = type(given).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def several(name: str, given: Iterable[Any]) -> list[Any]:
    """All of them. Raises TypeError for what cannot be gone through, and for one path: its letters
    are not meant."""
    if isinstance(given, (str, bytes, os.PathLike)):
        raise TypeError(f"{name}: several are wanted, as in [{given!r}], not {given!r}")
    try:
        each = iter(given)
    except TypeError:
        raise TypeError(f"{name}: several are wanted, not {given!r}") from None
    return list(each)


def pair(name: str, given: Iterable[Any]) -> tuple[Any, Any]:
    """Raises TypeError for what are not two."""
    both = several(name, given)
    if len(both) != 2:
        raise TypeError(f"{name}: two are wanted, not {given!r}")
    return both[0], both[1]


def by_name(name: str, given: Mapping[Any, Any]) -> Iterable[tuple[Any, Any]]:
    """The items. Raises TypeError for what is no mapping."""
    if not hasattr(given, "items"):
        raise TypeError(f"{name}: a dict of contents by name is wanted, not {kind_of(given)}")
    return given.items()


def nanoseconds(name: str, seconds: Any) -> int:
    """Raises TypeError for what is no number, and ValueError for what is no duration."""
    try:
        number = float(seconds) if not isinstance(seconds, str) else None
    except TypeError:
        number = None
    if number is None:
        raise TypeError(f"{name}: a number of seconds is wanted, not {seconds!r}")
    if not 0 <= number <= LONG_MAX / _NANOSECONDS or math.isnan(number):
        raise ValueError(f"{name}: seconds from 0 on are wanted, not {seconds!r}")
    return round(number * _NANOSECONDS)
