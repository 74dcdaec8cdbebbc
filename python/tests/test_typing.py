# SPDX-License-Identifier: Apache-2.0
"""The package's types, as mypy sees them where it is installed."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("mypy")
HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]

# What programs for a GPU import, which may not be installed; and numba's types have no kernels.
CONFIGURATION = """
[mypy]
ignore_missing_imports = True
[mypy-numba.*]
follow_imports = skip
"""
# What is of a module without types can be nothing else.
UNTYPED_MODULES = ("--allow-subclassing-any", "--allow-untyped-decorators")

WRONG = {
    "volume.read(5)": "call-overload",
    "volume.read_into('/a', 'text')": "arg-type",
    "volume.write('/a', 'text')": "arg-type",
    "volume.open('/a').read(1).encode()": "attr-defined",
    "volume.listdir('/')[0].decode()": "attr-defined",
    "gofs.mount('a', writable=1.5)": "arg-type",
    "gofs.mount('a', read_only=True)": "call-arg",
    "volume.stat('/a').st_nothing": "attr-defined",
    "volume.info.nothing": "attr-defined",
    "volume.read_dir('/').offsets": "attr-defined",
    "volume.read_ranges([('/a', 0, 'text')])": "list-item",
    "gofs.copy((volume, 5), '/b')": "arg-type",
    "gofs.cuda.link('source', options=5)": "arg-type",
    "gofs.cuda.link('source').timings.nothing": "attr-defined",
}


def mypy(*arguments: str, cwd: pathlib.Path, configuration: str = "") -> str:
    said = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--no-error-summary",
            "--config-file",
            configuration,
            *arguments,
        ],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return said.stdout + said.stderr


def test_the_package_and_a_program_are_typed_strictly(tmp_path: pathlib.Path) -> None:
    example = tmp_path / "typed_example.py"
    example.write_text((HERE / "typed_example.py").read_text())
    assert mypy("--strict", "-p", "gofs", cwd=tmp_path) == ""
    assert mypy("--strict", "typed_example.py", cwd=tmp_path) == ""
    lines = [f"{call}  # {code}" for call, code in WRONG.items()]
    (tmp_path / "wrong.py").write_text(
        "import gofs\nimport gofs.cuda\n\n\ndef wrong(volume: gofs.Volume) -> None:\n    "
        + "\n    ".join(lines)
        + "\n"
    )
    said = mypy("--strict", "wrong.py", cwd=tmp_path)
    for number, (call, code) in enumerate(WRONG.items(), 6):
        assert f"wrong.py:{number}: error:" in said, call
        line = next(line for line in said.splitlines() if f"wrong.py:{number}: error:" in line)
        assert f"[{code}]" in line, line


def test_examples_and_benchmarks_are_typed(tmp_path: pathlib.Path) -> None:
    (tmp_path / "mypy.ini").write_text(CONFIGURATION)
    benchmarks = sorted((ROOT / "bench").glob("*.py"))
    examples = sorted((ROOT / "examples").rglob("*.py"))
    assert len(examples) >= 5
    # Those of the package are strict, and the others are for the standard library alone.
    strict = [*examples, *(one for one in benchmarks if "import gofs" in one.read_text())]
    others = [one for one in benchmarks if one not in strict]
    for flags, files in (
        (("--strict", *UNTYPED_MODULES), strict),
        (("--check-untyped-defs",), others),
    ):
        assert files
        names = [str(one) for one in files]
        assert mypy(*flags, *names, cwd=tmp_path, configuration="mypy.ini") == ""
