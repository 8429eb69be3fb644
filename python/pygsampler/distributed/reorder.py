"""``reorder``: new numbers for the nodes, so that neighbors have near numbers."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pygsampler._arrays.array import as_array
from pygsampler._engine.checks import describe, integer
from pygsampler._features.features import Features
from pygsampler._graph.graph import Graph, is_homogeneous
from pygsampler.samplers.metis import clusters

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_WAYS = ("rcm", "metis")


def reorder(graph: Graph, by: str, *, parts: int = 1, seed: int = 0) -> Graph:
    """A graph whose nodes are numbered anew, so that parts of it have fewer edges between them.

    Parts are of contiguous nodes: whether these know each other is a matter of their order. The
    samples of the new graph are its own: they differ from those of ``graph`` by more than names.

    Parameters
    ----------
    graph : Graph
        On the CPU.
    by : str
        ``"rcm"``: reverse Cuthill-McKee, by SciPy. ``"metis"``: the clusters that METIS finds, one
        behind another, by pymetis; within one the order stays.
    parts : int
        How many clusters METIS is to find: as many as there will be parts.
    seed : int
        Of METIS.

    Returns
    -------
    Graph
        With arrays ``arrays["node_ids"]``, the id that each node had (its own ``node_ids`` where
        ``graph`` has some), and the arrays of edges and nodes of ``graph``.

    Raises
    ------
    ImportError
        Without SciPy, or pymetis.
    TypeError, ValueError
        For other arguments.
    """
    import numpy as np

    if not is_homogeneous(graph):
        raise TypeError(f"graph: expected a Graph, got {describe(graph)}")
    if graph.device != "cpu":
        raise ValueError(f"graph: expected one on the CPU, got one on {graph.device}")
    if by not in _WAYS:
        raise ValueError(f"by: expected one of {_WAYS}, got {by!r}")
    count = integer(parts, "parts", 1, 1 << 16)
    if by == "rcm":
        order = _cuthill_mckee(graph)
    else:
        found = clusters(graph, min(count, max(graph.num_nodes, 1)), seed=seed)
        order = np.argsort(found, kind="stable")
    return _renumbered(graph, order)


def _cuthill_mckee(graph: Graph) -> npt.NDArray[np.int64]:
    """The old ids in the new order."""
    import numpy as np

    try:
        from scipy.sparse import csr_matrix
        from scipy.sparse.csgraph import reverse_cuthill_mckee
    except ImportError as error:
        raise ImportError(
            "reorder: reverse Cuthill-McKee needs SciPy: pip install scipy"
        ) from error
    indptr, indices = _full_indptr(graph), graph.indices.numpy()
    # An edge counts in both directions.
    size = graph.num_nodes
    matrix = csr_matrix((np.ones(len(indices), np.int8), indices, indptr), (size, size))
    order = reverse_cuthill_mckee((matrix + matrix.T).tocsr(), symmetric_mode=True)
    return np.asarray(order, np.int64)


def _full_indptr(graph: Graph) -> npt.NDArray[np.int64]:
    """Returns where each node's row begins, trailing rows included."""
    import numpy as np

    indptr = np.asarray(graph.indptr.numpy(), np.int64)
    missing = graph.num_nodes + 1 - len(indptr)
    return np.concatenate([indptr, np.full(missing, indptr[-1], np.int64)])


def _renumbered(graph: Graph, order: npt.NDArray[np.int64]) -> Graph:
    """The graph whose node i is ``order[i]`` of this one. Rows keep the order of their edges."""
    import numpy as np

    indptr = _full_indptr(graph)
    degrees = np.diff(indptr)[order]
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(degrees)])
    # The place that each edge has had.
    old = np.repeat(indptr[:-1][order] - starts[:-1], degrees) + np.arange(starts[-1])
    name = np.empty_like(order)
    name[order] = np.arange(len(order))
    indices = name[graph.indices.numpy()[old]].astype(graph.indices.numpy().dtype)
    ids = old if graph.edge_ids is None else graph.edge_ids.numpy()[old]
    width = np.int32 if len(old) <= np.iinfo(np.int32).max and graph.dtype == "int32" else np.int64
    ids = ids if graph.edge_ids is not None else ids.astype(width)
    ndata = {key: _read_rows(values, order) for key, values in graph.ndata.items()}
    made = Graph.from_csc(
        starts, indices, edge_ids=ids, num_nodes=graph.num_nodes, edge_data=graph.edata
    ).with_data(node_data=ndata)
    before = graph.file_arrays.get("node_ids")
    names = order if before is None else before.numpy()[order]
    made._source._arrays = MappingProxyType({"node_ids": as_array(names, "node_ids")})
    return made


def _read_rows(values: Any, order: Any) -> Any:
    return Features.from_tensor(values).read(order)
