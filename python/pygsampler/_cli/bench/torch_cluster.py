"""torch-cluster's sampler of one hop, with the nodes of hops numbered by torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

import torch

from pygsampler._cli.bench.check import CheckedBlock, Int64s
from pygsampler._cli.bench.contenders import Session, int64
from pygsampler._cli.bench.csc import CscGraph


class ClusterSampler:
    """`torch_cluster.neighbor_sampler`, which returns the ids of a hop's edges.

    The rest of a batch is what its users write: the sources of the edges, their numbers among the
    nodes of the batch, and the next frontier.
    """

    name = "torch-cluster"
    label = "torch_cluster, numbered by torch"
    overlaps = False
    frontier = "all"

    def open(self, graph: CscGraph, fanouts: Sequence[int], seed: int) -> Session:
        torch.manual_seed(seed)
        return _ClusterSession(graph, fanouts)


class _ClusterSession:
    """Batches by hops: of each the destinations, the sources, and the ends and ids of its edges."""

    def __init__(self, graph: CscGraph, fanouts: Sequence[int]) -> None:
        from pygsampler._cli.bench.frameworks import tensor

        self._sample = import_module("torch_cluster").neighbor_sampler
        self._indptr = tensor(graph.indptr)
        self._indices = tensor(graph.indices).to(torch.int64)
        self._fanouts = fanouts
        # The number of each node in the batch at hand, -1 for others.
        self._numbers = torch.full((graph.num_nodes,), -1)

    def run(self, batches: Sequence[Int64s], epoch: int) -> Iterator[Any]:
        for seeds in batches:
            nodes = torch.from_numpy(seeds)
            self._numbers[nodes] = torch.arange(len(nodes))
            hops: list[tuple[torch.Tensor, ...]] = []
            for fanout in reversed(self._fanouts):
                row, eid = self._hop(nodes, fanout)
                ends = self._indices[eid]
                fresh = torch.unique(ends[self._numbers[ends] < 0])
                sources = torch.cat([nodes, fresh])
                self._numbers[fresh] = torch.arange(len(nodes), len(sources))
                hops.append((nodes, sources, row, self._numbers[ends], eid))
                nodes = sources
            self._numbers[nodes] = -1
            yield hops[::-1]

    def _hop(self, nodes: torch.Tensor, fanout: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The destination, by its place, and the id of each sampled edge."""
        counts = self._indptr[nodes + 1] - self._indptr[nodes]
        if fanout >= 0:
            counts = counts.clamp(max=fanout)
        row = torch.repeat_interleave(torch.arange(len(nodes)), counts)
        if fanout == 0:
            return row, row
        # Up to 1 is a share of the neighbors, above it a number of them, rounded down.
        return row, self._sample(nodes, self._indptr, 1.0 if fanout < 0 else fanout + 0.5)

    def edges(self, batch: Any) -> list[int]:
        return [len(hop[-1]) for hop in batch]

    def views(self, batch: Any) -> list[CheckedBlock]:
        return [CheckedBlock(*(int64(array) for array in hop)) for hop in batch]
