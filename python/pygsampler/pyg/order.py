"""Epochs of torch's loaders, and their random order, repeatable where a seed was chosen."""

from __future__ import annotations

import collections
from collections.abc import Iterator, Sized
from typing import Any

import torch
from torch.utils.data import RandomSampler

from pygsampler._adapters.batch_number import BatchNumber

__all__ = ["SeededOrder", "begin_epoch", "shuffle_by_seed"]


class SeededOrder(RandomSampler):
    """A ``RandomSampler`` whose order is a function of a chosen seed and the pass or the epoch.

    Without a chosen seed it is torch's ``RandomSampler``, order and use of torch's generator
    included.
    """

    def __init__(self, source: Sized, numbers: BatchNumber) -> None:
        super().__init__(source)
        self._numbers = numbers

    def __iter__(self) -> Iterator[int]:
        order = self._numbers.order
        if order is None:
            return super().__iter__()
        generator = torch.Generator().manual_seed(order)
        return iter(torch.randperm(self.num_samples, generator=generator).tolist())


def begin_epoch(loader: Any, numbers: BatchNumber) -> None:
    """Begins an epoch of torch's ``loader``, whose batches ``numbers`` counts."""
    workers = getattr(loader, "_iterator", None)
    if workers is not None:
        # Persistent workers may have batches of an epoch that was left, which count as its own.
        workers._sampler_iter = iter(())
        collections.deque(workers, 0)
    numbers.begin_epoch(loader.generator)


def shuffle_by_seed(loader: Any, numbers: BatchNumber, options: dict[str, Any]) -> None:
    """Lets the seed that was chosen decide the order of a loader that torch was to shuffle.

    ``options`` are those that torch's ``DataLoader`` was made with: a ``generator`` or a
    ``sampler`` of the user's own decides by itself.
    """
    if not options.get("shuffle") or options.get("generator") is not None:
        return
    order = SeededOrder(loader.dataset, numbers)
    # Torch's loader lets nobody assign its sampler.
    loader.__dict__["sampler"] = order
    if loader.batch_sampler is not None:
        loader.batch_sampler.sampler = order
