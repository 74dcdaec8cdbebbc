# SPDX-License-Identifier: Apache-2.0
"""Counts of bytes for people."""

from __future__ import annotations


def size_text(count: float) -> str:
    """With a unit of SI, as SSDs are sold."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
