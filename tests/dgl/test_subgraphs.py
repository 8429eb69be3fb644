"""ShaDowKHopSampler and SAINTSampler beside DGL's."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import dgl
import pytest
import torch

from pygsampler.dgl import SAINTSampler, ShaDowKHopSampler
from tests.dgl.graphs import random_graph

pytestmark = pytest.mark.filterwarnings("ignore:Dataloader CPU affinity")

RUNS = 400


@pytest.fixture
def g() -> Any:
    made = random_graph()
    made.ndata["x"] = torch.arange(float(made.num_nodes()))
    made.edata["t"] = torch.arange(made.num_edges()) % 3 + 1.0
    return made


def check_induced(g: Any, subgraph: Any) -> None:
    """Ids, features, and all edges among the vertices."""
    nodes, edges = subgraph.ndata[dgl.NID], subgraph.edata[dgl.EID]
    for ours, theirs in zip(subgraph.edges(), g.find_edges(edges), strict=True):
        assert torch.equal(nodes[ours.long()], theirs)
    theirs = g.subgraph(nodes)
    assert torch.equal(edges.sort().values, theirs.edata[dgl.EID].sort().values)
    assert torch.equal(subgraph.ndata["x"], g.ndata["x"][nodes.long()])
    assert torch.equal(subgraph.edata["t"], g.edata["t"][edges.long()])
    assert "w" not in subgraph.edata


@pytest.mark.parametrize("workers", [0, 2])
def test_shadow_in_the_loader(g: Any, workers: int) -> None:
    sampler = ShaDowKHopSampler(
        [2, 3], prefetch_node_feats=["x", "label"], prefetch_edge_feats=["t"]
    )
    loader = dgl.dataloading.DataLoader(
        g, torch.arange(20), sampler, batch_size=8, num_workers=workers
    )
    seen = []
    for nodes, output_nodes, subgraph in loader:
        assert torch.equal(nodes, subgraph.ndata[dgl.NID])
        assert torch.equal(nodes[: len(output_nodes)], output_nodes)
        check_induced(g, subgraph)
        seen += output_nodes.tolist()
    assert sorted(seen) == list(range(20))


def test_shadow_without_some_edges(g: Any) -> None:
    """They are neither walked along nor in the subgraph."""
    seeds = torch.arange(8)
    without = g.in_edges(seeds, form="eid")[::2]
    _, _, subgraph = ShaDowKHopSampler([-1, 3]).sample(g, seeds, without)
    nodes, edges = subgraph.ndata[dgl.NID], subgraph.edata[dgl.EID]
    assert not torch.isin(edges, without).any()
    left = dgl.remove_edges(g, without.to(g.idtype), store_ids=True)
    among = left.edata[dgl.EID][left.subgraph(nodes).edata[dgl.EID].long()]
    assert torch.equal(edges.sort().values, among.sort().values)
    near = left.in_subgraph(seeds.to(g.idtype)).edges()[0]
    assert set(near.tolist()) <= set(nodes.tolist())


@pytest.mark.parametrize("workers", [0, 2])
def test_saint_in_the_loader(g: Any, workers: int) -> None:
    sampler = SAINTSampler("node", 15, prefetch_ndata=["x"], prefetch_edata=["t"], seed=2)
    # More of them than there are vertices.
    numbers = torch.arange(g.num_nodes() + 5)
    loader = dgl.dataloading.DataLoader(g, numbers, sampler, batch_size=16, num_workers=workers)
    found = []
    for subgraph in loader:
        assert 1 < subgraph.num_nodes() <= 15
        check_induced(g, subgraph)
        found.append(tuple(subgraph.ndata[dgl.NID].tolist()))
    assert len(set(found)) == len(found) == -(-len(numbers) // 16)


def small() -> Any:
    """Out-degrees 3, 2, 1, 1 and 0, and weights."""
    g = dgl.graph(([0, 0, 0, 1, 1, 2, 3], [1, 2, 3, 0, 4, 0, 2]))
    g.edata["p"] = torch.tensor([1.0, 3, 1, 1, 1, 2, 1])
    return g


def frequencies(sampler: Any, g: Any, seeds: list[int]) -> Counter[frozenset[int]]:
    """Counts how often each set of nodes is the subgraph."""
    found: Counter[frozenset[int]] = Counter()
    for _ in range(RUNS):
        sampled = sampler.sample(g, torch.tensor(seeds))
        subgraph = sampled[2] if isinstance(sampled, tuple) else sampled
        found[frozenset(subgraph.ndata[dgl.NID].tolist())] += 1
    return found


def check_same_law(ours: Counter[Any], theirs: Counter[Any]) -> None:
    assert len(ours) > 1
    for each in ours | theirs:
        mean = (ours[each] + theirs[each]) / (2 * RUNS)
        # Five deviations of the difference of two shares of so many.
        assert abs(ours[each] - theirs[each]) <= 5 * math.sqrt(2 * RUNS * mean * (1 - mean)) + 1


@pytest.mark.parametrize(
    ("fanouts", "options"), [([1, 1], {}), ([2], {"prob": "p", "replace": True})]
)
def test_the_law_of_shadow_is_dgls(fanouts: list[int], options: Any) -> None:
    g = small()
    dgl.seed(3)
    theirs = frequencies(dgl.dataloading.ShaDowKHopSampler(fanouts, **options), g, [0, 2])
    ours = frequencies(ShaDowKHopSampler(fanouts, seed=3, **options), g, [0, 2])
    check_same_law(ours, theirs)


def test_the_law_of_saint_is_dgls() -> None:
    g = small()
    torch.manual_seed(3)
    theirs = frequencies(dgl.dataloading.SAINTSampler("node", 2), g, [0])
    ours = frequencies(SAINTSampler("node", 2, seed=3), g, [0])
    check_same_law(ours, theirs)
    q = g.out_degrees().clamp(min=1) / 8
    for vertex, chance in enumerate(1 - (1 - q) ** 2):
        share = sum(n for nodes, n in ours.items() if vertex in nodes) / RUNS
        assert abs(share - chance) < 5 * math.sqrt(chance * (1 - chance) / RUNS)


@pytest.mark.parametrize(("mode", "budget"), [("edge", 2), ("walk", (2, 1))])
def test_the_laws_of_saint_are_dgls(mode: str, budget: Any) -> None:
    # The added edge lets all walks go on: DGL's fail at a node without out-edges.
    g = dgl.add_edges(small(), [4], [1])
    torch.manual_seed(3)
    dgl.seed(3)
    theirs = frequencies(dgl.dataloading.SAINTSampler(mode, budget), g, [0])
    ours = frequencies(SAINTSampler(mode, budget, seed=3), g, [0])
    check_same_law(ours, theirs)


def test_walks_stay_at_their_ends() -> None:
    sampler, g = SAINTSampler("walk", (1, 2), seed=1), dgl.graph(([0], [1]))
    found = frequencies(sampler, g, [0])
    assert set(found) == {frozenset([0, 1]), frozenset([1])}


@pytest.mark.parametrize(("mode", "budget", "most"), [("edge", 9, 18), ("walk", (4, 3), 16)])
def test_saint_of_edges_and_walks(g: Any, mode: str, budget: Any, most: int) -> None:
    sampler = SAINTSampler(mode, budget, prefetch_ndata=["x"], prefetch_edata=["t"], seed=2)
    loader = dgl.dataloading.DataLoader(g, torch.arange(9), sampler, batch_size=2, num_workers=1)
    found = []
    for subgraph in loader:
        assert 1 < subgraph.num_nodes() <= most
        check_induced(g, subgraph)
        found.append(tuple(subgraph.ndata[dgl.NID].tolist()))
    assert len(set(found)) == len(found) == 5


def test_all_neighbours() -> None:
    g = small()
    nodes, _, subgraph = ShaDowKHopSampler([-1]).sample(g, torch.tensor([2, 3]))
    assert nodes.tolist()[:2] == [2, 3]
    assert set(nodes.tolist()) == {0, 2, 3}
    assert subgraph.num_edges() == 4


@pytest.mark.parametrize(
    "make",
    [
        lambda: ShaDowKHopSampler([1, 1]),
        lambda: SAINTSampler("node", 9),
        lambda: SAINTSampler("edge", 9),
        lambda: SAINTSampler("walk", (4, 3)),
    ],
)
def test_an_epoch_says_the_batches(make: Any, g: Any) -> None:
    def nodes(sampler: Any, *ids: int) -> list[int]:
        sampled = sampler.sample(g, torch.tensor(ids))
        subgraph = sampled[2] if isinstance(sampled, tuple) else sampled
        found: list[int] = subgraph.ndata[dgl.NID].tolist()
        return found

    torch.manual_seed(4)
    first, second = make(), make()
    assert nodes(first, 1, 2, 3) != nodes(first, 1, 2, 3)
    first.set_epoch(1)
    second.set_epoch(1)
    assert nodes(first, 1, 2, 3) == nodes(second, 1, 2, 3)
    assert nodes(first, 4, 5, 6) != nodes(first, 1, 2, 3)
    second.set_seed(11)
    assert nodes(first, 1, 2, 3) != nodes(second, 1, 2, 3)


def test_what_is_assigned_counts(g: Any) -> None:
    shadow = ShaDowKHopSampler([1])
    shadow.fanouts, shadow.replace, shadow.prob = [0, 0], True, "t"
    nodes, _, _ = shadow.sample(g, torch.arange(4))
    assert nodes.tolist() == [0, 1, 2, 3]
    assert repr(shadow) == "pygsampler.dgl.ShaDowKHopSampler([0, 0], replace=True, prob='t')"
    saint = SAINTSampler("node", 9)
    saint.budget = 1
    assert saint.sample(g, torch.arange(1)).num_nodes() == 1
    assert repr(saint) == "pygsampler.dgl.SAINTSampler('node', 1)"


def test_mistakes(g: Any) -> None:
    with pytest.raises(ValueError, match=r"budget: expected a pair \(walks, steps\), got"):
        SAINTSampler("walk", 10)
    with pytest.raises(ValueError, match="mode: expected 'node', 'edge' or 'walk', got"):
        SAINTSampler("nodes", 10)
    for budget, error in ((0, ValueError), (1.5, TypeError), ((3, 4), TypeError)):
        with pytest.raises(error, match="budget: expected an integer"):
            SAINTSampler("node", budget)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="replace: expected"):
        ShaDowKHopSampler([1], replace=1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="prob: expected the name"):
        ShaDowKHopSampler([1], prob=3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="nothing"):
        ShaDowKHopSampler([1], prob="nothing").sample(g, torch.arange(2))
    typed = dgl.heterograph({("a", "x", "b"): ([0], [0]), ("b", "y", "a"): ([0], [0])})
    with pytest.raises(NotImplementedError):
        SAINTSampler("node", 3).sample(typed, torch.arange(2))


@pytest.mark.parametrize(("mode", "budget"), [("walk", (6, 2)), ("edge", 5)])
def test_saint_has_the_nodes_of_pygs(g: Any, mode: str, budget: Any) -> None:
    pyg = pytest.importorskip("torch_geometric")
    from pygsampler.pyg import GraphSAINTEdgeSampler, GraphSAINTRandomWalkSampler

    data = pyg.data.Data(edge_index=torch.stack(g.edges(order="eid")), num_nodes=g.num_nodes())
    ours = SAINTSampler(mode, budget, seed=4)
    if mode == "walk":
        loader: Any = GraphSAINTRandomWalkSampler(data, *budget, num_steps=3, seed=4)
    else:
        loader = GraphSAINTEdgeSampler(data, budget, num_steps=3, seed=4)
    ours.set_epoch(2)
    loader.set_epoch(2)
    for step, batch in enumerate(loader):
        subgraph = ours.sample(g, torch.tensor([step]))
        assert subgraph.ndata[dgl.NID].tolist() == sorted(batch.n_id.tolist())
        assert sorted(subgraph.edata[dgl.EID].tolist()) == sorted(batch.e_id.tolist())
