"""``ShareTuner``: how much of a GPU a loader with ``gpu_share="auto"`` samples on."""

from __future__ import annotations

from time import perf_counter

import torch

from pygsampler._engine.checks import describe

__all__ = ["ShareTuner", "checked_share"]

# The shares that are tried, in this order.
SHARES = (1.0, 0.5, 0.25)
# Epochs of fewer batches say too little, and so does the first one, whose memory is new.
LEAST, WARM = 16, 1
# A smaller share has to save this part of a step: less is noise.
GAIN = 0.02


class ShareTuner:
    """Chooses how much of a GPU launches of the sampler take, by the time of whole epochs.

    After a first epoch, which measures nothing, each share has an epoch of 16 batches or more; the
    share whose steps are shortest serves all later ones. Measured epochs sample as many batches
    ahead as each other, and end when the device has done their work. Copies and pickles keep what
    was measured.

    Source: TurboGNN, whose scheduler sets the shares of its processes by the first iterations or by
    earlier runs (runtime monitoring and dynamic scheduling).
    """

    __slots__ = ("_depth", "_start", "_warm", "choice", "step_seconds")

    def __init__(self) -> None:
        self._warm = 0
        # The number of batches ahead in the measured epochs, and the time when an epoch began.
        self._depth = self._start = 0.0
        self.choice: float | None = None
        # Seconds of a step by share.
        self.step_seconds: dict[float, float] = {}

    def __copy__(self) -> ShareTuner:
        other = ShareTuner()
        other._warm, other._depth, other.choice = self._warm, self._depth, self.choice
        other.step_seconds = dict(self.step_seconds)
        return other

    @property
    def share(self) -> float:
        """The share of the epoch that begins next."""
        if self.choice is not None:
            return self.choice
        if self._warm < WARM:
            return SHARES[0]
        return next(share for share in SHARES if share not in self.step_seconds)

    def resume(self, share: float) -> None:
        """Takes the share that another loader has chosen."""
        self.choice, self.step_seconds = share, {}

    def begin(self, device: int, depth: int) -> None:
        """Notes that an epoch begins, with so many batches ahead."""
        if self.choice is not None:
            return
        if depth != self._depth:
            self._depth = depth
            self.step_seconds.clear()
        self._start = settled(device)

    def finish(self, device: int, batches: int, share: float) -> None:
        """Takes the time of an epoch with that share, which has ended, and may choose by it."""
        if self.choice is not None or batches < LEAST:
            return
        if self._warm < WARM:
            self._warm += 1
            return
        self.step_seconds[share] = (settled(device) - self._start) / batches
        if len(self.step_seconds) == len(SHARES):
            least = min(self.step_seconds.values())
            self.choice = next(
                share for share in SHARES if (1 - GAIN) * self.step_seconds[share] <= least
            )


def settled(device: int) -> float:
    """Returns the time, in seconds, once the device has finished all of its work."""
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.synchronize(device)
    return perf_counter()


def checked_share(value: object) -> float:
    """Returns the share of a state; TypeError or ValueError for what is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"state['gpu_share']: expected a number, got {describe(value)}")
    if not 0 < value <= 1:
        raise ValueError(f"state['gpu_share']: expected a number in (0, 1], got {value}")
    return float(value)
