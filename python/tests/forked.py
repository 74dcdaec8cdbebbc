# SPDX-License-Identifier: Apache-2.0
"""A child of fork(), which has one thread, and all locks as they were."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable


def in_child(body: Callable[[], str]) -> str:
    """What `body` returns in a child of fork(), or its traceback."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            text = body()
        except BaseException:
            text = traceback.format_exc()
        os.write(writing, text.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    assert os.waitpid(child, 0)[1] == 0
    return text
