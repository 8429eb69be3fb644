"""Reads the graphs with types of other libraries; imports none of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from pygsampler._arrays.ids import as_ids, as_int64
from pygsampler._arrays.interning import Interned, intern
from pygsampler._engine import memory
from pygsampler._engine.checks import describe
from pygsampler._graph import converters
from pygsampler._graph.converters import check_dgl, csr_arrays
from pygsampler._graph.csc_arrays import NUMBERING, edge_ends, is_sparse
from pygsampler._graph.schema import node_count

if TYPE_CHECKING:
    from pygsampler._graph.schema import EdgeType


class HeteroParts(NamedTuple):
    """What ``HeteroGraph`` is made of; ``lists`` are the relations whose edges are (src, dst)."""

    edges: dict[Any, Any]
    nodes: dict[str, int]
    edge_data: Mapping[Any, Mapping[str, Any]] | None
    node_data: Mapping[str, Mapping[str, Any]] | None
    lists: Collection[Any] = ()


def hetero_from_pyg(data: Any) -> HeteroParts:
    """The edges of a HeteroData by their lists or, where a type has it, by ``adj_t``, and its
    tensors with a row for each edge or vertex."""
    if not hasattr(data, "metadata"):
        raise TypeError(f"data: expected a HeteroData, got {describe(data)}")
    edges: dict[Any, Any] = {}
    lists: list[Any] = []
    of_edges: dict[Any, dict[str, Any]] = {}
    sizes: dict[str, int] = {}
    for kind in map(tuple, data.edge_types):
        store, where = data[kind], f"data[{kind!r}]"
        if "adj_t" in store:
            adjacency = store["adj_t"]
            indptr, indices, values = csr_arrays(adjacency, f"{where}.adj_t")
            edges[kind] = indptr, indices
            # Other attributes may be in another order.
            if values is not None:
                name = "edge_weight" if values.dim() == 1 else "edge_attr"
                of_edges[kind] = {name: values}
            # A matrix has a row for each target, and a column for each source.
            sized = hasattr(adjacency, "sparse_sizes")
            shape = adjacency.sparse_sizes() if sized else adjacency.shape
            sizes |= zip((kind[2], kind[0]), shape, strict=False)
        elif "edge_index" in store:
            index = store.edge_index
            edges[kind] = index[0].contiguous(), index[1].contiguous()
            lists.append(kind)
            of_edges[kind] = _rows_of(store, int(index.shape[1]), ("edge_index",))
        else:
            raise ValueError(f"{where}: expected edge_index or adj_t, got {list(store.keys())}")
    nodes = {}
    for kind in data.node_types:
        # Where nothing else says it PyG guesses, with a warning.
        known = data[kind].can_infer_num_nodes or kind not in sizes
        count = data[kind].num_nodes if known else sizes[kind]
        if count is None:
            raise ValueError(f"data[{kind!r}]: expected num_nodes, or a tensor of its nodes")
        nodes[kind] = int(count)
    of_nodes = {kind: _rows_of(data[kind], count, ()) for kind, count in nodes.items()}
    return HeteroParts(edges, nodes, of_edges, of_nodes, lists)


def hetero_from_dgl(g: Any) -> HeteroParts:
    """DGL's own in-CSCs, without a copy."""
    check_dgl(g)
    if g.device.type != "cpu":
        raise ValueError(f"g: expected a graph in CPU memory, got one on {g.device}; g.cpu()")
    edges = {}
    for kind in g.canonical_etypes:
        indptr, indices, ids = g.adj_tensors("csc", etype=kind)
        # DGL leaves the ids out when the edges are numbered in CSC order.
        edges[kind] = (indptr, indices, ids) if len(ids) == len(indices) else (indptr, indices)
    return HeteroParts(
        edges,
        {kind: int(g.num_nodes(kind)) for kind in g.ntypes},
        {kind: dict(g.edges[kind].data) for kind in g.canonical_etypes},
        {kind: dict(g.nodes[kind].data) for kind in g.ntypes},
    )


