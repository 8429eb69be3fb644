"""Sampling for PyG: a sampler for its loaders, loaders that use it, its stores, models of walks."""

from __future__ import annotations

from pygsampler._engine.public_home import set_public_module

try:
    from pygsampler.pyg.base_sampler import Sampler
    from pygsampler.pyg.bidirectional import BidirectionalNeighborSampler
    from pygsampler.pyg.blockwise_model import blockwise, layers
    from pygsampler.pyg.cluster_gcn import ClusterData, ClusterLoader
    from pygsampler.pyg.edge_index import EdgeIndex
    from pygsampler.pyg.graphsaint import (
        GraphSAINTEdgeSampler,
        GraphSAINTNodeSampler,
        GraphSAINTRandomWalkSampler,
    )
    from pygsampler.pyg.hgt import HGTLoader, HGTSampler
    from pygsampler.pyg.labor import LaborSampler
    from pygsampler.pyg.loader import LinkNeighborLoader, NeighborLoader
    from pygsampler.pyg.metapath2vec import MetaPath2Vec
    from pygsampler.pyg.neighbor_sampler import NeighborSampler, PGSampler
    from pygsampler.pyg.node2vec import Node2Vec
    from pygsampler.pyg.shadow import ShaDowKHopSampler
    from pygsampler.pyg.stores import FeatureStore, GraphStore
    from pygsampler.pyg.tensor_frames import tensor_frames
except ImportError as error:
    if (error.name or "").partition(".")[0] == "pygsampler":
        raise
    raise ImportError("pygsampler.pyg needs PyG: pip install torch-geometric") from error

__all__ = [
    "BidirectionalNeighborSampler",
    "ClusterData",
    "ClusterLoader",
    "EdgeIndex",
    "FeatureStore",
    "GraphSAINTEdgeSampler",
    "GraphSAINTNodeSampler",
    "GraphSAINTRandomWalkSampler",
    "GraphStore",
    "HGTLoader",
    "HGTSampler",
    "LaborSampler",
    "LinkNeighborLoader",
    "MetaPath2Vec",
    "NeighborLoader",
    "NeighborSampler",
    "Node2Vec",
    "PGSampler",
    "Sampler",
    "ShaDowKHopSampler",
    "blockwise",
    "layers",
    "tensor_frames",
]

set_public_module(globals())


def __dir__() -> list[str]:
    return sorted(__all__)
