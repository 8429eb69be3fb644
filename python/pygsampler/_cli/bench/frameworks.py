"""Samplers of DGL and PyG, and ours behind their interfaces."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch  # here, since torch keeps the frames of its first import, and all they hold, alive

from pygsampler._cli.bench.check import CheckedBlock, Int64s, blocks_by_hop
from pygsampler._cli.bench.contenders import BASELINE, Contender, Loader, OneBatch, Session, int64
from pygsampler._cli.bench.csc import CscGraph


class Dgl:
    """Blocks of DGL, from DGL's own sampler or from our adapter: both have the same interface."""

    def __init__(self, graph: CscGraph, sampler: Any, device: str = "cpu") -> None:
        self.graph = dgl_graph(graph).to(device)
        self._sampler = sampler
        self._device = device

    def run(self, batches: Sequence[Int64s], epoch: int) -> Iterator[Any]:
        for seeds in batches:
            ids = torch.from_numpy(seeds).to(self.graph.idtype).to(self._device)
            yield self._sampler.sample(self.graph, ids)[2]
        if self._device != "cpu":
            # Inside the clock: its last kernels may still run.
            torch.cuda.synchronize()

    def edges(self, batch: Any) -> list[int]:
        return [block.num_edges() for block in batch]

    def views(self, batch: Any) -> list[CheckedBlock]:
        import dgl

        result = []
        for block in batch:
            col, row = block.edges(order="eid")
            ids = block.dstdata[dgl.NID], block.srcdata[dgl.NID], row, col, block.edata[dgl.EID]
            result.append(CheckedBlock(*(int64(array) for array in ids)))
        return result


class DglSampler:
    """DGL's NeighborSampler, fused where that is right.

    With int32 ids the fused sampler of DGL 2.1 loses edges from its second batch on, so int32
    graphs take DGL's slower path.
    """

    overlaps = False
    frontier = "all"

    def __init__(self, device: str = "cpu") -> None:
        self.device = device
        self.name = BASELINE if device == "cpu" else f"{BASELINE}:{device}"
        self.label = "DGL NeighborSampler" + ("" if device == "cpu" else f", {device}")

    def open(self, graph: CscGraph, fanouts: Sequence[int], seed: int) -> Session:
        import dgl

        dgl.seed(seed)
        fused = graph.indices.dtype == np.int64
        sampler = dgl.dataloading.NeighborSampler(list(fanouts), fused=fused)
        return Dgl(graph, sampler, self.device)


class DglAdapter:
    """Our sampler behind DGL's interface; the clock includes the construction of DGL blocks."""

    name = "adapter"
    label = "pygsampler.dgl.PGSampler"
    overlaps = False
    frontier = "all"

    def open(self, graph: CscGraph, fanouts: Sequence[int], seed: int) -> Session:
        from pygsampler.dgl import PGSampler

        return Dgl(graph, PGSampler(list(fanouts), seed=seed))


class _Pyg:
    """Samples of PyG's kind, from its own sampler or from our adapter."""

    def __init__(self, sampler: Any) -> None:
        self._sampler = sampler

    def run(self, batches: Sequence[Int64s], epoch: int) -> Iterator[Any]:
        from torch_geometric.sampler import NodeSamplerInput

        for seeds in batches:
            yield self._sampler.sample_from_nodes(NodeSamplerInput(None, torch.from_numpy(seeds)))

    def edges(self, batch: Any) -> list[int]:
        return [int(count) for count in reversed(batch.num_sampled_edges)]

    def views(self, batch: Any) -> list[CheckedBlock]:
        node, row, col, edge = (int64(a) for a in (batch.node, batch.row, batch.col, batch.edge))
        counts = (
            [int(count) for count in of]
            for of in (batch.num_sampled_nodes, batch.num_sampled_edges)
        )
        return blocks_by_hop(node, (col, row, edge), *counts)


class PygSampler:
    """PyG's NeighborSampler, which takes pyg-lib for it."""

    name = "pyg"
    label = "PyG NeighborSampler"
    overlaps = False
    frontier = "new"

    def open(self, graph: CscGraph, fanouts: Sequence[int], seed: int) -> Session:
        from torch_geometric.data import Data
        from torch_geometric.sampler import NeighborSampler

        torch.manual_seed(seed)
        indptr = tensor(graph.indptr)
        dst = torch.repeat_interleave(torch.arange(graph.num_nodes), indptr.diff())
        edges = torch.stack([tensor(graph.indices).to(torch.int64), dst])
        data = Data(edge_index=edges, num_nodes=graph.num_nodes)
        # The other way round than ours. Sorted: its edge ids are then the CSC's places.
        return _Pyg(NeighborSampler(data, list(reversed(fanouts)), is_sorted=True))


class PygAdapter:
    """Our sampler behind PyG's interface."""

    name = "pyg_adapter"
    label = "pygsampler.pyg.PGSampler"
    overlaps = False
    frontier = "new"

    def open(self, graph: CscGraph, fanouts: Sequence[int], seed: int) -> Session:
        import pygsampler as pgs
        from pygsampler.pyg import PGSampler

        ours = pgs.Graph.from_csc(graph.indptr, graph.indices)
        return _Pyg(PGSampler(ours, list(reversed(fanouts)), seed=seed))


# What the repository's benchmarks compare.
ALL: tuple[Contender, ...] = (DglSampler(), OneBatch(), Loader(), DglAdapter())


def dgl_graph(graph: CscGraph) -> Any:
    """The graph as a DGLGraph over the same indices (and, for int64 ids, the same indptr)."""
    import dgl

    indices = tensor(graph.indices)
    indptr = tensor(graph.indptr).to(indices.dtype)
    no_ids = torch.empty(0, dtype=indices.dtype)  # edge ids are then the CSC positions, as in ours
    return dgl.graph(("csc", (indptr, indices, no_ids)), num_nodes=graph.num_nodes)


def tensor(array: Any) -> torch.Tensor:
    """The array without a copy; one of a mapped file is read-only, of which torch would warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return torch.from_numpy(array)


def dgl_runs_on(device: str) -> bool:
    """True if the DGL that is installed has graphs on the device: the one on PyPI has not."""
    import dgl

    try:
        dgl.graph(([0], [0])).to(device)
    except Exception:
        # DGL's own error class, whose place differs between its versions.
        return False
    return True


def pyg_lib() -> bool:
    """True if PyG's own sampler can run."""
    with warnings.catch_warnings():
        # Of PyG about torch, at its import.
        warnings.simplefilter("ignore")
        import torch_geometric.typing

    return bool(torch_geometric.typing.WITH_PYG_LIB)
