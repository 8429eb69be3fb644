"""LaborSampler beside DGL's."""

from __future__ import annotations

import math
from typing import Any

import dgl
import pytest
import torch

from pygsampler.dgl import LaborSampler
from tests.dgl.graphs import random_graph

pytestmark = pytest.mark.filterwarnings("ignore:Dataloader CPU affinity")


def check_blocks(g: Any, seeds: torch.Tensor, found: Any) -> None:
    input_nodes, output_nodes, blocks = found
    assert torch.equal(output_nodes, seeds)
    assert torch.equal(blocks[0].srcdata[dgl.NID], input_nodes)
    assert torch.equal(blocks[-1].dstdata[dgl.NID], seeds)
    for block in blocks:
        edges = block.edata[dgl.EID]
        sources, targets = block.edges()
        src, dst = g.find_edges(edges)
        assert torch.equal(block.srcdata[dgl.NID][sources.long()], src)
        assert torch.equal(block.dstdata[dgl.NID][targets.long()], dst)
        assert "edge_weights" not in block.edata
        assert "w" not in block.edata


@pytest.mark.parametrize("workers", [0, 2])
def test_blocks_in_the_loader(workers: int) -> None:
    g = random_graph()
    sampler = LaborSampler([2, -1], prefetch_labels=["label"])
    loader = dgl.dataloading.DataLoader(
        g, torch.arange(20), sampler, batch_size=8, num_workers=workers
    )
    seen = []
    for found in loader:
        check_blocks(g, found[1], found)
        last = found[2][-1]
        assert torch.equal(last.in_degrees(), g.in_degrees(found[1]).to(last.in_degrees()))
        assert torch.equal(last.dstdata["label"], g.ndata["label"][found[1]])
        seen += found[1].tolist()
    assert sorted(seen) == list(range(20))


def star(degree: int = 12, targets: int = 3) -> Any:
    """Vertices with the same in-neighbours."""
    sources = torch.arange(targets, targets + degree).repeat(targets)
    return dgl.graph((sources, torch.arange(targets).repeat_interleave(degree)))


def kept(sampler: Any, g: Any, runs: int) -> torch.Tensor:
    """Returns how often each edge stays; the edges of one source stay together."""
    count = torch.zeros(g.num_edges())
    for _ in range(runs):
        _, _, (block,) = sampler.sample(g, torch.arange(3))
        count[block.edata[dgl.EID]] += 1
        rows = block.edges()[0].bincount()
        # One number a source: its edges stay all or none.
        assert set(rows.tolist()) <= {0, 3}
    return count / runs


def test_the_law_is_dgls() -> None:
    g, runs = star(), 2000
    dgl.seed(5)
    theirs = kept(dgl.dataloading.LaborSampler([4]), g, runs)
    ours = kept(LaborSampler([4], seed=5), g, runs)
    # Six deviations of a mean of so many coins of 1/3.
    bound = 6 * math.sqrt((1 / 3) * (2 / 3) / runs)
    assert (ours - 1 / 3).abs().max() < bound
    assert (theirs - 1 / 3).abs().max() < bound


def shared() -> Any:
    """{a, b} and {b, c, d}: numbers 2, 3 and 3, 4, 5, with weights 1, 2 and 1, 2, 3."""
    g = dgl.graph((torch.tensor([2, 3, 3, 4, 5]), torch.tensor([0, 0, 1, 1, 1])))
    g.edata["p"] = torch.tensor([1.0, 2.0, 1.0, 2.0, 3.0])
    return g


def drawn(sampler: Any, g: Any, runs: int) -> torch.Tensor:
    """Returns how often each edge stays; weights sum to the number of a destination's edges."""
    count = torch.zeros(g.num_edges())
    for _ in range(runs):
        _, _, (block,) = sampler.sample(g, torch.arange(2))
        count[block.edata[dgl.EID]] += 1
        sums = torch.zeros(block.num_dst_nodes())
        sums.index_add_(0, block.edges()[1].long(), block.edata["edge_weights"].float())
        assert torch.allclose(sums, block.in_degrees().float(), rtol=1e-5)
    return count / runs


@pytest.mark.parametrize(
    ("options", "law"),
    [
        ({"importance_sampling": 1}, [1 / 2, 1 / 2, 4 / 9, 8 / 27, 8 / 27]),
        # c of {1, 2} is 3 / (9 (1 - 1/2) + 5), of {1, 2, 3} 6 / (36 (1 - 1/3) + 14).
        ({"prob": "p"}, [6 / 19, 12 / 19, 3 / 19, 6 / 19, 9 / 19]),
    ],
)
def test_the_laws_by_importance_and_by_weight_are_dgls(options: Any, law: list[float]) -> None:
    g, runs, want = shared(), 2000, torch.tensor(law)
    bound = 5 * (want * (1 - want) / runs).sqrt()
    dgl.seed(5)
    theirs = drawn(dgl.dataloading.LaborSampler([1], **options), g, runs)
    assert ((theirs - want).abs() < bound).all()
    ours = drawn(LaborSampler([1], seed=5, **options), g, runs)
    assert ((ours - want).abs() < bound).all()


