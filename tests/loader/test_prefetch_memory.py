"""Budgets of bytes for batches on their way: of loaders and of ``sample_many``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import pygsampler as pgs
import pygsampler.torch as pgt
from pygsampler._batch.minibatch import result_bytes

NODES, BATCH, STEPS = 3000, 32, 24
RNG = np.random.default_rng(8)
GRAPH = pgs.Graph.from_coo(*RNG.integers(0, NODES, (2, 40000)), num_nodes=NODES)
ROWS = torch.from_numpy(RNG.normal(size=(NODES, 30)).astype(np.float32))
SEEDS = RNG.permutation(NODES)[: BATCH * STEPS]


class Counted(pgs.PGSampler):
    """Counts the batches that it begins, in all copies."""

    begun: list[int]

    def launch(self, *arguments: Any, **options: Any) -> Any:
        Counted.begun.append(options["batch"])
        return super().launch(*arguments, **options)


@pytest.fixture(autouse=True)
def _none_begun() -> None:
    Counted.begun = []


def passed(features: bool, **options: Any) -> tuple[list[Any], list[int]]:
    """Returns the batches of an epoch, and how many were ahead of each."""
    rows = {"features": {"x": ROWS}} if features else {}
    loader = pgt.DataLoader(
        GRAPH, SEEDS, Counted([8, 4], seed=2), batch_size=BATCH, **options, **rows
    )
    batches, ahead = [], []
    for batch in loader:
        batches.append(batch)
        ahead.append(len(Counted.begun) - len(batches))
    return batches, ahead


@pytest.mark.parametrize("features", [False, True])
def test_as_many_batches_are_ahead_as_a_budget_has_room_for(features: bool) -> None:
    plain, most = passed(features, prefetch=6)
    assert max(most) == 6
    sampler = pgs.PGSampler([8, 4], seed=2)
    sizes = []
    for number in range(STEPS):
        seeds = SEEDS[number * BATCH : (number + 1) * BATCH]
        batch = sampler.sample(GRAPH, seeds, epoch=0, batch=number)
        rows = len(batch.input_nodes) * ROWS[0].nbytes if features else 0
        sizes.append(result_bytes(batch) + rows)
    size = max(sizes)
    for room, expected in ((1, 1), (2, 1), (3, 2), (5, 4), (50, 6)):
        Counted.begun = []
        batches, ahead = passed(features, prefetch=6, prefetch_memory=int(size * (room + 0.3)))
        for mine, theirs in zip(batches, plain, strict=True):
            assert torch.equal(mine.input_nodes, theirs.input_nodes)
        # Until the largest batch was there, one more may have had room.
        assert max(ahead[STEPS // 2 :]) == expected <= max(ahead) <= min(expected + 1, 6)


def test_a_budget_stands_in_for_free_memory_with_auto() -> None:
    plain, _ = passed(True, prefetch=2)
    size = max(map(result_bytes, plain))
    Counted.begun = []
    _, ahead = passed(True, prefetch="auto", prefetch_memory=int(2.5 * size))
    assert ahead[0] == 1 and max(ahead) <= 2


def test_links_have_a_budget_too() -> None:
    loader = pgt.LinkLoader(
        GRAPH,
        tuple(RNG.integers(0, NODES, (2, 400))),
        Counted([4], seed=2),
        batch_size=20,
        exclude=None,
        prefetch=5,
        prefetch_memory=1,
    )
    handed = 0
    for _ in loader:
        handed += 1
        assert len(Counted.begun) - handed <= 1
    assert handed == 20
    assert "prefetch: 5, as far as " in loader.explain()


def test_sample_many_within_a_budget() -> None:
    sampler = Counted([8, 4], seed=2)
    many = [SEEDS[i : i + BATCH] for i in range(0, len(SEEDS), BATCH)]
    plain = sampler.sample_many(GRAPH, many, epoch=0, batch=0)
    size = max(map(result_bytes, plain))
    made: list[int] = []

    class Waiting:
        """A job that notes how many were begun when its result was asked for."""

        def __init__(self, job: Any) -> None:
            self._job = job

        def result(self) -> Any:
            made.append(len(Counted.begun) - len(made))
            return self._job.result()

        def cancel(self) -> None:
            self._job.cancel()

    class Noted(Counted):
        def launch(self, *arguments: Any, **options: Any) -> Any:
            return Waiting(super().launch(*arguments, **options))

    for room in (1, 3, 100):
        made, Counted.begun = [], []
        found = Noted([8, 4], seed=2).sample_many(
            GRAPH, many, epoch=0, batch=0, memory=int((room + 0.5) * size)
        )
        for mine, theirs in zip(found, plain, strict=True):
            assert mine.input_nodes.tolist() == theirs.input_nodes.tolist()
        assert made[0] == 1 and min(room, STEPS - 1) <= max(made) <= room + 1
    with pytest.raises(IndexError, match=r"^seeds\[5\]\[0\]: .* got 1073741824"):
        sampler.sample_many(GRAPH, [*many[:5], [1 << 30]], memory=2 * size)
    walks = pgs.RandomWalk(4, seed=1)
    several = walks.sample_many(GRAPH, many[:3], epoch=0, batch=0, memory=1)
    assert [w.nodes.tolist() for w in several] == [
        w.nodes.tolist() for w in walks.sample_many(GRAPH, many[:3], epoch=0, batch=0)
    ]


def test_budgets_that_cannot_be() -> None:
    def loader(**options: Any) -> Any:
        return pgt.DataLoader(GRAPH, SEEDS, [4], batch_size=BATCH, **options)

    for options, kind, message in (
        ({"prefetch_memory": 0}, ValueError, "prefetch_memory: expected an integer >= 1, got 0"),
        ({"prefetch_memory": "1 GB"}, TypeError, "prefetch_memory: expected an integer >= 1"),
        ({"prefetch_memory": 9, "prefetch": (1, 4)}, ValueError, "None with a pair of marks"),
    ):
        with pytest.raises(kind, match=message):
            loader(**options)
    own = loader(prefetch_memory=1 << 20)
    with pytest.raises(ValueError, match="prefetch=4 is the most that are ahead"):
        own.prefetch = (1, 4)
    assert own.prefetch == 4
    with pytest.raises(AttributeError, match="prefetch_memory: expected no assignment"):
        own.prefetch_memory = 5
    with pytest.raises(ValueError, match="memory: expected an integer >= 1, got 0"):
        pgs.PGSampler([2]).sample_many(GRAPH, [[1]], memory=0)
