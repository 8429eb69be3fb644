"""Seeds and batch numbers that nobody gave."""

from __future__ import annotations

import secrets
import sys

from pygsampler._engine.checks import integer

SEED_MASK = (1 << 64) - 1


def chosen_seed(seed: int | None) -> int:
    """``seed`` modulo ``2**64``, or a ``fresh_seed`` one where it is None."""
    if seed is None:
        return fresh_seed()
    return integer(seed, "seed", -(1 << 63), SEED_MASK) & SEED_MASK


def fresh_seed() -> int:
    """torch's initial seed where torch has been imported, else one of the system's."""
    torch = sys.modules.get("torch")
    initial_seed = getattr(torch, "initial_seed", None)
    if initial_seed is None:
        return secrets.randbits(64)
    return int(initial_seed()) & SEED_MASK


def signed_seed(seed: int) -> int:
    """The 64 bits of ``seed`` as the signed number that int64 has for them."""
    return seed - (1 << 64) if seed >> 63 else seed


def worker_start(number: int) -> int:
    """Where the batch counter goes on in this process.

    The workers of torch's DataLoader are copies of one another, and of the workers of the epoch
    before: torch gives each a seed of its own, and the numbers start where that says.
    """
    data = sys.modules.get("torch.utils.data")
    info = data.get_worker_info() if data is not None else None
    if info is None:
        return number
    mixed = (int(info.seed) & SEED_MASK) * 0x9E3779B97F4A7C15 & SEED_MASK
    return mixed >> 25
