"""Random walks from seeds, the neighbors that they visit, and their results."""

from __future__ import annotations

from pygsampler._engine.public_home import set_public_module
from pygsampler.walks.metapath_walk import MetaPathWalk
from pygsampler.walks.pinsage import PinSAGE, RestartNeighbors
from pygsampler.walks.random_walk import (
    DeepWalk,
    MultiRW,
    Node2Vec,
    PersonalizedPageRank,
    RandomWalk,
)
from pygsampler.walks.result import Walks
from pygsampler.walks.visits import Visits

__all__ = [
    "DeepWalk",
    "MetaPathWalk",
    "MultiRW",
    "Node2Vec",
    "PersonalizedPageRank",
    "PinSAGE",
    "RandomWalk",
    "RestartNeighbors",
    "Visits",
    "Walks",
]

set_public_module(globals())


def __dir__() -> list[str]:
    return sorted(__all__)
