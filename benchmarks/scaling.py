"""Measures how time grows: ``python -m benchmarks.scaling``.

Three questions, each with its own picture: is the work linear in the sampled edges (batch sizes
256 to 16384), what does a second core bring, and does a node with 10 million neighbors cost
more than a node with 100.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from pygsampler._cli.bench import compare, contenders, frameworks
from pygsampler._cli.bench.check import CheckError, Int64s
from pygsampler._cli.bench.csc import CscGraph

from . import environment, graphs, report

SIZES = (256, 512, 1024, 2048, 4096, 8192, 16384)
HUB_DEGREE = 10_000_000
ORDINARY_DEGREE = 100
_ORDINARY = 4096
# Batches in a round of the hub: those of one seed take microseconds.
_RUN = 64


@dataclass(frozen=True)
class WithThreads:
    """A contender of ours that samples with `threads` threads."""

    inner: contenders.Contender
    threads: int

    @property
    def name(self) -> str:
        return f"{self.inner.name}-{self.threads}"

    @property
    def label(self) -> str:
        return f"{self.inner.label}, {self.threads} thread{'s' if self.threads > 1 else ''}"

    @property
    def overlaps(self) -> bool:
        return self.inner.overlaps

    @property
    def frontier(self) -> str:
        return self.inner.frontier

    def open(self, graph: CscGraph, fanouts: Sequence[int], seed: int) -> contenders.Session:
        return _ThreadSession(self.inner.open(graph, fanouts, seed), self.threads)


class _ThreadSession:
    """Sets the number of threads for a run and puts the former one back."""

    def __init__(self, inner: contenders.Session, threads: int) -> None:
        self._inner = inner
        self._threads = threads
        self.edges = inner.edges
        self.views = inner.views

    def run(self, batches: Sequence[Int64s], epoch: int) -> Iterator[Any]:
        import pygsampler as pgs

        before = pgs.get_num_threads()
        pgs.set_num_threads(self._threads)
        try:
            yield from self._inner.run(batches, epoch)
        finally:
            pgs.set_num_threads(before)


def by_size(
    graph: CscGraph,
    fanouts: tuple[int, ...],
    sizes: Sequence[int],
    chosen: Sequence[contenders.Contender],
    **options: Any,
) -> list[compare.ComparisonRow]:
    """Rows for every batch size."""
    rows: list[compare.ComparisonRow] = []
    for size in tqdm(sizes, desc="batch sizes", leave=False):
        rows += compare.compare(graph, compare.Setting(size, fanouts), chosen, **options)
    return rows


def growth(rows: Sequence[compare.ComparisonRow]) -> dict[str, float]:
    """Exponent k of time ~ edges^k for each contender: 1 is linear work, below 1 fixed costs."""
    exponents = {}
    for name in dict.fromkeys(row.contender for row in rows):
        own = [row for row in rows if row.contender == name]
        work = np.log([row.edges_per_batch for row in own])
        spent = np.log([row.milliseconds.median for row in own])
        exponents[name] = float(np.polyfit(work, spent, 1)[0])
    return exponents


def by_threads(
    graph: CscGraph,
    settings: Sequence[compare.Setting],
    threads: Sequence[int],
    chosen: Sequence[contenders.Contender],
    **options: Any,
) -> list[compare.ComparisonRow]:
    """Rows for every setting and number of threads; all numbers take turns in the same rounds."""
    pool = [WithThreads(contender, count) for contender in chosen for count in threads]
    rows: list[compare.ComparisonRow] = []
    for setting in tqdm(settings, desc="threads", leave=False):
        rows += compare.compare(graph, setting, pool, **options)
    return rows


def hub_graph(hub_degree: int, seed: int = 1) -> CscGraph:
    """Vertex 0 has `hub_degree` distinct neighbours, vertices 1..4096 have 100, the others 2.

    All neighbours are vertices of degree 2, so what follows the first hop is alike for all seeds.
    """
    rng = np.random.default_rng(seed)
    first = 1 + _ORDINARY
    degree = np.full(first + hub_degree, 2, np.int64)
    degree[0] = hub_degree
    degree[1:first] = ORDINARY_DEGREE
    indptr = np.zeros(len(degree) + 1, np.int64)
    np.cumsum(degree, out=indptr[1:])
    indices = rng.integers(first, len(degree), size=int(indptr[-1]), dtype=np.int64)
    indices[:hub_degree] = first + rng.permutation(hub_degree)
    return CscGraph(f"hub of {hub_degree:,}", indptr, indices)


def hub_times(
    graph: CscGraph,
    chosen: Sequence[contenders.Contender],
    *,
    rounds: int,
    wait: float = 0.0,
    fanouts: tuple[int, ...] = (10, 10),
    seed: int = 1,
) -> list[dict[str, Any]]:
    """Times of batches with and without the hub, which take turns, for each contender.

    Each record has `contender`, `seeds` (what is sampled), `milliseconds`, `edges`, and
    `to_ordinary`, the time over that of the same number of ordinary seeds in the same round.
    """
    rng = np.random.default_rng(seed)
    ordinary = 1 + rng.permutation(_ORDINARY)
    many = ordinary[:1024].copy()
    many[512] = 0
    pairs = {
        "the hub": [np.zeros(1, np.int64)] * _RUN,
        "one of 100": [ordinary[k : k + 1] for k in range(_RUN)],
        "1023 of 100 and the hub": [many] * (_RUN // 4),
        "1024 of 100": [ordinary[:1024]] * (_RUN // 4),
    }
    records = []
    for contender in chosen:
        session = contender.open(graph, fanouts, seed)
        for batches in pairs.values():
            setting = compare.Setting(len(batches[0]), fanouts)
            compare.checked_size(graph, setting, contender.name, session, batches[:3], epoch=0)
        times: dict[str, list[float]] = {kind: [] for kind in pairs}
        edges: dict[str, float] = {}
        for number in tqdm(range(rounds), desc=f"hub, {contender.name}", leave=False):
            wait -= compare.await_idle(wait)
            for kind, batches in pairs.items():
                spent, counts = compare.measure_run(contender, session, batches, 1 + number)
                times[kind].append(1e3 * spent / len(batches))
                edges[kind] = float(np.sum(counts)) / len(batches)
        for kind, other in (("the hub", "one of 100"), ("1023 of 100 and the hub", "1024 of 100")):
            for seeds in (kind, other):
                ratio = np.array(times[seeds]) / np.array(times[other])
                records.append(
                    {
                        "contender": contender.name,
                        "label": contender.label,
                        "seeds": seeds,
                        "milliseconds": asdict(compare.Quartiles.from_values(times[seeds])),
                        "edges": edges[seeds],
                        "to_ordinary": asdict(compare.Quartiles.from_values(ratio)),
                    }
                )
    return records


def plot(record: dict[str, Any], path: Path, title: str) -> None:
    """Three panels: time by edges, edges a second by threads, time with and without the hub."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(14, 4.5), layout="constrained")
    sizes, threads, hub = figure.subplots(1, 3)
    for label, own in _by_label(record["sizes"]):
        work = [row["edges_per_batch"] for row in own]
        spent = [row["milliseconds"]["median"] for row in own]
        sizes.plot(work, spent, marker="o", label=label)
    sizes.set(xscale="log", yscale="log", xlabel="sampled edges in a batch", ylabel="ms a batch")
    sizes.set_title("work is linear in the edges", fontsize=10)
    for (name, setting), own in _lines(record["threads"]):
        counts = [int(row["contender"].rpartition("-")[2]) for row in own]
        speed = [row["edges_per_second"] / 1e6 for row in own]
        threads.plot(counts, speed, marker="o", label=f"{name} {setting}")
        threads.set_xticks(counts)
    threads.set(xlabel="threads", ylabel="million edges a second", ylim=(0, None))
    threads.set_title("one core and more", fontsize=10)
    for label, own in _by_label(record["hub"]):
        spent = [row["milliseconds"]["median"] for row in own]
        hub.plot([row["seeds"] for row in own], spent, "o", label=label)
    hub.set(yscale="log", ylabel="ms a batch")
    hub.tick_params(axis="x", labelsize=7, labelrotation=15)
    hub.set_title(f"a hub of {record['hub_degree']:,} neighbours", fontsize=10)
    for axes in (sizes, threads, hub):
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7)
    figure.suptitle(title, fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def _lines(
    records: Sequence[dict[str, Any]],
) -> Iterator[tuple[tuple[str, str], list[dict[str, Any]]]]:
    """The records of each sampler and setting, whatever their number of threads."""

    def key(record: dict[str, Any]) -> tuple[str, str]:
        return record["contender"].rpartition("-")[0], record["setting"]

    for wanted in dict.fromkeys(map(key, records)):
        yield wanted, [record for record in records if key(record) == wanted]


def _by_label(records: Sequence[dict[str, Any]]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    for label in dict.fromkeys(record["label"] for record in records):
        yield label, [record for record in records if record["label"] == label]


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0, or 1 after a failed check."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = _parser().parse_args(given)
    record = environment.describe(given, "benchmarks.scaling", note=options.note)
    print(environment.summary(record), end="\n\n")
    try:
        record |= _measure(options)
    except CheckError as error:
        print(f"refused: {error}", file=sys.stderr)
        return 1
    if options.out:
        report.write_json(options.out / "scaling.json", record)
        plot(record, options.out / "scaling.png", environment.summary(record))
        print(f"\nwritten: {options.out / 'scaling.json'}, {options.out / 'scaling.png'}")
    return 0


def _measure(options: argparse.Namespace) -> dict[str, Any]:
    ours = [c for c in frameworks.ALL if c.name in ("sample", "loader")]
    with_dgl = [c for c in frameworks.ALL if c.name in ("dgl", "sample", "loader")]
    if importlib.util.find_spec("dgl") is None:
        print("DGL is not installed: our own times alone.\n")
        with_dgl = ours
    graph = graphs.load("quick" if options.quick else options.graph)
    repeat = options.repeat or (3 if options.quick else 20)
    how: dict[str, Any] = {"rounds": repeat, "batches": 4 if options.quick else None}
    how["wait"] = 0 if options.quick else options.wait
    sizes = (64, 128, 256) if options.quick else SIZES
    settings = [compare.Setting(sizes[-1] if options.quick else 1024, (10, 10))]
    if not options.quick:
        settings.append(compare.Setting(2048, (10, 10, 10)))

    size_rows = by_size(graph, (10, 10), sizes, with_dgl, **how)
    for row in size_rows:
        print(report.line(row))
    exponents = growth(size_rows)
    for name, exponent in exponents.items():
        print(f"{name}: time grows as edges^{exponent:.2f}")

    print()
    counts = range(1, environment.hardware()["cores"] + 1)
    thread_rows = by_threads(graph, settings, counts, ours, **how)
    for row in thread_rows:
        print(report.line(row))

    print()
    degree = 100_000 if options.quick else HUB_DEGREE
    first = [c for c in with_dgl if not c.overlaps]
    records = hub_times(hub_graph(degree), first, rounds=how["rounds"], wait=how["wait"])
    for found in records:
        spread, ratio = found["milliseconds"], found["to_ordinary"]
        print(
            f"{found['label']:28} {found['seeds']:24} {1e3 * spread['median']:9.1f} us "
            f"({1e3 * spread['q25']:.1f} to {1e3 * spread['q75']:.1f})  {found['edges']:6.0f} edges"
            f"  {ratio['median']:.2f}x without the hub"
        )
    return {
        "sizes": [row.as_json() for row in size_rows],
        "growth": exponents,
        "threads": [row.as_json() for row in thread_rows],
        "hub_degree": degree,
        "hub": records,
        "huge_page_share": environment.huge_page_share(),
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes")
    parser.add_argument("--graph", choices=tuple(graphs.SHAPES), default="products")
    parser.add_argument("--repeat", type=int, help="rounds (default: 20, with --quick 3)")
    parser.add_argument("--wait", type=float, default=60, help="as in python -m benchmarks")
    parser.add_argument("--note", help="as in python -m benchmarks")
    parser.add_argument("--out", type=Path, help="folder for scaling.json and scaling.png")
    return parser


if __name__ == "__main__":
    sys.exit(main())
