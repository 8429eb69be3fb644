"""Measures the time of the public calls next to the engine, and its parts.

One graph and one set of batches for all of them, in turns within a round, so that other
work of the machine affects all alike. Times are of one batch, in microseconds.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

import pygsampler as pgs
from pygsampler._cli.bench.check import CheckError
from pygsampler._loader.cuda_events import FIRST
from pygsampler.torch import DataLoader

from . import check
from .cases import Case, tiny
from .direct import Direct
from .graphs import Made, make
from .latency import engine
from .record import Budget, Record, spread
from .throughput import in_flight, many

CASES = (
    Case("arxiv", 1024, (10, 10)),
    Case("products", 1024, (10, 10)),
)
BATCHES = 128
ROUNDS = 9
FLIGHTS = 8
MANY = (16, 32)


def touched(batch: Any) -> int:
    """Asks for every tensor of a torch batch."""
    count = len((batch.input_nodes, batch.output_nodes, batch.output_index))
    for block in batch.blocks:
        tensors = block.indptr, block.indices, block.edge_ids, block.src_nodes, block.dst_nodes
        count += len(tensors)
    return count


def edges_of(batch: Any) -> None:
    """Asks for the edges of every block, as most layers take them and as PyG's do."""
    for block in batch.blocks:
        block.coo()
        block.edge_index  # noqa: B018


def each(work: Callable[[int, torch.Tensor], object], batches: Sequence[torch.Tensor]) -> float:
    """Median microseconds of one call; what it returned goes after the clock has stopped."""
    clock, times = time.perf_counter_ns, []
    torch.cuda.synchronize()
    for number, seeds in enumerate(batches):
        begin = clock()
        made = work(number, seeds)
        end = clock()
        del made
        times.append((end - begin) / 1e3)
    return spread(times)["median"]


def loading(
    made: Made, sampler: pgs.PGSampler, seeds: torch.Tensor, size: int, use: Callable[[Any], object]
) -> float:
    """Mean microseconds of a batch of a DataLoader with 8 in flight, until the GPU is done.

    The first batches have CUDA events for ``stats``, and are left out if there are others.
    """
    loader = DataLoader(made.graph, seeds, sampler, batch_size=size, prefetch=FLIGHTS)
    batches = iter(loader)
    for _ in range(FIRST if len(loader) > FIRST else 1):
        next(batches)
    torch.cuda.synchronize()
    begin, count = time.perf_counter(), 0
    for batch in batches:
        use(batch)
        count += 1
    torch.cuda.synchronize()
    return 1e6 * (time.perf_counter() - begin) / count


def ways(case: Case, direct: Direct, batches: list[torch.Tensor]) -> dict[str, Callable[[], float]]:
    """The rows of a case; each way goes through all batches and gives microseconds a batch."""
    made, sampler, graph = direct.made, direct.sampler, direct.made.graph
    seeds = torch.cat(batches).cpu()

    def sample(number: int, some: torch.Tensor) -> Any:
        return sampler.sample(graph, some, epoch=0, batch=number)

    def sample_torch(number: int, some: torch.Tensor) -> Any:
        batch = sampler.sample(graph, some, epoch=0, batch=number).torch()
        touched(batch)
        return batch

    def several(size: int) -> Callable[[], float]:
        def run() -> float:
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for first in range(0, len(batches), size):
                sampler.sample_many(graph, batches[first : first + size], epoch=0, batch=first)
            return 1e6 * (time.perf_counter() - begin) / len(batches)

        return run

    def load(use: Callable[[Any], object]) -> Callable[[], float]:
        return lambda: loading(made, sampler, seeds, case.batch, use)

    count = len(batches)
    found = {
        "engine": lambda: spread(engine(direct, batches))["median"],
        "sample": lambda: each(sample, batches),
        "sample, every tensor": lambda: each(sample_torch, batches),
        f"engine, {FLIGHTS} in flight": lambda: 1e6 * in_flight(direct, batches, FLIGHTS) / count,
        "loader": load(lambda batch: None),
        "loader, every tensor": load(touched),
        "loader, coo and edge_index": load(edges_of),
    }
    for size in MANY:
        found[f"engine, {size} together"] = lambda size=size: (
            1e6 * many(direct, batches, min(size, MANY[0])) / count
        )
        found[f"sample_many of {size}"] = several(size)
    return found


def proven(direct: Direct, on_cpu: pgs.Graph, batches: list[torch.Tensor]) -> None:
    """CheckError unless every public way gives the CPU's batch, and its edges."""
    sampler, graph = direct.sampler, direct.made.graph
    some = batches[:2]
    loader = DataLoader(graph, torch.cat(some).cpu(), sampler, batch_size=len(some[0]))
    together = sampler.sample_many(graph, some, epoch=0, batch=0)
    for number, batch in enumerate(loader):
        want = sampler.sample(on_cpu, some[number].cpu(), epoch=0, batch=number).torch()
        one = sampler.sample(graph, some[number], epoch=0, batch=number).torch()
        for name, got in (("loader", batch), ("sample", one), ("many", together[number].torch())):
            touched(got)
            pairs = [(got.input_nodes, want.input_nodes)]
            for mine, theirs in zip(got.blocks, want.blocks, strict=True):
                pairs += zip(
                    (mine.edge_index, *mine.coo()), (theirs.edge_index, *theirs.coo()), strict=True
                )
                pairs += [(mine.indptr, theirs.indptr), (mine.edge_ids, theirs.edge_ids)]
            if not all(a.dtype == b.dtype and torch.equal(a.cpu(), b) for a, b in pairs):
                raise CheckError(f"{direct.made.name} {sampler}, {name}: not the CPU's batch")


def measure(case: Case, direct: Direct, batches: list[torch.Tensor]) -> dict[str, Any]:
    """The median of the rounds of each way."""
    found = ways(case, direct, batches)
    times: dict[str, list[float]] = {name: [] for name in found}
    gc.collect()
    gc.disable()
    try:
        for turn in range(ROUNDS + 1):
            for name, way in found.items():
                us = way()
                # The first round warms up: torch's allocator, the engine's buffers.
                if turn:
                    times[name].append(us)
    finally:
        gc.enable()
    return {
        "shape": case.shape,
        "batch": case.batch,
        "fanouts": list(case.fanouts),
        "ids": case.ids,
        "us": {name: spread(values) for name, values in times.items()},
    }


def run(record: Record, budget: Budget, trial: bool) -> None:
    """A row for each case."""
    for case in tiny(list(CASES)) if trial else CASES:
        if budget.over():
            record.skip(case)
            continue
        made = make(case.shape)
        on_cpu = made.on_cpu()
        direct = Direct(made, case.fanouts)
        batches = made.seeds(case.batch, BATCHES, torch.int32)
        check.parity(made, on_cpu, case.fanouts, "auto")
        proven(direct, on_cpu, batches)
        del on_cpu
        direct.learn(batches)
        row = measure(case, direct, batches)
        for name, us in row["us"].items():
            print(f"{case!s:34} {name:34} {us['median']:8.1f} us", flush=True)
        record.add(row)
        del made, direct
        gc.collect()
        torch.cuda.empty_cache()
