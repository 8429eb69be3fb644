"""The in-edges of what PyG calls a graph: Data, or a pair of stores."""

from __future__ import annotations

from typing import Any

import torch
from torch_geometric.data import FeatureStore, GraphStore, HeteroData

from pygsampler._check import describe
from pygsampler.graph import Graph

__all__ = ["graph_of"]


def graph_of(data: Any, device: Any = None, is_sorted: bool = False) -> Graph:
    """The in-edges of ``data``; the id of an edge is its column of ``edge_index``.

    ``data`` is a ``Data`` with ``edge_index`` or ``adj_t``, a pair of FeatureStore and GraphStore,
    or a Graph. The graph is on ``device``; by default where the edges are. ``is_sorted`` promises
    that ``edge_index`` is ordered by its row 1: then it is not sorted, nor copied.

    Raises ``TypeError`` for anything else, ``ValueError`` for a broken promise, and
    ``NotImplementedError`` for graphs with types.
    """
    if isinstance(data, Graph):
        return data if device is None else data.to(device)
    if isinstance(data, HeteroData):
        raise NotImplementedError(
            "data: expected a homogeneous Data, got HeteroData; heterogeneous graphs are not "
            "offered yet, and data.to_homogeneous() makes a Data of one"
        )
    if isinstance(data, (tuple, list)):
        graph, place = _of_stores(data)
    else:
        graph, place = _of_data(data, is_sorted)
    if device is None:
        device = place
    return graph if device is None else graph.to(device)


def _of_data(data: Any, is_sorted: bool) -> tuple[Graph, Any]:
    """The graph and, where it is to be elsewhere by default, that device."""
    edges = getattr(data, "edge_index", None)
    if not hasattr(data, "num_nodes"):
        raise TypeError(f"data: expected a torch_geometric.data.Data, got {describe(data)}")
    if getattr(data, "adj_t", None) is not None:
        return Graph.from_pyg(data), None
    if edges is None:
        edges = torch.empty(2, 0, dtype=torch.int64)
    if not isinstance(edges, torch.Tensor) or edges.dim() != 2 or edges.shape[0] != 2:
        shape = tuple(edges.shape) if isinstance(edges, torch.Tensor) else describe(edges)
        raise ValueError(f"data.edge_index: expected a tensor of shape (2, E), got {shape}")
    if hasattr(edges, "as_tensor"):
        edges = edges.as_tensor()
    nodes = int(data.num_nodes or 0)
    # A CSC made on the host is the same, edge by edge, and the sort needs no room on the GPU.
    place = str(edges.device) if edges.is_cuda else None
    src, dst = edges.cpu().contiguous()
    if not is_sorted:
        return _shared(Graph.from_coo(src, dst, num_nodes=nodes)), place
    if bool((dst[1:] < dst[:-1]).any()):
        raise ValueError(
            "is_sorted: expected edge_index ordered by its row 1, got another order; "
            "is_sorted=False sorts it"
        )
    if dst.numel() and not (int(dst[0]) >= 0 and int(dst[-1]) < nodes):
        raise IndexError(
            f"data.edge_index: expected vertices in [0, {nodes}), "
            f"got {int(dst[0])} to {int(dst[-1])} in row 1"
        )
    indptr = torch.searchsorted(dst, torch.arange(nodes + 1, dtype=dst.dtype))
    return Graph.from_csc(indptr, src, num_nodes=nodes), place


def _of_stores(stores: Any) -> tuple[Graph, Any]:
    if (
        len(stores) != 2
        or not isinstance(stores[0], FeatureStore)
        or not isinstance(stores[1], GraphStore)
    ):
        raise TypeError(
            f"data: expected a Data, a Graph or (FeatureStore, GraphStore), got {describe(stores)}"
        )
    edges = stores[1].get_all_edge_attrs()
    types = {attr.edge_type for attr in edges}
    if types - {None}:
        raise NotImplementedError(
            f"data: expected a graph store without edge types, got {sorted(map(str, types))}; "
            f"heterogeneous graphs are not offered yet"
        )
    if not edges:
        raise ValueError("data: expected a graph store with edges, got an empty one")
    row, indptr, ids = stores[1].csc()
    place = str(row.device) if row.is_cuda else None
    row, indptr = row.cpu().contiguous(), indptr.cpu().contiguous()
    # A store need not know its size.
    largest = int(row.max()) if row.numel() else -1
    nodes = max(edges[0].size or (len(indptr) - 1, largest + 1))
    if ids is not None:
        ids = ids.cpu().contiguous()
    return Graph.from_csc(indptr, row, edge_ids=ids, num_nodes=nodes), place


def _shared(graph: Graph) -> Graph:
    """The same graph in tensors of torch's, which it puts into shared memory for other processes.

    Workers that are spawned get the arrays so, in the place of a copy for each.
    """
    ids = graph.edge_ids
    return Graph.from_csc(
        graph.indptr.torch(),
        graph.indices.torch(),
        edge_ids=None if ids is None else ids.torch(),
        num_nodes=graph.num_nodes,
    )
