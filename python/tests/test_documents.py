# SPDX-License-Identifier: Apache-2.0
"""What the documents say works as it is written."""

from __future__ import annotations

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]


def test_the_example_of_the_readme_runs(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert len(blocks) == 1
    monkeypatch.chdir(tmp_path)
    exec(blocks[0], {})
    printed = sorted(capsys.readouterr().out.splitlines())
    assert printed == ["log.txt 8", "weights.bin 8000000"]
