"""A sampled neighborhood, laid out in rings: the seed, hop 1, hop 2."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pygsampler.samplers.neighbor import PGSampler

if TYPE_CHECKING:
    from pygsampler._graph.graph import Graph
    from pygsampler.datasets import Debian

# Outermost hop first; few enough that every name can be read.
FANOUTS = (4, 7)


@dataclass(frozen=True)
class Edge:
    """A sampled edge between two rows of ``Neighbourhood.nodes``; a message goes src -> dst."""

    src: int
    dst: int
    kind: str
    hop: int


@dataclass(frozen=True)
class Neighbourhood:
    """A batch of one seed as a drawing needs it.

    Attributes
    ----------
    nodes : list of int
        Ids of the packages, the seed first, in the order in which they were reached.
    rings : list of int
        The hop at which each was reached, 0 for the seed.
    angles : list of float
        The direction from the centre in which each is drawn, in radians.
    edges : list of Edge
        All that were sampled, those next to the seed first.
    """

    nodes: list[int]
    rings: list[int]
    angles: list[float]
    edges: list[Edge]


def sample_neighbourhood(
    dataset: Debian, graph: Graph, package: str, *, seed: int = 0
) -> Neighbourhood:
    """Samples two hops around ``package``. ValueError where there is no package of that name."""
    if package not in dataset.names:
        raise ValueError(f"package: expected the name of a package, got {package!r}")
    batch = PGSampler(FANOUTS, seed=seed).sample(graph, [dataset.names.index(package)], batch=0)
    edges = []
    rings = [0]
    for hop, block in enumerate(reversed(batch.numpy().blocks), start=1):
        rings += [hop] * (block.num_src_nodes - len(rings))
        sources, targets = block.coo()
        for src, dst, edge_id in zip(sources, targets, block.edge_ids, strict=True):
            # Edges past the relations are the same relations backwards.
            kind = dataset.kinds[dataset.kind[edge_id % dataset.num_edges]]
            edges.append(Edge(int(src), int(dst), kind, hop))
    nodes = [int(node) for node in batch.input_nodes]
    return Neighbourhood(nodes, rings, spread(rings, edges), edges)


def spread(rings: list[int], edges: list[Edge]) -> list[float]:
    """Returns angles that place packages of hop 2 next to the package of hop 1 that reached them.

    Each package of hop 1 has a sector of the same width, clockwise. Packages that the seed reached
    only in its second draw share one more sector, at the top, where no package of hop 1 is in the
    way.
    """
    parents: dict[int, int] = {}
    for edge in edges:
        if rings[edge.src] == edge.hop:
            parents.setdefault(edge.src, edge.dst)
    behind: dict[int, list[int]] = {}
    for node, ring in enumerate(rings):
        if ring == 2:
            behind.setdefault(parents[node], []).append(node)
    inner = [node for node, ring in enumerate(rings) if ring == 1]
    owners = [0, *inner] if 0 in behind else inner
    width = math.tau / max(len(owners), 1)
    angles = [0.0] * len(rings)
    for sector, owner in enumerate(owners):
        middle = math.tau / 4 - sector * width
        if owner:
            angles[owner] = middle
        children = behind.get(owner, [])
        for i, node in enumerate(children):
            angles[node] = middle + width * (0.5 - (i + 0.5) / len(children))
    return angles