def of_scipy(
    matrices: Mapping[Any, Any],
    num_nodes: Mapping[str, int] | None,
    node_data: Mapping[str, Mapping[str, Any]] | None,
) -> HeteroParts:
    """A CSC for each matrix, and how many nodes the shapes say that each type has."""
    nodes: dict[str, int] = {}
    said: dict[str, str] = {}
    for kind, count in (num_nodes or {}).items():
        nodes[kind], said[kind] = node_count(kind, count), "num_nodes"
    edges: dict[Any, Any] = {}
    lists: list[Any] = []
    data: dict[Any, dict[str, Any]] = {}
    for kind, matrix in matrices.items():
        where = f"matrices[{kind!r}]"
        parts = converters.csc_from_scipy(matrix, where)
        for of, count, side in zip(kind[::2], matrix.shape, ("rows", "columns"), strict=True):
            known = nodes.setdefault(of, int(count))
            if known != count:
                raise ValueError(
                    f"{where}: expected {known} {side}, as {said[of]} has nodes of type {of!r}, "
                    f"got {count}"
                )
            said.setdefault(of, where)
        data[kind] = {name: offer.value for name, offer in parts.edge_data.items()}
        if isinstance(parts, converters.Coo):
            edges[kind] = parts.src, parts.dst
            lists.append(kind)
        else:
            ids = () if parts.edge_ids is None else (parts.edge_ids,)
            edges[kind] = parts.indptr, parts.indices, *ids
    return HeteroParts(_in_one_width(edges, lists), nodes, data, node_data, lists)


def _in_one_width(edges: dict[Any, Any], lists: Collection[Any]) -> dict[Any, Any]:
    """The relations with ids of 64 bits where those of one are; all are NumPy's."""
    ids = [each for kind, of in edges.items() for each in (of if kind in lists else of[1:2])]
    if len({each.dtype for each in ids}) < 2:
        return edges
    return {kind: tuple(each.astype("int64") for each in of) for kind, of in edges.items()}


def hetero_from_stores(features: Any, store: Any, with_edges: bool = True) -> HeteroParts:
    """All that a feature store has by type and name, and the edges of a graph store."""
    if not (hasattr(features, "get_all_tensor_attrs") and hasattr(store, "get_all_edge_attrs")):
        raise TypeError(
            f"data: expected (FeatureStore, GraphStore), got ({describe(features)}, "
            f"{describe(store)})"
        )
    edges, nodes = store_edges(features, store) if with_edges else ({}, {})
    return HeteroParts(edges, nodes, *_data_of(features))


