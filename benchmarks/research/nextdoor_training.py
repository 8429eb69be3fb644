"""Training with four samplers by the steps of their papers' programs, and by ours.

The paper NextDoor's table 5: how much less time training takes when the sampler is replaced.
"vanilla" samples as the programs of these papers do, in NumPy and SciPy on the CPU:

- GraphSAGE (Hamilton et al., 2017): a table of 128 neighbors for each node, of which a batch takes
  the same random columns for all of its nodes; a node that is reached twice is read twice. Ours
  draws with replacement, too.
- FastGCN (Chen et al., 2018) and LADIES (Zou et al., 2019): rows of the sparse matrix, a choice
  among its columns, and the columns of that.
- ClusterGCN (Chiang et al., 2019): rows and columns of the nodes of a few clusters. The clusters
  are runs of a breadth-first order, which are found before the clock starts.

The model, the order of the seeds and the optimizer are the same::

    python -m benchmarks.research.nextdoor_training --out benchmarks/results
    python -m benchmarks.research.nextdoor_training --device cuda --out FOLDER
    python -m benchmarks.research.nextdoor_training --quick

A run is refused whose mean accuracies differ by more than ``convergence.apart`` allows.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from scipy import sparse
from scipy.sparse import csgraph

import pygsampler as pgs
from pygsampler import samplers
from pygsampler.torch import DataLoader

from ..tasks import Task
from . import gsampler_training
from .convergence import parser_of
from .gsampler_training import FANOUTS, Batch, Hop, Sampling, permutation

ALGORITHMS = ("GraphSAGE", "FastGCN", "LADIES", "ClusterGCN")
SYSTEMS = ("vanilla", "pygsampler")
# Columns of the table of neighbors, as in the program of GraphSAGE.
TABLE = 128
# Nodes of a cluster, and clusters of a batch.
CLUSTER, TOGETHER = 400, 5

Ids = np.ndarray[Any, np.dtype[np.int64]]


class Replaced(Sampling):
    """The batches of an algorithm, by the steps of its program or by ours."""

    def __init__(self, task: Task, options: argparse.Namespace) -> None:
        super().__init__(task, options)
        indptr = self.eager.indptr.cpu().numpy()
        indices = self.eager.indices.cpu().numpy()
        nodes = len(indptr) - 1
        ones = np.ones(len(indices), np.float32)
        # A row for each destination; parallel edges stay apart.
        self._edges = sparse.csr_matrix((ones, indices, indptr), shape=(nodes, nodes))
        weights = self.eager.weight.cpu().numpy()
        self._weights = sparse.csr_matrix((weights, indices, indptr), shape=(nodes, nodes))
        self._norms = np.bincount(indices, weights.astype(np.float64) ** 2, minlength=nodes)
        self._table = table_of(indptr, indices)
        self.parts = clusters_of(self._edges)
        self._is_train = torch.zeros(nodes, dtype=torch.bool)
        self._is_train[task.train] = True

    def batches(self, algorithm: str, system: str, seed: int, epoch: int) -> Iterator[Batch]:
        """One epoch; the seeds, or clusters, come in the same order, whoever samples."""
        if algorithm == "ClusterGCN":
            return self._of_clusters(system, seed, epoch)
        if system == "pygsampler":
            return self._by_us(algorithm, seed, epoch)
        return self._vanilla(algorithm, seed, epoch)

    def sampler(self, algorithm: str, seed: int) -> Any:
        """Our sampler of an algorithm with layers, by the law of its program."""
        if algorithm == "GraphSAGE":
            return pgs.PGSampler(FANOUTS, replace=True, seed=seed)
        return super().sampler(algorithm, seed)

    def _vanilla(self, algorithm: str, seed: int, epoch: int) -> Iterator[Batch]:
        random = np.random.default_rng([seed, epoch])
        for seeds in self._order(seed, epoch).split(self.options.batch):
            frontier, hops = seeds.numpy(), []
            for fanout in FANOUTS[::-1]:
                if algorithm == "GraphSAGE":
                    frontier, hop = self._columns_of_table(frontier, fanout, random)
                else:
                    frontier, hop = self._columns_of_matrix(algorithm, frontier, random)
                hops.insert(0, hop)
            yield self._there(torch.from_numpy(frontier), seeds, hops)

    def _columns_of_table(
        self, frontier: Ids, fanout: int, random: np.random.Generator
    ) -> tuple[Ids, Hop]:
        found = self._table[frontier][:, random.permutation(TABLE)[:fanout]]
        has = found[:, 0] >= 0
        count, drawn = len(frontier), found[has].reshape(-1)
        dst = torch.from_numpy(np.flatnonzero(has).repeat(fanout))
        src = torch.arange(count, count + len(drawn))
        weight = torch.full((len(drawn),), 1 / fanout)
        return np.concatenate([frontier, drawn]), (src, dst, weight, count)

    def _columns_of_matrix(
        self, algorithm: str, frontier: Ids, random: np.random.Generator
    ) -> tuple[Ids, Hop]:
        rows, size = self._weights[frontier], self.options.nodes
        if algorithm == "LADIES":
            p = np.asarray(rows.multiply(rows).sum(0)).reshape(-1).astype(np.float64)
            p /= p.sum()
            most = min(size, int(np.count_nonzero(p)))
            drawn = random.choice(len(p), most, replace=False, p=p)
            factor = 1 / p[drawn]
        else:
            columns = np.unique(rows.indices)
            p = self._norms[columns] / self._norms[columns].sum()
            found = random.choice(len(columns), size, replace=True, p=p)
            found, times = np.unique(found, return_counts=True)
            drawn, factor = columns[found], times / (size * p[found])
        kept = rows[:, drawn].multiply(factor[None, :]).tocoo()
        weight = kept.data
        if algorithm == "LADIES":
            sums = np.bincount(kept.row, weight, minlength=len(frontier))
            weight = weight / sums[kept.row]
        # The frontier first, and then who is new.
        place = np.full(self._weights.shape[0], -1)
        place[frontier] = np.arange(len(frontier))
        fresh = drawn[place[drawn] < 0]
        place[fresh] = np.arange(len(frontier), len(frontier) + len(fresh))
        src, dst = place[drawn][kept.col], kept.row.astype(np.int64)
        hop = (*map(torch.from_numpy, (src, dst, weight.astype(np.float32))), len(frontier))
        return np.concatenate([frontier, fresh]), hop

    def _of_clusters(self, system: str, seed: int, epoch: int) -> Iterator[Batch]:
        order = permutation(int(self.parts.max()) + 1, seed, epoch)
        if system == "vanilla":
            for parts in order.split(TOGETHER):
                nodes = np.flatnonzero(np.isin(self.parts, parts.numpy()))
                among = self._edges[nodes][:, nodes]
                degrees = np.diff(among.indptr)
                dst = np.arange(len(nodes)).repeat(degrees)
                src = among.indices.astype(np.int64)
                weight = (1 / (degrees + 1)).astype(np.float32).repeat(degrees)
                yield self._layered(*map(torch.from_numpy, (nodes, src, dst, weight)))
            return
        sampler = samplers.cluster_gcn_parts(self.parts, seed=seed)
        loader = DataLoader(self.graph, order, sampler, batch_size=TOGETHER)
        loader.set_epoch(epoch)
        for batch in loader:
            src, dst = batch.blocks[0].coo()
            weight = batch.blocks[0].edge_data["w"].float()
            yield self._layered(batch.nodes.long(), src, dst, weight)

    def _layered(
        self, nodes: torch.Tensor, src: torch.Tensor, dst: torch.Tensor, weight: torch.Tensor
    ) -> Batch:
        """Both layers on one subgraph; those that are trained on come first."""
        trained = self._is_train.to(nodes.device)[nodes]
        order = (~trained).to(torch.int8).argsort(stable=True)
        place = torch.empty_like(order)
        place[order] = torch.arange(len(order), device=order.device)
        nodes, src, dst, count = nodes[order], place[src], place[dst], int(trained.sum())
        last = dst < count
        hops: list[Hop] = [
            (src, dst, weight, len(nodes)),
            (src[last], dst[last], weight[last], count),
        ]
        return self._there(nodes, nodes[:count], hops)

    def _there(self, inputs: torch.Tensor, seeds: torch.Tensor, hops: Sequence[Hop]) -> Batch:
        """The batch where the model is."""
        to = self.options.device
        moved: list[Hop] = [(*(part.to(to) for part in hop[:3]), hop[3]) for hop in hops]
        return inputs.to(to), seeds.to(to), moved


def table_of(indptr: Ids, indices: Ids) -> Ids:
    """``TABLE`` in-neighbors of each node, repeated where it has fewer; -1 where it has none."""
    random = np.random.default_rng(1)
    table = np.full((len(indptr) - 1, TABLE), -1, np.int64)
    for node, degree in enumerate(np.diff(indptr).tolist()):
        if degree:
            found = random.choice(degree, TABLE, replace=degree < TABLE)
            table[node] = indices[indptr[node] + found]
    return table


def clusters_of(edges: Any) -> Ids:
    """The cluster of each node: runs of a breadth-first order, one component behind another."""
    nodes = edges.shape[0]
    both = (edges + edges.T).tocsr()
    _, component = csgraph.connected_components(both, directed=False)
    place, done = np.zeros(nodes, np.int64), 0
    for first in np.unique(component, return_index=True)[1]:
        order = csgraph.breadth_first_order(both, first, directed=False, return_predecessors=False)
        place[order] = np.arange(done, done + len(order))
        done += len(order)
    return place // CLUSTER


def run(options: argparse.Namespace) -> list[dict[str, Any]]:
    """All runs. CheckError where accuracies differ."""
    return gsampler_training.run(options, Replaced, options.algorithms, SYSTEMS)


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0, or 1 after a failed check."""
    return gsampler_training.main_of("nextdoor_training", _parser(), run, arguments)


def _parser() -> argparse.ArgumentParser:
    parser = parser_of("benchmarks.research.nextdoor_training", __doc__, 5)
    parser.add_argument("--nodes", type=int, default=4000, help="rows of a hop of FastGCN, LADIES")
    parser.add_argument("--algorithms", nargs="+", choices=ALGORITHMS, default=ALGORITHMS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
