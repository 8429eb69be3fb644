"""Published sampling algorithms, as programs: see docs/algorithms/samplers.md."""

from pygsampler._engine.public_home import set_public_module
from pygsampler._sampling.pending import CompletedJob, GroupLauncher, PendingBatch, PendingGroup
from pygsampler.samplers.cluster_gcn import ClusterGCN, cluster_gcn_parts
from pygsampler.samplers.fixed_neighbors import FixedNeighbors, kgcn_static
from pygsampler.samplers.graphsaint import saint_edge, saint_node, saint_walk
from pygsampler.samplers.layer_wise import asgcn, fastgcn, ladies
from pygsampler.samplers.learned.asgcn_scores import ASGCNScores, asgcn_trained
from pygsampler.samplers.learned.bandits import Bandit, exp3, exp3m, gcn_bs, thanos
from pygsampler.samplers.learned.gradient_bounds import GradientBounds, gradient_norms, mvs_trained
from pygsampler.samplers.learned.history import History
from pygsampler.samplers.learned.pass_attention import pass_sampler
from pygsampler.samplers.learned.pass_ratio import pass_ratio
from pygsampler.samplers.learned.sampler import LearnedSampler
from pygsampler.samplers.locality import locality, locality_layers, locality_saint, locality_scores
from pygsampler.samplers.metis import clusters
from pygsampler.samplers.node_wise import graphsage, kgcn, vrgcn
from pygsampler.samplers.saint_norms import saint_norms
from pygsampler.samplers.seal import drnl, seal
from pygsampler.samplers.shadow import ppr_shadow, shadow_disjoint
from pygsampler.samplers.subgraphs import cluster_gcn, mvs, shadow
from pygsampler.samplers.temporal import Temporal

__all__ = [
    "ASGCNScores",
    "Bandit",
    "ClusterGCN",
    "CompletedJob",
    "FixedNeighbors",
    "GradientBounds",
    "GroupLauncher",
    "History",
    "LearnedSampler",
    "PendingBatch",
    "PendingGroup",
    "Temporal",
    "asgcn",
    "asgcn_trained",
    "cluster_gcn",
    "cluster_gcn_parts",
    "clusters",
    "drnl",
    "exp3",
    "exp3m",
    "fastgcn",
    "gcn_bs",
    "gradient_norms",
    "graphsage",
    "kgcn",
    "kgcn_static",
    "ladies",
    "locality",
    "locality_layers",
    "locality_saint",
    "locality_scores",
    "mvs",
    "mvs_trained",
    "pass_ratio",
    "pass_sampler",
    "ppr_shadow",
    "saint_edge",
    "saint_node",
    "saint_norms",
    "saint_walk",
    "seal",
    "shadow",
    "shadow_disjoint",
    "thanos",
    "vrgcn",
]

set_public_module(globals())


def __dir__() -> list[str]:
    return sorted(__all__)
