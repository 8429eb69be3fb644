"""Neighbours on a GPU: latency, throughput, modes, and what bounds them."""

from __future__ import annotations

import statistics

from figure_tables.record import (
    CASE,
    FIGURES,
    NONE_OF_GPU,
    Record,
    case,
    figure,
    peer_rows,
    source,
    table,
)


@figure("gpu/latency.json", NONE_OF_GPU)
def gpu_latency(record: Record) -> str:
    """One batch at a time, against the better of GraphBolt and DGL on the same kind of GPU."""
    rows = [
        [
            *case(row),
            f"{row['edges']:,}",
            f"{row['engine_us']['median']:.0f}",
            f"{row['public_us']['median']:.0f}",
            f"{row['loader_us']['median']:.0f}",
            f"{row['edges_per_second'] / 1e9:.1f}",
            f"{row['peer_us']:.0f}",
            f"{row['ratio']:.1f}x",
        ]
        for row in record["rows"]
    ]
    head = [*CASE, "edges a batch", "engine, us", "with torch's memory, us", "loader, us"]
    head += ["G edges/s", "best other sampler, us", "ratio"]
    return f"{source(record)}\n{table(head, rows, 7)}"


@figure("gpu/calls.json", NONE_OF_GPU)
def gpu_calls(record: Record) -> str:
    """Returns the times of the public calls next to the engine, in microseconds per batch."""
    ways = list(record["rows"][0]["us"])
    rows = [[way, *(f"{row['us'][way]['median']:.1f}" for row in record["rows"])] for way in ways]
    head = ["a batch, us", *(" ".join(case(row)) for row in record["rows"])]
    return f"{source(record)}\n{table(head, rows, len(head) - 1)}"


def gpu_cugraph() -> str:
    """cuGraph beside the public calls, as they were measured together."""
    rows = []
    for row in peer_rows("cugraph.csv"):
        theirs, ours = float(row["cugraph_us"]), float(row["sample_us"])
        theirs_many, ours_many = float(row["cugraph_many_us"]), float(row["sample_many_us"])
        # The file names the fanout of the seeds first.
        fanouts = ",".join(row["fanouts"].split("x")[::-1])
        times = [f"{theirs:.0f}", f"{ours:.0f}", f"{theirs / ours:.0f}x"]
        times += [f"{theirs_many:.0f}", f"{ours_many:.0f}", f"{theirs_many / ours_many:.0f}x"]
        rows.append([row["shape"], f"{row['batch']}x({fanouts})", *times])
    head = [*CASE, "cuGraph 26.10, us", "`sample`, us", "ratio"]
    head += ["cuGraph, 32 a call, us", "`sample_many` of 32, us", "ratio, 32 a call"]
    return table(head, rows, 6)


# Its figures are in a file of the benchmark that no run writes.
FIGURES["gpu_cugraph"] = gpu_cugraph


@figure("gpu/throughput.json", NONE_OF_GPU)
def gpu_throughput(record: Record) -> str:
    """Batches in flight, and several to a call: microseconds a batch."""
    flights = list(record["rows"][0]["in_flight_us"])
    many = list(record["rows"][0]["sample_many_us"])
    rows = [
        [
            *case(row),
            *(f"{row['in_flight_us'][count]:.1f}" for count in flights),
            *(f"{row['sample_many_us'][count]:.1f}" for count in many),
            f"{row['loader_us']:.1f}",
            f"{row['edges_per_second'] / 1e9:.1f}",
        ]
        for row in record["rows"]
    ]
    head = [*CASE, *(f"{count} in flight" for count in flights)]
    head += [*(f"`sample_many` of {count}" for count in many), "loader", "G edges/s"]
    return f"{source(record)}\n{table(head, rows, len(head) - 2)}"


@figure("gpu/grid.json", NONE_OF_GPU)
def gpu_grid(record: Record) -> str:
    """The ratio to DGL over the paper's grid: least, geometric mean and most of each shape."""
    ratios_of: dict[tuple[str, str], list[float]] = {}
    for row in record["rows"]:
        ratios_of.setdefault((row["shape"], row["ids"]), []).append(row["ratio"])
        ratios_of.setdefault(("all", row["ids"]), []).append(row["ratio"])
    rows = []
    for key, found in sorted(ratios_of.items(), key=lambda item: item[0][0] == "all"):
        three = min(found), statistics.geometric_mean(found), max(found)
        rows.append([*key, str(len(found)), *(f"{ratio:.1f}x" for ratio in three)])
    head = ["graph", "ids", "cases", "least", "geometric mean", "most"]
    return f"{source(record)}\n{table(head, rows, 4)}"


@figure("gpu/ablation.json", NONE_OF_GPU)
def gpu_ablation(record: Record) -> str:
    """Each mode against `bsp`: the geometric mean of the ratio by graph and number of hops."""
    modes = [mode for mode in record["rows"][0]["us"] if mode != "bsp"]
    cases: dict[tuple[str, int], list[Record]] = {}
    for row in record["rows"]:
        cases.setdefault((row["shape"], len(row["fanouts"])), []).append(row["us"])
    rows = []
    for (shape, hops), found in cases.items():
        cells = [shape, str(hops), str(len(found))]
        for mode in modes:
            times = [us["bsp"]["median"] / us[mode]["median"] for us in found]
            cells.append(f"{statistics.geometric_mean(times):.2f}x")
        rows.append(cells)
    head = ["graph", "hops", "cases", *(f"`{mode}`".replace("_", "`, ", 1) for mode in modes)]
    head = [name.replace("`queue`, unordered`", "`queue`, unordered") for name in head]
    return f"{source(record)}\n{table(head, rows, len(modes) + 1)}"


@figure("gpu/roofline.json", NONE_OF_GPU)
def gpu_roofline(record: Record) -> str:
    """Returns the share of the GPU's limits that batches reach."""
    rows = [
        [
            *case(row),
            f"{row['engine_us']['median']:.0f}",
            f"{row['sectors_per_edge']:.2f}",
            f"{row['bytes_per_edge']:.1f}",
            f"{row['reads_us']:.0f}",
            f"{row['atomics_us']:.0f}",
            f"{row['writes_us']:.0f}",
            f"{100 * row['near']:.0f} %",
            f"{100 * row['near_sum']:.0f} %",
        ]
        for row in record["rows"]
    ]
    head = [*CASE, "measured, us", "sectors an edge", "bytes an edge", "reads, us", "atomics, us"]
    head += ["writes, us", "longest / measured", "sum / measured"]
    return f"{source(record)}\n{table(head, rows, 8)}"
