"""``NeighborLoader(prefetch=)``: the same batches, sampled ahead in a thread."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch
from pyg_reference import random_data
from torch_geometric.data import HeteroData
from torch_geometric.sampler import BaseSampler

from pygsampler.pyg import NeighborLoader, PGSampler


def data_of(hetero: bool) -> Any:
    plain = random_data(300, 2000)
    if not hetero:
        return plain
    data = HeteroData()
    data["a"].x = plain.x
    data["a", "to", "a"].edge_index = plain.edge_index
    data["a", "by", "a"].edge_index = plain.edge_index.flip(0)
    return data


def loader(data: Any, prefetch: int, **options: Any) -> Any:
    seeds = torch.arange(250)
    nodes = ("a", seeds) if isinstance(data, HeteroData) else seeds
    known = {"batch_size": 40, "shuffle": True, **options}
    return NeighborLoader(data, [3, 2], nodes, prefetch=prefetch, **known)


def content(batch: Any) -> list[Any]:
    stores = batch.stores
    return [{key: of.tolist() for key, of in s.items() if torch.is_tensor(of)} for s in stores]


@pytest.mark.parametrize("hetero", [False, True])
@pytest.mark.parametrize("seed", [None, 3])
def test_the_same_batches(hetero: bool, seed: int | None) -> None:
    data = data_of(hetero)
    made = []
    for prefetch in (0, 1, 3, 20):
        torch.manual_seed(5)
        of = loader(data, prefetch, seed=seed)
        assert len(of) == 7
        # Two passes at once, and one that is not read to its end.
        one, other = iter(of), iter(of)
        pairs = [(content(next(one)), content(next(other))) for _ in range(3)]
        rest = [content(batch) for batch in one]
        del other
        of.set_epoch(2)
        made.append((pairs[0][0], rest[-1][0].keys(), [content(batch) for batch in of]))
        assert len(rest) == 4
    if seed is not None:
        # Of two passes at once without an epoch the calls are counted together.
        assert all(each[2] == made[0][2] for each in made)
    torch.manual_seed(5)
    alone = [content(batch) for batch in loader(data, 0)]
    torch.manual_seed(5)
    assert [content(batch) for batch in loader(data, 2)] == alone


def test_it_is_ahead_in_a_thread_that_ends() -> None:
    data = data_of(True)
    of = loader(data, 2)
    sampled = []
    plain = of.node_sampler.sample_from_nodes

    def watched(index: Any) -> Any:
        sampled.append(threading.current_thread().name)
        return plain(index)

    of.node_sampler.sample_from_nodes = watched
    batches = iter(of)
    next(batches)
    del batches
    assert 1 <= len(sampled) <= 3
    assert all(name.startswith("pygsampler") for name in sampled)
    assert not any(t.name.startswith("pygsampler") for t in threading.enumerate())
    list(of)


def test_errors_come_in_their_turn() -> None:
    of = loader(data_of(False), 3)
    plain, calls = of.node_sampler.sample_from_nodes, []

    def failing(index: Any) -> Any:
        calls.append(index)
        if len(calls) == 2:
            raise RuntimeError("the second")
        return plain(index)

    of.node_sampler.sample_from_nodes = failing
    batches = iter(of)
    next(batches)
    with pytest.raises(RuntimeError, match="the second"):
        next(batches)


def test_wrong_arguments() -> None:
    data = data_of(False)
    with pytest.raises(ValueError, match="prefetch: expected 0 with num_workers"):
        loader(data, 1, num_workers=1)
    with pytest.raises(ValueError, match="prefetch: expected"):
        loader(data, -1)

    class Other(BaseSampler):
        def sample_from_nodes(self, index: Any, **kwargs: Any) -> Any:
            raise NotImplementedError

        sample_from_edges = sample_from_nodes

        @property
        def edge_permutation(self) -> None:
            return None

    with pytest.raises(ValueError, match="prefetch: expected 0 with a neighbor_sampler that is"):
        loader(data, 1, neighbor_sampler=Other())
    assert len(list(loader(data, 1, neighbor_sampler=PGSampler(data, [2])))) == 7
