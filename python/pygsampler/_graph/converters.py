"""Reads the graphs of other libraries; imports none of them."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from pygsampler._arrays.dtypes import KINDS
from pygsampler._arrays.ids import as_ids, as_int64
from pygsampler._arrays.interning import Interned, intern
from pygsampler._engine import memory
from pygsampler._engine.checks import describe
from pygsampler._graph.csc_arrays import NUMBERING, edge_ends, is_sparse
from pygsampler._graph.named_arrays import LazyArray, OfferedArray
from pygsampler._graph.schema import node_count

if TYPE_CHECKING:
    from pygsampler._graph.schema import EdgeType

# The graph itself, how PyG batches several, and what links are to be predicted.
_NO_DATA_OF_PYG = {"edge_index", "adj", "adj_t", "batch", "ptr", "edge_label", "edge_label_index"}
# The ids that nodes and edges had in another graph.
_NO_DATA_OF_DGL = {"_ID"}

_TWO_KINDS_OF_PYG = "Graph.from_pyg takes a HeteroData, which keeps them apart"

Offers = Mapping[str, OfferedArray]
NO_OFFERS: Offers = MappingProxyType({})


class Csc(NamedTuple):
    """The parts of ``Graph.from_csc``."""

    indptr: Any
    indices: Any
    edge_ids: Any
    num_nodes: int
    edge_data: Offers = NO_OFFERS
    node_data: Offers = NO_OFFERS


class Coo(NamedTuple):
    """The parts of ``Graph.from_coo``."""

    src: Any
    dst: Any
    num_nodes: int | None
    # Arrays beside the graph.
    arrays: Mapping[str, Any] | None = None
    edge_data: Offers = NO_OFFERS
    node_data: Offers = NO_OFFERS


def check_dgl(graph: Any) -> None:
    """Raises TypeError for what is no DGLGraph."""
    if hasattr(graph, "get_partition_book"):
        raise TypeError(
            "g: expected a dgl.DGLGraph, got a DistGraph, whose edges are in other processes; "
            "pygsampler.dgl.NeighborSampler has DGL's own sampling for it"
        )
    if not (hasattr(graph, "adj_tensors") and hasattr(graph, "is_homogeneous")):
        raise TypeError(f"g: expected a dgl.DGLGraph of DGL 1.1 or later, got {describe(graph)}")


def csc_from_dgl(graph: Any) -> Csc:
    """DGL's own in-CSC, which it makes and keeps when the graph has none yet."""
    if getattr(graph, "is_block", False):
        raise TypeError("g: expected a DGL graph, got a block (a DGLBlock is a sampling result)")
    if graph.device.type != "cpu":
        raise ValueError(f"g: expected a graph in CPU memory, got one on {graph.device}; g.cpu()")
    try:
        indptr, indices, edge_ids = graph.adj_tensors("csc")
    except Exception as error:
        raise ValueError(f"g: expected a graph that allows the csc format, got {error}") from error
    # DGL leaves the ids out when the edges are numbered in CSC order.
    numbered = len(edge_ids) == len(indices)
    return Csc(
        indptr,
        indices,
        edge_ids if numbered else None,
        int(graph.num_nodes()),
        _of_frames(getattr(graph, "_edge_frames", None)),
        _of_frames(getattr(graph, "_node_frames", None)),
    )


def _of_frames(frames: Any) -> Offers:
    """Returns the arrays that DGL has in ``edata`` or ``ndata``, to be read later.

    A subgraph of DGL selects its rows when they are first read, so the columns are cloned: reading
    them here changes nothing there.
    """
    try:
        columns = {name: column.clone() for name, column in frames[0]._columns.items()}
        return {
            name: OfferedArray(
                LazyArray(partial(getattr, column, "data")), (len(column), *column.shape)
            )
            for name, column in columns.items()
            if name not in _NO_DATA_OF_DGL and _has_kind(column.dtype)
        }
    except (AttributeError, LookupError, TypeError):
        # Another version keeps them elsewhere.
        return {}


def _has_kind(dtype: Any) -> bool:
    """True if named arrays may have this dtype of torch."""
    return str(dtype).removeprefix("torch.") in KINDS


