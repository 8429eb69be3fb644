"""``EpochState``: of which seed and epoch a loader's passes are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from pygsampler._engine.checks import integer
from pygsampler._engine.library import call
from pygsampler._engine.limits import MAX_EPOCH
from pygsampler._sampling.batch_counter import fresh_seed, resolve_seed, signed_seed
from pygsampler._sampling.sampler import Sampler

if TYPE_CHECKING:
    from pygsampler._loader.seed_weights import SeedWeights

__all__ = ["EpochState", "shuffle"]


class EpochState:
    """A loader whose passes are numbered, from a seed that is its own, its sampler's or torch's."""

    sampler: Sampler[Any]
    seed: int
    shuffle: bool
    world_size: int
    # Whether the seed is torch's, asked for at each pass.
    _follows: bool
    _epoch: int
    # Whether the epoch is the count of passes, rather than one that was chosen.
    _counted: bool
    # True if nobody chose the seed: each process has one of its own.
    _seed_drawn: bool = False
    # By what seeds are drawn with replacement.
    _weights: SeedWeights | None = None

    @property
    def epoch(self) -> int:
        """The epoch that the next ``iter()`` takes."""
        return self._epoch

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch of the next ``iter()``, an integer in ``[0, 2**24)``.

        Without a call the epochs are 0, 1, 2, ... in the order of the ``iter()`` calls.
        """
        self._epoch = integer(epoch, "epoch", 0, MAX_EPOCH)
        self._counted = False

    def set_seed(self, seed: int | None) -> None:
        """Take another seed, for order and samples, from the next ``iter()`` on, as epoch 0.

        An integer from ``-2**63`` to ``2**64 - 1``, taken modulo ``2**64``; None goes back to
        torch's seed at each ``iter()``. A sampler that was given is left alone: the loader goes on
        with a copy.
        """
        self._check_seed(seed is None)
        value = resolve_seed(seed)
        self._follows = self._seed_drawn = seed is None
        self._counted = True
        self._reseed(value)

    def _reseed(self, seed: int) -> None:
        # Attributes that are not to be assigned.
        vars(self).update(sampler=self.sampler.with_seed(seed), seed=seed)
        if self._counted:
            self._epoch = 0

    def _check_seed(self, drawn: bool, *, shuffle: bool = False) -> None:
        ordered = not (shuffle or self.shuffle or self._weights is not None)
        if self.world_size > 1 and drawn and not ordered:
            raise ValueError(
                f"seed: expected an integer, the same on all {self.world_size} ranks, since the "
                "shuffled order depends on it; got None, for which each process takes its own"
            )

    def _next_epoch(self) -> int:
        """The epoch of a pass that begins now."""
        if self._follows and (seed := fresh_seed()) != self.seed:
            self._reseed(seed)
        epoch = self._epoch
        self._epoch = (epoch + 1) % (MAX_EPOCH + 1)
        self._counted = True
        return epoch


def shuffle(values: torch.Tensor, seed: int, epoch: int) -> torch.Tensor:
    """A copy of the int32 or int64 values, in the order of the epoch."""
    order = values.clone()
    bits = 8 * order.element_size()
    call("Shuffle", order.data_ptr(), order.numel(), bits, signed_seed(seed), epoch)
    return order
