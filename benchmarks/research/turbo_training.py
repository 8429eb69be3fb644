"""TurboGNN's experiments end to end: epochs by model, what each half brings, and utilization.

Models GCN of three layers, GraphSAGE and GAT of two (``benchmarks.models``), batches of 2,000 to
8,000 seeds, 10 neighbors per hop, features on the GPU, an epoch of at most ``_STEPS`` batches. The
ways, as in figure 11:

- neither    reservoirs as in DGL 0.8 (mode "reservoir" without switches), one batch at a time
- S          TurboGNN's sampling kernels, one batch at a time
- A          reservoirs as in DGL 0.8, batches in flight
- S+A        both: the paper's system
- bsp        launches for each hop that draw ``fanout`` numbers a row, one batch at a time
- ours       ``PGSampler`` as users have it: one launch, batches in flight
- captured   the same with static batches, the step as one CUDA graph

``busy`` is the part of the time in which a kernel runs (table I), by the profiler. Rows of kind
"stages" are figure 3: the nodes of each layer, and how long each stage and layer takes, of the way
"neither"; there rows are read before the first layer, which reads the table itself elsewhere. The
edges of batches and the losses of all ways that draw the same samples are compared before a clock
starts.

R-GCN is ``python -m benchmarks.gpu rgcn``.
"""

from __future__ import annotations

import gc
import itertools
import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch.nn import functional

import pygsampler as pgs
from pygsampler._cli.bench.check import CheckError
from pygsampler.torch import DataLoader, capture

from .. import models
from ..gpu.graphs import Made, make
from ..gpu.record import Budget, Record
from ..gpu.training_steps import alike, losses, stepping
from .pgsampler import Kernel, union

SHAPES = ("arxiv", "products", "reddit")
BATCHES = (2000, 4000, 8000)
FANOUTS = {"GCN": (10, 10, 10), "SAGE": (10, 10), "GAT": (10, 10)}
# The batch of figure 3.
_STAGED = 8000
_DGL = {"memory": "global", "schedule": False}
# (mode, its options, batches in flight)
WAYS: dict[str, tuple[str, dict[str, Any] | None, int]] = {
    "neither": ("reservoir", _DGL, 0),
    "S": ("reservoir", None, 0),
    "A": ("reservoir", _DGL, 4),
    "S+A": ("reservoir", None, 4),
    "bsp": ("bsp", None, 0),
    "ours": ("auto", None, 4),
}
_STEPS, _EPOCHS, _PROFILED = 25, 4, 10


class Task:
    """A graph with features and classes on the GPU, and seeds of an epoch."""

    def __init__(self, made: Made, batch: int) -> None:
        torch.manual_seed(0)
        self.made, self.batch = made, batch
        self.x = torch.randn(made.num_nodes, models.FEATURES, device=made.indices.device)
        self.y = torch.randint(models.CLASSES, (made.num_nodes,), device=self.x.device)
        self.seeds = torch.randperm(made.num_nodes)[: batch * _STEPS]

    def loader(self, way: str, model: str, **options: Any) -> DataLoader:
        mode, switches, prefetch = WAYS[way]
        sampler = pgs.PGSampler(FANOUTS[model], seed=1, mode=mode, mode_options=switches)
        if models.MODELS[model].takes_rows:
            options["features"] = {"x": self.x}
        return DataLoader(
            self.made.graph,
            self.seeds,
            sampler,
            batch_size=self.batch,
            drop_last=True,
            prefetch=prefetch,
            labels=self.y,
            **options,
        )

    def model(self, name: str) -> torch.nn.Module:
        torch.manual_seed(0)
        return models.MODELS[name](len(FANOUTS[name]), self.x, helpers=True).to(self.x.device)


def epochs_ms(runs: Mapping[str, Callable[[], Iterable[object]]]) -> dict[str, float]:
    """The least milliseconds of an epoch of each; they take turns, and the first does not count."""
    times: dict[str, list[float]] = {way: [] for way in runs}
    for _ in range(_EPOCHS + 1):
        for way, run in runs.items():
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in run():
                pass
            torch.cuda.synchronize()
            times[way].append(1e3 * (time.perf_counter() - start))
    return {way: round(min(of[1:]), 3) for way, of in times.items()}


def busy_share(run: Callable[[], Iterable[object]]) -> float | None:
    """The part of the time of some steps in which a kernel runs; None where nobody sees kernels."""
    from torch.autograd import DeviceType
    from torch.profiler import ProfilerActivity, profile

    steps = iter(run())
    next(steps)
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        for _, _ in zip(range(_PROFILED), steps, strict=False):
            pass
        torch.cuda.synchronize()
    found = [
        Kernel(event.name, event.time_range.start, event.time_range.end)
        for event in seen.events() or []
        if event.device_type == DeviceType.CUDA and not event.name.startswith("Mem")
    ]
    if not found:
        return None
    whole = max(kernel.end for kernel in found) - min(kernel.start for kernel in found)
    return round(union(found) / whole, 4)