def csc_from_pyg(pyg_data: Any) -> Csc | Coo:
    """``data.adj_t`` where there is one, else ``data.edge_index``."""
    adjacency = getattr(pyg_data, "adj_t", None)
    edge_index: Any = getattr(pyg_data, "edge_index", None)
    if adjacency is None and edge_index is None:
        raise TypeError(f"data: expected edge_index or adj_t, got {describe(pyg_data)}")
    if isinstance(getattr(pyg_data, "x", None), (tuple, list)):
        raise ValueError(
            f"data.x: expected one tensor, got two kinds of nodes; {_TWO_KINDS_OF_PYG}"
        )
    num_nodes = pyg_data.num_nodes
    if adjacency is not None:
        indptr, indices, values = csr_arrays(adjacency, "data.adj_t")
        if hasattr(adjacency, "sparse_sizes"):
            square(adjacency.sparse_sizes(), "data.adj_t", _TWO_KINDS_OF_PYG)
        elif hasattr(adjacency, "shape"):
            square(adjacency.shape[:2], "data.adj_t", _TWO_KINDS_OF_PYG)
        data_of_edges = {}
        offer = _of_tensor(values)
        if offer is not None:
            data_of_edges["edge_weight" if len(offer.shape) == 1 else "edge_attr"] = offer
        _, data_of_nodes = _of_attributes(pyg_data, len(indices), int(num_nodes))
        return Csc(indptr, indices, None, int(num_nodes), data_of_edges, data_of_nodes)
    if len(edge_index.shape) != 2 or edge_index.shape[0] != 2:
        raise ValueError(f"data.edge_index: expected shape (2, E), got {tuple(edge_index.shape)}")
    if hasattr(edge_index, "as_tensor"):
        if None not in (size := edge_index.sparse_size()):
            square(size, "data.edge_index", _TWO_KINDS_OF_PYG)
        edge_index = edge_index.as_tensor()
    count = None if num_nodes is None else int(num_nodes)
    both = _of_attributes(pyg_data, int(edge_index.shape[1]), count)
    return Coo(edge_index[0], edge_index[1], count, None, *both)


def csr_arrays(adjacency: Any, where: str) -> tuple[Any, Any, Any]:
    """Returns row offsets, columns and values of an ``adj_t``, torch's or a SparseTensor.

    Row v of the transposed adjacency lists v's in-neighbors: its CSR is our CSC. Values of a
    SparseTensor may be None.
    """
    if hasattr(adjacency, "csr"):
        indptr, indices, values = adjacency.csr()
        return indptr, indices, values
    found = getattr(adjacency, "layout", type(adjacency).__name__)
    if str(found) not in ("torch.sparse_csr", "torch.sparse_csc"):
        hint = "; adj_t.coalesce().to_sparse_csr()" if str(found) == "torch.sparse_coo" else ""
        raise TypeError(f"{where}: expected a sparse CSR matrix, got {found}{hint}")
    rows = adjacency.to_sparse_csr()
    return rows.crow_indices(), rows.col_indices(), rows.values()


def _of_attributes(pyg_data: Any, num_edges: int, num_nodes: int | None) -> tuple[Offers, Offers]:
    """Returns the attributes of edges and of nodes.

    The number of rows decides which are which, as in PyG, and the name if there are as many edges
    as nodes. ``data.is_edge_attr`` is not asked: it caches in ``pyg_data``, and may read all edges
    each time to learn the number of nodes.
    """
    of_edges: dict[str, OfferedArray] = {}
    of_nodes: dict[str, OfferedArray] = {}
    if not (hasattr(pyg_data, "is_edge_attr") and hasattr(pyg_data, "to_dict")):
        return of_edges, of_nodes
    for key, value in pyg_data.to_dict().items():
        offer = None if key in _NO_DATA_OF_PYG else _of_tensor(value)
        if offer is None or not _by_rows(pyg_data, key, value):
            continue
        rows = offer.shape[0]
        if rows == num_edges and (rows != num_nodes or "edge" in key):
            of_edges[key] = offer
        elif rows == num_nodes:
            of_nodes[key] = offer
    return of_edges, of_nodes


def _by_rows(pyg_data: Any, key: str, value: Any) -> bool:
    """True if an attribute has a row, not a column, for each edge or node."""
    try:
        return bool(pyg_data.__cat_dim__(key, value) == 0)
    except Exception:
        return False


def _of_tensor(value: Any) -> OfferedArray | None:
    """A plain tensor of torch's with rows of values; None for anything else."""
    torch = sys.modules.get("torch")
    if torch is None or type(value) not in (torch.Tensor, torch.nn.Parameter):
        return None
    plain = value.layout is torch.strided and not getattr(value, "is_nested", False)
    if not (plain and _has_kind(value.dtype) and value.device.type in ("cpu", "cuda")):
        return None
    return OfferedArray(value.detach(), tuple(value.shape)) if value.dim() else None


def csc_from_scipy(matrix: Any, where: str = "m") -> Csc | Coo:
    """CSC as it is, CSR by SciPy with the places in ``matrix.data`` as edge ids, others as COO.

    ``num_nodes`` is the number of columns, and rows may be more.
    """
    kind = getattr(matrix, "format", None)
    if kind is None or not hasattr(matrix, "tocoo"):
        raise TypeError(f"{where}: expected a scipy.sparse matrix or array, got {describe(matrix)}")
    if len(matrix.shape) != 2:
        raise ValueError(f"{where}: expected two dimensions (src, dst), got shape {matrix.shape}")
    num_nodes = matrix.shape[1]
    if kind == "csr":
        import numpy

        places = numpy.arange(matrix.indptr[-1], dtype=numpy.int64)
        values = _of_values(matrix.data[: len(places)])
        parts = (places, matrix.indices[: len(places)], matrix.indptr)
        matrix = type(matrix)(parts, shape=matrix.shape).tocsc()
        return Csc(matrix.indptr, matrix.indices, matrix.data, num_nodes, values)
    if kind == "csc":
        values = _of_values(matrix.data[: len(matrix.indices)])
        return Csc(matrix.indptr, matrix.indices, None, num_nodes, values)
    entries = matrix.tocoo(copy=False)
    return Coo(entries.row, entries.col, num_nodes, edge_data=_of_values(entries.data))


