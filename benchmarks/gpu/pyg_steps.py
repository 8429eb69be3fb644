"""Whole training steps of PyG's own layers: our loader and calls, and one CUDA graph.

A model of each layer on the blocks of a batch, as one writes it with PyG: a bipartite layer gets
the sources and the destinations, GCNConv all sources and a loop for each, which are put behind the
edges here, since PyG looks on the host which ones are there already. Edges are PyG's tensor
("coo"), or an ``EdgeIndex`` that knows their order ("edge_index"). Eager steps and captured ones
give the same losses, which is looked at before the clock starts.
"""

from __future__ import annotations

import gc
import itertools
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional as F

with warnings.catch_warnings():
    # PyG's import uses what torch is about to drop.
    warnings.simplefilter("ignore")
    from torch_geometric import nn

from pygsampler.pyg import EdgeIndex
from pygsampler.torch import StaticBlock, capture

from .. import models
from . import check, training_steps
from .graphs import make
from .record import Budget, Record
from .training_steps import Task, alike, epochs, losses, replayed, rounded, tf32, training

FANOUTS = ((10, 10), (5, 10, 15))
LAYOUTS = ("coo", "edge_index")
# The names under which training_steps.DGL has them.
LAYERS = {"SAGEConv": "SAGE", "GCNConv": "GCN", "GATConv": "GAT"}


class OfPyg(torch.nn.Module):
    """Layers of one kind, one a block."""

    def __init__(self, name: str, hops: int, layout: str) -> None:
        super().__init__()
        sizes = [models.FEATURES, *[models.HIDDEN] * (hops - 1), models.CLASSES]
        self.layers = torch.nn.ModuleList(_layer(name, a, b) for a, b in itertools.pairwise(sizes))
        self.kind, self.ordered = name, layout == "edge_index"

    def forward(self, batch: Any) -> torch.Tensor:
        h = batch.x
        for place, (layer, block) in enumerate(zip(self.layers, batch.blocks, strict=True)):
            rows = block.num_dst_nodes
            if self.kind == "GCNConv":
                h = layer(h, self._with_loops(block))[:rows]
            else:
                h = layer((h, h[:rows]), self._edges(block))
            if place + 1 < len(self.layers):
                h = F.relu(h)
        # Seeds are distinct: they are the first vertices, in their order.
        return h

    def _edges(self, block: Any) -> torch.Tensor:
        edges: torch.Tensor = block.edge_index
        if not self.ordered:
            return edges
        size = block.num_src_nodes, block.num_dst_nodes
        if self.kind == "GATConv" and isinstance(block, StaticBlock):
            # Its softmax, which PyG makes by the pointers, is of all edges, but those that fill the
            # block up have no place in pointers.
            return EdgeIndex._from_ordered(edges, size, None)
        return EdgeIndex._from_ordered(edges, size, "col", block.indptr.long())

    def _with_loops(self, block: Any) -> torch.Tensor:
        """All sources are targets too, whose degrees count."""
        rows, (src, dst) = block.num_src_nodes, block.edge_index
        if isinstance(block, StaticBlock):
            # Padding edges end in unused targets, whose rows are used as sources.
            dst = torch.where(block.edge_mask, dst, src)
        loops = torch.arange(rows, device=src.device)
        edges = torch.stack([torch.cat([src, loops]), torch.cat([dst, loops])])
        return EdgeIndex._from_ordered(edges, (rows, rows), None) if self.ordered else edges


def _layer(name: str, inputs: int, outputs: int) -> torch.nn.Module:
    made: torch.nn.Module
    if name == "SAGEConv":
        made = nn.SAGEConv(inputs, outputs)
    elif name == "GCNConv":
        made = nn.GCNConv(inputs, outputs, add_self_loops=False)
    else:
        # The heads of hidden layers stand side by side, the last layer's are averaged.
        last = outputs == models.CLASSES
        width, heads = outputs if last else outputs // models.HEADS, models.HEADS
        made = nn.GATConv(inputs, width, heads=heads, concat=not last, add_self_loops=False)
    return made


def measure(task: Task, name: str, layout: str, fanouts: tuple[int, ...]) -> dict[str, Any]:
    """One row of JSON."""
    options = {"features": {"x": task.x}}

    def step() -> Callable[[Any], torch.Tensor]:
        return training(lambda: OfPyg(name, len(fanouts), layout))

    want = losses(
        training(lambda: OfPyg(name, len(fanouts), "coo")), task.loader(fanouts, **options)
    )
    alike(losses(step(), task.loader(fanouts, **options)), want, f"{name}, {layout}")
    fixed = task.loader(fanouts, static=True, **options)
    loop = capture(step(), fixed)
    alike(loop.run()[: len(want)].tolist(), want, f"{name}, {layout}, one CUDA graph")
    eager = task.loader(fanouts, **options)
    row: dict[str, Any] = {"layer": name, "edges": layout, "fanouts": list(fanouts)}
    row["batch"], count = training_steps.BATCH, len(eager)
    row["eager_ms"] = epochs(training_steps.through(eager, step()), count)
    row["graph_ms"] = epochs(replayed(loop), count)
    del loop
    with tf32(True):
        row["eager_tf32_ms"] = epochs(training_steps.through(eager, step()), count)
        row["graph_tf32_ms"] = epochs(replayed(capture(step(), fixed)), count)
    row["dgl_ms"] = training_steps.DGL[LAYERS[name]].get(fanouts)
    return rounded(row)


def run(record: Record, budget: Budget, trial: bool) -> None:
    """Every layer with every fanouts and both kinds of edges."""
    made = make("tiny" if trial else "products")
    if trial:
        training_steps.shrink()
    on_cpu = made.on_cpu()
    for fanouts in FANOUTS:
        check.parity(made, on_cpu, fanouts, "auto")
    del on_cpu
    task = Task(made)
    record.content["model"] = training_steps.about(made)
    for layout in LAYOUTS:
        for fanouts in FANOUTS:
            for name in LAYERS:
                if budget.over():
                    record.skip((name, layout, fanouts))
                    continue
                gc.collect()
                row = measure(task, name, layout, fanouts)
                print(line(row), flush=True)
                record.add(row)


def line(row: dict[str, Any]) -> str:
    """One line for a row."""
    dgl = "" if row["dgl_ms"] is None else f", DGL {row['dgl_ms'] / row['graph_ms']:.1f}x"
    return (
        f"{row['layer']:8} {row['edges']:10} {tuple(row['fanouts'])!s:11} ms: eager "
        f"{row['eager_ms']:.2f}, with TF32 {row['eager_tf32_ms']:.2f}, one graph "
        f"{row['graph_ms']:.3f}, with TF32 {row['graph_tf32_ms']:.3f}{dgl}"
    )
