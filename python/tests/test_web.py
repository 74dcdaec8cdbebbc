# SPDX-License-Identifier: Apache-2.0
"""The page of `gofs top --web`, and who comes to it: also those who mean no good."""

from __future__ import annotations

import contextlib
import errno
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import gofs
from gofs import _web
from gofs._looks import Look, look_at
from gofs._served_page import ServedPage
from gofs._web import WebTop, parse_address


@contextlib.contextmanager
def served_page(web: WebTop) -> Iterator[int]:
    """The port on this machine."""
    with ServedPage(web, ":0") as page:
        yield page.port


@pytest.fixture
def port(volume: gofs.Volume) -> Iterator[int]:
    with served_page(WebTop("a <volume>", lambda: look_at(volume), 0.05)) as port:
        yield port


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=60)


def ask(port: int, text: str) -> bytes:
    """All that is answered, until the connection is closed."""
    with connected(port) as connection:
        connection.sendall(text.encode("latin-1"))
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        while more := connection.recv(65536):
            answer += more
        return answer


def status_of(port: int, path: str = "/", host: str = "127.0.0.1", method: str = "GET") -> int:
    answer = ask(port, f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n\r\n")
    return int(answer.split(b" ")[1])


class Listener:
    """Hears events."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self._connection.request("GET", "/events")
        self.answer = self._connection.getresponse()

    def event(self) -> dict[str, Any]:
        line = self.answer.readline().decode()
        assert line.startswith("data: "), line
        assert self.answer.readline() == b"\n"
        found: dict[str, Any] = json.loads(line.removeprefix("data: "))
        return found

    def close(self) -> None:
        self.answer.close()
        self._connection.close()

    def __enter__(self) -> Listener:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def test_the_page_needs_nothing_from_elsewhere(port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/?a=b")
    answer = connection.getresponse()
    page = answer.read().decode()
    connection.close()
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert "a &lt;volume&gt;" in page
    assert "@NAME@" not in page
    assert not re.search(r"https?:|//[a-z]|@import|url\(", page)


def test_events_say_what_goes_on(port: int, volume: gofs.Volume) -> None:
    with Listener(port) as listener:
        assert listener.answer.status == 200
        assert listener.answer.headers["Content-Type"] == "text/event-stream"
        first = listener.event()
        assert first["problem"] == ""
        assert first["rates"] is None
        assert set(first["commands"]) == {"read", "write", "flush", "deallocate"}
        volume.write("/file", b"x" * 100_000)
        while True:
            event = listener.event()
            if event["rates"] and event["rates"]["written_bytes"]:
                break
        assert event["rates"]["calls"]["write"] > 0
        assert event["state"]["segments free"] == volume.statistics().segments["free"]
        assert (event["delays"] is None) == (volume.command_times() is None)


def test_all_listeners_hear_the_same_and_nobody_looks_for_nobody(volume: gofs.Volume) -> None:
    looked = 0

    def look() -> Look:
        nonlocal looked
        looked += 1
        return look_at(volume)

    with served_page(WebTop("a volume", look, 0.05)) as port:
        assert status_of(port) == 200
        assert looked == 0
        with Listener(port) as one, Listener(port) as other:
            for _ in range(3):
                one.event()
                other.event()
            heard = looked
        assert heard >= 3
        with Listener(port) as again:
            again.event()


def test_a_volume_that_does_not_answer_is_told(volume: gofs.Volume) -> None:
    answers = False

    def look() -> Look:
        if not answers:
            raise TimeoutError(110, "no answer in time")
        return look_at(volume)

    with served_page(WebTop("a volume", look, 0.05)) as port, Listener(port) as listener:
        assert "no answer in time" in listener.event()["problem"]
        answers = True
        while listener.event()["problem"]:
            pass


def test_what_is_asked_wrongly_is_refused(port: int) -> None:
    assert status_of(port, "/none") == 404
    assert status_of(port, method="POST") == 405
    assert status_of(port, "*") == 400
    assert ask(port, "nonsense\r\n\r\n").split(b" ")[1] == b"400"
    assert ask(port, "GET /\r\n\r\n").split(b" ")[1] == b"400"
    assert ask(port, "GET / HTTP/1.1\r\nX: " + "x" * 100_000).split(b" ")[1] == b"431"
    assert ask(port, "GET / HT") == b""
    assert status_of(port) == 200


def test_a_name_that_somebody_lets_point_here_is_refused(port: int) -> None:
    assert status_of(port, host="evil.example") == 421
    assert status_of(port, host=f"evil.example:{port}", path="/events") == 421
    assert status_of(port, host="127.0.0.1.evil.example") == 421
    assert ask(port, "GET / HTTP/1.1\r\n\r\n").split(b" ")[1] == b"421"
    for host in (f"localhost:{port}", "LOCALHOST", f"[::1]:{port}", "192.168.1.1:80"):
        assert status_of(port, host=host) == 200


def test_there_are_only_so_many_listeners(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_web, "LISTENERS_MAX", 2)
    with Listener(port) as one, Listener(port) as other:
        one.event()
        other.event()
        assert status_of(port, "/events") == 503
        assert status_of(port) == 200
    for _ in range(1000):  # until it is seen that they have gone
        with Listener(port) as again:
            if again.answer.status == 200:
                break
    assert again.answer.status == 200


def test_who_says_nothing_is_dropped(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_web, "DEADLINE_S", 0.3)
    monkeypatch.setattr(_web, "CONNECTIONS_MAX", 3)
    with contextlib.ExitStack() as silent:
        connections = [silent.enter_context(connected(port)) for _ in range(3)]
        connections[0].sendall(b"GET / HT")
        for connection in connections:
            assert connection.recv(1) == b""
        assert status_of(port) == 200


def test_who_does_not_read_is_dropped_and_others_hear_on(
    volume: gofs.Volume, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_web, "DEADLINE_S", 0.3)
    full = _web.message_of

    def long_message(*seen: Any) -> dict[str, Any]:
        return {**full(*seen), "padding": "x" * (8 << 20)}

    monkeypatch.setattr(_web, "message_of", long_message)
    web = WebTop("a volume", lambda: look_at(volume), 0.05)
    with served_page(web) as port, connected(port) as deaf, Listener(port) as listener:
        deaf.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        listener.event()
        while web.listeners != 1:
            listener.event()


def test_a_listener_that_has_gone_is_noticed_while_the_volume_does_not_answer(
    volume: gofs.Volume,
) -> None:
    answers = threading.Event()

    def look() -> Look:
        answers.wait(60)
        return look_at(volume)

    web = WebTop("a volume", look, 0.05)
    with served_page(web) as port:
        with Listener(port):
            assert web.listeners == 1
        while web.listeners:
            assert status_of(port) == 200
        answers.set()


def test_an_end_waits_for_nobody(volume: gofs.Volume) -> None:
    answers = threading.Event()

    def look() -> Look:
        answers.wait(60)
        return look_at(volume)

    with served_page(WebTop("a volume", look, 0.05)) as port:
        silent = connected(port)
        listener = Listener(port)
    assert listener.answer.read() == b""
    with silent, contextlib.suppress(ConnectionResetError):
        assert silent.recv(1) == b""
    listener.close()
    answers.set()


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (":9467", ("127.0.0.1", 9467)),
        ("0.0.0.0:0", ("0.0.0.0", 0)),
        ("[::1]:65535", ("::1", 65535)),
    ],
)
def test_addresses_are_numbers(text: str, address: tuple[str, int]) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize(
    "text", ["", "9467", ":", ":x", ":65536", ":-1", ": 1", "localhost:1", "::1:1", "[::1]", "/a"]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="ADDRESS:PORT by numbers"):
        parse_address(text)


# Python leaves SIGINT alone where it was ignored, as it is for what a shell has in the background.
PROGRAM = """
import runpy, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
runpy.run_module("gofs", run_name="__main__", alter_sys=True)
"""


@contextlib.contextmanager
def run_page(image: pathlib.Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "top", str(image), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as program:
        try:
            yield program
        finally:
            program.kill()  # where it has not ended, which the test says


def test_the_command_serves_this_machine_alone_until_it_is_interrupted(
    image: pathlib.Path,
) -> None:
    with run_page(image, "--web", ":0", "--seconds", "0.05") as program:
        assert program.stdout is not None
        said = program.stdout.readline()
        found = re.match(r"http://127\.0\.0\.1:(\d+)/ shows ", said)
        assert found, said
        with Listener(int(found[1])) as listener:
            assert listener.event()["problem"] == ""
            program.send_signal(signal.SIGINT)
            _, err = program.communicate(timeout=60)
        assert program.returncode == 0
        assert err == ""


def test_the_command_names_an_address_that_cannot_be_had(image: pathlib.Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f":{taken.getsockname()[1]}"
        with run_page(image, "--web", address) as program:
            _, err = program.communicate(timeout=60)
    assert program.returncode == 1
    assert address in err
    assert "in use" in err
    with run_page(image, "--web", "somewhere") as program:
        _, err = program.communicate(timeout=60)
    assert program.returncode == 1
    assert "ADDRESS:PORT" in err


def test_a_page_that_cannot_be_served_says_why() -> None:
    class Page:
        async def serve(self, *_: object) -> None:
            raise ZeroDivisionError("a fault")

    with pytest.raises(ZeroDivisionError, match="a fault"):
        ServedPage(Page(), ":0")  # type: ignore[arg-type]


def test_a_program_shows_its_own_volume(image: pathlib.Path) -> None:
    volume = gofs.mount(image, writable=True)
    volume.write("/file", bytes(5000))
    with volume.serve_page(":0") as page:
        found = re.fullmatch(r"http://127\.0\.0\.1:([0-9]+)/", page.url)
        assert found is not None
        port = int(found[1])
        assert image.name.encode() in ask(port, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        metrics = ask(port, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").decode()
        assert "\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n" in metrics
        for line in ("gofs_written_bytes_total 5000", "# TYPE gofs_segments gauge"):
            assert f"\n{line}\n" in metrics
            assert line in volume.metrics().splitlines()
        with pytest.raises(OSError) as taken:
            volume.serve_page(f":{port}")
        assert taken.value.errno == errno.EADDRINUSE
        volume.close()
        assert status_of(port, "/metrics") == 503
        with Listener(port) as listener:
            assert "the volume is closed" in listener.event()["problem"]
    page.close()
    with pytest.raises(ConnectionRefusedError):
        connected(port)
    with pytest.raises(ValueError, match="the volume is closed"):
        volume.serve_page(":0")
    with gofs.mount(image) as again:
        with pytest.raises(ValueError, match="the address is ADDRESS:PORT by numbers"):
            again.serve_page("localhost:80")
        with pytest.raises(TypeError, match="address: a str such as ':9467' is wanted, not"):
            again.serve_page(9467)  # type: ignore[arg-type]