def square(shape: Any, where: str, ways: str) -> None:
    """Raises ValueError for the shape of a matrix whose rows and columns are nodes of two kinds."""
    rows, columns = shape
    if rows != columns:
        raise ValueError(
            f"{where}: expected a square matrix, got shape {(int(rows), int(columns))}, whose rows "
            f"and columns are nodes of two kinds; {ways}"
        )


def behind(edges: Csc | Coo, num_rows: int) -> Csc | Coo:
    """A bipartite graph of so many rows: the columns are numbered behind them."""
    import numpy as np

    count = num_rows + int(edges.num_nodes or 0)
    if isinstance(edges, Coo):
        columns = np.asarray(edges.dst)
        wide = np.int64 if count > np.iinfo(columns.dtype).max else columns.dtype
        return edges._replace(dst=columns.astype(wide) + num_rows, num_nodes=count)
    indptr = np.concatenate([np.zeros(num_rows, edges.indptr.dtype), edges.indptr])
    return edges._replace(indptr=indptr, num_nodes=count)


def _of_values(values: Any) -> Offers:
    """The values of a sparse matrix, if they are no complex numbers or objects."""
    if values.dtype.name not in KINDS:
        return {}
    return {"weight": OfferedArray(values, tuple(values.shape))}


class HeteroParts(NamedTuple):
    """The parts of a heterogeneous graph; ``lists`` are relations whose edges are (src, dst)."""

    edges: dict[Any, Any]
    nodes: dict[str, int]
    edge_data: Mapping[Any, Mapping[str, Any]] | None
    node_data: Mapping[str, Mapping[str, Any]] | None
    lists: Collection[Any] = ()


def hetero_from_pyg(hetero_data: Any) -> HeteroParts:
    """Returns the edges of a HeteroData, and its tensors with a row for each edge or node."""
    edges: dict[Any, Any] = {}
    lists: list[Any] = []
    of_edges: dict[Any, dict[str, Any]] = {}
    sizes: dict[str, int] = {}
    for kind in map(tuple, hetero_data.edge_types):
        store, where = hetero_data[kind], f"data[{kind!r}]"
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
    for kind in hetero_data.node_types:
        # PyG guesses a number that it cannot infer, with a warning, so `sizes` comes first.
        known = hetero_data[kind].can_infer_num_nodes or kind not in sizes
        count = hetero_data[kind].num_nodes if known else sizes[kind]
        if count is None:
            raise ValueError(f"data[{kind!r}]: expected num_nodes, or a tensor of its nodes")
        nodes[kind] = int(count)
    of_nodes = {kind: _rows_of(hetero_data[kind], count, ()) for kind, count in nodes.items()}
    return HeteroParts(edges, nodes, of_edges, of_nodes, lists)


def hetero_from_dgl(g: Any) -> HeteroParts:
    """DGL's own in-CSCs, without a copy."""
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
        parts = csc_from_scipy(matrix, where)
        for of, count, side in zip(kind[::2], matrix.shape, ("rows", "columns"), strict=True):
            known = nodes.setdefault(of, int(count))
            if known != count:
                raise ValueError(
                    f"{where}: expected {known} {side}, as {said[of]} has nodes of type {of!r}, "
                    f"got {count}"
                )
            said.setdefault(of, where)
        data[kind] = {name: offer.value for name, offer in parts.edge_data.items()}
        if isinstance(parts, Coo):
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
    """Returns the CSC of each edge type, in the store's order, and the numbers of nodes.

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


def _num_nodes(features: Any, kinds: Any, sizes: Any, row_ids: Any, indptrs: Any) -> dict[str, int]:
    """Returns the number of nodes by the sizes of the edges, else by features, else by ids.

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
        largest = int(row_ids[kind].max()) + 1 if row_ids[kind].numel() else 0
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
    """All features of edges and of nodes, by type and name, as they are."""
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


def edge_endpoints(kind: EdgeType, edges: Any) -> tuple[Any, Any]:
    """Sources and destinations of the edges of a relation; TypeError for anything else."""
    try:
        src, dst = edges
    except (TypeError, ValueError):
        raise TypeError(f"edges[{kind!r}]: expected (src, dst), got {describe(edges)}") from None
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
    """Raises ValueError for the first end of an edge that is no node of its type."""
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
