# SPDX-License-Identifier: Apache-2.0
"""Removing, moving and copying by gofs://, and which files names mean."""

from __future__ import annotations

import shutil
import pytest

pytest.importorskip("fsspec")

import gofs  # noqa: E402
import gofs.fsspec  # noqa: E402


@pytest.mark.parametrize("other", ["/file", "gofs:///file", "/linked", "/to_file", "/d/../file"])
def test_a_file_is_not_copied_to_itself(fs: gofs.fsspec.GofsFileSystem, other: str) -> None:
    fs.pipe({"/file": b"contents", "/d/file": b"1"})
    fs.volume.link("/file", "/linked")
    fs.volume.symlink("file", "/to_file")
    for source, target in (("/file", other), (other, "/file")):
        for copy in (fs.cp_file, fs.copy):
            with pytest.raises(shutil.SameFileError, match="are one file"):
                copy(source, target)
    assert fs.cat("/file") == b"contents"
