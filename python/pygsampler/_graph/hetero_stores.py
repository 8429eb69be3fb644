"""What a graph with types is made of that lies in PyG's (FeatureStore, GraphStore)."""

from __future__ import annotations

from typing import Any


def edges_of(
    features: Any, store: Any, backward: bool = False
) -> tuple[dict[Any, tuple[Any, ...]], dict[str, int]]:
    """The CSC of each type of edges, in the order in which the store names them, and the numbers of
    vertices.

    The ids of edges are those of PyG: the store's permutation of them, or else their places in its
    CSC. ``backward`` gives the reversed edges, each type (dst, relation, src), whose places are
    those in its CSR.
    """
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
    edges: dict[Any, tuple[Any, ...]] = {}
    for kind in kinds:
        arrays = indptrs[kind], rows[kind], ids[kind]
        edges[kind] = tuple(each.cpu().contiguous() for each in arrays if each is not None)
    return edges, _num_nodes(features, kinds, sizes, rows, indptrs)


def data_of(features: Any) -> tuple[dict[Any, dict[str, Any]], dict[Any, dict[str, Any]]]:
    """All features of vertices and of edges, by type and name, as they are."""
    nodes: dict[Any, dict[str, Any]] = {}
    edges: dict[Any, dict[str, Any]] = {}
    of_edges = features.get_edge_attrs() if hasattr(features, "get_edge_attrs") else []
    for found, attrs in ((nodes, features.get_all_tensor_attrs()), (edges, of_edges)):
        for attr in attrs:
            group, name = attr.group_name, attr.attr_name
            rows = features.get_tensor(group_name=group, attr_name=name, index=None)
            found.setdefault(group, {})[name] = rows
    return nodes, edges


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
