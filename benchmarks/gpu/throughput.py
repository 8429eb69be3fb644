"""Batch after batch: several in flight, and several to a launch."""

from __future__ import annotations

import gc
import time
from collections import deque
from typing import Any

import torch

from . import check
from .cases import Case, by_shape, reference, tiny
from .direct import Direct
from .graphs import make
from .latency import loader
from .record import Budget, Record

FLIGHTS = (1, 2, 4, 8)
MANY = (4, 8, 16)
_ROUNDS = 7
# The small batches of each shape come first, since their target is 10 us.
_LEAST_BATCHES, _LEAST_SECONDS = 64, 0.02


def in_flight(direct: Direct, batches: list[torch.Tensor], flights: int) -> float:
    """Seconds for all batches with so many on their way at a time."""
    outs = direct.outputs(flights)
    submit, wait, release = direct.submit, direct.wait, direct.release
    jobs: deque[int] = deque()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for number, seeds in enumerate(batches):
        if len(jobs) == flights:
            release(wait(jobs.popleft()))
        jobs.append(submit(seeds, number, outs[number % flights], 1))
    while jobs:
        release(wait(jobs.popleft()))
    return time.perf_counter() - begin


def many(direct: Direct, batches: list[torch.Tensor], count: int) -> float:
    """Seconds for all batches, so many to a call; two calls are on their way at a time."""
    wait, release = direct.wait_many, direct.release
    calls: deque[int] = deque()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for first in range(0, len(batches) - count + 1, count):
        if len(calls) == 2:
            for memory in wait(calls.popleft(), count):
                release(memory)
        calls.append(direct.submit_many(batches[first : first + count], first))
    while calls:
        for memory in wait(calls.popleft(), count):
            release(memory)
    return time.perf_counter() - begin


def measure(case: Case, direct: Direct) -> dict[str, Any]:
    """The best round of each way, in microseconds a batch."""
    made = direct.made
    few = made.seeds(case.batch, 4, made.indices.dtype)
    found = direct.learn(few)
    check.edges(case, found)
    once = max(in_flight(direct, few, 1) / 4, 1e-6)
    count = min(512, max(_LEAST_BATCHES, int(_LEAST_SECONDS / once))) // 16 * 16
    batches = made.seeds(case.batch, count, made.indices.dtype)
    direct.learn(batches)
    row: dict[str, Any] = {
        "shape": case.shape,
        "batch": case.batch,
        "fanouts": list(case.fanouts),
        "ids": case.ids,
        "edges": round(sum(edges for edges, _ in found) / len(found)),
        "batches": count,
        "in_flight_us": {},
        "sample_many_us": {},
    }
    for flights in FLIGHTS:
        in_flight(direct, batches[: 2 * flights], flights)
        best = min(in_flight(direct, batches, flights) for _ in range(_ROUNDS))
        row["in_flight_us"][str(flights)] = round(1e6 * best / count, 2)
    for size in MANY:
        many(direct, batches[: 2 * size], size)
        best = min(many(direct, batches, size) for _ in range(_ROUNDS))
        row["sample_many_us"][str(size)] = round(1e6 * best / (count // size * size), 2)
    loader(direct, batches[:16], prefetch=4)
    times = loader(direct, batches, prefetch=8)
    row["loader_us"] = round(sum(times) / len(times), 2)
    row["best_us"] = min(*row["in_flight_us"].values(), *row["sample_many_us"].values())
    row["edges_per_second"] = round(1e6 * row["edges"] / row["best_us"])
    return row


def line(row: dict[str, Any]) -> str:
    """One line for a row."""
    fanouts = ",".join(map(str, row["fanouts"]))
    flights = " ".join(f"{key}:{us}" for key, us in row["in_flight_us"].items())
    together = " ".join(f"{key}:{us}" for key, us in row["sample_many_us"].items())
    return (
        f"{row['shape']:11} {row['batch']:6}x({fanouts}) us a batch, in flight {flights}  "
        f"sample_many {together}  loader {row['loader_us']}  "
        f"{row['edges_per_second'] / 1e9:.2f} G edges/s"
    )


def run(record: Record, budget: Budget, trial: bool) -> None:
    """Batches of 1024 of every shape, then the other rows of reference.csv up to 4096."""
    cases = tiny(reference()) if trial else [c for c in reference() if c.batch <= 4096]
    for shape, some in by_shape(cases).items():
        made = None
        for case in sorted(some, key=lambda c: (c.batch, len(c.fanouts))):
            if budget.over():
                record.skip(case)
                continue
            if made is None:
                made = make(shape)
                on_cpu = made.on_cpu()
            check.parity(made, on_cpu, case.fanouts, "auto")
            row = measure(case, Direct(made, case.fanouts))
            print(line(row), flush=True)
            record.add(row)
        del made
        gc.collect()
        torch.cuda.empty_cache()
