"""``Walker``: the walks that PyG's models of walks are trained on, and their loader."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils.data import DataLoader, get_worker_info

from pygsampler._adapters.batch_number import BatchNumber
from pygsampler._arrays import devices
from pygsampler._graph.graph import Graph
from pygsampler.pyg.options import ids
from pygsampler.pyg.order import SeededLoader
from pygsampler.walks.random_walk import RandomWalk
from pygsampler.walks.result import Walks

__all__ = ["WalkSampler", "loader", "windows"]

# Positive and negative walks of a batch of seeds; the second argument is where they are to be.
Sample = Callable[[torch.Tensor, torch.device], tuple[torch.Tensor, torch.Tensor]]


class WalkSampler:
    """Walks on one graph, on any device, with the random numbers of a loader's batch."""

    def __init__(
        self, graph: Graph, seed: int | None, sampler: type[RandomWalk] = RandomWalk
    ) -> None:
        self.numbers = BatchNumber(seed)
        self._graph = graph
        self._kind = sampler
        # The sampler that walked last, and what it was made with.
        self._last: tuple[tuple[Any, ...], RandomWalk] | None = None
        # Epoch and batch that were walked last.
        self._number = 0, 0
        # The graph on devices that it was not made on, by their index.
        self._copies: dict[int, Graph] = {}

    def check(self, length: int, **options: Any) -> None:
        """Raises what ``walk`` would, of options that are wrong; makes the graph to walk on."""
        self._sampler(length, **options).sampled_graph(self._graph)

    def walk(
        self, batch: torch.Tensor, device: torch.device, length: int, **options: Any
    ) -> Walks[torch.Tensor]:
        """A walk from each node of ``batch``, of int32 or int64, on ``device``."""
        seeds = ids(batch, "batch")
        self._number = epoch, number = self.numbers.number(seeds)
        sampler = self._sampler(length, **options)
        graph = self._graph_on(device)
        job = sampler.launch(graph, seeds, epoch=epoch, batch=number, form="torch")
        walks: Walks[torch.Tensor] = job.result().torch()
        return walks

    @contextmanager
    def negatives(self, device: torch.device) -> Iterator[None]:
        """Seeds torch's generator by the last batch of walks, and restores it afterwards.

        It does nothing unless a seed was chosen. It is a context manager, for the generators of the
        CPU and of ``device``.
        """
        if not self.numbers.chosen:
            yield
            return
        index = devices.parse(device)
        text = b"negatives %d %d %d" % (self.numbers.seed, *self._number)
        seed = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
        with torch.random.fork_rng(devices=[] if index < 0 else [index]):
            torch.default_generator.manual_seed(seed)
            if index >= 0:
                torch.cuda.default_generators[index].manual_seed(seed)
            yield

    def _sampler(self, length: int, **options: Any) -> RandomWalk:
        key = length, self.numbers.seed, *options.items()
        if self._last is None or self._last[0] != key:
            self._last = key, self._kind(length, seed=self.numbers.seed, **options)
        return self._last[1]

    def _graph_on(self, device: torch.device) -> Graph:
        index = devices.parse(device)
        if index == devices.parse(self._graph.device):
            return self._graph
        if index not in self._copies:
            self._copies[index] = self._graph.to(device)
        return self._copies[index]

    def __getstate__(self) -> dict[str, Any]:
        # Another process makes its own.
        return {**self.__dict__, "_copies": {}, "_last": None}


def loader(
    batch_number: BatchNumber,
    count: int,
    sample: Sample,
    device: torch.device,
    options: dict[str, Any],
) -> DataLoader[Any]:
    """torch's loader of what is sampled of batches of the seeds from 0 on.

    On ``device`` in this process; in workers, and for ``pin_memory``, on the CPU.
    """
    place = torch.device("cpu") if options.get("pin_memory") else device
    collate = functools.partial(_collated, sample, place)
    return SeededLoader(range(count), batch_number, collate, **options)


def _collated(
    sample: Sample, device: torch.device, batch: Sequence[int]
) -> tuple[torch.Tensor, torch.Tensor]:
    if get_worker_info() is not None:
        device = torch.device("cpu")
    return sample(torch.tensor(batch, dtype=torch.int64), device)


def windows(walks: torch.Tensor, size: int) -> torch.Tensor:
    """Returns all runs of ``size`` nodes of ``walks``, shape [n * (steps + 2 - size), size].

    ``walks`` has shape [n, steps + 1]. Runs from the first node of each walk come first.
    """
    return walks.unfold(1, size, 1).transpose(0, 1).reshape(-1, size)
