"""Published sampling algorithms, as programs: see docs/samplers.md."""

from pygsampler.samplers.bandits import Bandit, exp3, exp3m, gcn_bs, thanos
from pygsampler.samplers.bounds import GradientBounds, gradient_norms, mvs_trained
from pygsampler.samplers.cluster_wise import ClusterGCN, cluster_gcn_parts
from pygsampler.samplers.clustering import clusters
from pygsampler.samplers.disjoint import ppr_shadow, shadow_disjoint
from pygsampler.samplers.fixed_neighbors import FixedNeighbors, kgcn_static
from pygsampler.samplers.history import History
from pygsampler.samplers.layer_wise import asgcn, fastgcn, labor, ladies
from pygsampler.samplers.learned import Learned
from pygsampler.samplers.locality_aware import (
    locality,
    locality_layers,
    locality_saint,
    locality_scores,
)
from pygsampler.samplers.node_wise import graphsage, kgcn, vrgcn
from pygsampler.samplers.norms import saint_norms
from pygsampler.samplers.ratios import pass_ratio
from pygsampler.samplers.saint import saint_edge, saint_node, saint_walk
from pygsampler.samplers.scores import TrainedScores, asgcn_trained
from pygsampler.samplers.seal import drnl, seal
from pygsampler.samplers.subgraphs import cluster_gcn, mvs, shadow
from pygsampler.samplers.trained import pass_sampler

__all__ = [
    "Bandit",
    "ClusterGCN",
    "FixedNeighbors",
    "GradientBounds",
    "History",
    "Learned",
    "TrainedScores",
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
    "labor",
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


def __dir__() -> list[str]:
    return sorted(__all__)
