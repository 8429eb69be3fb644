"""The one table and the one chart of docs/performance/index.md."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from figure_tables.cpu import BASELINE
from figure_tables.record import FIGURES, kept_rows, peer_rows, table

# The case of the chart: seeds and fanouts, on a graph of the size of ogbn-products.
SHAPE, SEEDS, FANOUTS = "products", 1024, [10, 10]
CASE = f"{SEEDS}x({','.join(map(str, FANOUTS))})"

# The start of the bars in the chart, the width of the longest, and the height of a line.
LEFT, WIDTH, LINE = 250, 400, 26


class Case(NamedTuple):
    """A case of the table: milliseconds of ours and of the fastest other way, and its page."""

    name: str
    page: str
    other: str
    ours: float
    theirs: float
    ratio: float


def _rows(name: str, **wanted: Any) -> list[dict[str, Any]]:
    rows = [
        row for row in kept_rows(name) if all(row[key] == value for key, value in wanted.items())
    ]
    if not rows:
        raise LookupError(f"{name}: expected a row with {wanted}, got none")
    return rows


def _peers(name: str) -> dict[str, str]:
    """The line of the chart's case in a file of other samplers' times on a GPU."""
    fanouts = "x".join(map(str, FANOUTS))
    for row in peer_rows(name):
        if (row["shape"], row["batch"], row["fanouts"]) == (SHAPE, str(SEEDS), fanouts):
            return row
    raise LookupError(f"{name}: expected a line of {SHAPE} {CASE}, got none")


def _cpu(graph: str, setting: str) -> dict[str, tuple[float, float]]:
    """Milliseconds and the ratio to DGL's of each contender on the CPU."""
    rows = _rows("sampling.json", graph=graph, setting=setting)
    return {
        row["contender"]: (row["milliseconds"]["median"], row["ratio"]["median"]) for row in rows
    }


def _cases() -> Iterator[Case]:
    for contender, name, graph, setting in (
        ("loader", "a batch of `DataLoader`", "products", CASE),
        ("loader", "a batch of `DataLoader`", "reddit", "1024x(5,10,15)"),
        ("adapter", "a batch of the DGL adapter", "products", "2048x(10,10,10)"),
    ):
        times = _cpu(graph, setting)
        ours, ratio = times[contender]
        name = f"CPU: {name}, {graph} {setting}"
        yield Case(name, "cpu.md#against-dgl", "DGL", ours, times[BASELINE][0], ratio)
    for shape, batch, fanouts in (
        ("products", 1024, [10, 10]),
        ("papers100m", 10240, [20, 20, 20]),
    ):
        row = _rows("gpu/latency.json", shape=shape, batch=batch, fanouts=fanouts)[0]
        name = f"GPU: a batch, {shape} {batch}x({','.join(map(str, fanouts))})"
        ours, theirs = row["engine_us"]["median"] / 1e3, row["peer_us"] / 1e3
        yield Case(name, "gpu.md#latency", "GraphBolt or DGL", ours, theirs, row["ratio"])
    for model in ("SAGE", "GAT"):
        row = _rows("gpu/steps.json", model=model, fanouts=[5, 10, 15])[0]
        name = f"GPU: a captured training step, {model} {row['batch']}x(5,10,15)"
        ours, theirs = row["graph_ms"], row["dgl_ms"]
        yield Case(name, "../guide/cuda-graphs.md#how-fast", "DGL", ours, theirs, theirs / ours)
    for setting in ("ladies 4000,4000,4000", "graphsage 25,10"):
        row = _rows("gpu/programs.json", shape="products", setting=setting)[0]
        # The best of the same run and of runs of others; those of many batches a call left out.
        single = [us for way, us in row["kept_us"].items() if "many" not in way]
        ours, theirs = row["us"]["median"] / 1e3, min(row["torch_us"]["median"], *single) / 1e3
        name = f"GPU: a program's batch, {setting}"
        page, other = "programs.md#programs-on-a-gpu", "PyTorch's operators or gSampler"
        yield Case(name, page, other, ours, theirs, theirs / ours)
    row = _rows("step.json", task="features", threads=2)[0]
    ours, theirs = row["pygsampler, ms"], row["index_select, ms"]
    name, other = "CPU: reading the feature rows of a batch", "`torch.index_select`"
    ratio = row["index_select / pygsampler"]
    yield Case(name, "features.md#reading-rows", other, ours, theirs, ratio)


def overview() -> str:
    """Ten cases: ours, the fastest other way that was measured, and the page with the rest."""
    rows = [
        [
            f"[{case.name}]({case.page})",
            case.other,
            f"{case.ours:.3g}",
            f"{case.theirs:.3g}",
            f"{case.ratio:.1f}",
        ]
        for case in _cases()
    ]
    return table(["case", "best other", "ours, ms", "other, ms", "ratio"], rows, 3)


def speed_chart() -> str:
    """Batches per second of every sampler that was measured in the chart's case, as SVG."""
    cpu = _cpu(SHAPE, CASE)
    calls = _rows("gpu/calls.json", shape=SHAPE, batch=SEEDS, fanouts=FANOUTS)[0]["us"]
    reference, cugraph = _peers("reference.csv"), _peers("cugraph.csv")
    panels = {
        "on two cores": {
            "DGL": 1e3 / cpu[BASELINE][0],
            "pygsampler for DGL": 1e3 / cpu["adapter"][0],
            "pygsampler": 1e3 / cpu["loader"][0],
        },
        "on an H200": {
            "cuGraph for PyG": 1e6 / float(cugraph["cugraph_us"]),
            "DGL": 1e6 / float(reference["dgl_int32_us"]),
            "GraphBolt": 1e6 / float(reference["graphbolt_us"]),
            "pygsampler, one call a batch": 1e6 / calls["sample"]["median"],
            "pygsampler, the loader": 1e6 / calls["loader"]["median"],
        },
    }
    lines, y = [], 22
    for title, bars in panels.items():
        lines.append(f'<text x="12" y="{y}" class="h">batches per second {title}</text>')
        most = max(bars.values())
        for name, value in bars.items():
            y += LINE
            kind = "a" if name.startswith("pygsampler") else "b"
            width = max(1, round(WIDTH * value / most))
            bar = f'<rect x="{LEFT}" y="{y - 14}" width="{width}" height="18" class="{kind}"/>'
            number = f'<text x="{LEFT + width + 8}" y="{y}" class="s">{value:,.0f}</text>'
            lines.append(f'<text x="{LEFT - 10}" y="{y}" class="e">{name}</text>{bar}{number}')
        y += 2 * LINE
    return "".join(f"{line}\n" for line in lines)


FIGURES["overview"] = overview
FIGURES["speed_chart"] = speed_chart
