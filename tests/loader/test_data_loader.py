"""pygsampler.torch.DataLoader: same batches whatever the depth, threads, and ranks."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import torch
from torch_graphs import csc

import pygsampler as pgs
from pygsampler.torch import DataLoader
from tests.support.assertions import content, contents

NODES = 3000


def make_graph(dtype: torch.dtype = torch.int64) -> pgs.Graph:
    return pgs.Graph.from_csc(*csc(NODES, 60, dtype=dtype))


@pytest.fixture(scope="module")
def graph() -> pgs.Graph:
    return make_graph()


SEEDS = torch.arange(0, 1000)


def test_yields_torch_tensors_of_sampled_blocks(graph: pgs.Graph) -> None:
    loader = DataLoader(graph, SEEDS, [5, 3], batch_size=300, seed=1)
    batches = list(loader)
    assert len(batches) == len(loader) == 4
    assert torch.cat([batch.output_nodes for batch in batches]).equal(SEEDS)
    for batch in batches:
        assert len(batch.blocks) == 2
        assert batch.input_nodes.dtype == torch.int64
        assert batch.blocks[0].num_src_nodes == batch.input_nodes.numel()
        assert batch.blocks[0].num_dst_nodes == batch.blocks[1].num_src_nodes
        assert batch.blocks[1].dst_nodes.equal(batch.output_nodes)
        assert all(isinstance(block.indices, torch.Tensor) for block in batch.blocks)


def test_tensors_share_the_engines_memory(graph: pgs.Graph) -> None:
    sampler = pgs.PGSampler([5, 3], seed=1)
    batch = sampler.sample(graph, SEEDS[:50], epoch=0, batch=0)
    first, second = batch.torch(), batch.torch()
    assert first.input_nodes.data_ptr() == second.input_nodes.data_ptr()
    assert first.blocks[0].indices.data_ptr() == second.blocks[0].indices.data_ptr()


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_same_batches_for_every_depth(dtype: torch.dtype) -> None:
    graph = make_graph(dtype)
    reference = None
    for prefetch in (0, 1, 2, 4, 50):
        loader = DataLoader(
            graph, SEEDS, [10, 5], batch_size=64, shuffle=True, prefetch=prefetch, seed=3
        )
        got = contents(loader) + contents(loader)
        reference = reference or got
        assert got == reference


def test_same_batches_for_every_number_of_threads(graph: pgs.Graph) -> None:
    from pygsampler._engine.library import call

    loader = DataLoader(graph, SEEDS, [10, 10, 5], batch_size=200, prefetch=0, seed=3)
    before = call("SetThreads", 1)
    try:
        one = contents(loader)
        loader.set_epoch(0)
        call("SetThreads", 2)
        assert contents(loader) == one
    finally:
        call("SetThreads", before)


def test_a_batch_is_what_the_sampler_says_of_it(graph: pgs.Graph) -> None:
    sampler = pgs.PGSampler([10, 5], seed=9)
    loader = DataLoader(graph, SEEDS, sampler, batch_size=300)
    loader.set_epoch(6)
    for step, batch in enumerate(loader):
        seeds = SEEDS[300 * step : 300 * (step + 1)]
        assert content(sampler.sample(graph, seeds, epoch=6, batch=step).torch()) == content(batch)


def test_epochs_differ_and_come_back(graph: pgs.Graph) -> None:
    loader = DataLoader(graph, SEEDS, [10], batch_size=500, seed=3)
    first, second = contents(loader), contents(loader)
    assert first != second
    assert [b[".output_nodes"] for b in first] == [b[".output_nodes"] for b in second]
    assert loader.epoch == 2
    loader.set_epoch(0)
    assert contents(loader) == first
    assert contents(loader) == second


def test_shuffle_is_a_permutation_of_seed_and_epoch(graph: pgs.Graph) -> None:
    def order(seed: int, epoch: int) -> list[int]:
        loader = DataLoader(graph, SEEDS, [2], batch_size=128, shuffle=True, seed=seed)
        loader.set_epoch(epoch)
        return [int(v) for batch in loader for v in batch.output_nodes]

    assert sorted(order(0, 0)) == SEEDS.tolist()
    assert order(0, 0) == order(0, 0) != SEEDS.tolist()
    assert len({tuple(order(seed, epoch)) for seed in (0, 1) for epoch in (0, 1, 2)}) == 6


def test_shuffling_leaves_the_callers_seeds_alone(graph: pgs.Graph) -> None:
    seeds = SEEDS.clone()
    loader = DataLoader(graph, seeds, [2], batch_size=128, shuffle=True, seed=0)
    first = contents(loader)
    assert seeds.equal(SEEDS)
    seeds.zero_()
    loader.set_epoch(0)
    assert contents(loader) == first


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("shuffle", [False, True])
def test_ranks_share_the_seeds_exactly(graph: pgs.Graph, shuffle: bool, drop_last: bool) -> None:
    seeds = torch.arange(1001)
    ranks = [
        DataLoader(
            graph,
            seeds,
            [3],
            batch_size=100,
            shuffle=shuffle,
            drop_last=drop_last,
            seed=5,
            rank=rank,
            world_size=3,
        )
        for rank in range(3)
    ]
    assert len({len(loader) for loader in ranks}) == 1
    for _ in range(2):
        taken = [int(v) for loader in ranks for batch in loader for v in batch.output_nodes]
        assert len(set(taken)) == len(taken)
        assert len(taken) == (900 if drop_last else 1001)


def test_ranks_draw_different_numbers(graph: pgs.Graph) -> None:
    """The same vertex in the same step of two ranks: its neighbours are drawn apart."""
    seeds = torch.tensor([11, 11])
    drawn = [
        next(iter(DataLoader(graph, seeds, [4], batch_size=1, seed=5, rank=rank, world_size=2)))
        for rank in (0, 1)
    ]
    assert drawn[0].output_nodes.equal(drawn[1].output_nodes)
    assert not drawn[0].blocks[0].edge_ids.equal(drawn[1].blocks[0].edge_ids)


def test_drop_last(graph: pgs.Graph) -> None:
    loader = DataLoader(graph, SEEDS, [2], batch_size=300, drop_last=True)
    assert len(loader) == 3
    assert [batch.output_nodes.numel() for batch in loader] == [300, 300, 300]
    assert len(DataLoader(graph, SEEDS[:10], [2], batch_size=300, drop_last=True)) == 0


def test_two_iterators_at_once(graph: pgs.Graph) -> None:
    loader = DataLoader(graph, SEEDS, [5], batch_size=100, shuffle=True, seed=2)
    epochs = [contents(loader), contents(loader)]
    loader.set_epoch(0)
    pairs = list(zip(loader, loader, strict=True))
    assert [content(a) for a, _ in pairs] == epochs[0]
    assert [content(b) for _, b in pairs] == epochs[1]


@pytest.mark.parametrize(
    "seeds",
    [
        [3, 1, 2],
        (3, 1, 2),
        np.array([3, 1, 2]),
        np.array([3, 1, 2], np.int32),
        torch.tensor([3, 1, 2], dtype=torch.int32),
        torch.tensor([3, 0, 1, 0, 2, 0])[::2],
    ],
    ids=["list", "tuple", "numpy", "numpy32", "torch32", "strided"],
)
def test_kinds_of_seeds(graph: pgs.Graph, seeds: Any) -> None:
    (batch,) = DataLoader(graph, seeds, [2], batch_size=8)
    assert batch.output_nodes.tolist() == [3, 1, 2]


@pytest.mark.parametrize("seeds", [[], np.array([], np.int64), torch.tensor([], dtype=torch.int32)])
def test_no_seeds(graph: pgs.Graph, seeds: Any) -> None:
    loader = DataLoader(graph, seeds, [2], batch_size=8, world_size=2, rank=1)
    assert len(loader) == 0
    assert list(loader) == []


def test_duplicate_seeds_stay(graph: pgs.Graph) -> None:
    (batch,) = DataLoader(graph, [5, 5, 7, 5], [2], batch_size=8)
    assert batch.output_nodes.tolist() == [5, 5, 7, 5]
    assert batch.blocks[-1].dst_nodes.tolist() == [5, 7]
    assert batch.output_index.tolist() == [0, 0, 1, 0]


def test_default_seed_is_torchs(graph: pgs.Graph) -> None:
    def first(manual: int) -> tuple[Any, ...]:
        torch.manual_seed(manual)
        return contents(DataLoader(graph, SEEDS, [5], batch_size=100, shuffle=True))

    assert first(1) == first(1) != first(2)


def test_pickle_keeps_options_and_epoch(graph: pgs.Graph) -> None:
    loader = DataLoader(graph, SEEDS, [5], batch_size=100, shuffle=True, seed=2)
    contents(loader)
    copy = pickle.loads(pickle.dumps(loader))
    assert copy.epoch == 1
    assert contents(copy) == contents(loader)
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(iter(loader))


def test_repr_says_what_it_is(graph: pgs.Graph) -> None:
    text = repr(DataLoader(graph, SEEDS, [5], batch_size=100, rank=1, world_size=2))
    assert "1000 seeds" in text
    assert "batch_size=100" in text
    assert "rank=1, world_size=2" in text


def test_bar_counts_batches_and_edges(graph: pgs.Graph, capsys: pytest.CaptureFixture[str]) -> None:
    loader = DataLoader(graph, SEEDS, [5], batch_size=100, seed=2, progress=True)
    shown = contents(loader)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "10/10" in captured.err
    assert "M edges/s" in captured.err
    quiet = DataLoader(graph, SEEDS, [5], batch_size=100, seed=2)
    assert contents(quiet) == shown
    assert capsys.readouterr().err == ""


def edges_of(loader: DataLoader) -> list[list[int]]:
    return [block.edge_ids.tolist() for batch in loader for block in batch.blocks]


def test_torchs_seed_may_be_set_after_the_loader_was_made(graph: pgs.Graph) -> None:
    loader = DataLoader(graph, range(40), [3, 3], batch_size=10, shuffle=True)
    expected = [edges_of(DataLoader(graph, range(40), [3, 3], batch_size=10, shuffle=True, seed=s))
                for s in (1, 2)]  # fmt: skip
    for manual in (1, 2, 1):
        torch.manual_seed(manual)
        assert edges_of(loader) == expected[manual - 1]
        assert edges_of(loader) != expected[manual - 1], "without another seed epochs go on"
        assert (loader.seed, loader.epoch) == (manual, 2)
    loader.set_epoch(5)
    torch.manual_seed(2)
    fifth = DataLoader(graph, range(40), [3, 3], batch_size=10, shuffle=True, seed=2)
    fifth.set_epoch(5)
    assert edges_of(loader) == edges_of(fifth), "an epoch that was chosen stays"


def test_set_seed_is_from_the_next_pass_on(graph: pgs.Graph) -> None:
    sampler = pgs.PGSampler([3, 3], seed=7)
    loader = DataLoader(graph, range(40), sampler, batch_size=10, shuffle=True)
    expected = {
        seed: edges_of(DataLoader(graph, range(40), [3, 3], batch_size=10, shuffle=True, seed=seed))
        for seed in (7, 8)
    }
    torch.manual_seed(5)
    going_on = iter(loader)
    loader.set_seed(8)
    assert edges_of(going_on) == expected[7]  # type: ignore[arg-type]
    for _ in range(2):
        loader.set_seed(8)
        assert edges_of(loader) == expected[8]
    assert sampler.seed == 7
    with pytest.raises(ValueError, match="seed"):
        loader.set_seed(1 << 64)
    assert loader.seed == 8
    loader.set_seed(None)
    torch.manual_seed(7)
    assert edges_of(loader) == expected[7]
    ranks = DataLoader(
        graph, range(40), [3], batch_size=10, shuffle=True, seed=7, rank=0, world_size=2
    )
    with pytest.raises(ValueError, match="seed: expected an integer, the same on all 2 ranks"):
        ranks.set_seed(None)


def test_a_pickled_loader_keeps_its_seed(graph: pgs.Graph) -> None:
    torch.manual_seed(1)
    loader = DataLoader(graph, range(40), [3, 3], batch_size=10)
    expected = edges_of(loader)
    loader.set_epoch(0)
    copy = pickle.loads(pickle.dumps(loader))
    torch.manual_seed(2)
    assert edges_of(copy) == expected


def weighted(graph: pgs.Graph) -> pgs.Graph:
    """A third of the edges has weight 0."""
    random = torch.Generator().manual_seed(1)
    weights = torch.rand(graph.num_edges, generator=random) - 0.3
    return graph.with_data({"w": weights.clamp(min=0), "m": weights > 0})


@pytest.mark.parametrize("prefetch", [0, 1, 4])
@pytest.mark.parametrize("by", [{"prob": "w"}, {"mask": "m"}], ids=str)
def test_weights_and_masks(graph: pgs.Graph, by: dict[str, str], prefetch: int) -> None:
    graph = weighted(graph)
    options = {"batch_size": 300, "shuffle": True, "prefetch": prefetch}
    loader = DataLoader(graph, SEEDS, pgs.PGSampler([5, -1], seed=1, **by), **options)
    copy = pickle.loads(pickle.dumps(loader))
    passes = [contents(each) for each in (loader, copy)]
    assert passes[0] == passes[1]
    kept = graph.edata["m"].torch()
    for batch in loader:
        for block in batch.blocks:
            assert len(block.edge_ids) and kept[block.edge_ids].all()
    assert next(iter(by)) in repr(loader)
    loader.set_seed(1)
    assert contents(loader) == passes[0]
