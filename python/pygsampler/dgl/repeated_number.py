"""``RepeatedNumber``: the same random numbers for several batches in a row."""

from __future__ import annotations

import torch

from pygsampler._loading.batch_number import BatchNumber

__all__ = ["RepeatedNumber"]


class RepeatedNumber(BatchNumber):
    """A ``BatchNumber`` by which ``times`` calls in a row have the number of the first of them.

    With 0 or less all calls have it.

    A seed or an epoch that is set begins anew, in a worker process too.
    """

    def __init__(self, seed: int | None) -> None:
        super().__init__(seed)
        self.times = 1
        self._left = 0
        self._last = 0, 0
        self._under: list[int] = []

    def of(
        self, ids: torch.Tensor, more: tuple[bytes, torch.Tensor] | None = None
    ) -> tuple[int, int]:
        """As ``BatchNumber.of``."""
        if not self._left or self._under != self._shared.tolist():
            self._last, self._left = super().of(ids, more), self.times
            self._under = self._shared.tolist()
        # Below 0 from the first call on where there is no end.
        self._left -= 1
        return self._last
