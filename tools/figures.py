#!/usr/bin/env python3
"""Write the figures of README.md and of pages of docs/ from benchmarks/results.

    python tools/figures.py            # after new results were put there
    python tools/figures.py --check    # 1 where a page shows others than the kept ones

What stands between `<!-- figures NAME -->` and `<!-- end -->` is replaced by what the function NAME
returns here.
"""

from __future__ import annotations

import csv
import json
import re
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from parts_model import modelled

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGES = tuple(
    ROOT / page
    for page in (
        "README.md",
        *(
            f"docs/{name}.md"
            for name in (
                *("performance", "features", "cuda-graphs", "turbognn", "nextdoor"),
                *("pipeline", "pyg", "gnnsampler", "parts", "peers", "several-gpus", "samplers"),
            )
        ),
    )
)
PLACE = re.compile(r"(<!-- figures (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
NONE = "No figures are kept for this version; `make bench` measures them on your machine.\n"
NONE_OF_GPU = "No figures of a GPU are kept for this version; `make gpu-check` measures them.\n"

BASELINE = "dgl"
OURS = {
    "sample": "`PGSampler.sample`",
    "loader": "`pygsampler.torch.DataLoader`",
    "adapter": "`pygsampler.dgl.PGSampler`",
}
SHOWN_PACKAGES = {"dgl": "DGL", "torch": "PyTorch", "numpy": "NumPy"}

Record = dict[str, Any]


def kept(name: str) -> Record | None:
    path = RESULTS / name
    return json.loads(path.read_text()) if path.exists() else None


def unmeasured(command: str) -> str:
    """Likewise, of what is no part of `make gpu-check`."""
    return f"No figures of a GPU are kept for this version; `{command}` measures them.\n"


def table(head: list[str], rows: list[list[str]], numbers: int) -> str:
    """Markdown; the last `numbers` columns are aligned to the right."""
    marks = ["---"] * (len(head) - numbers) + ["--:"] * numbers
    return "".join(f"| {' | '.join(cells)} |\n" for cells in [head, marks, *rows])


def milliseconds(row: Record) -> str:
    return f"{row['milliseconds']['median']:.2f}"


def source(record: Record) -> str:
    """Where and with what: a paragraph."""
    if "gpu" in record:
        return source_of_gpu(record)
    machine, used = record["hardware"], record["versions"]
    versions = [f"Python {used['python']}"]
    versions += [f"{shown} {used[name]}" for name, shown in SHOWN_PACKAGES.items() if used[name]]
    return (
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gb']:.0f} GB; "
        f"{', '.join(versions)}; {record['date'][:10]}, commit {record['commit'][:7]}; "
        f"`{record['command']}`.\n"
    )


def source_of_gpu(record: Record) -> str:
    """Likewise, of a record of benchmarks.gpu."""
    gpu, used = record["gpu"], record["versions"]
    return (
        f"{gpu['name']}, {gpu['memory_gb']:.0f} GB, driver {gpu['driver'] or 'unknown'}; "
        f"Python {used['python']}, PyTorch {used['torch']}; {record['date'][:10]}, "
        f"commit {(record['commit'] or 'unknown')[:7]}; `{record['command']}`.\n"
    )


def ratios() -> str:
    """A line for each graph and setting: DGL's time, and how many times as fast ours are."""
    record = kept("sampling.json")
    if record is None:
        return NONE
    cases: dict[tuple[str, str], dict[str, Record]] = {}
    for row in record["rows"]:
        cases.setdefault((row["graph"], row["setting"]), {})[row["contender"]] = row
    rows = [
        [*case, milliseconds(found[BASELINE])]
        + [f"{found[name]['ratio']['median']:.1f}x" for name in OURS]
        for case, found in cases.items()
    ]
    head = ["graph", "batch x fanouts", "DGL, ms a batch", *OURS.values()]
    return f"{table(head, rows, 4)}\n{source(record)}"


def all_rows() -> str:
    record = kept("sampling.json")
    if record is None:
        return NONE
    rows = []
    for row in record["rows"]:
        spread, ratio = row["milliseconds"], row["ratio"]
        rows.append(
            [
                row["graph"],
                row["setting"],
                OURS.get(row["contender"], row["label"]),
                f"{spread['median']:.2f} ({spread['q25']:.2f} to {spread['q75']:.2f})",
                f"{row['edges_per_batch']:,.0f}",
                f"{row['edges_per_second'] / 1e6:.0f}",
                f"{ratio['median']:.2f} ({ratio['q25']:.2f} to {ratio['q75']:.2f})",
                f"{row['rounds'] - row['disturbed']} of {row['rounds']}",
            ]
        )
    head = ["graph", "batch x fanouts", "sampler", "ms a batch", "edges a batch"]
    head += ["M edges/s", "x DGL", "undisturbed rounds"]
    return f"{source(record)}\n{table(head, rows, 5)}"


def parts() -> str:
    record = kept("parts.json")
    if record is None:
        return "No figures are kept for this version; `python -m benchmarks.parts` measures them.\n"
    rows = []
    for row in record["rows"]:
        count = row["processes"]
        cells = [f"{row[way]['median']:.1f}" for way in ("alone", "ahead", "round")]
        total = max(count, 1) * 1e3 / row["ahead"]["median"]
        name = "the whole graph" if not count else "1 part" if count == 1 else f"{count} parts"
        rows.append([name, *cells, f"{total:.0f}"])
    head = ["", "ms a batch, one at a time", "four on their way", "ms a round", "batches/s, all"]
    edges = sum(hop["edges"] for hop in record["hops"])
    about = f"`{record['graph']}`, 1024 x (15, 10, 5), {edges:,} edges a batch. "
    return table(head, rows, 4) + "\n" + about + source(record)


def parts_model() -> str:
    record = kept("parts.json")
    if record is None:
        return "No figures are kept for this version; `python -m benchmarks.parts` measures them.\n"
    rows = [
        [
            f"{row['machines']:.0f}",
            f"{row['bytes'] / 1e6:.1f}",
            f"{row['messages']:.0f}",
            f"{1e3 * row['seconds']:.1f}",
        ]
        for row in modelled(record)
    ]
    return table(["machines", "MB sent", "messages", "ms a batch"], rows, 4)


def copies() -> str:
    """Which part of a shared graph's reads its copies answer."""
    record = kept("copies.json")
    if record is None:
        return "No figures are kept for this version; `python -m benchmarks.copies` counts them.\n"
    rows = []
    for row in record["rows"]:
        for name, of in ((row["graph"], "pages"), ("the hottest rows of as many bytes", "rows")):
            rows.append([name, *(f"{found[of]:.2f}" for found in row["answered"])])
    shares = [f"{found['share']:.0%}" for found in record["rows"][0]["answered"]]
    shares[0] += " copied"
    return f"{source(record)}\n{table(['', *shares], rows, 4)}"


def cache_hits() -> str:
    """Hit rates of caches of some sizes, by policy."""
    record = kept("cache.json")
    if record is None:
        return NONE
    policies = ["random", "degree", "presampled", "exact", "best set", "lru", "belady"]
    rows = [
        [
            f"{row['graph']}, {row['batch']}x({','.join(map(str, row['fanouts']))})",
            f"{row['size_percent']} %",
            *(f"{100 * row['hit_rate'][policy]:.1f}" for policy in policies),
        ]
        for row in record["rows"]
        if row["size_percent"] in (1, 5, 20, 40)
    ]
    head = ["graph, batches", "rows in the cache", *policies]
    return f"{table(head, rows, len(policies) + 1)}\n{source(record)}"


def locality() -> str:
    """Ways to draw neighbours: times beside uniform ones, accuracy, pages and triads."""
    record = kept("locality.json")
    if record is None:
        return NONE
    rows = [
        [
            row["graph"],
            row["way"],
            *(f"{row[f'{what}_ratio']:.2f}" for what in ("sample", "gather", "epoch")),
            f"{row['accuracy']:.1%}",
            *(f"{row[what]:,.0f}" for what in ("rows", "pages", "closed_triads")),
            f"{row['clustering']:.3f}",
        ]
        for row in record["rows"]
    ]
    head = ["graph", "neighbours", "sample", "read", "epoch", "accuracy"]
    head += ["rows", "pages", "closed triads", "clustering"]
    return f"{table(head, rows, 8)}\n{source(record)}"


def side_by_side(found: list[Record], head: str) -> str:
    """Milliseconds, a line for each setting and a column for each sampler."""
    labels = list(dict.fromkeys(row["label"] for row in found))
    lines: dict[str, list[str]] = {}
    for row in found:
        begin = [row["setting"], f"{row['edges_per_batch']:,.0f}"]
        lines.setdefault(row["setting"], begin).append(milliseconds(row))
    columns = [head, "edges a batch", *(f"{label}, ms" for label in labels)]
    return table(columns, list(lines.values()), len(labels) + 1)


def growth() -> str:
    record = kept("scaling.json")
    if record is None:
        return NONE
    exponents = {row["label"]: record["growth"][row["contender"]] for row in record["sizes"]}
    return (
        f"{source(record)}\n{side_by_side(record['sizes'], record['sizes'][0]['graph'])}\n"
        + "Fitted k: "
        + "; ".join(f"{label} {k:.2f}" for label, k in exponents.items())
        + ".\n"
    )


def threads() -> str:
    record = kept("scaling.json")
    if record is None:
        return NONE
    return side_by_side(record["threads"], record["threads"][0]["graph"])


def hub() -> str:
    record = kept("scaling.json")
    if record is None:
        return NONE
    rows = [
        [
            row["label"],
            row["seeds"],
            f"{row['edges']:,.0f}",
            f"{1e3 * row['milliseconds']['median']:.1f}",
            f"{row['to_ordinary']['median']:.2f}",
        ]
        for row in record["hub"]
    ]
    head = ["sampler", "seeds", "edges a batch", "us a batch", "x without the hub"]
    text = table(head, rows, 3)
    return f"The hub has {record['hub_degree']:,} neighbours; fanouts are (10,10).\n\n{text}"


def case(row: Record) -> list[str]:
    """The first cells of a row of benchmarks.gpu."""
    return [row["shape"], f"{row['batch']}x({','.join(map(str, row['fanouts']))})"]


CASE = ["graph", "batch x fanouts"]


def gpu_latency() -> str:
    """One batch at a time, against the better of GraphBolt and DGL on the same kind of GPU."""
    record = kept("gpu/latency.json")
    if record is None:
        return NONE_OF_GPU
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


def gpu_calls() -> str:
    """What the public calls take beside the engine: microseconds a batch."""
    record = kept("gpu/calls.json")
    if record is None:
        return NONE_OF_GPU
    ways = list(record["rows"][0]["us"])
    rows = [[way, *(f"{row['us'][way]['median']:.1f}" for row in record["rows"])] for way in ways]
    head = ["a batch, us", *(" ".join(case(row)) for row in record["rows"])]
    return f"{source(record)}\n{table(head, rows, len(head) - 1)}"


def gpu_cugraph() -> str:
    """cuGraph beside the public calls, as they were measured together."""
    lines = (ROOT / "benchmarks" / "gpu" / "cugraph.csv").read_text().splitlines()
    rows = []
    for row in csv.DictReader(line for line in lines if not line.startswith("#")):
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


def gpu_throughput() -> str:
    """Batches in flight, and several to a call: microseconds a batch."""
    record = kept("gpu/throughput.json")
    if record is None:
        return NONE_OF_GPU
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


def gpu_grid() -> str:
    """The ratio to DGL over the paper's grid: least, geometric mean and most of each shape."""
    record = kept("gpu/grid.json")
    if record is None:
        return NONE_OF_GPU
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


def gpu_ablation() -> str:
    """Each mode against `bsp`: the geometric mean of the ratio by graph and number of hops."""
    record = kept("gpu/ablation.json")
    if record is None:
        return NONE_OF_GPU
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


def gpu_training() -> str:
    """GraphSAGE: a step, and how much of it waits for a sample."""
    record = kept("gpu/training.json")
    if record is None:
        return NONE_OF_GPU
    rows = [
        [
            row["name"],
            f"{row['step_us']:.0f}",
            f"{row['wait_us']:.0f}",
            f"{100 * row['wait_share']:.1f} %",
            f"{row['free_step_us']:.0f}",
        ]
        for row in record["rows"]
    ]
    head = ["batches", "a step, us", "of it waiting for a sample, us", "share"]
    head += ["a step of a loop that never waits for the GPU, us"]
    return f"{source(record)}\n{table(head, rows, 4)}"


def gpu_steps() -> str:
    """Whole training steps, in each way."""
    record = kept("gpu/steps.json")
    if record is None:
        return NONE_OF_GPU
    about = record["model"]
    rows = []
    for row in record["rows"]:
        fanouts = ",".join(map(str, row["fanouts"]))
        others = row["dgl_ms"]
        ratio = "" if others is None else f"{others / row['graph_ms']:.1f}x"
        rows.append(
            [f"{row['model']} {row['batch']}x({fanouts})"]
            + ["" if others is None else f"{others:.1f}"]
            + [f"{row[key]:.2f}" for key in ("plain_ms", "helpers_ms", "graph_ms")]
            + [f"{row['graph_tf32_ms']:.2f}", ratio]
        )
    head = ["", "DGL 2.5", "plain PyTorch", "helpers", "one graph", "with TF32", "DGL / graph"]
    return (
        f"Milliseconds a step, {about['features']} features, {about['hidden']} hidden, "
        f"{about['classes']} classes, {about['heads']} heads, {about['optimizer']}; a graph with "
        f"the size of {about['graph']}. All of it is on the GPU. Plain PyTorch and the helpers are "
        "eager, with our loader; DGL's figures were measured on the same kind of GPU with its own "
        f"loader, sampler and layers. {source(record)}\n{table(head, rows, 6)}"
    )


def gpu_pyg_steps() -> str:
    """Whole training steps of PyG's own layers."""
    record = kept("gpu/pyg_steps.json")
    if record is None:
        return NONE_OF_GPU
    keys = ("eager_ms", "eager_tf32_ms", "graph_ms", "graph_tf32_ms")
    rows = []
    for row in record["rows"]:
        others = row["dgl_ms"]
        rows.append(
            [f"{row['layer']} {row['batch']}x({','.join(map(str, row['fanouts']))})"]
            + [f"`{row['edges']}`", "" if others is None else f"{others:.1f}"]
            + [f"{row[key]:.2f}" for key in keys]
            + ["" if others is None else f"{others / row['graph_ms']:.1f}x"]
        )
    head = ["", "edges", "DGL 2.5", "eager", "eager, TF32", "one graph", "one graph, TF32"]
    text = table([*head, "DGL / graph"], rows, 6)
    return f"{source(record)}\n{text}"


def pyg_layers() -> str:
    """Steps of PyG's layers on batches of its loader, as ours makes them, on a GPU."""
    record = kept("pyg_layers-cuda.json")
    if record is None:
        return unmeasured("python -m benchmarks.pyg_layers --device cuda")
    ways = ("coo", "edge_index", "features=")
    rows = [
        [row["setting"], row["what"], *(f"{row[f'{way}, ms']:.2f}" for way in ways)]
        for row in record["rows"]
    ]
    head = ["batch x fanouts", "model", '`"coo"`', '`"edge_index"`', '`"coo"`, `features=`']
    return f"Milliseconds a step. {source(record)}\n{table(head, rows, 3)}"


def pyg_share() -> str:
    """What a batch of PyG's loader is made of, by how far ahead batches are sampled."""
    record = kept("pyg_share.json")
    if record is None:
        command = "python -m benchmarks.pyg_share"
        return f"No figures are kept for this version; `{command}` measures them.\n"
    parts: dict[tuple[str, Any], dict[str, Record]] = {}
    for row in record["rows"]:
        parts.setdefault((row["graph"], row["prefetch"]), {})[row["part"]] = row
    rows = []
    for (graph, prefetch), of in parts.items():
        way = "default" if prefetch is None else f"`prefetch={prefetch}`"
        cells = [milliseconds(of[part]) if part in of else "" for part in PARTS]
        rows.append([graph, way, *cells, f"{of['sampler']['share']['median']:.0%}"])
    head = ["graph", "", "sampling", "conversion", "waiting for both", "features", "building"]
    text = table([*head, "a batch", "sampler's share"], rows, 7)
    return f"Milliseconds a batch. {source(record)}\n{text}"


PARTS = "sampling", "conversion", "waiting", "features", "building", "whole"


def pipeline_cache() -> str:
    """Steps whose features are on the host, some of them cached, and what the link allows."""
    record = kept("pipeline-cuda-cache.json")
    if record is None:
        return unmeasured("python -m benchmarks.pipeline --device cuda --cache 0.2")
    rows = []
    for row in record["rows"]:
        part = "none" if "cached" not in row else f"{row['cached']:.0%}"
        hits = "" if row["hit_rate"] is None else f"{row['hit_rate']:.1%}"
        cells = [part, hits, f"{row['training, ms']:.2f}", f"{row['both, ms']:.2f}"]
        cells += [f"{row['waiting_share']:.1%}", f"{row['gathering_share']:.1%}"]
        cells += [f"{row['link, MB a step']:.1f}", f"{row['link, ms']:.2f}"]
        rows.append([*cells, f"{row['link / both']:.1%}"])
    head = ["rows cached", "hits", "training alone, ms", "both, ms", "waits for samples"]
    head += ["reads rows", "over the link, MB", "the link alone, ms", "the link alone / both"]
    return f"{source(record)}\n{table(head, rows, 8)}"


def pipeline_shares() -> str:
    """Steps of an eager loop by `sampler_share`."""
    record = kept("pipeline-cuda-share.json")
    if record is None:
        return unmeasured("python -m benchmarks.pipeline --device cuda --share 1 0.5 0.25")
    keys = ("data, ms", "training, ms", "both, ms")
    rows = []
    for row in record["rows"]:
        share = "none" if row["sampler_share"] is None else f"{row['sampler_share']:g}"
        rows.append([share, *(f"{row[key]:.3f}" for key in keys), f"{row['waiting_share']:.1%}"])
    head = ["`sampler_share`", "loading alone, ms", "training alone, ms", "both, ms"]
    return f"{source(record)}\n{table([*head, 'waits for samples'], rows, 5)}"


def gpu_cache() -> str:
    """Rows of which a part is cached, by the share of hits."""
    record = kept("gpu/cache.json")
    if record is None:
        return NONE_OF_GPU
    rows = [
        [f"{row['row_bytes']} bytes", f"{row['hits']:.0%}"]
        + [f"{row['us'][way]['median']:.0f}" for way in ("link", "static", "lru", "device")]
        for row in record["rows"]
        if "hits" in row
    ]
    head = ["rows of", "hits", "no cache", "a cache", "`lru`", "all on the device"]
    return (
        f"Microseconds to read 200,000 rows out of page-locked memory. {source(record)}\n"
        f"{table(head, rows, 5)}"
    )


def gpu_roofline() -> str:
    """How near to what the GPU can do."""
    record = kept("gpu/roofline.json")
    if record is None:
        return NONE_OF_GPU
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


def turbo_rows(kind: str) -> tuple[Record | None, list[Record]]:
    """The record of TurboGNN's kernels, and its rows of a kind."""
    record = kept("gpu/turbo.json")
    return record, [row for row in record["rows"] if row["kind"] == kind] if record else []


def drawn(row: Record, way: str) -> float:
    """Microseconds that a hop is drawn in, or those of the call where the profiler saw none."""
    us: float = row["draw_us"][way] if row["draw_us"] else row["call_us"][way]["median"]
    return us


def gpu_turbo() -> str:
    """The kernel, all switches off and on, by graph, vertices and fanout: the paper's figure 5."""
    record, found = turbo_rows("kernel")
    if record is None:
        return NONE_OF_GPU
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
    head = ["graph", "vertices"]
    for fanout in fanouts:
        head += [f"fanout {fanout}: off, us", "on, us", "ratio"]
    return f"{source(record)}\n{table(head, rows, len(head) - 1)}"


def gpu_turbo_ablation() -> str:
    """What each switch adds: the paper's figure 6, and the bandwidth that it tells."""
    record, found = turbo_rows("kernel")
    if record is None:
        return NONE_OF_GPU
    ways = ("B", "B+S", "B+S+A", "bsp")
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
    head = ["graph", "vertices", "fanout", "off, us", *ways[:-1], "O(fanout)"]
    head += ["off, of a copy", "B+S+A, of a copy", "O(fanout), of a copy", "sorting, of B+S+A"]
    return table(head, rows, len(head) - 1)


def gpu_turbo_calls() -> str:
    """Whole batches: microseconds of a call, and how often ours are as fast."""
    record, _ = turbo_rows("hops")
    if record is None:
        return NONE_OF_GPU
    ways = ("off", "B+S+A", "streams", "bsp", "persistent")
    rows = []
    for row in (row for row in record["rows"] if row["kind"] != "sweep"):
        us = {way: row["call_us"][way]["median"] for way in ways}
        cells = [*case(row), f"{row['edges']:,}", *(f"{us[way]:.0f}" for way in ways)]
        rows.append([*cells, f"{us['B+S+A'] / us['persistent']:.1f}x"])
    head = [*CASE, "edges a batch", "off, us", "B+S+A, us", "in two streams, us", '`"bsp"`, us']
    return table([*head, '`"persistent"`, us', "ratio to B+S+A"], rows, len(head))


def gpu_turbo_sweep() -> str:
    """The thresholds: a line for each that was tried."""
    record, found = turbo_rows("sweep")
    if record is None:
        return NONE_OF_GPU
    names = {"degree_threshold": "degree", "block_threshold": "blocks"}
    rows = []
    for row in found:
        value = "the plan's own" if row["value"] is None else f"{row['value']:,}"
        best = record["thresholds"][row["threshold"]] == row["value"]
        rows.append([names[row["threshold"]], value, f"{row['us']:.1f}", "best" if best else ""])
    return table(["threshold", "value", "us, geometric mean", ""], rows, 3)


def gpu_transit() -> str:
    """Walks by transits: 10**9 steps a second of each way, and the paper's share of its index."""
    record = kept("gpu/transit.json")
    if record is None:
        return unmeasured("python -m benchmarks.gpu transit --out FOLDER")
    rows = []
    for row in record["rows"]:
        cells = [row["shape"], row["walk"], f"{row['walks']:,}", f"{row['a_vertex']:.2g}"]
        cells += [f"{row['gsteps'][way]:.2f}" for way in ("csr", "sample", "transit")]
        cells += [f"{row['ratio_csr']:.2f}x", f"{row['ratio']:.2f}x"]
        share = row["index_share"]
        rows.append([*cells, "" if share is None else f"{100 * share:.0f} %"])
    head = ["graph", "walk", "walks", "walks a vertex", "by sample, csr", "by sample", "by transit"]
    head += ["transit to csr", "transit to sample", "index, of transit"]
    return f"{source(record)}\n{table(head, rows, 8)}"


def gpu_khop() -> str:
    """Samples by steps: 10**9 vertices a second of each way; other batches in microseconds."""
    record = kept("gpu/khop.json")
    if record is None:
        return unmeasured("python -m benchmarks.gpu khop --out FOLDER")
    rows = []
    for row in record["rows"]:
        cells = [row["shape"], row["kind"], f"{row['samples']:,}"]
        cells += [f"{row['us'][way]['median']:,.0f}" if way in row["us"] else "" for way in _WAYS]
        rates = row.get("gvertices", {})
        cells += [f"{rates[way]:.2f}" if way in rates else "" for way in _WAYS]
        share = row.get("index_share")
        cells += [f"{row['ratio']:.2f}x" if "ratio" in row else ""]
        rows.append([*cells, "" if share is None else f"{100 * share:.0f} %"])
    head = ["graph", "what", "samples", "by sample, us", "by transit, us"]
    head += ["G vertices/s by sample", "by transit", "transit to sample", "index, of transit"]
    return f"{source(record)}\n{table(head, rows, 7)}"


_WAYS = ("sample", "transit")


def gpu_programs() -> str:
    """Programs on a GPU: microseconds a batch, beside torch's operators and gSampler."""
    record = kept("gpu/programs.json")
    if record is None:
        return unmeasured("python -m benchmarks.gpu programs --out FOLDER")
    rows = []
    for row in record["rows"]:
        known, us = row["kept_us"], row["us"]["median"]
        cells = [row["shape"], row["setting"], f"{us:.0f}", f"{row['engine_us']['median']:.0f}"]
        cells += [
            f"{row['many_us']:.0f}",
            f"{row['torch_us']['median']:,.0f}",
            f"{row['ratio']:.1f}x",
        ]
        names = ("gsampler", "torch", "gsampler, many")
        cells += [f"{known[name]:,.0f}" if name in known else "" for name in names]
        single = [known[name] for name in names[:2] if name in known]
        cells.append(f"{min(single) / us:.1f}x" if single else "")
        many = known.get(names[2])
        rows.append([*cells, f"{many / row['many_us']:.1f}x" if many else ""])
    head = ["graph", "algorithm", "us", "engine", "of 64", "torch here", "ratio"]
    head += ["gSampler, kept", "torch, kept", "gSampler of many, kept", "to the faster", "of many"]
    return f"{source(record)}\n{table(head, rows, 10)}"


def gpu_program_roofline() -> str:
    """What of a program's batch is its memory's."""
    record = kept("gpu/program_roofline.json")
    if record is None:
        return unmeasured("python -m benchmarks.program_roofline --out FOLDER")
    rows = [
        [
            *(row["shape"], row["setting"]),
            f"{(row['looked_at'] + row['drawn']) / 1e3:,.0f}",
            *(f"{row[part]:.1f}" for part in ("rows_us", "draws_us", "map_us", "writes_us")),
            *(f"{row['engine_us']:.0f}", f"{100 * row['share']:.0f} %"),
            *(f"{row['many_us']:.0f}", f"{100 * row['share_of_many']:.0f} %"),
        ]
        for row in record["rows"]
    ]
    head = [
        "graph",
        "algorithm",
        "thousand edges",
        "rows, us",
        "draws, us",
        "map, us",
        "writes, us",
    ]
    head += ["engine, us", "memory of it", "of 64, us", "memory of it"]
    return (
        f"Counted by `{record['command']}` at commit {record['commit'][:7]}; measured at commit "
        f"{record['measured_at'][:7]}, as above.\n\n{table(head, rows, 9)}"
    )


def gpu_program_times() -> str:
    """Algorithms on a GPU: microseconds a batch alone, and of 64 together, by graph."""
    record = kept("gpu/programs.json")
    if record is None:
        return unmeasured("python -m benchmarks.gpu programs --out FOLDER")
    shapes = list(dict.fromkeys(row["shape"] for row in record["rows"]))
    found: dict[str, dict[str, list[str]]] = {}
    for row in record["rows"]:
        both = [f"{row['us']['median']:.0f}", f"{row['many_us']:.0f}"]
        found.setdefault(row["setting"], {})[row["shape"]] = both
    rows = [
        [setting, *(cell for shape in shapes for cell in of.get(shape, ["", ""]))]
        for setting, of in found.items()
    ]
    head = ["", *(name for shape in shapes for name in (f"{shape}, us", "of 64"))]
    return f"{source(record)}\n{table(head, rows, 2 * len(shapes))}"


def gpu_passes() -> str:
    """Programs with more and more of the passes: microseconds a batch."""
    record = kept("gpu/passes.json")
    if record is None:
        return unmeasured("python -m benchmarks.gpu passes --out FOLDER")
    stages = list(record["rows"][0]["us"])
    rows = [
        [row["shape"], row["setting"], *(f"{row['us'][stage]:,.0f}" for stage in stages)]
        for row in record["rows"]
    ]
    return f"{source(record)}\n{table(['graph', 'algorithm', *stages], rows, len(stages))}"


def gpu_labor() -> str:
    """LABOR on a GPU: microseconds a batch, beside DGL's."""
    record = kept("gpu/labor.json")
    if record is None:
        return unmeasured("python -m benchmarks.gpu labor --out FOLDER")
    rows = [
        [
            row["shape"],
            f"LABOR-{row['importance']}",
            f"{row['batch']}x({row['fanouts'].replace('x', ',')})",
            f"{row['mean_edges']:,}",
            f"{row['us']['median']:,.0f}",
            f"{int(row['dgl_us']):,}",
            f"{row['ratio']:.1f}x",
        ]
        for row in record["rows"]
    ]
    head = ["graph", "", "batch", "edges", "us", "DGL, us", "ratio"]
    return f"{source(record)}\n{table(head, rows, 4)}"


def gpu_layouts() -> str:
    """`A[R, S]` on a GPU by in-edges of S, by out-edges of R and by costs: microseconds a batch."""
    record = kept("gpu/layouts.json")
    if record is None:
        return unmeasured("python -m benchmarks.gpu layouts --out FOLDER")
    ways = list(record["rows"][0]["us"])
    rows = [
        [
            row["shape"],
            row["program"],
            f"{row['rows']:,}",
            *(f"{row['us'][way]['median']:,.0f}" for way in ways),
            f"{row['us'][ways[0]]['median'] / row['us'][ways[-1]]['median']:.1f}x",
        ]
        for row in record["rows"]
    ]
    head = ["graph", "program", "rows", *ways, "gain"]
    return f"{source(record)}\n{table(head, rows, len(ways) + 2)}"


def gpu_typed() -> str:
    """Graphs with types on a GPU: microseconds a batch, beside the CPU engine."""
    record = kept("gpu/typed.json")
    if record is None:
        return unmeasured("python -m benchmarks.gpu typed --out FOLDER")
    rows = []
    for row in record["rows"]:
        gpu, cpu = (row["us"][name]["median"] for name in ("gpu", "cpu"))
        cells = [row["kind"], f"{row['relations']}", f"{row['edges']:,}", f"{gpu:,.0f}"]
        rows.append([*cells, f"{cpu:,.0f}", f"{cpu / gpu:.1f}x"])
    head = ["graph", "types of edges", "edges a batch", "GPU, us", "CPU, us", "ratio"]
    return f"{source(record)}\n{table(head, rows, 5)}"


def gpu_rgcn() -> str:
    """R-GCN's steps: milliseconds with batches of the GPU, and of the CPU."""
    record = kept("gpu/rgcn.json")
    if record is None:
        return unmeasured("python -m benchmarks.gpu rgcn --out FOLDER")
    names = ("loader_ms", "step_ms", "cpu_loader_ms", "cpu_step_ms")
    rows = [
        [row["model"], f"{row['relations']}", *(f"{row[name]:.2f}" for name in names)]
        for row in record["rows"]
    ]
    head = ["model", "types of edges", "loader, ms", "step, ms", "by the CPU: loader, ms"]
    return f"{source(record)}\n{table([*head, 'step, ms'], rows, 5)}"


def peers_record() -> Record | None:
    """What two GPUs and more have measured."""
    record = kept("gpu/peers.json")
    return record if record and record["rows"][0]["gpus"] > 1 else None


PEERS = "python -m benchmarks.gpu peers --out FOLDER"


def gpu_peers() -> str:
    """A graph in the memory of several GPUs beside a copy on each: batches and walks."""
    record = peers_record()
    if record is None:
        return unmeasured(PEERS)
    rows = []
    for row in record["rows"]:
        if "remote" not in row:
            continue
        fanouts = ",".join(map(str, reversed(row["fanouts"])))
        cells = [f"{row['shape']} ({fanouts})", row["ways"], f"{row['graph_gb']:.2f}"]
        cells += [f"{row['batches_per_second']:,.0f}", f"{row['times_one']:.2f}"]
        cells += [f"{row['of_replicated']:.2f}", f"{row['remote']:.2f}", f"{row['greads']:.1f}"]
        walked = f"{row['gsteps']:.1f}"
        # Where nothing leaves the GPU, walks are bound by other things.
        cells += [walked, *([f"{row['walk_bound']:.1f}"] if row["remote"] > 0.17 else [""])]
        rows.append(cells)
    head = ["graph", "", "GB a GPU", "batches/s in all", "times one GPU", "of copies"]
    head += ["reads of other GPUs", "G edges/s a GPU", "walks, G steps/s a GPU", "bound"]
    return f"{source(record)}\n{table(head, rows, 8)}"


def gpu_peers_rows() -> str:
    """Rows of features of a GPU's own part and of another one's."""
    record = peers_record()
    if record is None:
        return unmeasured(PEERS)
    rows = [
        [row["shape"], row["ways"].removeprefix("features, "), f"{row['feature_gb']:,.0f}"]
        for row in record["rows"]
        if "feature_gb" in row
    ]
    return table(["table", "rows of 512 bytes", "GB/s a GPU"], rows, 1)


def gpu_peers_threads() -> str:
    """One process with a thread for each GPU: batches a second, and times one GPU."""
    record = peers_record()
    if record is None:
        return unmeasured(PEERS)
    rows = []
    for row in record["rows"]:
        if row["ways"] != "threads":
            continue
        fanouts = ",".join(map(str, reversed(row["fanouts"])))
        for way, times in row["times_one"].items():
            rates = (row["batches_per_second"][f"{way}, {which}"] for which in ("one", "each"))
            rows.append([f"({fanouts})", way, *(f"{rate:,}" for rate in rates), f"{times:.2f}"])
    head = [record["rows"][0]["shape"], "", "one thread, batches/s", "one a GPU", "times one"]
    return f"{source(record)}\n{table(head, rows, 3)}"


def gpu_peers_epoch() -> str:
    """Epochs of GraphSAGE: seconds."""
    record = peers_record()
    if record is None:
        return unmeasured(PEERS)
    names = ("sampling_s", "loader_s", "training_s")
    rows = [
        [f"{row['gpus']}", f"{row['steps']:,}", *(f"{row[name]:.2f}" for name in names)]
        for row in record["rows"]
        if row["ways"] == "epoch"
    ]
    head = ["GPUs", "batches a GPU", "samples, s", "and rows of features, s", "and training, s"]
    return f"{source(record)}\n{table(head, rows, 5)}"


# The bare kernel that reads what a walk reads.
BARE = {"uniform": "packed", "csr": "two", "weighted": "alias", "ppr": "stopping"}


def gpu_walks() -> str:
    """Walks on a GPU: 10**9 steps a second of whole calls, and of bare kernels of such reads."""
    record = kept("gpu/walks.json")
    if record is None:
        return unmeasured("python -m benchmarks.gpu walks --out FOLDER")
    bare = {row["shape"]: row["bare"] for row in record["rows"] if row["walk"] == "bare"}
    rows = []
    for row in record["rows"]:
        if row["walk"] == "bare":
            continue
        name = row["walk"]
        like = BARE.get(name)
        cells = [row["shape"], name]
        if "gsteps" in row:
            cells += [f"{row['walks']:,}", f"{row['gsteps']:.1f}"]
            most = bare[row["shape"]].get(like, {}).get("gsteps")
            cells += [f"{most:.1f}", f"{row['gsteps'] / most:.0%}"] if most else ["", ""]
        else:
            cells += ["", "", "", ""]
        cells += [f"{row['engine_us']['median']:.0f}", f"{row['torch_us']['median']:.0f}"]
        rows.append(cells)
    head = ["graph", "walks of 80 steps", "how many", "G steps/s", "bare kernel", "of it"]
    head += ["1024 seeds, us", "as torch tensors, us"]
    return f"{source(record)}\n{table(head, rows, 6)}"


# Random reads of an H200, 10**9 a second: of tables that its L2 has no room for, and of others.
GATHERS, GATHERS_IN_L2, L2_BYTES = 38.0, 150.0, 50e6
# Where there are fewer walks than vertices.
VERTICES = {"papers100m": 111_059_956}
# Bytes of the reads of a step, one after the other; whether the first is of the vertices' offsets,
# which are 4 bytes each; and bytes that are written.
STEPS = {
    "uniform": ((16,), False, 4),
    "with edges": ((16,), False, 8),
    "csr": ((8, 4), True, 4),
    "weighted": ((32,), False, 4),
    "weighted csr": ((8, 8, 4), True, 4),
}


def gpu_walks_roofline() -> str:
    """What a step of walks reads, and how many steps such reads allow, beside those measured."""
    record = kept("gpu/walks.json")
    if record is None:
        return unmeasured("python -m benchmarks.gpu walks --out FOLDER")
    rows = []
    for row in record["rows"]:
        if row["walk"] not in STEPS:
            continue
        reads, offsets, written = STEPS[row["walk"]]
        vertices = VERTICES.get(row["shape"], row["walks"])
        near = int(offsets and 4 * vertices <= L2_BYTES)
        most = 1 / ((len(reads) - near) / GATHERS + near / GATHERS_IN_L2)
        cells = [row["shape"], row["walk"], " + ".join(map(str, reads)), f"{written}", f"{near}"]
        cells += [f"{most:.1f}", f"{row['gsteps']:.1f}", f"{row['gsteps'] / most:.0%}"]
        rows.append(cells)
    head = ["graph", "walk", "bytes read a step", "written", "reads in the L2", "bound, G steps/s"]
    return f"{source(record)}\n{table([*head, 'measured', 'of it'], rows, 6)}"


FIGURES: dict[str, Callable[[], str]] = {
    function.__name__: function
    for function in (
        *(ratios, all_rows, cache_hits, growth, threads, hub),
        *(
            pyg_layers,
            pyg_share,
            pipeline_cache,
            pipeline_shares,
            locality,
            parts,
            parts_model,
            copies,
        ),
        *(
            gpu_latency,
            gpu_calls,
            gpu_cugraph,
            gpu_throughput,
            gpu_grid,
            gpu_ablation,
            gpu_training,
            gpu_steps,
            gpu_pyg_steps,
            gpu_cache,
            gpu_roofline,
            gpu_turbo,
            gpu_turbo_ablation,
            gpu_turbo_calls,
            gpu_turbo_sweep,
            gpu_transit,
            gpu_khop,
            gpu_walks,
            gpu_walks_roofline,
            gpu_programs,
            gpu_program_roofline,
            gpu_program_times,
            gpu_labor,
            gpu_layouts,
            gpu_passes,
            gpu_typed,
            gpu_rgcn,
            *(gpu_peers, gpu_peers_rows, gpu_peers_threads, gpu_peers_epoch),
        ),
    )
}


def filled(page: Path) -> str:
    """The page's text with the kept figures."""
    return PLACE.sub(lambda found: found[1] + FIGURES[found[2]]() + found[3], page.read_text())


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    stale = [page for page in PAGES if filled(page) != page.read_text()]
    for page in stale:
        if arguments:
            print(f"{page.relative_to(ROOT)}: not the figures of benchmarks/results")
        else:
            page.write_text(filled(page))
    return 1 if arguments and stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
