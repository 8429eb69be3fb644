"""Published sampling algorithms, as programs: see docs/samplers.md."""

from pygsampler.samplers.layer_wise import asgcn, fastgcn, labor, ladies
from pygsampler.samplers.locality_aware import locality, locality_scores
from pygsampler.samplers.node_wise import graphsage, kgcn, vrgcn
from pygsampler.samplers.subgraphs import cluster_gcn, mvs, saint_node, shadow
from pygsampler.samplers.trained import pass_sampler

__all__ = [
    "asgcn",
    "cluster_gcn",
    "fastgcn",
    "graphsage",
    "kgcn",
    "labor",
    "ladies",
    "locality",
    "locality_scores",
    "mvs",
    "pass_sampler",
    "saint_node",
    "shadow",
    "vrgcn",
]
