"""Contenders of a comparison, and ours among them without a framework.

A contender opens a session on a graph; a session samples a run of batches. All sessions of a
comparison share the arrays of the graph, none has a copy of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pygsampler._cli.bench.check import CheckedBlock, Int64s, in_trees
from pygsampler._cli.bench.csc import CscGraph

BASELINE = "dgl"


class Session(Protocol):
    """A sampler bound to a graph and fanouts (outermost hop first)."""

    def run(self, batches: Sequence[Int64s], epoch: int) -> Iterator[Any]:
        """Yields one sampled batch, in the contender's own format, for each array of seeds."""

    def edges(self, batch: Any) -> list[int]:
        """Number of edges of each block, outermost hop first. Cheap: it is called in the clock."""

    def views(self, batch: Any) -> list[CheckedBlock]:
        """The blocks in NumPy, outermost hop first, for the check."""


class LoaderSession(Session, Protocol):
    """A session whose batches have features."""

    def feature_rows(self, batch: Any) -> npt.NDArray[np.float32]:
        """The features of the outermost sources, one row each."""


class Named(Protocol):
    """A participant of a comparison.

    `frontier` is what a hop expands: "all" nodes that are known, or those alone that are "new", of
    the batch or, with "trees", of a tree for each seed.
    Contenders of one comparison have it in common, since the edges differ.
    """

    @property
    def name(self) -> str: ...

    @property
    def label(self) -> str: ...

    @property
    def frontier(self) -> str: ...


class Contender(Named, Protocol):
    """`overlaps` says that batches are sampled ahead while the caller holds an earlier one."""

    @property
    def overlaps(self) -> bool: ...

    def open(self, graph: CscGraph, fanouts: Sequence[int], seed: int) -> Session:
        """Returns a new session, which can be used for many runs."""


class _Ours:
    """Batches of pygsampler from a function that samples a run of `graph`."""

    def __init__(
        self, graph: CscGraph, run: Callable[[Sequence[Int64s], int], Iterator[Any]]
    ) -> None:
        self._graph = graph
        self.run = run

    def edges(self, batch: Any) -> list[int]:
        return [block.num_edges for block in batch.blocks]

    def feature_rows(self, batch: Any) -> npt.NDArray[np.float32]:
        return float32(batch.x)

    def views(self, batch: Any) -> list[CheckedBlock]:
        result = []
        for block in batch.blocks:
            col, row = (int64(ids) for ids in block.coo())
            dst, src, eid = (
                int64(ids) for ids in (block.dst_nodes, block.src_nodes, block.edge_ids)
            )
            # With the frontier "new" rows are numbered among all nodes of the batch.
            first = getattr(block, "dst_offset", 0)
            if batch.subgraph_ids is not None:
                trees = int64(batch.subgraph_ids)
                dst = in_trees(dst, trees[first : first + len(dst)], self._graph)
                src = in_trees(src, trees[: len(src)], self._graph)
                eid += trees[row] * self._graph.num_edges
            result.append(CheckedBlock(dst, src, row - first, col, eid))
        return result


class _PygsamplerContender:
    """A contender of ours: on the CPU, or on a device, which its name then says.

    With `pinned` the device reads the graph in page-locked memory of the host.
    """

    def __init__(
        self, name: str, label: str, device: str, frontier: str, pinned: bool = False
    ) -> None:
        self.device, self.frontier, self.pinned = device, frontier, pinned
        self.name, self.label = on_device(name, label, device, "page-locked" if pinned else "")

    def graph(self, graph: CscGraph) -> Any:
        """The graph where it is sampled; a copy on a device, shared memory on the CPU."""
        import pygsampler as pgs

        host = pgs.Graph.from_csc(graph.indptr, graph.indices)
        return host.pin(self.device) if self.pinned else host.to(self.device)

    def sampler(self, fanouts: Sequence[int], seed: int) -> Any:
        import pygsampler as pgs

        trees = self.frontier == "trees"
        frontier = "new" if trees else self.frontier
        return pgs.PGSampler(list(fanouts), seed=seed, frontier=frontier, disjoint=trees)


class OneBatch(_PygsamplerContender):
    """`PGSampler.sample`: the caller waits for each batch, no framework is involved."""

    overlaps = False

    def __init__(self, device: str = "cpu", frontier: str = "all", pinned: bool = False) -> None:
        super().__init__("sample", "PGSampler.sample", device, frontier, pinned)

    def open(self, graph: CscGraph, fanouts: Sequence[int], seed: int) -> Session:
        ours, sampler = self.graph(graph), self.sampler(fanouts, seed)

        def run(batches: Sequence[Int64s], epoch: int) -> Iterator[Any]:
            for number, seeds in enumerate(batches):
                yield sampler.sample(ours, seeds, epoch=epoch, batch=number)

        return _Ours(graph, run)


class Loader(_PygsamplerContender):
    """`pygsampler.torch.DataLoader`: batches in flight, torch tensors come out."""

    overlaps = True

    def __init__(self, prefetch: int = 4, device: str = "cpu", frontier: str = "all") -> None:
        super().__init__("loader", "pygsampler.torch.DataLoader", device, frontier)
        self.prefetch = prefetch

    def options(self, graph: CscGraph) -> dict[str, Any]:
        """The loader's options."""
        return {"prefetch": self.prefetch}

    def open(self, graph: CscGraph, fanouts: Sequence[int], seed: int) -> LoaderSession:
        from pygsampler.torch import DataLoader

        ours, sampler, options = self.graph(graph), self.sampler(fanouts, seed), self.options(graph)

        def run(batches: Sequence[Int64s], epoch: int) -> Iterator[Any]:
            seeds, size = np.concatenate(batches), len(batches[0])
            loader = DataLoader(ours, seeds, sampler, batch_size=size, **options)
            loader.set_epoch(epoch)
            yield from loader

        return _Ours(graph, run)


def on_device(name: str, label: str, device: str, more: str = "") -> tuple[str, str]:
    """The name and the label of a contender with its device, which the CPU is without."""
    if device == "cpu":
        return name, label
    parts = [device, more] if more else [device]
    return ":".join([name, *parts]), ", ".join([label, *parts])


def float32(array: Any) -> npt.NDArray[np.float32]:
    """Rows of a torch tensor in NumPy."""
    rows: npt.NDArray[np.float32] = array.detach().cpu().numpy()
    return rows


def int64(array: Any) -> Int64s:
    """A copy of an array of any framework, on the CPU or not, in NumPy."""
    if hasattr(array, "cpu"):
        array = array.cpu().numpy()
    return np.array(array, dtype=np.int64)
