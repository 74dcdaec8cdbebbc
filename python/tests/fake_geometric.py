# SPDX-License-Identifier: Apache-2.0
"""A stand-in for torch_geometric.data: its interfaces for stores, with their signatures."""

from __future__ import annotations

import abc
import dataclasses
import enum
import types
from typing import Any


class Unset(enum.Enum):
    UNSET = None


@dataclasses.dataclass
class TensorAttr:
    group_name: Any = Unset.UNSET
    attr_name: Any = Unset.UNSET
    index: Any = Unset.UNSET


class EdgeLayout(enum.Enum):
    COO = "coo"
    CSC = "csc"
    CSR = "csr"


@dataclasses.dataclass
class EdgeAttr:
    edge_type: Any
    layout: EdgeLayout
    is_sorted: bool = False
    size: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        self.layout = EdgeLayout(self.layout)
        self.is_sorted = self.is_sorted or self.layout is EdgeLayout.CSC


class FeatureStore(abc.ABC):
    @abc.abstractmethod
    def _put_tensor(self, tensor: Any, attr: TensorAttr) -> bool: ...

    @abc.abstractmethod
    def _get_tensor(self, attr: TensorAttr) -> Any: ...

    @abc.abstractmethod
    def _remove_tensor(self, attr: TensorAttr) -> bool: ...

    @abc.abstractmethod
    def _get_tensor_size(self, attr: TensorAttr) -> tuple[int, ...] | None: ...

    @abc.abstractmethod
    def get_all_tensor_attrs(self) -> list[TensorAttr]: ...

    def put_tensor(self, tensor: Any, *args: Any) -> bool:
        return self._put_tensor(tensor, TensorAttr(*args))

    def get_tensor(self, *args: Any) -> Any:
        return self._get_tensor(TensorAttr(*args))

    def remove_tensor(self, *args: Any) -> bool:
        return self._remove_tensor(TensorAttr(*args))

    def get_tensor_size(self, *args: Any) -> tuple[int, ...] | None:
        return self._get_tensor_size(TensorAttr(*args))


class GraphStore(abc.ABC):
    @abc.abstractmethod
    def _put_edge_index(self, edge_index: Any, edge_attr: EdgeAttr) -> bool: ...

    @abc.abstractmethod
    def _get_edge_index(self, edge_attr: EdgeAttr) -> Any: ...

    @abc.abstractmethod
    def _remove_edge_index(self, edge_attr: EdgeAttr) -> bool: ...

    @abc.abstractmethod
    def get_all_edge_attrs(self) -> list[EdgeAttr]: ...

    def put_edge_index(self, edge_index: Any, *args: Any, **kwargs: Any) -> bool:
        return self._put_edge_index(edge_index, EdgeAttr(*args, **kwargs))

    def get_edge_index(self, *args: Any, **kwargs: Any) -> Any:
        edge_index = self._get_edge_index(EdgeAttr(*args, **kwargs))
        if edge_index is None:
            raise KeyError(args)
        return edge_index

    def remove_edge_index(self, *args: Any, **kwargs: Any) -> bool:
        return self._remove_edge_index(EdgeAttr(*args, **kwargs))


def modules() -> dict[str, types.ModuleType]:
    """The modules that PyG has them in."""
    package, data = types.ModuleType("torch_geometric"), types.ModuleType("torch_geometric.data")
    for each in (TensorAttr, EdgeAttr, EdgeLayout, FeatureStore, GraphStore):
        setattr(data, each.__name__, each)
    return {"torch_geometric": package, "torch_geometric.data": data}
