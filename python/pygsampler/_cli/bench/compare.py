"""Times of several contenders on the same seeds, in turn, in one process.

The unit is a round: every contender samples the same run of batches, one contender after the other
and each round in another order, so that a slow moment of the machine touches all of them. A time
is that of a round divided by its batches; ratios are taken within a round, and medians over them.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from pygsampler._cli.bench.check import (
    CheckError,
    Int64s,
    check_agreement,
    check_batch,
    check_rows,
    check_seed_hop,
)
from pygsampler._cli.bench.contenders import BASELINE, Contender, Session
from pygsampler._cli.bench.csc import CscGraph
from pygsampler._cli.bench.libraries import first_line
from pygsampler._cli.bench.machine import OtherLoad
from pygsampler._engine.error_conversion import ErrorConversion

if TYPE_CHECKING:
    from pygsampler._cli.bench.contenders import LoaderSession

# Whole batches checked edge by edge before the clock starts, one after the other: the trap of
# DGL's int32 sampler shows from the second on.
CHECKED = 3
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
    """A contender in a setting. `ratio` is the time of `baseline` over this one's, per round.

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
    baseline: str | None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class ContenderError(Exception):
    """A contender failed; `contender` is its name, `error` the cause."""

    def __init__(self, contender: str, error: Exception) -> None:
        super().__init__(f"{contender}: {first_line(error)}")
        self.contender, self.error = contender, error


def contender_errors(name: str) -> ErrorConversion:
    """Raises what a contender raises as ContenderError; CheckError stays one."""

    def convert(error: Exception) -> Exception | None:
        # Any error is converted: the error classes of other libraries and versions are not known.
        return None if isinstance(error, CheckError) else ContenderError(name, error)

    return ErrorConversion(convert, chained=True)


@dataclass
class RoundTimes:
    """Times and edges of contenders by name, in rounds of batches of the same seeds.

    `times` has seconds a batch for each round, `edges` int64 [batches, hops], `shares` the share of
    the cores that other processes took in each round.
    """

    times: dict[str, list[float]]
    edges: dict[str, Int64s]
    seeds: list[Int64s]
    shares: list[float]
    batches: int


def compare(
    graph: CscGraph,
    setting: Setting,
    contenders: Sequence[Contender],
    *,
    seed: int = 1,
    baseline: str | Sequence[str] = BASELINE,
    **options: Any,
) -> list[ComparisonRow]:
    """Checks and times `contenders`, which share a `frontier`.

    Ratios are to the contender `baseline`, or to the fastest of several; `options` are passed to
    `interleave`. If the graph has features, sessions have rows of them, which are checked too.
    Raises CheckError when a contender breaks a law of sampling, samples fewer edges than another,
    or has other rows, and ContenderError when one fails.
    """
    rng = np.random.default_rng(seed)
    frontier = contenders[0].frontier
    sessions: dict[str, Session] = {}
    forms = {c.name: c for c in contenders}
    checked = draw_seeds(graph, setting, rng, CHECKED)
    size = 0.0
    for name, contender in forms.items():
        with contender_errors(name):
            sessions[name] = session = contender.open(graph, setting.fanouts, seed)
            size = checked_size(graph, setting, name, session, checked, epoch=0, frontier=frontier)

    def run(name: str, batches: list[Int64s], epoch: int) -> tuple[float, list[list[int]]]:
        return measure_run(forms[name], sessions[name], batches, epoch)

    measured = interleave(
        list(sessions), run, lambda n: draw_seeds(graph, setting, rng, n), **options
    )
    for name, session in sessions.items():
        last = measured.edges[name][:, -1]
        check_seed_hop(graph, setting.fanouts[-1], measured.seeds, last, name)
        with contender_errors(name):
            checked_size(graph, setting, name, session, checked[:1], epoch=1, frontier=frontier)
    check_agreement(measured.edges)
    labels = {name: contender.label for name, contender in forms.items()}
    return comparison_rows(graph, setting, labels, measured, size, baseline)


