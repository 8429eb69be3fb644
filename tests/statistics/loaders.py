"""The same for what a training loop sees: orders, batches, epochs, ranks and workers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

import pygsampler as pgs
from pygsampler._loader.epoch_state import EpochRun
from pygsampler._loader.node_seeds import NodeSeeds
from pygsampler._loader.shards import EpochShard
from pygsampler.torch import DataLoader
from tests.statistics import laws
from tests.statistics.laws import Positions
from tests.statistics.sources import Shape, alike, positions

SHAPE = Shape(3600, 4, 2)
# Seeds of the tests of orders; they are cut into ten batches.
SEEDS = 4000


class LoaderCase(NamedTuple):
    """``run(make, seed)``, where ``make`` makes loaders as ``pygsampler.torch.DataLoader`` does."""

    name: str
    run: Callable[[Any, int], float]


def _batches(make: Any, seeds: Any, seed: int, **options: Any) -> Iterator[Positions]:
    graph = alike(SHAPE.rows, SHAPE.degree)
    loader = make(graph, seeds, [SHAPE.fanout], batch_size=SHAPE.rows, seed=seed, **options)
    while True:
        for batch in loader:
            yield positions(batch.blocks[0], SHAPE)


def _independent(first: Positions, second: Positions) -> float:
    return laws.independent(first, second, SHAPE.degree, replace=False)


def _steps(make: Any, seed: int) -> float:
    """Two batches of one epoch that have the same seeds."""
    twice = torch.arange(SHAPE.rows).repeat(2)
    batches = _batches(make, twice, seed)
    return _independent(next(batches), next(batches))


def _epochs(make: Any, seed: int) -> float:
    batches = _batches(make, torch.arange(SHAPE.rows), seed)
    return _independent(next(batches), next(batches))


def _ranks(make: Any, seed: int) -> float:
    """Two of four ranks, all of which have the same seeds."""
    alike_for_all = torch.arange(SHAPE.rows).repeat(4)
    first, second = (
        next(_batches(make, alike_for_all, seed, rank=rank, world_size=4)) for rank in (1, 3)
    )
    return _independent(first, second)


def _order(make: Any, seed: int, epochs: int, count: int, ranks: int = 1) -> Positions:
    """Which batch each seed is in, [epochs, count]; batches of all ranks are numbered through."""
    found = np.zeros((epochs, count), dtype=np.int64)
    graph = alike(SEEDS, 1)
    for rank in range(ranks):
        loader = make(
            graph, torch.arange(count), [0], batch_size=count // 10, shuffle=True, seed=seed,
            rank=rank, world_size=ranks,
        )  # fmt: skip
        for epoch in range(epochs):
            for step, batch in enumerate(loader):
                found[epoch, np.asarray(batch.output_nodes)] = step * ranks + rank
    return found


def _places(make: Any, seed: int) -> float:
    """A seed's place in the list says nothing of its batch."""
    (found,) = _order(make, seed, 1, SEEDS)
    return laws.unrelated(np.arange(SEEDS) * 10 // SEEDS, found)


def _companions(make: Any, seed: int) -> float:
    """Neighbours in the list are no more often in one batch than others."""
    (found,) = _order(make, seed, 1, SEEDS)
    return laws.unrelated(found[::2], found[1::2])


def _orders(make: Any, seed: int) -> float:
    """The order of an epoch says nothing of the next one's."""
    first, second = _order(make, seed, 2, SEEDS)
    return laws.unrelated(first, second)


def _seeds(make: Any, seed: int) -> float:
    """Nor of that by another seed."""
    (first,), (second,) = (_order(make, seed + i * (1 << 20), 1, SEEDS) for i in range(2))
    return laws.unrelated(first, second)


def _shares(make: Any, seed: int) -> float:
    """A seed's rank in an epoch says nothing of its rank and batch in the next."""
    first, second = _order(make, seed, 2, SEEDS, ranks=2)
    return laws.unrelated(first % 2, second)


def _permutations(make: Any, seed: int) -> float:
    """All 24 orders of four seeds, over 4800 epochs."""
    loader = make(alike(4, 1), torch.arange(4), [0], batch_size=4, shuffle=True, seed=seed)
    orders = (loader._source.order(loader._begin()).tolist() for _ in range(4800))
    return laws.permutations(orders, 4)


LOADERS = [
    LoaderCase("loader: batches with equal seeds", _steps),
    LoaderCase("loader: epochs", _epochs),
    LoaderCase("loader: ranks with equal seeds", _ranks),
    LoaderCase("loader: place and batch", _places),
    LoaderCase("loader: neighbors and batches", _companions),
    LoaderCase("loader: orders of two epochs", _orders),
    LoaderCase("loader: orders of two seeds", _seeds),
    LoaderCase("loader: ranks of two epochs", _shares),
    LoaderCase("loader: orders of four seeds", _permutations),
]


# ---- worker processes of torch's own loader --------------------------------------------------


class Draws(torch.utils.data.Dataset[bytes]):
    """Item i is a batch of all vertices, sampled in the worker that got the item.

    Bytes, since older versions of torch take a second to share a tensor.
    """

    def __init__(self, sampler: Any) -> None:
        self.graph, self.sampler = alike(SHAPE.rows, SHAPE.degree), sampler

    def __len__(self) -> int:
        return 4

    def __getitem__(self, item: int) -> bytes:
        batch = self.sampler.sample(self.graph, np.arange(SHAPE.rows))
        return positions(batch.blocks[0], SHAPE).tobytes()


def workers(seed: int, sampler: Any = None) -> dict[str, float]:
    """P-values of two workers against each other, of items of one, and of two epochs."""
    sampler = pgs.PGSampler([SHAPE.fanout], seed=seed) if sampler is None else sampler
    # Workers take even and odd items in turn.
    loader = torch.utils.data.DataLoader(Draws(sampler), batch_size=None, num_workers=2)
    torch.manual_seed(seed)
    with warnings.catch_warnings():
        # Python warns of any fork in a process with threads; the engine is made anew there.
        warnings.simplefilter("ignore", DeprecationWarning)
        first, second = (
            [np.frombuffer(item, np.int64).reshape(-1, SHAPE.fanout) for item in loader]
            for _ in range(2)
        )
    return {
        "workers of torch's loader": _independent(first[0], first[1]),
        "items of a worker": _independent(first[0], first[2]),
        "workers of two epochs": _independent(first[3], second[3]),
    }


# ---- loaders that are wrong ------------------------------------------------------------------


class CountingShard(EpochShard):
    """Batches of a rank that are numbered 0, 1, ..."""

    def number(self, step: int) -> int:
        return step


class SameRank(DataLoader):
    """Each rank numbers its batches 0, 1, ..., so ranks draw alike."""

    def _begin(self) -> EpochRun:
        run = super()._begin()
        run.shard = CountingShard(self._shards, self.rank)
        return run


class SameEpoch(DataLoader):
    """A constant seed: each epoch is the first one again."""

    def _begin(self) -> EpochRun:
        run = super()._begin()
        run.epoch = 0
        return run


class SwappedSeeds(NodeSeeds):
    """The shuffle that swaps each place with any place: n^n ways for n! orders."""

    def order(self, run: EpochRun) -> torch.Tensor:
        random = np.random.default_rng([run.seed, run.epoch])
        order = self._seeds.clone()
        for i, j in enumerate(random.integers(0, len(order), len(order)).tolist()):
            order[[i, j]] = order[[j, i]]
        return order


class Swaps(DataLoader):
    """A loader of seeds that are swapped."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._source.__class__ = SwappedSeeds


class CountsAlike:
    """A sampler whose copies in worker processes all count from 0."""

    def __init__(self, seed: int) -> None:
        self.sampler, self.calls = pgs.PGSampler([SHAPE.fanout], seed=seed), 0

    def sample(self, graph: Any, seeds: Any) -> Any:
        self.calls += 1
        return self.sampler.sample(graph, seeds, batch=self.calls)
