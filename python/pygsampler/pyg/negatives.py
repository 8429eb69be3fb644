"""Negatives of PyG's kind by random numbers of their batch, whatever torch's generator does."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch_geometric.sampler import NegativeSampling

__all__ = ["by_own_rule", "negatives_of"]


class _Drawn(NegativeSampling):  # type: ignore[misc]
    """What PyG's draws of a generator with this seed, by a generator of its own.

    Torch's is one for all threads: a batch that is sampled ahead must not move the numbers of the
    training step beside it, nor be moved by them.
    """

    def __init__(self, like: NegativeSampling, seed: int) -> None:
        super().__init__(like.mode, like.amount, like.src_weight, like.dst_weight)
        self._generator = torch.Generator().manual_seed(seed)

    def sample(self, num_samples: int, endpoint: str, num_nodes: Any = None) -> torch.Tensor:
        """Some nodes, int64, of those at this end of edges."""
        weight = self.src_weight if endpoint == "src" else self.dst_weight
        of = self._generator
        if weight is None:
            return torch.randint(num_nodes, (num_samples,), generator=of)
        if num_nodes is not None and weight.numel() != num_nodes:
            raise ValueError(
                f"neg_sampling.{endpoint}_weight: expected a number for each of {num_nodes} nodes, "
                f"got {weight.numel()}"
            )
        return torch.multinomial(weight.cpu(), num_samples, replacement=True, generator=of)


def by_own_rule(neg_sampling: Any) -> bool:
    """Whether they are drawn by code that is not PyG's, and so by torch's generator."""
    return type(neg_sampling).sample is not NegativeSampling.sample


@contextmanager
def negatives_of(neg_sampling: Any, *numbers: int) -> Iterator[Any]:
    """``neg_sampling``, or None, as it is to be given to PyG, for a batch of these numbers."""
    if neg_sampling is None:
        yield None
        return
    text = ",".join(map(str, numbers)).encode()
    seed = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
    if not by_own_rule(neg_sampling):
        yield _Drawn(neg_sampling, seed)
        return
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield neg_sampling
