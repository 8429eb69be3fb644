"""The picture of the quickstart: accuracy by epoch, and one sampled neighborhood."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, PathPatch
from matplotlib.path import Path as Curve
from matplotlib.ticker import MaxNLocator, PercentFormatter

if TYPE_CHECKING:
    from pygsampler.datasets import Debian
    from pygsampler.quickstart.neighborhood import Neighbourhood
    from pygsampler.quickstart.training import Run

INK = "#1f2937"
MUTED = "#6b7280"
RULE = "#e5e7eb"
ACCENT = "#0f766e"
PLAIN = "#f59e0b"
OTHER = "#94a3b8"
# Colours that stay apart for the colour-blind (Okabe and Ito, 2008).
KIND_COLOURS = {
    "Depends": "#0072b2",
    "Recommends": "#cc79a7",
    "Suggests": "#e69f00",
    "Enhances": "#56b4e9",
    "Pre-Depends": "#d55e00",
}
# Longer names are cut off: they would leave the picture.
LONGEST = 18
RADII = (0.0, 1.04, 2.0)


def check_format(path: Path) -> None:
    """Raises ValueError where no picture can be written to a name like this."""
    known = FigureCanvasAgg.get_supported_filetypes()
    if path.suffix[1:].lower() not in known:
        raise ValueError(f"expected a suffix of {', '.join(sorted(known))}, got {path.name!r}")


def draw(run: Run, dataset: Debian, around: Neighbourhood, path: Path) -> None:
    """Writes the picture to ``path``, in the format of its suffix."""
    figure = Figure(figsize=(15, 9), facecolor="white")
    FigureCanvasAgg(figure)
    heading(
        figure,
        0.045,
        "To which section does a package belong?",
        f"{dataset.num_nodes:,} packages of Debian, {dataset.num_classes} sections; "
        "accuracy on the validation packages",
    )
    accuracies(figure.add_axes((0.045, 0.145, 0.37, 0.70)), run)
    figure.text(
        0.045,
        0.035,
        f"{run.sage.num_edges / 1e6:.1f} million edges sampled for training; "
        f"the sampler alone does {run.edges_per_second / 1e6:.0f} million a second",
        fontsize=11,
        color=MUTED,
    )
    name, section = dataset.names[around.nodes[0]], dataset.labels[around.nodes[0]]
    heading(
        figure,
        0.47,
        f"What a batch hears around {name}",
        f"rings are hops, lines sampled relations; green packages are in {name}'s section, "
        f"{dataset.classes[section]}",
    )
    neighbourhood(figure.add_axes((0.46, 0.052, 0.54, 0.835)), dataset, around)
    legend(figure, around)
    figure.savefig(path, dpi=150)


def accuracies(axes: Any, run: Run) -> None:
    """Validation accuracy by epoch; the test accuracy stands at the end of each line."""
    epochs = range(1, len(run.sage.validation) + 1)
    for name, outcome, colour in (
        ("GraphSAGE", run.sage, ACCENT),
        ("MLP, no edges", run.mlp, PLAIN),
    ):
        axes.plot(epochs, outcome.validation, color=colour, linewidth=2.4, zorder=3)
        axes.scatter(epochs, outcome.validation, s=34, color=colour, edgecolor="white", zorder=4)
        axes.annotate(
            f"{name}\ntest {outcome.test:.1%}",
            (epochs[-1], outcome.validation[-1]),
            xytext=(0, -14),
            textcoords="offset points",
            ha="right",
            va="top",
            fontsize=12,
            fontweight="bold",
            color=colour,
            linespacing=1.35,
        )
    axes.set_xlabel("epoch", color=MUTED, fontsize=11)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.set_ylim(min(0.3, *run.sage.validation, *run.mlp.validation), 0.85)
    axes.grid(axis="y", color=RULE, linewidth=1)
    axes.tick_params(colors=MUTED, length=0, labelsize=11)
    for side in axes.spines.values():
        side.set_visible(False)


def neighbourhood(axes: Any, dataset: Debian, around: Neighbourhood) -> None:
    """Draws rings by hop, with packages of the seed's section in green: they are why edges help."""
    axes.set_xlim(-3.35, 3.35)
    axes.set_ylim(-3.16, 3.16)
    axes.set_aspect("equal")
    axes.axis("off")
    for radius in RADII[1:]:
        axes.add_patch(Circle((0, 0), radius, fill=False, edgecolor=RULE, linewidth=1.2, zorder=1))
    points = [
        (RADII[ring] * math.cos(angle), RADII[ring] * math.sin(angle))
        for ring, angle in zip(around.rings, around.angles, strict=True)
    ]
    for edge in around.edges:
        axes.add_patch(connection(points[edge.src], points[edge.dst], edge.kind, edge.hop))
    section = dataset.labels[around.nodes[0]]
    for node, ring, angle, (x, y) in zip(
        around.nodes, around.rings, around.angles, points, strict=True
    ):
        colour = ACCENT if dataset.labels[node] == section else OTHER
        size = (620, 190, 80)[ring]
        axes.scatter([x], [y], s=size, color=colour, edgecolor="white", linewidth=1.6, zorder=5)
        label(axes, dataset.names[node], ring, angle, (x, y), colour)


