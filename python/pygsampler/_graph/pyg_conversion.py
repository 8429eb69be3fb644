"""Conversion of PyG's Data and HeteroData; imports PyG at the first conversion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygsampler._graph.named_arrays import selected
from pygsampler._graph.reverse_edges import by_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pygsampler._arrays.array import Array
    from pygsampler._graph.relation_state import RelationState

    Names = Iterable[str] | None

_TAKEN = ("edge_index", "num_nodes")


def to_pyg(graph: RelationState, edge_data: Names, node_data: Names) -> Any:
    """The Data of a graph on the CPU: column i of ``edge_index`` is the edge with id i."""
    data = new("Data")
    data.num_nodes = graph._num_nodes
    data.edge_index = _edge_index(graph)
    of_edges = selected(graph._edata, edge_data, "edge_data")
    of_nodes = selected(graph._ndata, node_data, "node_data")
    both = [name for name in of_edges if name in of_nodes]
    if both:
        raise ValueError(
            f"edge_data: expected names that no node array has, since Data has one namespace, got "
            f"{both[0]!r} of both; edge_data=[...] selects arrays"
        )
    for name, array in {**of_edges, **of_nodes}.items():
        _put(data, name, array)
    return data


def to_hetero_data(
    graphs: Mapping[Any, RelationState],
    nodes: Mapping[str, int],
    ndata: Mapping[str, Mapping[str, Array]],
) -> Any:
    """The HeteroData of relations on the CPU, with all arrays."""
    data = new("HeteroData")
    for kind, count in nodes.items():
        data[kind].num_nodes = count
        for name, array in ndata.get(kind, {}).items():
            _put(data[kind], name, array)
    for kind, graph in graphs.items():
        data[kind].edge_index = _edge_index(graph)
        for name, array in graph._edata.items():
            _put(data[kind], name, array)
    return data


def new(name: str) -> Any:
    """An empty object of a class of ``torch_geometric.data``; ImportError says how to get it."""
    try:
        from torch_geometric import data
    except ImportError:
        raise ImportError("to_pyg: expected PyG, found none; pip install torch-geometric") from None
    return getattr(data, name)()


def _edge_index(graph: RelationState) -> Any:
    import torch

    src, dst = by_id(graph, "to_pyg")
    return torch.stack([torch.from_numpy(src.copy()), torch.from_numpy(dst)]).long()


def _put(store: Any, name: str, array: Array) -> None:
    if name in _TAKEN:
        raise ValueError(f"data: expected names other than {', '.join(_TAKEN)}, got {name!r}")
    setattr(store, name, array.torch())