def interleave(
    names: Sequence[str],
    run: Callable[[str, list[Int64s], int], tuple[float, list[list[int]]]],
    draw: Callable[[int], list[Int64s]],
    *,
    rounds: int = 20,
    batches: int | None = None,
    seconds: float | None = None,
    wait: float = 0.0,
    tick: Callable[[], object] = lambda: None,
) -> RoundTimes:
    """Lets contenders run the same batches in turn, each round in another order.

    `run` takes the name of a contender, arrays of seeds and an epoch; it returns seconds and the
    edges of each hop of each batch. `draw` returns so many arrays of seeds. There are `rounds` of
    them; with `seconds` no more begin after that time, and at least 3 are taken. `batches` is the
    length of a round, None lets the first contender's speed decide. For `wait` seconds in all it
    waits for other processes to rest, and repeats rounds which they disturbed. `tick` is called
    once a round.
    """

    def measure(name: str, batches: list[Int64s], epoch: int) -> tuple[float, list[list[int]]]:
        with contender_errors(name):
            return run(name, batches, epoch)

    if batches is None:
        # A round lasts long enough that starting and draining a loader's pipeline is lost in it.
        low, high = _ROUND_BATCHES
        one = measure(names[0], draw(CHECKED), 0)[0] / CHECKED
        batches = min(max(int(_ROUND_SECONDS / one), low), high)
    warm = draw(batches)
    for name in names:
        measure(name, warm, 1)
    seeds: list[Int64s] = []
    times: dict[str, list[float]] = {name: [] for name in names}
    edges: dict[str, list[list[int]]] = {name: [] for name in names}
    shares: list[float] = []
    patience = wait
    start = time.perf_counter()
    while (taken := len(shares)) < rounds:
        if seconds is not None and taken >= 3 and time.perf_counter() - start > seconds:
            break
        patience -= await_idle(patience)
        drawn = draw(batches)
        epoch = 2 + len(seeds) // batches
        seeds += drawn
        turn = epoch % len(names)
        spent: dict[str, float] = {}
        others = OtherLoad()
        for name in (*names[turn:], *names[:turn]):
            whole, counts = measure(name, drawn, epoch)
            spent[name] = whole / batches
            edges[name] += counts
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
    return RoundTimes(times, totals, seeds, shares, batches)


def await_idle(patience: float) -> float:
    """Waits until other processes rest, `patience` seconds at most; returns the seconds waited."""
    start = time.perf_counter()
    while (waited := time.perf_counter() - start) < patience:
        others = OtherLoad()
        time.sleep(_LOOK_SECONDS)
        if others.share() <= _OTHER_SHARE:
            break
    return waited


def draw_seeds(
    graph: CscGraph, setting: Setting, rng: np.random.Generator, count: int
) -> list[Int64s]:
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
        if graph.features is not None:
            rows = cast("LoaderSession", session).feature_rows(batch)
            check_rows(graph.features, views[0].src, rows, who)
            size += rows.nbytes
    return size / len(batches)


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


def comparison_rows(
    graph: CscGraph,
    setting: Setting,
    labels: Mapping[str, str],
    measured: RoundTimes,
    size: float,
    baseline: str | Sequence[str],
) -> list[ComparisonRow]:
    """A row for each contender, by its name with its label; a batch has `size` bytes."""
    bases = [baseline] if isinstance(baseline, str) else list(baseline)
    medians = {name: float(np.median(times)) for name, times in measured.times.items()}
    base = min((name for name in bases if name in medians), key=medians.__getitem__, default=None)
    rows = []
    for name, label in labels.items():
        own = np.array(measured.times[name])
        edges = float(measured.edges[name].sum(axis=1).mean())
        middle = medians[name]
        ratio = (
            None if base is None else Quartiles.from_values(np.array(measured.times[base]) / own)
        )
        rows.append(
            ComparisonRow(
                graph=graph.name,
                nodes=graph.num_nodes,
                edges=graph.num_edges,
                id_bits=8 * graph.indices.itemsize,
                setting=str(setting),
                contender=name,
                label=label,
                rounds=len(measured.shares),
                disturbed=sum(share > _OTHER_SHARE for share in measured.shares),
                others=float(np.median(measured.shares)),
                batches_per_round=measured.batches,
                milliseconds=Quartiles.from_values(1e3 * own),
                edges_per_batch=edges,
                edges_per_second=edges / middle,
                bytes_per_second=size / middle,
                ratio=ratio,
                baseline=base,
            )
        )
    return rows
