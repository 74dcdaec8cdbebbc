# SPDX-License-Identifier: Apache-2.0
"""What the documents say works as it is written."""

from __future__ import annotations

import importlib.util
import pathlib
import re
from typing import Any

import numpy
import pytest

import gofs

ROOT = pathlib.Path(__file__).parents[2]


def blocks_of(text: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def test_the_example_of_the_readme_runs(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = blocks_of((ROOT / "README.md").read_text())
    assert len(blocks) == 1
    monkeypatch.chdir(tmp_path)
    exec(blocks[0], {})
    printed = sorted(capsys.readouterr().out.splitlines())
    assert printed == ["log.txt 8", "weights.bin 8000000"]


class Bar:
    total = 0
    n = 0

    def update(self, n: int) -> None:
        self.n += n


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled:UserWarning")
def test_the_examples_of_copying_and_of_tensors_run(
    volume: gofs.Volume,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = (ROOT / "docs/python.md").read_text()
    [section] = re.findall(r"\n## Copying\n.*?(?=\n## Errors\n)", text, re.DOTALL)
    blocks = blocks_of(section)
    assert len(blocks) == 4
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos/one").write_bytes(b"12345")
    volume.mkdir("/train")
    volume.write_many("/train", {f"{number}": bytes(10) for number in range(100)})
    names: dict[str, Any] = {"gofs": gofs, "volume": volume, "bar": Bar()}
    names["weight"], names["bias"] = numpy.random.rand(100, 3), numpy.zeros(3)
    has_torch = importlib.util.find_spec("torch") is not None
    for block in blocks:
        if "import torch" not in block:
            exec(block, names)
        elif has_torch:
            torch = importlib.import_module("torch")
            exec(block, {**names, "state": {"weight": torch.zeros(5)}})
    assert (tmp_path / "back/one").read_bytes() == b"12345"
    assert names["bar"].n == 5
    assert numpy.array_equal(names["rows"], names["weight"][[5, 0, 7]])
    assert names["dataset"][3] == (10, 3)
    printed = re.sub(r"torch\.Size\(\[(.*?)\]\)", r"(\1)", capsys.readouterr().out)
    assert printed.splitlines() == ["['bias', 'weight'] (3,)", *["40 (40, 10)"] * 2, "20 (20, 10)"]
