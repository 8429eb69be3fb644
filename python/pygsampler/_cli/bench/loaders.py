"""Loaders of DGL, PyG and ours: an epoch of batches, with the features of their nodes.

Each loader has the defaults of its library; only the size of a batch, the fanouts and the seeds,
which are not shuffled, are chosen. With a device the batches are there: of a loader that samples on
the CPU, they are copied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from pygsampler._cli.bench.check import CheckedBlock, Int64s
from pygsampler._cli.bench.contenders import Loader, LoaderSession, float32, on_device
from pygsampler._cli.bench.csc import CscGraph
from pygsampler._cli.bench.frameworks import (
    PygBatch,
    dgl_graph,
    dgl_sampler,
    dgl_views,
    pyg_data,
    tensor,
)
from pygsampler._cli.bench.libraries import pyg_sampler

# Returns a library's loader of a graph, by the seeds of an epoch and the size of a batch.
Loading = Callable[[torch.Tensor, int, int], Any]


class TorchLoader(Loader):
    """`pygsampler.torch.DataLoader` with features, which are where the graph is."""

    def __init__(self, device: str = "cpu", pinned: bool = False) -> None:
        super().__init__(device=device)
        self.pinned = pinned
        more = "page-locked" if pinned else ""
        self.name, self.label = on_device("loader", "pygsampler.torch.DataLoader", device, more)

    def options(self, graph: CscGraph) -> dict[str, Any]:
        import pygsampler as pgs

        features = pgs.Features.from_tensor(graph.features)
        if self.pinned:
            return {"features": {"x": features.pin(self.device)}}
        return {"features": {"x": features.to(self.device)}}


class DglLoader:
    """DGL's DataLoader, with DGL's sampler or with ours.

    With a device graph and features are there, with `pinned` in page-locked memory, which DGL calls
    UVA.
    """

    frontier = "all"

    def __init__(self, device: str = "cpu", pinned: bool = False, ours: bool = False) -> None:
        # On a GPU DGL reads features in a thread.
        self.overlaps = device != "cpu"
        self.device, self.pinned, self.ours = device, pinned, ours
        name, label = ("dgl", "DGL DataLoader")
        if ours:
            name, label = "dgl_adapter", "DGL DataLoader, pygsampler.dgl.PGSampler"
        self.name, self.label = on_device(name, label, device, "UVA" if pinned else "")

    def open(self, graph: CscGraph, fanouts: Sequence[int], seed: int) -> LoaderSession:
        import dgl

        if self.ours:
            from pygsampler.dgl import PGSampler

            sampler: Any = PGSampler(list(fanouts), seed=seed)
        else:
            sampler = dgl_sampler(graph, fanouts, seed)
        if self.pinned:
            # DGL page-locks the arrays, which can be done once and not with those of a file.
            graph = graph.copy()
        whole = dgl_graph(graph)
        whole.ndata["x"] = tensor(graph.features)
        whole = whole if self.pinned else whole.to(self.device)

        def load(ids: torch.Tensor, size: int, epoch: int) -> Any:
            ids = ids.to(whole.idtype).to(self.device)
            more = {"use_uva": True} if self.pinned else {}
            return dgl.dataloading.DataLoader(
                whole, ids, sampler, device=self.device, batch_size=size, **more
            )

        return _DglSession(load, self.device)


class PygLoader:
    """PyG's NeighborLoader, or ours of that name.

    With a device PyG's batches are copied there, and ours are sampled there.
    """

    frontier = "new"

    def __init__(self, device: str = "cpu", ours: bool = False) -> None:
        # Ours samples the next batch while PyG assembles one.
        self.overlaps = ours
        self.device, self.ours = device, ours
        name, label = "pyg", f"PyG NeighborLoader ({pyg_sampler()})"
        if ours:
            name, label = "pyg_adapter", "pygsampler.pyg.NeighborLoader"
        self.name, self.label = on_device(name, label, device)

    def open(self, graph: CscGraph, fanouts: Sequence[int], seed: int) -> LoaderSession:
        from torch_geometric.loader import NeighborLoader

        kind: Any = NeighborLoader
        options: dict[str, Any] = {"is_sorted": True}
        if self.ours:
            from pygsampler import pyg

            kind, options = pyg.NeighborLoader, {"is_sorted": True, "seed": seed}
        torch.manual_seed(seed)
        data, hops = pyg_data(graph), list(reversed(fanouts))
        if self.ours:
            data = data.to(self.device)

        def load(ids: torch.Tensor, size: int, epoch: int) -> Any:
            return kind(data, hops, ids, batch_size=size, **options)

        return _PygSession(load, self.device, len(hops))


class _LibrarySession:
    """An epoch of a library's loader in each run."""

    def __init__(self, load: Loading, device: str) -> None:
        self._load, self._device = load, device

    def run(self, batches: Sequence[Int64s], epoch: int) -> Iterator[Any]:
        ids = torch.from_numpy(np.concatenate(batches))
        for batch in self._load(ids, len(batches[0]), epoch):
            yield self._complete(batch)
        if self._device != "cpu":
            # Inside the clock: its last kernels may still run.
            torch.cuda.synchronize(self._device)

    def _complete(self, batch: Any) -> Any:
        return batch


class _DglSession(_LibrarySession):
    def _complete(self, batch: Any) -> Any:
        _, _, blocks = batch
        # They are read when they are asked for.
        return blocks, blocks[0].srcdata["x"]

    def edges(self, batch: Any) -> list[int]:
        return [block.num_edges() for block in batch[0]]

    def views(self, batch: Any) -> list[CheckedBlock]:
        return dgl_views(batch[0])

    def feature_rows(self, batch: Any) -> npt.NDArray[np.float32]:
        return float32(batch[1])


class _PygSession(_LibrarySession):
    def __init__(self, load: Loading, device: str, hops: int) -> None:
        super().__init__(load, device)
        self._hops = hops

    def _complete(self, batch: Any) -> Any:
        return batch if self._device == "cpu" else batch.to(self._device)

    def _arrays(self, batch: Any) -> PygBatch:
        src, dst = batch.edge_index
        arrays = batch.n_id, src, dst, batch.e_id
        return PygBatch(batch, arrays, batch.batch_size, self._hops)

    def edges(self, batch: Any) -> list[int]:
        return self._arrays(batch).edges()

    def views(self, batch: Any) -> list[CheckedBlock]:
        return self._arrays(batch).views()

    def feature_rows(self, batch: Any) -> npt.NDArray[np.float32]:
        return float32(batch.x)
