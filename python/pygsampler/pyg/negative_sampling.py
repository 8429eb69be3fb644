"""Negatives of PyG's kind by random numbers of their batch, whatever torch's generator does."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch_geometric.sampler import NegativeSampling

__all__ = ["BatchNegativeSampling", "EdgeTimes", "NodesByTime", "has_custom_rule", "negatives_of"]


class NodesByTime:
    """The nodes of one end of edges in the order of their times, at equal times of their ids.

    The nodes that exist at a time are the first ones.
    """

    def __init__(self, times: torch.Tensor) -> None:
        raw = times.double() if times.is_floating_point() else times.long()
        self._times, self._order = torch.sort(raw.cpu(), stable=True)
        # Weights that were asked for last, of either end, their versions, and sums in that order.
        self._sums: tuple[tuple[torch.Tensor, int | None, torch.Tensor], ...] = ()

    def draw(
        self, bounds: torch.Tensor, weight: torch.Tensor | None, generator: torch.Generator
    ) -> torch.Tensor:
        """Draws a node for each bound, among the nodes whose time is at most the bound.

        All are equally likely, or drawn by weight. If there is no such node the result is the
        oldest node, as in PyG.
        """
        at = torch.rand(len(bounds), dtype=torch.float64, generator=generator)
        float_ = bounds.is_floating_point() or self._times.is_floating_point()
        dtype = torch.float64 if float_ else torch.int64
        there = torch.searchsorted(self._times.to(dtype), bounds.cpu().to(dtype), right=True)
        last = (there - 1).clamp(min=0)
        if weight is None:
            place = (at * there).long()
        else:
            reach = self._reached(weight)
            # Nodes of weight 0 are skipped, also the oldest if there is another node.
            place = torch.searchsorted(reach, at * reach[last], right=True)
            place[reach[last] <= 0] = 0
        return self._order[torch.minimum(place, last)]

    def _reached(self, weight: torch.Tensor) -> torch.Tensor:
        version = _version(weight)
        known = self._sums
        for of, then, reach in known:
            if of is weight and then == version is not None:
                return reach
        values = weight.cpu().double()
        # torch.multinomial refuses such weights if nodes have no times.
        if not bool((values >= 0).all()) or not 0 < float(values.sum()) < float("inf"):
            raise ValueError("neg_sampling: expected finite weights >= 0, not all 0")
        reach = values[self._order].cumsum(0)
        others = [each for each in known if each[0] is not weight]
        # All at once: threads share this.
        self._sums = (weight, version, reach), *others[:1]
        return reach


class EdgeTimes(NamedTuple):
    """Times of the edges of a batch, and of the nodes at either end, None for those of any time."""

    bounds: torch.Tensor | None
    src: NodesByTime | None
    dst: NodesByTime | None

    def equals(self, other: EdgeTimes) -> bool:
        """True if edges have the same times, and nodes are the same."""
        one, two = self.bounds, other.bounds
        if one is not two and (one is None or two is None or not _equal(one, two)):
            return False
        return self.src is other.src and self.dst is other.dst

    def check(self) -> None:
        """Raises ValueError where nodes have times and edges do not."""
        if self.bounds is None and (self.src is not None or self.dst is not None):
            raise ValueError(
                "edge_label_time: expected times with neg_sampling where nodes have times, got None"
            )


def _equal(one: torch.Tensor, two: torch.Tensor) -> bool:
    return one.dtype == two.dtype and torch.equal(one, two)


class BatchNegativeSampling(NegativeSampling):  # type: ignore[misc]
    """PyG's negative sampling with this seed, by a separate generator.

    Torch has one generator for all threads: a batch that is sampled ahead must not change the
    numbers of the training step that runs meanwhile, nor depend on them.

    Nodes with times are drawn among the nodes that exist at the time of their edge. PyG draws among
    all, tries again five times, and then takes the oldest node, which most negatives of early edges
    are.

    PyG requests each end once per batch. ``before`` has the draws of a batch that was started:
    equal requests, by the same weights, are not drawn again.
    """

    def __init__(
        self,
        like: NegativeSampling,
        when: EdgeTimes,
        seed: int,
        before: BatchNegativeSampling | None = None,
    ) -> None:
        super().__init__(like.mode, like.amount, like.src_weight, like.dst_weight)
        when.check()
        self._when, self._seed = when, seed
        self._versions = _version(like.src_weight), _version(like.dst_weight)
        self._generator = torch.Generator().manual_seed(seed)
        # By end, and how many there were to be.
        self._made: dict[tuple[str, int, Any], torch.Tensor] = {}
        if before is not None and before._is_of(self):
            self._made = before._made

    def _is_of(self, other: BatchNegativeSampling) -> bool:
        return (
            self._seed == other._seed
            and (self.mode, self.amount) == (other.mode, other.amount)
            and self.src_weight is other.src_weight
            and self.dst_weight is other.dst_weight
            and self._versions == other._versions
            and None not in self._versions
            and self._when.equals(other._when)
        )

    def sample(self, num_samples: int, endpoint: str, num_nodes: Any = None) -> torch.Tensor:
        """Some nodes, int64, of those at this end of edges."""
        key = endpoint, num_samples, num_nodes
        if key not in self._made:
            self._made[key] = self._draw(num_samples, endpoint, num_nodes)
        return self._made[key]

    def _draw(self, num_samples: int, endpoint: str, num_nodes: Any) -> torch.Tensor:
        weight = self.src_weight if endpoint == "src" else self.dst_weight
        of = self._generator
        if weight is not None and num_nodes is not None and weight.numel() != num_nodes:
            raise ValueError(
                f"neg_sampling.{endpoint}_weight: expected a number for each of {num_nodes} nodes, "
                f"got {weight.numel()}"
            )
        nodes, bounds = getattr(self._when, endpoint), self._when.bounds
        if nodes is not None and bounds is not None:
            # PyG's order: one for each edge, then the second ones.
            edges = torch.arange(num_samples) % max(len(bounds), 1)
            drawn: torch.Tensor = nodes.draw(bounds[edges], weight, of)
            return drawn
        if weight is None:
            return torch.randint(num_nodes, (num_samples,), generator=of)
        return torch.multinomial(weight.cpu(), num_samples, replacement=True, generator=of)


def _version(weight: torch.Tensor | None) -> int | None:
    """Returns how often torch has written to a tensor; None where nobody counts."""
    if weight is None:
        return 0
    # Torch does not count what is written to tensors of its inference mode.
    return None if weight.is_inference() else weight._version


def has_custom_rule(neg_sampling: Any) -> bool:
    """True if code that is not PyG's draws the samples, and so torch's generator."""
    return type(neg_sampling).sample is not NegativeSampling.sample


@contextmanager
def negatives_of(
    neg_sampling: Any,
    when: EdgeTimes,
    times: Any,
    *identity: int,
    before: BatchNegativeSampling | None = None,
) -> Iterator[tuple[Any, Any]]:
    """Yields the arguments of PyG for a batch of these numbers: ``neg_sampling`` and node times.

    ``times`` are the times of nodes that PyG knows; None is yielded for them if negatives are drawn
    by ``when``. ``before`` has the draws of the batch that was started.
    """
    if neg_sampling is None:
        yield None, times
        return
    text = ",".join(map(str, identity)).encode()
    seed = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
    if not has_custom_rule(neg_sampling):
        yield BatchNegativeSampling(neg_sampling, when, seed, before), None
        return
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield neg_sampling, times
