"""Batches dealt out to ranks, and passes that go on elsewhere."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pytest
import torch

import pygsampler as pgs
from pygsampler import samplers
from pygsampler.torch import DataLoader, LinkLoader, NegativeSampling
from tests.support.assertions import content, contents

NODES = 120
random = np.random.default_rng(5)
GRAPH = pgs.Graph.from_coo(*random.integers(0, NODES, (2, 900)), num_nodes=NODES)


def loader(world_size: int = 1, rank: int = 0, **options: Any) -> DataLoader:
    about: dict[str, Any] = {"batch_size": 8, "shuffle": True, "seed": 3, **options}
    return DataLoader(GRAPH, np.arange(99), [3, 2], rank=rank, world_size=world_size, **about)


def number_of(batch: dict[str, Any]) -> tuple[int, int]:
    return batch[".epoch"], batch[".batch"]


def taken(of: Any, count: int) -> list[tuple[Any, ...]]:
    batches = iter(of)
    found = [content(next(batches)) for _ in range(count)]
    batches.close()
    return found


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("world_size", range(1, 8))
def test_batches_of_all_ranks_are_those_of_one(world_size: int, drop_last: bool) -> None:
    for seeds in (99, 96, 3, 0):
        options: dict[str, Any] = {"batch_size": 8, "drop_last": drop_last, "seed": 3}
        one = DataLoader(GRAPH, np.arange(seeds), [3, 2], shuffle=True, **options)
        options |= {"shard_by": "batches", "shuffle": True, "world_size": world_size}
        ranks = [
            DataLoader(GRAPH, np.arange(seeds), [3, 2], rank=rank, **options)
            for rank in range(world_size)
        ]
        for _ in range(2):
            found = [contents(each) for each in ranks]
            assert [len(each) for each in ranks] == [len(batches) for batches in found]
            assert max(map(len, found)) - min(map(len, found)) <= 1
            together = [
                batch
                for i in range(max(map(len, found)))
                for batches in found
                for batch in batches[i : i + 1]
            ]
            assert together == contents(one)


@pytest.mark.parametrize("prefetch", [0, 1, 5])
def test_a_pass_goes_on_after_any_step(prefetch: int) -> None:
    for deal in ("seeds", "batches"):
        whole = loader(2, 1, shard_by=deal, prefetch=prefetch)
        first, second = contents(whole), contents(whole)
        for step in range(len(first) + 1):
            left = loader(2, 1, shard_by=deal, prefetch=prefetch)
            assert taken(left, step) == first[:step]
            state = json.loads(json.dumps(left.state_dict()))
            # Of another process: its seed is the state's.
            other = loader(2, 1, shard_by=deal, prefetch=prefetch, seed=8)
            other.load_state_dict(state)
            assert other.state_dict() == state
            found = first[:step]
            while len(found) < len(first) + len(second):
                found += contents(other)
            assert found == first + second


@pytest.mark.parametrize("step", range(6))
def test_other_numbers_of_ranks_go_on(step: int) -> None:
    every = contents(loader())
    state: Any = None
    done: list[Any] = []
    for rank in range(2):
        each = loader(2, rank, shard_by="batches")
        done += taken(each, step)
        assert state in (None, each.state_dict())
        state = each.state_dict()
    for world_size in (1, 3, 5):
        rest = []
        for rank in range(world_size):
            each = loader(world_size, rank, shard_by="batches")
            each.load_state_dict(state)
            rest += contents(each)
        assert sorted(done + rest, key=number_of) == sorted(every, key=number_of)


def test_start_leaves_batches_out_once() -> None:
    whole = loader()
    late = loader(skip_batches=4)
    assert late.state_dict()["start"] == 4
    assert contents(late) == contents(whole)[4:]
    assert contents(late) == contents(whole)
    beyond = loader(skip_batches=400)
    assert contents(beyond) == []
    assert len(contents(beyond)) == len(beyond)


def test_links_go_on() -> None:
    def links(**options: Any) -> LinkLoader:
        return LinkLoader(
            GRAPH, np.arange(200), [3], batch_size=32, negative_sampling=NegativeSampling(), seed=2,
            shuffle=True, **options,
        )  # fmt: skip

    def of(batch: Any) -> Any:
        return batch.input_id.tolist(), batch.edge_label_index.tolist(), content(batch.minibatch)

    every = [of(batch) for batch in links()]
    parts = [
        [of(batch) for batch in links(rank=rank, world_size=2, shard_by="batches")]
        for rank in (0, 1)
    ]
    assert parts == [every[::2], every[1::2]]
    left = links()
    batches = iter(left)
    for _ in range(3):
        next(batches)
    other = links()
    other.load_state_dict(left.state_dict())
    batches.close()
    assert [of(batch) for batch in other] == every[3:]


def test_an_epoch_that_is_chosen_begins_at_its_beginning() -> None:
    left = loader()
    taken(left, 2)
    other = loader()
    other.load_state_dict(left.state_dict())
    other.set_epoch(5)
    assert len(contents(other)) == len(other)
    other.load_state_dict(left.state_dict())
    other.set_epoch(0)
    assert len(contents(other)) == len(other) - 2
    copied = pickle.loads(pickle.dumps(left))
    assert copied.state_dict()["start"] == 0
    assert next(iter(copied)).epoch == 1


def test_another_sampler_seed_is_the_states() -> None:
    sampler = pgs.PGSampler([3, 2], seed=7)
    left = DataLoader(GRAPH, torch.arange(50), sampler, batch_size=8, seed=1, shuffle=True)
    first = contents(left)
    left.set_epoch(0)
    taken(left, 3)
    other = DataLoader(GRAPH, torch.arange(50), [3, 2], batch_size=8, shuffle=True)
    other.load_state_dict(left.state_dict())
    assert contents(other) == first[3:]


def test_mistakes() -> None:
    with pytest.raises(ValueError, match="shard_by: expected one of"):
        loader(shard_by="cards")
    with pytest.raises(ValueError, match="skip_batches: expected an integer"):
        loader(skip_batches=-1)
    state = loader(2, 0).state_dict()
    for name, of in (
        ("batch_size", loader(2, 0, batch_size=9)),
        ("shuffle", loader(2, 0, shuffle=False)),
        ("drop_last", loader(2, 0, drop_last=True)),
        ("shard_by", loader(2, 0, shard_by="batches")),
        ("world_size", loader(3, 0)),
    ):
        with pytest.raises(ValueError, match=f"state: expected {name}="):
            of.load_state_dict(state)
    another = DataLoader(GRAPH, np.arange(99), [3, 3], batch_size=8, shuffle=True, seed=3)
    with pytest.raises(ValueError, match=r"expected one of PGSampler.*, got another sampler's"):
        another.load_state_dict(loader().state_dict())
    # Plans of several parts: of the same program, with other clusters.
    nodes = np.arange(GRAPH.num_nodes)
    one, other = (
        DataLoader(GRAPH, [0, 1], samplers.cluster_gcn_parts(part), batch_size=1)
        for part in (nodes % 2, nodes // (GRAPH.num_nodes // 2 + 1))
    )
    with pytest.raises(ValueError, match=r"expected one of cluster_gcn.*, got another sampler's"):
        other.load_state_dict(one.state_dict())
    with pytest.raises(ValueError, match="version 1, got 2"):
        loader(2, 0).load_state_dict({**state, "version": 2})
    for wrong in ({}, None, {"epoch": 1}):
        with pytest.raises(TypeError, match="state: expected what state_dict"):
            loader().load_state_dict(wrong)
