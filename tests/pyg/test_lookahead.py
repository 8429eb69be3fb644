"""A batch that is sampled while the one before is put together: but by the time nobody can tell."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from pyg_reference import check_errors_in_their_turn, random_data, stored
from torch.utils.data import BatchSampler, DistributedSampler, SequentialSampler
from torch_geometric.data import HeteroData
from torch_geometric.sampler import NegativeSampling

import pygsampler as pgs
from pygsampler.pyg import (
    HGTLoader,
    LinkNeighborLoader,
    NeighborLoader,
    PGSampler,
    negative_sampling,
)
from pygsampler.pyg import lookahead as module
from pygsampler.pyg import lookahead_sampler as faces

SIZE, BATCHES = 40, 7


@pytest.fixture(autouse=True)
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Has batches begun however little they take; of each that was, whether it was asked for."""
    monkeypatch.setattr(faces, "LEAST", 0)
    found: list[bool] = []
    plain = module.LookaheadBatch.take

    def watched(self: Any, *of: Any) -> bool:
        found.append(plain(self, *of))
        return found[-1]

    monkeypatch.setattr(module.LookaheadBatch, "take", watched)
    return found


@pytest.fixture(autouse=True)
def none_stays() -> Iterator[None]:
    """No job of the engine is left."""
    before = pgs.engine.memory_stats()["jobs"]
    yield
    gc.collect()
    assert pgs.engine.memory_stats()["jobs"] == before


def data_of(hetero: bool) -> Any:
    plain = random_data(300, 2000)
    plain.when = torch.arange(300) * 251 % 300
    if not hetero:
        return plain
    data = HeteroData()
    data["a"].x, data["a"].when = plain.x, plain.when
    data["a", "to", "a"].edge_index = plain.edge_index
    data["a", "by", "a"].edge_index = plain.edge_index.flip(0)
    return data


def nodes(hetero: bool, prefetch: int | None, **options: Any) -> Any:
    seeds: Any = torch.arange(250)
    known = {"batch_size": SIZE, "shuffle": True, **options}
    of = ("a", seeds) if hetero else seeds
    return NeighborLoader(data_of(hetero), [3, 2], of, prefetch=prefetch, **known)


def links(hetero: bool, prefetch: int | None, **options: Any) -> Any:
    edges: Any = random_data(200, 250, seed=2).edge_index
    known = {"batch_size": SIZE, "shuffle": True, "neg_sampling": "binary", **options}
    of = (("a", "to", "a"), edges) if hetero else edges
    return LinkNeighborLoader(data_of(hetero), [3, 2], of, prefetch=prefetch, **known)


def hgt(hetero: bool, prefetch: int | None, **options: Any) -> Any:
    known = {"batch_size": SIZE, "shuffle": True, **options}
    return HGTLoader(data_of(True), [8, 8], ("a", torch.arange(250)), prefetch=prefetch, **known)


KINDS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "nodes": (nodes, {}),
    "per worker": (nodes, {"filter_per_worker": False}),
    "induced": (nodes, {"subgraph_type": "induced", "disjoint": True}),
    "both ways": (nodes, {"subgraph_type": "bidirectional"}),
    "time": (nodes, {"time_attr": "when", "temporal_strategy": "last"}),
    "labor": (nodes, {"labor": "poisson", "edge_weights": "ht"}),
    "some": (nodes, {"shuffle": False, "drop_last": True}),
    "links": (links, {}),
    "triplets": (links, {"neg_sampling": "triplet", "disjoint": True}),
    "dated": (links, {"time_attr": "when", "edge_label_time": torch.arange(250) + 50}),
    "hgt": (hgt, {}),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("hetero", [False, True])
@pytest.mark.parametrize("seed", [None, 3])
def test_the_same_batches(kind: str, hetero: bool, seed: int | None, taken: list[bool]) -> None:
    """The loop draws by torch's generator, and finds what it finds without anything begun."""
    make, options = KINDS[kind]
    made = []
    for prefetch in (0, None):
        torch.manual_seed(5)
        of = make(hetero, prefetch, seed=seed, **options)
        found = []
        for epoch in (None, 4):
            of.set_epoch(epoch)
            for batch in of:
                found.append((stored(batch), torch.rand(2).tolist()))
        made.append((found, torch.get_rng_state().tolist()))
        if prefetch == 0:
            assert taken == []
    assert made[0] == made[1]
    batches = len(of)
    assert taken == [True] * 2 * (batches - 1)


