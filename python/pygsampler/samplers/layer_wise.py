"""Layer-wise algorithms: the nodes of a hop are drawn for all of its destinations together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pygsampler._engine.checks import boolean, describe, integer
from pygsampler.programs import program
from pygsampler.samplers.hop_order import innermost_first

if TYPE_CHECKING:
    from pygsampler.programs import GraphMatrix, Matrix, NodeList, Vector

__all__ = ["asgcn", "fastgcn", "ladies"]

# Times any weight that is not 0 it is above 1, as far as doubles go.
_CERTAIN = 1e300


def normalized(A: Any, seeds: Any) -> Any:
    """The columns of the seeds: by the graph's weights, or of one over the degree each."""
    C = A[:, seeds]
    return C if A.weighted else C.div(C.count(axis=0), axis=0)


def squared_norms(A: Any) -> Any:
    """Returns the sum of w**2 over all edges of each node."""
    N = A if A.weighted else A.div(A.count(axis=0), axis=0)
    return (N * N).sum(axis=1)


def sampled_rows(C: Any, K: int, p: Any) -> Any:
    """The edges of K draws of rows by p, with unbiased weights; K = -1: of all rows, once."""
    B = C.collective_sample(K, p, replace=K >= 0)
    return unbiased(B, B, K, p)


def unbiased(values: Any, B: Any, K: int, p: Any) -> Any:
    """The values w of B, the rows of K draws by p, as w count / (K q), q of the sum 1."""
    return values if K < 0 else values.mul(B.times(), axis=1).div(p * K / p.sum(), axis=1)


@program
def ladies(
    A: GraphMatrix,
    seeds: NodeList,
    *,
    nodes: Sequence[int],
    method: str = "race",
    normalize: bool = True,
) -> list[Matrix]:
    """LADIES (Zou et al., 2019): rows by the squares of their weights to the destinations.

    A hop draws ``nodes`` of the rows of the destinations' edges, row u by p(u), the sum of w**2
    over its edges to them, and keeps all edges between them. The next hop's destinations are these
    rows and the destinations of this hop. w is the array ``weight=``, for instance D^-1 (A + I), or
    one over the destination's degree.

    Parameters
    ----------
    nodes : sequence of int
        Rows of each hop, outermost first, -1 for all; the paper has 512, its code 64.
    method : str
        ``"race"``: without replacement, edges weighted by w / p(u), as the authors' code has it.
        ``"iid"``: with replacement, by w count(u) / (K p(u)) for p that sums to 1, which is
        unbiased. ``"poisson"``: each row by itself, by the chance q(u) = min(1, c p(u)) for the c
        by which q sums to K, with w / q(u): unbiased too, of K rows in the mean. ``"conditioned"``:
        the rows of ``"race"``, by w over the chance of u conditioned on the times of the others,
        which is unbiased as well (Cohen and Kaplan, 2007).
    normalize : bool
        The weights of a destination's sampled edges are scaled to the sum of the weights of all its
        edges: less variance, and a bias.

    Notes
    -----
    ``block.edge_data["w"]`` has the weights to aggregate with. A destination has no edges if none
    of its rows was drawn; it is among its own sources only if the graph has a loop there and the
    loop was drawn.
    """
    if method not in ("race", "iid", "poisson", "conditioned"):
        raise ValueError(
            f"method: expected 'race', 'iid', 'poisson' or 'conditioned', got {method!r}"
        )
    boolean(normalize, "normalize")
    blocks: list[Any] = []
    for K in innermost_first(nodes, "nodes"):
        C = normalized(A, seeds)
        p = (C * C).sum(axis=1)
        if method == "iid" or (method == "poisson" and K < 0):
            B = sampled_rows(C, K, p)
        elif method == "poisson":
            q = p.cap(K)
            B = C.where(C.spread(A.random(), axis=1) <= C.spread(q, axis=1)).div(q, axis=1)
        else:
            B = C.collective_sample(K, p)
            B = B.div(p if method == "race" else _conditioned(C, B, p), axis=1)
        if normalize:
            # Edges of weight 0 may be all that a destination has: they keep it.
            sampled = B.sum(axis=0)
            B = B.mul(C.sum(axis=0) / (sampled + (sampled == 0)), axis=0)
        blocks.insert(0, B)
        seeds = seeds | B.row()
    return blocks


def _conditioned(C: Any, B: Any, p: Any) -> Any:
    """The chance that the rows of B were chosen of C's by p, conditioned on the others' arrivals.

    Row u arrives after a time with the rate p(u). A row is chosen if it arrives before tau, the
    time at which the first row that was not chosen arrives.
    """
    times = -B.race()[C.row()].log() / p
    last = B.spread(times, axis=1).max(axis=1).max()
    # If all rows were chosen, no time is later than the last one.
    tau = (times > last).select(times, 2.0**1023).min()
    return 1 - (-(p * tau)).exp()


