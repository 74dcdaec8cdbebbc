# SPDX-License-Identifier: Apache-2.0
"""A volume of which some calls are the test's own."""

from __future__ import annotations

from typing import Any

import gofs


class Watched:
    """What the binding has of a volume, but for some calls."""

    def __init__(self, volume: gofs.Volume, **calls: Any) -> None:
        self._real = volume._core
        self.__dict__.update(calls)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)
