"""Subgraphs: nodes are drawn, and all edges among them are a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pygsampler._engine.checks import integer
from pygsampler.programs import program
from pygsampler.samplers.hop_order import innermost_first

if TYPE_CHECKING:
    from pygsampler.programs import GraphMatrix, NodeList

__all__ = ["cluster_gcn", "mvs", "shadow"]


@program
def shadow(
    A: GraphMatrix,
    seeds: NodeList,
    *,
    fanouts: Sequence[int],
    replace: bool = False,
    prob: str | None = None,
) -> Any:
    """ShaDow (Zeng et al., 2021): some hops around the seeds, and all edges among the nodes met.

    The seeds of a call share one subgraph, as in DGL's sampler; sample one seed per call for
    separate subgraphs.

    Parameters
    ----------
    fanouts : sequence of int
        Neighbors of each node met so far, innermost hop last, drawn without replacement; the paper
        has 2 hops of 10.
    replace : bool
        Draw with replacement, as the authors' code does.
    prob : str, optional
        The name of an edge array with weights to draw by.
    """
    V = seeds.unique()
    for K in innermost_first(fanouts, "fanouts", 0):
        C = A[:, V]
        p = None if prob is None else C.edata[prob]
        V = V | C.individual_sample(K, p, replace=replace).row()
    return A.induce(V)


@program
def induced(A: GraphMatrix, seeds: NodeList) -> Any:
    """All edges among the seeds, in the order of the seeds."""
    return A.induce(seeds.unique())


@program
def cluster_gcn(A: GraphMatrix, seeds: NodeList) -> Any:
    """Cluster-GCN (Chiang et al., 2019): the edges of ``A`` among ``seeds``, all nodes of clusters.

    The clusters are joined. The values are 1 / (d + 1), where d is the in-degree in the subgraph:
    the paper's (D + I)^-1 (A + I) but for the loops.
    """
    V = seeds.unique()
    G = A.induce(V)
    return V, G.spread(1 / (G.count(axis=0) + 1), axis=0)


@program
def mvs(
    A: GraphMatrix,
    seeds: NodeList,
    *,
    size: int,
    fanouts: Sequence[int] = (-1,),
    bound: str = "gradient_norm",
) -> Any:
    """MVS (Cong et al., 2020): seeds by the size of their gradients, with all of their neighbors.

    ``mvs_trained`` has a sampler that stores the bounds of gradients as its state.

    Parameters
    ----------
    size : int
        Seeds in the mean; the paper has 512. The seeds of a call are the candidates.
    fanouts : sequence of int
        Neighbors of each node, drawn uniformly without replacement, outermost hop first, a block
        each; -1 takes all. The paper takes all of one hop.
    bound : str
        The name of a node array [V] with bounds of the norms of gradients, all positive.

    Notes
    -----
    Node i is chosen with the chance p(i) = min(1, g(i) / tau), independently of the others, where
    tau is such that the chances sum to ``size``. ``extra["loss_weight"]`` is 1 / (N p(i)) for each
    chosen seed among the N distinct seeds, and 0 for the others, which have no edges: the weighted
    sum of losses is unbiased for the mean over all.
    """
    integer(size, "size", 1, 2**31 - 1)
    S = seeds.unique()
    p = A.ndata[bound][S].cap(size)
    stays = A.random()[S] < p
    V = S[stays]
    blocks: list[Any] = []
    for K in innermost_first(fanouts, "fanouts"):
        C = A[:, V]
        if K >= 0:
            C = C.individual_sample(K)
        blocks.insert(0, C)
        V = V | C.row()
    return blocks, {"loss_weight": stays.select(1 / (p * p.count()), 0)}
