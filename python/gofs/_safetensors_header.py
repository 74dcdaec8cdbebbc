# SPDX-License-Identifier: Apache-2.0
"""The header of a safetensors file: where which tensor is.

A file is the header's length (8 bytes, little-endian), the header (JSON, perhaps with spaces behind
it), and the bytes of the tensors, one after the other without gaps, in the order of C.
"""

from __future__ import annotations

import json
import math
import struct
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from gofs._numbers import kind_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

LENGTH_BYTES = 8
HEADER_BYTES_MAX = 100_000_000
METADATA_KEY = "__metadata__"

# In the order in which files have their tensors: the widest come first, so that all are aligned.
DTYPE_BITS = {
    "U64": 64,
    "I64": 64,
    "F64": 64,
    "C64": 64,
    "F32": 32,
    "U32": 32,
    "I32": 32,
    "BF16": 16,
    "F16": 16,
    "U16": 16,
    "I16": 16,
    "F8_E5M2FNUZ": 8,
    "F8_E4M3FNUZ": 8,
    "F8_E8M0": 8,
    "F8_E4M3": 8,
    "F8_E5M2": 8,
    "I8": 8,
    "U8": 8,
    "F6_E3M2": 6,
    "F6_E2M3": 6,
    "F4": 4,
    "BOOL": 8,
}
_RANKS = {name: rank for rank, name in enumerate(DTYPE_BITS)}

# Data begins at multiples of it, where this writes the file: reads then go straight to memory.
_DATA_ALIGNMENT = 4096
_WORD_MAX = (1 << 64) - 1
_DEPTH_MAX = 127


class SafetensorError(ValueError):
    """The file is no safetensors file, or one that contradicts itself."""


class TensorInfo(NamedTuple):
    """Where a tensor is, and what it is of."""

    dtype: str
    shape: tuple[int, ...]
    begin: int  # in bytes, from where the data begins
    end: int


class Header(NamedTuple):
    data_begin: int  # in bytes, from where the file begins
    tensors: dict[str, TensorInfo]  # in the order of their data
    metadata: dict[str, str] | None

    @property
    def data_bytes(self) -> int:
        return max((info.end for info in self.tensors.values()), default=0)


def header_bytes(length: bytes, file_bytes: int) -> int:
    """How many bytes of a file are its header, which its first 8 say. Raises SafetensorError."""
    if len(length) < LENGTH_BYTES:
        raise SafetensorError(
            f"the file has {file_bytes} bytes, fewer than the length of a header takes: it is no "
            "safetensors file, or was cut"
        )
    (count,) = struct.unpack("<Q", length[:LENGTH_BYTES])
    if count > HEADER_BYTES_MAX:
        raise SafetensorError(
            f"the header would have {count} bytes, and {HEADER_BYTES_MAX} are allowed: "
            "it is no safetensors file"
        )
    if LENGTH_BYTES + count > file_bytes:
        raise SafetensorError(
            f"the header has {count} bytes, and the file only {file_bytes}: it was cut, "
            "and is to be written or fetched again"
        )
    return int(count)


def parse_header(text: bytes, file_bytes: int) -> Header:
    """`text` is the header without its length. Raises SafetensorError for what is not allowed."""
    fields = _json_object(text)
    data_begin = LENGTH_BYTES + len(text)
    metadata = _metadata(fields.pop(METADATA_KEY, None))
    tensors = {name: _tensor_info(name, value) for name, value in fields.items()}
    in_order = sorted(tensors.items(), key=lambda item: (item[1].begin, item[1].end))
    end = 0
    for name, info in in_order:
        if info.begin != end:
            problem = "overlaps another" if info.begin < end else "leaves a hole before it"
            raise SafetensorError(
                f"the tensor {name!r} {problem}, at byte {info.begin} of the data"
            )
        end = info.end
    if data_begin + end != file_bytes:
        what = "was cut" if data_begin + end > file_bytes else "has bytes that are no tensor's"
        raise SafetensorError(
            f"the file {what}: it should have {data_begin + end} bytes, and has {file_bytes}"
        )
    return Header(data_begin, dict(in_order), metadata)


def build_header(
    tensors: Mapping[str, tuple[str, tuple[int, ...]]], metadata: Mapping[str, str] | None
) -> tuple[bytes, Header]:
    """The bytes before the data, for tensors of which `(dtype, shape)` is given; and what they say.

    Raises SafetensorError for a name that a file cannot have, for metadata that are no text, and
    for a header that is too large.
    """
    infos: dict[str, TensorInfo] = {}
    end = 0
    for name in sorted(tensors, key=lambda name: (_RANKS[tensors[name][0]], name)):
        if name == METADATA_KEY:
            raise SafetensorError(f"no tensor can be called {METADATA_KEY}: give it another name")
        dtype, shape = tensors[name]
        begin, end = end, end + tensor_bytes(dtype, shape)
        infos[name] = TensorInfo(dtype, shape, begin, end)
    checked = None if metadata is None else _metadata(dict(metadata))
    beginning = encoded_header(infos, checked)
    return beginning, Header(len(beginning), infos, checked)


