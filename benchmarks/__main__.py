"""``python -m benchmarks``: ours against DGL on graphs of the papers' shapes."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pygsampler._cli.bench import compare, contenders, frameworks
from pygsampler._cli.bench.check import CheckError

from . import environment, graphs, report

GRAPHS = ("arxiv", "reddit", "products")
SETTINGS = ("1024x10,10", "1024x5,10,15", "2048x10,10,10")
QUICK = {
    "graph": ["quick"],
    "setting": ["128x10,10", "64x5,10,15"],
    "repeat": 5,
    "batches": 8,
    "wait": 0,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0, 1 after a failed check, 2 for a mistake on the command line."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = _parser()
    options = parser.parse_args(given)
    if options.quick:
        for name, value in QUICK.items():
            if getattr(options, name) == parser.get_default(name):
                setattr(options, name, value)
    try:
        settings = [compare.Setting.parse(text) for text in options.setting or SETTINGS]
    except ValueError as error:
        parser.error(str(error))
    chosen = [c for c in frameworks.ALL if c.name in (options.sampler or [c.name])]
    if importlib.util.find_spec("dgl") is None:
        if options.sampler and {"dgl", "adapter"} & set(options.sampler):
            parser.error("DGL is not installed: leave --sampler dgl and adapter out")
        chosen = [c for c in chosen if c.name not in ("dgl", "adapter")]
        print("DGL is not installed: times without a ratio, without the adapter for DGL.\n")
    try:
        _run(options, settings, chosen, environment.describe(given, note=options.note))
    except CheckError as error:
        print(f"refused: {error}", file=sys.stderr)
        return 1
    return 0


def _run(
    options: argparse.Namespace,
    settings: list[compare.Setting],
    chosen: list[contenders.Contender],
    record: dict[str, object],
) -> None:
    print(environment.summary(record), end="\n\n")
    for caveat in report.CAVEATS:
        print(f"- {caveat}")
    print()
    rows: list[compare.ComparisonRow] = []
    for name in options.graph or GRAPHS:
        graph = graphs.load(name, np.dtype(options.ids))
        for setting in settings:
            done = report.run(f"{name} {setting}", graph, setting, chosen, options, options.seed)
            for row in done:
                print(report.line(row), flush=True)
            rows += done
    print(f"\n{report.table(rows)}")
    if options.out:
        _write(options.out, rows, record)


def _write(out: Path, rows: list[compare.ComparisonRow], record: dict[str, object]) -> None:
    record["huge_page_share"] = environment.huge_page_share()
    record["caveats"] = report.CAVEATS
    record["rows"] = [row.as_json() for row in rows]
    report.write_json(out / "sampling.json", record)
    report.plot(rows, out / "sampling.png", environment.summary(record))
    print(f"\nwritten: {out / 'sampling.json'}, {out / 'sampling.png'}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes")
    parser.add_argument(
        "--graph",
        action="append",
        choices=tuple(graphs.SHAPES),
        help=f"may be repeated; default: {', '.join(GRAPHS)}",
    )
    parser.add_argument(
        "--setting",
        action="append",
        metavar="SIZExFANOUTS",
        help=f"fanouts outermost first, may be repeated; default: {' '.join(SETTINGS)}",
    )
    parser.add_argument(
        "--sampler",
        action="append",
        choices=[c.name for c in frameworks.ALL],
        help="may be repeated; default: all",
    )
    parser.add_argument("--repeat", type=_count, default=20, help="rounds (default: 20)")
    parser.add_argument("--batches", type=_count, help="batches in a round (default: by speed)")
    parser.add_argument("--ids", choices=("int32", "int64"), default="int64")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--wait",
        type=float,
        default=60,
        help="seconds to wait for other processes to rest, for each setting (default: 60)",
    )
    parser.add_argument("--note", help="kept in the JSON: what a reader of the figures should know")
    parser.add_argument("--out", type=Path, help="folder for sampling.json and sampling.png")
    return parser


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a count of 1 or more, got {text}")
    return number


if __name__ == "__main__":
    sys.exit(main())
