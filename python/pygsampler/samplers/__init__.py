"""Published sampling algorithms, as programs: see docs/samplers.md."""

from pygsampler.samplers.clustering import clusters
from pygsampler.samplers.disjoint import ppr_shadow, shadow_disjoint
from pygsampler.samplers.layer_wise import asgcn, fastgcn, labor, ladies
from pygsampler.samplers.locality_aware import locality, locality_scores
from pygsampler.samplers.node_wise import graphsage, kgcn, vrgcn
from pygsampler.samplers.norms import saint_norms
from pygsampler.samplers.saint import saint_edge, saint_node, saint_walk
from pygsampler.samplers.seal import drnl, seal
from pygsampler.samplers.subgraphs import cluster_gcn, mvs, shadow
from pygsampler.samplers.trained import pass_sampler

__all__ = [
    "asgcn",
    "cluster_gcn",
    "clusters",
    "drnl",
    "fastgcn",
    "graphsage",
    "kgcn",
    "labor",
    "ladies",
    "locality",
    "locality_scores",
    "mvs",
    "pass_sampler",
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
