"""Subgraphs: vertices are drawn, and all edges among them are a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pygsampler.programs import program

if TYPE_CHECKING:
    from pygsampler.programs import Graph, Vertices

__all__ = ["cluster_gcn", "mvs", "saint_node", "shadow"]


@program
def saint_node(A: Graph, seeds: Vertices, *, budget: int) -> Any:
    """GraphSAINT's node sampler (Zeng et al., 2020): vertices by degree, and the edges among them.

    Parameters
    ----------
    budget : int
        Draws with replacement, by in-degree; the paper has 4500 to 8000. The seeds play no part.

    Notes
    -----
    The edge u to v has the value p(u, v) / p(v), by which its coefficient is to be divided, and
    ``extra["node_norm"]`` is p(v), the chance of vertex v to be in a subgraph: the loss of v is to
    be divided by p(v) and the number of vertices. Both are exact: with q(v) = d(v) / sum d, they
    are p(v) = 1 - (1 - q(v))^n, and 1 - (1 - q(u))^n - (1 - q(v))^n + (1 - q(u) - q(v))^n.
    A loop is there with p(v), and its coefficient is to be left as it is: its value here is not 1.
    """
    d = A.degree()
    q = d / d.sum()
    V = d.draw(budget, replace=True).unique()
    G = A.induce(V)
    missed = (1 - q) ** budget
    both = G.spread(q, axis=1).add(q, axis=0)
    joint = (1 - both) ** budget
    joint = (joint.sub(missed, axis=1).sub(missed, axis=0)) + 1
    return V, G.spread(1 / (1 - missed), axis=0) * joint, {"node_norm": (1 - missed)[V]}


@program
def shadow(
    A: Graph,
    seeds: Vertices,
    *,
    fanouts: Sequence[int],
    replace: bool = False,
    prob: str | None = None,
) -> Any:
    """ShaDow (Zeng et al., 2021): some hops around the seeds, and all edges among what was met.

    The seeds of a call share one subgraph, as in DGL's sampler; give it one seed for a subgraph of
    its own.

    Parameters
    ----------
    fanouts : sequence of int
        Neighbours of each vertex met so far, innermost hop last, drawn without replacement; the
        paper has 2 hops of 10.
    replace : bool
        Draw with replacement, as the authors' code does.
    prob : str, optional
        The name of an edge array with weights to draw by.
    """
    V = seeds.unique()
    for K in reversed(fanouts):
        C = A[:, V]
        p = None if prob is None else C.edata[prob]
        V = V | C.individual_sample(K, p, replace=replace).row()
    return A.induce(V)


@program
def cluster_gcn(A: Graph, seeds: Vertices) -> Any:
    """Cluster-GCN (Chiang et al., 2019): the edges among the vertices of some clusters.

    The seeds are the vertices of the clusters that are joined. The values are 1 / (d + 1), d the
    in-degree in the subgraph, the paper's (D + I)^-1 (A + I) but for the loops.
    """
    G = A.induce(seeds.unique())
    return G.spread(1 / (G.count(axis=0) + 1), axis=0)


@program
def mvs(A: Graph, seeds: Vertices, *, size: int, bound: str = "gradient_norm") -> Any:
    """MVS (Cong et al., 2020): seeds by the size of their gradients, with all of their neighbours.

    Parameters
    ----------
    size : int
        Seeds in the mean; the paper has 512. The seeds of a call are the candidates.
    bound : str
        The name of a vertex array [V] with bounds of the norms of gradients, all positive.

    Notes
    -----
    Vertex i stays with the chance p(i) = min(1, g(i) / tau), each by itself, tau such that their
    sum is ``size``. ``extra["loss_weight"]`` is 1 / (N p(i)) for each of the distinct seeds that
    stays, N their number, and 0 for the others, which have no edges: its weighted sum is unbiased
    for the mean over all.
    """
    S = seeds.unique()
    p = A.ndata[bound][S].cap(size)
    stays = A.random()[S] < p
    return A[:, S[stays]], {"loss_weight": stays / (p * p.count())}
