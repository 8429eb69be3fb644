"""Rows read by their ids on the CPU, and the share of a plain copy's speed that they reach::

    python -m benchmarks.gathers --quick
    python -m benchmarks.gathers --out results
    python -m benchmarks.gathers --rows 10000 --threads 1

Random rows of a table of floats, by ``Features.read`` into ``out=`` and into new memory, and by
``torch.index_select``. The measure is ``copy_`` of as many bytes that lie one after another, with
as many threads. Rows are compared with torch's before the clock starts. The ways take turns, and a
time is the least of the rounds. Page faults are those of one call after the clock.
"""

from __future__ import annotations

import argparse
import resource
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

import pygsampler as pgs
from pygsampler._cli.bench.check import CheckError

from . import environment, report

COPY = "copy_"


def ways_of(x: torch.Tensor, ids: torch.Tensor) -> dict[str, Callable[[], torch.Tensor]]:
    """Functions that return the rows, and the copy."""
    features = pgs.Features.from_tensor(x)
    out = torch.zeros(len(ids), x.shape[1])
    return {
        "Features.read, out=": lambda: features.read(ids, out),
        "Features.read": lambda: features.read(ids),
        "index_select, out=": lambda: torch.index_select(x, 0, ids, out=out),
        "index_select": lambda: torch.index_select(x, 0, ids),
        COPY: lambda: out.copy_(x[: len(ids)]),
    }


def check(x: torch.Tensor, ids: torch.Tensor, ways: dict[str, Callable[[], torch.Tensor]]) -> None:
    """Raises CheckError unless each way gives the rows that indexing gives."""
    expected = x[ids]
    for name, way in ways.items():
        if name != COPY and not torch.equal(way(), expected):
            raise CheckError(f"rows differ from torch's: {name}")


def faults(way: Callable[[], Any]) -> int:
    """Returns the number of page faults of a call."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    way()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def measure(
    ways: dict[str, Callable[[], Any]], threads: int, moved: int, options: argparse.Namespace
) -> list[dict[str, Any]]:
    """Times with so many threads; ``moved`` is the bytes that a call copies."""
    pgs.set_num_threads(threads)
    torch.set_num_threads(threads)
    least = report.least_times(ways, options.rounds, calls=options.calls)
    rows = []
    for name, seconds in least.items():
        row = {"way": name, "threads": threads, "ms": 1e3 * seconds, "GB/s": 1e-9 * moved / seconds}
        row |= {"of copy": least[COPY] / seconds, "page faults": faults(ways[name])}
        rows.append(row)
        print(
            f"  {name:20} {threads:3} threads {row['ms']:9.3f} ms {row['GB/s']:7.2f} GB/s "
            f"{row['of copy']:6.2f} of copy_ {row['page faults']:7} page faults"
        )
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0, or 1 after a failed check."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = _parser()
    options = parser.parse_args(given)
    if options.rows > options.nodes:
        parser.error(f"--rows: expected at most --nodes, {options.nodes}, got {options.rows}")
    if options.quick:
        options.nodes, options.rows, options.rounds = 20_000, 5_000, 2
    record = environment.describe(given, "benchmarks.gathers", note=options.note)
    print(environment.summary(record), end="\n\n")
    random = torch.Generator().manual_seed(1)
    x = torch.empty(options.nodes, options.width).normal_(generator=random)
    ids = torch.randint(0, options.nodes, (options.rows,), generator=random)
    ways = ways_of(x, ids)
    try:
        check(x, ids, ways)
    except CheckError as error:
        print(f"refused: {error}", file=sys.stderr)
        return 1
    before = pgs.get_num_threads(), torch.get_num_threads()
    moved = ids.numel() * x.shape[1] * x.element_size()
    record["rows"] = []
    try:
        for threads in options.threads or thread_counts(before[0]):
            record["rows"] += measure(ways, threads, moved, options)
    finally:
        pgs.set_num_threads(before[0])
        torch.set_num_threads(before[1])
    if options.out:
        report.write_json(options.out / "gathers.json", record)
        print(f"\nwritten: {options.out / 'gathers.json'}")
    return 0


def thread_counts(most: int) -> list[int]:
    """1, 2, 4 and so on, and ``most``."""
    return sorted({1 << i for i in range(most.bit_length())} | {most})


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gathers", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a second instead of a minute")
    parser.add_argument("--nodes", type=int, default=2_400_000, help="rows of the table")
    parser.add_argument("--width", type=int, default=100, help="floats of a row")
    parser.add_argument("--rows", type=int, default=670_000, help="rows that are read")
    parser.add_argument("--threads", type=int, nargs="+", help="1, 2, 4 ... all (default)")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--calls", type=int, default=1, help="calls of a round: more for few rows")
    parser.add_argument("--note", help="as in python -m benchmarks")
    parser.add_argument("--out", type=Path, help="folder for gathers.json")
    return parser


if __name__ == "__main__":
    sys.exit(main())
