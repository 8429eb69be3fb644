"""``Attributes``: the arrays and names that PyG's ``NeighborSampler`` has, of our samplers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch_geometric.sampler.base import DataType

from pygsampler._graph.graph import Graph, is_heterogeneous
from pygsampler._graph.schema import EdgeType
from pygsampler.pyg.base_sampler import Sampler

__all__ = ["Attributes"]


class Attributes(Sampler):
    """The attributes of PyG's samplers that describe the graph, computed when they are read.

    Arrays are on the CPU and in the order of the graph's in-edge lists, as PyG has them; with
    ``sample_direction="backward"`` in the order of the out-edge lists, with PyG's reversed types.
    """

    graph: Any
    # True if the graph came as a pair of stores, and true if its times are negated.
    _stored = False
    _mirrored = False

    @property
    def data_type(self) -> DataType:
        """PyG's kind of data: homogeneous, heterogeneous or remote."""
        if self._stored:
            return DataType.remote
        return DataType.heterogeneous if self.is_hetero else DataType.homogeneous

    @property
    def is_hetero(self) -> bool:
        """True if the graph has types of nodes and edges."""
        return is_heterogeneous(self.graph)

    @property
    def is_temporal(self) -> bool:
        """True if edges or nodes have times."""
        return self._names()[0] is not None

    @property
    def node_types(self) -> list[Any]:
        """The types of nodes; [None] without types."""
        return list(self.graph.node_types) if self.is_hetero else [None]

    @property
    def edge_types(self) -> list[Any]:
        """The types of edges, reversed for sampling backward; [None] without types."""
        return list(self._csc()) if self.is_hetero else [None]

    @property
    def to_rel_type(self) -> dict[EdgeType, str]:
        """The joined names of the types of edges, by which PyG keeps their arrays."""
        return {kind: "__".join(kind) for kind in self._csc()}

    @property
    def to_edge_type(self) -> dict[str, EdgeType]:
        """The types of edges by their joined names."""
        return {name: kind for kind, name in self.to_rel_type.items()}

    @property
    def colptr(self) -> torch.Tensor:
        """The start of each node's in-edges, shape [num_nodes + 1], without types."""
        return _colptr(self._only("colptr"), self.graph.num_nodes)

    @property
    def row(self) -> torch.Tensor:
        """The sources of all in-edges, without types."""
        found: torch.Tensor = self._only("row").indices.cpu().torch()
        return found

    @property
    def colptr_dict(self) -> dict[str, torch.Tensor]:
        """``colptr`` by the joined name of an edge type."""
        counts = self.graph.num_nodes
        return {"__".join(kind): _colptr(csc, counts[kind[2]]) for kind, csc in self._csc().items()}

    @property
    def row_dict(self) -> dict[str, torch.Tensor]:
        """``row`` by the joined name of an edge type."""
        return {"__".join(kind): csc.indices.cpu().torch() for kind, csc in self._csc().items()}

    @property
    def perm(self) -> Any:
        """The column of ``edge_index`` of each in-edge; None if the order is the same.

        For a heterogeneous graph it is a dict of edge types.
        """
        if not self.is_hetero:
            return _perm(self.graph)
        return {kind: _perm(csc) for kind, csc in self._csc().items()}

    @property
    def node_time(self) -> Any:
        """The times of nodes; None if edges have times, or if there are no times.

        For a heterogeneous graph it is a dict of node types.
        """
        name, _ = self._names()
        if name is None:
            return None
        if not self.is_hetero:
            values = self.graph.ndata.get(name)
            return None if values is None else self._in_data_direction(values.torch())
        arrays = self.graph.ndata.items()
        found = {
            kind: self._in_data_direction(of[name].torch()) for kind, of in arrays if name in of
        }
        return found or None

    @property
    def edge_time(self) -> Any:
        """The times of the in-edges; None if nodes have times, or if there are no times.

        For a heterogeneous graph it is a dict by the names ``src__rel__dst``.
        """
        found = self._of_edges(self._names()[0])
        if isinstance(found, dict):
            return {kind: self._in_data_direction(times) for kind, times in found.items()}
        return None if found is None else self._in_data_direction(found)

    @property
    def edge_weight(self) -> Any:
        """The weights of the in-edges, with types a dict of joined names; None without."""
        return self._of_edges(self._names()[1])

    def _in_data_direction(self, times: torch.Tensor) -> torch.Tensor:
        """Converts times between the sampled graph and the direction of the caller."""
        return -times if self._mirrored else times

    def _csc(self) -> Mapping[EdgeType, Graph]:
        """The in-edges by their types, without the type of data that has none."""
        if not self.is_hetero:
            return {}
        return {kind: self.graph[kind] for kind in self._relations}

    @property
    def _relations(self) -> tuple[EdgeType, ...]:
        return tuple(self.graph.edge_types)

    def _only(self, name: str) -> Any:
        if self.is_hetero:
            raise AttributeError(
                f"{name}: expected a sampler of a homogeneous graph, got a heterogeneous one; "
                f"{name}_dict has it by type"
            )
        return self.graph

    def _names(self) -> tuple[str | None, str | None]:
        """The names of times and weights."""
        raise NotImplementedError

    def _of_edges(self, name: str | None) -> Any:
        if name is None:
            return None
        if not self.is_hetero:
            return _in_order(self.graph, name)
        found = {"__".join(kind): _in_order(csc, name) for kind, csc in self._csc().items()}
        return {kind: values for kind, values in found.items() if values is not None} or None


def _colptr(csc: Graph, count: int) -> torch.Tensor:
    indptr: torch.Tensor = csc.indptr.cpu().torch()
    if len(indptr) > count:
        return indptr[: count + 1]
    # Nodes behind the last row have no in-edges.
    return torch.cat([indptr, indptr[-1:].expand(count + 1 - len(indptr))])


def _perm(csc: Graph) -> torch.Tensor | None:
    return None if csc.edge_ids is None else csc.edge_ids.cpu().torch()


def _in_order(csc: Graph, name: str) -> torch.Tensor | None:
    """An array of edges in the order of the in-edge lists."""
    if name not in csc.edata:
        return None
    values: torch.Tensor = csc.edata[name].torch()
    perm = _perm(csc)
    return values if perm is None else values[perm.long()]
