# SPDX-License-Identifier: Apache-2.0
"""What a volume says that it does, and the metrics of a server, as Prometheus reads them."""

from __future__ import annotations

import contextlib
import http.client
import pathlib
import socket
import subprocess
import time
from collections.abc import Callable

import pytest
from conftest import SERVER
from prometheus_client.parser import text_string_to_metric_families

import gofs
from gofs._delays import delays_between, quantile_ms
from gofs._rates import rates_between

Serve = Callable[..., contextlib.AbstractContextManager[pathlib.Path]]


def test_calls_and_bytes_are_counted(volume: gofs.Volume) -> None:
    before = volume.statistics()
    volume.write("/file", b"x" * 10_000)
    assert volume.read("/file") == b"x" * 10_000
    with pytest.raises(FileNotFoundError):
        volume.read("/none")
    volume.sync()
    after = volume.statistics()
    assert after.bytes_written - before.bytes_written == 10_000
    assert after.bytes_read - before.bytes_read == 10_000
    assert after.calls["open"].succeeded - before.calls["open"].succeeded == 2
    assert after.calls["open"].failed - before.calls["open"].failed == 1
    assert after.commands["write"].succeeded > before.commands["write"].succeeded
    assert after.ssd_bytes_written - before.ssd_bytes_written >= 10_000
    assert after.checkpoints - before.checkpoints == 1
    assert sum(after.segments.values()) == volume.info.main_segments
    assert after.lookups["nodes"].hits > before.lookups["nodes"].hits
    assert after.commands_under_way == after.command_timeouts == after.dirty_pages == 0
    assert set(after.calls) > {"read", "write", "sync", "name"}


def test_a_server_counts_for_all_clients(image: pathlib.Path, served: Serve) -> None:
    with served(image) as path, gofs.attach(path) as one, gofs.attach(path) as other:
        one.write("/file", b"x" * 1000)
        assert other.statistics().bytes_written == 1000
        assert one.statistics().calls["open"].succeeded == 1


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def metrics_at(port: int) -> dict[str, dict[tuple[str, ...], float]]:
    """By name and the values of labels, as Prometheus' own parser reads them."""
    deadline = time.monotonic() + 60
    while True:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request("GET", "/metrics")
            break
        except ConnectionRefusedError:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    answer = connection.getresponse()
    assert answer.status == 200
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    text = answer.read().decode()
    connection.close()
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation
        assert family.type in {"counter", "gauge", "histogram"}
        for sample in family.samples:
            assert sample.name.endswith("_total") == (family.type == "counter")
            found.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return found


def test_prometheus_reads_what_a_client_does(image: pathlib.Path, served: Serve) -> None:
    port = free_port()
    with served(image, "--metrics", f":{port}") as path, gofs.attach(path) as volume:
        volume.write("/file", b"x" * 100_000)
        assert volume.read("/file") == b"x" * 100_000
        with pytest.raises(FileNotFoundError):
            volume.open("/none")
        seen = volume.statistics()
        metrics = metrics_at(port)
    assert metrics["gofs_written_bytes_total"] == {(): 100_000}
    assert metrics["gofs_read_bytes_total"] == {(): 100_000}
    assert metrics["gofs_clients"] == {(): 1}
    assert metrics["gofs_build_info"] == {(gofs.__version__,): 1}
    for kind, counts in seen.calls.items():
        assert metrics["gofs_operations_total"][kind, "success"] == counts.succeeded
        assert metrics["gofs_operations_total"][kind, "error"] == counts.failed
    assert metrics["gofs_operations_total"]["open", "error"] == 1
    for kind, counts in seen.commands.items():
        assert metrics["gofs_nvme_commands_total"][kind, "success"] == counts.succeeded
    assert metrics["gofs_nvme_written_bytes_total"][()] >= 100_000
    assert {kind for (kind,) in metrics["gofs_cache_hits_total"]} == set(seen.lookups)
    assert metrics["gofs_segments"] == {(state,): n for state, n in seen.segments.items()}


