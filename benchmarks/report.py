"""Words, tables, JSON and pictures of a benchmark's rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .compare import Row

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


def target(row: Row) -> tuple[float, float | None] | None:
    """The ratio asked of a row and the one aimed at, None where none is set."""
    return TARGETS.get(row.graph, {}).get(row.contender)


def line(row: Row) -> str:
    """One line for a row: time, edges, edges and bytes a second, ratio to the baseline."""
    spread = row.milliseconds
    text = (
        f"{row.graph:12} {row.setting:15} {row.label:28} {spread.median:9.3f} ms "
        f"({spread.q25:.3f} to {spread.q75:.3f})  {row.edges_per_batch:11,.0f} edges  "
        f"{row.edges_per_second / 1e6:7.1f} M edges/s  {row.bytes_per_second / 1e9:6.2f} GB/s"
    )
    if row.ratio is not None:
        text += f"  {row.ratio.median:5.2f}x DGL"
    if row.disturbed:
        text += f"  ({row.disturbed} of {row.rounds} rounds beside other busy processes)"
    return text


def table(rows: Sequence[Row]) -> str:
    """Markdown: one line a setting and contender, with the target beside the ratio."""
    lines = [
        "| graph | batch x fanouts | sampler | ms a batch | M edges/s | x DGL | asked | aim |",
        "|---|---|---|--:|--:|--:|--:|--:|",
    ]
    for row in rows:
        ratio = f"{row.ratio.median:.2f}" if row.ratio else ""
        asked, aim = target(row) or (None, None)
        missed = row.ratio and asked and row.ratio.median < asked
        cells = (
            row.graph,
            row.setting,
            row.label,
            f"{row.milliseconds.median:.3f}",
            f"{row.edges_per_second / 1e6:.1f}",
            ratio,
            f"{asked:g}{' missed' if missed else ''}" if asked else "",
            f"{aim:g}" if aim else "",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def write_json(path: Path, record: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n")


def plot(rows: Sequence[Row], path: Path, title: str) -> None:
    """Bars of edges a second: a group for every graph and setting, a colour for each sampler."""
    from matplotlib.figure import Figure

    groups = list(dict.fromkeys((row.graph, row.setting) for row in rows))
    labels = list(dict.fromkeys(row.label for row in rows))
    figure = Figure(figsize=(max(7.5, 1.4 * len(groups)), 4.8), layout="constrained")
    axes = figure.subplots()
    width = 0.8 / len(labels)
    for number, label in enumerate(labels):
        own = [row for row in rows if row.label == label]
        places = [groups.index((r.graph, r.setting)) + (number + 0.5) * width - 0.4 for r in own]
        bars = axes.bar(places, [row.edges_per_second / 1e6 for row in own], width, label=label)
        ratios = [f"{row.ratio.median:.1f}x" if row.ratio else "" for row in own]
        axes.bar_label(bars, ratios, fontsize=7)
    axes.set_xticks(range(len(groups)), [f"{graph}\n{setting}" for graph, setting in groups])
    axes.tick_params(axis="x", labelsize=8)
    axes.set_ylabel("million sampled edges a second")
    axes.set_title(title, fontsize=8, wrap=True)
    figure.legend(loc="outside lower center", ncols=len(labels), fontsize=8)
    axes.grid(axis="y", alpha=0.3)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
