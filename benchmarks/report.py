"""Words, tables, JSON and pictures of a benchmark's rows."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from pygsampler._cli.bench import compare
from pygsampler._cli.bench.compare import ComparisonRow
from pygsampler._cli.bench.contenders import Contender
from pygsampler._cli.bench.csc import CscGraph
from pygsampler._cli.bench.report import line, plot

__all__ = [
    "CAVEATS",
    "TARGETS",
    "is_missed",
    "least_times",
    "line",
    "plot",
    "run",
    "table",
    "target",
    "write_json",
]

# The least ratio to DGL 2.1 that is accepted on two cores, and the one aimed at.
_LARGE = {"loader": (3.0, 4.0), "sample": (2.5, 4.0), "adapter": (2.0, None)}
TARGETS: dict[str, dict[str, tuple[float, float | None]]] = {
    "reddit": _LARGE,
    "products": _LARGE,
    "arxiv": {"loader": (2.5, None), "sample": (2.0, None), "adapter": (1.2, None)},
}

CAVEATS = (
    "The graphs are synthetic: node and edge counts of the papers and a power law, no communities.",
    "All contenders read the same arrays and return the same kind of blocks with edge ids.",
    "Edge counts were checked in every batch that was timed.",
    "PGSampler.sample and the loader are compared with bare calls of DGL's sampler; the loader "
    + "samples several batches at once, the others one at a time.",
    "Times hold for this machine and load: compare ratios within a run, not times of two runs.",
)


def least_times(
    ways: Mapping[str, Callable[[], object]],
    rounds: int,
    *,
    calls: int = 1,
    finish: Callable[[], object] = lambda: None,
) -> dict[str, float]:
    """Returns the least seconds of a call of each way, of rounds in which the ways take turns.

    ``finish`` waits for what calls have only begun, as on a GPU.
    """
    least = dict.fromkeys(ways, float("inf"))
    for number in range(rounds):
        for name in sorted(ways, reverse=bool(number % 2)):
            start = time.perf_counter()
            for _ in range(calls):
                ways[name]()
            finish()
            least[name] = min(least[name], (time.perf_counter() - start) / calls)
    return least


def run(
    label: str,
    graph: CscGraph,
    setting: compare.Setting,
    chosen: Sequence[Contender],
    options: argparse.Namespace,
    seed: int = 1,
) -> list[ComparisonRow]:
    """The contenders' rows, with a bar over the rounds that the command line asks for."""
    with tqdm(total=options.repeat, desc=label, unit="round", leave=False) as bar:
        return compare.compare(
            graph,
            setting,
            chosen,
            rounds=options.repeat,
            batches=options.batches,
            seed=seed,
            wait=options.wait,
            tick=bar.update,
        )


def target(row: ComparisonRow) -> tuple[float, float | None] | None:
    """The ratio asked of a row and the one aimed at, None where none is set."""
    return TARGETS.get(row.graph, {}).get(row.contender)


def is_missed(row: ComparisonRow, asked: float | None) -> bool:
    """True if the row's ratio is below the required one."""
    return asked is not None and row.ratio is not None and row.ratio.median < asked


def table(rows: Sequence[ComparisonRow]) -> str:
    """Markdown: one line a setting and contender, with the target beside the ratio."""
    lines = [
        "| graph | batch x fanouts | sampler | ms a batch | M edges/s | x DGL | asked | aim |",
        "|---|---|---|--:|--:|--:|--:|--:|",
    ]
    for row in rows:
        ratio = f"{row.ratio.median:.2f}" if row.ratio else ""
        asked, aim = target(row) or (None, None)
        cells = (
            row.graph,
            row.setting,
            row.label,
            f"{row.milliseconds.median:.3f}",
            f"{row.edges_per_second / 1e6:.1f}",
            ratio,
            f"{asked:g}{' missed' if is_missed(row, asked) else ''}" if asked else "",
            f"{aim:g}" if aim else "",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def write_json(path: Path, record: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n")


def keep(record: dict[str, Any], folder: Path | None, name: str, device: str = "cpu") -> None:
    """Writes the JSON of a run to a folder, if there is one; of a GPU its name ends with -cuda."""
    if folder:
        path = folder / f"{name}{'' if device == 'cpu' else '-cuda'}.json"
        write_json(path, record)
        print(f"\nwritten: {path}")