@pytest.mark.parametrize("hetero", [False, True])
@pytest.mark.parametrize("mode", ["binary", "triplet"])
def test_negatives_are_drawn_once(
    hetero: bool, mode: str, monkeypatch: pytest.MonkeyPatch, taken: list[bool]
) -> None:
    """And again by weights that were changed meanwhile, or that torch does not watch."""
    draws: list[str] = []
    plain = negative_sampling.BatchNegativeSampling._draw

    def watched(self: Any, count: int, endpoint: str, of: Any) -> Any:
        draws.append(endpoint)
        return plain(self, count, endpoint, of)

    monkeypatch.setattr(negative_sampling.BatchNegativeSampling, "_draw", watched)
    ends = 2 if mode == "binary" else 1
    with torch.inference_mode():
        unwatched = torch.rand(300)

    def weighted() -> Any:
        of = torch.rand(300, generator=torch.Generator().manual_seed(1))
        return NegativeSampling(mode, 2, dst_weight=of)

    for law, written in (
        (NegativeSampling(mode, 2), None),
        (weighted(), None),
        (weighted(), lambda law: law.dst_weight.mul_(torch.rand(300))),
        (weighted(), lambda law: setattr(law, "dst_weight", torch.rand(300))),
        (NegativeSampling(mode, 2, dst_weight=unwatched), None),
    ):
        made, start = [], copy.deepcopy(law)
        for prefetch in (0, None):
            torch.manual_seed(3)
            draws.clear()
            taken.clear()
            # A copy would be watched.
            own = law if law.dst_weight is unwatched else copy.deepcopy(start)
            of, found = links(hetero, prefetch, neg_sampling=own, seed=1), []
            for batch in of:
                found.append(stored(batch))
                if written is not None:
                    written(of.neg_sampling)
            made.append(found)
            again = written is not None or law.dst_weight is unwatched
            # None is begun after two that nobody asked for.
            begun = min(len(of) - 1, 99 if written is None else 2) if prefetch is None else 0
            assert len(draws) == ends * (len(of) + (begun if again else 0))
            # What was drawn by other weights is another batch.
            assert taken == [written is None] * begun
        assert made[0] == made[1]


@pytest.mark.parametrize("hetero", [False, True])
def test_what_is_assigned_counts_from_the_next_batch(hetero: bool) -> None:
    def changed(of: Any, place: int) -> None:
        sampler = of.node_sampler
        changes: list[Callable[[], Any]] = [
            lambda: setattr(sampler, "num_neighbors", [4, 4]),
            lambda: setattr(sampler, "replace", True),
            lambda: of.set_seed(9),
            lambda: of.set_epoch(2),
            lambda: setattr(sampler, "disjoint", True),
            lambda: of.set_epoch(None),
        ]
        changes[place]()

    made = []
    for prefetch in (0, None):
        torch.manual_seed(1)
        of, found = nodes(hetero, prefetch), []
        for place, batch in enumerate(of):
            found.append(stored(batch))
            if place < BATCHES - 1:
                changed(of, place)
        made.append(found)
    assert made[0] == made[1]
    assert len(made[0]) == BATCHES


def test_torchs_seed_within_a_pass() -> None:
    made = []
    for prefetch in (0, None):
        torch.manual_seed(1)
        found = []
        for place, batch in enumerate(nodes(False, prefetch)):
            found.append(stored(batch))
            if place in (1, 2):
                torch.manual_seed(7)
        made.append(found)
    assert made[0] == made[1]


def test_two_passes_at_once(taken: list[bool]) -> None:
    """Without an epoch their calls are counted together: what was begun is another batch then."""
    made = []
    for prefetch in (0, None):
        torch.manual_seed(1)
        of = nodes(True, prefetch, seed=3)
        one, other = iter(of), iter(of)
        made.append([(stored(next(one)), stored(next(other))) for _ in range(BATCHES)])
    assert made[0] == made[1]
    # Then no more is begun.
    assert taken == [False] * 4


@pytest.mark.parametrize("hetero", [False, True])
def test_a_pass_that_is_not_read_to_its_end(hetero: bool) -> None:
    of = nodes(hetero, None)
    before = pgs.engine.memory_stats()["live"]
    next(iter(of))
    held = iter(of)
    next(held)
    del held
    gc.collect()
    assert pgs.engine.memory_stats()["live"] == before
    assert len(list(of)) == BATCHES


