"""``python -m benchmarks.gpu.summary FOLDER``: a short table of what stands in its JSON files."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def lines(folder: Path) -> list[str]:
    """A line or a few for each part that was run."""
    found = []
    for part in (
        "latency",
        "calls",
        "throughput",
        "grid",
        "ablation",
        "training",
        "steps",
        "pyg_steps",
        "weights",
        "gather",
        "turbo",
        "cache",
        "transit",
        "roofline",
    ):
        file = folder / f"{part}.json"
        if not file.exists():
            continue
        content = json.loads(file.read_text())
        rows, left = content["rows"], len(content["left_out"])
        about = f"{len(rows)} rows" + (f", no time for {left}" if left else "")
        if "error" in content:
            about += f", FAILED: {content['error']}"
        found.append(f"{part}: {about}")
        found += [f"  {line}" for line in _OF.get(part, _none)(content)]
    return found


def _latency(content: dict[str, Any]) -> list[str]:
    made = [
        f"{_name(row):34} {row['engine_us']['median']:8.1f} us {row['ratio']:7.2f}x best peer"
        for row in content["rows"]
    ]
    if "least_ratio" in content:
        mean, least = content["geometric_mean_ratio"], content["least_ratio"]
        made.append(f"geometric mean {mean}x, least {least}x")
    return made


def _calls(content: dict[str, Any]) -> list[str]:
    return [
        f"{_name(row):34} {way:36} {us['median']:8.1f} us"
        for row in content["rows"]
        for way, us in row["us"].items()
    ]


def _throughput(content: dict[str, Any]) -> list[str]:
    return [f"{_name(row):34} {row['best_us']:8.1f} us a batch" for row in content["rows"]]


def _grid(content: dict[str, Any]) -> list[str]:
    return [
        f"{ids}: geometric mean {found['geometric_mean']}x DGL, least {found['least']}x"
        for ids, found in content.get("ratio", {}).items()
    ]


def _ablation(content: dict[str, Any]) -> list[str]:
    total: dict[str, float] = {}
    for row in content["rows"]:
        for mode, us in row["us"].items():
            total[mode] = total.get(mode, 0.0) + us["median"]
    return [f"{mode:16} {us / 1e3:9.2f} ms for a batch of every row" for mode, us in total.items()]


def _weights(content: dict[str, Any]) -> list[str]:
    made = []
    for row in content["rows"]:
        if "engine_us" in row and row["weights"] != "uniform":
            how = f"{row['weights']}, {'with' if row['replace'] else 'without'} replacement"
            peer = f" {row['ratio']:6.1f}x DGL" if "ratio" in row else ""
            us = row["engine_us"]["median"]
            made.append(
                f"{_name(row):34} {how:27} {us:8.1f} us {row['of_uniform']:5.2f} of uniform{peer}"
            )
    return made


def _training(content: dict[str, Any]) -> list[str]:
    return [
        f"{row['name']:20} step {row['step_us']:8.1f} us, waits {100 * row['wait_share']:5.1f} %"
        for row in content["rows"]
    ]


def _steps(content: dict[str, Any]) -> list[str]:
    return [
        f"{row['model']:4} {row['fanouts']!s:13} plain {row['plain_ms']:6.2f} ms, helpers "
        f"{row['helpers_ms']:5.2f}, graph {row['graph_ms']:6.3f}, TF32 {row['graph_tf32_ms']:6.3f}"
        for row in content["rows"]
    ]


def _pyg_steps(content: dict[str, Any]) -> list[str]:
    return [
        f"{row['layer']:8} {row['edges']:10} {row['fanouts']!s:11} eager {row['eager_ms']:6.2f} ms,"
        f" graph {row['graph_ms']:6.3f}, TF32 {row['graph_tf32_ms']:6.3f}"
        for row in content["rows"]
    ]


def _transit(content: dict[str, Any]) -> list[str]:
    return [
        f"{row['shape']:11} {row['walk']:20} {row['walks']:8} walks {row['ratio']:5.2f}x of sample,"
        f" {row['ratio_csr']:5.2f}x of csr"
        for row in content["rows"]
    ]


def _gather(content: dict[str, Any]) -> list[str]:
    return [
        f"{row['table']:11} rows of {row['row_bytes']:4} B {row['us']['gather']['median']:8.1f} us "
        + " ".join(f"{ratio:5.2f}x {name}" for name, ratio in row["ratio"].items())
        for row in content["rows"]
    ]


def _cache(content: dict[str, Any]) -> list[str]:
    return [
        f"rows of {row['row_bytes']:4} B, {100 * row['hits']:3.0f} % hits "
        + " ".join(f"{us['median']:8.1f} us {name}" for name, us in row["us"].items())
        for row in content["rows"]
        if "us" in row
    ] + [
        f"rows of {row['row_bytes']:4} B: {row['tally_us']['median']:.1f} us to count a batch, "
        f"{row['change_ms']['median']:.1f} ms to bring {row['brought']} rows"
        for row in content["rows"]
        if "tally_us" in row
    ]


def _roofline(content: dict[str, Any]) -> list[str]:
    return [
        f"{_name(row):34} {row['engine_us']['median']:8.1f} us, bound {row['bound_us']:8.1f} us "
        f"({100 * row['near']:.0f} %), sum {row['sum_us']:8.1f} us ({100 * row['near_sum']:.0f} %)"
        for row in content["rows"]
    ]


def _turbo(content: dict[str, Any]) -> list[str]:
    made = [f"best {name}: {value}" for name, value in content.get("thresholds", {}).items()]
    total: dict[str, float] = {}
    for row in content["rows"]:
        for name, us in row.get("draw_us", {}).items():
            total[name] = total.get(name, 0.0) + us
    return made + [f"{name:12} {us / 1e3:9.2f} ms to draw every row" for name, us in total.items()]


def _none(content: dict[str, Any]) -> list[str]:
    return []


def _name(row: dict[str, Any]) -> str:
    return f"{row['shape']} {row['batch']}x({','.join(map(str, row['fanouts']))})"


_OF = {
    "latency": _latency,
    "calls": _calls,
    "throughput": _throughput,
    "grid": _grid,
    "ablation": _ablation,
    "training": _training,
    "steps": _steps,
    "pyg_steps": _pyg_steps,
    "weights": _weights,
    "gather": _gather,
    "turbo": _turbo,
    "transit": _transit,
    "cache": _cache,
    "roofline": _roofline,
}


if __name__ == "__main__":
    print("\n".join(lines(Path(sys.argv[1]))))
