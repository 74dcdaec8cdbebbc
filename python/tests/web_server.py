# SPDX-License-Identifier: Apache-2.0
"""A page of `gofs top --web` in a thread."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Iterator

from gofs._web import WebTop


@contextlib.contextmanager
def served_page(web: WebTop) -> Iterator[int]:
    """The port on this machine."""
    ports: queue.Queue[int] = queue.Queue()
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await web.serve("127.0.0.1", 0, ports.put)

    task = loop.create_task(serve())
    thread = threading.Thread(target=lambda: loop.run_until_complete(task))
    thread.start()
    try:
        yield ports.get(timeout=60)
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()
        loop.close()
