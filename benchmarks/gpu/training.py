"""GraphSAGE on a products-like graph: how much of a step waits for its sample."""

from __future__ import annotations

import gc
import itertools
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

import pygsampler as pgs
from pygsampler.torch import DataLoader

from . import check
from .graphs import Made, make
from .record import Budget, Record

BATCH, FANOUTS = 1024, (10, 10)
FEATURES, HIDDEN, CLASSES = 100, 256, 47
_STEPS, _WARM = 150, 20
# (what it is called, mode, batches ahead, switches of mode "reservoir"). The last three are the
# paper TurboGNN's: neither kernels nor pipeline, the kernels alone, both.
WAYS: tuple[tuple[str, str, int, dict[str, Any] | None], ...] = (
    ("in flight", "auto", 4, None),
    ("one at a time", "auto", 0, None),
    ("bsp, one at a time", "bsp", 0, None),
    ("reservoirs off, one at a time", "reservoir", 0, {"memory": "global", "schedule": False}),
    ("reservoirs, one at a time", "reservoir", 0, None),
    ("reservoirs, in flight", "reservoir", 4, None),
)


class Mean(torch.nn.Module):
    """GraphSAGE's layer with the mean of the sampled neighbours."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.own = torch.nn.Linear(inputs, outputs)
        self.neighbours = torch.nn.Linear(inputs, outputs, bias=False)

    def forward(self, block: Any, h: torch.Tensor) -> torch.Tensor:
        count = block.num_dst_nodes
        degrees = block.indptr.diff()
        rows = torch.repeat_interleave(
            torch.arange(count, device=h.device), degrees, output_size=block.num_edges
        )
        total = torch.zeros(count, h.shape[1], device=h.device)
        total.index_add_(0, rows, h.index_select(0, block.indices))
        mean = total / degrees.clamp(min=1).unsqueeze(1)
        out: torch.Tensor = self.own(h[:count]) + self.neighbours(mean)
        return out


class Trainer:
    """Model, features and labels; `step` is one batch of training."""

    def __init__(self, nodes: int) -> None:
        torch.manual_seed(0)
        self.features = torch.randn(nodes, FEATURES, device="cuda")
        self.labels = torch.randint(CLASSES, (nodes,), device="cuda")
        sizes = [FEATURES, *[HIDDEN] * (len(FANOUTS) - 1), CLASSES]
        self.layers = torch.nn.ModuleList(Mean(a, b) for a, b in itertools.pairwise(sizes)).cuda()
        self.optimizer = torch.optim.Adam(self.layers.parameters(), lr=1e-3)

    def step(self, batch: Any) -> None:
        h = self.features.index_select(0, batch.input_nodes)
        for place, (layer, block) in enumerate(zip(self.layers, batch.blocks, strict=True)):
            h = layer(block, h if place == 0 else torch.relu(h))
        out = h.index_select(0, batch.output_index)
        labels = self.labels.index_select(0, batch.output_nodes)
        loss = torch.nn.functional.cross_entropy(out, labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


def steps(
    trainer: Trainer, batches: Callable[[], Iterator[Any]], *, settle: bool
) -> tuple[list[float], list[float]]:
    """Seconds of each step, and of the wait for a batch in it.

    With ``settle`` the GPU is waited for at each step's end, as a loop does that prints its loss:
    then the wait for a batch is the sampler's alone.
    """
    iterator = batches()
    for _ in range(_WARM):
        trainer.step(next(iterator))
    torch.cuda.synchronize()
    whole, waits = [], []
    for _ in range(_STEPS):
        begin = time.perf_counter()
        batch = next(iterator)
        got = time.perf_counter()
        trainer.step(batch)
        if settle:
            torch.cuda.synchronize()
        end = time.perf_counter()
        del batch
        whole.append(end - begin)
        waits.append(got - begin)
    torch.cuda.synchronize()
    return whole, waits


def measure(
    trainer: Trainer,
    made: Made,
    name: str,
    mode: str,
    prefetch: int,
    switches: dict[str, Any] | None,
) -> dict[str, Any]:
    """One row of JSON."""
    seeds = torch.randperm(made.num_nodes)[: BATCH * (_STEPS + _WARM + 1)]
    sampler = pgs.PGSampler(FANOUTS, seed=1, mode=mode, mode_options=switches)

    def batches() -> Iterator[Any]:
        return iter(DataLoader(made.graph, seeds, sampler, batch_size=BATCH, prefetch=prefetch))

    whole, waits = steps(trainer, batches, settle=True)
    begin = time.perf_counter()
    steps(trainer, batches, settle=False)
    free = (time.perf_counter() - begin) / (_STEPS + _WARM)
    return {
        "name": name,
        "mode": mode,
        "prefetch": prefetch,
        "step_us": round(1e6 * statistics.median(whole), 1),
        "wait_us": round(1e6 * statistics.median(waits), 1),
        "wait_share": round(sum(waits) / sum(whole), 4),
        "free_step_us": round(1e6 * free, 1),
    }


def without_sampling(trainer: Trainer, made: Made) -> dict[str, Any]:
    """The same steps on one batch that is there: what no sampler can beat."""
    sampler = pgs.PGSampler(FANOUTS, seed=1)
    seeds = torch.randperm(made.num_nodes)[:BATCH]
    kept = next(iter(DataLoader(made.graph, seeds, sampler, batch_size=BATCH)))

    def batches() -> Iterator[Any]:
        while True:
            yield kept

    whole, waits = steps(trainer, batches, settle=True)
    begin = time.perf_counter()
    steps(trainer, batches, settle=False)
    free = (time.perf_counter() - begin) / (_STEPS + _WARM)
    return {
        "name": "without sampling",
        "mode": None,
        "prefetch": None,
        "step_us": round(1e6 * statistics.median(whole), 1),
        "wait_us": round(1e6 * statistics.median(waits), 1),
        "wait_share": round(sum(waits) / sum(whole), 4),
        "free_step_us": round(1e6 * free, 1),
    }


def run(record: Record, budget: Budget, trial: bool) -> None:
    """The ways to get batches, one after another, twice: the second round counts."""
    made = make("tiny" if trial else "products")
    if trial:
        # Enough seeds for all steps is more than the graph has.
        global _STEPS, _WARM, BATCH
        _STEPS, _WARM, BATCH = 8, 2, 64
    on_cpu = made.on_cpu()
    for mode in ("auto", "bsp", "reservoir"):
        check.parity(made, on_cpu, FANOUTS, mode)
    del on_cpu
    trainer = Trainer(made.num_nodes)
    record.content["model"] = {
        "layers": "GraphSAGE, mean", "features": FEATURES, "hidden": HIDDEN, "classes": CLASSES,
        "batch": BATCH, "fanouts": list(FANOUTS), "graph": made.name, "steps": _STEPS,
    }  # fmt: skip
    without_sampling(trainer, made)
    rows = [without_sampling(trainer, made)]
    for name, mode, prefetch, switches in WAYS:
        if budget.over():
            record.skip(name)
            continue
        gc.collect()
        rows.append(measure(trainer, made, name, mode, prefetch, switches))
    for row in rows:
        print(line(row), flush=True)
        record.add(row)


def line(row: dict[str, Any]) -> str:
    """One line for a row."""
    return (
        f"{row['name']:20} step {row['step_us']:8.1f} us, of it waiting for a sample "
        f"{row['wait_us']:7.1f} us ({100 * row['wait_share']:.1f} %); "
        f"not waiting for the GPU {row['free_step_us']:.1f} us a step"
    )
