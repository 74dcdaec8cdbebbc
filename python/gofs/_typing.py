# SPDX-License-Identifier: Apache-2.0
"""What arguments may be."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Protocol, Union

if TYPE_CHECKING:
    from typing_extensions import Buffer, TypeAlias

    Memory: TypeAlias = Union[Buffer, "Tensor"]

StrPath = Union[str, "os.PathLike[str]"]
BytesPath = Union[bytes, "os.PathLike[bytes]"]
AnyPath = Union[StrPath, BytesPath]


# A stream of torch, CuPy or cuda.core, or the number of a cudaStream_t.
Stream = Any


class Tensor(Protocol):
    """What is used of a torch.Tensor."""

    @property
    def device(self) -> Any: ...

    def data_ptr(self) -> int: ...

    def numel(self) -> int: ...

    def element_size(self) -> int: ...

    def is_contiguous(self) -> bool: ...