def test_weights_are_one_over_chances() -> None:
    """Within a destination by a / p, all of it: of the edges 3 and 4, 2 / (6/19) and so on."""
    g = shared()
    value = torch.tensor([1.0, 2.0, 1.0, 2.0, 3.0]) / torch.tensor([6.0, 12.0, 3.0, 6.0, 9.0])
    seen = set()
    sampler = LaborSampler([1], prob="p", seed=1)
    for _ in range(200):
        _, _, (block,) = sampler.sample(g, torch.tensor([1]))
        edges, weights = block.edata[dgl.EID], block.edata["edge_weights"]
        seen.add(tuple(edges.tolist()))
        assert torch.allclose(weights, value[edges] / value[edges].mean().clamp(min=1e-9))
    assert len(seen) >= 6


def test_numbers_that_hops_share() -> None:
    g = dgl.add_reverse_edges(star(degree=30))
    seeds = torch.arange(3)

    def again(layer_dependency: bool) -> bool:
        sampler = LaborSampler([5, 5], layer_dependency=layer_dependency, seed=1)
        same = []
        for _ in range(20):
            _, _, (outer, inner) = sampler.sample(g, seeds)
            into = torch.isin(g.find_edges(outer.edata[dgl.EID])[1], seeds)
            again = outer.edata[dgl.EID][into].sort().values
            same.append(torch.equal(again, inner.edata[dgl.EID].sort().values))
        return all(same)

    assert again(True)
    assert not again(False)


def edges(sampler: Any, g: Any) -> list[int]:
    _, _, blocks = sampler.sample(g, torch.arange(9))
    found: list[int] = torch.cat([block.edata[dgl.EID] for block in blocks]).tolist()
    return found


def test_an_epoch_says_the_batches() -> None:
    g = random_graph()
    first, second = (LaborSampler([2, 2], seed=7) for _ in range(2))
    assert edges(first, g) != edges(first, g)
    for sampler in (first, second):
        sampler.set_epoch(3)
    assert edges(first, g) == edges(second, g) == edges(first, g)
    torch.manual_seed(3)
    unseeded = LaborSampler([2, 2])
    found = edges(unseeded, g)
    torch.manual_seed(3)
    assert edges(LaborSampler([2, 2]), g) == found


def test_what_is_assigned_counts() -> None:
    g = random_graph()
    sampler = LaborSampler([2, 2])
    sampler.fanouts = [-1]
    sampler.layer_dependency = True
    _, _, (block,) = sampler.sample(g, torch.arange(9))
    assert block.num_edges() == g.in_degrees(torch.arange(9)).sum()
    assert repr(sampler) == "pygsampler.dgl.LaborSampler([-1], layer_dependency=True)"
    with pytest.raises(TypeError, match="fanouts"):
        sampler.fanouts = 3
    assert sampler.fanouts == [-1]
    with pytest.raises(ValueError, match="importance_sampling"):
        sampler.importance_sampling = 17
    with pytest.raises(TypeError, match="prob: expected the name"):
        sampler.prob = torch.ones(3)
    g.edata["p"] = torch.ones(g.num_edges())
    sampler.prob, sampler.importance_sampling = "p", 2
    assert "prob='p', importance_sampling=2, layer" in repr(sampler)
    _, _, (block,) = sampler.sample(g, torch.arange(9))
    assert torch.equal(block.edata["edge_weights"], torch.ones(block.num_edges()))
    sampler.prob = "missing"
    with pytest.raises(ValueError, match="missing"):
        sampler.sample(g, torch.arange(9))


def edge_ids(sampler: Any, g: Any, **options: Any) -> list[int]:
    blocks = sampler.sample(g, torch.arange(9), **options)[2]
    return [e for block in blocks for e in block.edata[dgl.EID].tolist()]


def test_out_edges_are_those_of_the_reverse() -> None:
    g = random_graph()
    one = LaborSampler([2, 3], edge_dir="out", seed=4)
    two = LaborSampler([2, 3], seed=4)
    for sampler in (one, two):
        sampler.set_epoch(0)
    assert edge_ids(one, g) == edge_ids(two, dgl.reverse(g, copy_ndata=False))
    with pytest.raises(ValueError, match="edge_dir: expected 'in' or 'out', got 'both'"):
        LaborSampler([2], edge_dir="both")


