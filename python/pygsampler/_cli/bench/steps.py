"""Training steps of GraphSAGE by DGL's layers, by PyG's model and by ours, on the same batches.

A step is forward, backward and Adam's update, of a model with as many layers as there are hops, on
a batch whose features were read before. Contenders of a comparison get the same edges, rows, labels
and first weights, so their losses are equal too.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import torch
from torch.nn import functional

from pygsampler._cli.bench import compare
from pygsampler._cli.bench.check import CheckError, Int64s
from pygsampler._cli.bench.contenders import Named, OneBatch, on_device
from pygsampler._cli.bench.csc import CscGraph
from pygsampler._cli.bench.frameworks import pyg_data, tensor

HIDDEN, CLASSES = 256, 47
# So many steps on one batch lower its loss.
_STEPS = 10
# Losses of the same batch and weights differ by the order of sums alone.
_TOLERANCE = 1e-3
# The weights of a layer: for the node itself, and for the mean of its neighbors.
_Pairs = list[tuple[torch.nn.Linear, torch.nn.Linear]]


class StepContender(Named, Protocol):
    """A contender whose session trains a model."""

    def open(self, graph: CscGraph, fanouts: Sequence[int], seed: int) -> StepSession:
        """Returns a session with the first weights of `seed`."""


class StepSession(ABC):
    """A model, its optimizer, and batches for it, sampled by ours."""

    def __init__(self, graph: CscGraph, fanouts: Sequence[int], seed: int, device: str) -> None:
        assert graph.features is not None
        self.graph, self.fanouts, self.device = graph, fanouts, device
        width = graph.features.shape[1]
        self.sizes = [width, *[HIDDEN] * (len(fanouts) - 1), CLASSES]
        self._model, pairs = self.model()
        numbers = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for parameter in self._model.parameters():
                parameter.zero_()
            for weight in (layer.weight for pair in pairs for layer in pair):
                weight.normal_(0, weight.shape[1] ** -0.5, generator=numbers)
        self._model.to(device)
        self._optimizer = torch.optim.Adam(self._model.parameters(), lr=1e-3)

    @abstractmethod
    def model(self) -> tuple[torch.nn.Module, _Pairs]:
        """Returns the model, and the weights of its layers."""

    @abstractmethod
    def batches(self, seeds: Sequence[Int64s], epoch: int) -> Iterator[Any]:
        """Yields a batch of the contender's kind, with its rows, for each array of seeds."""

    @abstractmethod
    def forward(self, batch: Any) -> torch.Tensor:
        """Returns the model's rows of the seeds."""

    @abstractmethod
    def labels(self, batch: Any) -> torch.Tensor:
        """Returns the labels of the seeds."""

    @abstractmethod
    def edges(self, batch: Any) -> list[int]:
        """Returns the number of edges by hop, outermost first."""

    def step(self, batch: Any) -> torch.Tensor:
        """Trains on a batch and returns its loss before the update."""
        loss = functional.cross_entropy(self.forward(batch), self.labels(batch))
        self._optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimizer.step()
        return loss.detach()

    def settle(self) -> None:
        """Waits for the device."""
        if self.device != "cpu":
            torch.cuda.synchronize(self.device)


class TorchStep:
    """A model in plain PyTorch with `block.self_and_reduce`."""

    frontier = "all"

    def __init__(self, device: str = "cpu") -> None:
        self.device = device
        self.name, self.label = on_device("torch", "torch, with pygsampler's blocks", device)

    def open(self, graph: CscGraph, fanouts: Sequence[int], seed: int) -> StepSession:
        return _BlockSteps(graph, fanouts, seed, self.device)


class DglStep:
    """DGL's SAGEConv on blocks of DGL's class, or of ours."""

    frontier = "all"

    def __init__(self, device: str = "cpu", ours: bool = False) -> None:
        self.device, self.ours = device, ours
        name, label = ("dgl", "DGL SAGEConv")
        if ours:
            name, label = "dgl_adapter", "DGL SAGEConv, pygsampler.dgl's blocks"
        self.name, self.label = on_device(name, label, device)

    def open(self, graph: CscGraph, fanouts: Sequence[int], seed: int) -> StepSession:
        return _DglSteps(graph, fanouts, seed, self.device, self.ours)


class PygStep:
    """PyG's GraphSAGE `way` "as it is", "trimmed" by PyG, or under our "blockwise"."""

    frontier = "new"

    def __init__(self, way: str, device: str = "cpu") -> None:
        self.device, self.way = device, way
        name, label = {
            "as it is": ("pyg", "PyG GraphSAGE"),
            "trimmed": ("pyg_trimmed", "PyG GraphSAGE, trimmed"),
            "blockwise": ("pyg_adapter", "pygsampler.pyg.blockwise(GraphSAGE)"),
        }[way]
        self.name, self.label = on_device(name, label, device)

    def open(self, graph: CscGraph, fanouts: Sequence[int], seed: int) -> StepSession:
        return _PygSteps(graph, fanouts, seed, self.device, self.way)


