"""``GraphSAINTEdgeSampler`` and ``GraphSAINTRandomWalkSampler`` in the places of PyG's."""

from __future__ import annotations

from typing import Any

import torch
from torch_geometric.data import Data

from pygsampler._core.checks import integer
from pygsampler._core.limits import MAX_EPOCH
from pygsampler._loading.saint import Draws, Edges, Walks
from pygsampler.programs import program
from pygsampler.pyg.sampler import Sampler
from pygsampler.pyg.shadow import check_data
from pygsampler.pyg.whole import SubgraphLoader, by_source, put

__all__ = ["GraphSAINTEdgeSampler", "GraphSAINTRandomWalkSampler"]

_MOST = (1 << 31) - 1
# No training comes to this epoch.
_EPOCH = MAX_EPOCH


class _Loader(SubgraphLoader):
    """What both have: subgraphs of vertices that something else draws, and their norms."""

    def __init__(
        self,
        data: Any,
        draws: Draws,
        num_steps: int,
        sample_coverage: int,
        seed: int | None,
        kwargs: dict[str, Any],
    ) -> None:
        self.num_steps = integer(num_steps, "num_steps", 0, _MOST)
        self.sample_coverage = integer(sample_coverage, "sample_coverage", 0, _MOST)
        sampler = Sampler(data, _among(seed=seed), device="cpu")
        sampler.set_seed(seed)
        self.data = data
        made = _Made(data, sampler, draws, self.sample_coverage)
        super().__init__(range(self.num_steps), sampler, made, batch_size=1, **kwargs)


class GraphSAINTRandomWalkSampler(_Loader):
    """GraphSAINT's walks in the place of ``torch_geometric.loader.GraphSAINTRandomWalkSampler``.

    It does not need torch-sparse. A batch is a ``Data`` of the distinct nodes that walks along the
    edges meet, and of all edges among them. A walk that finds no edge stays where it is.

    Parameters
    ----------
    data : Data
        Homogeneous, with ``edge_index`` or ``adj_t``, and without ``node_norm`` and ``edge_norm``.
    batch_size : int
        Walks of a batch, from uniform nodes with replacement.
    walk_length : int
        Steps of a walk.
    num_steps : int
        Batches of an epoch.
    sample_coverage : int
        Above 0 batches have ``node_norm`` and ``edge_norm``, counted in batches of no epoch that
        have so many times the nodes of ``data``.
    save_dir, log
        Accepted for compatibility: norms are counted by each loader.
    seed : int, optional
        64-bit seed of the random numbers, which are those of ``NeighborLoader`` of this module in
        all respects. Default: torch's.
    **kwargs
        Those of torch's ``DataLoader``.

    Notes
    -----
    Of S batches, C(v) of which have v and C(u, v) its edge from u, ``node_norm`` is S / (N C(v)),
    and ``edge_norm`` is C(v) / C(u, v), at most 1e4: with it a sum over the in-edges of v is, in
    the mean, that over all of them, as in the paper; PyG has C(u) above. Where a count is 0,
    ``edge_norm`` is 0.1, and C(v) counts as 0.1.

    Raises
    ------
    TypeError, ValueError
        For arguments of a wrong type or value, naming the argument.
    NotImplementedError
        For HeteroData.
    """

    def __init__(
        self,
        data: Any,
        batch_size: int,
        walk_length: int,
        num_steps: int = 1,
        sample_coverage: int = 0,
        save_dir: str | None = None,
        log: bool = True,
        *,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        _check(data)
        walks = integer(batch_size, "batch_size", 1, _MOST)
        self.walk_length = integer(walk_length, "walk_length", 1, _MOST)
        draws = Walks(walks, self.walk_length)
        super().__init__(data, draws, num_steps, sample_coverage, seed, kwargs)


class GraphSAINTEdgeSampler(_Loader):
    """GraphSAINT's edges in the place of ``torch_geometric.loader.GraphSAINTEdgeSampler``.

    It does not need torch-sparse. A batch is a ``Data`` of the distinct ends of ``batch_size``
    draws of edges, with replacement, u to v by 1 / out-degree(u) + 1 / in-degree(v), as in the
    paper and in DGL, where PyG has the sum of degrees; and of all edges among them.

    Parameters and the rest are those of ``GraphSAINTRandomWalkSampler``, but for ``walk_length``.
    """

    def __init__(
        self,
        data: Any,
        batch_size: int,
        num_steps: int = 1,
        sample_coverage: int = 0,
        save_dir: str | None = None,
        log: bool = True,
        *,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        _check(data)
        draws = Edges(integer(batch_size, "batch_size", 1, _MOST))
        super().__init__(data, draws, num_steps, sample_coverage, seed, kwargs)


def _check(data: Any) -> None:
    check_data(data)
    for name in ("node_norm", "edge_norm"):
        if name in data:
            raise ValueError(f"data: expected no attribute {name}, got one; rename it")


@program
def _among(A: Any, seeds: Any) -> Any:
    return A.induce(seeds.unique())


class _Made:
    """Makes a batch of the number of its step; workers get it without the loader."""

    def __init__(self, data: Data, sampler: Sampler, draws: Draws, coverage: int) -> None:
        self._data, self._sampler, self._draws = data, sampler, draws
        self._norms = self._counted(coverage) if coverage else None

    def __call__(self, steps: Any) -> Data:
        numbers = torch.as_tensor(steps, dtype=torch.int64)
        nodes, row, col, edges = self._among(*self._sampler._identity.of(numbers))
        order = by_source(row, col, len(nodes))
        row, col, edges = row[order], col[order], edges[order]
        batch = self._data.__class__()
        batch.num_nodes = len(nodes)
        batch.edge_index = torch.stack([row, col])
        batch.n_id, batch.e_id = nodes, edges
        put(batch, self._data, nodes, edges, ())
        if self._norms is not None:
            node, edge = self._norms
            batch.node_norm, batch.edge_norm = node[nodes], edge[edges]
        return batch

    def _among(self, epoch: int, number: int) -> tuple[torch.Tensor, ...]:
        there = self._draws(self._sampler.graph, self._sampler.seed, epoch, number)
        made: Any = self._sampler._batch(there, epoch, number)
        return made.nodes.long(), *made.edge_index, made.edge_ids.long()

    def _counted(self, coverage: int) -> tuple[torch.Tensor, torch.Tensor]:
        count, edge_count = torch.zeros(self._sampler.num_nodes), torch.zeros(self._data.num_edges)
        target = torch.zeros(self._data.num_edges, dtype=torch.int64)
        batches = met = 0
        while met < coverage * len(count):
            nodes, _, col, edges = self._among(_EPOCH, batches)
            count[nodes] += 1
            edge_count[edges] += 1
            target[edges] = nodes[col]
            met += len(nodes)
            batches += 1
        edge_norm = (count[target] / edge_count).clamp(max=1e4)
        edge_norm[edge_count == 0] = 0.1
        count[count == 0] = 0.1
        return batches / count / len(count), edge_norm
