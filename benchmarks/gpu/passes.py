"""gSampler's figure 10 with programs of ours: how much faster each step of the plan makes a batch.

One batch at a time by plans with more and more of the passes (``benchmarks.programs``: plain,
fusion, pre-processing, layout, all), and last 64 batches given together. The batches must be the
same. On a GPU layouts are a choice for A[R, S] alone: without it that stage is the same kernel as
the one before. ``passes.png`` has times as fast as the plain plan.
"""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import torch

import pygsampler as pgs
from pygsampler._cli.bench.check import CheckError

from .. import programs
from .graphs import Made, make
from .programs import prepared, timed
from .record import Budget, Record

SHAPES = ("products", "livejournal")
_CALLS, _MANY = 100, 64


def ablated(at: programs.Setting, made: Made, there: pgs.Graph) -> dict[str, Any]:
    """Microseconds of a batch at each stage."""
    sets = [s[: at.seeds] for s in made.seeds(max(at.seeds, 1), 16, torch.int64)]
    us: dict[str, float] = {}
    edges = []
    for stage, on in programs.STAGES:
        sampler = at.ours(passes=[name for name in programs.PASSES if name not in on])
        first = sampler.sample(there, sets[0], epoch=0, batch=0).cpu()
        blocks = getattr(first, "blocks", [first])
        edges.append([np.array(block.edge_ids) for block in blocks])
        for mine, other in zip(edges[-1], edges[0], strict=True):
            if not np.array_equal(mine, other):
                raise CheckError(f"{at.name}: passes change the batch at stage '{stage}'")
        took = timed(
            _CALLS,
            lambda i, s=sampler: s.launch(
                there, sets[i % len(sets)], epoch=0, batch=i, form="torch"
            ).result(),
        )
        us[stage] = round(float(np.median(took)), 1)
    many = [sets[i % len(sets)] for i in range(_MANY)]
    together = timed(5, lambda i: sampler.sample_many(there, many, epoch=1, batch=_MANY * i), 2)
    us[f"{_MANY} together"] = round(float(np.median(together)) / _MANY, 1)
    return us


def run(record: Record, budget: Budget, trial: bool) -> None:
    """A row for each graph and setting, and the picture."""
    for shape in ("tiny",) if trial else SHAPES:
        made = make(shape, torch.int32)
        there = prepared(made)[0].to("cuda")
        for at in programs.SETTINGS:
            if at.name not in programs.ABLATED:
                continue
            if budget.over():
                record.skip(f"{shape} {at.name}")
                continue
            us = ablated(at, made, there)
            print(shape, at.name, us, flush=True)
            record.add({"shape": shape, "setting": at.name, "us": us})
        del made, there
        gc.collect()
        torch.cuda.empty_cache()
    drawn = [
        {"setting": f"{row['setting']}\n{row['shape']}", "ms_a_batch": row["us"]}
        for row in record.rows
    ]
    if drawn:
        programs.drawn(drawn, record.path.parent / "passes.png")
