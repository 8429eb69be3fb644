"""Weighted sampling on the CPU against DGL's own, ``NeighborSampler(fanouts, prob="w")``::

    python -m benchmarks.weights --quick
    python -m benchmarks.weights

Contenders take turns as in ``python -m benchmarks``, with the same checks of counts, rows and
edges. Before those, each samples a small graph some of whose weights are 0: see `check_law`.
The cost of weights beside uniform sampling: ``go test -bench Weighted`` in the CPU engine.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pygsampler._cli.bench import compare, frameworks
from pygsampler._cli.bench.check import CheckError, Int64s
from pygsampler._cli.bench.contenders import BASELINE, Contender, OneBatch, Session
from pygsampler._cli.bench.csc import CscGraph

from . import environment, graphs, report

GRAPHS = ("reddit", "products")
SETTINGS = ("1024x10,10", "1024x15,10,5")
Weights = npt.NDArray[np.float32]
# By the name of a kind: what a number in [0, 1) becomes.
KINDS: dict[str, Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]]] = {
    "[1, 5)": lambda u: 1 + 4 * u,
    "pareto": lambda u: np.power(1 - u, -1 / 1.2),
}
# The least ratio to DGL 2.1 that is accepted on two cores.
ASKED = {("reddit", "sample"): 8.0, ("products", "sample"): 8.0}
_CHUNK = 1 << 24
# Batches of the check of the law, and the standard errors beyond which two means differ.
_LAW_BATCHES = 40
_ERRORS = 6.0


def weights_of(graph: CscGraph, kind: str, seed: int = 11) -> Weights:
    """Positive weights of a kind, float32 [edges]."""
    rng = np.random.default_rng(seed)
    values = np.empty(graph.num_edges, np.float32)
    for low in range(0, len(values), _CHUNK):
        part = values[low : low + _CHUNK]
        part[:] = KINDS[kind](rng.random(len(part)))
    return values


class DglByWeight(frameworks.DglSampler):
    """DGL's NeighborSampler with ``prob``, on a graph with the weights as ``edata``."""

    label = "DGL NeighborSampler, prob"

    def __init__(self, weights: Weights) -> None:
        super().__init__()
        self.label = DglByWeight.label
        self._weights = weights

    def open(self, graph: CscGraph, fanouts: Sequence[int], seed: int) -> Session:
        import dgl

        dgl.seed(seed)
        fused = graph.indices.dtype == np.int64  # as for uniform sampling: int32 loses edges
        sampler = dgl.dataloading.NeighborSampler(list(fanouts), prob="w", fused=fused)
        return _with_weights(graph, sampler, self._weights)


class AdapterByWeight(frameworks.DglAdapter):
    """Our sampler behind DGL's interface, with ``prob``."""

    label = "pygsampler.dgl.PGSampler, prob"

    def __init__(self, weights: Weights) -> None:
        self._weights = weights

    def open(self, graph: CscGraph, fanouts: Sequence[int], seed: int) -> Session:
        from pygsampler.dgl import PGSampler

        return _with_weights(graph, PGSampler(list(fanouts), prob="w", seed=seed), self._weights)


class OursByWeight(OneBatch):
    """`PGSampler.sample` with ``prob``."""

    def __init__(self, weights: Weights) -> None:
        super().__init__()
        self.label = "PGSampler.sample, prob"
        self._weights = weights

    def graph(self, graph: CscGraph) -> Any:
        return super().graph(graph).with_data(edge_data={"w": self._weights})

    def sampler(self, fanouts: Sequence[int], seed: int) -> Any:
        import pygsampler as pgs

        return pgs.PGSampler(list(fanouts), prob="w", seed=seed)


def contenders(weights: Weights) -> list[Contender]:
    """DGL's first: the length of a round is by its speed."""
    return [DglByWeight(weights), OursByWeight(weights), AdapterByWeight(weights)]


def check_law(opened: Callable[[Weights], Sequence[Contender]] = contenders, seed: int = 1) -> None:
    """CheckError unless all contenders draw by weight.

    On a small graph, a tenth of whose weights are 0: every row has min(edges of positive weight,
    fanout) distinct edges, all of them positive, and the mean weight of the drawn edges is the same
    for all contenders within its noise, and not that of uniform sampling.
    """
    graph = graphs.load("quick")
    weights = weights_of(graph, "pareto")
    weights[np.random.default_rng(seed).random(len(weights)) < 0.1] = 0
    np.minimum(weights, 100, out=weights)  # a finite variance, so that means can be compared
    owner = np.repeat(np.arange(graph.num_nodes), np.diff(graph.indptr))
    positive = np.bincount(owner[weights > 0], minlength=graph.num_nodes)
    fanout = 5
    means = {}
    for contender in opened(weights):
        session = contender.open(graph, (fanout,), seed)
        means[contender.name] = _means(
            session, weights, np.minimum(positive, fanout), owner, contender.name, seed
        )
    first, *others = means
    uniform = float(weights[weights > 0].mean())
    base = means[first]
    for name in others:
        difference = means[name].mean() - base.mean()
        noise = np.hypot(means[name].std(ddof=1), base.std(ddof=1)) / np.sqrt(_LAW_BATCHES)
        if abs(difference) > _ERRORS * noise:
            raise CheckError(
                f"{name} draws edges of mean weight {means[name].mean():.4f}, {first} "
                f"{base.mean():.4f}: expected a difference below {_ERRORS * noise:.4f}"
            )
    for name, found in means.items():
        if found.mean() < 1.1 * uniform:
            raise CheckError(
                f"{name} draws edges of mean weight {found.mean():.4f}, expected well above "
                f"{uniform:.4f}, that of all edges"
            )


