# SPDX-License-Identifier: Apache-2.0
"""Parts of a tensor that lies in a file in the order of C: which runs of bytes they are.

A box is a range of indices for each dimension; those of the last ones that follow each other in the
file are one run.
"""

from __future__ import annotations

import itertools
import math
import operator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# Runs that are shorter are not read alone, but with what lies between them.
RUN_BYTES_MIN = 4096


def run_bytes(shape: Sequence[int], box: Sequence[range], itemsize: int) -> int:
    """How many bytes of the box follow each other in the file."""
    inner = _first_of_run(shape, box)
    return itemsize * math.prod(len(wanted) for wanted in box[inner:])


def run_begins(shape: Sequence[int], box: Sequence[range], itemsize: int) -> Iterator[int]:
    """Where the runs begin, in bytes of the tensor, in the order of the box's elements."""
    inner = _first_of_run(shape, box)
    strides = [itemsize * math.prod(shape[dim + 1 :]) for dim in range(len(shape))]
    begin = sum(wanted.start * stride for wanted, stride in zip(box[inner:], strides[inner:]))
    for place in itertools.product(*box[:inner]):
        yield begin + sum(map(operator.mul, place, strides))


def _first_of_run(shape: Sequence[int], box: Sequence[range]) -> int:
    """The dimension that a run has a part of: all of those behind it, and of none before."""
    inner = len(shape)
    while inner > 0 and box[inner - 1] == range(shape[inner - 1]):
        inner -= 1
    if inner > 0 and (box[inner - 1].step == 1 or len(box[inner - 1]) <= 1):
        inner -= 1
    return inner


def box_of(index: Sequence[Any], shape: Sequence[int]) -> list[range] | None:
    """The box that an index of numbers, slices and an ellipsis means, a number as a range of one;
    None where it is another index, or one that the tensor has not."""
    numbers = [i for i, each in enumerate(index) if each is Ellipsis]
    if len(numbers) > 1 or len(index) - len(numbers) > len(shape):
        return None
    whole = [slice(None)] * (len(shape) - len(index) + len(numbers))
    at = numbers[0] if numbers else len(index)
    box = []
    for each, size in zip([*index[:at], *whole, *index[at + 1 :]], shape):
        if isinstance(each, slice):
            box.append(range(*each.indices(size)))
            continue
        number = _number(each)
        if number is None or not -size <= number < size:
            return None
        box.append(range(number % size, number % size + 1))
    return box


def _number(given: Any) -> int | None:
    """None where it is no number: truth values mean something else."""
    if is_truth_value(given) or getattr(given, "shape", ()) != ():
        return None
    try:
        return operator.index(given)
    except TypeError:
        return None


def is_truth_value(given: Any) -> bool:
    return isinstance(given, bool) or str(getattr(given, "dtype", "")).endswith("bool")
