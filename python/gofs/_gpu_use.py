# SPDX-License-Identifier: Apache-2.0
"""What the GPUs of this machine do, whoever uses them, as NVML tells: where NVIDIA's driver is
there, and nvidia-ml-py."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from gofs._units import size_text

T = TypeVar("T")

# NVML tells what goes over PCIe in kB a second.
_PCIE_UNIT = 1000


class GpuUse(NamedTuple):
    """None: NVML does not tell."""

    busy_percent: int | None
    """Of the time: some kernel ran."""
    used_bytes: int | None
    """Of its memory."""
    received_bytes: int | None
    """Over PCIe, a second."""
    sent_bytes: int | None

    def __str__(self) -> str:
        busy = "-" if self.busy_percent is None else f"{self.busy_percent} %"
        return (
            f"{busy} busy, {_text(self.used_bytes)} used, PCIe {_text(self.received_bytes)}/s in, "
            f"{_text(self.sent_bytes)}/s out"
        )


def gpu_uses() -> list[GpuUse]:
    """Empty: there is none, or none that NVML tells of. Takes 40 ms a GPU."""
    nvml = _nvml()
    if nvml is None:
        return []
    count = _told(nvml, nvml.nvmlDeviceGetCount)
    return [use for i in range(count or 0) if (use := _use_of(nvml, i)) is not None]


@functools.cache
def _nvml() -> Any | None:
    """nvidia-ml-py's module."""
    try:
        nvml = importlib.import_module("pynvml")
        nvml.nvmlInit()
    except ImportError:
        return None
    except nvml.NVMLError:  # there is no driver
        return None
    return nvml


def _use_of(nvml: Any, index: int) -> GpuUse | None:
    gpu = _told(nvml, lambda: nvml.nvmlDeviceGetHandleByIndex(index))
    if gpu is None:
        return None

    def over_pcie(direction: int) -> int | None:
        count = _told(nvml, lambda: nvml.nvmlDeviceGetPcieThroughput(gpu, direction))
        return None if count is None else int(count) * _PCIE_UNIT

    return GpuUse(
        busy_percent=_told(nvml, lambda: int(nvml.nvmlDeviceGetUtilizationRates(gpu).gpu)),
        used_bytes=_told(nvml, lambda: int(nvml.nvmlDeviceGetMemoryInfo(gpu).used)),
        received_bytes=over_pcie(nvml.NVML_PCIE_UTIL_RX_BYTES),
        sent_bytes=over_pcie(nvml.NVML_PCIE_UTIL_TX_BYTES),
    )


def _told(nvml: Any, ask: Callable[[], T]) -> T | None:
    """None: NVML does not tell, as of a part of a GPU (MIG), or of one that is lost."""
    try:
        return ask()
    except nvml.NVMLError:
        return None


def _text(count: int | None) -> str:
    return "-" if count is None else size_text(count)
