"""Samplers of DGL and PyG, and ours behind their interfaces."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch  # here, since torch keeps the frames of its first import, and all they hold, alive

from pygsampler._cli.bench.check import CheckedBlock, Int64s, blocks_by_hop
from pygsampler._cli.bench.contenders import (
    BASELINE,
    Contender,
    Loader,
    OneBatch,
    Session,
    int64,
    on_device,
)
from pygsampler._cli.bench.csc import CscGraph
from pygsampler._cli.bench.libraries import pyg_sampler


class Dgl:
    """Blocks of DGL, from DGL's own sampler or from our adapter: both have the same interface."""

    def __init__(
        self, graph: CscGraph, sampler: Any, device: str = "cpu", pinned: bool = False
    ) -> None:
        if pinned:
            # A copy is pinned: arrays of a file, or already pinned ones, cannot be page-locked.
            self.graph = dgl_graph(graph.copy())
            self.graph.pin_memory_()
        else:
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
        return dgl_views(batch)


class DglSampler:
    """DGL's NeighborSampler, fused where that is right.

    With int32 ids the fused sampler of DGL 2.1 loses edges from its second batch on, so int32
    graphs take DGL's slower path. With `pinned` a GPU reads the graph in page-locked memory, which
    DGL calls UVA.
    """

    overlaps = False
    frontier = "all"

    def __init__(self, device: str = "cpu", pinned: bool = False) -> None:
        self.device, self.pinned = device, pinned
        more = "UVA" if pinned else ""
        self.name, self.label = on_device(BASELINE, "DGL NeighborSampler", device, more)

    def open(self, graph: CscGraph, fanouts: Sequence[int], seed: int) -> Session:
        return Dgl(graph, dgl_sampler(graph, fanouts, seed), self.device, self.pinned)


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

    def __init__(self, sampler: Any, hops: int) -> None:
        self._sampler, self._hops = sampler, hops

    def run(self, batches: Sequence[Int64s], epoch: int) -> Iterator[Any]:
        from torch_geometric.sampler import NodeSamplerInput

        for seeds in batches:
            out = self._sampler.sample_from_nodes(NodeSamplerInput(None, torch.from_numpy(seeds)))
            yield PygBatch(out, (out.node, out.row, out.col, out.edge), len(seeds), self._hops)

    def edges(self, batch: PygBatch) -> list[int]:
        return batch.edges()

    def views(self, batch: PygBatch) -> list[CheckedBlock]:
        return batch.views()


class PygSampler:
    """PyG's NeighborSampler, by pyg-lib or by torch-sparse."""

    name = "pyg"
    overlaps = False
    frontier = "new"

    @property
    def label(self) -> str:
        return f"PyG NeighborSampler ({pyg_sampler()})"

    def open(self, graph: CscGraph, fanouts: Sequence[int], seed: int) -> Session:
        from torch_geometric.sampler import NeighborSampler

        torch.manual_seed(seed)
        # The other way round than ours. Sorted: its edge ids are then the CSC's places.
        sampler = NeighborSampler(pyg_data(graph), list(reversed(fanouts)), is_sorted=True)
        return _Pyg(sampler, len(fanouts))


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
        return _Pyg(PGSampler(ours, list(reversed(fanouts)), seed=seed), len(fanouts))


# The contenders of the repository's benchmarks.
ALL: tuple[Contender, ...] = (DglSampler(), OneBatch(), Loader(), DglAdapter())


def dgl_sampler(graph: CscGraph, fanouts: Sequence[int], seed: int) -> Any:
    """DGL's NeighborSampler, in the way that is right for the dtype of the ids."""
    import dgl

    dgl.seed(seed)
    fused = graph.indices.dtype == np.int64
    return dgl.dataloading.NeighborSampler(list(fanouts), fused=fused)


def dgl_views(blocks: Sequence[Any]) -> list[CheckedBlock]:
    """DGL's blocks, outermost first, for the check."""
    import dgl

    result = []
    for block in blocks:
        col, row = block.edges(order="eid")
        ids = block.dstdata[dgl.NID], block.srcdata[dgl.NID], row, col, block.edata[dgl.EID]
        result.append(CheckedBlock(*(int64(array) for array in ids)))
    return result


def dgl_graph(graph: CscGraph) -> Any:
    """The graph as a DGLGraph over the same indices (and, for int64 ids, the same indptr)."""
    import dgl

    indices = tensor(graph.indices)
    indptr = tensor(graph.indptr).to(indices.dtype)
    no_ids = torch.empty(0, dtype=indices.dtype)  # edge ids are then the CSC positions, as in ours
    return dgl.graph(("csc", (indptr, indices, no_ids)), num_nodes=graph.num_nodes)


def pyg_data(graph: CscGraph) -> Any:
    """The graph as PyG's Data, with edges by their destinations, and its features if any."""
    from torch_geometric.data import Data

    dst = torch.repeat_interleave(torch.arange(graph.num_nodes), tensor(graph.indptr).diff())
    edges = torch.stack([tensor(graph.indices).to(torch.int64), dst])
    x = {} if graph.features is None else {"x": tensor(graph.features)}
    return Data(edge_index=edges, num_nodes=graph.num_nodes, **x)


class PygBatch:
    """Arrays of a batch of PyG's kind, whose nodes are numbered in the order they are reached."""

    def __init__(
        self, sampled: Any, arrays: tuple[Any, Any, Any, Any], seeds: int, hops: int
    ) -> None:
        """`arrays` are nodes, and sources, destinations and ids of edges; the rest are counts."""
        self.node, self.src, self.dst, self.eid = arrays
        self._sampled, self._seeds, self._hops = sampled, seeds, hops

    def counts(self) -> tuple[list[int], list[int]]:
        """New nodes and new edges by hop, the seeds first.

        pyg-lib counts them. torch-sparse does not, but its edges are in the order of destinations.
        """
        nodes = getattr(self._sampled, "num_sampled_nodes", None)
        if nodes is not None:
            edges = self._sampled.num_sampled_edges
            return [int(count) for count in nodes], [int(count) for count in edges]
        more, ends, known = [self._seeds], [0], self._seeds
        for _ in range(self._hops):
            ends.append(int(torch.searchsorted(self.dst, known)))
            reached = self.src[: ends[-1]]
            more.append(max(known, int(reached.max()) + 1 if len(reached) else 0) - known)
            known += more[-1]
        return more, [end - start for start, end in itertools.pairwise(ends)]

    def edges(self) -> list[int]:
        """New edges by hop, outermost first."""
        return self.counts()[1][::-1]

    def views(self) -> list[CheckedBlock]:
        """The blocks for the check."""
        node, *edges = (int64(each) for each in (self.node, self.dst, self.src, self.eid))
        dst, src, eid = edges
        return blocks_by_hop(node, (dst, src, eid), *self.counts())


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