def encoded_header(
    infos: Mapping[str, TensorInfo],
    metadata: Mapping[str, str] | None,
    data_begin: int | None = None,
) -> bytes:
    """The bytes before the data, with spaces up to `data_begin`: if not given, to a whole block.

    Raises SafetensorError for a name that is no Unicode text, and for a header that is too large.
    """
    fields: dict[str, Any] = {} if metadata is None else {METADATA_KEY: metadata}
    for name, info in infos.items():
        fields[name] = {
            "dtype": info.dtype,
            "shape": info.shape,
            "data_offsets": (info.begin, info.end),
        }
    try:
        text = json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError as error:
        raise SafetensorError(
            f"names and metadata have to be Unicode text: {error.reason} in {error.object[:80]!r}"
        ) from error
    end = LENGTH_BYTES + len(text)
    if data_begin is not None and end > data_begin:
        raise SafetensorError(
            f"the header takes {end} bytes, and {data_begin} were kept for it: tensors are of more "
            "dimensions than was said"
        )
    text += b" " * (-end % _DATA_ALIGNMENT if data_begin is None else data_begin - end)
    if len(text) > HEADER_BYTES_MAX:
        raise SafetensorError(
            f"the header would have {len(text)} bytes, and {HEADER_BYTES_MAX} are allowed: save "
            "the tensors in several files"
        )
    return struct.pack("<Q", len(text)) + text


def tensor_bytes(dtype: str, shape: Iterable[int]) -> int:
    """Raises SafetensorError where they end within a byte, or are more than files can have."""
    count = 1
    for size in (*shape, DTYPE_BITS[dtype]):
        count *= size
        if count > _WORD_MAX:
            raise SafetensorError(f"{dtype} of shape {tuple(shape)} is larger than any file")
    if count % 8 != 0:
        raise SafetensorError(f"{dtype} of shape {tuple(shape)} ends within a byte")
    return count // 8


def _json_object(text: bytes) -> dict[str, Any]:
    try:
        decoded = text.decode()
        found = json.loads(
            decoded,
            object_pairs_hook=_without_duplicates,
            parse_int=_integer,
            parse_float=_finite,
            parse_constant=_refuse_constant,
        )
        if "\\u" in decoded:
            json.dumps(found, ensure_ascii=False).encode()  # halves of characters raise
        if _depth(found) > _DEPTH_MAX:
            raise RecursionError("it is nested too deeply")
    except SafetensorError:
        raise
    except (ValueError, RecursionError) as error:
        raise SafetensorError(f"the header is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise SafetensorError(f"the header is no JSON object, but {kind_of(found)}")
    return found


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise SafetensorError(f"the header has {twice!r} twice")
    return found


def _integer(text: str) -> int | float:
    # What has a sign is no size, not even this.
    return -0.0 if text == "-0" else int(text)


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text} is out of range")
    return value


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


def _depth(value: Any) -> int:
    """How many arrays and objects are nested in each other."""
    depth, level = 0, [value]
    while level := [each for each in level if isinstance(each, (dict, list))]:
        depth += 1
        level = [
            below for each in level for below in (each.values() if isinstance(each, dict) else each)
        ]
    return depth


def _metadata(value: Any) -> dict[str, str] | None:
    if value is None:
        return None
    if not isinstance(value, dict) or not all(
        isinstance(text, str) for item in value.items() for text in item
    ):
        raise SafetensorError(f"{METADATA_KEY} has to be an object of texts")
    return value


def _tensor_info(name: str, value: Any) -> TensorInfo:
    def wrong(what: str) -> SafetensorError:
        return SafetensorError(f"the tensor {name!r} {what}")

    if not isinstance(value, dict):
        raise wrong("is described by no object")
    try:
        dtype, shape, offsets = (value[key] for key in ("dtype", "shape", "data_offsets"))
    except KeyError as error:
        raise wrong(f"has no {error.args[0]}") from None
    if not isinstance(dtype, str) or dtype not in DTYPE_BITS:
        raise wrong(f"has an unknown dtype, {dtype!r}")
    if not isinstance(shape, list) or not all(map(_is_word, shape)):
        raise wrong(f"has no shape: {shape!r}")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(_is_word, offsets)):
        raise wrong(f"has no pair of data_offsets: {offsets!r}")
    begin, end = offsets
    if end < begin:
        raise wrong(f"ends before it begins: {offsets!r}")
    wanted = tensor_bytes(dtype, shape)
    if end - begin != wanted:
        raise wrong(f"has {end - begin} bytes, and {dtype} of shape {shape!r} takes {wanted}")
    return TensorInfo(dtype, tuple(shape), begin, end)


def _is_word(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _WORD_MAX
