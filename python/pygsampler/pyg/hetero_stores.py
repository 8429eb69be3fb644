"""Heterogeneous data to sample: a ``HeteroData``, or stores whose edges have types."""

from __future__ import annotations

from typing import Any

from torch_geometric import data as pyg
from torch_geometric.data import HeteroData

from pygsampler._graph.converters import sizes_of, store_edges
from pygsampler._graph.graph import Graph, HeteroGraph, is_heterogeneous
from pygsampler.pyg.options import check_range
from pygsampler.pyg.stores import GraphStore, tensors_of

__all__ = ["graph_of_stores", "is_hetero"]


def is_hetero(data: Any) -> bool:
    """True if ``data`` is a HeteroData, a heterogeneous Graph, or stores with edge types."""
    if isinstance(data, HeteroData) or is_heterogeneous(data):
        return True
    if not isinstance(data, (tuple, list)) or len(data) != 2:
        return False
    store = data[1]
    if not isinstance(store, pyg.GraphStore):
        return False
    return any(attr.edge_type is not None for attr in store.get_all_edge_attrs())


def graph_of_stores(
    stores: Any, weight_attr: str | None, backward: bool = False, time_attr: str | None = None
) -> Graph:
    """The in-edges of a pair of stores; a ``HeteroGraph`` that was put there as it is.

    Types stand in the order in which the store names its edges, those with features alone last.
    The ids of edges are those of PyG: the store's permutation of them, or else their places in its
    CSC. ``backward`` gives the reversed edges, each type (dst, relation, src), whose places are
    those in its CSR.
    """
    features, store = stores
    own = store.hetero_graph if isinstance(store, GraphStore) else None
    if own is not None and not backward:
        # The service that samples a partitioned graph knows its arrays.
        here = weight_attr is not None and own._service is None
        if here and not any(weight_attr in of for of in own.edata.values()):
            have = ", ".join(dict.fromkeys(repr(name) for of in own.edata.values() for name in of))
            raise ValueError(
                f"weight_attr: expected the name of an array of edges of the graph "
                f"({have or 'none'}), got {weight_attr!r}"
            )
        return own if own._service is not None else own._with_types(sizes_of(features))
    if weight_attr is not None:
        raise NotImplementedError(
            f"weight_attr: expected None with (FeatureStore, GraphStore), got {weight_attr!r}; "
            "GraphStore(HeteroGraph) of this module has arrays of edges, and so has a HeteroData"
        )
    edges, nodes = store_edges(features, store, backward)
    for kind, arrays in edges.items():
        check_range(arrays[1], f"data: the sources of {kind!r}", nodes[kind[0]])
    of_edges: dict[Any, dict[str, Any]] = {}
    of_nodes: dict[Any, dict[str, Any]] = {}
    if time_attr is not None:
        for group, values in tensors_of(features, time_attr).items():
            by_type = of_edges if isinstance(group, tuple) else of_nodes
            by_type[group] = {time_attr: values}
        if of_edges and backward:
            # The places of a CSR's edges are not those that the times stand at.
            raise NotImplementedError(
                f"sample_direction: expected 'forward' with time_attr={time_attr!r} of the edges "
                "of stores, got 'backward'; a HeteroData has it"
            )
    if time_attr is not None and bool(of_edges) == bool(of_nodes):
        both = ", which is that of both" if of_edges else ""
        raise ValueError(
            f"time_attr: expected the name of tensors of the FeatureStore, got {time_attr!r}{both}"
        )
    return HeteroGraph(edges, nodes, edge_data=of_edges, node_data=of_nodes)
