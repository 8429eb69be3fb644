"""Who chooses: the engine, a plain NumPy sampler that is right, and samplers that are wrong.

Each gives, for vertices 0, 1, ... that all have equal neighbour lists, the positions that they
took: one array [rows, fanout] for each hop.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np

import pygsampler as pgs
from tests.statistics.laws import Positions, floyd


class At(NamedTuple):
    """What the numbers of a batch are a function of."""

    seed: int
    epoch: int = 0
    batch: int = 0


class Shape(NamedTuple):
    rows: int
    degree: int
    fanout: int
    replace: bool = False


class Source(Protocol):
    def hops(self, at: At, shape: Shape, count: int) -> list[Positions]:
        """The choices of hops 0, 1, ..., count-1 of a batch of all vertices."""

    def trees(self, at: At, shape: Shape) -> tuple[Positions, Positions]:
        """The choices of all vertices in a tree each, and in another tree each."""


# ---- the engine ------------------------------------------------------------------------------


@lru_cache(maxsize=8)
def alike(rows: int, degree: int, device: str = "cpu") -> pgs.Graph:
    """Vertices whose in-neighbours are all the first ``degree`` ones; edge e is e % degree."""
    indptr = np.arange(rows + 1) * degree
    graph = pgs.Graph.from_csc(indptr, np.tile(np.arange(degree), rows), num_nodes=rows)
    return graph if device == "cpu" else graph.to(device)


def positions(block: Any, shape: Shape) -> Positions:
    """Those of a block's edges, one row for each of its first ``shape.rows`` destinations."""
    ids = block.edge_ids
    ids = np.asarray(ids.cpu() if hasattr(ids, "cpu") else ids)[: shape.rows * shape.fanout]
    found: Positions = ids.reshape(shape.rows, shape.fanout).astype(np.int64)
    # Edge e is of vertex e // degree: a row with too many or too few edges shows here.
    assert (found // shape.degree == np.arange(shape.rows)[:, None]).all()
    return found % shape.degree


class Engine:
    """pygsampler's own sampler, by its public interface."""

    def __init__(self, device: str = "cpu", mode: str = "auto") -> None:
        self.device, self.mode = device, mode

    def hops(self, at: At, shape: Shape, count: int) -> list[Positions]:
        graph = alike(shape.rows, shape.degree, self.device)
        sampler = pgs.PGSampler(
            [shape.fanout] * count, replace=shape.replace, seed=at.seed, mode=self.mode
        )
        batch = sampler.sample(graph, np.arange(shape.rows), epoch=at.epoch, batch=at.batch)
        return [positions(block, shape) for block in reversed(batch.blocks)]

    def trees(self, at: At, shape: Shape) -> tuple[Positions, Positions]:
        graph = alike(shape.rows, shape.degree)
        sampler = pgs.PGSampler(
            [shape.fanout], replace=shape.replace, seed=at.seed, frontier="new", disjoint=True
        )
        seeds = np.tile(np.arange(shape.rows), 2)
        batch = sampler.sample(graph, seeds, epoch=at.epoch, batch=at.batch)
        ids = np.asarray(batch.blocks[0].edge_ids).reshape(2, shape.rows, shape.fanout)
        return ids[0] % shape.degree, ids[1] % shape.degree


# ---- NumPy -----------------------------------------------------------------------------------


class Honest:
    """The same contract on NumPy's random numbers, without a flaw; the flaws derive from it."""

    def hops(self, at: At, shape: Shape, count: int) -> list[Positions]:
        return [self.choose([*at, hop, 0], shape) for hop in range(count)]

    def trees(self, at: At, shape: Shape) -> tuple[Positions, Positions]:
        return self.choose([*at, 0, 1], shape), self.choose([*at, 0, 2], shape)

    def choose(self, key: list[int], shape: Shape) -> Positions:
        """Those of seed, epoch, batch, hop and tree."""
        ends = np.full(shape.fanout, shape.degree)
        if not shape.replace:
            ends -= np.arange(shape.fanout)[::-1]
        draws = self.draws(np.random.default_rng(key), shape.rows, ends)
        return draws if shape.replace else self.distinct(draws, shape.degree)

    def draws(self, random: np.random.Generator, rows: int, ends: Positions) -> Positions:
        """One in [0, ends[j]) for each row and each j."""
        return random.integers(0, ends, (rows, len(ends)))

    def distinct(self, draws: Positions, degree: int) -> Positions:
        return floyd(draws, degree)


class Forgets(Honest):
    """Leaves one of its coordinates out of the stream's key, as a constant seed does."""

    COORDINATES = ("seed", "epoch", "batch", "hop", "tree")

    def __init__(self, coordinate: str) -> None:
        self.place = self.COORDINATES.index(coordinate)

    def choose(self, key: list[int], shape: Shape) -> Positions:
        key[self.place] = 0
        return super().choose(key, shape)


class OneStream(Honest):
    """Reuses one stream for ``share`` neighbouring rows."""

    def __init__(self, share: int) -> None:
        self.share = share

    def choose(self, key: list[int], shape: Shape) -> Positions:
        found = super().choose(key, shape)
        return found[np.arange(shape.rows) // self.share * self.share]


class Modulo(Honest):
    """Takes six random bits modulo the range: the low positions come more often."""

    def draws(self, random: np.random.Generator, rows: int, ends: Positions) -> Positions:
        return random.integers(0, 64, (rows, len(ends))) % ends


class OffByOne(Honest):
    """Floyd's ranges, one too short from the second draw on."""

    def draws(self, random: np.random.Generator, rows: int, ends: Positions) -> Positions:
        return random.integers(0, np.append(ends[:1], ends[1:] - 1), (rows, len(ends)))


class Probing(Honest):
    """Takes the next free position where one is taken, in the place of Floyd's rule."""

    def distinct(self, draws: Positions, degree: int) -> Positions:
        chosen = draws.copy()
        for j in range(1, draws.shape[1]):
            for _ in range(j):
                again = (chosen[:, :j] == chosen[:, j : j + 1]).any(axis=1)
                chosen[again, j] = (chosen[again, j] + 1) % degree
        return chosen
