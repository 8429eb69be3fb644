"""Words and pictures of a comparison's rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pygsampler._cli.bench.compare import ComparisonRow


def line(comparison: ComparisonRow) -> str:
    """Returns a row's line: time, edges, edges and bytes a second, ratio to the baseline."""
    spread = comparison.milliseconds
    text = (
        f"{comparison.graph:12} {comparison.setting:15} {comparison.label:28} {spread.median:9.3f} "
        f"ms ({spread.q25:.3f} to {spread.q75:.3f})  {comparison.edges_per_batch:11,.0f} edges  "
        f"{comparison.edges_per_second / 1e6:7.1f} M edges/s  "
        f"{comparison.bytes_per_second / 1e9:6.2f} GB/s"
    )
    if comparison.ratio is not None:
        text += f"  {comparison.ratio.median:5.2f}x DGL"
    if comparison.disturbed:
        text += (
            f"  ({comparison.disturbed} of {comparison.rounds} rounds next to other busy processes)"
        )
    return text


def plot(comparisons: Sequence[ComparisonRow], path: Path, title: str) -> None:
    """Bars of edges a second: a group for every graph and setting, a colour for each sampler."""
    from matplotlib.figure import Figure

    groups = list(dict.fromkeys((row.graph, row.setting) for row in comparisons))
    labels = list(dict.fromkeys(row.label for row in comparisons))
    figure = Figure(figsize=(max(7.5, 1.4 * len(groups)), 4.8), layout="constrained")
    axes = figure.subplots()
    width = 0.8 / len(labels)
    for number, label in enumerate(labels):
        own = [row for row in comparisons if row.label == label]
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
