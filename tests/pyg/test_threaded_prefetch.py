"""``prefetch=`` of NeighborLoader and LinkNeighborLoader: the same batches, ahead in a thread."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

import pytest
import torch
from pyg_reference import check_errors_in_their_turn, random_data, stored
from torch_geometric.data import HeteroData
from torch_geometric.sampler import BaseSampler, NegativeSampling

from pygsampler.pyg import LinkNeighborLoader, NeighborLoader, PGSampler, threaded_prefetch


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
        pairs = [(stored(next(one)), stored(next(other))) for _ in range(3)]
        rest = [stored(batch) for batch in one]
        del other
        of.set_epoch(2)
        made.append((pairs[0][0], rest[-1][0].keys(), [stored(batch) for batch in of]))
        assert len(rest) == 4
    if seed is not None:
        # Of two passes at once without an epoch the calls are counted together.
        assert all(each[2] == made[0][2] for each in made)
    torch.manual_seed(5)
    alone = [stored(batch) for batch in loader(data, 0)]
    torch.manual_seed(5)
    assert [stored(batch) for batch in loader(data, 2)] == alone


def assert_no_thread_stays() -> None:
    for thread in threading.enumerate():
        if thread.name.startswith("pygsampler"):
            thread.join(20)
            assert not thread.is_alive()


def test_a_pass_that_is_left_joins_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """The collector may end one while Python notes that a thread starts: who joins then hangs."""
    monkeypatch.setattr(threaded_prefetch, "_PATIENCE", 0.01)
    inside, told = threading.Event(), threading.Event()

    def sample(places: Any) -> Any:
        inside.set()
        assert told.wait(10)
        return places

    batches = iter(threaded_prefetch.ThreadedPrefetch([[0], [1]], 1, sample))
    first = next(batches)
    assert inside.wait(20)
    del batches
    assert not first.done()
    told.set()
    assert first.result(20) == [0]
    assert_no_thread_stays()


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
    assert_no_thread_stays()
    list(of)


def test_errors_come_in_their_turn() -> None:
    check_errors_in_their_turn(loader(data_of(False), 3))


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
    with pytest.raises(ValueError, match="prefetch: expected 0 with a neighbor_sampler that is"):
        LinkNeighborLoader(data, [2], neighbor_sampler=Other(), prefetch=1)
    with pytest.raises(ValueError, match="prefetch: expected 0 with num_workers"):
        LinkNeighborLoader(data, [2], prefetch=1, num_workers=1)
    assert len(list(loader(data, 1, neighbor_sampler=PGSampler(data, [2])))) == 7


def links(data: Any, prefetch: int, **options: Any) -> Any:
    """A loader of the first 250 edges of ``data``, or of those between its two types."""
    edges: Any = random_data(200, 250, seed=2).edge_index
    if isinstance(data, HeteroData):
        edges = options.pop("kind", ("a", "to", "a")), edges
    known = {"batch_size": 60, "shuffle": True, **options}
    return LinkNeighborLoader(data, [3, 2], edges, prefetch=prefetch, **known)


def with_two_types() -> Any:
    data = data_of(True)
    plain = random_data(300, 900, seed=4)
    data["b"].x = plain.x
    data["b", "of", "a"].edge_index = plain.edge_index
    return data


WEIGHT = torch.arange(300.0)
LINKS = {
    "plain": {},
    "ratio": {"neg_sampling_ratio": 1.5, "edge_label": torch.arange(250) % 3},
    "binary": {"neg_sampling": NegativeSampling("binary", 2, dst_weight=WEIGHT)},
    "triplet": {"neg_sampling": NegativeSampling("triplet", 3), "disjoint": True},
    "own": {"neg_sampling": "binary", "filter_per_worker": True, "edge_weights": "ht"},
    "labor": {"neg_sampling": "triplet", "labor": "poisson"},
    "batches": {
        "neg_sampling": "binary",
        "batch_sampler": [[3, 3, 7], torch.tensor([1, 2]), range(40, 90)],
        "batch_size": 1,
        "shuffle": None,
    },
    "time": {
        "time_attr": "when",
        "edge_label_time": torch.arange(250),
        "neg_sampling": NegativeSampling("binary", 1),
        "temporal_strategy": "last",
    },
}


@pytest.mark.parametrize("of", LINKS)
@pytest.mark.parametrize("types", [0, 1, 2])
def test_the_same_links(of: str, types: int) -> None:
    """Of each kind of negatives, whatever the loop draws of torch's generator meanwhile."""
    data = with_two_types() if types else data_of(False)
    options = dict(LINKS[of])
    if types == 2:
        options["kind"] = "b", "likes", "a"
    if of == "time":
        for store in data.node_stores:
            store.when = torch.arange(300) * 251 % 300
    made, drawn, after = [], [], []
    for prefetch in (0, 1, 20):
        torch.manual_seed(5)
        loader, batches = links(data, prefetch, seed=3, **options), []
        loader.set_epoch(1)
        of_loop = []
        for batch in loader:
            batches.append(stored(batch))
            of_loop.append(torch.rand(3).tolist())
        made.append(batches)
        drawn.append(of_loop)
        after.append([stored(batch) for batch in loader])
    assert len(made[0]) == (3 if of == "batches" else 5)
    assert made[1] == made[2] == made[0]
    # The same epoch again, in another order of the links.
    assert after[1] == after[2] == after[0]
    assert drawn[1] == drawn[2] == drawn[0]


