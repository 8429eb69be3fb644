"""SEAL: subgraphs around links, without the links, and labels of their nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pygsampler._arrays.array_input import to_numpy
from pygsampler._batch.subgraph import Subgraph
from pygsampler._engine.checks import describe, integer
from pygsampler.programs import program
from pygsampler.samplers.hop_order import innermost_first

if TYPE_CHECKING:
    import numpy as np

    from pygsampler.programs import GraphMatrix, NodeList

__all__ = ["drnl", "seal"]


@program
def seal(
    A: GraphMatrix,
    seeds: NodeList,
    *,
    fanouts: Sequence[int] = (-1,),
    max_nodes_per_hop: int | None = None,
    score: str | None = None,
) -> Any:
    """SEAL (Zhang and Chen, 2018): the subgraph around a link, without the link.

    The seeds of a call are the two ends of one link, x and y, which are the first nodes of the
    subgraph. It has the nodes of some hops of in-edges around both, and all edges among these nodes
    but the edges between x and y, in either direction and however many. ``sample_many`` takes many
    links. In a graph that is not symmetric the hops follow edges only against their direction.

    Parameters
    ----------
    fanouts : sequence of int
        Neighbors of each node met so far, drawn uniformly without replacement, innermost hop last;
        -1 takes all. The paper takes all of one or two hops.
    max_nodes_per_hop : int, optional
        At most so many nodes of each hop, drawn uniformly among those that no hop before has met;
        this bounds hubs too. The next hop starts from the drawn nodes, and nodes that were met and
        not drawn are left out, as in the authors' code.
    score : str, optional
        The name of a node array of finite numbers >= 0, such as PageRank: neighbors, and the nodes
        of a hop where these are capped, are drawn by it instead of uniformly, as in gSampler's SEAL
        (Gong et al., 2023, section 2). A node of score 0 is never drawn.
    """
    most = max_nodes_per_hop
    if most is not None:
        most = integer(most, "max_nodes_per_hop", 0, 2**31 - 1)
    V = met = new = seeds.unique()
    for K in innermost_first(fanouts, "fanouts", 0):
        C = A[:, V if most is None else new]
        by = None if score is None else C.spread(A.ndata[score], axis=1)
        reached = C.individual_sample(K, by).row()
        if most is None:
            V = V | reached
            continue
        fresh: Any = ~reached.isin(met)
        new = (fresh if score is None else fresh * A.ndata[score][reached]).draw(most)
        met, V = met | reached, V | new
    G = A.induce(V)
    ends = A.number()[seeds]
    u, v = G.spread(A.number()[G.row()], axis=1), G.spread(A.number()[G.column()], axis=0)
    target = (u.minimum(v) == ends.min()) & (u.maximum(v) == ends.max()) & (u != v)
    return V, G.where(~target)


def drnl(subgraph: Subgraph) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Double-radius node labels of SEAL's subgraph of a link (Zhang and Chen, 2018, section 3.1).

    With d_x and d_y the distances of a node from x without y, and from y without x, along edges
    of either direction, and d their sum, its label is
    1 + min(d_x, d_y) + (d // 2)(d // 2 + d % 2 - 1). It is 1 for x and y, and 0 for what cannot be
    reached from both.

    Parameters
    ----------
    subgraph : Subgraph
        Of ``seal``, for one link: two seeds, which are not the same node.

    Returns
    -------
    numpy.ndarray
        int64, shape [V], a label for each of ``subgraph.nodes``.

    Raises
    ------
    TypeError
        For another batch.
    ValueError
        Where the seeds are not two distinct nodes.
    """
    import numpy as np

    if not isinstance(subgraph, Subgraph):
        raise TypeError(f"subgraph: expected a Subgraph, got {describe(subgraph)}")
    given: Any = subgraph.cpu()
    src, dst, roots = (to_numpy(part).astype(np.int64) for part in (*given.coo(), given.root_index))
    if len(roots) != 2 or roots[0] == roots[1]:
        raise ValueError(
            f"subgraph: expected the two ends of a link as its seeds, got {len(roots)} seeds, at "
            f"{roots.tolist()}"
        )
    nodes = given.num_nodes
    x = _distances(nodes, src, dst, roots[0], roots[1])
    y = _distances(nodes, src, dst, roots[1], roots[0])
    d = x + y
    labels: np.ndarray[Any, np.dtype[np.int64]] = (
        1 + np.minimum(x, y) + (d // 2) * (d // 2 + d % 2 - 1)
    )
    labels[(x < 0) | (y < 0)] = 0
    labels[roots] = 1
    return labels


def _distances(nodes: int, src: Any, dst: Any, root: int, without: int) -> Any:
    """Returns the distances of all nodes from a root, along edges of either direction; -1: none."""
    import numpy as np

    distances = np.full(nodes, -1)
    distances[root] = 0
    there = np.zeros(nodes, dtype=bool)
    there[root] = True
    for step in range(1, nodes):
        met = np.zeros(nodes, dtype=bool)
        met[dst[there[src]]] = True
        met[src[there[dst]]] = True
        there = met & (distances < 0)
        there[without] = False
        if not there.any():
            break
        distances[there] = step
    return distances
