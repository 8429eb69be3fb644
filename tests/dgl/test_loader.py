"""PGSampler in DGL's DataLoader: workers of every kind give the same batches."""

from __future__ import annotations

import pickle
from typing import Any

import dgl
import numpy as np
import pytest
import torch

from pygsampler.dgl import PGSampler
from tests.dgl.graphs import DTYPES, check_blocks, content, random_graph

pytestmark = pytest.mark.filterwarnings(
    "ignore:Dataloader CPU affinity",
    # Python 3.12 warns of forks in processes with threads, which torch's own loader makes too.
    "ignore:This process .* is multi-threaded:DeprecationWarning",
)
FANOUTS = [4, 3]
SEEDS = torch.arange(0, 400)


def make_loader(g: Any, sampler: Any, seeds: torch.Tensor = SEEDS, **options: Any) -> Any:
    return dgl.dataloading.DataLoader(
        g, seeds.to(g.idtype), sampler, **{"batch_size": 64, "device": "cpu", **options}
    )


def batches(loader: Any) -> list[tuple[Any, ...]]:
    """Sorted, since workers take turns; input_nodes first, then seeds, then blocks."""
    return sorted(content(batch) for batch in loader)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_batch_keeps_the_contract(dtype: torch.dtype) -> None:
    g = random_graph(dtype=dtype)
    np.random.seed(0)
    loader = make_loader(g, PGSampler(FANOUTS), shuffle=True)
    seen = []
    for batch in loader:
        check_blocks(g, FANOUTS, batch[1], batch)
        seen += batch[1].tolist()
    assert sorted(seen) == SEEDS.tolist()
    assert seen != SEEDS.tolist()


WORKERS: dict[str, dict[str, Any]] = {
    "none": {"num_workers": 0},
    "one": {"num_workers": 1},
    "two": {"num_workers": 2},
    "persistent": {"num_workers": 2, "persistent_workers": True},
    "spawn": {"num_workers": 1, "multiprocessing_context": "spawn"},
}


@pytest.fixture(scope="module")
def expected() -> list[list[tuple[Any, ...]]]:
    """Three epochs of batches, sampled one by one in this process."""
    g = random_graph()
    sampler = PGSampler(FANOUTS, seed=11)
    epochs = []
    for epoch in range(3):
        sampler.set_epoch(epoch)
        epochs.append(sorted(content(sampler.sample(g, part)) for part in SEEDS.split(64)))
    assert epochs[0] != epochs[1] != epochs[2]
    return epochs


@pytest.mark.parametrize("options", WORKERS.values(), ids=WORKERS)
def test_equal_batches_for_every_kind_of_worker(
    options: dict[str, Any], expected: list[list[tuple[Any, ...]]]
) -> None:
    """The parent has sampled before (``expected``), samples between the epochs, and its workers,
    also those that live on, see each set_epoch."""
    g = random_graph()
    sampler = PGSampler(FANOUTS, seed=11)
    sampler.sample(g, SEEDS)
    loader = make_loader(g, sampler, **options)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        assert batches(loader) == expected[epoch]
        sampler.sample(g, SEEDS)


@pytest.mark.parametrize(
    "options",
    [WORKERS["none"], WORKERS["two"], WORKERS["persistent"]],
    ids=["none", "two", "persistent"],
)
def test_nothing_repeats_without_set_epoch(options: dict[str, Any]) -> None:
    """The same seeds in every batch of every epoch, and no batch comes twice."""
    g = random_graph()
    seeds = torch.arange(64).repeat(4)
    loader = make_loader(g, PGSampler(FANOUTS, seed=11), seeds, **options)
    drawn = [batch for _ in range(3) for batch in batches(loader)]
    assert len(drawn) == len(set(drawn)) == 12


@pytest.mark.parametrize("workers", [0, 2])
def test_torchs_seed_repeats_a_run(workers: int) -> None:
    g = random_graph()

    def run() -> list[Any]:
        torch.manual_seed(3)
        loader = make_loader(g, PGSampler(FANOUTS), num_workers=workers)
        return [content(batch) for _ in range(2) for batch in loader]

    assert run() == run()


@pytest.mark.parametrize("workers", [0, 2])
def test_prefetched_features(workers: int) -> None:
    g = random_graph()
    sampler = PGSampler(
        FANOUTS,
        prefetch_node_feats=["feat"],
        prefetch_labels=["label"],
        prefetch_edge_feats=["weight"],
    )
    for input_nodes, output_nodes, blocks in make_loader(g, sampler, num_workers=workers):
        assert blocks[0].srcdata["feat"].equal(g.ndata["feat"][input_nodes])
        assert blocks[-1].dstdata["label"].equal(output_nodes)
        for block in blocks:
            assert block.edata["weight"].equal(g.edata["weight"][block.edata[dgl.EID]])


@pytest.mark.parametrize("workers", [0, 2])
def test_features_without_prefetch(workers: int) -> None:
    g = random_graph()
    for input_nodes, output_nodes, blocks in make_loader(
        g, PGSampler(FANOUTS), num_workers=workers
    ):
        assert blocks[0].srcdata["feat"].equal(g.ndata["feat"][input_nodes])
        assert blocks[-1].dstdata["label"].equal(output_nodes)


def test_output_device() -> None:
    g = random_graph()
    for batch in make_loader(g, PGSampler(FANOUTS, output_device="cpu")):
        assert batch[0].device.type == batch[2][0].device.type == "cpu"
        check_blocks(g, FANOUTS, batch[1], batch)


@pytest.mark.parametrize("workers", [0, 2])
def test_an_error_reaches_the_loop(workers: int) -> None:
    g = random_graph()
    loader = make_loader(g, PGSampler(FANOUTS), torch.tensor([1, 999]), num_workers=workers)
    with pytest.raises(IndexError, match="999"):
        list(loader)


def test_leaving_a_loop_with_workers_early() -> None:
    g = random_graph()
    loader = make_loader(g, PGSampler(FANOUTS), num_workers=2, batch_size=8)
    for _ in range(2):
        for batch in loader:
            check_blocks(g, FANOUTS, batch[1], batch)
            break


def test_pickled_samplers_are_independent() -> None:
    g = random_graph()
    sampler = PGSampler(FANOUTS, seed=1)
    sampler.set_epoch(5)
    copy = pickle.loads(pickle.dumps(sampler))
    assert content(copy.sample(g, SEEDS)) == content(sampler.sample(g, SEEDS))
    copy.set_epoch(6)
    assert content(copy.sample(g, SEEDS)) != content(sampler.sample(g, SEEDS))
