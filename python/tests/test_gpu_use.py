# SPDX-License-Identifier: Apache-2.0
"""What NVML tells of GPUs: here by nvidia-ml-py with functions in place of the driver's."""

from __future__ import annotations

import asyncio
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from textual.widgets import Static

import gofs
from gofs import _gpu_use
from gofs._gpu_use import GpuUse, gpu_uses
from gofs._looks import Seen, look_at
from gofs._web import message_of
from gofs.top import VolumeTop

pynvml: Any = pytest.importorskip("pynvml")


@pytest.fixture(autouse=True)
def asked_anew() -> Iterator[None]:
    _gpu_use._nvml.cache_clear()
    yield
    _gpu_use._nvml.cache_clear()


def refused(*_: object) -> None:
    raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the second NVML tells nothing but that it is there."""

    def only_first(value: object) -> Callable[..., object]:
        return lambda gpu, *_: value if gpu == "first" else refused()

    def pcie(gpu: str, direction: int) -> int:
        if gpu != "first":
            refused()
        return {pynvml.NVML_PCIE_UTIL_RX_BYTES: 20_100_000, pynvml.NVML_PCIE_UTIL_TX_BYTES: 7}[
            direction
        ]

    functions: dict[str, Callable[..., object]] = {
        "nvmlInit": lambda: None,
        "nvmlDeviceGetCount": lambda: 2,
        "nvmlDeviceGetHandleByIndex": lambda index: ["first", "second"][index],
        "nvmlDeviceGetUtilizationRates": only_first(types.SimpleNamespace(gpu=43, memory=12)),
        "nvmlDeviceGetMemoryInfo": only_first(types.SimpleNamespace(used=1_500_000_000)),
        "nvmlDeviceGetPcieThroughput": pcie,
    }
    for name, function in functions.items():
        monkeypatch.setattr(pynvml, name, function)


def test_each_gpu_is_told_of_as_far_as_nvml_does(two_gpus: None) -> None:
    first, second = gpu_uses()
    assert first == GpuUse(43, 1_500_000_000, 20_100_000_000, 7000)
    assert str(first) == "43 % busy, 1.5 GB used, PCIe 20.1 GB/s in, 7.0 kB/s out"
    assert second == GpuUse(None, None, None, None)
    assert str(second) == "- busy, - used, PCIe -/s in, -/s out"


def test_a_gpu_that_is_lost_is_left_out(two_gpus: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        pynvml, "nvmlDeviceGetHandleByIndex", lambda index: refused() if index == 0 else "first"
    )
    assert [use.busy_percent for use in gpu_uses()] == [43]
    monkeypatch.setattr(pynvml, "nvmlDeviceGetCount", refused)
    assert gpu_uses() == []


def test_without_a_driver_or_the_module_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pynvml, "nvmlInit", refused)
    assert gpu_uses() == []
    _gpu_use._nvml.cache_clear()
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert gpu_uses() == []


def test_they_are_shown_on_the_terminal_and_on_the_page(
    two_gpus: None, volume: gofs.Volume
) -> None:
    seen = Seen(look_at(volume), "", 1.0)
    assert message_of(seen, None)["state"]["GPU 0"].startswith("43 % busy")
    app = VolumeTop("a volume", lambda: look_at(volume), 0.05)

    async def run() -> None:
        async with app.run_test(size=(160, 40)) as pilot:
            state = app.query_one("#state", Static)
            for _ in range(600):
                text = str(state.render())
                if "GPU 1" in text:
                    break
                await pilot.pause(0.05)
            assert "GPU 0         43 % busy, 1.5 GB used" in text

    asyncio.run(run())
