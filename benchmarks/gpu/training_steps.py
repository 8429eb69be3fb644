"""Whole training steps, sample to optimiser: plain torch, the helpers, and one CUDA graph."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.nn import functional as F

import pygsampler as pgs
from pygsampler._cli.bench.check import CheckError
from pygsampler.torch import DataLoader, capture

from .. import models
from . import check
from .graphs import Made, make
from .record import Budget, Record

BATCH, FANOUTS = 1024, ((10, 10), (5, 10, 15), (10, 10, 10))
# ms a step of DGL 2.5 built with CUDA, its DataLoader, sampler and layers, all on an H200, for
# these models and this batch on the products-like graph, measured outside of this program.
DGL = {
    "SAGE": {(10, 10): 5.8, (5, 10, 15): 7.2},
    "GCN": {(10, 10): 4.3, (5, 10, 15): 6.7},
    "GAT": {(10, 10): 8.0, (5, 10, 15): 19.1},
}
_STEPS, _EPOCHS, _CHECKED = 60, 5, 12


class Task:
    """A graph with features and labels."""

    def __init__(self, made: Made) -> None:
        torch.manual_seed(0)
        self.made = made
        self.x = torch.randn(made.num_nodes, models.FEATURES, device="cuda")
        self.y = torch.randint(models.CLASSES, (made.num_nodes,), device="cuda")
        self.seeds = torch.randperm(made.num_nodes)[: BATCH * _STEPS]

    def loader(self, fanouts: tuple[int, ...], **options: Any) -> DataLoader:
        sampler = pgs.PGSampler(fanouts, seed=1)
        about = self.made.graph, self.seeds, sampler
        return DataLoader(*about, batch_size=BATCH, labels=self.y, **options)

    def step(self, name: str, hops: int, helpers: bool) -> Callable[[Any], torch.Tensor]:
        """A step of training of a fresh model."""
        return training(lambda: models.MODELS[name](hops, self.x, helpers=helpers))


def training(make: Callable[[], torch.nn.Module]) -> Callable[[Any], torch.Tensor]:
    """A step of training of a model, made with the same numbers each time."""
    torch.manual_seed(0)
    return stepping(make().cuda())


def stepping(model: torch.nn.Module) -> Callable[[Any], torch.Tensor]:
    """A step of training of a model that is there."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, capturable=True, fused=True)

    def step(batch: Any) -> torch.Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(batch), batch.y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def losses(step: Callable[[Any], torch.Tensor], loader: DataLoader) -> list[float]:
    found = []
    for batch in loader:
        found.append(step(batch))
        if len(found) == _CHECKED:
            break
    return [float(loss) for loss in found]


def alike(mine: list[float], others: list[float], what: str) -> None:
    for place, (a, b) in enumerate(zip(mine, others, strict=True)):
        if not abs(a - b) < 5e-3 * max(abs(b), 1):
            raise CheckError(f"{what}: batch {place} has loss {a}, plain torch {b}")


def epochs(run: Callable[[], object], steps: int) -> float:
    """Median milliseconds of a step."""
    run()
    times = []
    for _ in range(_EPOCHS):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        run()
        torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - begin) / steps)
    return statistics.median(times)


def through(loader: DataLoader, step: Callable[[Any], object]) -> Callable[[], None]:
    """An epoch of calls of a step."""

    def run() -> None:
        for batch in loader:
            step(batch)

    return run


def replayed(loop: Any) -> Callable[[], None]:
    """An epoch of a captured step."""

    def run() -> None:
        for _ in loop:
            pass

    return run


@contextmanager
def tf32(on: bool) -> Iterator[None]:
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = on
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def measure(task: Task, name: str, fanouts: tuple[int, ...]) -> dict[str, Any]:
    """One row of JSON."""
    hops = len(fanouts)
    rows = {"features": {"x": task.x}} if models.MODELS[name].takes_rows else {}
    eager, fixed = task.loader(fanouts), task.loader(fanouts, static=True, **rows)
    helped = task.loader(fanouts, **rows)
    want = losses(task.step(name, hops, helpers=False), task.loader(fanouts))
    again = task.loader(fanouts, **rows)
    alike(losses(task.step(name, hops, helpers=True), again), want, "helpers")
    again = task.loader(fanouts, static=True, **rows)
    loop = capture(task.step(name, hops, helpers=True), again)
    alike(loop.run()[:_CHECKED].tolist(), want, "one CUDA graph")

    row: dict[str, Any] = {"model": name, "fanouts": list(fanouts), "batch": BATCH}
    steps = len(eager)
    row["plain_ms"] = epochs(through(eager, task.step(name, hops, helpers=False)), steps)
    row["helpers_ms"] = epochs(through(helped, task.step(name, hops, helpers=True)), steps)
    row["graph_ms"] = epochs(replayed(loop), steps)
    row["loader_ms"] = epochs(through(fixed, lambda batch: None), steps)
    with tf32(True):
        loop = capture(task.step(name, hops, helpers=True), fixed)
        row["graph_tf32_ms"] = epochs(replayed(loop), steps)
    row["capacities"] = fixed.capacities
    row["dgl_ms"] = DGL[name].get(fanouts)
    return rounded(row)


def shrink() -> None:
    """So small that figures mean nothing."""
    global BATCH, _STEPS, _CHECKED, _EPOCHS
    BATCH, _STEPS, _CHECKED, _EPOCHS = 64, 8, 4, 1


def about(made: Made) -> dict[str, Any]:
    """Returns the facts that all models have in common."""
    return {
        "features": models.FEATURES, "hidden": models.HIDDEN, "classes": models.CLASSES,
        "heads": models.HEADS, "optimizer": "Adam, fused", "graph": made.name, "steps": _STEPS,
    }  # fmt: skip


def rounded(row: dict[str, Any]) -> dict[str, Any]:
    """To a tenth of a microsecond."""
    return {
        key: round(value, 4) if isinstance(value, float) else value for key, value in row.items()
    }


def run(record: Record, budget: Budget, trial: bool) -> None:
    """Every model with every fanouts."""
    made = make("tiny" if trial else "products")
    if trial:
        shrink()
    on_cpu = made.on_cpu()
    for fanouts in FANOUTS:
        check.parity(made, on_cpu, fanouts, "auto")
    del on_cpu
    task = Task(made)
    record.content["model"] = about(made)
    for fanouts in FANOUTS:
        for name in models.MODELS:
            if budget.over():
                record.skip((name, fanouts))
                continue
            gc.collect()
            row = measure(task, name, fanouts)
            print(line(row), flush=True)
            record.add(row)


def line(row: dict[str, Any]) -> str:
    """One line for a row."""
    dgl = "" if row["dgl_ms"] is None else f", DGL {row['dgl_ms'] / row['graph_ms']:.1f}x"
    return (
        f"{row['model']:4} {tuple(row['fanouts'])!s:12} ms: plain torch {row['plain_ms']:.2f}, "
        f"helpers {row['helpers_ms']:.2f}, one graph {row['graph_ms']:.3f}, with TF32 "
        f"{row['graph_tf32_ms']:.3f}{dgl}; static loader alone {row['loader_ms']:.3f}"
    )
