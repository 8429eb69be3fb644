"""Clusters of a graph, for Cluster-GCN: METIS, through pymetis."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from pygsampler._engine.checks import boolean, describe, integer
from pygsampler._sampling.sampler import check_graph

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from pygsampler._graph.graph import Graph as Stored

__all__ = ["clusters"]

_MOST = (1 << 31) - 1


def clusters(
    graph: Stored,
    parts: int,
    *,
    vertex_weights: Any = None,
    recursive: bool = False,
    seed: int = 0,
) -> npt.NDArray[np.int64]:
    """Parts of about the same size, with few edges between them, by METIS.

    METIS takes symmetric graphs: here an edge counts in both directions, parallel ones once, and
    loops do not.

    Parameters
    ----------
    graph : Graph
        On the CPU.
    parts : int
        How many, at most one for each node. A part may be left without nodes.
    vertex_weights : ndarray or tensor of integers >= 0, shape [V], optional
        Parts have about the same sum of these; default: as many nodes.
    recursive : bool
        By halves, rather than into all parts together.
    seed : int
        METIS' own; the same one gives the same parts.

    Returns
    -------
    ndarray of int64, shape [V]
        The part of each node. The nodes of some parts are the seeds of a batch of
        ``cluster_gcn``: ``np.flatnonzero(np.isin(part, chosen))``.

    Raises
    ------
    ImportError
        Without pymetis, which ``pip install pymetis`` gets.
    """
    import numpy as np

    check_graph(graph)
    if graph.device != "cpu":
        raise ValueError(f"graph: expected one on the CPU, got one on {describe(graph.device)}")
    count = graph.num_nodes
    parts = integer(parts, "parts", 1, max(min(count, _MOST), 1))
    recursive, seed = boolean(recursive, "recursive"), integer(seed, "seed", 0, _MOST)
    indptr = np.asarray(graph.indptr.numpy(), np.int64)
    if vertex_weights is not None:
        vertex_weights = np.asarray(vertex_weights)
        if vertex_weights.dtype.kind not in "iu" or vertex_weights.shape != (count,):
            raise TypeError(
                f"vertex_weights: expected integers of shape [{count}], got "
                f"{vertex_weights.dtype} of shape {list(vertex_weights.shape)}"
            )
        if count and vertex_weights.min() < 0:
            raise ValueError(f"vertex_weights: expected >= 0, got {vertex_weights.min()}")
    return _metis(indptr, graph.indices.numpy(), vertex_weights, count, parts, recursive, seed)


def _metis(
    indptr: Any,
    indices: Any,
    weights: Any,
    count: int,
    num_parts: int,
    recursive: bool,
    seed: int,
) -> npt.NDArray[np.int64]:
    import numpy as np

    try:
        import pymetis
    except ImportError as error:
        raise ImportError("clusters: METIS needs pymetis: pip install pymetis") from error
    starts, adjacent = _symmetric(indptr, indices, count)
    if num_parts == 1 or not count:
        return np.zeros(count, np.int64)
    given: dict[str, Any] = {"xadj": starts, "adjncy": adjacent}
    if hasattr(pymetis, "CSRAdjacency"):
        given = {"adjacency": pymetis.CSRAdjacency(starts, adjacent)}
    if weights is not None:
        given["vweights"] = weights.astype(np.int64)
    with warnings.catch_warnings():
        # Releases differ in which of these they call deprecated.
        warnings.simplefilter("ignore", DeprecationWarning)
        options = pymetis.Options(seed=seed)
        _, found = pymetis.part_graph(num_parts, recursive=recursive, options=options, **given)
    return np.asarray(found, np.int64)


def _symmetric(indptr: Any, indices: Any, count: int) -> tuple[Any, Any]:
    """The distinct pairs of different nodes with an edge, both ways, by the first of each."""
    import numpy as np

    v = np.repeat(np.arange(len(indptr) - 1, dtype=np.int64), np.diff(indptr))
    u = indices.astype(np.int64)
    u, v = u[u != v], v[u != v]
    pairs = np.unique(np.concatenate([u * count + v, v * count + u]))
    starts = np.searchsorted(pairs, np.arange(count + 1, dtype=np.int64) * count)
    return starts.astype(np.int64), pairs % max(count, 1)
