"""What is measured: ours in three forms, and DGL's NeighborSampler as the baseline.

A contender opens a session on a graph; a session samples a run of batches. All sessions of a
comparison share the arrays of the graph, none has a copy of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import torch  # here, since torch keeps the frames of its first import, and all they hold, alive

from .check import BlockView, Int64s
from .graphs import Csc

BASELINE = "dgl"


class Session(Protocol):
    """A sampler bound to a graph and fanouts (outermost hop first)."""

    def run(self, batches: Sequence[Int64s], epoch: int) -> Iterator[Any]:
        """Yields one sampled batch, in the contender's own form, for each array of seeds."""

    def edges(self, batch: Any) -> list[int]:
        """Number of edges of each block, outermost hop first. Cheap: it is called in the clock."""

    def views(self, batch: Any) -> list[BlockView]:
        """The blocks in NumPy, outermost hop first, for the check."""


class Contender(Protocol):
    """`overlaps` says that batches are sampled ahead while the caller holds an earlier one."""

    @property
    def name(self) -> str: ...

    @property
    def label(self) -> str: ...

    @property
    def overlaps(self) -> bool: ...

    def open(self, graph: Csc, fanouts: Sequence[int], seed: int) -> Session:
        """A new session; it may be kept for many runs."""


class _Dgl:
    """Blocks of DGL, from DGL's own sampler or from our adapter: both have the same interface."""

    def __init__(self, graph: Csc, sampler: Any) -> None:
        self._graph = dgl_graph(graph)
        self._sampler = sampler

    def run(self, batches: Sequence[Int64s], epoch: int) -> Iterator[Any]:
        for seeds in batches:
            ids = torch.from_numpy(seeds).to(self._graph.idtype)
            yield self._sampler.sample(self._graph, ids)[2]

    def edges(self, batch: Any) -> list[int]:
        return [block.num_edges() for block in batch]

    def views(self, batch: Any) -> list[BlockView]:
        import dgl

        result = []
        for block in batch:
            col, row = block.edges(order="eid")
            ids = block.dstdata[dgl.NID], block.srcdata[dgl.NID], row, col, block.edata[dgl.EID]
            result.append(BlockView(*(_int64(array) for array in ids)))
        return result


class DglSampler:
    """DGL's NeighborSampler, fused where that is right.

    With int32 ids the fused sampler of DGL 2.1 loses edges from its second batch on, so int32
    graphs take DGL's slower path.
    """

    name = BASELINE
    label = "DGL NeighborSampler"
    overlaps = False

    def open(self, graph: Csc, fanouts: Sequence[int], seed: int) -> Session:
        import dgl

        dgl.seed(seed)
        fused = graph.indices.dtype == np.int64
        return _Dgl(graph, dgl.dataloading.NeighborSampler(list(fanouts), fused=fused))


class DglAdapter:
    """Our sampler behind DGL's interface; the DGL blocks are made inside the clock."""

    name = "adapter"
    label = "pygsampler.dgl.PGSampler"
    overlaps = False

    def open(self, graph: Csc, fanouts: Sequence[int], seed: int) -> Session:
        from pygsampler.dgl import PGSampler

        return _Dgl(graph, PGSampler(list(fanouts), seed=seed))


class _Ours:
    """Batches of pygsampler from a function that samples a run."""

    def __init__(self, run: Callable[[Sequence[Int64s], int], Iterator[Any]]) -> None:
        self.run = run

    def edges(self, batch: Any) -> list[int]:
        return [block.num_edges for block in batch.blocks]

    def views(self, batch: Any) -> list[BlockView]:
        result = []
        for block in batch.blocks:
            col, row = block.coo()
            ids = block.dst_nodes, block.src_nodes, row, col, block.edge_ids
            result.append(BlockView(*(_int64(array) for array in ids)))
        return result


class OneBatch:
    """`PGSampler.sample`: the caller waits for each batch, no framework is involved."""

    name = "sample"
    label = "PGSampler.sample"
    overlaps = False

    def open(self, graph: Csc, fanouts: Sequence[int], seed: int) -> Session:
        import pygsampler as pgs

        ours = pgs.Graph.from_csc(graph.indptr, graph.indices)
        sampler = pgs.PGSampler(list(fanouts), seed=seed)

        def run(batches: Sequence[Int64s], epoch: int) -> Iterator[Any]:
            for number, seeds in enumerate(batches):
                yield sampler.sample(ours, seeds, epoch=epoch, batch=number)

        return _Ours(run)


class Loader:
    """`pygsampler.torch.DataLoader`: batches in flight on all cores, torch tensors come out."""

    name = "loader"
    label = "pygsampler.torch.DataLoader"
    overlaps = True

    def __init__(self, prefetch: int = 4) -> None:
        self.prefetch = prefetch

    def open(self, graph: Csc, fanouts: Sequence[int], seed: int) -> Session:
        import pygsampler as pgs
        from pygsampler.torch import DataLoader

        ours = pgs.Graph.from_csc(graph.indptr, graph.indices)
        sampler = pgs.PGSampler(list(fanouts), seed=seed)

        def run(batches: Sequence[Int64s], epoch: int) -> Iterator[Any]:
            loader = DataLoader(
                ours,
                np.concatenate(batches),
                sampler,
                batch_size=len(batches[0]),
                prefetch=self.prefetch,
            )
            loader.set_epoch(epoch)
            yield from loader

        return _Ours(run)


ALL: tuple[Contender, ...] = (DglSampler(), OneBatch(), Loader(), DglAdapter())


def dgl_graph(graph: Csc) -> Any:
    """The graph as a DGLGraph over the same indices (and, for int64 ids, the same indptr)."""
    import dgl

    indices = torch.from_numpy(graph.indices)
    indptr = torch.from_numpy(graph.indptr).to(indices.dtype)
    no_ids = torch.empty(0, dtype=indices.dtype)  # edge ids are then the CSC positions, as in ours
    return dgl.graph(("csc", (indptr, indices, no_ids)), num_nodes=graph.num_nodes)


def _int64(array: Any) -> Int64s:
    return np.asarray(array).astype(np.int64)
