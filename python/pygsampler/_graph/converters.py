"""Reads the graphs of other libraries; imports none of them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from pygsampler._arrays.dtypes import KINDS
from pygsampler._engine.checks import describe
from pygsampler._graph.named_arrays import LazyArray, OfferedArray

# The graph itself, how PyG batches several, and what links are to be predicted.
_NO_DATA_OF_PYG = {"edge_index", "adj", "adj_t", "batch", "ptr", "edge_label", "edge_label_index"}
# The ids that vertices and edges had in another graph.
_NO_DATA_OF_DGL = {"_ID"}

_TWO_KINDS_OF_PYG = "HeteroGraph.from_pyg takes a HeteroData, which keeps them apart"

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
    """TypeError for what is no DGLGraph."""
    if hasattr(graph, "get_partition_book"):
        raise TypeError(
            "g: expected a dgl.DGLGraph, got a DistGraph, whose edges are in other processes; "
            "pygsampler.dgl.NeighborSampler has DGL's own sampling for it"
        )
    if not (hasattr(graph, "adj_tensors") and hasattr(graph, "is_homogeneous")):
        raise TypeError(f"g: expected a dgl.DGLGraph of DGL 1.1 or later, got {describe(graph)}")


def csc_from_dgl(graph: Any) -> Csc:
    """DGL's own in-CSC, which it makes and keeps when the graph has none yet."""
    check_dgl(graph)
    if getattr(graph, "is_block", False):
        raise TypeError("g: expected a DGL graph, got a block (a DGLBlock is a sampling result)")
    if not graph.is_homogeneous:
        kinds = f"{len(graph.ntypes)} node types and {len(graph.etypes)} edge types"
        raise TypeError(
            f"g: expected a homogeneous graph, got {kinds}; HeteroGraph.from_dgl(g), or "
            "dgl.to_homogeneous(g)"
        )
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
    """What DGL has in ``edata`` or ``ndata``; a subgraph selects its rows when they are first
    read, so that reading is left for later, and out of columns of our own."""
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
    """Whether a dtype of torch's is one of ours."""
    return str(dtype).removeprefix("torch.") in KINDS


def csc_from_pyg(data: Any) -> Csc | Coo:
    """``data.adj_t`` where there is one, else ``data.edge_index``."""
    if hasattr(data, "metadata"):
        raise TypeError(
            "data: expected a homogeneous Data, got HeteroData; "
            "HeteroGraph.from_pyg(data), or data.to_homogeneous()"
        )
    adjacency = getattr(data, "adj_t", None)
    edge_index: Any = getattr(data, "edge_index", None)
    if adjacency is None and edge_index is None:
        raise TypeError(f"data: expected edge_index or adj_t, got {describe(data)}")
    if isinstance(getattr(data, "x", None), (tuple, list)):
        raise ValueError(
            f"data.x: expected one tensor, got two kinds of nodes; {_TWO_KINDS_OF_PYG}"
        )
    num_nodes = data.num_nodes
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
        _, data_of_nodes = _of_attributes(data, len(indices), int(num_nodes))
        return Csc(indptr, indices, None, int(num_nodes), data_of_edges, data_of_nodes)
    if len(edge_index.shape) != 2 or edge_index.shape[0] != 2:
        raise ValueError(f"data.edge_index: expected shape (2, E), got {tuple(edge_index.shape)}")
    if hasattr(edge_index, "as_tensor"):
        if None not in (size := edge_index.sparse_size()):
            square(size, "data.edge_index", _TWO_KINDS_OF_PYG)
        edge_index = edge_index.as_tensor()
    count = None if num_nodes is None else int(num_nodes)
    both = _of_attributes(data, int(edge_index.shape[1]), count)
    return Coo(edge_index[0], edge_index[1], count, None, *both)


def csr_arrays(adjacency: Any, where: str) -> tuple[Any, Any, Any]:
    """Where rows begin, columns and values of an ``adj_t``, torch's or a SparseTensor.

    Row v of the transposed adjacency lists v's in-neighbours: its CSR is our CSC. Values of a
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


def _of_attributes(data: Any, num_edges: int, num_nodes: int | None) -> tuple[Offers, Offers]:
    """Attributes of edges and of vertices, which PyG tells apart by their number of rows, and
    where there are as many edges as vertices by their names.

    Not by ``data.is_edge_attr``, which keeps notes in ``data``, and may read all edges each time
    to learn the number of vertices.
    """
    of_edges: dict[str, OfferedArray] = {}
    of_nodes: dict[str, OfferedArray] = {}
    if not (hasattr(data, "is_edge_attr") and hasattr(data, "to_dict")):
        return of_edges, of_nodes
    for key, value in data.to_dict().items():
        offer = None if key in _NO_DATA_OF_PYG else _of_tensor(value)
        if offer is None or not _by_rows(data, key, value):
            continue
        rows = offer.shape[0]
        if rows == num_edges and (rows != num_nodes or "edge" in key):
            of_edges[key] = offer
        elif rows == num_nodes:
            of_nodes[key] = offer
    return of_edges, of_nodes


def _by_rows(data: Any, key: str, value: Any) -> bool:
    """Whether the rows of an attribute are of edges or vertices, and not its columns."""
    try:
        return bool(data.__cat_dim__(key, value) == 0)
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
    """ValueError for the shape of a matrix whose rows and columns are nodes of two kinds."""
    rows, columns = shape
    if rows != columns:
        raise ValueError(
            f"{where}: expected a square matrix, got shape {(int(rows), int(columns))}, whose rows "
            f"and columns are nodes of two kinds; {ways}"
        )


def behind(parts: Csc | Coo, rows: int) -> Csc | Coo:
    """A bipartite graph of so many rows: the columns are numbered behind them."""
    import numpy as np

    count = rows + int(parts.num_nodes or 0)
    if isinstance(parts, Coo):
        columns = np.asarray(parts.dst)
        wide = np.int64 if count > np.iinfo(columns.dtype).max else columns.dtype
        return parts._replace(dst=columns.astype(wide) + rows, num_nodes=count)
    indptr = np.concatenate([np.zeros(rows, parts.indptr.dtype), parts.indptr])
    return parts._replace(indptr=indptr, num_nodes=count)


def _of_values(values: Any) -> Offers:
    """The values of a sparse matrix, if they are no complex numbers or objects."""
    if values.dtype.name not in KINDS:
        return {}
    return {"weight": OfferedArray(values, tuple(values.shape))}
