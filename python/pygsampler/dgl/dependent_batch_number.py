"""``DependentBatchNumber``: batches whose random numbers go on from those of the batch before."""

from __future__ import annotations

import torch
from torch.utils.data import get_worker_info

from pygsampler._adapters.batch_number import BatchNumber
from pygsampler._engine.limits import MAX_BATCH

__all__ = ["DependentBatchNumber"]


class DependentBatchNumber(BatchNumber):
    """A ``BatchNumber`` that counts from its first call on, in ``period`` steps a period.

    With a period of 1 it is a ``BatchNumber``, and with 0 or less all calls have the number of the
    first. A seed, an epoch or a period that is set begins anew; in worker processes a seed or an
    epoch that is another one.
    """

    def __init__(self, seed: int | None) -> None:
        super().__init__(seed)
        self._period = 1
        self._first = 0, 0
        self._made = 0
        # The numbers of the enclosing calls at the first call.
        self._under: list[int] = []

    @property
    def period(self) -> int:
        """The number of calls of a period."""
        return self._period

    @period.setter
    def period(self, period: int) -> None:
        self._period, self._under = period, []

    def set_seed(self, seed: int | None) -> None:
        """Sets the seed as ``BatchNumber.set_seed`` does."""
        super().set_seed(seed)
        self._under = []

    def set_epoch(self, epoch: int | None) -> None:
        """Sets the epoch as ``BatchNumber.set_epoch`` does."""
        super().set_epoch(epoch)
        self._under = []

    def number(
        self, ids: torch.Tensor, more: tuple[bytes, torch.Tensor] | None = None
    ) -> tuple[int, int]:
        """Returns the number of a batch as ``BatchNumber.of`` does."""
        if self._period == 1:
            return super().number(ids, more)
        if get_worker_info() is None:
            self._follow()
        if self._under != self._shared.tolist():
            epoch, number = super().number(ids, more)
            # The start of a period, with room for as many numbers above it.
            self._first = (
                epoch,
                number % (MAX_BATCH // 2) // max(self._period, 1) * max(self._period, 1),
            )
            self._made, self._under = 0, self._shared.tolist()
        epoch, number = self._first
        number += self._made
        self._made += self._period > 0
        return epoch, number
