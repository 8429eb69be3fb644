"""cuGraph's uniform neighbor sampler on a GPU, by pylibcugraph, as cugraph-pyg calls it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import torch

from pygsampler._cli.bench.check import CheckedBlock, Int64s, blocks_by_hop
from pygsampler._cli.bench.contenders import Session, int64, on_device
from pygsampler._cli.bench.csc import CscGraph

# The names of its function, the newest first.
_FUNCTIONS = ("neighbor_sample", "homogeneous_uniform_neighbor_sample")


class CugraphSampler:
    """pylibcugraph's neighbor sampler, with the options of `cugraph_pyg.loader.NeighborLoader`."""

    overlaps = False
    frontier = "new"

    def __init__(self, device: str) -> None:
        self.device = device
        self.name, self.label = on_device("cugraph", "cuGraph neighbor sampling", device)

    def open(self, graph: CscGraph, fanouts: Sequence[int], seed: int) -> Session:
        return _CugraphSession(graph, fanouts, seed, torch.device(self.device))


class _CugraphSession:
    """Batches of pylibcugraph: a graph on the GPU, from whose destinations it samples sources."""

    def __init__(
        self, graph: CscGraph, fanouts: Sequence[int], seed: int, device: torch.device
    ) -> None:
        self._cupy, library = import_module("cupy"), import_module("pylibcugraph")
        found = [name for name in _FUNCTIONS if hasattr(library, name)]
        if not found:
            raise AttributeError(f"pylibcugraph: expected {' or '.join(_FUNCTIONS)}, got neither")
        self._sample = getattr(library, found[0])
        self._device, self._seed = device, seed
        self._cupy.cuda.Device(device.index or 0).use()
        self._fanouts = np.array(list(reversed(fanouts)), dtype=np.int32)
        self._handle = library.ResourceHandle()
        dst = np.repeat(np.arange(graph.num_nodes), np.diff(graph.indptr))
        ends = (dst, graph.indices.astype(np.int64, copy=False))
        edges = np.arange(graph.num_edges)
        self._graph = library.SGGraph(
            self._handle,
            library.GraphProperties(is_multigraph=True, is_symmetric=False),
            *(self._array(each) for each in ends),
            vertices_array=self._array(np.arange(graph.num_nodes)),
            edge_id_array=self._array(edges),
            edge_type_array=self._array(np.zeros(graph.num_edges, dtype=np.int32)),
        )

    def _array(self, array: Any) -> Any:
        return self._cupy.asarray(array)

    def run(self, batches: Sequence[Int64s], epoch: int) -> Iterator[Any]:
        for number, seeds in enumerate(batches):
            sampled = self._sample(
                resource_handle=self._handle,
                input_graph=self._graph,
                start_vertex_list=self._array(seeds),
                starting_vertex_label_offsets=self._array(np.array([0, len(seeds)])),
                h_fan_out=self._fanouts,
                with_replacement=False,
                do_expensive_check=False,
                prior_sources_behavior="exclude",
                deduplicate_sources=True,
                return_hops=True,
                renumber=True,
                retain_seeds=True,
                compression="COO",
                compress_per_hop=False,
                random_state=self._seed + (epoch << 20) + number,
            )
            yield sampled, seeds
        if self._device.type == "cuda":
            # Inside the clock: its last kernels may still run.
            torch.cuda.synchronize(self._device)

    def edges(self, batch: Any) -> list[int]:
        return [int(count) for count in np.diff(_host(batch[0]["label_hop_offsets"]))[::-1]]

    def views(self, batch: Any) -> list[CheckedBlock]:
        """The blocks, whose nodes are numbered anew: cuGraph's own order within a hop differs."""
        sampled, seeds = batch
        names = _host(sampled["renumber_map"])
        dst, src = (names[_host(sampled[name])] for name in ("majors", "minors"))
        numbers = {node: number for number, node in enumerate(seeds.tolist())}
        nodes, ends = [len(seeds)], np.diff(_host(sampled["label_hop_offsets"]))
        for hop in np.split(src, np.cumsum(ends)[:-1]):
            for node in hop.tolist():
                numbers.setdefault(node, len(numbers))
            nodes.append(len(numbers) - sum(nodes))
        row, col = (np.array([numbers[node] for node in each], np.int64) for each in (dst, src))
        eid, node = _host(sampled["edge_id"]), np.fromiter(numbers, np.int64)
        return blocks_by_hop(node, (row, col, eid), nodes, ends.tolist())


def _host(array: Any) -> Int64s:
    """A copy of a CuPy array in NumPy."""
    return int64(array.get() if hasattr(array, "get") else array)
