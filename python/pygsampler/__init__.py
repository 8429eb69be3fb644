"""Samples mini-batches of large graphs for training graph neural networks."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pygsampler._arrays.array import Array
from pygsampler._batch.block import Block
from pygsampler._batch.minibatch import MiniBatch
from pygsampler._batch.subgraph import Subgraph
from pygsampler._engine.library import get_num_threads, memory_stats, set_num_threads, trim
from pygsampler._engine.public_home import set_public_module
from pygsampler._features.features import Features
from pygsampler._graph.graph import Graph, HeteroGraph
from pygsampler._loader.stream import stream
from pygsampler._sampling.sampler import Sampler
from pygsampler.errors import ClosedError, CudaError, Error
from pygsampler.programs import Program, program
from pygsampler.research.step_samples import StepSamples
from pygsampler.research.step_sampling import KHop, LayerSample
from pygsampler.samplers.hgt import HGTSampler
from pygsampler.samplers.labor import LaborSampler
from pygsampler.samplers.neighbor import PGSampler
from pygsampler.walks.metapath_walk import MetaPathWalk
from pygsampler.walks.pinsage import PinSAGE, RestartNeighbors
from pygsampler.walks.random_walk import RandomWalk
from pygsampler.walks.result import Walks
from pygsampler.walks.visits import Visits

if TYPE_CHECKING:
    from pygsampler import cuda, datasets, dgl, distributed, flight, pyg, samplers, torch

    __version__: str

__all__ = [
    "Array",
    "Block",
    "ClosedError",
    "CudaError",
    "Error",
    "Features",
    "Graph",
    "HGTSampler",
    "HeteroGraph",
    "KHop",
    "LaborSampler",
    "LayerSample",
    "MetaPathWalk",
    "MiniBatch",
    "PGSampler",
    "PinSAGE",
    "Program",
    "RandomWalk",
    "RestartNeighbors",
    "Sampler",
    "StepSamples",
    "Subgraph",
    "Visits",
    "Walks",
    "cuda",
    "datasets",
    "dgl",
    "distributed",
    "flight",
    "get_num_threads",
    "memory_stats",
    "program",
    "pyg",
    "samplers",
    "set_num_threads",
    "stream",
    "torch",
    "trim",
]

set_public_module(globals())

# Loaded when they are first named: the adapters import their framework.
_SUBMODULES = frozenset(
    {"cuda", "datasets", "dgl", "distributed", "flight", "pyg", "samplers", "torch"}
)


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return import_module(f"pygsampler.{name}")
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("pygsampler")
        except PackageNotFoundError:  # used from its folder
            return "0+unknown"
    raise AttributeError(f"module 'pygsampler' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
