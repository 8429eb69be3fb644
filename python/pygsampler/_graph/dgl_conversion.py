"""Conversion of DGL's graphs and blocks; imports DGL at the first conversion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygsampler._graph.named_arrays import selected
from pygsampler._graph.reverse_edges import check_ids

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pygsampler._arrays.array import Array
    from pygsampler._graph.relation_state import RelationState

    Names = Iterable[str] | None


def to_dgl(graph: RelationState, edge_data: Names, node_data: Names) -> Any:
    """The DGLGraph of a graph on the CPU, with these arrays, which share their memory."""
    dgl = _dgl()
    made = dgl.graph(("csc", _csc(graph, graph._num_nodes)), num_nodes=graph._num_nodes)
    made.edata.update(_tensors(graph._edata, edge_data, "edge_data"))
    made.ndata.update(_tensors(graph._ndata, node_data, "node_data"))
    return made


def to_heterograph(
    graphs: Mapping[Any, RelationState],
    nodes: Mapping[str, int],
    ndata: Mapping[str, Mapping[str, Array]],
) -> Any:
    """The heterograph of relations on the CPU, with all arrays, which share their memory."""
    relations = {kind: ("csc", _csc(graph, nodes[kind[2]])) for kind, graph in graphs.items()}
    made = _dgl().heterograph(relations, num_nodes_dict=dict(nodes))
    for kind, graph in graphs.items():
        made.edges[kind].data.update(_tensors(graph._edata, None, "edge_data"))
    for kind, arrays in ndata.items():
        made.nodes[kind].data.update(_tensors(arrays, None, "node_data"))
    return made


def to_subgraph(indptr: Any, indices: Any, nodes: Any, edge_ids: Any) -> Any:
    """The DGLGraph of a sampled subgraph of tensors, with ``dgl.NID`` and ``dgl.EID``."""
    dgl = _dgl()
    made = dgl.graph(("csc", (indptr, indices, edge_ids[:0])), num_nodes=len(nodes))
    made.ndata[dgl.NID], made.edata[dgl.EID] = nodes, edge_ids
    return made


def to_block(relations: Mapping[Any, tuple[Any, Any]], src: Any, dst: Any) -> Any:
    """Returns a DGLBlock of a CSC (indptr, indices) for each edge type.

    ``src`` and ``dst`` are the numbers of nodes on either side, by node type; for a homogeneous
    graph each is one number.
    """
    dgl = _dgl()
    csc = {
        kind: ("csc", (indptr, indices, indices[:0]))
        for kind, (indptr, indices) in relations.items()
    }
    return dgl.create_block(csc.get(None, csc), num_src_nodes=src, num_dst_nodes=dst)


def id_names() -> tuple[str, str]:
    """Returns DGL's names for the original ids of nodes and of edges."""
    dgl = _dgl()
    return dgl.NID, dgl.EID


def _csc(graph: RelationState, num_rows: int) -> tuple[Any, Any, Any]:
    """The arrays of a graph of so many rows, all in the dtype of its ids, as DGL takes them."""
    import torch

    check_ids(graph, "to_dgl")
    indptr, indices, edge_ids, *_ = (None if a is None else a.torch() for a in graph._open())
    assert indptr is not None
    assert indices is not None
    indptr = indptr[: num_rows + 1]
    missing = num_rows + 1 - len(indptr)
    if missing:
        indptr = torch.cat([indptr, indptr[-1:].expand(missing)])
    ids = indices[:0] if edge_ids is None else edge_ids.to(indices.dtype)
    return indptr.to(indices.dtype), indices, ids


def _tensors(arrays: Mapping[str, Array], names: Names, where: str) -> dict[str, Any]:
    return {name: array.torch() for name, array in selected(arrays, names, where).items()}


def _dgl() -> Any:
    try:
        import dgl
    except ImportError:
        raise ImportError("to_dgl: expected DGL, found none; pip install dgl") from None
    return dgl
