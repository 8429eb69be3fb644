"""Graphs from the arrays of an npz file: of SciPy's sparse matrices, a CSC, or lists of edges."""

from __future__ import annotations

import os
import zipfile
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from pygsampler._arrays.array import as_array
from pygsampler._engine.progress import Progress, progress_callback
from pygsampler.datasets._read_job import warn_sparse_ids

if TYPE_CHECKING:
    from pygsampler._graph.graph import Graph

# Pairs of arrays that are the ends of the edges.
_PAIRS = (("src", "dst"), ("row", "col"), ("source", "target"))


class _Edges(NamedTuple):
    """The ends of the edges by their ids, and the number of nodes where the file says it."""

    src: Any
    dst: Any
    num_nodes: int | None


def read(path: str, plan: dict[str, Any], progress: Progress) -> Graph:
    """The graph of the file; ``plan`` is checked."""
    import numpy as np

    size = os.stat(path).st_size
    name = os.path.basename(path)
    with progress_callback(progress, f"reading {name}") as report:
        try:
            with open(path, "rb") as file:
                # NumPy would take any other file for a pickle.
                if not file.read(6).startswith((b"PK", b"\x93NUMPY")):
                    raise ValueError("what is no zip archive")
                file.seek(0)
                # No pickles: they could run anything.
                loaded = np.load(file, allow_pickle=False)
                if not hasattr(loaded, "files"):
                    raise ValueError("a single array")
                arrays = {key: loaded[key] for key in loaded.files}
        except (ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
            raise ValueError(f"{name}: expected a whole npz file, got {error}") from None
        try:
            graph = _graph(arrays, plan)
        except (TypeError, ValueError, IndexError) as error:
            raise type(error)(f"{name}: {error}") from None
        report(size, size)
    warn_sparse_ids(path, plan, graph.num_nodes, graph.num_edges)
    return graph


def _graph(arrays: dict[str, Any], plan: dict[str, Any]) -> Graph:
    from pygsampler._graph.graph import Graph

    made = None
    if not plan["src"] and not plan["dst"]:
        made = _ready(arrays)
    plain = plan["numbering"] != "always" and not plan["undirected"]
    wanted = {0: None, 32: "int32", 64: "int64"}[plan["bits"]]
    nodes = None if plan["num_nodes"] < 0 else plan["num_nodes"]
    if made is not None and plain and nodes is None and wanted in (None, made.dtype):
        return made
    edges = _edges(arrays, plan) if made is None else _edges_of(made)
    return _changed(Graph, edges, plan, wanted, nodes)


def _ready(arrays: dict[str, Any]) -> Graph | None:
    """The graph of a sparse matrix or a CSC; None where the file has neither."""
    import numpy as np

    from pygsampler._graph.graph import Graph

    if "format" in arrays and "shape" in arrays:
        return Graph.from_scipy(_matrix(arrays))._plain()
    if {"adj_indptr", "adj_indices", "adj_shape"} <= set(arrays):
        # The layout of the data sets of gnn-benchmark: a CSR matrix among features and labels.
        return Graph.from_scipy(
            _matrix({key[4:]: arrays[key] for key in arrays if key.startswith("adj_")})
        )._plain()
    if "indptr" in arrays and "indices" in arrays:
        nodes = arrays.get("num_nodes")
        return Graph.from_csc(
            arrays["indptr"],
            arrays["indices"],
            edge_ids=arrays.get("edge_ids"),
            num_nodes=None if nodes is None else int(np.asarray(nodes).item()),
        )
    return None


def _matrix(arrays: dict[str, Any]) -> Any:
    import numpy as np

    try:
        import scipy.sparse as sp
    except ImportError as error:
        raise ImportError("a sparse matrix needs SciPy: pip install scipy") from error
    kind = arrays["format"].item() if "format" in arrays else "csr"
    kind = kind.decode() if isinstance(kind, bytes) else kind
    shape = tuple(int(n) for n in arrays["shape"])
    classes = {"csr": sp.csr_matrix, "csc": sp.csc_matrix}
    if kind == "coo":
        rows, columns = arrays["row"], arrays["col"]
        return sp.coo_matrix((np.ones(len(rows), np.int8), (rows, columns)), shape)
    if kind not in classes:
        raise ValueError(f"format: expected csr, csc or coo, got {kind!r}")
    indices, indptr = arrays["indices"], arrays["indptr"]
    # The values play no part; they need not even be there.
    return classes[kind]((np.ones(len(indices), np.int8), indices, indptr), shape)


def _edges(arrays: dict[str, Any], plan: dict[str, Any]) -> _Edges:
    import numpy as np

    nodes = arrays.get("num_nodes")
    count = None if nodes is None else int(np.asarray(nodes).item())
    if plan["src"] or plan["dst"]:
        ends = []
        for side in ("src", "dst"):
            key = plan[side].get("name")
            if key is None:
                raise ValueError(
                    f"{side}: expected the name of an array, as both must have, got none"
                )
            if key not in arrays:
                raise ValueError(f"{side}: expected an array {key!r}, got {', '.join(arrays)}")
            ends.append(arrays[key])
        if plan["src"] == plan["dst"]:
            raise ValueError(f"src, dst: expected two arrays, got {key!r} for both")
        return _Edges(ends[0], ends[1], count)
    if "edge_index" in arrays:
        both = arrays["edge_index"]
        if both.ndim != 2 or both.shape[0] != 2:
            raise ValueError(f"edge_index: expected shape (2, E), got {both.shape}")
        return _Edges(both[0], both[1], count)
    for first, second in _PAIRS:
        if first in arrays and second in arrays:
            return _Edges(arrays[first], arrays[second], count)
    raise ValueError(
        "expected a sparse matrix of SciPy, indptr and indices, edge_index, or src and dst; "
        f"got {', '.join(arrays) or 'no arrays'}"
    )


def _edges_of(graph: Graph) -> _Edges:
    import numpy as np

    indptr, src = graph.indptr.numpy(), graph.indices.numpy()
    dst = np.repeat(np.arange(len(indptr) - 1, dtype=src.dtype), np.diff(indptr))
    if graph.edge_ids is not None:
        order = np.argsort(graph.edge_ids.numpy(), kind="stable")
        src, dst = src[order], dst[order]
    return _Edges(src, dst, graph.num_nodes)


def _changed(
    graph_class: type[Graph],
    edges: _Edges,
    plan: dict[str, Any],
    dtype: str | None,
    num_nodes: int | None,
) -> Graph:
    """The graph of the edges by the options that are left."""
    import numpy as np

    src, dst, count = edges
    for side, ids in (("src", src), ("dst", dst)):
        if ids.ndim != 1 or ids.dtype.kind not in "iu":
            raise TypeError(
                f"{side}: expected integers of one dimension, got {ids.dtype} of shape {ids.shape}"
            )
        for id_ in (ids.min(), ids.max()) if len(ids) else ():
            if not 0 <= int(id_) < 1 << 63:
                raise ValueError(f"{side}: expected ids from 0 to 2^63 - 1, got {id_}")
    if len(src) != len(dst):
        raise ValueError(f"dst: expected as many values as src has ({len(src)}), got {len(dst)}")
    if dtype is None:
        narrow = np.can_cast(src.dtype, np.int32) and np.can_cast(dst.dtype, np.int32)
        dtype = "int32" if narrow else "int64"
    known = None
    if plan["numbering"] == "always":
        # int64 with uint64 would be float64.
        src, dst = src.astype(np.int64), dst.astype(np.int64)
        known = np.union1d(src, dst)
        src, dst, count = np.searchsorted(known, src), np.searchsorted(known, dst), len(known)
    top = max((int(ids.max()) for ids in (src, dst) if len(ids)), default=-1)
    if top > np.iinfo(dtype).max:
        raise ValueError(f"dtype: expected int64 for ids up to {top}, got {dtype}")
    src, dst = src.astype(dtype), dst.astype(dtype)
    nodes = num_nodes if num_nodes is not None else count
    both = bool(plan["undirected"])
    if not both:
        graph = graph_class.from_coo(src, dst, num_nodes=nodes)
    else:
        graph = _both_ways(graph_class, src, dst, nodes)
    if known is not None:
        graph._source._arrays = MappingProxyType({"node_ids": as_array(known, "node_ids")})
    return graph


def _both_ways(graph_class: type[Graph], src: Any, dst: Any, num_nodes: int | None) -> Graph:
    """Each edge backwards too, behind all others, but for self loops."""
    import numpy as np

    back = np.flatnonzero(src != dst)
    return graph_class.from_coo(
        np.concatenate([src, dst[back]]), np.concatenate([dst, src[back]]), num_nodes=num_nodes
    )
