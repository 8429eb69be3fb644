"""The grid of the paper: six shapes, four batch sizes, three fanouts, two and three hops."""

from __future__ import annotations

import gc
from typing import Any

import torch

from . import check, plots
from .cases import Case, by_shape, dgl_grid, tiny
from .direct import Direct
from .graphs import make
from .latency import engine, line
from .record import Budget, Record, geometric_mean, spread

_BATCHES, _WARM = 40, 6


def measure(case: Case, direct: Direct, count: int = _BATCHES) -> dict[str, Any]:
    """One row of JSON: latency by the engine's functions, and the ratio to DGL's."""
    made = direct.made
    batches = made.seeds(case.batch, count + _WARM, made.indices.dtype)
    found = direct.learn(batches)
    check.edges(case, found)
    engine(direct, batches[:_WARM])
    times = spread(engine(direct, batches[_WARM:]))
    edges = sum(number for number, _ in found) / len(found)
    return {
        "shape": case.shape,
        "batch": case.batch,
        "fanouts": list(case.fanouts),
        "ids": case.ids,
        "edges": round(edges),
        "bytes": direct.room * 4 // 5,
        "engine_us": times,
        "edges_per_second": round(1e6 * edges / times["median"]),
        "peer_us": case.peer_us,
        "ratio": round(case.peer_us / times["median"], 2),
    }


def run(record: Record, budget: Budget, trial: bool) -> None:
    """Each shape once with int32 ids, then, as far as there is time, with int64."""
    cases = tiny(dgl_grid()) if trial else dgl_grid()
    for ids in ("int32", "int64"):
        for shape, some in by_shape([case for case in cases if case.ids == ids]).items():
            if budget.over():
                for case in some:
                    record.skip(case)
                continue
            made = make(shape, getattr(torch, ids))
            on_cpu = made.on_cpu()
            for fanouts in {case.fanouts for case in some}:
                check.parity(made, on_cpu, fanouts, "auto")
            for case in some:
                if budget.over():
                    record.skip(case)
                    continue
                row = measure(case, Direct(made, case.fanouts))
                print(line(row), flush=True)
                record.add(row)
            del made, on_cpu
            gc.collect()
            torch.cuda.empty_cache()
        summarize(record)
    plots.grid(record.content, record.path.with_name("grid.png"))


def summarize(record: Record) -> None:
    """Geometric mean and least of the ratio for each width of ids."""
    record.content["ratio"] = {}
    for ids in ("int32", "int64"):
        ratios = [row["ratio"] for row in record.rows if row["ids"] == ids and row["ratio"]]
        if ratios:
            record.content["ratio"][ids] = {
                "rows": len(ratios),
                "geometric_mean": round(geometric_mean(ratios), 2),
                "least": min(ratios),
            }