def measure(task: Task, model: str) -> dict[str, Any]:
    """Epochs of each way, and the part of the time in which the GPU is busy."""
    first: dict[str, tuple[list[float], list[torch.Tensor]]] = {}
    for way, (mode, _, _) in WAYS.items():
        found = losses(stepping(task.model(model)), task.loader(way, model))
        edges = [block.edge_ids.clone() for block in next(iter(task.loader(way, model))).blocks]
        kind = "reservoir" if mode == "reservoir" else "floyd"
        want, sampled = first.setdefault(kind, (found, edges))
        if not all(a.equal(b) for a, b in zip(edges, sampled, strict=True)):
            raise CheckError(f"{model}, {way}: other edges than the other ways with these samples")
        alike(found, want, f"{model}, {way}")
    runs: dict[str, Callable[[], Iterable[object]]] = {}
    for way in WAYS:
        step, loader = stepping(task.model(model)), task.loader(way, model)
        runs[way] = lambda step=step, loader=loader: map(step, loader)
    if task.x.is_cuda:
        loop = capture(stepping(task.model(model)), task.loader("ours", model, static=True))
        runs["captured"] = lambda: loop
    return {
        "kind": "epochs",
        "shape": task.made.name,
        "batch": task.batch,
        "model": model,
        "steps": len(task.seeds) // task.batch,
        "epoch_ms": epochs_ms(runs),
        "busy": {way: busy_share(run) for way, run in runs.items()},
    }


def stages(task: Task) -> dict[str, Any]:
    """Figure 3: nodes by layer, and milliseconds of each stage and layer of GCN."""
    model = task.model("GCN")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    layers = [f"layer {place + 1}" for place in range(len(FANOUTS["GCN"]))]
    names = ("sample", "read", *layers, "backward", "update")
    times: dict[str, list[float]] = {name: [] for name in names}
    batches = iter(task.loader("neither", "GCN"))
    nodes: list[list[int]] = []
    for _ in range(len(task.seeds) // task.batch):
        marks = []

        def mark(marks: list[float] = marks) -> None:
            torch.cuda.synchronize()
            marks.append(time.perf_counter())

        mark()
        batch = next(batches)
        mark()
        h = task.x.index_select(0, batch.input_nodes.long())
        mark()
        for place, (layer, block) in enumerate(zip(model.layers, batch.blocks, strict=True)):
            h = layer(block, functional.relu(h) if place else h)
            mark()
        optimizer.zero_grad()
        functional.cross_entropy(h, batch.y).backward()
        mark()
        optimizer.step()
        mark()
        nodes.append(
            [batch.blocks[-1].num_dst_nodes, *(b.num_src_nodes for b in batch.blocks[::-1])]
        )
        for name, (start, end) in zip(names, itertools.pairwise(marks), strict=True):
            times[name].append(1e3 * (end - start))
    return {
        "kind": "stages",
        "shape": task.made.name,
        "batch": task.batch,
        "model": "GCN",
        "nodes": [round(sum(of) / len(of)) for of in zip(*nodes, strict=True)],
        "ms": {name: round(statistics.median(of), 4) for name, of in times.items()},
    }


def line(row: dict[str, Any]) -> str:
    """One line for a row."""
    head = f"{row['shape']:9} {row['batch']:5} {row['model']:4}"
    if row["kind"] == "stages":
        return f"{head} stages, ms: {row['ms']}"
    epochs = row["epoch_ms"]
    parts = (
        f"{way} {ms:.1f} ({epochs['neither'] / ms:.2f}x, busy {row['busy'][way]})"
        for way, ms in epochs.items()
    )
    return f"{head} epoch of {row['steps']} steps, ms: {'  '.join(parts)}"


def shrink() -> None:
    """So small that figures mean nothing."""
    global SHAPES, BATCHES, _STEPS, _EPOCHS, _PROFILED
    SHAPES, BATCHES, _STEPS, _EPOCHS, _PROFILED = ("tiny",), (64,), 4, 1, 2


def run(record: Record, budget: Budget, trial: bool) -> None:
    """Every graph, batch and model, batches of 4000 first."""
    if trial:
        shrink()
    for place, shape in enumerate(SHAPES):
        share = Budget(budget.left() / (len(SHAPES) - place))
        made = make(shape)
        for batch in sorted(BATCHES, key=lambda size: size != 4000):
            task = Task(made, min(batch, made.num_nodes // 2))
            if batch == _STAGED or trial:
                row = stages(task)
                print(line(row), flush=True)
                record.add(row)
            for model in models.MODELS:
                if share.over():
                    record.skip((shape, batch, model))
                    continue
                gc.collect()
                row = measure(task, model)
                print(line(row), flush=True)
                record.add(row)
        del made, task
        gc.collect()
        torch.cuda.empty_cache()
