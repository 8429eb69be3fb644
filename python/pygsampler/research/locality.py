"""GNNSampler's locality: samplers that prefer nodes whose neighbors lie together in memory."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any

from pygsampler._engine.checks import boolean, describe, integer
from pygsampler._sampling.sampler import check_graph
from pygsampler.programs import program
from pygsampler.samplers.graphsaint import sampled_subgraph
from pygsampler.samplers.hop_order import innermost_first
from pygsampler.samplers.layer_wise import normalized, sampled_rows, squared_norms

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from pygsampler._graph.graph import Graph as Stored
    from pygsampler.programs import GraphMatrix, Matrix, NodeList, Vector

__all__ = [
    "locality",
    "locality_importance",
    "locality_layers",
    "locality_saint",
    "locality_scores",
]

# Edges that are looked at together: their sorting takes some 100 bytes each.
_CHUNK = 1 << 22
_MOST_NEIGHBORS = (1 << 31) - 1


@program
def locality(
    A: GraphMatrix,
    seeds: NodeList,
    *,
    fanouts: Sequence[int],
    score: str = "locality",
    beta: float = 2.0,
    hard: bool = False,
) -> list[Matrix]:
    """GNNSampler (Liu et al., 2021, section 4.2): neighbors drawn by their locality.

    An edge from u is drawn by 1 + (beta - 1) L(u), L in [0, 1]: every edge keeps a chance.

    Parameters
    ----------
    fanouts : sequence of int
        Edges of each destination, outermost hop first.
    score : str
        The name of a node array [V] with L: ``locality_scores`` makes one.
    beta : float
        How much more often, at least 1; 1 is uniform.
    hard : bool
        By L itself, as published: an edge from a node of L = 0 is never drawn, unless all are 0,
        when draws are uniform.
    """
    bias = _biased(A, score, beta, hard)
    blocks: list[Any] = []
    for K in innermost_first(fanouts, "fanouts"):
        C = A[:, seeds]
        B = C.individual_sample(K, C.spread(bias, axis=1))
        blocks.insert(0, B)
        seeds = seeds | B.row()
    return blocks


@program
def locality_saint(
    A: GraphMatrix,
    seeds: NodeList,
    *,
    budget: int,
    score: str = "locality",
    beta: float = 2.0,
    hard: bool = False,
) -> Any:
    """GNNSampler's subgraphs (section 4.2): GraphSAINT's node sampler, by locality.

    A node v is drawn by 1 + (beta - 1) L(v): every node keeps a chance.

    Parameters
    ----------
    budget : int
        Draws with replacement. The seeds play no part.
    score, beta, hard
        As for ``locality``.

    Notes
    -----
    Values of edges and ``extra["node_norm"]`` are those of ``saint_node``, exact for these draws.
    """
    return sampled_subgraph(A, _biased(A, score, beta, hard), budget)


@program
def locality_layers(
    A: GraphMatrix,
    seeds: NodeList,
    *,
    nodes: Sequence[int],
    reuse: float = 0.5,
) -> list[Matrix]:
    """GNNSampler's layers (Liu et al., 2021, section 4.2): rows by degree, some of them twice.

    A hop draws ``nodes`` times with replacement among the rows of its destinations' edges, row u by
    the number of its neighbors. From the second hop on, a part of the rows that the hop before drew
    joins the candidates once more, so that each of these rows counts twice. Locality has no part.

    Parameters
    ----------
    nodes : sequence of int
        Draws of each hop, outermost first; -1 takes all rows, once.
    reuse : float
        The chance, from 0 to 1, of each row of the hop before to join. The paper says "partly".

    Notes
    -----
    The number of neighbors of u is its out-degree, which no candidate has 0 of, and which is the
    paper's number in a symmetric graph. A row that joins is a candidate already, by its edge to a
    destination of the hop before, which is one of this hop too. The weight of an edge is
    w count(u) / (K p(u)), p what u is drawn by, scaled to sum to 1 over the rows: unbiased for
    each choice of those that join. The paper names no weights.

    Raises
    ------
    TypeError, ValueError
        For ``reuse`` that is no number from 0 to 1, and for a count below -1.
    """
    if isinstance(reuse, bool) or not isinstance(reuse, (int, float)):
        raise TypeError(f"reuse: expected a number, got {describe(reuse)}")
    if not 0 <= reuse <= 1:
        raise ValueError(f"reuse: expected a number from 0 to 1, got {reuse}")
    degrees = A.count(axis=1)
    blocks: list[Any] = []
    upper: NodeList | None = None
    for K in innermost_first(nodes, "nodes"):
        C = normalized(A, seeds)
        candidates = C.row()
        p = degrees[candidates]
        if upper is not None and reuse:
            p = p * ((candidates.isin(upper) & (A.random()[candidates] < reuse)) + 1)
        B = sampled_rows(C, K, p)
        blocks.insert(0, B)
        upper = B.row()
        seeds = seeds | upper
    return blocks


@program
def locality_importance(
    A: GraphMatrix,
    seeds: NodeList,
    *,
    nodes: Sequence[int],
    score: str = "locality",
    beta: float = 2.0,
    hard: bool = False,
    by: str = "graph",
) -> list[Matrix]:
    """Layer-wise importance sampling by locality: FastGCN's rows, or LADIES', with a bias.

    A hop draws ``nodes`` times with replacement among the rows of its destinations' edges, row u by
    q(u) (1 + (beta - 1) L(u)): every row keeps a chance. It is an extension: the rule that the
    paper has for layers is ``locality_layers``.

    Parameters
    ----------
    nodes : sequence of int
        Draws of each hop, outermost first.
    score, beta, hard
        As for ``locality``; with ``beta=1`` the batches are ``fastgcn``'s, or those of ``ladies``.
    by : str
        ``"graph"``: q(u) is the sum of w**2 over all edges of u, as in ``fastgcn``. ``"hop"``: over
        those to the destinations, as in ``ladies``.

    Notes
    -----
    The weight of an edge is w count(u) / (K p(u)), p what u is drawn by, scaled to sum to 1 over
    the rows: unbiased, but for ``hard=True``, which never draws rows of L = 0.
    """
    if by not in ("graph", "hop"):
        raise ValueError(f"by: expected 'graph' or 'hop', got {by!r}")
    bias = _biased(A, score, beta, hard)
    q = squared_norms(A) if by == "graph" else None
    blocks: list[Any] = []
    for K in innermost_first(nodes, "nodes"):
        C = normalized(A, seeds)
        p = (C * C).sum(axis=1) if q is None else q[C.row()]
        B = sampled_rows(C, K, p * bias[C.row()])
        blocks.insert(0, B)
        seeds = seeds | B.row()
    return blocks


def _biased(A: GraphMatrix, score: str, beta: float, hard: bool) -> Vector:
    """Returns the bias that nodes are drawn by."""
    if isinstance(beta, bool) or not isinstance(beta, (int, float)):
        raise TypeError(f"beta: expected a number, got {describe(beta)}")
    if not 1 <= beta < inf:
        raise ValueError(f"beta: expected a number >= 1, got {beta}")
    marks = A.ndata[score]
    bias: Vector
    if boolean(hard, "hard"):
        # Without a marked node none would be drawn, so all get the same bias.
        bias = (marks.max() != 0).select(marks, 1)
    else:
        bias = marks * (beta - 1) + 1
    return bias


def locality_scores(
    graph: Stored,
    *,
    min_neighbors: int = 4,
    measure: str = "repaired",
    threshold: float | None = None,
    share: float | None = None,
    step: int = 1,
) -> npt.NDArray[np.float32]:
    """Returns how close the ids of each node's in-neighbors are to a run of consecutive ones.

    Parameters
    ----------
    graph : Graph
        On the CPU.
    min_neighbors : int
        Nodes with fewer distinct neighbors (or edges, of the published measure) have 0.
    measure : str
        ``"repaired"``: of the distinct neighbors in ascending order, with their mean taken away,
        and of the numbers 0, 1, 2, ... with theirs: sum(x g) / sum(x^2). It is 1 for a run, 1/c for
        a stride of c, and the same wherever the ids lie. ``"published"``: the paper's similarity
        (Algorithm 5, equation 5), sum(x g) / sum(x^2) of the ids x themselves and of good neighbors
        g around their mean, which depends on where the ids lie: for comparisons.
    threshold : float, optional
        Then scores are marks: 1 above it, else 0. The paper has 0.865 to 0.95 for its own measure.
    share : float, optional
        Likewise, by the score that this share of the nodes, the best ones, have at least.
    step : int
        Of ``"published"``: the distance, in ids, between the good neighbors that Algorithm 5
        generates, at least 1; the paper's code has 1. Node v with d neighbors has d of them, the
        first at avg(v) - (d // 2 - 1) step, as in the authors' code: the listing has d + 1 where d
        is even, which the dot product cannot take.

    Returns
    -------
    ndarray of float32, shape [V]
        For ``graph.with_data(node_data={"locality": ...})``.

    Raises
    ------
    TypeError, ValueError
        For arguments of a wrong type or value.

    Warns
    -----
    UserWarning
        Where no node is marked by ``threshold`` or ``share``: draws by marks are uniform then.
    """
    import numpy as np

    check_graph(graph)
    if measure not in ("repaired", "published"):
        raise ValueError(f"measure: expected 'repaired' or 'published', got {measure!r}")
    least = integer(min_neighbors, "min_neighbors", 2, _MOST_NEIGHBORS)
    apart = integer(step, "step", 1, _MOST_NEIGHBORS)
    if apart != 1 and measure == "repaired":
        raise ValueError(
            f"step: expected 1 with measure='repaired', got {step}; a step would multiply all of "
            "its scores alike: divide threshold by it, or use measure='published'"
        )
    if threshold is not None and share is not None:
        raise ValueError("threshold, share: expected one of them, got both")
    if share is not None and not 0 < share <= 1:
        raise ValueError(f"share: expected a number above 0 and at most 1, got {share}")
    if graph.device != "cpu":
        raise ValueError(f"graph: expected one on the CPU, got one on {describe(graph.device)}")
    indptr = np.asarray(graph.indptr.numpy(), np.int64)
    indices = graph.indices.numpy()
    of = _repaired if measure == "repaired" else partial(_published, step=apart)
    scores = np.zeros(graph.num_nodes)
    first = 0
    while first < len(indptr) - 1:
        last = int(np.searchsorted(indptr, indptr[first] + _CHUNK, "right")) - 1
        last = min(max(last, first + 1), len(indptr) - 1)
        part = indices[indptr[first] : indptr[last]].astype(np.int64)
        scores[first:last] = of(part, np.diff(indptr[first : last + 1]), least)
        first = last
    marks = scores
    if share is not None:
        # The smallest score of the best ones; no mark without a score.
        best = np.sort(scores)[len(scores) - max(int(share * len(scores)), 1)]
        marks = np.where(scores >= best, scores > 0, 0)
    elif threshold is not None:
        marks = np.where(scores > threshold, 1, 0)
    if len(marks) and marks is not scores and not marks.any():
        warnings.warn(
            "locality_scores: no node is marked, so draws by these marks are uniform",
            stacklevel=2,
        )
    return marks.astype(np.float32)


def _repaired(ids: Any, degrees: Any, least: int) -> Any:
    import numpy as np

    row = np.repeat(np.arange(len(degrees)), degrees)
    order = np.lexsort((ids, row))
    ids, row = ids[order], row[order]
    kept = np.ones(len(ids), bool)
    kept[1:] = (ids[1:] != ids[:-1]) | (row[1:] != row[:-1])
    ids, row = ids[kept], row[kept]
    count = np.bincount(row, minlength=len(degrees))
    first = np.cumsum(count) - count
    # Around the row's first id, so that large ids lose no bit.
    x = (ids - ids[first[row]]).astype(float)
    divided = np.maximum(count, 1)
    x -= (np.bincount(row, x, len(degrees)) / divided)[row]
    g = np.arange(len(ids)) - first[row] - (count[row] - 1) / 2
    return _ratio(np.bincount(row, x * g, len(degrees)), x * x, row, count, least)


def _published(ids: Any, degrees: Any, least: int, step: int) -> Any:
    import numpy as np

    row = np.repeat(np.arange(len(degrees)), degrees)
    order = np.lexsort((ids, row))
    ids = ids[order].astype(float)
    first = np.cumsum(degrees) - degrees
    mean = np.floor(np.bincount(row, ids, len(degrees)) / np.maximum(degrees, 1))
    ideal = (mean - (degrees // 2 - 1) * step)[row] + (np.arange(len(ids)) - first[row]) * step
    return _ratio(np.bincount(row, ids * ideal, len(degrees)), ids * ids, row, degrees, least)


def _ratio(above: Any, below: Any, owner: Any, count: Any, least: int) -> Any:
    import numpy as np

    total = np.bincount(owner, below, len(count))
    known = (count >= least) & (total > 0)
    return np.divide(above, total, out=np.zeros(len(count)), where=known)
