"""The large run, whose tables and picture docs/developer/statistics-results.md shows.

    python -m tests.statistics                       # from the root of the repository
    python -m tests.statistics --seeds 100 --out /tmp/statistics
    python -m tests.statistics --device cuda --mode queue

Every case gives a p-value for each of many seeds. Where there is no bias they are uniform: the
table has the lowest of them with Bonferroni's bound, and Kolmogorov and Smirnov's test of all. OUT
gets statistics.json and statistics.png; with --page the table goes into that page. Status 1 where
a case fails at the level of the whole family.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import shlex
import sys
import textwrap
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

import pygsampler as pgs
from pygsampler.torch import DataLoader
from tests.statistics import laws
from tests.statistics.cases import CASES
from tests.statistics.flaws import FLAWS
from tests.statistics.loaders import LOADERS, workers
from tests.statistics.sources import Engine
from tests.statistics.walks import WALK_CASES, WalkEngine

ROOT = Path(__file__).parents[2]
FAMILY = 1e-3
# Processes are slow to start: seeds for them are one in so many.
FEWER = 40
BEGIN, END = "<!-- begin statistics -->", "<!-- end statistics -->"


def values(options: argparse.Namespace) -> dict[str, list[float]]:
    """The p-values of every case, by its name."""
    engine, walker = Engine(options.device, options.mode), WalkEngine(options.device)
    seeds = range(options.first, options.first + options.seeds)
    runs: list[tuple[str, Callable[[int], float]]] = [
        (case.name, lambda seed, case=case: case.run(engine, seed, options.scale))  # type: ignore[misc]
        for case in CASES
    ]
    runs += [
        (case.name, lambda seed, case=case: case.run(walker, seed, options.scale))  # type: ignore[misc]
        for case in WALK_CASES
    ]
    if options.device == "cpu":
        runs += [
            (case.name, lambda seed, case=case: case.run(DataLoader, seed))  # type: ignore[misc]
            for case in LOADERS
        ]
    runs = [(name, run) for name, run in runs if options.case in name]
    found: dict[str, list[float]] = {}
    bar = tqdm(runs, unit="case", disable=options.quiet)
    for name, run in bar:
        bar.set_description(name)
        found[name] = [run(seed) for seed in seeds]
    if options.device == "cpu" and not options.case:
        for seed in tqdm(seeds[::FEWER], unit="seed", desc="workers", disable=options.quiet):
            for name, p in workers(seed).items():
                found.setdefault(name, []).append(p)
    return found


def rejected() -> dict[str, tuple[str, float]]:
    """For each flaw the case that sees it best, and with which p-value."""
    best: dict[str, tuple[str, float]] = {}
    for flaw in FLAWS:
        with np.errstate(divide="ignore"):
            p = flaw.p(7)
        if p <= best.get(flaw.name, ("", 1.0))[1]:
            best[flaw.name] = (flaw.case, p)
    return best


def _number(p: float) -> str:
    return "< 1e-300" if p < 1e-300 else f"{p:.2g}"


def summary(listed: list[float]) -> dict[str, Any]:
    bins = np.histogram(listed, bins=20, range=(0, 1))[0]
    return {
        "count": len(listed),
        "lowest": min(listed),
        "extreme": laws.extreme(listed),
        "uniform": laws.uniform(listed),
        "of_20_bins": " ".join(map(str, bins)),
    }


def table(found: dict[str, list[float]]) -> str:
    lines = [
        "| case | p-values | below 1 % | lowest | any so extreme | uniform |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, listed in found.items():
        low = sum(p < 0.01 for p in listed)
        lines.append(
            f"| {name} | {len(listed)} | {low} | {_number(min(listed))} "
            f"| {_number(laws.extreme(listed))} | {_number(laws.uniform(listed))} |"
        )
    return "\n".join(lines)


def flaw_table(found: dict[str, tuple[str, float]]) -> str:
    lines = ["| flaw | seen by | p |", "|---|---|---:|"]
    return "\n".join([*lines, *(f"| {n} | {c} | {_number(p)} |" for n, (c, p) in found.items())])


def draw(found: dict[str, list[float]], file: Path) -> None:
    """How far each case's p-values are from uniform ones, and how far chance takes them."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt
    from scipy import stats

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
    several = [np.sort(listed) for listed in found.values() if len(listed) >= 50]
    for listed in several:
        # sqrt(n) times the distance: its distribution is the same for all lengths.
        distance = np.arange(1, len(listed) + 1) / len(listed) - listed
        left.plot(listed, np.sqrt(len(listed)) * distance, color="tab:blue", alpha=0.25, lw=0.8)
    for level in (0.5, 0.01 / max(len(several), 1)):
        bound = stats.kstwobign.isf(level)
        for sign in (-1, 1):
            left.axhline(sign * bound, color="tab:red" if level < 0.1 else "gray", lw=0.8, ls="--")
    left.set(xlabel="p", ylabel="√n (share of p-values up to p, minus p)")
    left.set_title(f"{len(several)} cases, one line each", fontsize=10)
    pooled = np.concatenate(list(found.values()))
    right.hist(pooled, bins=50, range=(0, 1), color="tab:blue", alpha=0.7)
    expected = len(pooled) / 50
    right.axhline(expected, color="black", lw=0.8)
    for sign in (-1, 1):
        right.axhline(expected + sign * 3 * expected**0.5, color="tab:red", lw=0.8, ls="--")
    right.set(xlabel="p", ylabel="p-values", ylim=(0, None))
    right.set_title(f"all {len(pooled):,} p-values", fontsize=10)
    figure.savefig(file, dpi=110)
    plt.close(figure)


