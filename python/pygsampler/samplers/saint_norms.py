"""The norms of GraphSAINT's subgraphs where they have no short formula: counted beforehand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pygsampler._engine.checks import describe, integer
from pygsampler._engine.limits import MAX_EPOCH
from pygsampler._sampling.sampler import Sampler

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from pygsampler._graph.graph import Graph

__all__ = ["SaintNorms", "saint_norms"]

# No training comes to this epoch.
_EPOCH = MAX_EPOCH
_TOGETHER = 64


class SaintNorms(NamedTuple):
    """Estimated chances of each node, and of each edge relative to its target.

    ``node`` [V], float32, is p(v): the loss of v is to be divided by V p(v). ``edge`` [E], float32,
    by edge id, is p(u, v) / p(v): the coefficient of an edge is to be divided by it.
    """

    node: npt.NDArray[np.float32]
    edge: npt.NDArray[np.float32]


def saint_norms(graph: Graph, sampler: Any, coverage: int = 50) -> SaintNorms:
    """Counts nodes and edges in subgraphs sampled before training, as GraphSAINT's authors do.

    Parameters
    ----------
    graph : Graph
        A graph whose edges have the ids 0 to E - 1.
    sampler : pygsampler.Sampler
        A sampler of subgraphs that do not depend on seeds, such as ``saint_walk``.
    coverage : int
        Subgraphs are sampled until they have so many times the graph's nodes; the paper has 50.

    Returns
    -------
    Norms
        C(v) / N, and C(u, v) / C(v), at least 1e-4, where C(v) of N subgraphs have v, and C(u, v)
        have its edge. A node that was in no subgraph counts as in 0.1 of one, and an edge that was
        in none has 10.

    Raises
    ------
    TypeError, ValueError
        For a sampler of other batches, and for a sampler whose subgraphs are empty.
    """
    import numpy as np

    if not isinstance(sampler, Sampler):
        raise TypeError(f"sampler: expected one of subgraphs, got {describe(sampler)}")
    coverage = integer(coverage, "coverage", 1, 1 << 20)
    batches, nodes, edges, targets = count_subgraphs(graph, sampler, coverage, _TOGETHER)
    beside = nodes[targets]
    share = np.divide(edges, beside, out=np.full(len(edges), 10.0), where=edges > 0)
    node = np.where(nodes > 0, nodes, 0.1) / max(batches, 1)
    return SaintNorms(node.astype(np.float32), np.maximum(share, 1e-4).astype(np.float32))


def count_subgraphs(graph: Graph, sampler: Sampler[Any], coverage: int, together: int = 1) -> Any:
    """Counts the nodes and edges of subgraphs that have ``coverage`` times the graph's nodes.

    ``together`` subgraphs are sampled at once. Returns how many there were, in how many of them
    each node and each edge was, and the target of each edge that was in any.
    """
    import numpy as np

    nodes = np.zeros(graph.num_nodes)
    edges = np.zeros(graph.num_edges)
    targets = np.zeros(graph.num_edges, np.int64)
    nothing = [np.zeros(0, np.int64)] * together
    batches, met = 0, 0
    while met < coverage * graph.num_nodes:
        before = met
        for made in sampler.sample_many(graph, nothing, epoch=_EPOCH, batch=batches):
            if not hasattr(made, "nodes"):
                raise TypeError(f"sampler: expected one of subgraphs, got {sampler!r}")
            found = made.cpu().numpy()
            nodes[found.nodes] += 1
            edges[found.edge_ids] += 1
            targets[found.edge_ids] = np.repeat(found.nodes, np.diff(found.indptr))
            met += len(found.nodes)
        batches += together
        if met == before:
            raise ValueError("sampler: expected subgraphs with nodes, got empty ones")
    return batches, nodes, edges, targets
