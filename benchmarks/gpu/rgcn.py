"""R-GCN on a graph of ogbn-mag's counts: whole training steps, and what of them is sampling.

TurboGNN trains R-GCN beside GCN, GraphSAGE and GAT (its section 5.4). The graph and the batches are
those of ``benchmarks.gpu typed``; each vertex has a row of features, on the device. The model is
plain torch: for each type of edges a linear layer over ``block.mean``, two layers.

- loader    batches and their features, without a model
- step      with forward, backward and optimiser
- by cpu    the same steps with batches of the CPU engine, moved to the device

Losses of both must agree before a clock starts. ``ms`` are medians of whole passes, a batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional as F

import pygsampler as pgs
from pygsampler._cli.bench.check import CheckError
from pygsampler.torch import DataLoader

from .. import hetero as mag
from .record import Budget, Record
from .training_steps import epochs, rounded

FEATURES, HIDDEN, CLASSES = 128, 64, 349
_STEPS, _CHECKED = 60, 8


class Layer(torch.nn.Module):
    """A layer that adds a node's own row and, per edge type, the mean of its in-neighbors' rows."""

    def __init__(self, graph: pgs.Graph, width: int, out: int) -> None:
        super().__init__()
        linear = torch.nn.Linear
        self.own = torch.nn.ModuleDict({kind: linear(width, out) for kind in graph.node_types})
        self.of = torch.nn.ModuleList(linear(width, out, bias=False) for _ in graph.edge_types)

    def forward(self, hop: Any, h: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        made: dict[str, torch.Tensor] = {}
        for ((src, _, dst), block), weight in zip(hop.items(), self.of, strict=True):
            if dst not in made:
                made[dst] = self.own[dst](h[dst][: block.num_dst_nodes])
            if block.num_edges:
                made[dst] = made[dst] + weight(block.mean(h[src][: block.num_src_nodes]))
        return made


def step_of(graph: pgs.Graph) -> Callable[[Any, Any], torch.Tensor]:
    """A step of training of a fresh model, which begins with the same numbers each time."""
    torch.manual_seed(0)
    layers = torch.nn.ModuleList([Layer(graph, FEATURES, HIDDEN), Layer(graph, HIDDEN, CLASSES)])
    optimizer = torch.optim.Adam(layers.cuda().parameters(), lr=1e-3, fused=True)

    def step(batch: Any, x: Any) -> torch.Tensor:
        h = layers[0](batch.blocks[0], dict(x))
        h = layers[1](batch.blocks[1], {kind: rows.relu() for kind, rows in h.items()})
        loss = F.cross_entropy(h["paper"], batch.y["paper"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def run(record: Record, budget: Budget, trial: bool) -> None:
    """One row."""
    of = mag.load(2000 if trial else 1)
    here = pgs.HeteroGraph({kind: tuple(csc) for kind, csc in of.relations.items()}, of.nodes)
    there = here.to("cuda")
    size = min(mag.SIZE, of.nodes["paper"] // 8)
    steps = 6 if trial else _STEPS
    random = torch.Generator().manual_seed(5)
    seeds = {"paper": torch.randperm(of.nodes["paper"], generator=random)[: size * steps]}
    tables = {kind: torch.randn(count, FEATURES, device="cuda") for kind, count in of.nodes.items()}
    labels = torch.randint(0, CLASSES, (of.nodes["paper"],), generator=random)

    def loader(graph: pgs.Graph, **options: Any) -> DataLoader:
        sampler = pgs.PGSampler(list(mag.FANOUTS), seed=7)
        y = labels.cuda() if graph is there else labels
        return DataLoader(graph, seeds, sampler, batch_size=size, labels={"paper": y}, **options)

    def on_gpu(step: Any, most: int = steps) -> list[torch.Tensor]:
        found = []
        for batch in loader(there, features={"x": tables}):
            found.append(step(batch, batch.x))
            if len(found) == most:
                break
        return found

    def by_cpu(step: Any, most: int = steps) -> list[torch.Tensor]:
        found = []
        for made in loader(here):
            batch = made.to("cuda")
            rows = {
                kind: tables[kind].index_select(0, ids) for kind, ids in batch.input_nodes.items()
            }
            found.append(step(batch, rows))
            if len(found) == most:
                break
        return found

    got, want = ([float(x) for x in way(step_of(here), _CHECKED)] for way in (on_gpu, by_cpu))
    if any(abs(a - b) > 1e-3 * max(abs(b), 1) for a, b in zip(got, want, strict=True)):
        raise CheckError(f"losses of the GPU's batches {got}, of the CPU's {want}")
    times = {
        "loader_ms": epochs(lambda: on_gpu(lambda batch, x: None), steps),
        "step_ms": epochs(lambda: on_gpu(step_of(here)), steps),
        "cpu_loader_ms": epochs(lambda: by_cpu(lambda batch, x: None), steps),
        "cpu_step_ms": epochs(lambda: by_cpu(step_of(here)), steps),
    }
    row = rounded(
        {
            "model": "R-GCN",
            "fanouts": list(mag.FANOUTS),
            "batch": size,
            "relations": len(here.edge_types),
            **times,
        }
    )
    print(
        f"R-GCN: loader {row['loader_ms']} ms, step {row['step_ms']}; by the CPU's batches "
        f"{row['cpu_loader_ms']} and {row['cpu_step_ms']}",
        flush=True,
    )
    record.content["model"] = {"features": FEATURES, "hidden": HIDDEN, "classes": CLASSES}
    record.add(row)
