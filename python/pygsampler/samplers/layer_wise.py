"""Layer-wise algorithms: the vertices of a hop are drawn for all of its destinations together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pygsampler.programs import program

if TYPE_CHECKING:
    from pygsampler.programs import Graph, Matrix, Vertices

__all__ = ["asgcn", "fastgcn", "labor", "ladies"]


def _normalized(A: Any, seeds: Any) -> Any:
    """The columns of the seeds: by the graph's weights, or of one over the degree each."""
    C = A[:, seeds]
    return C if A.weighted else C.div(C.count(axis=0), axis=0)


@program
def ladies(
    A: Graph,
    seeds: Vertices,
    *,
    nodes: Sequence[int],
    method: str = "race",
    normalize: bool = True,
) -> list[Matrix]:
    """LADIES (Zou et al., 2019): rows by the squares of their weights to the destinations.

    A hop draws ``nodes`` of the rows of the destinations' edges, row u by p(u), the sum of w**2
    over its edges to them, and keeps all edges between them. The next hop's destinations are these
    and those of this one. w is the array ``weight=``, for instance D^-1 (A + I), or one over the
    destination's degree.

    Parameters
    ----------
    nodes : sequence of int
        Rows of each hop, outermost first; the paper has 512, its code 64.
    method : str
        ``"race"``: without replacement, edges weighted by w / p(u), as the authors' code has it.
        ``"iid"``: with replacement, by w count(u) / (K p(u)) for p that sums to 1, which is
        unbiased.
    normalize : bool
        The weights of a destination's edges are scaled so that they sum to what those of all its
        edges do: less variance, and a bias.

    Notes
    -----
    ``block.edge_data["w"]`` has the weights to aggregate with. A destination none of whose rows was
    drawn has no edges; it is one of its own sources only where the graph has a loop there that was.
    """
    if method not in ("race", "iid"):
        raise ValueError(f"method: expected 'race' or 'iid', got {method!r}")
    blocks: list[Any] = []
    for K in reversed(nodes):
        C = _normalized(A, seeds)
        p = (C * C).sum(axis=1)
        if method == "iid":
            B = C.collective_sample(K, p, replace=True)
            B = B.mul(B.times(), axis=1).div(p * K / p.sum(), axis=1)
        else:
            B = C.collective_sample(K, p).div(p, axis=1)
        if normalize:
            B = B.mul(C.sum(axis=0) / B.sum(axis=0), axis=0)
        blocks.insert(0, B)
        seeds = seeds | B.row()
    return blocks


@program
def fastgcn(A: Graph, seeds: Vertices, *, nodes: Sequence[int]) -> list[Matrix]:
    """FastGCN (Chen et al., 2018): rows by the squared norm of their edges in the whole graph.

    Parameters
    ----------
    nodes : sequence of int
        Draws of each hop, outermost first, with replacement among the rows of the destinations'
        edges, by q(u), the sum of w**2 over all edges of u.

    Notes
    -----
    The weight of an edge is w count(u) / (K q(u)), q scaled to sum to 1 over the rows: unbiased. q
    depends on the graph alone, and is computed once.
    """
    N = A if A.weighted else A.div(A.count(axis=0), axis=0)
    q = (N * N).sum(axis=1)
    blocks: list[Any] = []
    for K in reversed(nodes):
        C = _normalized(A, seeds)
        p = q[C.row()]
        B = C.collective_sample(K, p, replace=True)
        B = B.mul(B.times(), axis=1).div(p * K / p.sum(), axis=1)
        blocks.insert(0, B)
        seeds = seeds | B.row()
    return blocks


@program
def asgcn(
    A: Graph,
    seeds: Vertices,
    *,
    nodes: Sequence[int],
    source: str = "h_source",
    target: str = "h_target",
) -> list[Matrix]:
    """AS-GCN (Huang et al., 2018): rows by their weights and by trained scores of vertices.

    Row u is drawn, with replacement, by the norm of its weights, times relu(h_u + sum of h_v) + 1,
    v the destinations, times relu(h_u) + 1; the weight of an edge is w (relu(h_u + h_v) + 1)
    count(u) / (K q(u)), q scaled to sum to 1.

    Parameters
    ----------
    nodes : sequence of int
        Draws of each hop, outermost first; the paper has 128 to 512.
    source, target : str
        Names of vertex arrays [V]: X w0 and X w1, of the features X and the trained w. A batch has
        what stands in them when it is sampled, so a loader that samples ahead has older ones.
    """
    blocks: list[Any] = []
    of, to = A.ndata[source], A.ndata[target]
    for K in reversed(nodes):
        C = _normalized(A, seeds)
        h = of[C.row()]
        p = (C * C).sum(axis=1).sqrt()
        p = p * ((h + to[C.column()].sum()).relu() + 1) * (h.relu() + 1)
        B = C.collective_sample(K, p, replace=True)
        attention = B.spread(of, axis=1).add(to, axis=0).relu() + 1
        B = (B * attention).mul(B.times(), axis=1).div(p * K / p.sum(), axis=1)
        blocks.insert(0, B)
        seeds = seeds | B.row()
    return blocks


@program
def labor(
    A: Graph,
    seeds: Vertices,
    *,
    fanouts: Sequence[int],
    layer_dependency: bool = False,
    weights: bool = True,
) -> list[Matrix]:
    """LABOR-0 (Balin and Catalyurek, 2023): as many vertices less as uniform numbers are shared.

    An edge u to v stays where the number of u, one for all destinations, is at most fanout / d(v).
    So a destination has about ``fanout`` edges, and hops meet the same vertices.

    Parameters
    ----------
    fanouts : sequence of int
        The edges of a destination in the mean, outermost hop first; -1 takes all.
    layer_dependency : bool
        The numbers are the same in all hops.
    weights : bool
        False: the values of the edges are the graph's.

    Notes
    -----
    ``block.edge_data["w"]`` is one over the chance of the edge, max(d / fanout, 1), whose sums are
    unbiased.
    """
    r = A.random()
    blocks: list[Any] = []
    for hop, K in enumerate(reversed(fanouts)):
        if hop and not layer_dependency:
            r = A.random()
        C = A[:, seeds]
        degree = C.count(axis=0)
        chance = (degree if K < 0 else K / degree).minimum(1)
        B = C.where(C.spread(r, axis=1) <= C.spread(chance, axis=0))
        blocks.insert(0, B.spread(1 / chance, axis=0) if weights else B)
        seeds = seeds | B.row()
    return blocks