def test_links_are_ahead_in_a_thread_that_ends() -> None:
    loader = links(data_of(False), 2, neg_sampling="binary")
    sampled, plain = [], loader.link_sampler.sample_from_edges

    def watched(*given: Any, **named: Any) -> Any:
        sampled.append(threading.current_thread().name)
        return plain(*given, **named)

    loader.link_sampler.sample_from_edges = watched
    for _ in loader:
        break
    assert 1 <= len(sampled) <= 3
    assert all(name.startswith("pygsampler") for name in sampled)
    assert_no_thread_stays()


@pytest.mark.parametrize("where", ["transform", "sampler"])
def test_interrupted(where: str) -> None:
    """Ctrl-C in the loop, and while it waits for the thread: nothing stays behind."""
    loader = links(data_of(False), 2, seed=1, neg_sampling="binary")
    expected = [stored(batch) for batch in links(data_of(False), 0, seed=1, neg_sampling="binary")]
    plain, calls = loader.link_sampler.sample_from_edges, []

    def sampled(*given: Any, **named: Any) -> Any:
        calls.append(given)
        if where == "sampler" and len(calls) == 1:
            # Until then the loop waits for this thread, which the pool has noted.
            time.sleep(0.1)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.1)
        return plain(*given, **named)

    def pressed(batch: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return batch

    loader.link_sampler.sample_from_edges = sampled
    if where == "transform":
        loader.transform = pressed
    with pytest.raises(KeyboardInterrupt):
        list(loader)
    assert_no_thread_stays()
    assert 1 <= len(calls) <= 3
    loader.transform = None
    again = [stored(batch) for batch in loader]
    assert [list(b[0]) for b in again] == [list(b[0]) for b in expected]


def test_a_transform_that_fails() -> None:
    loader = links(data_of(False), 3)
    seen = []

    def failing(batch: Any) -> Any:
        seen.append(batch)
        if len(seen) == 2:
            raise RuntimeError("the second")
        return batch

    loader.transform = failing
    batches = iter(loader)
    next(batches)
    with pytest.raises(RuntimeError, match="the second"):
        next(batches)
    # As without anything ahead, the loop may go on.
    assert len(list(batches)) == 3


@pytest.mark.parametrize("prefetch", [0, 1, 4])
def test_a_sampler_of_batches_that_fails_in_its_turn(prefetch: int) -> None:
    def places() -> Any:
        yield [1, 2]
        yield [3]
        raise RuntimeError("no third")

    class Batches:
        def __iter__(self) -> Any:
            return places()

    loader = links(data_of(False), prefetch, batch_sampler=Batches(), batch_size=1, shuffle=None)
    batches = iter(loader)
    assert [len(next(batches).input_id) for _ in range(2)] == [2, 1]
    with pytest.raises(RuntimeError, match="no third"):
        next(batches)


def test_negatives_by_a_rule_of_ones_own() -> None:
    """They are drawn by torch's generator, so not beside a loop; without that as ever."""

    class Own(NegativeSampling):
        def sample(self, num_samples: int, *of: Any, **named: Any) -> torch.Tensor:
            return torch.randint(7, (num_samples,))

    data = data_of(False)
    with pytest.raises(ValueError, match="prefetch: expected 0 with a neg_sampling whose sample"):
        links(data, 1, neg_sampling=Own("binary"))
    loader = links(data, 0, neg_sampling=Own("binary"), seed=1, shuffle=False)
    made = []
    for _ in range(2):
        loader.set_epoch(4)
        batch = next(iter(loader))
        made.append(batch.n_id[batch.edge_label_index[:, 60:]].tolist())
    assert made[0] == made[1]
    assert max(map(max, made[0])) < 7


def test_weights_of_negatives_for_other_nodes() -> None:
    loader = links(data_of(False), 0, neg_sampling=NegativeSampling("binary", 1, WEIGHT[:9]))
    with pytest.raises(ValueError, match=r"neg_sampling.src_weight: expected a number for each of"):
        next(iter(loader))
