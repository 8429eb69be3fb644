"""Epochs of torch's loaders, and their random order, repeatable where a seed was chosen."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator, Sized
from typing import Any

import torch
from torch.utils.data import DataLoader, RandomSampler

from pygsampler._adapters.batch_number import BatchNumber

__all__ = ["SeededLoader", "SeededOrder", "begin_epoch", "shuffle_by_seed"]


class SeededOrder(RandomSampler):
    """A ``RandomSampler`` whose order is a function of a chosen seed and the epoch.

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
    """Lets a chosen seed decide the order of a loader that torch would shuffle.

    ``options`` are the arguments of torch's ``DataLoader``: a ``generator`` or a ``sampler`` of the
    user decides instead.
    """
    if not options.get("shuffle") or options.get("generator") is not None:
        return
    order = SeededOrder(loader.dataset, numbers)
    # Torch's loader lets nobody assign its sampler.
    loader.__dict__["sampler"] = order
    if loader.batch_sampler is not None:
        loader.batch_sampler.sampler = order


class SeededLoader(DataLoader[Any]):
    """torch's loader of what ``collate`` makes of some ``items``, by the seed of ``numbers``."""

    def __init__(
        self, items: Any, numbers: BatchNumber, collate: Callable[[Any], Any], **kwargs: Any
    ) -> None:
        # As in PyG, for Lightning.
        for name in ("dataset", "collate_fn"):
            kwargs.pop(name, None)
        self._numbers = numbers
        super().__init__(items, collate_fn=collate, **kwargs)
        shuffle_by_seed(self, numbers, kwargs)

    def __iter__(self) -> Any:
        begin_epoch(self, self._numbers)
        return super().__iter__()

    def set_seed(self, seed: int | None) -> None:
        """Takes another ``seed`` from now on, as ``PGSampler.set_seed`` does; None: torch's."""
        self._numbers.set_seed(seed)

    def set_epoch(self, epoch: int | None) -> None:
        """Makes the batches from now on a function of ``epoch``, as ``PGSampler.set_epoch``."""
        self._numbers.set_epoch(epoch)
