"""Times of several contenders on the same seeds, in turn, in one process.

The unit is a round: every contender samples the same run of batches, one contender after the other
and each round in another order, so that a slow moment of the machine touches all of them. A time
is that of a round divided by its batches; ratios are taken within a round, and medians over them.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from pygsampler._cli.bench.check import Int64s, check_agreement, check_batch, check_seed_hop
from pygsampler._cli.bench.contenders import BASELINE, Contender, Session
from pygsampler._cli.bench.csc import CscGraph
from pygsampler._cli.bench.machine import OtherLoad

# Whole batches checked edge by edge before the clock starts, one after the other: the trap of
# DGL's int32 sampler shows from the second on.
CHECKED = 3
# A round lasts long enough that starting and draining a loader's pipeline is lost in it.
_ROUND_SECONDS = 0.5
_ROUND_BATCHES = 16, 128
# A round counts as disturbed when other processes took more than this share of the cores.
_OTHER_SHARE = 0.05
_LOOK_SECONDS = 0.2


@dataclass(frozen=True)
class Setting:
    """Seeds in a batch and fanouts, outermost hop first."""

    batch_size: int
    fanouts: tuple[int, ...]

    @classmethod
    def parse(cls, text: str) -> Setting:
        """Parses ``1024x10,10`` or ``1024x(10,10)``; raises ValueError for other texts."""
        found = re.fullmatch(r"([1-9]\d*)x\(?(-?\d+(?:,-?\d+)*)\)?", text.replace(" ", ""))
        if not found:
            raise ValueError(f"setting: expected sizes like 1024x10,10, got {text!r}")
        return cls(int(found[1]), tuple(int(fanout) for fanout in found[2].split(",")))

    def __str__(self) -> str:
        return f"{self.batch_size}x({','.join(map(str, self.fanouts))})"


@dataclass(frozen=True)
class Quartiles:
    """Median, quartiles and smallest of the rounds."""

    median: float
    q25: float
    q75: float
    best: float

    @classmethod
    def from_values(cls, values: Sequence[float] | Any) -> Quartiles:
        low, middle, high = (float(x) for x in np.quantile(values, [0.25, 0.5, 0.75]))
        return cls(middle, low, high, float(np.min(values)))


@dataclass(frozen=True)
class ComparisonRow:
    """A contender in a setting. `ratio` is the baseline's time over this one's, per round.

    `others` is the share of the cores that other processes took in the median round, `disturbed`
    the number of rounds among `rounds` in which it was more than 5 %.
    """

    graph: str
    nodes: int
    edges: int
    id_bits: int
    setting: str
    contender: str
    label: str
    rounds: int
    disturbed: int
    others: float
    batches_per_round: int
    milliseconds: Quartiles
    edges_per_batch: float
    edges_per_second: float
    bytes_per_second: float
    ratio: Quartiles | None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def compare(
    graph: CscGraph,
    setting: Setting,
    contenders: Sequence[Contender],
    *,
    rounds: int = 20,
    batches: int | None = None,
    seconds: float | None = None,
    seed: int = 1,
    wait: float = 0.0,
    baseline: str = BASELINE,
    tick: Callable[[], object] = lambda: None,
) -> list[ComparisonRow]:
    """Checks and times `contenders`, which share a `frontier`; `tick` is called once a round.

    There are `rounds` of them; with `seconds` no more begin after that time, and at least 3 are
    taken. Ratios are to the contender called `baseline`. `batches` is the length of a round, None
    lets the first contender's speed decide. For `wait` seconds in all it waits for other processes
    to rest, and repeats rounds which they disturbed. CheckError when a contender breaks a law of
    sampling or samples fewer edges than another.
    """
    rng = np.random.default_rng(seed)
    frontier = contenders[0].frontier
    sessions = {c.name: c.open(graph, setting.fanouts, seed) for c in contenders}
    checked = _draw(graph, setting, rng, CHECKED)
    size = 0.0
    for name, session in sessions.items():
        size = checked_size(graph, setting, name, session, checked, epoch=0, frontier=frontier)
    if batches is None:
        batches = _round_length(sessions[contenders[0].name], checked)
    warm = _draw(graph, setting, rng, batches)
    for contender in contenders:
        measure_run(contender, sessions[contender.name], warm, 1)

    seeds: list[Int64s] = []
    times: dict[str, list[float]] = {c.name: [] for c in contenders}
    edges: dict[str, list[list[int]]] = {c.name: [] for c in contenders}
    shares: list[float] = []
    patience = wait
    start = time.perf_counter()
    while (taken := len(shares)) < rounds:
        if seconds is not None and taken >= 3 and time.perf_counter() - start > seconds:
            break
        patience -= await_idle(patience)
        drawn = _draw(graph, setting, rng, batches)
        epoch = 2 + len(seeds) // batches
        seeds += drawn
        turn = epoch % len(contenders)
        spent: dict[str, float] = {}
        others = OtherLoad()
        for contender in (*contenders[turn:], *contenders[:turn]):
            whole, counts = measure_run(contender, sessions[contender.name], drawn, epoch)
            spent[contender.name] = whole / batches
            edges[contender.name] += counts
        share = others.share()
        if share > _OTHER_SHARE:
            patience -= batches * sum(spent.values())
            if patience > 0:
                continue
        shares.append(share)
        for name, one in spent.items():
            times[name].append(one)
        tick()

    totals = {name: np.array(counts, dtype=np.int64) for name, counts in edges.items()}
    for name, session in sessions.items():
        check_seed_hop(graph, setting.fanouts[-1], seeds, totals[name][:, -1], name)
        checked_size(graph, setting, name, session, checked[:1], epoch=1, frontier=frontier)
    check_agreement(totals)
    return [
        _comparison_row(graph, setting, c, times, totals[c.name], size, shares, batches, baseline)
        for c in contenders
    ]


def await_idle(patience: float) -> float:
    """Waits until other processes rest, `patience` seconds at most; returns the seconds waited."""
    start = time.perf_counter()
    while (waited := time.perf_counter() - start) < patience:
        others = OtherLoad()
        time.sleep(_LOOK_SECONDS)
        if others.share() <= _OTHER_SHARE:
            break
    return waited


def _draw(graph: CscGraph, setting: Setting, rng: np.random.Generator, count: int) -> list[Int64s]:
    """Arrays of distinct seeds: DGL leaves duplicate seeds undefined."""
    if setting.batch_size > graph.num_nodes:
        raise ValueError(
            f"batch size: expected at most {graph.num_nodes} (nodes of {graph.name}), "
            f"got {setting.batch_size}"
        )
    return [rng.choice(graph.num_nodes, setting.batch_size, replace=False) for _ in range(count)]


def checked_size(
    graph: CscGraph,
    setting: Setting,
    name: str,
    session: Session,
    batches: list[Int64s],
    epoch: int,
    frontier: str = "all",
) -> float:
    """Mean size in bytes of whole batches, each of which was checked; CheckError when one fails."""
    size = 0
    sampled = list(session.run(batches, epoch))
    for seeds, batch in zip(batches, sampled, strict=True):
        views = session.views(batch)
        who = f"{graph.name} {setting}: {name}"
        check_batch(graph, setting.fanouts, seeds, views, who, frontier=frontier)
        words = sum(len(view.dst) + 1 + 2 * len(view.eid) for view in views) + len(views[0].src)
        size += words * graph.indices.itemsize
    return size / len(batches)


def _round_length(session: Session, batches: list[Int64s]) -> int:
    start = time.perf_counter()
    for _ in session.run(batches, 0):
        pass
    one = (time.perf_counter() - start) / len(batches)
    low, high = _ROUND_BATCHES
    return min(max(int(_ROUND_SECONDS / one), low), high)


def measure_run(
    contender: Contender, session: Session, batches: list[Int64s], epoch: int
) -> tuple[float, list[list[int]]]:
    """Seconds for one run of `session`, and the edges of every block of every batch.

    Counting edges costs DGL a few microseconds a block. It stands outside the clock where nothing
    goes on meanwhile, and inside it for a loader, which could use the time to sample ahead.
    """
    clock = time.perf_counter
    spent, counts = 0.0, []
    start = clock()
    for batch in session.run(batches, epoch):
        spent += clock() - start
        held = clock()
        counts.append(session.edges(batch))
        start = held if contender.overlaps else clock()
    return spent + clock() - start, counts


def _comparison_row(
    graph: CscGraph,
    setting: Setting,
    contender: Contender,
    times: dict[str, list[float]],
    totals: Int64s,
    size: float,
    shares: list[float],
    batches: int,
    baseline: str,
) -> ComparisonRow:
    own = np.array(times[contender.name])
    base = np.array(times[baseline]) if baseline in times else None
    edges = float(totals.sum(axis=1).mean())
    middle = float(np.median(own))
    return ComparisonRow(
        graph=graph.name,
        nodes=graph.num_nodes,
        edges=graph.num_edges,
        id_bits=8 * graph.indices.itemsize,
        setting=str(setting),
        contender=contender.name,
        label=contender.label,
        rounds=len(shares),
        disturbed=sum(share > _OTHER_SHARE for share in shares),
        others=float(np.median(shares)),
        batches_per_round=batches,
        milliseconds=Quartiles.from_values(1e3 * own),
        edges_per_batch=edges,
        edges_per_second=edges / middle,
        bytes_per_second=size / middle,
        ratio=None if base is None else Quartiles.from_values(base / own),
    )
