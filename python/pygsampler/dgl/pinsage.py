"""``RandomWalkNeighborSampler`` and ``PinSAGESampler``, as ``dgl.sampling`` has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dgl
import torch

from pygsampler.dgl.graph import check_graph, graph_of, joint_of
from pygsampler.dgl.homogeneous import TYPES
from pygsampler.dgl.walk_arguments import (
    DGLValueError,
    as_dgl_errors,
    is_hetero,
    nodes_of,
    starts_of,
    steps_of,
    walk_seed,
    walks_of,
)
from pygsampler.walks.pinsage import PinSAGE

__all__ = ["PinSAGESampler", "RandomWalkNeighborSampler"]


class RandomWalkNeighborSampler:
    """Neighbors by visits of walks, like ``dgl.sampling.RandomWalkNeighborSampler``.

        sampler = RandomWalkNeighborSampler(g, 2, 0.5, 10, 3, ["bought-by", "bought"])
        neighbors = sampler(torch.arange(1000))
        neighbors.edata["weights"]

    Parameters
    ----------
    G : dgl.DGLGraph
    num_traversals : int
        Traversals of the metapath in a walk, at most.
    termination_prob : float
        In [0, 1]: the chance that a walk ends before a traversal, the first excepted.
    num_random_walks : int
        Walks from each node. The visits of a node, ``num_random_walks * num_traversals``, are at
        most 2048.
    num_neighbors : int
        The number of most visited nodes that are taken.
    metapath : list of edge types, optional
        Up to 64, from a node type back to itself. Without it ``G`` has one edge type.
    weight_column : str
        The name of the edge array with the numbers of visits.
    seed : int, optional
        As for ``random_walk``.

    Raises
    ------
    ValueError
        For a metapath that does not come back or does not fit together, and for numbers that can't
        be.
    TypeError
        For an argument of another type.

    Notes
    -----
    A walk visits the ends of its traversals, also the node itself if it comes back. Among nodes
    with as many visits the first in the order of walks are taken; DGL takes the larger ids.
    Attributes may be assigned after construction, as in DGL. Random numbers, graphs and devices are
    as for ``random_walk``: the same neighbors on CPU and GPU.
    """

    def __init__(
        self,
        G: Any,
        num_traversals: int,
        termination_prob: float,
        num_random_walks: int,
        num_neighbors: int,
        metapath: Sequence[Any] | None = None,
        weight_column: str = "weights",
        *,
        seed: int | None = None,
    ) -> None:
        check_graph(G, "G")
        if metapath is None:
            if is_hetero(G):
                raise ValueError(
                    f"metapath: expected one for a graph of {len(G.ntypes)} node types and "
                    f"{len(G.canonical_etypes)} edge types, got None"
                )
            metapath = [G.canonical_etypes[0]]
        path, types = steps_of(G, metapath, None)
        if types[0] != types[-1]:
            raise DGLValueError(
                f"metapath: expected one from {G.ntypes[types[0]]!r} back to it, got one to "
                f"{G.ntypes[types[-1]]!r}"
            )
        self.G = G
        self.num_traversals, self.termination_prob = num_traversals, termination_prob
        self.num_random_walks, self.num_neighbors = num_random_walks, num_neighbors
        self.metapath, self.metapath_hops = metapath, len(path)
        self.weight_column, self.seed = weight_column, seed
        self.ntype = G.ntypes[types[0]]
        self._start = types[0]
        self._types = tuple(sorted(set(path)))
        kind = {etype: i for i, etype in enumerate(self._types)}
        self._kinds = [kind[etype] for etype in path]
        # Wrong numbers are said where they were given.
        with as_dgl_errors():
            PinSAGE(**self._options(), seed=0)

    @property
    def full_metapath(self) -> list[Any]:
        """The edge types of all steps of a walk."""
        return list(self.metapath) * self.num_traversals

    @property
    def restart_prob(self) -> torch.Tensor:
        """The chance that a walk ends before each of its steps, float32, where ``G`` is."""
        chances = torch.zeros(self.metapath_hops * self.num_traversals)
        chances[self.metapath_hops :: self.metapath_hops] = self.termination_prob
        return chances.to(self.G.device)

    def _options(self) -> dict[str, Any]:
        options: dict[str, Any] = {
            "num_traversals": self.num_traversals,
            "termination_prob": self.termination_prob,
            "num_random_walks": self.num_random_walks,
            "num_neighbors": self.num_neighbors,
        }
        # One step along the only edge type there is needs no types.
        if not self._is_plain():
            options |= {"metapath": self._kinds, "edge_types": TYPES}
        return options

    def _is_plain(self) -> bool:
        return len(self._kinds) == 1 and not is_hetero(self.G)

    def __call__(self, seed_nodes: Any) -> Any:
        """Returns the neighbors of ``seed_nodes`` as a graph.

        Parameters
        ----------
        seed_nodes : int32 or int64, shape [N], or a sequence of int
            Nodes of the type that the metapath begins with, on the device of ``G``, or on any GPU
            for a graph in page-locked host memory.

        Returns
        -------
        dgl.DGLGraph
            On the device of the nodes, with all nodes of that type, and an edge to each of
            ``seed_nodes`` from each of its neighbors: the most visited first, nodes in their order.
            ``edata[weight_column]`` has the numbers of visits, dtype ``G.idtype``.

        Raises
        ------
        IndexError
            For an id that is no node.
        TypeError, ValueError, CudaError
            For the reasons of ``random_walk``.
        """
        g = self.G
        ids = nodes_of(g, seed_nodes, "seed_nodes")
        numbers = walk_seed(ids, self.seed)
        types = () if self._is_plain() else self._types
        joint = joint_of(g, types) if types else None
        starts = ids if joint is None else starts_of(g, joint, ids, self._start, "seed_nodes")
        with as_dgl_errors("seed_nodes"):
            graph = graph_of(g, ids.device, types)
            visits = walks_of(PinSAGE, graph, starts, numbers, **self._options())
        neighbours, place, counts = visits.coo()
        src = neighbours - joint.first_node[self._start] if joint is not None else neighbours
        made = dgl.heterograph(
            {(self.ntype, "_E", self.ntype): (src.to(g.idtype), ids.to(g.idtype)[place])},
            {self.ntype: g.num_nodes(self.ntype)},
        )
        made.edata[self.weight_column] = counts.to(g.idtype)
        return made


class PinSAGESampler(RandomWalkNeighborSampler):
    """``RandomWalkNeighborSampler`` on a bipartite graph: as ``dgl.sampling.PinSAGESampler``.

        sampler = PinSAGESampler(g, "item", "user", 2, 0.5, 10, 3)

    Parameters
    ----------
    G : dgl.DGLGraph
        With an edge type from ``ntype`` to ``other_type`` and one back: the first of several.
    ntype, other_type : str
        A traversal goes from ``ntype`` to ``other_type`` and back.
    num_traversals, termination_prob, num_random_walks, num_neighbors, weight_column, seed
        As for ``RandomWalkNeighborSampler``.

    Raises
    ------
    TypeError, ValueError
        As ``RandomWalkNeighborSampler``, and for types without edges between them.
    """

    def __init__(
        self,
        G: Any,
        ntype: str,
        other_type: str,
        num_traversals: int,
        termination_prob: float,
        num_random_walks: int,
        num_neighbors: int,
        weight_column: str = "weights",
        *,
        seed: int | None = None,
    ) -> None:
        check_graph(G, "G")
        super().__init__(
            G,
            num_traversals,
            termination_prob,
            num_random_walks,
            num_neighbors,
            metapath=[_between(G, ntype, other_type), _between(G, other_type, ntype)],
            weight_column=weight_column,
            seed=seed,
        )


def _between(g: Any, before: str, after: str) -> Any:
    """The first edge type from one node type to another: its relation, where no other has it."""
    for triple in g.canonical_etypes:
        if (triple[0], triple[2]) == (before, after):
            return triple[1] if g.etypes.count(triple[1]) == 1 else triple
    have = ", ".join(map(str, g.canonical_etypes))
    raise DGLValueError(
        f"ntype, other_type: expected node types with edges from {before!r} to {after!r}, "
        f"got a graph of {have}"
    )
