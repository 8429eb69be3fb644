"""TurboGNN's kernels on a GPU."""

from __future__ import annotations

from figure_tables.record import (
    CASE,
    NONE_OF_GPU,
    Record,
    case,
    figure,
    source,
    table,
    unmeasured,
)

_SHOWN = {"bsp": "`bsp`", "captured": "ours, captured"}


def of_kind(record: Record, kind: str) -> list[Record]:
    """The rows of a kind."""
    return [row for row in record["rows"] if row["kind"] == kind]


@figure("gpu/turbo_training.json", unmeasured("python -m benchmarks.gpu turbo_training"))
def gpu_turbo_epochs(record: Record) -> str:
    """Epochs with TurboGNN's kernels, its pipeline, both, and ours: figures 11 to 13."""
    found = of_kind(record, "epochs")
    ways = list(dict.fromkeys(way for row in found for way in row["epoch_ms"]))
    rows = []
    for row in sorted(found, key=lambda row: (row["shape"], row["model"], row["batch"])):
        ms = row["epoch_ms"]
        cells = [row["shape"], row["model"], f"{row['batch']:,}", f"{ms['neither']:.1f}"]
        cells += [f"{ms['neither'] / ms[way]:.2f}x" if way in ms else "" for way in ways[1:]]
        rows.append(cells)
    head = ["graph", "model", "batch", "neither, ms", *(_SHOWN.get(way, way) for way in ways[1:])]
    return f"{source(record)}\n{table(head, rows, len(head) - 2)}"


@figure("gpu/turbo_training.json", unmeasured("python -m benchmarks.gpu turbo_training"))
def gpu_turbo_busy(record: Record) -> str:
    """The part of the time in which the GPU runs a kernel: table I."""
    found = of_kind(record, "epochs")
    ways = list(dict.fromkeys(way for row in found for way in row["busy"]))
    cases: dict[tuple[str, str], list[Record]] = {}
    for row in found:
        cases.setdefault((row["shape"], row["model"]), []).append(row["busy"])
    rows = []
    for (shape, model), of in sorted(cases.items()):
        shares = [[busy[way] for busy in of if busy.get(way) is not None] for way in ways]
        means = [f"{100 * sum(each) / len(each):.0f} %" if each else "" for each in shares]
        rows.append([shape, model, *means])
    return table(["graph", "model", *(_SHOWN.get(way, way) for way in ways)], rows, len(ways))


@figure("gpu/turbo_training.json", unmeasured("python -m benchmarks.gpu turbo_training"))
def gpu_turbo_stages(record: Record) -> str:
    """Nodes by layer, and milliseconds of the stages of a step: figure 3."""
    rows = [
        [
            row["shape"],
            f"{row['batch']:,}",
            " to ".join(f"{count:,}" for count in row["nodes"]),
            *(f"{ms:.2f}" for ms in row["ms"].values()),
        ]
        for row in of_kind(record, "stages")
    ]
    names = next((list(row["ms"]) for row in of_kind(record, "stages")), [])
    head = ["graph", "batch", "nodes by layer", *(f"{name}, ms" for name in names)]
    return table(head, rows, len(names))


def drawn(row: Record, way: str) -> float:
    """Microseconds that a hop is drawn in, or those of the call where the profiler saw none."""
    us: float = row["draw_us"][way] if row["draw_us"] else row["call_us"][way]["median"]
    return us


@figure("gpu/turbo.json", NONE_OF_GPU)
def gpu_turbo(record: Record) -> str:
    """The kernel, all switches off and on, by graph, vertices and fanout: the paper's figure 5."""
    found = of_kind(record, "kernel")
    fanouts = sorted({row["fanouts"][0] for row in found})
    cases: dict[tuple[str, int], dict[int, Record]] = {}
    for row in found:
        cases.setdefault((row["shape"], row["batch"]), {})[row["fanouts"][0]] = row
    rows = []
    for (shape, batch), of in sorted(cases.items()):
        cells = [shape, f"{batch:,}"]
        for fanout in fanouts:
            if fanout in of:
                off, on = (drawn(of[fanout], way) for way in ("off", "B+S+A"))
                cells += [f"{off:.0f}", f"{on:.0f}", f"{off / on:.2f}x"]
            else:
                cells += [""] * 3
        rows.append(cells)
    head = ["graph", "nodes"]
    for fanout in fanouts:
        head += [f"fanout {fanout}: off, us", "on, us", "ratio"]
    return f"{source(record)}\n{table(head, rows, len(head) - 1)}"


@figure("gpu/turbo.json", NONE_OF_GPU)
def gpu_turbo_ablation(record: Record) -> str:
    """Returns the gain of each switch: the paper's figure 6, and the bandwidth that follows."""
    found = of_kind(record, "kernel")
    ways = ["B", "B+S", "B+S+A", "bsp"]
    if found and "derived" in (found[0]["draw_us"] or found[0]["call_us"]):
        ways.insert(3, "derived")
    rows = []
    for row in sorted(found, key=lambda row: (row["shape"], row["fanouts"], row["batch"])):
        off = drawn(row, "off")
        cells = [row["shape"], f"{row['batch']:,}", str(row["fanouts"][0]), f"{off:.0f}"]
        cells += [f"{off / drawn(row, way):.2f}x" for way in ways]
        parts = row.get("of_copy", {})
        cells += [f"{100 * parts[way]:.0f} %" if parts else "" for way in ("off", "B+S+A", "bsp")]
        order = row["kernels_us"].get("B+S+A", {}).get("reservoir_order")
        cells.append("" if order is None else f"{100 * order / drawn(row, 'B+S+A'):.1f} %")
        rows.append(cells)
    shown = {"derived": "B+S+A, D derived", "bsp": "O(fanout)"}
    head = ["graph", "nodes", "fanout", "off, us", *(shown.get(way, way) for way in ways)]
    head += ["off, of a copy", "B+S+A, of a copy", "O(fanout), of a copy", "sorting, of B+S+A"]
    return table(head, rows, len(head) - 1)


@figure("gpu/turbo.json", NONE_OF_GPU)
def gpu_turbo_calls(record: Record) -> str:
    """Whole batches: microseconds of a call, and how often ours are as fast."""
    ways = ("off", "B+S+A", "streams", "bsp", "persistent")
    rows = []
    for row in (row for row in record["rows"] if row["kind"] != "sweep"):
        us = {way: row["call_us"][way]["median"] for way in ways}
        cells = [*case(row), f"{row['edges']:,}", *(f"{us[way]:.0f}" for way in ways)]
        rows.append([*cells, f"{us['B+S+A'] / us['persistent']:.1f}x"])
    head = [*CASE, "edges a batch", "off, us", "B+S+A, us", "in two streams, us", '`"bsp"`, us']
    return table([*head, '`"persistent"`, us', "ratio to B+S+A"], rows, len(head))


@figure("gpu/turbo.json", NONE_OF_GPU)
def gpu_turbo_sweep(record: Record) -> str:
    """The thresholds: a line for each that was tried."""
    found = of_kind(record, "sweep")
    names = {"degree_threshold": "degree", "block_threshold": "blocks"}
    rows = []
    for row in found:
        value = "the plan's own" if row["value"] is None else f"{row['value']:,}"
        best = record["thresholds"][row["threshold"]] == row["value"]
        rows.append([names[row["threshold"]], value, f"{row['us']:.1f}", "best" if best else ""])
    return table(["threshold", "value", "us, geometric mean", ""], rows, 3)
