"""``LookaheadBatch``: a batch that is sampled before anybody has asked for it."""

from __future__ import annotations

from typing import Any

import torch

from pygsampler.pyg.negative_sampling import BatchNegativeSampling
from pygsampler.samplers.hgt import HGTSampler
from pygsampler.samplers.labor import LaborSampler
from pygsampler.samplers.neighbor import PGSampler

__all__ = ["LookaheadBatch", "LookaheadState", "StopLookahead", "can_look_ahead", "is_pure"]

# Samplers whose batches are functions of what a `Begun` knows, and that change nothing else; one
# of somebody else's may count its calls.
_PURE = (PGSampler, LaborSampler, HGTSampler)


class StopLookahead(Exception):
    """Leaves a function of PyG's once the batch that it asks for was begun."""


def is_pure(sampler: Any) -> bool:
    """True for a sampler of neighbors, of this package, whose batches change nothing else."""
    return type(sampler) in _PURE


def can_look_ahead(sampler: Any, graph: Any) -> bool:
    """True if batches of a graph on the CPU may be begun in the background."""
    return is_pure(sampler) and graph._service is None


class LookaheadBatch:
    """A batch on its way in the engine, and all that it is a function of.

    So whoever asks for a batch of the same may have it. It goes with this object, also where it is
    not there yet.
    """

    __slots__ = ("_free", "_of", "_seeds", "_times", "job", "negatives")

    def __init__(
        self,
        job: Any,
        sampler: Any,
        graph: Any,
        seeds: Any,
        identity: tuple[int, int],
        times: Any,
        negatives: BatchNegativeSampling | None = None,
    ) -> None:
        self.job = job
        # The negatives of links, which are among the seeds.
        self.negatives = negatives
        self._of = sampler, graph, identity
        self._seeds, self._times = seeds, times
        # Taken out by the one who gets it: two threads may ask at once.
        self._free = [True]

    @property
    def is_used(self) -> bool:
        """True if somebody asked for the batch."""
        return not self._free

    def take(
        self, sampler: Any, graph: Any, seeds: Any, identity: tuple[int, int], times: Any
    ) -> bool:
        """True if it is the batch of these, of this process, and nobody else has it."""
        of = self._of
        same = (
            of[0] is sampler
            and of[1] is graph
            and of[2] == identity
            and _equal(self._seeds, seeds)
            and _equal(self._times, times)
            and not self.job._is_foreign()
        )
        if not same:
            return False
        try:
            return self._free.pop()
        except IndexError:
            return False


class LookaheadState:
    """State of a sampler whose batches are begun before they are asked for.

    One sampler may serve several threads: what one of them has begun another may take, where it is
    the same.
    """

    __slots__ = ("begun",)

    def __init__(self) -> None:
        # For the call that comes next.
        self.begun: LookaheadBatch | None = None

    @property
    def negatives(self) -> BatchNegativeSampling | None:
        """The negative samples of the batch that was begun."""
        begun = self.begun
        return None if begun is None else begun.negatives

    def result(self, launch: Any, *arguments: Any) -> Any:
        """The batch of arguments of ``LookaheadBatch.take``, started before or sampled now."""
        begun = self.begun
        if begun is not None and begun.take(*arguments):
            self.begun = None
            return begun.job.result()
        return launch().result()

    def __reduce__(self) -> tuple[Any, ...]:
        # Jobs belong to their process.
        return LookaheadState, ()


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return one.dtype == other.dtype and torch.equal(one, other)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one)
    return one is None and other is None
