# SPDX-License-Identifier: Apache-2.0
"""The error that Python has no class of its own for."""


class CorruptionError(OSError):
    """The volume contradicts itself: its errno is EUCLEAN, and its words say where.

    `Volume.warnings()` has the rest of what was found.
    """
