# SPDX-License-Identifier: Apache-2.0
"""What the package has for programs in C and C++, and how they find it."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys

import pytest

import gofs

ROOT = pathlib.Path(__file__).parents[2]
PROJECT = """cmake_minimum_required(VERSION 3.23)
project(outside LANGUAGES CXX)
find_package(gofs {version} REQUIRED COMPONENTS host)
add_executable(host_read host_read.cpp)
target_link_libraries(host_read PRIVATE gofs::host)
"""


def answer(*options: str) -> str:
    command = [sys.executable, "-m", "gofs", *options]
    return subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=60
    ).stdout.strip()


def run(*command: str | pathlib.Path) -> str:
    said = subprocess.run(
        command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300
    )
    text = said.stdout.decode()
    assert said.returncode == 0, text
    return text


def test_modules_are_imported_when_they_are_used() -> None:
    program = (
        "import gofs, sys\n"
        "assert not {'gofs.safetensors', 'gofs.torch', 'numpy'} & set(sys.modules)\n"
        "assert {'cuda', 'safetensors', 'torch'} <= set(dir(gofs))\n"
        "print(gofs.safetensors.save_file.__name__, gofs.torch.FileDataset.__name__)\n"
        "try:\n"
        "    gofs.nonsense\n"
        "except AttributeError as error:\n"
        "    print(error)\n"
    )
    assert run(sys.executable, "-c", program).splitlines() == [
        "save_file FileDataset",
        "module 'gofs' has no attribute 'nonsense'",
    ]


@pytest.fixture
def listing(volume: gofs.Volume, image: pathlib.Path) -> pathlib.Path:
    """An image that is not mounted, with a file of its own name."""
    volume.write("/hello.txt", b"Hello")
    volume.close()
    return image


def test_it_says_where_things_are() -> None:
    include, lib, cmake = answer("--include-dir", "--lib-dir", "--cmake-dir").split()
    assert (pathlib.Path(include) / "gofs/gofs.h").is_file()
    assert (pathlib.Path(lib) / "libgofs.so").is_file()
    assert (pathlib.Path(cmake) / "gofs-config.cmake").is_file()
    assert answer("--cflags") == f"-I{include}"
    assert answer("--version") == gofs.__version__
    nothing = subprocess.run(
        [sys.executable, "-m", "gofs"], check=False, capture_output=True, text=True, timeout=60
    )
    assert nothing.returncode == 2
    assert "--cmake-dir" in nothing.stderr


def test_the_script_gofs_config_has_the_same_options() -> None:
    script = pathlib.Path(sys.executable).parent / "gofs-config"
    options = ("--cflags", "--libs", "--include-dir", "--lib-dir", "--cmake-dir")
    for some in (*((option,) for option in options), options, ("--version",)):
        assert run(script, *some).strip() == answer(*some)
    nothing = subprocess.run([script], check=False, capture_output=True, text=True, timeout=60)
    assert nothing.returncode == 2
    assert "--cmake-dir" in nothing.stderr


def test_there_is_one_library_which_the_module_uses_as_well() -> None:
    maps = pathlib.Path("/proc/self/maps").read_text()
    loaded = {line.split()[-1] for line in maps.splitlines() if "libgofs" in line}
    assert loaded == {answer("--lib-dir") + "/libgofs.so"}


def test_a_program_is_built_by_one_line(listing: pathlib.Path, tmp_path: pathlib.Path) -> None:
    program = tmp_path / "host_read"
    source = ROOT / "examples/host_read.cpp"
    flags = answer("--cflags", "--libs").split()
    run("c++", "-std=c++17", "-O0", source, "-o", program, *flags)
    assert "hello.txt" in run(program, listing, "/")


@pytest.mark.skipif(shutil.which("cmake") is None, reason="no cmake")
def test_a_project_of_cmake_finds_it(listing: pathlib.Path, tmp_path: pathlib.Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    shutil.copy(ROOT / "examples/host_read.cpp", project)
    (project / "CMakeLists.txt").write_text(PROJECT.format(version=gofs.__version__))
    build = project / "build"
    run("cmake", "-S", project, "-B", build, "-DCMAKE_PREFIX_PATH=" + answer("--cmake-dir"))
    run("cmake", "--build", build)
    assert "hello.txt" in run(build / "host_read", listing, "/")

    (project / "CMakeLists.txt").write_text(
        PROJECT.format(version=gofs.__version__).replace("host)\nadd", "host_static)\nadd")
    )
    command = ["cmake", "-S", project, "-B", build]
    refused = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert refused.returncode != 0
    assert "a Python wheel, which has no static library" in " ".join(refused.stderr.split())