@program
def fastgcn(A: GraphMatrix, seeds: NodeList, *, nodes: Sequence[int]) -> list[Matrix]:
    """FastGCN (Chen et al., 2018): rows by the squared norm of their edges in the whole graph.

    Parameters
    ----------
    nodes : sequence of int
        Draws of each hop, outermost first, with replacement among the rows of the destinations'
        edges, by q(u), the sum of w**2 over all edges of u; -1 takes all rows, once.

    Notes
    -----
    The weight of an edge is w count(u) / (K q(u)), q scaled to sum to 1 over the rows: unbiased. q
    depends on the graph alone, and is computed once.
    """
    q = squared_norms(A)
    blocks: list[Any] = []
    for K in innermost_first(nodes, "nodes"):
        C = normalized(A, seeds)
        B = sampled_rows(C, K, q[C.row()])
        blocks.insert(0, B)
        seeds = seeds | B.row()
    return blocks


@program
def asgcn(
    A: GraphMatrix,
    seeds: NodeList,
    *,
    nodes: Sequence[int],
    source: str = "h_source",
    target: str = "h_target",
) -> list[Matrix]:
    """AS-GCN (Huang et al., 2018): rows by their weights and by trained scores of nodes.

    Row u is drawn, with replacement, by the norm of its weights, times relu(h_u + sum of h_v) + 1,
    v the destinations, times relu(h_u) + 1; the weight of an edge is w (relu(h_u + h_v) + 1)
    count(u) / (K q(u)), q scaled to sum to 1.

    Parameters
    ----------
    nodes : sequence of int
        Draws of each hop, outermost first, -1 for all rows, once; the paper has 128 to 512.
    source, target : str
        Names of node arrays [V]: X w0 and X w1, of the features X and the trained w. A batch has
        what stands in them when it is sampled, so a loader that samples ahead has older ones.
    """
    blocks: list[Any] = []
    of, to = A.ndata[source], A.ndata[target]
    for K in innermost_first(nodes, "nodes"):
        C = normalized(A, seeds)
        h = of[C.row()]
        p = (C * C).sum(axis=1).sqrt()
        p = p * ((h + to[C.column()].sum()).relu() + 1) * (h.relu() + 1)
        B = C.collective_sample(K, p, replace=K >= 0)
        attention = B.spread(of, axis=1).add(to, axis=0).relu() + 1
        B = unbiased(B * attention, B, K, p)
        blocks.insert(0, B)
        seeds = seeds | B.row()
    return blocks


# The largest scale of LABOR's probabilities, so that its product with a weight is finite.
_LARGE = 2.0**1000


def _labor_chances(A: Any, C: Any, K: int, importance: int) -> Any:
    """The chance of each edge of C: min(1, c q), q the weights or what LABOR-i makes of them."""
    if K < 0:
        return C > 0
    a, real = C, None
    if A.weighted:
        # No scale of a column's weights changes a chance, and squares of these stay in range.
        largest = C.max(axis=0)
        a, real = C.div(largest + (largest == 0), axis=0), C > 0

    def first_row(x: Any) -> Any:
        return x if real is None else real.select(x, 0)

    q, c = a, a.labor(K).minimum(_LARGE)
    pi = first_row(a.mul(c, axis=0)).max(axis=1)
    for further in range(importance):
        if further:
            pi = pi * first_row(C.spread(c, axis=0)).max(axis=1)
        pi = pi.minimum(_LARGE)
        q = C.spread(pi, axis=1)
        c = a.labor(K, q).minimum(_LARGE)
    return first_row(q.mul(c, axis=0)).minimum(1)


def _nearest(A: GraphMatrix, C: Matrix, r: Vector, K: int, weights: bool | str) -> Matrix:
    """The K edges of each column with the least r / a; their values by the chance to be there."""
    if A.weighted:
        C = C.where(C > 0)
    if K < 0:
        return C > 0 if A.weighted and weights == "ht" else C
    # Parallel edges need numbers of their own: the bound of one could be another's.
    late: Any = C.independent(r)
    late = late / C if A.weighted else late
    B = C.top_k(K, -late)
    if not weights:
        return B
    last = C.top_k(K + 1, -late)
    t: Any = last.independent(r)
    t = (t / last if A.weighted else t).max(axis=0)
    t = t + (C.count(axis=0) <= K) * _CERTAIN
    if not A.weighted:
        return B.spread(1 / t.minimum(1), axis=0)
    made: Matrix = (1 if weights == "ht" else B) / B.mul(t, axis=0).minimum(1)
    return made


