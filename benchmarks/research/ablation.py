"""Measures the gain of each idea: the modes side by side on the shapes of the paper's Table II.

`bsp` samples hop by hop with the sizes read back in between, as DGL does; `fused` is all hops in
one launch, assigned statically (the paper's "DGL+Fusion"); `persistent` all hops in one launch with
phases; `queue` the paper's own task queue.
"""

from __future__ import annotations

import gc
from typing import Any

import torch

from ..gpu import check, plots
from ..gpu.cases import PAPER_BATCHES, PAPER_FANOUTS, PAPER_HOPS, PAPER_SHAPES, Case
from ..gpu.direct import Direct
from ..gpu.graphs import make
from ..gpu.latency import engine
from ..gpu.record import Budget, Record, spread

MODES = ("bsp", "fused", "persistent", "queue")
_BATCHES, _WARM = 15, 3


def measure(case: Case, made: Any) -> dict[str, Any]:
    """One row of JSON: the time of every mode on the same batches."""
    batches = made.seeds(case.batch, _BATCHES + _WARM, made.indices.dtype)
    ways = {mode: Direct(made, case.fanouts, mode) for mode in MODES}
    ways["queue_unordered"] = Direct(made, case.fanouts, "queue", mode_options={"ordered": False})
    row: dict[str, Any] = {
        "shape": case.shape,
        "batch": case.batch,
        "fanouts": list(case.fanouts),
        "ids": case.ids,
        "us": {},
    }
    counts = {}
    for name, direct in ways.items():
        counts[name] = direct.learn(batches)
        engine(direct, batches[:_WARM])
        row["us"][name] = spread(engine(direct, batches[_WARM:]))
    for name, found in counts.items():
        if found != counts["bsp"]:
            raise check.CheckError(f"{case}: {name} has other edges or vertices than bsp")
    row["edges"] = round(sum(edges for edges, _ in counts["bsp"]) / len(batches))
    return row


def line(row: dict[str, Any]) -> str:
    """One line for a row."""
    fanouts = ",".join(map(str, row["fanouts"]))
    base = row["us"]["bsp"]["median"]
    times = "  ".join(
        f"{mode} {us['median']:.1f} us ({base / us['median']:.2f}x)"
        for mode, us in row["us"].items()
    )
    return f"{row['shape']:9} {row['batch']:6}x({fanouts}) {row['edges']:10,} edges  {times}"


def run(record: Record, budget: Budget, trial: bool) -> None:
    """Every shape with the middle of the grid first, so that a short run has a bit of each."""
    fanouts = [(fanout,) * hops for hops in PAPER_HOPS for fanout in PAPER_FANOUTS]
    cases = [(batch, part) for batch in PAPER_BATCHES for part in fanouts]
    shapes = PAPER_SHAPES
    if trial:
        shapes, cases = ("tiny",), cases[:3]
    for place, shape in enumerate(shapes):
        # The remaining budget is shared by the remaining shapes.
        share = Budget(budget.left() / (len(shapes) - place))
        if share.over():
            record.skip(shape)
            continue
        made = make(shape)
        on_cpu = made.on_cpu()
        for mode in MODES:
            for hops in PAPER_HOPS:
                check.parity(made, on_cpu, (10,) * hops, mode)
        for batch, part in cases:
            case = Case(shape, batch if not trial else 128, part)
            if share.over():
                record.skip(case)
                continue
            row = measure(case, made)
            print(line(row), flush=True)
            record.add(row)
        del made, on_cpu
        gc.collect()
        torch.cuda.empty_cache()
    plots.ablation(record.content, record.path.parent)
