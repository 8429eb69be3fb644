"""Features and graphs of ours behind PyG's interfaces for what lies elsewhere."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy
import torch
from torch_geometric import data as pyg
from torch_geometric.data import EdgeAttr, TensorAttr
from torch_geometric.data.graph_store import EdgeLayout

from pygsampler._arrays.tensors import as_tensor
from pygsampler._engine.checks import describe
from pygsampler._features.features import Features
from pygsampler._features.read_many import read_many
from pygsampler._graph.graph import Graph, is_homogeneous

__all__ = ["EDGES", "FeatureStore", "GraphStore"]

# The group of what belongs to edges of a graph without types, as in PyG's own LocalFeatureStore.
EDGES = (None, None)


class FeatureStore(pyg.FeatureStore):  # type: ignore[misc]
    """``torch_geometric.data.FeatureStore`` over ``pygsampler.Features``, for PyG's loaders too.

    Features may be on the CPU, on a GPU, page-locked or in a mapped file, and larger than memory:

        store = FeatureStore({"x": Features.open("products.pgs", "x"), "y": labels})
        loader = NeighborLoader((store, GraphStore(graph)), [10, 10], input_nodes=train)

    All rows of a batch are read at once: on the CPU by one job of the engine, on a GPU by one
    launch. Ids may be on the CPU or on a GPU: features on a GPU are read there, and others on the
    device of the ids, by a GPU out of page-locked memory.

    Parameters
    ----------
    features : mapping of str to Features or arrays of shape [num_nodes, ...], optional
        The features of nodes, PyG's group None, used without a copy. For a heterogeneous graph a
        mapping of node types, which are the groups, to such mappings: ``{"paper": {"x": x}}``.
    edge_features : mapping of str to Features or arrays of shape [num_edges, ...], optional
        The features of edges, by edge id: the group ``(None, None)``, or for a heterogeneous graph
        a mapping of edge types to such mappings. The loaders of this module add their rows to
        batches. PyG's own loaders read only features of nodes, and ``get_all_tensor_attrs`` names
        only these.

    Notes
    -----

    ``put_tensor`` with an index writes rows of existing features into their array
    (``Features.update``); without an index, or for all rows, it replaces the features, and takes
    ``Features`` too.

    Raises
    ------
    TypeError, ValueError
        For objects that are no features, and for rows that cannot be written.
    KeyError
        For a name that does not exist.
    IndexError
        For an id that is no row.
    """

    def __init__(
        self,
        features: Mapping[str, Any] | None = None,
        edge_features: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self._features: dict[tuple[Any, Any], Features] = {}
        # Features that a GPU reads from host memory, by the device.
        self._pinned: dict[tuple[Any, Any, int], Features] = {}
        for group, named in ((None, features), (EDGES, edge_features)):
            for name, values in (named or {}).items():
                of_type = isinstance(values, Mapping)
                for each, rows in values.items() if of_type else [(name, values)]:
                    self._put_tensor(rows, TensorAttr(name if of_type else group, each, None))

    def get_edge_attrs(self) -> list[TensorAttr]:
        """The attributes of edges, their index to be set."""
        return [
            self._tensor_attr_cls.cast(group_name=group, attr_name=name)
            for group, name in self._features
            if isinstance(group, tuple)
        ]

    def get_all_tensor_attrs(self) -> list[TensorAttr]:
        """All attributes but those of ``get_edge_attrs``, their index to be set."""
        return [
            self._tensor_attr_cls.cast(group_name=group, attr_name=name)
            for group, name in self._features
            if not isinstance(group, tuple)
        ]

    def update_tensor(self, tensor: Any, *args: Any, **kwargs: Any) -> bool:
        """Replaces existing values by ``tensor``, as ``put_tensor`` does.

        Parameters
        ----------
        tensor : torch.Tensor
            The new values.
        *args, **kwargs
            The attribute, in PyG's way.
        """
        attr = self._tensor_attr_cls.cast(*args, **kwargs)
        self._require(attr)
        return bool(self.put_tensor(tensor, attr))

    def _put_tensor(self, tensor: Any, attr: TensorAttr) -> bool:
        key, index = _key(attr), attr.index
        known = self._features.get(key)
        count = len(tensor)
        if not _is_all(index, count if known is None else len(known)):
            if known is None:
                raise ValueError(
                    f"index: expected None, or an id for each row of new features, "
                    f"got {describe(index)}"
                )
            known.update(tensor, _ids(index, len(known)))
            return True
        try:
            self._features[key] = Features.from_tensor(tensor)
        except (TypeError, ValueError) as error:
            text = str(error).removeprefix("features: ")
            raise type(error)(f"{attr.attr_name}: {text}") from None
        self._pinned = {known: each for known, each in self._pinned.items() if known[:2] != key}
        return True

    def _get_tensor(self, attr: TensorAttr) -> torch.Tensor:
        return self._multi_get_tensor([attr])[0]

    def _multi_get_tensor(self, attrs: list[TensorAttr]) -> list[torch.Tensor]:
        made: dict[int, torch.Tensor] = {}
        wanted: dict[int, tuple[Features, torch.Tensor]] = {}
        for place, attr in enumerate(attrs):
            known = self._require(attr)
            if attr.index is None or (isinstance(attr.index, slice) and attr.index == slice(None)):
                # All there is, as it is; torch copies what it cannot show.
                made[place] = known._read_all()
                continue
            ids = _ids(attr.index, len(known))
            wanted[place] = self._on_device_of(known, attr, ids), ids
        found = read_many(list(wanted.values()), check=True)
        for place, rows in zip(wanted, found, strict=True):
            made[place] = rows[0] if isinstance(attrs[place].index, int) else rows
        return [made[place] for place in range(len(attrs))]

    def _remove_tensor(self, attr: TensorAttr) -> bool:
        key = _key(attr)
        self._pinned = {known: each for known, each in self._pinned.items() if known[:2] != key}
        return self._features.pop(key, None) is not None

    def _get_tensor_size(self, attr: TensorAttr) -> tuple[int, ...] | None:
        known = self._features.get(_key(attr))
        if known is None:
            return None
        if attr.index is None:
            return known.shape
        rows = () if isinstance(attr.index, int) else (len(_ids(attr.index, len(known))),)
        return (*rows, *known.shape[1:])

    def _require(self, attr: TensorAttr) -> Features:
        known = self._features.get(_key(attr))
        if known is None:
            have = ", ".join(
                repr(name) for group, name in self._features if group == attr.group_name
            )
            raise KeyError(
                f"attr_name: expected one of {have or 'none'} in group {attr.group_name!r}, "
                f"got {attr.attr_name!r}"
            )
        return known

    def _on_device_of(self, features: Features, attr: TensorAttr, ids: torch.Tensor) -> Features:
        """Features that the device of the ids can read."""
        if not ids.is_cuda or features._where() >= 0:
            return features
        key = (*_key(attr), ids.get_device())
        pinned = self._pinned.get(key)
        if pinned is None:
            pinned = self._pinned[key] = features.pin(ids.get_device())
        return pinned

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pinned": {}}

    def __len__(self) -> int:
        return len(self._features)


class GraphStore(pyg.GraphStore):  # type: ignore[misc]
    """``torch_geometric.data.GraphStore`` over ``pygsampler.Graph`` or ``HeteroGraph``.

    Our samplers take the graph as it is: on a GPU, page-locked, or mapped from a file, with its ids
    of edges. Other samplers get its CSC, without a copy except from a mapped file, which torch
    copies.

    Parameters
    ----------
    graph : Graph or HeteroGraph, optional
        The edges of a homogeneous graph, or of all types.

    Notes
    -----
    ``put_edge_index`` takes a ``Graph`` too, for the layout "csc", and PyG's pairs of tensors in
    any layout, which are stored unchanged. There is one entry for each edge type and layout.
    ``coo``, ``csr`` and ``csc`` name the ids of a graph's edges as the permutation.
    """

    def __init__(self, graph: Graph | None = None) -> None:
        super().__init__()
        self._edges: dict[tuple[Any, str], tuple[EdgeAttr, Any]] = {}
        self._types: Graph | None = None
        if graph is not None and not graph.is_homogeneous:
            for kind in graph.edge_types:
                size = graph.num_nodes[kind[0]], graph.num_nodes[kind[2]]
                self.put_edge_index(graph[kind], edge_type=kind, layout="csc", size=size)
            self._types = graph
        elif graph is not None:
            self.put_edge_index(graph, edge_type=None, layout="csc")

    @property
    def hetero_graph(self) -> Graph | None:
        """The ``HeteroGraph`` that the store was created with, if it has no other edges."""
        return self._types

    @property
    def graph(self) -> Graph | None:
        """The ``Graph`` that was put for edges without a type, if any."""
        _, edges = self._edges.get((None, "csc"), (None, None))
        return edges if is_homogeneous(edges) else None

    def get_all_edge_attrs(self) -> list[EdgeAttr]:
        """Type, layout and size of all edges."""
        return [copy.copy(attr) for attr, _ in self._edges.values()]

    def _put_edge_index(self, edge_index: Any, edge_attr: EdgeAttr) -> bool:
        edge_attr = copy.copy(edge_attr)
        if is_homogeneous(edge_index):
            if edge_attr.layout != EdgeLayout.CSC:
                raise ValueError(
                    f"layout: expected 'csc' for a Graph, got {edge_attr.layout.value!r}"
                )
            if edge_attr.size is None:
                edge_attr.size = (edge_index.num_nodes, edge_index.num_nodes)
        elif not (isinstance(edge_index, (tuple, list)) and len(edge_index) == 2) and not (
            isinstance(edge_index, torch.Tensor) and edge_index.shape[:1] == (2,)
        ):
            raise TypeError(
                f"edge_index: expected a Graph or a pair of tensors, got {describe(edge_index)}"
            )
        self._edges[edge_attr.edge_type, edge_attr.layout.value] = (edge_attr, edge_index)
        self._types = None
        return True

    def _get_edge_index(self, edge_attr: EdgeAttr) -> tuple[torch.Tensor, torch.Tensor] | None:
        attr, edges = self._edges.get((edge_attr.edge_type, edge_attr.layout.value), (None, None))
        if is_homogeneous(edges):
            assert attr is not None
            indptr = edges.indptr.torch()
            # Nodes behind the last row have no in-edges.
            more = int(attr.size[1]) + 1 - len(indptr)
            if more > 0:
                indptr = torch.cat([indptr, indptr[-1:].expand(more)])
            return edges.indices.torch(), indptr
        return None if edges is None else (edges[0], edges[1])

    def _remove_edge_index(self, edge_attr: EdgeAttr) -> bool:
        key = edge_attr.edge_type, edge_attr.layout.value
        self._types = None
        return self._edges.pop(key, None) is not None

    def _edge_to_layout(
        self, attr: EdgeAttr, layout: EdgeLayout, store: bool = False
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
        row, col, perm = super()._edge_to_layout(attr, layout, store)
        _, edges = self._edges.get((attr.edge_type, attr.layout.value), (None, None))
        if is_homogeneous(edges) and edges.edge_ids is not None:
            ids = edges.edge_ids.torch()
            perm = ids if perm is None else ids[perm]
        return row, col, perm


def tensors_of(features: Any, name: str) -> dict[Any, Any]:
    """The tensors of any FeatureStore that are called so, by their groups."""
    found = {}
    for attr in features.get_all_tensor_attrs():
        if attr.attr_name == name:
            whole = copy.copy(attr)
            whole.index = None
            found[attr.group_name] = features.get_tensor(whole)
    return found


def tensor_of(features: Any, name: str) -> torch.Tensor:
    """The only tensor that is called so; ValueError where there is none, or are several."""
    found = list(tensors_of(features, name).values())
    if len(found) != 1 or not isinstance(found[0], torch.Tensor):
        raise ValueError(
            f"time_attr: expected the name of one tensor of the FeatureStore, got {name!r}, of "
            f"{len(found)}"
        )
    return found[0]


def _key(attr: TensorAttr) -> tuple[Any, Any]:
    group = attr.group_name
    return (tuple(group) if isinstance(group, list) else group), attr.attr_name


def _is_all(index: Any, num_rows: int) -> bool:
    """True if an index of PyG's means all rows, in their order."""
    if index is None or (isinstance(index, slice) and index == slice(None)):
        return True
    if isinstance(index, (torch.Tensor, numpy.ndarray)) and len(index) == num_rows:
        every = torch.as_tensor(index)
        return bool((every == torch.arange(num_rows, device=every.device)).all())
    return False


def _ids(index: Any, num_rows: int) -> torch.Tensor:
    """An index of PyG's as ids, 1-D: None and slices, an int, arrays, masks too."""
    if index is None:
        index = slice(None)
    if isinstance(index, slice):
        if (index.step or 1) < 1:
            _misused(index)
        return torch.arange(num_rows)[index]
    if isinstance(index, int) and not isinstance(index, bool):
        return torch.tensor([index])
    ids = as_tensor(index)
    if ids.dtype == torch.bool:
        if ids.shape != (num_rows,):
            raise ValueError(f"index: expected a mask of {num_rows} rows, got {tuple(ids.shape)}")
        return ids.nonzero().squeeze(1)
    if ids.dim() != 1 or ids.dtype not in (torch.int32, torch.int64):
        if not ids.numel():
            return ids.new_empty(0, dtype=torch.int64)
        _misused(index)
    return ids


def _misused(index: Any) -> NoReturn:
    raise TypeError(
        f"index: expected None, a slice with a step > 0, an int, a mask or int32 or int64 ids of "
        f"one dimension, got {describe(index)}"
    )
