# SPDX-License-Identifier: Apache-2.0
"""Device functions of GoFS, declared to numba-cuda."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from gofs import _installed
from gofs.numba._header import calls

if TYPE_CHECKING:
    from gofs.numba._header import Call

# Who makes a call, as its documentation says.
_GROUPS = {
    "thread": "Each thread calls it by itself.",
    "warp": "The 32 threads of the warp call it together, with the same arguments; all get the "
    "result.",
    "block": "All threads of the block call it together, with the same arguments; all get the "
    "result.",
    "grid": "All threads of the grid call it together, with the same arguments; all get the "
    "result. Numba launches the kernel cooperatively.",
}


def declare_calls() -> dict[str, Any]:
    """By their names, such as "pread_block"."""
    archive = str(_installed.device_library())
    try:
        cuda = importlib.import_module("numba.cuda")
    except ImportError as error:
        raise ImportError("gofs.numba needs numba-cuda: pip install 'numba-cuda[cu13]'") from error
    header = (_installed.INCLUDE / "gofs" / "gofs_device.h").read_text()
    declared = {}
    for call in calls(header):
        signature = f"{call.result}({', '.join(kind for _, kind in call.parameters)})"
        for group, says in _GROUPS.items():
            name = f"{call.name}_{group}"
            function = cuda.declare_device(
                f"gofs_{name}", signature, link=archive, use_cooperative=group == "grid", abi="c"
            )
            function.__doc__ = _documentation(name, call, says)
            declared[name] = function
    return declared


def _documentation(name: str, call: Call, group: str) -> str:
    arguments = ", ".join(f"{parameter}: {kind}" for parameter, kind in call.parameters)
    return (
        f"{name}({arguments}) -> {call.result}\n\n{call.says}\n\n"
        f"{group} Where it fails the result is a negative errno of Linux.\n"
    )