class _Layer(torch.nn.Module):
    """GraphSAGE's layer with the mean (Hamilton, Ying and Leskovec, 2017)."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.node = torch.nn.Linear(inputs, outputs)
        self.neighbors = torch.nn.Linear(inputs, outputs, bias=False)

    def forward(self, block: Any, h: torch.Tensor) -> torch.Tensor:
        node, mean = block.self_and_reduce(h, "mean")
        out: torch.Tensor = self.node(node) + self.neighbors(mean)
        return out


class _BlockSteps(StepSession):
    """Layers over blocks, outermost first; a batch has blocks, rows, ids of seeds and counts."""

    def __init__(self, graph: CscGraph, fanouts: Sequence[int], seed: int, device: str) -> None:
        super().__init__(graph, fanouts, seed, device)
        self._sampled = OneBatch(device).open(graph, fanouts, 0)

    def model(self) -> tuple[torch.nn.Module, _Pairs]:
        layers = [self.layer(*size) for size in zip(self.sizes, self.sizes[1:], strict=False)]
        return torch.nn.ModuleList(layers), [self.pair(layer) for layer in layers]

    def layer(self, inputs: int, outputs: int) -> torch.nn.Module:
        return _Layer(inputs, outputs)

    def pair(self, layer: Any) -> tuple[torch.nn.Linear, torch.nn.Linear]:
        return layer.node, layer.neighbors

    def block(self, block: Any) -> Any:
        """Returns a block of ours as the layers take it."""
        return block

    def batches(self, seeds: Sequence[Int64s], epoch: int) -> Iterator[Any]:
        for batch in self._sampled.run(seeds, epoch):
            tensors = batch.torch()
            ids = tensors.input_nodes.long().cpu()
            x = tensor(self.graph.features)[ids].to(self.device)
            blocks = [self.block(block) for block in tensors.blocks]
            yield blocks, x, tensors.output_nodes.long(), self._sampled.edges(batch)

    def forward(self, batch: Any) -> torch.Tensor:
        blocks, h, _, _ = batch
        out: torch.Tensor = h
        layers: Any = self._model
        for number, (layer, block) in enumerate(zip(layers, blocks, strict=True)):
            out = layer(block, out if number == 0 else functional.relu(out))
        return out

    def labels(self, batch: Any) -> torch.Tensor:
        ids: torch.Tensor = batch[2]
        return ids % CLASSES

    def edges(self, batch: Any) -> list[int]:
        counts: list[int] = batch[3]
        return counts


class _DglSteps(_BlockSteps):
    def __init__(
        self, graph: CscGraph, fanouts: Sequence[int], seed: int, device: str, ours: bool
    ) -> None:
        self._ours = ours
        super().__init__(graph, fanouts, seed, device)

    def layer(self, inputs: int, outputs: int) -> torch.nn.Module:
        import dgl.nn

        layer: torch.nn.Module = dgl.nn.SAGEConv(inputs, outputs, "mean")
        return layer

    def pair(self, layer: Any) -> tuple[torch.nn.Linear, torch.nn.Linear]:
        return layer.fc_self, layer.fc_neigh

    def block(self, block: Any) -> Any:
        import dgl

        ends = block.indptr.to(block.indices.dtype), block.indices
        # Without ids of edges DGL's CPU kernels fail.
        ids = torch.arange(block.num_edges, dtype=block.indices.dtype, device=block.indices.device)
        result = dgl.create_block(
            ("csc", (*ends, ids)),
            num_src_nodes=block.num_src_nodes,
            num_dst_nodes=block.num_dst_nodes,
        )
        if self._ours:
            from pygsampler.dgl.sampled_block import DGLBlock

            result.__class__ = DGLBlock
        return result


class _PygSteps(StepSession):
    def __init__(
        self, graph: CscGraph, fanouts: Sequence[int], seed: int, device: str, way: str
    ) -> None:
        import pygsampler as pgs
        from pygsampler.pyg import PGSampler, blockwise

        super().__init__(graph, fanouts, seed, device)
        self._data, self._hops = pyg_data(graph), list(reversed(fanouts))
        # PyG's layers take int64 alone.
        whole = pgs.Graph.from_csc(graph.indptr, graph.indices.astype(np.int64, copy=False))
        self._sampler = PGSampler(whole, self._hops, seed=0)
        self._way = way
        self._call: Callable[..., Any] = self._model
        if way == "blockwise":
            self._call = blockwise(self._model)

    def model(self) -> tuple[torch.nn.Module, _Pairs]:
        from torch_geometric.nn import GraphSAGE

        width, *_ = self.sizes
        model: Any = GraphSAGE(width, HIDDEN, len(self.fanouts), CLASSES)
        return model, [(layer.lin_r, layer.lin_l) for layer in model.convs]

    def batches(self, seeds: Sequence[Int64s], epoch: int) -> Iterator[Any]:
        from pygsampler.pyg import NeighborLoader

        loader = NeighborLoader(
            self._data,
            self._hops,
            torch.from_numpy(np.concatenate(seeds)),
            neighbor_sampler=self._sampler,
            batch_size=len(seeds[0]),
            # Nothing is sampled while a step is timed.
            prefetch=0,
        )
        loader.set_epoch(epoch)
        for batch in loader:
            yield batch.to(self.device)

    def forward(self, batch: Any) -> torch.Tensor:
        out: torch.Tensor
        if self._way == "blockwise":
            out = self._call(batch)
            return out
        counts = {}
        if self._way == "trimmed":
            counts = {
                "num_sampled_nodes_per_hop": batch.num_sampled_nodes,
                "num_sampled_edges_per_hop": batch.num_sampled_edges,
            }
        out = self._call(batch.x, batch.edge_index, **counts)
        return out[: batch.batch_size]

    def labels(self, batch: Any) -> torch.Tensor:
        ids: torch.Tensor = batch.n_id[: batch.batch_size]
        return ids % CLASSES

    def edges(self, batch: Any) -> list[int]:
        return [int(count) for count in reversed(batch.num_sampled_edges)]


def compare_steps(
    graph: CscGraph,
    setting: compare.Setting,
    contenders: Sequence[StepContender],
    *,
    seed: int = 1,
    baseline: str | Sequence[str],
    **options: Any,
) -> list[compare.ComparisonRow]:
    """Checks and times training steps, as `compare.compare` does with batches.

    The sampler of the batches is checked edge by edge, the first losses with each other, and each
    contender has to lower the loss of a batch in some steps.
    """
    rng = np.random.default_rng(seed)
    checked = compare.draw_seeds(graph, setting, rng, compare.CHECKED)
    # The sampler's batches alone are checked edge by edge, so the graph has no features here.
    plain, frontier = replace(graph, features=None), contenders[0].frontier
    sampled = OneBatch(frontier=frontier).open(plain, setting.fanouts, 0)
    size = compare.checked_size(
        plain, setting, "sample", sampled, checked, epoch=0, frontier=frontier
    )
    sessions: dict[str, StepSession] = {}
    first: dict[str, float] = {}
    for contender in contenders:
        name = contender.name
        with compare.contender_errors(name):
            sessions[name] = contender.open(graph, setting.fanouts, seed)
            losses = _losses(sessions[name], checked[:1])
        _check_losses(f"{graph.name} {setting}: {name}", losses, first)
        first.setdefault(name, losses[0])

    def run(name: str, batches: list[Int64s], epoch: int) -> tuple[float, list[list[int]]]:
        session, spent, counts = sessions[name], 0.0, []
        for batch in session.batches(batches, epoch):
            counts.append(session.edges(batch))
            session.settle()
            start = time.perf_counter()
            session.step(batch)
            session.settle()
            spent += time.perf_counter() - start
        return spent, counts

    measured = compare.interleave(
        list(sessions),
        run,
        lambda count: compare.draw_seeds(graph, setting, rng, count),
        **options,
    )
    labels = {contender.name: contender.label for contender in contenders}
    return compare.comparison_rows(graph, setting, labels, measured, size, baseline)


def _losses(session: StepSession, seeds: list[Int64s]) -> list[float]:
    """Losses of one batch, trained on several times."""
    batch = next(iter(session.batches(seeds, 0)))
    return [float(session.step(batch)) for _ in range(_STEPS)]


def _check_losses(who: str, losses: Sequence[float], first: dict[str, float]) -> None:
    if not all(map(math.isfinite, losses)):
        raise CheckError(f"{who}: expected finite losses, got {losses}")
    if losses[-1] >= losses[0]:
        raise CheckError(
            f"{who}: expected a loss below {losses[0]:.4f} after {_STEPS} steps on a batch, "
            f"got {losses[-1]:.4f}"
        )
    for other, loss in first.items():
        if not math.isclose(loss, losses[0], rel_tol=_TOLERANCE):
            raise CheckError(
                f"{who}: expected the first loss of {other}, {loss:.6f}, got {losses[0]:.6f}"
            )
