"""ShaDowKHopSampler on heterographs, beside DGL's."""

from __future__ import annotations

from collections import Counter
from typing import Any

import dgl
import pytest
import torch
from dgl.dataloading import DataLoader, as_edge_prediction_sampler

from pygsampler.dgl import ShaDowKHopSampler
from tests.dgl.graphs import CITES, HAS, NEVER, WRITES, heterograph

pytestmark = pytest.mark.filterwarnings("ignore:Dataloader CPU affinity")


def check(g: Any, found: Any, seeds: dict[str, torch.Tensor], without: Any = None) -> None:
    """The seeds first, and all edges of ``g`` among the vertices, with features and ids."""
    nodes, output_nodes, subgraph = found
    assert output_nodes is seeds
    assert subgraph.canonical_etypes == g.canonical_etypes
    assert subgraph.idtype == g.idtype
    for kind in g.ntypes:
        given = seeds.get(kind, torch.empty(0, dtype=g.idtype))
        assert torch.equal(nodes[kind][: len(given)], given)
        assert torch.equal(subgraph.nodes[kind].data[dgl.NID], nodes[kind])
        x = g.nodes[kind].data["x"][nodes[kind].long()]
        assert torch.equal(subgraph.nodes[kind].data["x"], x)
    for kind in g.canonical_etypes:
        edges = subgraph.edges[kind].data[dgl.EID]
        local = subgraph.edges(etype=kind)
        for ids, end, of in zip(local, g.find_edges(edges, etype=kind), kind[::2], strict=True):
            assert torch.equal(nodes[of][ids.long()], end)
        src, dst = g.edges(etype=kind)
        among = torch.isin(src, nodes[kind[0]]) & torch.isin(dst, nodes[kind[2]])
        expected = set(among.nonzero().flatten().tolist()) - set((without or {}).get(kind, ()))
        assert sorted(edges.tolist()) == sorted(expected)
        assert torch.equal(subgraph.edges[kind].data["y"], edges.long())


@pytest.mark.parametrize("idtype", [torch.int64, torch.int32])
@pytest.mark.parametrize(
    "options",
    [
        {"fanouts": [2, 2]},
        {"fanouts": [-1]},
        {"fanouts": [{WRITES: 1, CITES: 2, HAS: 0, NEVER: 3}, 2]},
        {"fanouts": [3, 2], "prob": "w", "replace": True},
    ],
)
def test_subgraphs(options: Any, idtype: torch.dtype) -> None:
    g = heterograph(idtype)
    seeds = {
        "paper": torch.tensor([5, 2], dtype=idtype),
        "topic": torch.tensor([1], dtype=idtype),
    }
    check(g, ShaDowKHopSampler(**options, seed=3).sample(g, seeds), seeds)


def test_excluded_edges_are_neither_walked_along_nor_there() -> None:
    g = heterograph()
    seeds = {"paper": torch.arange(4)}
    without = {kind: g.in_edges(seeds["paper"], form="eid", etype=kind) for kind in (WRITES, CITES)}
    found = ShaDowKHopSampler([-1]).sample(g, seeds, without)
    assert found[0]["paper"].tolist() == [0, 1, 2, 3]
    check(g, found, seeds, {kind: ids.tolist() for kind, ids in without.items()})
    some = {kind: torch.arange(0, g.num_edges(kind), 3) for kind in (HAS, WRITES, CITES)}
    found = ShaDowKHopSampler([4, 4], seed=2).sample(g, seeds, some)
    check(g, found, seeds, {kind: ids.tolist() for kind, ids in some.items()})


def test_the_law_is_dgls() -> None:
    """Compares how often each node is met from a seed with DGL's counts, by chi-square."""
    g, seeds, runs = heterograph(), {"topic": torch.tensor([2])}, 250
    fanouts = [{WRITES: 3, CITES: 1, HAS: 1, NEVER: 0}, 2]
    counts = []
    for sampler in (ShaDowKHopSampler(fanouts, seed=1), dgl.dataloading.ShaDowKHopSampler(fanouts)):
        met: Counter[tuple[str, int]] = Counter()
        dgl.seed(4)
        for _ in range(runs):
            nodes, _, _ = sampler.sample(g, seeds)
            met.update((kind, v) for kind, ids in nodes.items() for v in ids.tolist())
        counts.append(met)
    ours, theirs = counts
    assert set(ours) <= set(theirs) | {key for key, n in ours.items() if n < 12}
    chi, cells = 0.0, 0
    for key in ours | theirs:
        both = ours[key] + theirs[key]
        if 20 <= both <= 2 * runs - 20:
            mean, share = both / 2, both / 2 / runs
            chi += 2 * (ours[key] - mean) ** 2 / (mean * (1 - share))
            cells += 1
    # Vertices of a batch are not independent, so the mean of this is right and its spread larger.
    assert cells > 10
    assert abs(chi - cells) < 6 * (2 * cells) ** 0.5


@pytest.mark.parametrize("workers", [0, 2])
def test_in_the_loader(workers: int) -> None:
    g = heterograph()
    sampler = ShaDowKHopSampler(
        [2, 2], prefetch_node_feats={"paper": ["x"]}, prefetch_edge_feats={WRITES: ["y"]}
    )
    ids = {"paper": torch.arange(30), "author": torch.arange(10)}
    seen: Counter[str] = Counter()
    for nodes, seeds, subgraph in DataLoader(g, ids, sampler, batch_size=8, num_workers=workers):
        seen.update({kind: len(given) for kind, given in seeds.items()})
        x = g.nodes["paper"].data["x"][nodes["paper"]]
        assert torch.equal(subgraph.nodes["paper"].data["x"], x)
        assert torch.equal(subgraph.edges[WRITES].data["y"], subgraph.edges[WRITES].data[dgl.EID])
    assert seen == {"paper": 30, "author": 10}


def test_around_links() -> None:
    g = heterograph()
    sampler = as_edge_prediction_sampler(ShaDowKHopSampler([3]), exclude="self")
    links = {CITES: torch.arange(20)}
    for _, pairs, subgraph in DataLoader(g, links, sampler, batch_size=10):
        left_out = pairs.edges[CITES].data[dgl.EID]
        assert not torch.isin(subgraph.edges[CITES].data[dgl.EID], left_out).any()


def test_an_epoch_says_the_batches_and_mistakes() -> None:
    g, seeds = heterograph(), {"paper": torch.tensor([3, 4])}
    sampler = ShaDowKHopSampler([2, 2], seed=5)
    sampler.set_epoch(1)
    first = sampler.sample(g, seeds)[0]
    again = sampler.sample(g, seeds)[0]
    assert all(torch.equal(first[kind], again[kind]) for kind in g.ntypes)
    with pytest.raises(ValueError, match=r"seed_nodes\['paper'\]: expected each node once"):
        sampler.sample(g, {"paper": torch.tensor([3, 3])})
    with pytest.raises(ValueError, match="prob: expected the name of an array of some edge type"):
        ShaDowKHopSampler([2], prob="none").sample(g, seeds)