@pytest.mark.parametrize("exclude", [None, torch.tensor([3])])
def test_numbers_change_gradually(exclude: Any) -> None:
    rows = torch.arange(1500)
    g = dgl.graph((torch.arange(3000) + 1500, rows.repeat_interleave(2)))

    def found(sampler: LaborSampler, count: int) -> list[set[int]]:
        made = []
        for _ in range(count):
            blocks = sampler.sample_blocks(g, rows, exclude)[2]
            made.append(set(blocks[0].edata[dgl.EID].tolist()))
        return made

    sampler = LaborSampler([1], batch_dependency=8, seed=4)
    sampler.set_epoch(2)
    one = found(sampler, 17)
    sampler.set_epoch(2)
    assert found(sampler, 3) == one[:3]

    def alike(i: int, j: int) -> float:
        return len(one[i] & one[j]) / len(one[i])

    # Edges of chance 1/2 follow the law of tests/samplers/test_laws.py.
    for i, j in ((0, 1), (0, 3), (2, 6), (7, 8), (0, 8), (1, 16)):
        assert abs(alike(i, j) - (1 - min(j - i, 8) / 16)) < 0.06, (i, j)
    sampler.batch_dependency = 1
    sampler.set_epoch(None)
    first, second = found(sampler, 2)
    assert abs(len(first & second) / len(first) - 0.5) < 0.06
    for always in (0, -2):
        sampler = LaborSampler([1], batch_dependency=always, seed=4)
        first, *others = found(sampler, 5)
        assert others == [first] * 4
        sampler.set_seed(6)
        other = found(sampler, 2)
        assert other[0] == other[1] != first
    with pytest.raises(TypeError, match="batch_dependency: expected an integer"):
        LaborSampler([2], batch_dependency=0.5)
    with pytest.raises(TypeError, match="batch_dependency: expected an integer"):
        sampler.batch_dependency = "2"


def test_a_seed_is_set_as_in_dgl() -> None:
    """By DGL's name of the argument, or by none; two samplers with one seed draw alike."""
    g = random_graph(300, 9000)
    one, other = LaborSampler([9, 9]), LaborSampler([9, 9])
    one.set_seed(5)
    other.set_seed(random_seed=5)
    first, second = edges(one, g), edges(one, g)
    assert [edges(other, g), edges(other, g)] == [first, second]
    assert first != second
    drawn = []
    for nothing in ((), (None,)):
        torch.manual_seed(3)
        one.set_seed(*nothing)
        drawn.append(edges(one, g))
    assert drawn[0] == drawn[1] != first


@pytest.mark.parametrize("options", [{}, {"importance_sampling": 1}, {"importance_sampling": -1}])
def test_excluded_edges_are_left_out_before(options: Any) -> None:
    """One of three edges is out: each of the two others stays half of the time."""
    g = dgl.graph((torch.tensor([1, 2, 3]), torch.zeros(3, dtype=torch.int64)), num_nodes=4)
    sampler, runs, count = LaborSampler([1], seed=5, **options), 1500, torch.zeros(3)
    for _ in range(runs):
        _, _, (block,) = sampler.sample(g, torch.tensor([0]), exclude_eids=torch.tensor([1, -1]))
        count[block.edata[dgl.EID]] += 1
        assert ("edge_weights" in block.edata) == bool(options)
    assert count[1] == 0
    for i in (0, 2):
        assert (count[i] - runs / 2) ** 2 / (runs / 4) < 20


@pytest.mark.parametrize("exclude", ["self", "reverse_id"])
def test_around_links(exclude: str) -> None:
    src, dst = torch.randint(40, (150,)), torch.randint(40, (150,))
    g = dgl.graph((torch.cat([src, dst]), torch.cat([dst, src])), num_nodes=40)
    more = {"reverse_eids": (torch.arange(300) + 150) % 300} if exclude == "reverse_id" else {}
    sampler = dgl.dataloading.as_edge_prediction_sampler(
        LaborSampler([3, 3], seed=1),
        exclude=exclude,
        negative_sampler=dgl.dataloading.negative_sampler.Uniform(1),
        **more,
    )
    loader = dgl.dataloading.DataLoader(g, torch.arange(150), sampler, batch_size=16)
    seen = 0
    for _, positive, _, blocks in loader:
        out = set(positive.edata[dgl.EID].tolist())
        seen += len(out)
        if more:
            out |= {(e + 150) % 300 for e in out}
        for block in blocks:
            assert not out & set(block.edata[dgl.EID].tolist())
    assert seen == 150


def test_rounds_until_nothing_changes_have_fewer_nodes() -> None:
    torch.manual_seed(0)
    g = dgl.graph((torch.randint(60, (900,)), torch.randint(60, (900,))), num_nodes=60)

    def nodes(options: Any) -> float:
        sampler = LaborSampler([2], seed=3, **options)
        found = [len(sampler.sample(g, torch.arange(30))[0]) for _ in range(200)]
        return sum(found) / len(found)

    assert nodes({"importance_sampling": -1}) < nodes({"importance_sampling": 1}) < nodes({})
