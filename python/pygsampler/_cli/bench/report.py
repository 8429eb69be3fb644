"""Words and pictures of a comparison's rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pygsampler._cli.bench.compare import ComparisonRow
from pygsampler._cli.bench.fields import RULES, Field

HEAD = (
    "measure",
    "expands",
    "by",
    "ms a batch",
    "quartiles",
    "edges a batch",
    "M edges/s",
    "ratio",
    "to",
)
# The results of a comparison.
Compared = Sequence[tuple[Field, Sequence[ComparisonRow]]]


def title(field: Field) -> str:
    """A measure and the rule of its samples."""
    return f"{field.measure}, expands {RULES[field.frontier]}"


def milliseconds(comparison: ComparisonRow) -> str:
    """The median time of a batch."""
    return f"{comparison.milliseconds.median:.3f}"


def cells(compared: Compared) -> list[list[str]]:
    """The rows of a table below `HEAD`."""
    result = []
    for field, rows in compared:
        labels = {row.contender: row.label for row in rows}
        for row in rows:
            spread, base = row.milliseconds, row.baseline
            result.append(
                [
                    field.measure,
                    RULES[field.frontier],
                    row.label,
                    milliseconds(row),
                    f"{spread.q25:.3f} - {spread.q75:.3f}",
                    f"{row.edges_per_batch:,.0f}",
                    f"{row.edges_per_second / 1e6:.1f}",
                    "" if row.ratio is None else f"{row.ratio.median:.2f}x",
                    "" if base is None or base == row.contender else labels[base],
                ]
            )
    return result


def markdown(compared: Compared) -> str:
    """The table in Markdown."""
    sides = ["---"] * 3 + ["--:"] * 5 + ["---"]
    lines = [HEAD, sides, *cells(compared)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def draw(compared: Compared, path: Path, text: str) -> None:
    """Bars of milliseconds a batch, with ratios: an axis for each measure and rule."""
    from matplotlib.figure import Figure

    bars = sum(len(rows) for _, rows in compared)
    height = 1.2 + 0.9 * len(compared) + 0.3 * bars
    figure = Figure(figsize=(9, height), layout="constrained")
    counts = [len(rows) + 1 for _, rows in compared]
    every = figure.subplots(len(compared), squeeze=False, height_ratios=counts)[:, 0]
    for axes, (field, rows) in zip(every, compared, strict=True):
        labels = {row.contender: row.label for row in rows}
        colors = ["C1" if row.contender in field.peers else "C0" for row in rows]
        times = [row.milliseconds.median for row in rows]
        spread = [
            [row.milliseconds.median - row.milliseconds.q25 for row in rows],
            [row.milliseconds.q75 - row.milliseconds.median for row in rows],
        ]
        drawn = axes.barh(range(len(rows)), times, color=colors, xerr=spread, ecolor="0.4")
        ratios = [
            milliseconds(row) + (f" ({row.ratio.median:.2f}x)" if row.ratio else "") for row in rows
        ]
        axes.bar_label(drawn, ratios, fontsize=7, padding=4)
        axes.set_yticks(range(len(rows)), [row.label for row in rows], fontsize=8)
        axes.invert_yaxis()
        axes.margins(x=0.2)
        base = rows[0].baseline
        to = f"; ratios to {labels[base]}" if base else ""
        axes.set_title(f"{title(field)}{to}", fontsize=8, loc="left")
        axes.grid(axis="x", alpha=0.3)
    every[-1].set_xlabel("milliseconds a batch")
    first = compared[0][1][0]
    figure.suptitle(f"{first.graph}, {first.setting}; {text}", fontsize=8, wrap=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


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