def _means(
    session: Session, weights: Weights, want: Int64s, owner: Int64s, who: str, seed: int
) -> npt.NDArray[np.float64]:
    """Mean weight of the drawn edges of each batch, which are checked."""
    rng = np.random.default_rng(seed)
    nodes = len(want)
    batches = [rng.choice(nodes, nodes // 4, replace=False) for _ in range(_LAW_BATCHES)]
    means = []
    for seeds, batch in zip(batches, session.run(batches, 0), strict=True):
        (view,) = session.views(batch)
        if not (weights[view.eid] > 0).all():
            raise CheckError(f"{who} draws edges of weight 0")
        if len(np.unique(view.eid)) != len(view.eid):
            raise CheckError(f"{who} draws an edge twice")
        rows = np.bincount(owner[view.eid], minlength=nodes)
        if not np.array_equal(rows[seeds], want[seeds]) or rows.sum() != want[seeds].sum():
            raise CheckError(f"{who}: expected {want[seeds].sum()} edges, got {rows.sum()}")
        means.append(float(weights[view.eid].mean()))
    return np.array(means)


def _with_weights(graph: CscGraph, sampler: Any, weights: Weights) -> Session:
    session = frameworks.Dgl(graph, sampler)
    session.graph.edata["w"] = frameworks.tensor(weights)
    return session


def rows(options: argparse.Namespace) -> Iterator[tuple[str, compare.ComparisonRow]]:
    """Every row with the kind of its weights."""
    settings = [compare.Setting.parse(text) for text in options.setting or SETTINGS]
    for name in options.graph or GRAPHS:
        graph = graphs.load(name)
        for kind in KINDS:
            chosen = contenders(weights_of(graph, kind))
            for setting in settings:
                label = f"{name} {setting} {kind}"
                done = report.run(label, graph, setting, chosen, options)
                for row in done:
                    print(f"{kind:7} {report.line(row)}", flush=True)
                    yield kind, row


def table(found: Sequence[tuple[str, compare.ComparisonRow]]) -> str:
    """Markdown: a line for a graph, setting and kind of weights."""
    lines = [
        "| graph | batch x fanouts | weights | DGL, ms a batch | `PGSampler.sample` "
        + "| `pygsampler.dgl.PGSampler` |",
        "| --- | --- | --- | --: | --: | --: |",
    ]
    for kind, base in found:
        if base.contender != BASELINE:
            continue
        cells = [base.graph, base.setting, kind, f"{base.milliseconds.median:.2f}"]
        for name in ("sample", "adapter"):
            (row,) = (
                row
                for other, row in found
                if (other, row.graph, row.setting, row.contender)
                == (kind, base.graph, base.setting, name)
            )
            assert row.ratio is not None
            asked = ASKED.get((row.graph, name))
            missed = report.is_missed(row, asked)
            cells.append(f"{row.ratio.median:.1f}x{', missed' if missed else ''}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0, or 1 after a failed check."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = _parser().parse_args(given)
    if options.quick:
        options.graph, options.setting = ["quick"], ["128x10,10"]
        options.repeat, options.batches, options.wait = 3, 4, 0
    record = environment.describe(given, "benchmarks.weights", note=options.note)
    print(environment.summary(record), end="\n\n")
    try:
        check_law()
        found = list(rows(options))
    except CheckError as error:
        print(f"refused: {error}", file=sys.stderr)
        return 1
    print(f"\n{table(found)}")
    if options.out:
        record["rows"] = [{"weights": kind, **row.as_json()} for kind, row in found]
        report.write_json(options.out / "weights.json", record)
        print(f"\nwritten: {options.out / 'weights.json'}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.weights", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes")
    parser.add_argument("--graph", action="append", choices=tuple(graphs.SHAPES))
    parser.add_argument("--setting", action="append", metavar="SIZExFANOUTS")
    parser.add_argument("--repeat", type=int, default=20, help="rounds (default: 20)")
    parser.add_argument("--batches", type=int, help="batches in a round (default: by speed)")
    parser.add_argument("--wait", type=float, default=60, help="as in python -m benchmarks")
    parser.add_argument("--note", help="as in python -m benchmarks")
    parser.add_argument("--out", type=Path, help="folder for weights.json")
    return parser


if __name__ == "__main__":
    sys.exit(main())
