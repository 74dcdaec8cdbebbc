# SPDX-License-Identifier: Apache-2.0
"""Patterns of paths, beside the module glob on a tree of the host."""

from __future__ import annotations

import glob
import os
import pathlib

import pytest

import gofs

FOLDERS = ["a", "a/b", "a/b/c", "a/.hidden", ".dot", ".dot/below", "empty", "x[1]"]
FILES = ["one.txt", "two.bin", "a/three.txt", "a/b/four.txt", "a/b/c/five.txt", "a/.hidden/six.txt"]
FILES += [".dot/seven.txt", ".eight.txt", "x[1]/nine.txt", "a/b/.ten.txt", "a/B.TXT"]
LINKS = {"to_a": "a", "a/nowhere": "none", "to_file": "one.txt"}
PATTERNS = """
    /* /*.txt /?ne.txt /[ot]*.* /[!o]* /.* /a /a/ /none /one.txt /one.txt/ / // //a
    /*/ /*/* /a/*.txt /a/*/ /*/*/*.txt /a/b/four.* /*/nowhere /a/.* /.dot/* /none/* /*.txt/*
    /** /**/ /**/* /**/*.txt /a/** /a/**/ /a/**/*.txt /a/**/c/* /a/**/b /*/**/five.txt
    /**.txt /a**/* /to_a/* /to_a/** /x[[]1]/* /x[1]/* /empty/* /empty/** one.txt *.txt a/* **/*.txt
""".split()


@pytest.fixture
def host(volume: gofs.Volume, tmp_path: pathlib.Path) -> pathlib.Path:
    """The same tree on both sides."""
    root = tmp_path / "host"
    root.mkdir()
    for name in FOLDERS:
        (root / name).mkdir()
        volume.mkdir(f"/{name}")
    for name in FILES:
        (root / name).write_bytes(b"")
        volume.write(f"/{name}", b"")
    for name, target in LINKS.items():
        (root / name).symlink_to(target)
        volume.symlink(target, f"/{name}")
    return root


@pytest.mark.parametrize("recursive", [False, True])
def test_patterns_find_what_the_module_finds(
    volume: gofs.Volume, host: pathlib.Path, recursive: bool
) -> None:
    for pattern in PATTERNS:
        if pattern.startswith("/"):
            found = [
                path.removeprefix(str(host))
                for path in glob.glob(glob.escape(str(host)) + pattern, recursive=recursive)
            ]
        else:
            found = glob.glob(pattern, root_dir=host, recursive=recursive)
        ours = volume.glob(pattern, recursive=recursive)
        assert sorted(ours) == sorted(set(found)), pattern
    assert volume.glob("/none/**", recursive=True) == volume.glob("") == []
    assert volume.glob("//a//b") == ["//a/b"]
    assert sorted(volume.glob(os.fsencode("/a/*"))) == sorted(volume.glob(pathlib.Path("/a/*")))


def test_hidden_names_are_found_where_that_is_asked_for(
    volume: gofs.Volume, host: pathlib.Path
) -> None:
    names = volume.glob("/**", recursive=True, include_hidden=True)
    everything = ["/", *(f"/{name}" for name in (*FOLDERS, *FILES, *LINKS))]
    below_link = [name for name in names if name.startswith("/to_a/")]
    assert sorted(set(names) - set(below_link)) == sorted(everything)
    assert "/to_a/.hidden/six.txt" in below_link


def test_folders_that_lead_to_themselves_come_to_an_end(volume: gofs.Volume) -> None:
    volume.mkdir("/d")
    volume.symlink("../d", "/d/again")
    volume.write("/d/file", b"")
    found = volume.glob("/d/**/file", recursive=True)
    assert "/d/file" in found
    assert 1 < len(found) <= 41
