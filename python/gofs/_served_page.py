# SPDX-License-Identifier: Apache-2.0
"""A page about a volume, for as long as the program wants it."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading

from gofs._closing import Closing
from gofs._web import WebTop, parse_address, url_of


class ServedPage(Closing):
    """What Volume.serve_page() returns. A thread answers until close(), or the end of the `with`
    block; then the port is free."""

    def __init__(self, page: WebTop, address: str) -> None:
        host, port = parse_address(address)
        self._loop = asyncio.new_event_loop()
        self._serving: asyncio.Task[None] | None = None
        bound: concurrent.futures.Future[int] = concurrent.futures.Future()
        self._thread = threading.Thread(
            target=self._run, args=(page, host, port, bound), name="gofs-page", daemon=True
        )
        self._thread.start()
        try:
            self.port = bound.result()
        except BaseException:
            self._thread.join()
            raise
        self.url = url_of(host, self.port)
        """Where the page is; `metrics` behind it is for Prometheus."""

    def close(self) -> None:
        """Hangs up, and waits until that is done. Nothing where it was closed before."""
        serving = self._serving
        if serving is None or self._loop.is_closed():
            return
        self._loop.call_soon_threadsafe(serving.cancel)
        self._thread.join()

    def _run(
        self, page: WebTop, host: str, port: int, bound: concurrent.futures.Future[int]
    ) -> None:
        async def serve() -> None:
            self._serving = asyncio.current_task()
            try:
                await page.serve(host, port, bound.set_result)
            except asyncio.CancelledError:
                pass
            except Exception as error:
                if bound.done():
                    raise
                bound.set_exception(error)  # as where the port is not to be had

        try:
            self._loop.run_until_complete(serve())
        finally:
            self._loop.close()
