"""Ranks of true links among candidates, for the evaluation of link prediction."""

from __future__ import annotations

try:
    import torch as _  # noqa: F401
except ImportError as error:
    raise ImportError("pygsampler.evaluate needs PyTorch: pip install torch") from error

from pygsampler._engine.public_home import set_public_module
from pygsampler.evaluate.ranking import rank
from pygsampler.evaluate.ranks import Ranks, hits_at, rank_scores

__all__ = ["Ranks", "hits_at", "rank", "rank_scores"]

set_public_module(globals())


def __dir__() -> list[str]:
    return sorted(__all__)
