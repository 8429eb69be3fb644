"""``HGTLoader``: PyG's loader of HGT's subgraphs, with our sampler in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch_geometric import loader
from torch_geometric.data import HeteroData
from torch_geometric.sampler import BaseSampler, HeteroSamplerOutput, NodeSamplerInput

from pygsampler import hgt as _core
from pygsampler._core.checks import boolean, describe
from pygsampler._loading.batch_number import BatchNumber
from pygsampler.pyg import options
from pygsampler.pyg.hetero import checked_seeds, graph_of

if TYPE_CHECKING:
    from pygsampler.hetero_batch import HeteroBatch
    from pygsampler.hetero_graph import HeteroGraph

__all__ = ["HGTLoader", "HGTSampler"]
