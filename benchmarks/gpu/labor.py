"""LABOR: batches of samplers.labor beside DGL's LaborSampler, at the rows of dgl_labor.csv.

A batch of each row is compared with the CPU engine's before a clock starts, and the number of edges
of LABOR-0 with DGL's. ``us`` is a call with seeds on the device that returns a batch in torch's
memory.
"""

from __future__ import annotations

import csv
import gc
from pathlib import Path
from typing import Any

import torch

import pygsampler as pgs
from pygsampler._cli.bench.check import CheckError
from pygsampler.samplers import layer_wise

from .graphs import Made, make
from .programs import checked, timed
from .record import Budget, Record, spread

_CALLS = 60


def reference() -> list[dict[str, str]]:
    """The rows of dgl_labor.csv."""
    with Path(__file__).with_name("dgl_labor.csv").open() as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def measured(row: dict[str, str], made: Made, here: pgs.Graph, there: pgs.Graph) -> dict[str, Any]:
    """A row with our figures."""
    fanouts = [int(x) for x in row["fanouts"].split("x")]
    sampler = layer_wise.labor(fanouts=fanouts, importance=int(row["importance"]), seed=1)
    sets = made.seeds(int(row["batch"]), 8, torch.int64)
    checked(sampler, there, here, sets[1])
    edges = [sampler.sample(there, s, epoch=0, batch=i).num_edges for i, s in enumerate(sets)]
    mean = round(sum(edges) / len(edges))
    # The chances of LABOR-i depend on how far its search goes.
    if (
        made.name != "tiny"
        and row["importance"] == "0"
        and abs(mean / int(row["edges"]) - 1) > 0.05
    ):
        raise CheckError(f"{row}: expected about {row['edges']} edges, got {mean}")

    def call(i: int) -> Any:
        ids = sets[i % len(sets)]
        return sampler.launch(there, ids, epoch=0, batch=i, form="torch").result()

    us = spread(timed(_CALLS, call), 1)
    ratio = round(int(row["dgl_us"]) / us["median"], 2)
    print(f"{' '.join(row.values())}: {us['median']} us, {ratio}x DGL's", flush=True)
    return {**row, "mean_edges": mean, "us": us, "ratio": ratio}


def run(kept: Record, budget: Budget, trial: bool) -> None:
    """A row for each of dgl_labor.csv."""
    rows = reference()
    if trial:
        rows = [{**row, "shape": "tiny"} for row in rows[:4]]
    for shape in dict.fromkeys(row["shape"] for row in rows):
        if budget.over():
            kept.skip(shape)
            continue
        made = make(shape, torch.int32)
        here = made.on_cpu()
        there = here.to("cuda")
        for row in rows:
            if row["shape"] != shape:
                continue
            if budget.over():
                kept.skip(" ".join(row.values()))
            else:
                kept.add(measured(row, made, here, there))
        del made, here, there
        gc.collect()
        torch.cuda.empty_cache()
    kept.write()
