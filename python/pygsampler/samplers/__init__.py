"""Published sampling algorithms, as programs: see docs/algorithms/samplers.md."""

from pygsampler._batch.contexts import Contexts
from pygsampler._batch.subgraph import Subgraph
from pygsampler._engine.public_home import set_public_module
from pygsampler._sampling.pending import CompletedJob, GroupLauncher, PendingBatch, PendingGroup
from pygsampler.samplers import learned  # noqa: F401, so that users need no import
from pygsampler.samplers.cluster_gcn import ClusterGCN, cluster_gcn_parts
from pygsampler.samplers.context import context
from pygsampler.samplers.fixed_neighbors import FixedNeighbors, kgcn_static
from pygsampler.samplers.graphsaint import saint_edge, saint_node, saint_walk
from pygsampler.samplers.hgt import HGTSampler
from pygsampler.samplers.layer_wise import asgcn, fastgcn, ladies
from pygsampler.samplers.metis import clusters
from pygsampler.samplers.node_wise import graphsage, kgcn, vrgcn
from pygsampler.samplers.saint_norms import saint_norms
from pygsampler.samplers.seal import drnl, seal
from pygsampler.samplers.shadow import ppr_shadow, shadow_disjoint
from pygsampler.samplers.subgraphs import cluster_gcn, mvs, shadow
from pygsampler.samplers.temporal import Temporal

__all__ = [
    "ClusterGCN",
    "CompletedJob",
    "Contexts",
    "FixedNeighbors",
    "GroupLauncher",
    "HGTSampler",
    "PendingBatch",
    "PendingGroup",
    "Subgraph",
    "Temporal",
    "asgcn",
    "cluster_gcn",
    "cluster_gcn_parts",
    "clusters",
    "context",
    "drnl",
    "fastgcn",
    "graphsage",
    "kgcn",
    "kgcn_static",
    "ladies",
    "mvs",
    "ppr_shadow",
    "saint_edge",
    "saint_node",
    "saint_norms",
    "saint_walk",
    "seal",
    "shadow",
    "shadow_disjoint",
    "vrgcn",
]

set_public_module(globals())


def __dir__() -> list[str]:
    return sorted(__all__)
