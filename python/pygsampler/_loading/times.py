"""Times of seeds and of edges, as a loader's caller gave them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from pygsampler._arrays.datetimes import as_nanoseconds, as_numpy_dates, check_datetime_kind
from pygsampler._arrays.tensors import as_tensor
from pygsampler._engine.checks import describe

__all__ = ["check_dates", "times_of"]


def check_dates(given: Any, graph: Any, *names: str | None) -> None:
    """TypeError for a loader's ``seed_time`` of dates where the graph's times of a name are none.

    They are tensors from then on, which have no dates. Of a graph in parts nobody knows.
    """
    if given is None or graph._service is not None:
        return
    for name in names:
        if name is None:
            continue
        of = graph._kind_of_times(name)
        if not isinstance(given, Mapping):
            check_datetime_kind(as_numpy_dates(given, "seed_time"), of, name, "seed_time")
            continue
        for kind, values in given.items():
            where = f"seed_time[{kind!r}]"
            check_datetime_kind(as_numpy_dates(values, where), of, name, where)


def times_of(given: Any, name: str, count: int, things: str) -> torch.Tensor | None:
    """A time for each on the CPU, int64 or float64, of those or of one for all; None for None."""
    if given is None:
        return None
    values = as_nanoseconds(as_numpy_dates(given, name), name)
    times = as_tensor(values).detach().cpu()
    if times.dtype == torch.bool or times.is_complex() or times.dim() > 1:
        raise TypeError(f"{name}: expected numbers, shape [N], got {describe(given)}")
    if times.dim() == 0:
        times = times.repeat(count)
    if len(times) != count:
        raise ValueError(f"{name}: expected a time for each of {count} {things}, got {len(times)}")
    return times.double() if times.is_floating_point() else times.long()
