"""The picture of docs/algorithms/samplers.md: what each algorithm samples around the same seeds.

    python tools/gallery.py            # writes docs/assets/samplers.png
    python tools/gallery.py FILE

The graph is points in the unit square with edges between near ones, so that a sample can be seen to
be near or wide. It and all seeds of random numbers are fixed: the picture is always the same.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import pygsampler as pgs
from pygsampler import research, samplers
from pygsampler.samplers import layer_wise

POINTS, RADIUS, SEEDS = 150, 0.14, 4
COLUMNS = 5
_OTHER, _EDGE, _SAMPLED, _SEED = "#d5d5d5", "#ececec", "#2f6fae", "#d0432e"


class Sample(NamedTuple):
    """Vertices, and edges as (from, to)."""

    nodes: Sequence[int]
    edges: Sequence[tuple[int, int]]


def plane() -> tuple[np.ndarray[Any, Any], pgs.Graph]:
    """The points' coordinates, and the graph, with what some of the algorithms want to know."""
    random = np.random.default_rng(12)
    points = random.random((POINTS, 2))
    near = np.linalg.norm(points[:, None] - points[None], axis=2) < RADIUS
    np.fill_diagonal(near, False)
    ends = np.nonzero(near)
    src, dst = map(np.ascontiguousarray, ends)
    graph = pgs.Graph.from_coo(src, dst, num_nodes=POINTS)
    middle = np.linalg.norm(points - 0.5, axis=1)
    data = {
        "x": (points - 0.5).astype(np.float32),
        "h_source": 1 - middle,
        "h_target": middle,
        "gradient_norm": 1 / (0.05 + middle),
        "locality": research.locality_scores(graph),
    }
    return points, graph.with_data(node_data=data)


def of_blocks(batch: Any) -> Sample:
    nodes = batch.input_nodes.numpy()
    edges = []
    for block in batch.blocks:
        src, dst = (ids.numpy() for ids in block.coo())
        edges += list(zip(nodes[src].tolist(), nodes[dst].tolist(), strict=True))
    return Sample(nodes.tolist(), edges)


def of_subgraph(batch: Any) -> Sample:
    nodes = batch.nodes.numpy()
    src, dst = (ids.numpy() for ids in batch.coo())
    return Sample(nodes.tolist(), list(zip(nodes[src].tolist(), nodes[dst].tolist(), strict=True)))


def of_walks(walks: Any) -> Sample:
    nodes = walks.nodes.numpy()
    edges = [(int(a), int(b)) for row in nodes for a, b in itertools.pairwise(row) if b >= 0]
    return Sample(np.unique(nodes[nodes >= 0]).tolist(), edges)


def of_visits(visits: Any, seeds: Sequence[int]) -> Sample:
    found = visits.nodes.numpy()
    pairs = [(int(u), int(v)) for row, v in zip(found, seeds, strict=True) for u in row if u >= 0]
    return Sample(np.unique([*seeds, *(u for u, _ in pairs)]).tolist(), pairs)