def store_edges(
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


def _reverse(kind: Any) -> Any:
    return kind[2], kind[1], kind[0]


def _num_nodes(features: Any, kinds: Any, sizes: Any, rows: Any, indptrs: Any) -> dict[str, int]:
    """By the sizes that the edges have, else by features, else by the edges themselves.

    Types that have features and no edges are last.
    """
    known: dict[str, int] = {}
    for kind, size in sizes.items():
        for end, count in ((kind[0], size[0]), (kind[2], size[1])):
            if count is not None:
                known[end] = max(known.get(end, 0), int(count))
    for kind, size in sizes_of(features).items():
        known.setdefault(kind, size)
    found: dict[str, int] = {}
    for kind in kinds:
        largest = int(rows[kind].max()) + 1 if rows[kind].numel() else 0
        for end, count in ((kind[0], largest), (kind[2], len(indptrs[kind]) - 1)):
            found[end] = max(found.get(end, 0), count)
    return {**{end: known.get(end, count) for end, count in found.items()}, **known}


def sizes_of(features: Any) -> dict[str, int]:
    """Returns the number of rows of each node type of a feature store."""
    counts: dict[str, int] = {}
    for attr in features.get_all_tensor_attrs():
        if isinstance(attr.group_name, str) and attr.group_name not in counts:
            size = features.get_tensor_size(attr)
            if size is not None:
                counts[attr.group_name] = int(size[0])
    return counts


def _data_of(features: Any) -> tuple[dict[Any, dict[str, Any]], dict[str, dict[str, Any]]]:
    """All features of edges and of vertices, by type and name, as they are."""
    nodes: dict[Any, dict[str, Any]] = {}
    edges: dict[Any, dict[str, Any]] = {}
    of_edges = features.get_edge_attrs() if hasattr(features, "get_edge_attrs") else []
    for found, attrs in ((nodes, features.get_all_tensor_attrs()), (edges, of_edges)):
        for attr in attrs:
            group, name = attr.group_name, attr.attr_name
            rows = features.get_tensor(group_name=group, attr_name=name, index=None)
            found.setdefault(group, {})[name] = rows
    return edges, nodes


def _rows_of(store: Any, count: int, without: tuple[str, ...]) -> dict[str, Any]:
    """The tensors of a PyG store that have so many rows."""
    return {
        name: value
        for name, value in store.items()
        if name not in without and getattr(value, "shape", ())[:1] == (count,)
    }


def edge_endpoints(kind: EdgeType, given: Any) -> tuple[Any, Any]:
    """Sources and destinations of the edges of a relation; TypeError for anything else."""
    try:
        src, dst = given
    except (TypeError, ValueError):
        raise TypeError(f"edges[{kind!r}]: expected (src, dst), got {describe(given)}") from None
    return src, dst


def in_one_width(
    edges: Mapping[EdgeType, tuple[Any, Any]],
) -> dict[EdgeType, tuple[Any, Any]]:
    """The ends of all relations, in 64 bits where one is; errors name the relation."""
    views = {}
    for kind, ends in edges.items():
        try:
            views[kind] = edge_ends(ends[0], "src"), edge_ends(ends[1], "dst")
        except (TypeError, ValueError, IndexError) as error:
            raise type(error)(f"edges[{kind!r}]: {error}") from None
    if len({view.bits for both in views.values() for view in both}) > 1:
        return {kind: (as_int64(src), as_int64(dst)) for kind, (src, dst) in views.items()}
    return dict(views)


def numbered(
    edges: Mapping[EdgeType, tuple[Any, Any]],
) -> tuple[dict[EdgeType, tuple[Any, Any]], dict[str, Interned]]:
    """The ends of all relations by numbers, and the labels of each type's nodes."""
    columns: dict[str, dict[str, Any]] = {}
    for kind, ends in edges.items():
        for name, values, of in zip(("src", "dst"), ends, kind[::2], strict=True):
            columns.setdefault(of, {})[f"edges[{kind!r}]: {name}"] = values
    labels = {of: intern(of_type) for of, of_type in columns.items()}
    numbers = {
        where: of_column
        for of, of_type in columns.items()
        for where, of_column in zip(of_type, labels[of].numbers, strict=True)
    }
    return {
        kind: (numbers[f"edges[{kind!r}]: src"], numbers[f"edges[{kind!r}]: dst"]) for kind in edges
    }, labels


def check_endpoints(edges: Mapping[EdgeType, tuple[Any, Any]], nodes: Mapping[str, int]) -> None:
    """ValueError for the first end of an edge that is no vertex of its type."""
    for kind, ends in edges.items():
        for name, given, of in zip(("src", "dst"), ends, kind[::2], strict=True):
            view = as_ids(given, name)
            ids = memory.integer_view(view.address, view.length, view.bits)
            for place, vertex in enumerate(ids):
                if not 0 <= vertex < nodes[of]:
                    way = f"; {NUMBERING}" if is_sparse(vertex, len(ids)) else ""
                    raise ValueError(
                        f"edges[{kind!r}]: {name}[{place}]: expected an id in [0, {nodes[of]}), "
                        f"got {vertex}{way}"
                    )
