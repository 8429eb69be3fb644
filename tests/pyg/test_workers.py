"""Batches of PyG's loaders are the same whoever makes them."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
import torch
from pyg_reference import content, random_data
from torch_geometric.loader import NodeLoader
from torch_geometric.sampler import NodeSamplerInput

from pygsampler.pyg import LinkNeighborLoader, NeighborLoader, PGSampler

pytestmark = pytest.mark.filterwarnings(
    # Python 3.12 warns of forks in processes with threads, which torch's own loader makes too.
    "ignore:This process .* is multi-threaded:DeprecationWarning",
)

WORKERS: dict[str, dict[str, Any]] = {
    "none": {"num_workers": 0},
    "two": {"num_workers": 2},
    "persistent": {"num_workers": 2, "persistent_workers": True},
    # Persistent, since each start takes seconds.
    "spawn": {"num_workers": 1, "multiprocessing_context": "spawn", "persistent_workers": True},
}


def nodes(**options: Any) -> Any:
    return NeighborLoader(random_data(), [4, 3], batch_size=25, seed=11, **options)


def links(**options: Any) -> Any:
    loader: Any = LinkNeighborLoader
    return loader(random_data(), [3, 2], batch_size=125, seed=11, neg_sampling="binary", **options)


def end(loader: Any) -> None:
    """Ends persistent workers now; the collector does it too, but waits 5 s for each."""
    loader._iterator = None


@pytest.mark.parametrize(
    ("make", "workers", "filter_per_worker"),
    [
        (nodes, "none", True),
        (nodes, "two", True),
        (nodes, "persistent", False),
        (nodes, "spawn", None),
        (links, "two", True),
        (links, "two", False),
    ],
)
def test_equal_batches_for_every_kind_of_worker(
    make: Any, workers: str, filter_per_worker: Any
) -> None:
    """The parent has sampled before, and its workers, those that live on too, see set_epoch."""
    expected = make(filter_per_worker=False)
    loader = make(filter_per_worker=filter_per_worker, **WORKERS[workers])
    epochs = []
    for epoch in range(2):
        for each in (loader, expected):
            each.set_epoch(epoch)
        epochs.append([content(batch) for batch in expected])
        assert [content(batch) for batch in loader] == epochs[-1]
    end(loader)
    assert epochs[0] != epochs[1]


@pytest.mark.parametrize("workers", ["none", "two", "persistent"])
def test_nothing_repeats_without_set_epoch(workers: str) -> None:
    """The same seeds in every batch of every epoch, and no batch comes twice."""
    loader = nodes(input_nodes=torch.arange(25).repeat(3), **WORKERS[workers])
    drawn = {str(content(batch)["e_id"]) for _ in range(2) for batch in loader}
    end(loader)
    assert len(drawn) == 6


@pytest.mark.parametrize("workers", ["none", "two"])
def test_torchs_seed_repeats_a_run(workers: str) -> None:
    def run() -> list[Any]:
        torch.manual_seed(3)
        data = random_data()
        loader = NeighborLoader(data, [4, 3], batch_size=25, shuffle=True, **WORKERS[workers])
        return [content(batch) for _ in range(2) for batch in loader]

    assert run() == run()


def test_pickled_samplers_are_independent() -> None:
    data = random_data()
    sampler = PGSampler(data, [4, 3], seed=1)
    sampler.set_epoch(5)
    copy = pickle.loads(pickle.dumps(sampler))
    assert repr(copy) == repr(sampler)

    def batch(each: Any) -> Any:
        return content(NeighborLoader(data, [], neighbor_sampler=each)([1, 2, 3]))

    assert batch(copy) == batch(sampler)
    copy.set_epoch(6)
    assert batch(copy) != batch(sampler)


@pytest.mark.parametrize("workers", ["none", "two"])
def test_an_error_reaches_the_loop(workers: str) -> None:
    data = random_data()
    # PyG's own loader, whose nodes only the sampler checks.
    loader = NodeLoader(data, PGSampler(data, [4]), torch.tensor([1, 999]), **WORKERS[workers])
    text = ""
    # Not by pytest.raises, which keeps the iterator: see `end`.
    try:
        list(loader)
    except IndexError as error:
        text = str(error)
    assert "999" in text


def test_leaving_a_loop_with_workers_early() -> None:
    loader = nodes(num_workers=2)
    first = [next(iter(loader)).input_id.tolist() for _ in range(2)]
    assert first == [list(range(25))] * 2


def test_pickling_counts_nothing() -> None:
    """A loader without an epoch has the batches that it would have had, pickled before or not."""

    def made(pickled: int) -> list[Any]:
        torch.manual_seed(3)
        loader = nodes()
        seeds = torch.arange(9)
        sampler = loader.node_sampler
        batches = []
        for _ in range(2):
            for _ in range(pickled):
                pickle.dumps(sampler)
            batches.append(sampler.sample_from_nodes(NodeSamplerInput(None, seeds)).node)
        return batches

    plain, pickled = made(0), made(3)
    assert not torch.equal(plain[0], plain[1])
    assert all(torch.equal(x, y) for x, y in zip(plain, pickled, strict=True))
