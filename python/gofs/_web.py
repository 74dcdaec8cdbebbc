# SPDX-License-Identifier: Apache-2.0
"""A page that shows what a volume does, and the events that it lives on, by HTTP.

One thread answers all. Nobody who comes can do harm: requests are small and come in time or are
dropped, there are only so many connections, and a listener who does not read is hung up on.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import html
import importlib.resources
import ipaddress
import json
import re
from collections.abc import Callable
from typing import Any

from gofs._delays import delays_between
from gofs._looks import Look, Seen, in_a_thread, looks
from gofs._numbers import kind_of
from gofs._rates import rates_between

CONNECTIONS_MAX = 32
LISTENERS_MAX = 16
HEAD_BYTES_MAX = 8192
DEADLINE_S = 5.0
"""For a request to come, and for a message to be taken."""

_HEADERS = (
    "Cache-Control: no-store\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "Content-Security-Policy: default-src 'none'; connect-src 'self'; "
    "script-src 'unsafe-inline'; style-src 'unsafe-inline'; frame-ancestors 'none'\r\n"
    "Connection: close\r\n"
)
_LOOPBACK = "127.0.0.1"


def parse_address(text: str) -> tuple[str, int]:
    """ADDRESS:PORT by numbers, as `gofsd --metrics` has it. ":9467" is 127.0.0.1."""
    if not isinstance(text, str):
        raise TypeError(f"address: a str such as ':9467' is wanted, not {kind_of(text)}")
    host, separator, port = text.rpartition(":")
    try:
        if not separator or not re.fullmatch(r"[0-9]{1,5}", port) or int(port) > 65535:
            raise ValueError
        if host.startswith("[") and host.endswith("]"):
            return str(ipaddress.IPv6Address(host[1:-1])), int(port)
        return str(ipaddress.IPv4Address(host or _LOOPBACK)), int(port)
    except ValueError:
        raise ValueError(
            f"{text}: the address is ADDRESS:PORT by numbers, as :9467, 0.0.0.0:9467 or [::1]:9467"
        ) from None


def url_of(host: str, port: int) -> str:
    """Of the page."""
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def message_of(seen: Seen, before: Seen | None) -> dict[str, Any]:
    """What the page gets of a look, beside what was seen before it."""
    if seen.look is None:
        return {"problem": seen.problem}
    now = seen.look.statistics
    message: dict[str, Any] = {
        "problem": "",
        "calls": {kind: {"failed": counts.failed} for kind, counts in now.calls.items()},
        "commands": {kind: {"failed": counts.failed} for kind, counts in now.commands.items()},
        "state": {
            "under way": now.commands_under_way,
            "timeouts": now.command_timeouts,
            "dirty pages": now.dirty_pages,
            "pages": now.cache_pages,
            **{f"segments {state}": count for state, count in now.segments.items()},
            "checkpoints": now.checkpoints,
            "cleaned segments": now.cleaned_segments,
            **{f"GPU {i}": str(gpu) for i, gpu in enumerate(seen.look.gpus)},
        },
        "rates": None,
        "delays": None,
    }
    if before is not None and before.look is not None and seen.at > before.at:
        seconds = seen.at - before.at
        message["rates"] = dataclasses.asdict(
            rates_between(before.look.statistics, now, seconds)
        )
        delays = delays_between(before.look.times, seen.look.times, seconds)
        message["delays"] = None if delays is None else dataclasses.asdict(delays)
    return message


class WebTop:
    """Serves the page at `/`, its events at `/events`, and at `/metrics` what `metrics` answers.
    While nobody listens, nobody looks."""

    def __init__(
        self,
        name: str,
        look: Callable[[], Look],
        seconds: float = 1.0,
        *,
        metrics: Callable[[], str] | None = None,
    ) -> None:
        page = importlib.resources.files("gofs").joinpath("top.html").read_text("utf-8")
        self._page = page.replace("@NAME@", _escaped(name))
        self._look = look
        self._metrics = metrics
        self._seconds = seconds
        self.listeners = 0
        self._connections = 0
        self._event = b""
        self._number = 0
        self._news = asyncio.Condition()
        self._looking: asyncio.Task[None] | None = None
        self._answering: set[asyncio.Task[None]] = set()

    async def serve(self, host: str, port: int, ready: Callable[[int], None]) -> None:
        """Until it is cancelled. `ready` is told the port. OSError where it cannot be had."""
        server = await asyncio.start_server(self._take, host, port, limit=HEAD_BYTES_MAX)
        try:
            ready(server.sockets[0].getsockname()[1])
            await asyncio.get_running_loop().create_future()
        finally:
            server.close()
            await _end(set(self._answering))
            if self._looking is not None:
                await _end({self._looking})

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._answering.add(task)
        self._connections += 1
        try:
            writer.transport.set_write_buffer_limits(0)
            if self._connections <= CONNECTIONS_MAX:
                await self._answer(reader, writer)
        except (OSError, asyncio.TimeoutError):  # it has gone, or takes too long
            pass
        except asyncio.CancelledError:  # the server ends; asyncio would call that an error
            pass
        finally:
            self._connections -= 1
            self._answering.discard(task)
            writer.transport.abort()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), DEADLINE_S)
        except asyncio.LimitOverrunError:
            return await self._refuse(reader, writer, "431 Request Header Fields Too Large")
        except asyncio.IncompleteReadError:
            return None
        request = re.match(rb"([A-Z]+) (/[^ ]*) HTTP/1\.[01]\r\n", head)
        if request is None:
            return await self._refuse(reader, writer, "400 Bad Request")
        if not _is_meant(head):
            return await self._refuse(reader, writer, "421 Misdirected Request")
        if request[1] != b"GET":
            return await self._refuse(reader, writer, "405 Method Not Allowed")
        path = request[2].partition(b"?")[0]
        if path == b"/":
            return await self._tell(reader, writer, "200 OK", "text/html", self._page)
        if path == b"/metrics" and self._metrics is not None:
            return await self._tell_metrics(reader, writer, self._metrics)
        if path != b"/events":
            return await self._refuse(reader, writer, "404 Not Found")
        if self.listeners == LISTENERS_MAX:
            return await self._refuse(reader, writer, "503 Service Unavailable")
        self.listeners += 1
        try:
            await self._tell_events(reader, writer)
        finally:
            self.listeners -= 1

    async def _tell_metrics(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        metrics: Callable[[], str],
    ) -> None:
        try:
            text = await in_a_thread(metrics)
        except (OSError, ValueError):  # it does not answer, or is closed
            return await self._refuse(reader, writer, "503 Service Unavailable")
        return await self._tell(reader, writer, "200 OK", "text/plain; version=0.0.4", text)

    async def _tell_events(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{_HEADERS}\r\n"
        await _send(writer, head.encode())
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._watch())
        hung_up = asyncio.create_task(_until_end(reader))
        told = 0
        try:
            while not hung_up.done():
                if told != self._number:
                    told = self._number
                    await _send(writer, self._event)
                    continue
                # Who has gone is found so where the volume takes its time to answer.
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._wait_for_news(told), 1.0)
        finally:
            hung_up.cancel()

    async def _wait_for_news(self, told: int) -> None:
        async with self._news:
            await self._news.wait_for(lambda: self._number != told)

    async def _watch(self) -> None:
        before: Seen | None = None
        async for seen in looks(self._look, self._seconds):
            if self.listeners == 0:
                return
            self._event = f"data: {json.dumps(message_of(seen, before))}\n\n".encode()
            async with self._news:
                self._number += 1
                self._news.notify_all()
            if seen.look is not None:
                before = seen

    async def _refuse(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, status: str
    ) -> None:
        await self._tell(reader, writer, status, "text/plain", status + "\n")

    async def _tell(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        status: str,
        kind: str,
        text: str,
    ) -> None:
        body = text.encode()
        head = (
            f"HTTP/1.1 {status}\r\nContent-Type: {kind}; charset=utf-8\r\n"
            f"Content-Length: {len(body)}\r\n{_HEADERS}\r\n"
        )
        await _send(writer, head.encode() + body)
        # Closed with bytes unread, a connection would be reset, and the answer with it.
        writer.write_eof()
        await asyncio.wait_for(_until_end(reader), DEADLINE_S)


async def _end(tasks: set[asyncio.Task[None]]) -> None:
    """Again and again: asyncio.wait_for() may miss it where what it waits for ends meanwhile."""
    while tasks:
        for task in tasks:
            task.cancel()
        _, tasks = await asyncio.wait(tasks, timeout=0.1)


async def _send(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(data)
    await asyncio.wait_for(writer.drain(), DEADLINE_S)


async def _until_end(reader: asyncio.StreamReader) -> None:
    """Until the other end has hung up; what it says still is not looked at."""
    with contextlib.suppress(OSError):
        while await reader.read(HEAD_BYTES_MAX):
            pass


def _is_meant(head: bytes) -> bool:
    """Whether it was asked for by a number or as localhost.

    A page of somebody else's, whose name he lets point here, must not read what is told.
    """
    found = re.search(rb"\r\nhost:[ \t]*([^\r\n]*?)[ \t]*\r\n", head, re.IGNORECASE)
    if found is None:
        return False
    name = re.sub(r":[0-9]+\Z", "", found[1].decode("latin-1"))
    if name.lower() == "localhost":
        return True
    try:
        ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def _escaped(text: str) -> str:
    return html.escape(text.encode("utf-8", "replace").decode())
