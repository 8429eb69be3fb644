"""Replacements of DGL's samplers in ``dgl.dataloading``, and of walks in ``dgl.sampling``."""

from __future__ import annotations

from pygsampler._engine.public_home import set_public_module

try:
    from pygsampler.dgl.cluster_gcn import ClusterGCNSampler
    from pygsampler.dgl.feature_storage import FeatureStorage
    from pygsampler.dgl.graphsaint import SAINTSampler
    from pygsampler.dgl.labor import LaborSampler
    from pygsampler.dgl.pinsage import PinSAGESampler, RandomWalkNeighborSampler
    from pygsampler.dgl.random_walk import node2vec_random_walk, pack_traces, random_walk
    from pygsampler.dgl.sampler import MultiLayerFullNeighborSampler, PGSampler, Sampler
    from pygsampler.dgl.shadow import ShaDowKHopSampler
except ImportError as error:
    if (error.name or "").partition(".")[0] == "pygsampler":
        raise
    raise ImportError(
        "pygsampler.dgl needs DGL: pip install dgl==2.1.0 torch==2.2.1 torchdata==0.7.1 'numpy<2' "
        "pandas pydantic pyyaml (or see docs/get-started/dgl.md for other versions)"
    ) from error

# Both names that DGL has for its sampler.
NeighborSampler = PGSampler
"""Another name of ``PGSampler``, as DGL has it."""
MultiLayerNeighborSampler = PGSampler
"""Another name of ``PGSampler``, as DGL has it."""

__all__ = [
    "ClusterGCNSampler",
    "FeatureStorage",
    "LaborSampler",
    "MultiLayerFullNeighborSampler",
    "MultiLayerNeighborSampler",
    "NeighborSampler",
    "PGSampler",
    "PinSAGESampler",
    "RandomWalkNeighborSampler",
    "SAINTSampler",
    "Sampler",
    "ShaDowKHopSampler",
    "node2vec_random_walk",
    "pack_traces",
    "random_walk",
]

set_public_module(globals())


def __dir__() -> list[str]:
    return sorted(__all__)
