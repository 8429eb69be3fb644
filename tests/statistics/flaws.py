"""What the experiments are worth: flaws of samplers and loaders, and which cases must see them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tests.statistics.cases import CASES
from tests.statistics.loaders import LOADERS, CountsAlike, SameEpoch, SameRank, Swaps, workers
from tests.statistics.sources import Forgets, Modulo, OffByOne, OneStream, Probing, Source
from tests.statistics.walks import (
    WALK_CASES,
    ByVertex,
    ByWalk,
    EdgeNumbers,
    EvenRoots,
    FirstMayEnd,
    Forwards,
    LateStop,
    MadeUp,
    Neighbour0,
    OneEdge,
    OtherLayout,
    RootsThatStay,
    Unweighted,
    Walker,
    Weights,
    WithoutNumber,
    exact,
)


class Flaw(NamedTuple):
    """``p(seed)`` of a case that has to reject it."""

    name: str
    case: str
    p: Callable[[int], float]


def _source(name: str, source: Source, *cases: str) -> list[Flaw]:
    by_name = {case.name: case for case in CASES}

    def p(case: str) -> Callable[[int], float]:
        return lambda seed: by_name[case].run(source, seed, 1)

    return [Flaw(name, case, p(case)) for case in cases]


def _loader(name: str, make: Any, *cases: str) -> list[Flaw]:
    by_name = {case.name: case for case in LOADERS}

    def p(case: str) -> Callable[[int], float]:
        return lambda seed: by_name[case].run(make, seed)

    return [Flaw(name, case, p(case)) for case in cases]


def _walker(name: str, walker: Walker, *cases: str) -> list[Flaw]:
    by_name = {case.name: case for case in WALK_CASES}

    def p(case: str) -> Callable[[int], float]:
        return lambda seed: by_name[case].run(walker, seed, 1)

    return [Flaw(name, case, p(case)) for case in cases]


FLAWS = [
    *_source(
        "random bits modulo the range",
        Modulo(),
        "single neighbors, 20 of 64",
        "single neighbors, 5 of 400",
        "first draw with replacement, of 97",
        "tenth draw with replacement, of 97",
    ),
    *_source(
        "Floyd's ranges one too short",
        OffByOne(),
        "single neighbors, 2 of 5",
        "subsets, 3 of 6",
        "places in the block, 3 of 5",
    ),
    *_source("the next free place", Probing(), "subsets, 3 of 6", "pairs of neighbors, 3 of 7"),
    *_source(
        "one stream for all rows",
        OneStream(1 << 30),
        "single neighbors, 20 of 64",
        "pairs of neighbors, 10 of 30",
        "consecutive nodes",
        "nodes far apart, replace",
    ),
    *_source(
        "one stream for two rows",
        OneStream(2),
        "consecutive nodes",
        "consecutive nodes, replace",
    ),
    *_source("the same at every hop", Forgets("hop"), "hops 0 and 1", "hops 0 and 2, replace"),
    *_source("the same in every batch", Forgets("batch"), "the next batch", "batch + 2^32"),
    *_source("the same in every epoch", Forgets("epoch"), "the next epoch, replace"),
    *_source("the same for every seed", Forgets("seed"), "seed + 2^20", "seed + 2^32, replace"),
    *_source("the same in every tree", Forgets("tree"), "two trees", "two trees, replace"),
    *_loader("ranks that count alike", SameRank, "loader: ranks with equal seeds"),
    *_loader(
        "a constant seed",
        SameEpoch,
        "loader: epochs",
        "loader: orders of two epochs",
        "loader: orders of four seeds",
    ),
    *_loader("a shuffle by n swaps", Swaps, "loader: orders of four seeds"),
    Flaw(
        "workers that count alike",
        "workers of torch's loader",
        lambda seed: workers(seed, CountsAlike(seed))["workers of torch's loader"],
    ),
    *_walker("walks: rows that are steps", OtherLayout(), "walks", "walks, by weight"),
    *_walker("walks: weights that do nothing", Unweighted(), "walks, by weight"),
    *_walker("walks: parallel edges as one", OneEdge(), "walks, parallel edges"),
    *_walker("walks: no stop before the first step", LateStop(), "lengths of walks that stop"),
    *_walker("walks: draws by node and step", ByVertex(), "two walks from a node"),
    *_walker("walks: one draw for all steps", ByWalk(), "steps 0 and 1", "steps 0 and 7"),
    *_walker("walks: the same for every seed", WithoutNumber(0), "walks, seed + 2^32"),
    *_walker("walks: the same in every epoch", WithoutNumber(1), "walks, the next epoch"),
    *_walker("walks: the same in every batch", WithoutNumber(2), "walks, the next batch"),
    *_walker("several roots: each as often", EvenRoots(), "walks of several roots"),
    *_walker("several roots: none of them moves", RootsThatStay(), "walks of several roots"),
    *_walker("visits: the first traversal may end", FirstMayEnd(), "visits of traversals"),
    *_walker(
        "node2vec: factors p, q, 1",
        Weights(lambda p, q: (p, q, 1.0)),
        "node2vec, p = 0.25",
        "node2vec, p = 4, by weight",
    ),
    *_walker(
        "node2vec: factors p, 1/q, 1",
        Weights(lambda p, q: (p, 1 / q, 1.0)),
        "node2vec, p = 0.25",
        "node2vec, p = 4, by weight",
    ),
    *_walker(
        "node2vec: what is refused is tried as far",
        Weights(lambda p, q: (max(1 / p, 1 / q), max(1.0, 1 / q), 1 / q)),
        "node2vec, p = 2",
        "node2vec, p = 4, by weight",
    ),
    *_walker("node2vec: t -> x for x -> t", Forwards(exact), "node2vec, arcs"),
    *_walker("node2vec: places of edges for nodes", EdgeNumbers(), "node2vec, p = 2"),
    *_walker("node2vec: a first step from node 0", MadeUp(), "node2vec, p = 0.25"),
    *_walker("node2vec: a first step to neighbor 0", Neighbour0(), "node2vec, p = 0.25"),
]
