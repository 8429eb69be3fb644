"""Which random numbers a batch gets that a loader of another framework asks for."""

from __future__ import annotations

import hashlib
import itertools
from typing import Any

import torch
from torch.utils.data import get_worker_info

from pygsampler._check import integer
from pygsampler.sampler import MAX_BATCH, MAX_EPOCH

_BATCH_BITS = MAX_BATCH.bit_length()
_UNSET = -1


class Identity:
    """Gives each batch its (epoch, batch), the same for every number of workers.

    Loaders of other frameworks do not say which batch of which epoch they ask for, but its content
    does: the batch's number is a hash of its ids. Ranks of a data-parallel run differ by it too.
    Without ``set_epoch`` the hash also takes in a count of the calls and, in a worker process, the
    worker's seed, which torch draws anew for each epoch. Pickling keeps the epoch and the count.
    """

    def __init__(self) -> None:
        self._calls = itertools.count()
        # In shared memory, so that workers that live through several epochs see set_epoch too.
        self._epoch: Any = torch.full((1,), _UNSET, dtype=torch.int64)
        self._epoch.share_memory_()  # type: ignore[no-untyped-call]

    def set_epoch(self, epoch: int | None) -> None:
        """Make the batches from now on a function of ``epoch``; None: batches never repeat."""
        if epoch is None:
            self._epoch[0] = _UNSET
        else:
            self._epoch[0] = integer(epoch, "epoch", 0, MAX_EPOCH)

    def of(
        self, ids: torch.Tensor, more: tuple[bytes, torch.Tensor] | None = None
    ) -> tuple[int, int]:
        """(epoch, batch) of the batch of these ids, tensors on the CPU.

        ``more`` are ids with another meaning, and its name.
        """
        content = hashlib.blake2b(ids.numpy().tobytes(), digest_size=8)
        if more is not None:
            name, others = more
            # The length keeps the two apart from another cut of the same numbers.
            content.update(b"%s %d " % (name, others.numel()))
            content.update(others.numpy().tobytes())
        epoch = int(self._epoch)
        if epoch == _UNSET:
            worker = get_worker_info()
            seed = 0 if worker is None else worker.seed
            content.update(b"call %d of %d" % (next(self._calls), seed))
        number = int.from_bytes(content.digest(), "little")
        return (number >> _BATCH_BITS if epoch == _UNSET else epoch), number & MAX_BATCH

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_calls": next(self._calls)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._calls = itertools.count(state["_calls"])
        if not self._epoch.is_shared():
            self._epoch.share_memory_()
