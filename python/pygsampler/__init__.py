"""Samples mini-batches of large graphs for training graph neural networks."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pygsampler import research
from pygsampler._adapters.installation import install, uninstall
from pygsampler._arrays.array import Array
from pygsampler._batch.block import Block
from pygsampler._batch.minibatch import MiniBatch
from pygsampler._engine.library import get_num_threads, set_num_threads
from pygsampler._engine.public_home import set_public_module
from pygsampler._features.features import Features
from pygsampler._graph.graph import Graph, HeteroGraph
from pygsampler._inference.all_nodes import inference
from pygsampler._loader.stream import stream
from pygsampler._sampling.sampler import Sampler
from pygsampler.errors import Error
from pygsampler.programs import Program, program
from pygsampler.samplers.labor import LaborSampler
from pygsampler.samplers.neighbor import PGSampler
from pygsampler.walks.random_walk import RandomWalk
from pygsampler.walks.result import Walks

if TYPE_CHECKING:
    from pygsampler import (
        cuda,
        datasets,
        dgl,
        distributed,
        engine,
        errors,
        evaluate,
        flight,
        pyg,
        samplers,
        torch,
        walks,
    )

    __version__: str

NeighborSampler = PGSampler
"""Another name of ``PGSampler``, which other libraries have for it."""

__all__ = [
    "Array",
    "Block",
    "Error",
    "Features",
    "Graph",
    "HeteroGraph",
    "LaborSampler",
    "MiniBatch",
    "NeighborSampler",
    "PGSampler",
    "Program",
    "RandomWalk",
    "Sampler",
    "Walks",
    "cuda",
    "datasets",
    "dgl",
    "distributed",
    "engine",
    "errors",
    "evaluate",
    "flight",
    "get_num_threads",
    "inference",
    "install",
    "program",
    "pyg",
    "research",
    "samplers",
    "set_num_threads",
    "stream",
    "torch",
    "uninstall",
    "walks",
]

set_public_module(globals())

# Loaded when they are first named: the adapters import their framework.
_SUBMODULES = frozenset(
    {
        *("cuda", "datasets", "dgl", "distributed", "engine", "evaluate", "flight", "pyg"),
        *("samplers", "torch"),
    }
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
