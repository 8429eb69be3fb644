"""Programs on the graphs of gSampler's table 6 that are large, in the GPU's memory and outside.

The graphs have the counts of ogbn-papers100M and of Friendster, each edge of which is there once.
A row is an algorithm of ``benchmarks.gpu programs`` on a graph that lies on the device or
page-locked on the host; one batch of each is compared with the CPU engine's before a clock starts.
``many_us`` is a batch of 64 that are given together: gSampler's super-batch. Table 9 in kind, which
takes hardware counters, are ``memory_mb``, what sampling holds beside the graph, and ``busy``, the
part of the time in which a kernel runs, with one batch and with many to a call.
"""

from __future__ import annotations

import gc
from typing import Any

import torch

import pygsampler as pgs

from .. import programs
from ..gpu.graphs import make
from ..gpu.programs import checked, ours, with_data
from ..gpu.record import Budget, Record
from .turbo_training import busy_share

SHAPES = ("papers100m", "friendster")
_SETS, _CALLS = 24, 4


def measure(shape: str, place: str, at: programs.Setting, graphs: Any, sets: Any) -> dict[str, Any]:
    """A row of one algorithm on one graph."""
    here, there = graphs
    sampler = at.ours()
    sampler.sample(there, sets[0][: at.seeds])
    own = [seeds[: at.seeds] for seeds in sets]
    checked(sampler, there, here, own[1])
    pgs.cuda.trim()
    graph = pgs.cuda.memory_stats()["used"]
    found = ours(sampler, there, own)
    held = (pgs.cuda.memory_stats()["reserved"] - graph) / 1e6
    calls = range(_CALLS)
    busy = {
        "one": busy_share(lambda: (sampler.sample(there, seeds, epoch=2) for seeds in own)),
        "many": busy_share(lambda: (sampler.sample_many(there, own, epoch=2) for _ in calls)),
    }
    row = {"shape": shape, "place": place, "setting": at.name, "seeds": at.seeds}
    return {**row, **found, "memory_mb": round(held, 1), "busy": busy}


def line(row: dict[str, Any]) -> str:
    """One line for a row."""
    return (
        f"{row['shape']:10} {row['place']:7} {row['setting']:24} {row['us']['median']:9.1f} us "
        f"(engine {row['engine_us']['median']:.1f}), of many {row['many_us']:.1f}"
    )


def run(record: Record, budget: Budget, trial: bool) -> None:
    """Each graph on the device, then page-locked."""
    shapes = ("tiny",) if trial else SHAPES
    for number, shape in enumerate(shapes):
        share = Budget(budget.left() / (len(shapes) - number))
        made = make(shape, torch.int32)
        here, _, _ = with_data(made)
        sets = made.seeds(max(at.seeds for at in programs.SETTINGS), _SETS, torch.int64)
        # The copy that programs read has the weights, so the graph alone is not needed there.
        del made
        gc.collect()
        torch.cuda.empty_cache()
        for place in ("device", "pinned"):
            if share.over():
                record.skip(f"{shape}, {place}")
                continue
            there = here.to("cuda") if place == "device" else here.pin()
            for at in programs.SETTINGS:
                if share.over():
                    record.skip(f"{shape}, {place}, {at.name}")
                    continue
                row = measure(shape, place, at, (here, there), sets)
                print(line(row), flush=True)
                record.add(row)
            there.close()
            gc.collect()
        del here, sets
        gc.collect()
        torch.cuda.empty_cache()
