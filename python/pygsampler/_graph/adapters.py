"""Reads the graphs of other libraries; imports none of them."""

from __future__ import annotations

from array import array
from itertools import accumulate
from typing import Any, NamedTuple

from pygsampler._core.checks import describe


class Csc(NamedTuple):
    """The parts of ``Graph.from_csc``."""

    indptr: Any
    indices: Any
    edge_ids: Any
    num_nodes: int


class Coo(NamedTuple):
    """The parts of ``Graph.from_coo``."""

    src: Any
    dst: Any
    num_nodes: int | None
    # The ids of the edges where they are not their places, and arrays beside the graph.
    edge_ids: Any = None
    arrays: dict[str, Any] | None = None


def of_dgl(graph: Any) -> Csc:
    """DGL's own in-CSC, which it makes and keeps when the graph has none yet."""
    if not (hasattr(graph, "adj_tensors") and hasattr(graph, "is_homogeneous")):
        raise TypeError(f"g: expected a dgl.DGLGraph of DGL 1.1 or later, got {describe(graph)}")
    if getattr(graph, "is_block", False):
        raise TypeError("g: expected a DGL graph, got a block (a DGLBlock is a sampling result)")
    if not graph.is_homogeneous:
        kinds = f"{len(graph.ntypes)} node types and {len(graph.etypes)} edge types"
        raise TypeError(f"g: expected a homogeneous graph, got {kinds}; dgl.to_homogeneous(g)")
    if graph.device.type != "cpu":
        raise ValueError(f"g: expected a graph in CPU memory, got one on {graph.device}; g.cpu()")
    try:
        indptr, indices, edge_ids = graph.adj_tensors("csc")
    except Exception as error:
        raise ValueError(f"g: expected a graph that allows the csc format, got {error}") from error
    # DGL leaves the ids out when the edges are numbered in CSC order.
    numbered = len(edge_ids) == len(indices)
    return Csc(indptr, indices, edge_ids if numbered else None, int(graph.num_nodes()))


def of_pyg(data: Any) -> Csc | Coo:
    """``data.adj_t`` where there is one, else ``data.edge_index``."""
    if hasattr(data, "edge_types"):
        raise TypeError("data: expected a homogeneous Data, got HeteroData; data.to_homogeneous()")
    adjacency = getattr(data, "adj_t", None)
    edge_index: Any = getattr(data, "edge_index", None)
    if adjacency is None and edge_index is None:
        raise TypeError(f"data: expected edge_index or adj_t, got {describe(data)}")
    num_nodes = data.num_nodes
    if adjacency is not None:
        # Row v of the transposed adjacency lists v's in-neighbours: its CSR is our CSC.
        if hasattr(adjacency, "csr"):
            indptr, indices, _ = adjacency.csr()
        elif str(adjacency.layout) in ("torch.sparse_csr", "torch.sparse_csc"):
            rows = adjacency.to_sparse_csr()
            indptr, indices = rows.crow_indices(), rows.col_indices()
        else:
            found = getattr(adjacency, "layout", type(adjacency).__name__)
            raise TypeError(f"data.adj_t: expected a sparse CSR matrix, got {found}")
        return Csc(indptr, indices, None, int(num_nodes))
    if len(edge_index.shape) != 2 or edge_index.shape[0] != 2:
        raise ValueError(f"data.edge_index: expected shape (2, E), got {tuple(edge_index.shape)}")
    if hasattr(edge_index, "as_tensor"):
        edge_index = edge_index.as_tensor()
    return Coo(edge_index[0], edge_index[1], None if num_nodes is None else int(num_nodes))


def of_scipy(matrix: Any) -> Csc | Coo:
    """CSC as it is, CSR by SciPy with the places in ``matrix.data`` as edge ids, others as COO."""
    kind = getattr(matrix, "format", None)
    if kind is None or not hasattr(matrix, "tocoo"):
        raise TypeError(f"m: expected a scipy.sparse matrix or array, got {describe(matrix)}")
    if len(matrix.shape) != 2:
        raise ValueError(f"m: expected two dimensions (src, dst), got shape {matrix.shape}")
    num_nodes = max(matrix.shape)
    if kind == "csr":
        import numpy

        places = numpy.arange(matrix.indptr[-1], dtype=numpy.int64)
        parts = (places, matrix.indices[: len(places)], matrix.indptr)
        matrix = type(matrix)(parts, shape=matrix.shape).tocsc()
        return Csc(matrix.indptr, matrix.indices, matrix.data, num_nodes)
    if kind == "csc":
        return Csc(matrix.indptr, matrix.indices, None, num_nodes)
    entries = matrix.tocoo(copy=False)
    return Coo(entries.row, entries.col, num_nodes)


def of_networkx(graph: Any) -> Coo:
    """The edges in the order of ``graph.edges``, and the labels where they are no numbers."""
    if not (hasattr(graph, "is_directed") and hasattr(graph, "edges") and hasattr(graph, "nodes")):
        raise TypeError(f"g: expected a networkx graph, got {describe(graph)}")
    labels = list(graph.nodes)
    number = {label: place for place, label in enumerate(labels)}
    plain = {type(label) for label in labels} <= {int}
    arrays: dict[str, Any] = {}
    if plain and sorted(labels) == list(range(len(labels))):
        # They are vertices already, in whatever order they were added.
        number = {label: label for label in labels}
    elif plain and all(-(1 << 63) <= label < 1 << 63 for label in labels):
        arrays["node_ids"] = array("q", labels)
    elif {type(label) for label in labels} == {str}:
        texts = [label.encode() for label in labels]
        arrays["node_names.offsets"] = array("q", accumulate(map(len, texts), initial=0))
        arrays["node_names.bytes"] = array("B", b"".join(texts))
    src, dst = array("q"), array("q")
    for u, v in graph.edges():
        src.append(number[u])
        dst.append(number[v])
    count = len(src)
    ids = None
    if not graph.is_directed():
        back = [place for place in range(count) if src[place] != dst[place]]
        ids = array("q", [*range(count), *(count + place for place in back)])
        heads = array("q", (dst[place] for place in back))
        dst.extend(array("q", (src[place] for place in back)))
        src.extend(heads)
        if len(back) == count:
            ids = None
    return Coo(src, dst, len(labels), ids, arrays)
