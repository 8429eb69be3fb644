"""Times of seeds and of edges, as a loader's caller gave them."""

from __future__ import annotations

from typing import Any

import torch

from pygsampler._arrays.dates import without_dates
from pygsampler._core.checks import describe

__all__ = ["times_of"]


def times_of(given: Any, name: str, count: int, things: str) -> torch.Tensor | None:
    """A time for each on the CPU, int64 or float64; None for None."""
    if given is None:
        return None
    times = torch.as_tensor(without_dates(given, name)).detach().cpu()
    if times.dtype == torch.bool or times.is_complex() or times.dim() != 1:
        raise TypeError(f"{name}: expected numbers, shape [N], got {describe(given)}")
    if len(times) != count:
        raise ValueError(f"{name}: expected a time for each of {count} {things}, got {len(times)}")
    return times.double() if times.is_floating_point() else times.long()
