# SPDX-License-Identifier: Apache-2.0
"""Files that get their names together."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any

from fsspec.transaction import (  # type: ignore[import-untyped, import-not-found, unused-ignore]
    Transaction,
)

from gofs._errors import raise_error

if TYPE_CHECKING:
    from gofs._fsspec_files import PendingFile


class GofsTransaction(Transaction):  # type: ignore[misc]
    """All files are complete and durable, and their names free to be taken, before the first one
    gets its name: what goes wrong until then leaves none of them. They get their names one by one:
    where that fails between two of them, those before stay."""

    fs: Any

    def complete(self, commit: bool = True) -> None:
        left: list[PendingFile] = list(self.files)
        self.files.clear()
        failures: list[OSError] = []
        try:
            if commit:
                _make_ready(left)
                while left:
                    left[0].take_name()
                    del left[0]
        finally:
            for file in left:
                try:
                    file.discard()
                except OSError as error:
                    failures.append(error)
            self.fs._intrans = False
            self.fs._transaction = None
            self.fs = None
        if failures:  # and what came first is not raised anyway
            raise failures[0]


def _make_ready(files: list[PendingFile]) -> None:
    taken: set[str] = set()
    for file in files:
        file.make_ready()
        if file.target in taken and not file.replaces:
            raise_error(errno.EEXIST, file.path)
        taken.add(file.target)
