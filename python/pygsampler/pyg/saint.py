"""``GraphSAINTNodeSampler`` in the place of PyG's."""

from __future__ import annotations

from typing import Any

import torch
from torch_geometric.data import Data

from pygsampler._core.checks import integer
from pygsampler.programs import program
from pygsampler.pyg.sampler import Sampler
from pygsampler.pyg.shadow import check_data
from pygsampler.pyg.whole import SubgraphLoader, by_source, put

__all__ = ["GraphSAINTNodeSampler"]

_MOST = (1 << 31) - 1


class GraphSAINTNodeSampler(SubgraphLoader):
    """GraphSAINT's node sampler in the place of ``torch_geometric.loader.GraphSAINTNodeSampler``.

    It does not need torch-sparse. A batch is a ``Data`` of the distinct nodes among ``batch_size``
    draws, with replacement, by out-degree, and of all edges among them.

    Parameters
    ----------
    data : Data
        Homogeneous, with ``edge_index`` or ``adj_t``, and without ``node_norm`` and ``edge_norm``.
    batch_size : int
        Draws of a batch.
    num_steps : int
        Batches of an epoch.
    sample_coverage, save_dir, log
        Accepted for compatibility: the norms are computed, not estimated by sampling beforehand.
    seed : int, optional
        64-bit seed of the random numbers, which are those of ``NeighborLoader`` of this module in
        all respects. Default: torch's.
    **kwargs
        Those of torch's ``DataLoader``.

    Notes
    -----
    With q(v) = out-degree / edges, n draws and N nodes, v is in a batch by the chance p(v) =
    1 - (1 - q(v))^n, and u and v both are by p(u, v) = p(u) + p(v) - 1 + (1 - q(u) - q(v))^n, p(u)
    for a loop. ``node_norm`` is 1 / (N p(v)), by which a sum over the nodes of a batch is, in the
    mean, the mean over all that can be drawn. ``edge_norm`` of u to v is p(v) / p(u, v), by which a
    sum over the in-edges of a node that is there is, in the mean, that over all of them, as in the
    paper; PyG has p(u) above. Both are float32. Batches have ``n_id`` and ``e_id``, ids in
    ``data``, too.

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
        num_steps: int = 1,
        sample_coverage: int = 0,
        save_dir: str | None = None,
        log: bool = True,
        *,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        check_data(data)
        for name in ("node_norm", "edge_norm"):
            if name in data:
                raise ValueError(f"data: expected no attribute {name}, got one; rename it")
        budget = integer(batch_size, "batch_size", 1, _MOST)
        self.num_steps = integer(num_steps, "num_steps", 0, _MOST)
        sampler = Sampler(data, _by_out_degree(budget=budget, seed=seed), device="cpu")
        sampler.set_seed(seed)
        self.data = data
        steps = range(self.num_steps)
        super().__init__(steps, sampler, _Normed(data, sampler, budget), batch_size=1, **kwargs)


@program
def _by_out_degree(A: Any, seeds: Any, *, budget: int) -> Any:
    return A.induce(A.count(axis=1).draw(budget, replace=True).unique())


class _Normed:
    """Makes a batch of the number of its step; workers get it without the loader."""

    def __init__(self, data: Data, sampler: Sampler, budget: int) -> None:
        self._data, self._sampler, self._budget = data, sampler, budget
        sources = sampler.graph.indices.torch().long()
        self._chance = torch.bincount(sources, minlength=sampler.num_nodes).double()
        self._chance /= max(len(sources), 1)

    def __call__(self, steps: Any) -> Data:
        numbers = torch.as_tensor(steps, dtype=torch.int64)
        epoch, number = self._sampler._identity.of(numbers)
        sampled: Any = self._sampler._batch(numbers[:0], epoch, number)
        nodes = sampled.nodes.long()
        row, col = sampled.edge_index
        order = by_source(row, col, len(nodes))
        row, col, edges = row[order], col[order], sampled.edge_ids.long()[order]
        batch = self._data.__class__()
        batch.num_nodes = len(nodes)
        batch.edge_index = torch.stack([row, col])
        batch.n_id, batch.e_id = nodes, edges
        put(batch, self._data, nodes, edges, ())
        q = self._chance[nodes]
        missed = self._missed(q)
        there = 1 - missed
        joint = there[row] + there[col] - 1 + self._missed(q[row] + q[col])
        joint = torch.where(row == col, there[row], joint)
        batch.node_norm = (1 / (self._sampler.num_nodes * there)).float()
        batch.edge_norm = (there[col] / joint).float()
        return batch

    def _missed(self, q: torch.Tensor) -> torch.Tensor:
        """The chance that no draw hits what has the share ``q``."""
        return torch.exp(self._budget * torch.log1p(-q.clamp(max=1)))
