"""The measured cases: a shape, a batch size and fanouts, and the times of others."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

_HERE = Path(__file__).parent
# The data sets of the paper's Table II, its batch sizes, fanouts and numbers of hops.
PAPER_SHAPES = ("reddit", "flickr", "yelp", "arxiv", "products", "physics")
PAPER_BATCHES = (2048, 4096, 8192, 10240)
PAPER_FANOUTS = (10, 15, 20)
PAPER_HOPS = (2, 3)


@dataclass(frozen=True)
class Case:
    """``peer_us``: the time of the best other sampler; ``edges``: of its batches; 0: unknown."""

    shape: str
    batch: int
    fanouts: tuple[int, ...]
    ids: str = "int32"
    edges: int = 0
    peer_us: float = 0.0
    exploration_us: float = 0.0

    def __str__(self) -> str:
        return f"{self.shape} {self.batch}x({','.join(map(str, self.fanouts))}) {self.ids}"


def _rows(file: str) -> list[dict[str, str]]:
    with (_HERE / file).open() as lines:
        return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def _fanouts(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split("x")))


def reference() -> list[Case]:
    """The rows of reference.csv, those that matter most first: small batches of each shape."""
    cases = [
        Case(
            row["shape"],
            int(row["batch"]),
            # The file names the fanout of the seeds first: the edges tell.
            _fanouts(row["fanouts"])[::-1],
            edges=int(row["edges"]),
            peer_us=float(row["best_peer_us"]),
            exploration_us=float(row["exploration_us"]),
        )
        for row in _rows("reference.csv")
    ]
    return sorted(cases, key=lambda case: list(by_shape(cases)).index(case.shape))


def dgl_grid() -> list[Case]:
    """The rows of dgl_grid.csv, int32 first."""
    cases = [
        Case(
            row["shape"],
            int(row["batch"]),
            _fanouts(row["fanouts"]),
            ids=row["idtype"],
            edges=int(row["edges"]),
            peer_us=float(row["dgl_us"]),
        )
        for row in _rows("dgl_grid.csv")
    ]
    return sorted(cases, key=lambda case: case.ids)


def by_shape(cases: list[Case]) -> dict[str, list[Case]]:
    """In the order in which the shapes occur."""
    found: dict[str, list[Case]] = {}
    for case in cases:
        found.setdefault(case.shape, []).append(case)
    return found


def tiny(cases: list[Case]) -> list[Case]:
    """A few small cases, to try the code of a part; their times mean nothing."""
    few = {case.fanouts: case for case in cases}
    return [Case("tiny", 64, fanouts, case.ids) for fanouts, case in few.items()][:2]
