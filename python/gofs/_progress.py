# SPDX-License-Identifier: Apache-2.0
"""Telling somebody how far a copy is."""

from __future__ import annotations

from typing import Any

from gofs._numbers import kind_of


class Progress:
    """Tells a Callback of fsspec, or a bar of tqdm, of bytes; nobody, where there is none."""

    def __init__(self, told: Any) -> None:
        """Raises TypeError for what is neither."""
        # An object of fsspec answers to each name there is, so its class is asked.
        self._is_callback = hasattr(type(told), "relative_update")
        if (
            told is not None
            and not self._is_callback
            and not callable(getattr(told, "update", None))
        ):
            raise TypeError(
                f"callback: {kind_of(told)} is neither a Callback of fsspec nor a tqdm bar"
            )
        self._told = told

    def expect(self, count: int) -> None:
        """So many bytes are to come in all."""
        if self._is_callback:
            self._told.set_size(count)
        elif self._told is not None:
            self._told.total = count
            if callable(getattr(self._told, "refresh", None)):
                self._told.refresh()

    def add(self, count: int) -> None:
        """So many more are there."""
        if self._is_callback:
            self._told.relative_update(count)
        elif self._told is not None:
            self._told.update(count)