def gallery(points: np.ndarray[Any, Any], graph: pgs.Graph) -> dict[str, Callable[[Any], Sample]]:
    """Returns the functions that sample around the seeds, by title."""

    def blocks(sampler: Any) -> Callable[[Any], Sample]:
        return lambda seeds: of_blocks(sampler.sample(graph, seeds, epoch=0, batch=0))

    def subgraph(sampler: Any) -> Callable[[Any], Sample]:
        return lambda seeds: of_subgraph(sampler.sample(graph, seeds, epoch=0, batch=0))

    def walks(sampler: Any) -> Callable[[Any], Sample]:
        return lambda seeds: of_walks(sampler.sample(graph, seeds, epoch=0, batch=0))

    def link(v: int) -> Sequence[int]:
        return [v, graph.indices.tolist()[graph.indptr.tolist()[v]]]

    hops: dict[str, Any] = {"fanouts": [3, 3], "seed": 1}
    # Neighbors in the direction from the middle to the seed.
    attention: dict[str, Any] = {
        "W1": np.eye(2, dtype=np.float32),
        "W2": np.eye(2, dtype=np.float32),
        "W3": np.array([4.0, 0, 0], np.float32),
    }
    pinsage = pgs.walks.PinSAGE(3, num_neighbors=4, seed=1)
    quarter = np.flatnonzero((points > 0.5).all(axis=1))
    return {
        "graphsage(fanouts=[3, 3])": blocks(samplers.graphsage(**hops)),
        "labor(fanouts=[3, 3])": blocks(layer_wise.labor(**hops)),
        "kgcn(fanouts=[3, 3])": blocks(samplers.kgcn(**hops)),
        "locality(fanouts=[3, 3])": blocks(research.locality(**hops)),
        "ladies(nodes=[8, 8])": blocks(samplers.ladies(nodes=[8, 8], seed=1)),
        "fastgcn(nodes=[8, 8])": blocks(samplers.fastgcn(nodes=[8, 8], seed=1)),
        "asgcn(nodes=[8, 8])": blocks(samplers.asgcn(nodes=[8, 8], seed=1)),
        "gcn_bs(graph, fanouts=[3, 3])": blocks(samplers.learned.gcn_bs(graph, **hops)),
        "pass_sampler(fanouts=[3, 3])": blocks(samplers.learned.pass_sampler(**attention, **hops)),
        "mvs(size=2)": blocks(samplers.mvs(size=2, seed=1)),
        "shadow(fanouts=[3, 3])": subgraph(samplers.shadow(**hops)),
        "ppr_shadow(k=8)": subgraph(samplers.ppr_shadow(k=8)),
        "seal(fanouts=[-1])": lambda seeds: subgraph(samplers.seal(seed=1))(link(seeds[0])),
        "saint_node(budget=25)": subgraph(samplers.saint_node(budget=25, seed=1)),
        "saint_edge(budget=15)": subgraph(samplers.saint_edge(budget=15, seed=1)),
        "saint_walk(roots=4, length=5)": subgraph(samplers.saint_walk(roots=4, length=5, seed=1)),
        "locality_saint(budget=25)": subgraph(research.locality_saint(budget=25, seed=1)),
        "cluster_gcn()": lambda _: subgraph(samplers.cluster_gcn(seed=1))(quarter),
        "PinSAGE(3, num_neighbors=4)": lambda seeds: of_visits(pinsage.sample(graph, seeds), seeds),
        "RandomWalk(12, p=1, q=4)": walks(pgs.RandomWalk(12, p=1.0, q=4.0, seed=1)),
    }


def main(arguments: Sequence[str]) -> int:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.collections import LineCollection

    points, graph = plane()
    seeds = np.array([10, 40, 77, 120][:SEEDS])
    panels = gallery(points, graph)
    rows = -(-len(panels) // COLUMNS)
    figure, axes = plt.subplots(rows, COLUMNS, figsize=(11, 2.35 * rows), layout="constrained")
    src, dst = (
        np.array(graph.indices),
        np.repeat(np.arange(POINTS), np.diff(np.array(graph.indptr))),
    )
    everywhere = np.stack([points[src], points[dst]], axis=1)
    for axis, (title, sample) in zip(axes.flat, panels.items(), strict=False):
        found = sample(seeds)
        axis.add_collection(LineCollection(everywhere, colors=_EDGE, linewidths=0.4, zorder=0))
        axis.scatter(*points.T, s=4, color=_OTHER, zorder=1, linewidths=0)
        lines = [(points[u], points[v]) for u, v in found.edges]
        axis.add_collection(LineCollection(lines, colors=_SAMPLED, linewidths=0.9, zorder=2))
        axis.scatter(*points[list(found.nodes)].T, s=13, color=_SAMPLED, zorder=3, linewidths=0)
        own = [v for v in seeds if v in set(found.nodes)]
        axis.scatter(*points[own].T, s=26, color=_SEED, zorder=4, linewidths=0)
        axis.set_title(title, fontsize=8, family="monospace")
    for axis in axes.flat:
        axis.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xticks=[], yticks=[], aspect="equal")
        axis.set_frame_on(False)
    folder = Path(__file__).resolve().parent.parent
    path = Path(arguments[0]) if arguments else folder / "docs" / "assets" / "samplers.png"
    figure.savefig(path, dpi=110)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
