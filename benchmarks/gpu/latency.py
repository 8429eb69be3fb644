"""One batch at a time, from the call to the batch being there."""

from __future__ import annotations

import gc
import time
from typing import Any

import torch

from pygsampler._loader.cuda_events import FIRST
from pygsampler.torch import DataLoader

from . import check
from .cases import Case, by_shape, reference, tiny
from .direct import Direct
from .graphs import make
from .record import Budget, Record, geometric_mean, spread

BATCHES = 100
_WARM = 10


def engine(direct: Direct, batches: list[torch.Tensor]) -> list[float]:
    """Microseconds of each batch by the extension's functions alone."""
    (out,) = direct.outputs(1)
    submit, wait, release, clock = direct.submit, direct.wait, direct.release, time.perf_counter_ns
    times = []
    torch.cuda.synchronize()
    for number, seeds in enumerate(batches):
        begin = clock()
        memory = wait(submit(seeds, number, out))
        end = clock()
        if memory < 0:
            raise RuntimeError("a batch did not fit, after as many of its kind")
        release(memory)
        times.append((end - begin) / 1e3)
    return times


def public(direct: Direct, batches: list[torch.Tensor]) -> list[float]:
    """Microseconds of each batch with torch's memory for it, as the loaders make them."""
    launch, graph, clock = direct.sampler.launch, direct.made.graph, time.perf_counter_ns
    times = []
    torch.cuda.synchronize()
    for number, seeds in enumerate(batches):
        begin = clock()
        batch = launch(graph, seeds, epoch=0, batch=number, form="torch").result()
        end = clock()
        del batch
        times.append((end - begin) / 1e3)
    return times


def loader(direct: Direct, batches: list[torch.Tensor], prefetch: int = 0) -> list[float]:
    """Microseconds between a DataLoader's batches, but for the first, which ``stats`` times."""
    size = len(batches[0])
    found = DataLoader(
        direct.made.graph,
        torch.cat(batches).cpu(),
        direct.sampler,
        batch_size=size,
        prefetch=prefetch,
    )
    clock = time.perf_counter_ns
    times = []
    torch.cuda.synchronize()
    iterator = iter(found)
    next(iterator)
    begin = clock()
    for batch in iterator:
        end = clock()
        times.append((end - begin) / 1e3)
        del batch
        begin = clock()
    # Each of the first steps has CUDA events, later ones one in 32.
    return times[FIRST:] or times


def measure(case: Case, direct: Direct, count: int = BATCHES) -> dict[str, Any]:
    """Checks the case, warms it up and times it; one row of JSON."""
    made = direct.made
    batches = made.seeds(case.batch, count + _WARM, made.indices.dtype)
    found = direct.learn(batches)
    check.edges(case, found)
    warm, batches = batches[:_WARM], batches[_WARM:]
    gc.collect()
    gc.disable()
    try:
        row: dict[str, Any] = {}
        for name, way in (("engine_us", engine), ("public_us", public), ("loader_us", loader)):
            way(direct, warm)
            row[name] = spread(way(direct, batches))
    finally:
        gc.enable()
    edges = sum(count for count, _ in found) / len(found)
    median = row["engine_us"]["median"]
    return {
        "shape": case.shape,
        "batch": case.batch,
        "fanouts": list(case.fanouts),
        "ids": case.ids,
        "edges": round(edges),
        "input_nodes": round(sum(nodes for _, nodes in found) / len(found)),
        "bytes": direct.room * 4 // 5,
        **row,
        "edges_per_second": round(1e6 * edges / median),
        "peer_us": case.peer_us,
        "ratio": round(case.peer_us / median, 2),
        "exploration_us": case.exploration_us,
    }


def line(row: dict[str, Any]) -> str:
    """One line for a row."""
    fanouts = ",".join(map(str, row["fanouts"]))
    us = row["engine_us"]["median"]
    text = (
        f"{row['shape']:11} {row['batch']:6}x({fanouts}) {row['ids']} {us:9.1f} us  "
        f"{row['edges_per_second'] / 1e9:6.2f} G edges/s  {row['bytes'] / us / 1e3:7.1f} GB/s out"
    )
    if row["peer_us"]:
        text += f"  {row['ratio']:6.2f}x of {row['peer_us']:.0f} us"
    if "public_us" in row:
        text += f"  public {row['public_us']['median']:.1f} loader {row['loader_us']['median']:.1f}"
    return text


def run(record: Record, budget: Budget, trial: bool) -> None:
    """All rows of reference.csv."""
    cases = tiny(reference()) if trial else reference()
    for shape, some in by_shape(cases).items():
        if budget.over():
            for case in some:
                record.skip(case)
            continue
        made = make(shape)
        on_cpu = made.on_cpu()
        for case in some:
            if budget.over():
                record.skip(case)
                continue
            check.parity(made, on_cpu, case.fanouts, "auto")
            direct = Direct(made, case.fanouts)
            if case.batch <= 4096:
                check.large(direct, on_cpu, made.seeds(case.batch, 1, torch.int32)[0])
            row = measure(case, direct)
            print(line(row), flush=True)
            record.add(row)
        del made, on_cpu, direct
        gc.collect()
        torch.cuda.empty_cache()
    ratios = [row["ratio"] for row in record.rows if row["ratio"]]
    record.content["geometric_mean_ratio"] = round(geometric_mean(ratios), 2)
    record.content["least_ratio"] = min(ratios, default=0)
