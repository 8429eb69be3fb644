"""Layouts of programs on a GPU: A[R, S] by the in-edges of S, by the out-edges of R, and by costs.

The costs are measured first and kept, as ``pygsampler calibrate --device cuda`` does. Programs
are ``out`` (how many edges of R's lead to each vertex), ``reached`` (vertices that are drawn by
that) and ``back`` (edges from the seeds to neighbours of theirs). Batches of all ways must be the
same, and one that of the CPU engine, before a clock starts. ``us`` is a call with seeds on the
device that returns a batch in torch's memory; ``first_ms`` the call that finds the out-edges, and
compiles.
"""

from __future__ import annotations

import gc
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import pygsampler as pgs
from pygsampler._cli.bench.check import CheckError
from pygsampler._engine import library
from pygsampler.programs import Program

from .graphs import Made, make
from .programs import timed
from .record import Budget, Record, spread

SHAPES = ("reddit", "products")
ROWS = (10, 1000, 10_000)
_CALLS = 30


@pgs.program
def out(A: Any, seeds: Any) -> Any:
    return {"into": A[seeds.unique(), :].sum(axis=0)}


@pgs.program
def reached(A: Any, seeds: Any, *, K: int) -> Any:
    return {"near": A[seeds.unique(), :].sum(axis=0).draw(K)}


@pgs.program
def back(A: Any, seeds: Any, *, K: int) -> Any:
    R = seeds.unique()
    return A[R, A[:, R].individual_sample(K).row()]


PROGRAMS = {"out": out(seed=1), "reached": reached(K=1000, seed=1), "back": back(K=10, seed=1)}
# The fields of a plan that make a way.
WAYS: dict[str, dict[str, Any]] = {
    "in-edges": {"passes": ["layout"]},
    "out-edges": {"layouts": ["out_edges"]},
    "by costs": {},
}


def arrays_of(batch: Any) -> list[np.ndarray[Any, Any]]:
    """Returns the arrays of a batch."""
    here = batch.cpu().numpy()
    blocks = [getattr(block, name) for block in here.blocks for name in ("indices", "edge_ids")]
    return [*blocks, *here.extra.values()]


def measured(name: str, made: Made, here: pgs.Graph | None, rows: int) -> dict[str, Any]:
    """A row: the time of each way, once all have made the same batch."""
    sampler = PROGRAMS[name]
    sets = made.seeds(rows, 8, torch.int64)
    found: dict[str, Any] = {"us": {}, "first_ms": {}}
    want = None if here is None else arrays_of(sampler.sample(here, sets[0].cpu(), batch=0))
    for way, fields in WAYS.items():
        own = Program({**sampler._fields(), **fields}, 1, name, {})
        begin = time.perf_counter()
        got = arrays_of(own.sample(made.graph, sets[0], batch=0))
        found["first_ms"][way] = round(1e3 * (time.perf_counter() - begin), 1)
        want = got if want is None else want
        for mine, theirs in zip(got, want, strict=True):
            if not np.array_equal(mine, theirs, equal_nan=mine.dtype.kind == "f"):
                raise CheckError(f"{name}, {rows} rows: the batch by {way} is another one")

        def call(i: int, own: Program = own) -> Any:
            job = own.launch(made.graph, sets[i % len(sets)], epoch=0, batch=i, form="torch")
            return job.result()

        found["us"][way] = spread(timed(_CALLS, call), 1)
    ways = found["us"]
    found["ratio"] = round(ways["in-edges"]["median"] / ways["by costs"]["median"], 2)
    told = str(sampler.explain(made.graph, rows)).partition("layouts, ")[2].splitlines()[1:]
    return {**found, "explain": [line.strip() for line in told]}


def run(record: Record, budget: Budget, trial: bool) -> None:
    """A row for each graph, program and number of rows."""
    if not trial:
        costs = json.loads(library.call("ProgramCalibrate", 0))
        # A kept file names no folder of a machine.
        record.content["costs"] = costs | {"path": Path(costs["path"]).name}
        print(record.content["costs"], flush=True)
    for shape in ("tiny",) if trial else SHAPES:
        if budget.over():
            record.skip(shape)
            continue
        made = make(shape, torch.int32)
        here: pgs.Graph | None = made.on_cpu()
        for name in PROGRAMS:
            for rows in ROWS[:2] if trial else ROWS:
                if budget.over():
                    record.skip(f"{shape} {name} {rows}")
                    continue
                row = measured(name, made, here, rows)
                times = {way: us["median"] for way, us in row["us"].items()}
                print(shape, name, rows, times, f"{row['ratio']}x", row["first_ms"], flush=True)
                record.add({"shape": shape, "program": name, "rows": rows, **row})
        del made, here
        gc.collect()
        torch.cuda.empty_cache()