def write(page: Path, text: str) -> None:
    """Puts the text between the marks of the page."""
    marks = re.compile(f"(?<={BEGIN}\n).*?(?={END})", re.DOTALL)
    changed, count = marks.subn(lambda _: f"\n{text}\n\n", page.read_text())
    if count != 1:
        raise SystemExit(f"{page}: expected one {BEGIN} and one {END}, got {count}")
    page.write_text(changed)


def report(options: argparse.Namespace, found: dict[str, list[float]], seconds: float) -> str:
    pooled = [p for listed in found.values() for p in listed]
    flaws = rejected()
    when = datetime.now(timezone.utc).strftime("%Y-%m-%d")
    versions = f"pygsampler {pgs.__version__}, Python {platform.python_version()}"
    command = shlex.join(["python", "-m", "tests.statistics", *options.arguments])
    options.out.mkdir(parents=True, exist_ok=True)
    words: dict[str, Any] = {
        "command": command,
        "date": when,
        "versions": versions,
        "seconds": round(seconds),
        "cases": {name: summary(listed) for name, listed in found.items()},
        "flaws": {name: {"case": case, "p": p} for name, (case, p) in flaws.items()},
    }
    (options.out / "statistics.json").write_text(json.dumps(words, indent=1) + "\n")
    draw(found, options.out / "statistics.png")
    summed = (
        f"`{command}`, {when}, {versions}: {len(pooled):,} p-values of {len(found)} cases in "
        f"{seconds:.0f} s. All of them together are uniform with p = "
        f"{_number(laws.uniform(pooled))}, and the most extreme one of all has p = "
        f"{_number(laws.extreme(pooled))}."
    )
    return "\n".join(
        [
            textwrap.fill(summed, 100, break_on_hyphens=False),
            "",
            table(found),
            "",
            "The p-values of the same cases for samplers and loaders with a flaw, by one seed:",
            "",
            flaw_table(flaws),
        ]
    )


def main() -> int:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=1000, help="p-values of each case")
    parser.add_argument("--first", type=int, default=10_000, help="the first of the seeds")
    parser.add_argument("--scale", type=int, default=1, help="times as many rows")
    parser.add_argument("--case", default="", help="only those with this in their name")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--mode", default="auto")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "assets")
    parser.add_argument("--page", type=Path, help="the page that gets the table")
    parser.add_argument("--quiet", action="store_true", help="no bars")
    options = parser.parse_args()
    options.arguments = [word for word in sys.argv[1:] if word != "--quiet"]
    begin = time.monotonic()
    found = values(options)
    if not found:
        parser.error(f"--case: expected a part of a case's name, got {options.case!r}")
    text = report(options, found, time.monotonic() - begin)
    print(text)
    if options.page is not None:
        write(options.page, text)
    level = FAMILY / (2 * len(found))
    failed = [n for n, v in found.items() if min(laws.extreme(v), laws.uniform(v)) < level]
    for name in failed:
        print(f"not plausible at {level:.1g}: {name}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
