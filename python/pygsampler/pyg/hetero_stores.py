"""What is sampled of data with types: a ``HeteroData``, or stores whose edges have types."""

from __future__ import annotations

from typing import Any

import torch
from torch_geometric import data as pyg
from torch_geometric.data import HeteroData

from pygsampler.hetero_graph import HeteroGraph
from pygsampler.pyg.options import inside
from pygsampler.pyg.stores import GraphStore

__all__ = ["graph_of_stores", "has_types"]


def has_types(data: Any) -> bool:
    """Whether ``data`` is a HeteroData, or (FeatureStore, GraphStore) with types of edges."""
    if isinstance(data, HeteroData):
        return True
    if not isinstance(data, (tuple, list)) or len(data) != 2:
        return False
    store = data[1]
    if not isinstance(store, pyg.GraphStore):
        return False
    return any(attr.edge_type is not None for attr in store.get_all_edge_attrs())


def graph_of_stores(stores: Any, weight_attr: str | None, backward: bool = False) -> HeteroGraph:
    """The in-edges of a pair of stores; a ``HeteroGraph`` that was put there as it is.

    Types stand in the order in which the store names its edges. The ids of edges are those of PyG:
    the store's permutation of them, or else their places in its CSC. ``backward`` gives the
    reversed edges, each type (dst, relation, src), whose places are those in its CSR.
    """
    features, store = stores
    own = store.hetero_graph if isinstance(store, GraphStore) else None
    if own is not None and not backward:
        if weight_attr is not None and not any(weight_attr in of for of in own.edata.values()):
            have = ", ".join(dict.fromkeys(repr(name) for of in own.edata.values() for name in of))
            raise ValueError(
                f"weight_attr: expected the name of an array of edges of the graph "
                f"({have or 'none'}), got {weight_attr!r}"
            )
        return own
    if weight_attr is not None:
        raise NotImplementedError(
            f"weight_attr: expected None with (FeatureStore, GraphStore), got {weight_attr!r}; "
            "GraphStore(HeteroGraph) of this module has arrays of edges, and so has a HeteroData"
        )
    attrs = store.get_all_edge_attrs()
    if any(attr.edge_type is None for attr in attrs):
        raise ValueError("data: expected a graph store whose edges all have types, got one without")
    sizes = {tuple(attr.edge_type): attr.size for attr in attrs if attr.size is not None}
    kinds = list(dict.fromkeys(tuple(attr.edge_type) for attr in attrs))
    if backward:
        indptrs, rows, ids = ({_reverse(k): v for k, v in of.items()} for of in store.csr())
        kinds = [_reverse(kind) for kind in kinds]
        sizes = {_reverse(kind): size[::-1] for kind, size in sizes.items()}
    else:
        rows, indptrs, ids = store.csc()
    nodes = _num_nodes(features, kinds, sizes, rows, indptrs)
    edges: dict[Any, tuple[torch.Tensor, ...]] = {}
    for kind in kinds:
        row, indptr = rows[kind].cpu().contiguous(), indptrs[kind].cpu().contiguous()
        inside(row, f"data: the sources of {kind!r}", nodes[kind[0]])
        edges[kind] = indptr, row
        if ids[kind] is not None:
            edges[kind] += (ids[kind].cpu().contiguous(),)
    return HeteroGraph(edges, nodes)


def _reverse(kind: Any) -> Any:
    return kind[2], kind[1], kind[0]


def _num_nodes(features: Any, kinds: Any, sizes: Any, rows: Any, indptrs: Any) -> dict[str, int]:
    """By the sizes that the edges have, else by features, else by the edges themselves."""
    known: dict[str, int] = {}
    for kind, size in sizes.items():
        for end, count in ((kind[0], size[0]), (kind[2], size[1])):
            if count is not None:
                known[end] = max(known.get(end, 0), int(count))
    for attr in features.get_all_tensor_attrs():
        if isinstance(attr.group_name, str) and attr.group_name not in known:
            size = features.get_tensor_size(attr)
            if size is not None:
                known[attr.group_name] = int(size[0])
    found: dict[str, int] = {}
    for kind in kinds:
        largest = int(rows[kind].max()) + 1 if rows[kind].numel() else 0
        for end, count in ((kind[0], largest), (kind[2], len(indptrs[kind]) - 1)):
            found[end] = max(found.get(end, 0), count)
    return {end: known.get(end, count) for end, count in found.items()}
