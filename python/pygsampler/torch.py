"""Mini-batches for training loops in plain PyTorch."""

from __future__ import annotations

try:
    import torch as _  # noqa: F401
except ImportError as error:
    raise ImportError("pygsampler.torch needs PyTorch: pip install torch") from error

from pygsampler._batch.link_batch import LinkBatch
from pygsampler._batch.static import StaticBlock, StaticMiniBatch
from pygsampler._engine.public_home import set_public_module
from pygsampler._loader.capture import capture
from pygsampler._loader.data_loader import DataLoader
from pygsampler._loader.link_loader import LinkLoader
from pygsampler._loader.negatives import NegativeSampling
from pygsampler._loader.skip_gram import SkipGram, skip_gram
from pygsampler._ops.segments import segment_reduce

__all__ = [
    "DataLoader",
    "LinkBatch",
    "LinkLoader",
    "NegativeSampling",
    "SkipGram",
    "StaticBlock",
    "StaticMiniBatch",
    "capture",
    "segment_reduce",
    "skip_gram",
]

set_public_module(globals())


def __dir__() -> list[str]:
    return sorted(__all__)
