"""``SeedWeights``: seeds that are drawn by weight, with replacement."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import torch

from pygsampler._engine.checks import describe, integer
from pygsampler._loader.candidate_pool import CandidatePool
from pygsampler._loader.negatives import checked_weights
from pygsampler._loader.rng import BatchId, DrawShape

if TYPE_CHECKING:
    from pygsampler._loader.seeds import HeteroSeeds

__all__ = ["SeedWeights", "seed_weights"]

# The draws that a state has for seeds: docs/developer/walk-draws.md, "Seeds by weight".
_SITE = 4


class SeedWeights:
    """Draws ``count`` places of seeds for each epoch, each in proportion to its weight."""

    __slots__ = ("_pool", "count", "digest")

    def __init__(self, weights: torch.Tensor, count: int) -> None:
        self._pool = CandidatePool(len(weights), weights, None)
        self.count = count
        # An epoch can only be resumed by a loader that draws the same places.
        self.digest = blake2b(weights.numpy().tobytes(), digest_size=8).hexdigest()

    def places(self, seed: int, epoch: int) -> torch.Tensor:
        """Returns the places of the seeds of an epoch in their order: int64, shape [count]."""
        like = torch.empty(0, dtype=torch.int64)
        rows = DrawShape(self.count, 1, 1)
        return self._pool.draw(like, BatchId(seed, epoch, 0), _SITE, rows, None).flatten()


def seed_weights(
    value: Any, num_samples: Any, types: HeteroSeeds | None, seeds: int
) -> SeedWeights | None:
    """Returns the weights of a loader's seeds, checked, or None where it has none."""
    if value is None:
        if num_samples is not None:
            raise ValueError(
                f"num_samples: expected None without seed_weights, got {describe(num_samples)}"
            )
        return None
    count = seeds if num_samples is None else integer(num_samples, "num_samples", 1)
    weights = _of_types(value, types) if types is not None else _of_one(value)
    if len(weights) != seeds:
        raise ValueError(
            f"seed_weights: expected a weight for each of {seeds} seeds, got {len(weights)}"
        )
    return SeedWeights(weights, count)


def _of_one(value: Any, where: str = "seed_weights") -> torch.Tensor:
    weights = checked_weights(value, where, "seed")
    assert weights is not None
    return weights


def _of_types(value: Any, types: HeteroSeeds) -> torch.Tensor:
    """The weights of seeds of several types in the order of the seeds."""
    counts = types.counts
    if not isinstance(value, Mapping):
        if len(counts) != 1:
            raise TypeError(
                f"seed_weights: expected a mapping of types to weights, got {describe(value)}"
            )
        return _of_one(value)
    if value.keys() != counts.keys():
        raise ValueError(
            f"seed_weights: expected weights of the types of the seeds ({', '.join(counts)}), "
            f"got {', '.join(map(str, value))}"
        )
    parts = []
    for kind, count in counts.items():
        where = f"seed_weights[{kind!r}]"
        if not count:
            continue
        part = _of_one(value[kind], where)
        if len(part) != count:
            raise ValueError(
                f"{where}: expected a weight for each of {count} seeds, got {len(part)}"
            )
        parts.append(part)
    return torch.cat(parts)