def test_samplers_of_seeds_are_asked_as_before() -> None:
    """One that is not torch's own, or that draws by a generator of the user's, may see the loop."""
    asked: list[int] = []

    class Seeds(SequentialSampler):
        def __iter__(self) -> Any:
            for place in range(250):
                asked.append(place)
                yield place

    class Batches(BatchSampler):
        def __iter__(self) -> Any:
            for places in super().__iter__():
                asked.extend(places)
                yield places

    places = range(250)
    batched = Batches(SequentialSampler(places), SIZE, False)
    for options in (
        {"sampler": Seeds(places), "shuffle": None},
        {"batch_sampler": batched, "batch_size": 1, "shuffle": None},
    ):
        asked.clear()
        batches = iter(nodes(False, None, **options))
        next(batches)
        assert len(asked) == SIZE
    states = []
    for prefetch in (0, None):
        own = torch.Generator().manual_seed(3)
        of = nodes(False, prefetch, generator=own)
        states.append([own.get_state().tolist() for _ in of])
    assert states[0] == states[1]


def test_seeds_of_ranks(taken: list[bool]) -> None:
    made = []
    for prefetch in (0, None):
        seeds = DistributedSampler(range(250), 2, 1)  # type: ignore[arg-type]
        of = nodes(False, prefetch, sampler=seeds, shuffle=None, seed=1)
        of.set_epoch(0)
        made.append([stored(batch) for batch in of])
    assert made[0] == made[1]
    assert taken == [True] * 3


def test_samplers_of_others_are_asked_as_before() -> None:
    """One that is not ours may count its calls."""
    calls = []

    class Counting(pgs.PGSampler):
        def launch(self, *given: Any, **named: Any) -> Any:
            calls.append(given)
            return super().launch(*given, **named)

    from pygsampler.pyg import Sampler

    data = data_of(False)
    sampler = Sampler(data, Counting([2, 3], seed=1))
    batches = iter(nodes(False, None, neighbor_sampler=sampler))
    for count in range(1, 4):
        next(batches)
        assert len(calls) == count


@pytest.mark.parametrize("hetero", [False, True])
def test_errors_come_in_their_turn(hetero: bool) -> None:
    of = nodes(hetero, None, shuffle=False)
    of.input_data.node[SIZE + 3] = 10**6
    batches = iter(of)
    next(batches)
    with pytest.raises(IndexError):
        next(batches)
    # Or it is another's, that is too short.
    of = nodes(hetero, None, shuffle=False)
    batches = iter(of)
    next(batches)
    of.input_data.node = of.input_data.node[: 2 * SIZE]
    next(batches)
    with pytest.raises(IndexError):
        next(batches)
    data = data_of(hetero)
    graph = pgs.Graph.from_pyg(data)
    if not hetero:
        batches = iter(nodes(False, None, neighbor_sampler=PGSampler(graph, [3, 2])))
        next(batches)
        graph.close()
        with pytest.raises(pgs.errors.ClosedError):
            next(batches)


def test_a_sampler_that_fails() -> None:
    check_errors_in_their_turn(nodes(False, None))


def test_interrupted() -> None:
    """Ctrl-C in the loop leaves nothing behind."""
    of = nodes(False, None)

    def pressed(batch: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return batch

    of.transform = pressed
    with pytest.raises(KeyboardInterrupt):
        list(of)
    of.transform = None
    assert len(list(of)) == BATCHES


@pytest.mark.parametrize("hetero", [False, True])
def test_copies_and_children(hetero: bool) -> None:
    """What was begun is its sampler's and its process's."""
    torch.manual_seed(1)
    expected = [stored(batch) for batch in nodes(hetero, 0, seed=2)]
    torch.manual_seed(1)
    of = nodes(hetero, None, seed=2)
    batches = iter(of)
    found = [stored(next(batches))]
    other = copy.copy(of.node_sampler)
    assert other._beginning is not of.node_sampler._beginning
    again = pickle.loads(pickle.dumps(of.node_sampler))
    assert again._beginning.begun is None
    child = os.fork()
    if not child:
        # Its engine is another one.
        rest = [stored(batch) for batch in batches]
        os._exit(0 if found + rest == expected else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert found + [stored(batch) for batch in batches] == expected


def test_small_batches_are_not_begun(monkeypatch: pytest.MonkeyPatch, taken: list[bool]) -> None:
    monkeypatch.setattr(faces, "LEAST", 10**6)
    assert len(list(nodes(True, None))) == BATCHES
    assert taken == []


def test_prefetch_of_hgt() -> None:
    with pytest.raises(ValueError, match="prefetch: expected 0 with num_workers"):
        hgt(True, 1, num_workers=1)
    torch.manual_seed(1)
    one = [stored(batch) for batch in hgt(True, 2, seed=1)]
    torch.manual_seed(1)
    assert one == [stored(batch) for batch in hgt(True, 0, seed=1)]