@pytest.mark.parametrize("address", ["9466", "localhost:9466", ":65536", "/a/path", ""])
def test_metrics_at_no_address_are_refused(image: pathlib.Path, address: str) -> None:
    if not SERVER.exists():
        pytest.skip("GOFS_BUILD_DIR names no build with gofsd")
    said = subprocess.run(
        [SERVER, image, "--socket", f"{image}.socket", "--metrics", address],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert said.returncode == 2
    assert "ADDRESS:PORT" in said.stderr


def test_metrics_at_an_address_that_is_taken_are_refused(image: pathlib.Path) -> None:
    if not SERVER.exists():
        pytest.skip("GOFS_BUILD_DIR names no build with gofsd")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f":{taken.getsockname()[1]}"
        said = subprocess.run(
            [SERVER, image, "--socket", f"{image}.socket", "--metrics", address],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert said.returncode == 1
    assert f"metrics at {address}" in said.stderr
    assert "in use" in said.stderr


def counted(times: gofs.CommandTimes) -> dict[str, int]:
    return {kind: sum(timed.counts) for kind, timed in times.commands.items()}


def test_commands_of_a_hosted_ssd_are_timed_each_once(image: pathlib.Path) -> None:
    with gofs.mount(f"{image}?media=hosted") as volume:
        volume.listdir("/")
        seen = volume.statistics()
        times = volume.command_times()
        assert times is not None
        assert times.ssds == 1
        assert times.under_way == 0
        made = {kind: counts.succeeded + counts.failed for kind, counts in seen.commands.items()}
        assert counted(times) == made
        assert made["read"] > 0
    with gofs.mount(f"{image}?media=memory", backend="cpu") as volume:
        assert volume.command_times() is None


def test_prometheus_reads_how_long_commands_took(image: pathlib.Path, served: Serve) -> None:
    port = free_port()
    with served(f"{image}?media=hosted", "--metrics", f":{port}") as path:
        with gofs.attach(path) as volume:
            volume.write("/file", b"x" * 100_000)
            volume.sync()
            metrics = metrics_at(port)
            times = volume.command_times()
    assert times is not None
    assert metrics["gofs_nvme_timed_ssds"] == {(): 1}
    assert metrics["gofs_nvme_busy_seconds_total"][()] > 0
    counts = metrics["gofs_nvme_command_seconds_count"]
    assert {kind for (kind,) in counts} == set(times.commands)
    for (kind,), count in counts.items():
        assert count == metrics["gofs_nvme_commands_total"][kind, "success"]
        buckets = [
            (float(end), n)
            for (op, end), n in metrics["gofs_nvme_command_seconds_bucket"].items()
            if op == kind
        ]
        assert len(buckets) == len(times.commands[kind].counts)
        assert sorted(n for _, n in buckets) == [n for _, n in sorted(buckets)]
        assert sorted(buckets)[-1] == (float("inf"), count)
        assert (metrics["gofs_nvme_command_seconds_sum"][kind,] > 0) == (count > 0)


def test_rates_of_counts_that_began_anew_are_of_all_of_them(image: pathlib.Path) -> None:
    with gofs.mount(image, writable=True) as volume:
        volume.write("/file", b"x" * 1000)
        for _ in range(5):
            volume.read("/file")
        before = volume.statistics()
    with gofs.mount(f"{image}?media=hosted") as volume:
        for _ in range(2):
            volume.read("/file")
        now = volume.statistics()
        times = volume.command_times()
    rates = rates_between(before, now, 2.0)
    assert rates.read_bytes == 1000
    assert rates.calls["read"] == now.calls["read"].succeeded / 2
    assert min(rates.commands.values()) >= 0
    assert rates_between(now, now, 2.0).read_bytes == 0
    assert delays_between(None, None, 1.0) is None
    first = delays_between(None, times, 2.0)
    assert first is not None
    assert first.kinds["deallocate"] is None
    read = first.kinds["read"]
    assert read is not None
    assert 0 < read.p50_ms <= read.p99_ms
    idle = delays_between(times, times, 2.0)
    assert idle is not None
    assert set(idle.kinds.values()) == {None}
    assert idle.queue == idle.busy_percent == 0


def test_quantiles_are_within_their_bucket() -> None:
    counts = [0] * 26
    counts[6], counts[11] = 98, 2
    assert quantile_ms(counts, 0.5) == pytest.approx(0.032 + 0.032 * 50 / 98)
    assert quantile_ms(counts, 0.99) == pytest.approx(1.024 + 1.024 / 2)
    assert quantile_ms([0] * 25 + [1], 0.5) == pytest.approx(16777.216)
