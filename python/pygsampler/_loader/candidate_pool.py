"""``CandidatePool``: nodes that are drawn by weight, or among those that are there at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch

from pygsampler._engine.checks import describe
from pygsampler._loader.rng import BatchId, DrawShape, device_of, draw

if TYPE_CHECKING:
    from pygsampler._arrays.array import Array

__all__ = ["BITS", "CandidatePool", "check_bound", "scaled"]

# Numbers of 62 bits are multiplied by counts in two halves, whose products fit into 64.
_HALF = 31
BITS = 2 * _HALF
# The bits of a float64's fraction.
_FRACTION = 53


class CandidatePool:
    """The nodes of one end of a relation, in the order of time if they have times.

    The nodes that exist at a time are then the first ones of the pool.
    """

    __slots__ = ("_on", "array", "count")

    def __init__(self, count: int, weight: torch.Tensor | None, array: Array | None) -> None:
        self.count = count
        # Its address is how it is known: it stays as long as this.
        self.array = array
        order = times = raw = None
        if array is not None:
            raw = _times(array, count)
            times, order = torch.sort(raw, stable=True)
        reach = None
        if weight is not None:
            # On the CPU and in order: sums depend on the order of additions.
            reach = torch.cumsum(weight if order is None else weight[order], 0)
        self._on = {-1: _Tensors(order, raw, times, reach)}

    @property
    def float(self) -> bool:
        """True if times are float64."""
        raw = self._on[-1].raw
        return raw is not None and raw.is_floating_point()

    def tensors_on(self, index: int) -> _Tensors:
        """Its tensors on the CPU (-1) or a device."""
        if index not in self._on:
            device = torch.device("cuda", index)
            # The host waits for the copies, so they are there for every stream.
            made = (None if of is None else of.to(device) for of in self._on[-1])
            self._on[index] = _Tensors(*made)
        return self._on[index]

    def available(self, like: torch.Tensor, bound: torch.Tensor | None) -> torch.Tensor:
        """Returns the number of nodes up to each time, or of all nodes: shape [rows or 1, 1]."""
        times = self.tensors_on(device_of(like)).times
        if times is None:
            return torch.tensor([[self.count]], device=like.device)
        assert bound is not None
        return torch.searchsorted(times, bound, right=True).unsqueeze(1)

    def named(self, place: torch.Tensor) -> torch.Tensor:
        """The nodes at places of the order."""
        order = self.tensors_on(device_of(place)).order
        return place if order is None else order[place]

    def draw(
        self,
        like: torch.Tensor,
        number: BatchId,
        site: int,
        shape: DrawShape,
        bound: torch.Tensor | None,
    ) -> torch.Tensor:
        """Nodes, as ``like`` has its dtype and device: shape [rows, each]."""
        on = self.tensors_on(device_of(like))
        there = self.available(like, bound)
        if on.reach is None:
            check_some(there, bound, "nodes that are there")
            x = draw(like.long(), number, site, 1 << BITS, shape)
            return self.named(scaled(x, there)).to(like.dtype)
        total = torch.where(there > 0, on.reach[(there - 1).clamp(min=0)], 0.0)
        check_some(total, bound, "nodes of positive weight that are there")
        x = draw(like.long(), number, site, 1 << _FRACTION, shape)
        # The first factor is below 1, so the product is below the total in float64 too.
        at = x.double() * 0.5**_FRACTION * total
        return self.named(torch.searchsorted(on.reach, at, right=True)).to(like.dtype)


class _Tensors(NamedTuple):
    order: torch.Tensor | None
    """Nodes in the order of time."""
    raw: torch.Tensor | None
    """The time of each node, int64 or float64."""
    times: torch.Tensor | None
    """The same in order."""
    reach: torch.Tensor | None
    """Sums of weights in order: float64."""


def scaled(x: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
    """x count / 2^62, rounded down, for x of so many bits and a count below 2^31."""
    low = (x & ((1 << _HALF) - 1)) * count >> _HALF
    return (x >> _HALF) * count + low >> _HALF


def check_some(amounts: torch.Tensor, bound: torch.Tensor | None, what: str) -> None:
    """Raises ValueError where nothing can be drawn at some row, naming its time."""
    empty = amounts <= 0
    if not len(amounts) or not bool(empty.any()):
        return
    row = int(empty.flatten().nonzero()[0])
    when = "" if bound is None else f" at time {bound[row].item()}"
    raise ValueError(f"negative_sampling: expected {what}{when}, got none")


def check_bound(
    bound: torch.Tensor | None, name: str | None, num_edges: int, float_: bool
) -> torch.Tensor | None:
    """Times of edges, as the times of nodes called ``name`` are: int64 or float64."""
    if name is None:
        return None
    if bound is None:
        raise ValueError(f"seed_time: expected a time for each edge with time={name!r}, got None")
    if not isinstance(bound, torch.Tensor) or tuple(bound.shape) != (num_edges,):
        raise ValueError(
            f"seed_time: expected a tensor of shape [{num_edges}], got {describe(bound)}"
        )
    if bound.dtype == torch.bool or bound.is_complex():
        raise TypeError(f"seed_time: expected numbers, got {bound.dtype}")
    if not bound.is_floating_point():
        return bound.double() if float_ else bound.long()
    if not float_:
        raise TypeError(f"seed_time: expected integers, as the times of nodes, got {bound.dtype}")
    if bool(bound.isnan().any()):
        raise ValueError("seed_time: expected numbers, got NaN")
    return bound.double()


def _times(array: Array, count: int) -> torch.Tensor:
    values = array.torch()
    if values.dim() != 1 or values.dtype == torch.bool:
        raise TypeError(
            f"time: expected a number for each node, got {array.dtype} of shape "
            f"{tuple(values.shape)}"
        )
    made = values.double() if values.is_floating_point() else values.long()
    if bool(made.isnan().any()):
        raise ValueError("time: expected numbers, got NaN")
    return made[:count]