@program
def labor(
    A: GraphMatrix,
    seeds: NodeList,
    *,
    fanouts: Sequence[int],
    importance: int = 0,
    exact: bool = False,
    layer_dependency: bool = False,
    batch_dependency: int = 1,
    weights: bool | str = True,
    normalize: str | None = None,
) -> list[Matrix]:
    """LABOR on homogeneous graphs, which ``pygsampler.LaborSampler`` runs for these.

    An edge u to v stays where the number of u, one for all destinations, is at most its chance. For
    LABOR-0 without ``weight=`` that is fanout / d(v). With weights a(u, v) it is min(1, c(v) a), by
    the c(v) for which a weighted mean over v's edges has the variance of one over ``fanout`` of
    them drawn uniformly without replacement. So a destination has about ``fanout`` edges, and hops
    meet the same nodes.

    Parameters
    ----------
    fanouts : sequence of int
        The edges of a destination in the mean, outermost hop first; -1 takes all.
    importance : int
        i of LABOR-i: chances are min(1, c(v) pi(u)), where pi is computed in so many rounds to need
        fewer nodes at the same variances; more rounds need fewer nodes.
    exact : bool
        Each destination has ``fanout`` edges, or all where it has fewer: those with the least
        r(u) / a(u, v), r the numbers of the nodes, which is sequential Poisson sampling
        (Ohlsson, 1998; GraphBolt's ``sample_layer_neighbor``). Without ``importance``.
    layer_dependency : bool
        The numbers are the same in all hops.
    batch_dependency : int
        Numbers change gradually from a batch of an epoch to the next, as in DGL and GraphBolt, so
        that nodes of one batch are met again in the next. A period of so many batches leads from
        some numbers to independent numbers: batch j of a period has Phi(cos(a) Phi^-1(x) + sin(a)
        Phi^-1(y)) for a node, where a is j over the period of a right angle, x and y are its
        numbers where this period and the next begin, and Phi is the normal distribution (Balin,
        LaSalle and Catalyurek, 2023).
    weights : bool or str
        False: the values of the edges are the graph's. ``"ht"``: one over the chance of the edge
        alone, without its weight, as ``edge_weights="ht"`` of ``PGSampler`` has it. Without
        ``weight=`` True does the same.
    normalize : str, optional
        ``"sum"``: the weights of a destination's edges are scaled to the sum of the values of all
        its edges. ``"mean"``: scaled to the number of its edges, as in DGL, for models that take
        the mean. Less variance, and a bias. Not with ``"ht"``.

    Notes
    -----
    ``block.edge_data["w"]`` is one over the chance of the edge, times its weight where there is
    one: its sums are unbiased. With ``exact`` the chance is min(1, a t), where t is the least r / a
    of the destination's edges that were not sampled. An edge of weight 0 is never sampled. With
    ``exact`` the first of parallel edges has the number of its source, and each other has its own
    number: with one number for all, the edges that are left out would depend on the edges that are
    sampled.
    """
    if isinstance(importance, bool) or not isinstance(importance, int) or importance < 0:
        raise ValueError(f"importance: expected an integer >= 0, got {importance!r}")
    if normalize not in (None, "sum", "mean"):
        raise ValueError(f"normalize: expected 'sum', 'mean' or None, got {normalize!r}")
    if exact and importance:
        raise ValueError(f"importance: expected 0 with exact=True, got {importance}")
    integer(batch_dependency, "batch_dependency", 1, 2**31 - 1)
    boolean(exact, "exact")
    boolean(layer_dependency, "layer_dependency")
    if weights is not True and weights is not False and weights != "ht":
        raise TypeError(f"weights: expected True or False, or 'ht', got {describe(weights)}")
    if weights == "ht" and normalize:
        raise ValueError(f"normalize: expected None with weights='ht', got {normalize!r}")
    r = A.random(batches=batch_dependency)
    blocks: list[Any] = []
    for hop, K in enumerate(innermost_first(fanouts, "fanouts")):
        if hop and not layer_dependency:
            r = A.random(batches=batch_dependency)
        C = A[:, seeds]
        if exact:
            B = _nearest(A, C, r, K, weights)
        elif A.weighted or importance:
            chances = _labor_chances(A, C, K, importance)
            stays = C.spread(r, axis=1) <= chances
            values = (1 if weights == "ht" else C) / chances if weights else C
            B = values.where(stays)
        else:
            degree = C.count(axis=0)
            chance = (degree if K < 0 else K / degree).minimum(1)
            B = C.where(C.spread(r, axis=1) <= C.spread(chance, axis=0))
            B = B.spread(1 / chance, axis=0) if weights else B
        if weights and normalize:
            total = C.sum(axis=0) if normalize == "sum" else B.count(axis=0)
            B = B.mul(total / B.sum(axis=0), axis=0)
        blocks.insert(0, B)
        seeds = seeds | B.row()
    return blocks
