"""A drop-in for ``dgl.dataloading.NeighborSampler``."""

from __future__ import annotations

try:
    from pygsampler.dgl.sampler import PGSampler, Sampler
    from pygsampler.dgl.storage import FeatureStorage
except ImportError as error:
    if (error.name or "").partition(".")[0] == "pygsampler":
        raise
    raise ImportError("pygsampler.dgl needs DGL: pip install 'pygsampler[dgl]'") from error

__all__ = ["FeatureStorage", "PGSampler", "Sampler"]
