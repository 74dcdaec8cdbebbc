# SPDX-License-Identifier: Apache-2.0
"""Volumes that functions are given, whose arguments others have in another order."""

from __future__ import annotations

from typing import Any

from gofs._numbers import kind_of
from gofs._volume import Volume


def given_volume(given: Any) -> Volume:
    """Raises TypeError for what is none."""
    if not isinstance(given, Volume):
        raise TypeError(f"volume: a gofs.Volume is wanted, not {kind_of(given)}")
    return given
