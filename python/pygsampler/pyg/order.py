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

    def __init__(self, source: Sized, batch_number: BatchNumber) -> None:
        super().__init__(source)
        self._numbers = batch_number

    def __iter__(self) -> Iterator[int]:
        order = self._numbers.order
        if order is None:
            return super().__iter__()
        generator = torch.Generator().manual_seed(order)
        return iter(torch.randperm(self.num_samples, generator=generator).tolist())


def begin_epoch(loader: Any, batch_number: BatchNumber) -> None:
    """Begins an epoch of torch's ``loader``, whose batches ``batch_number`` counts."""
    workers = getattr(loader, "_iterator", None)
    if workers is not None:
        # Persistent workers may have batches of an epoch that was left, which count as its own.
        workers._sampler_iter = iter(())
        collections.deque(workers, 0)
    batch_number.begin_epoch(loader.generator)


def shuffle_by_seed(loader: Any, batch_number: BatchNumber, options: dict[str, Any]) -> None:
    """Lets a chosen seed decide the order of a loader that torch would shuffle.

    ``options`` are the arguments of torch's ``DataLoader``: a ``generator`` or a ``sampler`` of the
    user decides instead.
    """
    if not options.get("shuffle") or options.get("generator") is not None:
        return
    order = SeededOrder(loader.dataset, batch_number)
    # Torch's loader lets nobody assign its sampler.
    loader.__dict__["sampler"] = order
    if loader.batch_sampler is not None:
        loader.batch_sampler.sampler = order


class SeededLoader(DataLoader[Any]):
    """The loader of torch whose ``items`` ``collate`` joins, seeded by ``batch_number``."""

    def __init__(
        self, items: Any, batch_number: BatchNumber, collate: Callable[[Any], Any], **kwargs: Any
    ) -> None:
        # Lightning passes these options, and PyG drops them, too.
        for name in ("dataset", "collate_fn"):
            kwargs.pop(name, None)
        self._numbers = batch_number
        super().__init__(items, collate_fn=collate, **kwargs)
        shuffle_by_seed(self, batch_number, kwargs)

    def __iter__(self) -> Any:
        begin_epoch(self, self._numbers)
        return super().__iter__()

    def set_seed(self, seed: int | None) -> None:
        """Takes another ``seed`` from now on, as ``PGSampler.set_seed`` does; None: torch's."""
        self._numbers.set_seed(seed)

    def set_epoch(self, epoch: int | None) -> None:
        """Makes the batches from now on a function of ``epoch``, as ``PGSampler.set_epoch``."""
        self._numbers.set_epoch(epoch)
