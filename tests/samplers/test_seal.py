"""SEAL's subgraphs and labels: worked examples, and a slow search."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from sampler_laws import BOTH, batches, edges_of, of, plausible

import pygsampler as pgs
from pygsampler import samplers

pytestmark = pytest.mark.once


def labelled(graph: pgs.Graph, link: tuple[int, int], hops: int) -> dict[int, int]:
    made = samplers.seal(fanouts=[-1] * hops, seed=1).sample(graph, np.array(link), batch=0)
    nodes = np.from_dlpack(made.nodes).tolist()
    assert tuple(nodes[:2]) == link
    return dict(zip(nodes, samplers.drnl(made).tolist(), strict=True))


@pytest.mark.parametrize(
    ("link", "labels"),
    [((0, 3), [1, 3, 2, 1, 0]), ((0, 4), [1, 4, 3, 3, 1]), ((1, 2), [2, 1, 1, 0, 0])],
)
def test_worked_examples(link: tuple[int, int], labels: list[int]) -> None:
    assert labelled(of(BOTH), link, 3) == dict(enumerate(labels))


def test_hops_bound_the_subgraph() -> None:
    assert set(labelled(of(BOTH), (3, 4), 1)) == {2, 3, 4}
    assert set(labelled(of(BOTH), (4, 3), 2)) == {0, 1, 2, 3, 4}


def test_the_link_is_not_there() -> None:
    """Neither direction, nor a parallel edge; loops of its ends are."""
    graph = of([*BOTH, (1, 2), (1, 2), (2, 1), (1, 1)])
    made = batches(samplers.seal(fanouts=[-1, -1], seed=1), graph, [2, 1], 1)[0]
    met = {(u, v) for u, v, _ in edges_of(made)}
    assert met == {*BOTH, (1, 1)} - {(1, 2), (2, 1)}


def test_neighbours_are_drawn_uniformly() -> None:
    """One neighbour of each end of 2-4: 3 is met by 4; 2 draws 0, 1 or 3."""
    sampler = samplers.seal(fanouts=[1], seed=5)
    counts = Counter(tuple(sorted(b.nodes.tolist())) for b in batches(sampler, of(BOTH), [2, 4]))
    plausible(counts, {(0, 2, 3, 4): 1 / 3, (1, 2, 3, 4): 1 / 3, (2, 3, 4): 1 / 3})


def test_a_cap_of_the_vertices_of_a_hop() -> None:
    """Of 0, 1 and 3 around 2-4; those that are not drawn are met, and in no later hop."""
    for hops in (1, 3):
        sampler = samplers.seal(fanouts=[-1] * hops, max_nodes_per_hop=1, seed=5)
        counts = Counter(
            tuple(sorted(b.nodes.tolist())) for b in batches(sampler, of(BOTH), [2, 4])
        )
        plausible(counts, {(0, 2, 4): 1 / 3, (1, 2, 4): 1 / 3, (2, 3, 4): 1 / 3})
    for b in batches(samplers.seal(max_nodes_per_hop=0, seed=5), of(BOTH), [2, 4], 3):
        assert b.nodes.tolist() == [2, 4]
    with pytest.raises(ValueError, match=r"max_nodes_per_hop: expected an integer .*, got -1"):
        samplers.seal(max_nodes_per_hop=-1)


SCORES = np.array([1.0, 2.0, 7.0, 3.0, 0.0])


def test_neighbors_are_drawn_by_a_score() -> None:
    """Of 2 in 2-4, by 1, 2 and 3; what 4 meets is 3 alone."""
    graph = of(BOTH).with_data(node_data={"ppr": SCORES})
    sampler = samplers.seal(fanouts=[1], score="ppr", seed=5)
    counts = Counter(tuple(sorted(b.nodes.tolist())) for b in batches(sampler, graph, [2, 4]))
    plausible(counts, {(0, 2, 3, 4): 1 / 6, (1, 2, 3, 4): 2 / 6, (2, 3, 4): 3 / 6})
    # 4 is never met from 3, and from the ends of 0-3 neither.
    for b in batches(samplers.seal(fanouts=[-1, -1, -1], score="ppr", seed=5), graph, [0, 3], 3):
        assert sorted(b.nodes.tolist()) == [0, 1, 2, 3]


def test_the_nodes_of_a_capped_hop_are_drawn_by_a_score() -> None:
    graph = of(BOTH).with_data(node_data={"ppr": SCORES})
    sampler = samplers.seal(fanouts=[-1], max_nodes_per_hop=1, score="ppr", seed=5)
    counts = Counter(tuple(sorted(b.nodes.tolist())) for b in batches(sampler, graph, [2, 4]))
    plausible(counts, {(0, 2, 4): 1 / 6, (1, 2, 4): 2 / 6, (2, 3, 4): 3 / 6})
    with pytest.raises(ValueError, match="'rank'"):
        samplers.seal(score="rank").sample(graph, [2, 4])


@pytest.mark.parametrize("seed", range(4))
def test_a_cap_of_hops(seed: int) -> None:
    """A hop is what those of the one before meet anew, up to the cap; with room for all, all."""
    rng = np.random.default_rng(seed)
    src, dst = rng.integers(0, 60, (2, 150))
    graph = pgs.Graph.from_coo(src, dst, num_nodes=60)
    link = rng.choice(60, 2, replace=False)

    def made(hops: int, cap: int | None) -> Any:
        sampler = samplers.seal(fanouts=[-1] * hops, max_nodes_per_hop=cap, seed=seed)
        return sampler.sample(graph, link, batch=1).numpy()

    free, wide = made(3, None), made(3, 60)
    assert np.array_equal(free.nodes, wide.nodes)
    assert np.array_equal(free.edge_ids, wide.edge_ids)
    # What hops share is drawn by the same numbers, so that they go on where shorter ones end.
    last, met = made(0, 4).nodes.tolist(), set(link.tolist())
    every = list(last)
    for hops in (1, 2, 3):
        reached = set(src[np.isin(dst, last)].tolist())
        last = made(hops, 4).nodes.tolist()[len(every) :]
        assert set(last) <= reached - met and len(last) == min(4, len(reached - met))
        met |= reached
        every += last


def slow(edges: set[tuple[int, int]], nodes: list[int], root: int, without: int) -> dict[int, int]:
    found, queue = {root: 0}, [root]
    for u in queue:
        for v in nodes:
            if v != without and v not in found and ((u, v) in edges or (v, u) in edges):
                found[v] = found[u] + 1
                queue.append(v)
    return found


@pytest.mark.parametrize("seed", range(8))
def test_labels_of_random_graphs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    src, dst = rng.integers(0, 40, (2, 90))
    graph = pgs.Graph.from_coo(src, dst, num_nodes=40)
    x, y = (int(v) for v in rng.choice(40, 2, replace=False))
    made: Any = samplers.seal(fanouts=[4, -1], seed=seed).sample(graph, np.array([x, y]), batch=0)
    nodes = np.from_dlpack(made.nodes).tolist()
    edges = {(u, v) for u, v, _ in edges_of(made.numpy())}
    a, b = slow(edges, nodes, x, y), slow(edges, nodes, y, x)
    for v, label in zip(nodes, samplers.drnl(made).tolist(), strict=True):
        if v in (x, y):
            assert label == 1
        elif v not in a or v not in b:
            assert label == 0
        else:
            d = a[v] + b[v]
            assert label == 1 + min(a[v], b[v]) + (d // 2) * (d // 2 + d % 2 - 1)


def test_torch_subgraphs_have_the_same_labels() -> None:
    torch = pytest.importorskip("torch")
    from pygsampler.torch import DataLoader

    sampler = samplers.seal(fanouts=[-1, -1], seed=1)
    loader = DataLoader(of(BOTH), torch.tensor([0, 3, 0, 4]), sampler, batch_size=2)
    assert [samplers.drnl(made).tolist() for made in loader] == [
        [1, 1, 3, 2, 0],
        [1, 1, 4, 3, 3],
    ]


def test_errors() -> None:
    graph = of(BOTH)
    sampler = samplers.seal(seed=1)
    for seeds in ([1], [1, 1], [0, 1, 2]):
        with pytest.raises(ValueError, match="the two ends of a link"):
            samplers.drnl(sampler.sample(graph, np.array(seeds)))
    with pytest.raises(TypeError, match="expected a Subgraph, got MiniBatch"):
        samplers.drnl(pgs.PGSampler([2]).sample(graph, np.array([1])))
