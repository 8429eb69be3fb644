"""Pictures of the GPU's figures, after the paper's figures 8 to 10."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

_COLOURS = {
    "bsp": "#888888",
    "fused": "#d08c2e",
    "persistent": "#2f6fae",
    "queue": "#3a9a5b",
    "queue_unordered": "#9ccfae",
}


def ablation(content: dict[str, Any], folder: Path) -> None:
    """ablation_speedup.png: each mode against bsp; ablation_time.png: fused, persistent, queue."""
    rows = content["rows"]
    if not rows:
        return
    shapes = list(dict.fromkeys(row["shape"] for row in rows))
    label, path = "times as fast as bsp", folder / "ablation_speedup.png"
    _by_shape_and_hops(_speedups, rows, shapes, label, content, path)
    # The two graphs of the paper's figure 10, where they were measured.
    two = [shape for shape in ("reddit", "products") if shape in shapes] or shapes[:2]
    label, path = "microseconds a batch", folder / "ablation_time.png"
    _by_shape_and_hops(_times, rows, two, label, content, path)


def kernel_times(content: dict[str, Any], path: Path) -> None:
    """Kernels of each mode against those of bsp: the paper's figure 8."""
    rows = [
        {**row, "us": {mode: {"median": us} for mode, us in row["us"].items()}}
        for row in content["rows"]
        if row["kind"] == "kernel" and row["us"]
    ]
    if not rows:
        return
    shapes = list(dict.fromkeys(row["shape"] for row in rows))
    label = "kernels, times as fast as bsp's"
    _by_shape_and_hops(_speedups, rows, shapes, label, content, path)


def grid(content: dict[str, Any], path: Path) -> None:
    """The ratio to DGL over the paper's grid: a panel for each shape."""
    rows = [row for row in content["rows"] if row["ratio"] and row["ids"] == "int32"]
    if not rows:
        return
    shapes = list(dict.fromkeys(row["shape"] for row in rows))
    figure, axes = _panels(1, len(shapes))
    for j, shape in enumerate(shapes):
        own = [row for row in rows if row["shape"] == shape]
        for fanouts in sorted({tuple(row["fanouts"]) for row in own}, key=lambda f: (len(f), f)):
            line = sorted(
                (r for r in own if tuple(r["fanouts"]) == fanouts), key=lambda r: r["batch"]
            )
            style = "-" if len(fanouts) == 3 else "--"
            label = ",".join(map(str, fanouts))
            places = [str(row["batch"]) for row in line]
            axes[0][j].plot(places, [row["ratio"] for row in line], style, marker=".", label=label)
        axes[0][j].set_title(shape, fontsize=9)
    axes[0][0].set_ylabel("times as fast as DGL on the same GPU")
    _finish(figure, axes, content, path)


def _by_shape_and_hops(
    draw: Callable[[Any, list[dict[str, Any]]], None],
    rows: list[dict[str, Any]],
    shapes: list[str],
    label: str,
    content: dict[str, Any],
    path: Path,
) -> None:
    """A panel for each shape and number of hops."""
    hops = sorted({len(row["fanouts"]) for row in rows})
    figure, axes = _panels(len(hops), len(shapes))
    for i, depth in enumerate(hops):
        for j, shape in enumerate(shapes):
            own = [r for r in rows if r["shape"] == shape and len(r["fanouts"]) == depth]
            draw(axes[i][j], own)
            axes[i][j].set_title(f"{shape}, {depth} hops", fontsize=9)
    axes[0][0].set_ylabel(label)
    _finish(figure, axes, content, path)


def _speedups(axis: Any, rows: list[dict[str, Any]]) -> None:
    """Bars in groups by batch and fanout."""
    modes = [mode for mode in rows[0]["us"] if mode != "bsp"] if rows else []
    width = 0.8 / max(len(modes), 1)
    for k, mode in enumerate(modes):
        heights = [row["us"]["bsp"]["median"] / row["us"][mode]["median"] for row in rows]
        places = [i + (k + 0.5) * width - 0.4 for i in range(len(rows))]
        axis.bar(places, heights, width, label=mode, color=_COLOURS.get(mode))
    _name(axis, rows)
    axis.axhline(1, color="black", linewidth=0.6)


def _times(axis: Any, rows: list[dict[str, Any]]) -> None:
    modes = [mode for mode in ("fused", "persistent", "queue") if rows and mode in rows[0]["us"]]
    width = 0.8 / max(len(modes), 1)
    for k, mode in enumerate(modes):
        heights = [row["us"][mode]["median"] for row in rows]
        places = [i + (k + 0.5) * width - 0.4 for i in range(len(rows))]
        axis.bar(places, heights, width, label=mode, color=_COLOURS.get(mode))
    _name(axis, rows)


def _name(axis: Any, rows: list[dict[str, Any]]) -> None:
    labels = [f"{row['batch']}x{row['fanouts'][0]}" for row in rows]
    axis.set_xticks(range(len(rows)), labels, rotation=90, fontsize=6)


def _panels(rows: int, columns: int) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(max(6.0, 3.2 * columns), 3.2 * rows + 0.6), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def _finish(figure: Any, axes: Any, content: dict[str, Any], path: Path) -> None:
    handles, labels = axes[0][0].get_legend_handles_labels()
    if handles:
        figure.legend(handles, labels, loc="outside lower center", ncols=6, fontsize=8)
    for axis in axes.flat:
        axis.grid(axis="y", alpha=0.3)
        axis.tick_params(labelsize=7)
        axis.set_ylim(bottom=0)
    commit = (content["commit"] or "unknown")[:7]
    figure.suptitle(
        f"{content['gpu']['name']}, commit {commit}, {content['date'][:10]}", fontsize=8
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