def connection(start: Any, end: Any, kind: str, hop: int) -> PathPatch:
    """A curve that bends towards the centre, so that edges within a ring don't hide in it."""
    middle = ((start[0] + end[0]) * 0.42, (start[1] + end[1]) * 0.42)
    return PathPatch(
        Curve([start, middle, end], [Curve.MOVETO, Curve.CURVE3, Curve.CURVE3]),
        fill=False,
        edgecolor=KIND_COLOURS[kind],
        linewidth=2.2 if hop == 1 else 1.3,
        alpha=0.85 if hop == 1 else 0.6,
        zorder=3 if hop == 1 else 2,
    )


def label(axes: Any, name: str, ring: int, angle: float, position: Any, colour: str) -> None:
    """A name: outside of its ring and along the ray for hop 2, below the mark for the others."""
    if len(name) > LONGEST:
        name = f"{name[: LONGEST - 1]}\N{HORIZONTAL ELLIPSIS}"
    strong = INK if colour == ACCENT else MUTED
    if ring < 2:
        axes.annotate(
            name,
            position,
            # Outwards, away from the seed's own name.
            xytext=(18 * math.cos(angle) if ring else 0, -11 if ring else -17),
            textcoords="offset points",
            ha="center",
            va="top",
            fontsize=10 if ring else 12.5,
            fontweight="bold",
            color=strong,
            zorder=4,
            bbox={"boxstyle": "round,pad=0.15", "facecolor": "white", "alpha": 0.8, "linewidth": 0},
        )
        return
    degrees = math.degrees(angle) % 360
    leftwards = 90 < degrees < 270
    axes.text(
        2.09 * math.cos(angle),
        2.09 * math.sin(angle),
        name,
        rotation=degrees - 180 if leftwards else degrees,
        rotation_mode="anchor",
        ha="right" if leftwards else "left",
        va="center",
        fontsize=9,
        color=strong,
        zorder=6,
    )


def heading(figure: Any, x: float, title: str, subtitle: str) -> None:
    figure.text(x, 0.945, title, fontsize=17, fontweight="bold", color=INK)
    figure.text(x, 0.905, subtitle, fontsize=11, color=MUTED)


def legend(figure: Any, around: Neighbourhood) -> None:
    """The kinds of relations that occur."""
    used = {edge.kind for edge in around.edges}
    kinds = [kind for kind in KIND_COLOURS if kind in used]
    figure.legend(
        handles=[Line2D([], [], color=KIND_COLOURS[k], linewidth=3, label=k) for k in kinds],
        loc="lower center",
        bbox_to_anchor=(0.73, 0.02),
        ncols=len(kinds),
        frameon=False,
        fontsize=11,
        labelcolor=MUTED,
        handlelength=1.4,
        columnspacing=1.8,
    )
