"""What the experiments are worth: flaws of samplers and loaders, and which cases must see them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tests.statistics.cases import CASES
from tests.statistics.loaders import LOADERS, CountsAlike, SameEpoch, SameRank, Swaps, workers
from tests.statistics.sources import Forgets, Modulo, OffByOne, OneStream, Probing, Source


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


FLAWS = [
    *_source(
        "random bits modulo the range",
        Modulo(),
        "single neighbours, 20 of 64",
        "single neighbours, 5 of 400",
        "first draw with replacement, of 97",
        "tenth draw with replacement, of 97",
    ),
    *_source(
        "Floyd's ranges one too short",
        OffByOne(),
        "single neighbours, 2 of 5",
        "subsets, 3 of 6",
        "places in the block, 3 of 5",
    ),
    *_source("the next free place", Probing(), "subsets, 3 of 6", "pairs of neighbours, 3 of 7"),
    *_source(
        "one stream for all rows",
        OneStream(1 << 30),
        "single neighbours, 20 of 64",
        "pairs of neighbours, 10 of 30",
        "neighbouring vertices",
        "vertices far apart, replace",
    ),
    *_source(
        "one stream for two rows",
        OneStream(2),
        "neighbouring vertices",
        "neighbouring vertices, replace",
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
]
