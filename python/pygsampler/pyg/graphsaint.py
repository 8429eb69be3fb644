"""GraphSAINT's samplers in the places of PyG's."""

from __future__ import annotations

from typing import Any

import torch
from torch_geometric.data import Data

from pygsampler._adapters.graphsaint import (
    CountedNorms,
    EdgeDraws,
    ExactNorms,
    SaintSubgraphs,
    WalkDraws,
    by_out_degree,
)
from pygsampler._batch.minibatch import as_torch
from pygsampler._engine.checks import integer
from pygsampler._graph.graph import Graph
from pygsampler.pyg.base_sampler import Sampler
from pygsampler.pyg.order import SeededLoader
from pygsampler.pyg.shadow import check_data, fill_batch

__all__ = ["GraphSAINTEdgeSampler", "GraphSAINTNodeSampler", "GraphSAINTRandomWalkSampler"]

_MOST = (1 << 31) - 1


class _SaintLoader(SeededLoader):
    """Base class of the loaders: each step is a batch of a program, with norms.

    ``N``, ``E``, ``num_steps``, ``sample_coverage``, ``save_dir``, ``log``, ``node_norm`` and
    ``edge_norm`` are PyG's attributes.

    Parameters
    ----------
    data : Data
        The graph.
    program : Program
        The program of a batch.
    num_steps : int
        Batches of an epoch.
    seed : int or None
        See ``NeighborLoader``.
    norm_options : tuple
        ``sample_coverage``, ``save_dir`` and ``log`` of the loader.
    kwargs : dict
        Arguments of torch's ``DataLoader``.
    """

    def __init__(
        self,
        data: Any,
        program: Any,
        num_steps: int,
        seed: int | None,
        norm_options: tuple[int, Any, Any],
        kwargs: dict[str, Any],
    ) -> None:
        check_data(data)
        coverage, self.save_dir, self.log = norm_options
        self.sample_coverage = integer(coverage, "sample_coverage", 0, _MOST)
        for name in ("node_norm", "edge_norm"):
            if name in data:
                raise ValueError(f"data: expected no attribute {name}, got one; rename it")
        self.num_steps = integer(num_steps, "num_steps", 0, _MOST)
        sampler = Sampler(data, program, device="cpu")
        sampler.set_seed(seed)
        self.data = data
        self.N, self.E = sampler.num_nodes, data.num_edges
        self._norms = self._make_norms(sampler.graph, program.with_seed(sampler.seed))
        collate = _SaintCollate(data, sampler, self._norms)
        steps = range(self.num_steps)
        super().__init__(steps, sampler._identity, collate, batch_size=1, **kwargs)

    def _make_norms(self, graph: Graph, program: Any) -> ExactNorms | CountedNorms | None:
        """Returns what gives batches their norms; None: they have none."""
        coverage = self.sample_coverage
        return CountedNorms(graph, program, coverage) if coverage else None

    @property
    def node_norm(self) -> torch.Tensor:
        """The norm of every node of ``data``; AttributeError where batches have none."""
        return self._require_norms()[0]

    @property
    def edge_norm(self) -> torch.Tensor:
        """The norm of every edge of ``data``; AttributeError where batches have none."""
        return self._require_norms()[1]

    def _require_norms(self) -> tuple[torch.Tensor, torch.Tensor]:
        if self._norms is None:
            raise AttributeError(
                f"{type(self).__name__}: expected sample_coverage above 0 for node_norm and "
                f"edge_norm, got {self.sample_coverage}"
            )
        return self._norms.of_graph()


class GraphSAINTNodeSampler(_SaintLoader):
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
        self._budget = integer(batch_size, "batch_size", 1, _MOST)
        program = by_out_degree(budget=self._budget, isolated=False, seed=seed)
        super().__init__(data, program, num_steps, seed, (sample_coverage, save_dir, log), kwargs)

    def _make_norms(self, graph: Graph, program: Any) -> ExactNorms:
        return ExactNorms(graph, self._budget)


class GraphSAINTRandomWalkSampler(_SaintLoader):
    """Replaces ``torch_geometric.loader.GraphSAINTRandomWalkSampler``: GraphSAINT by walks.

    It does not need torch-sparse. A batch is a ``Data`` of the distinct nodes of walks along the
    edges, and of all edges among them. A walk that finds no edge stays at its node.

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
        64-bit seed of the random numbers, as for ``NeighborLoader`` of this module. Default:
        torch's.
    **kwargs
        Arguments of torch's ``DataLoader``.

    Notes
    -----
    If C(v) of S batches have v, and C(u, v) have its edge from u, ``node_norm`` is S / (N C(v)),
    and ``edge_norm`` is C(v) / C(u, v), at most 1e4: with it a sum over the sampled in-edges of v
    is, in the mean, the sum over all of them, as in the paper; PyG has C(u) as the numerator. If a
    count is 0, ``edge_norm`` is 0.1, and C(v) counts as 0.1.

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
        walks = integer(batch_size, "batch_size", 1, _MOST)
        self.walk_length = integer(walk_length, "walk_length", 1, _MOST)
        program = SaintSubgraphs(WalkDraws(walks, self.walk_length), seed)
        super().__init__(data, program, num_steps, seed, (sample_coverage, save_dir, log), kwargs)


class GraphSAINTEdgeSampler(_SaintLoader):
    """Replaces ``torch_geometric.loader.GraphSAINTEdgeSampler``: GraphSAINT by edges.

    It does not need torch-sparse. A batch is a ``Data`` of the distinct ends of ``batch_size``
    draws of edges, with replacement, u to v by 1 / out-degree(u) + 1 / in-degree(v), as in the
    paper and in DGL (PyG has the sum of degrees), and of all edges among them.

    Norms and errors are those of ``GraphSAINTRandomWalkSampler``.

    Parameters
    ----------
    batch_size : int
        Draws of edges of a batch.
    data, num_steps, sample_coverage, save_dir, log, seed, **kwargs
        The arguments of ``GraphSAINTRandomWalkSampler``.
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
        draws = EdgeDraws(integer(batch_size, "batch_size", 1, _MOST))
        program = SaintSubgraphs(draws, seed)
        super().__init__(data, program, num_steps, seed, (sample_coverage, save_dir, log), kwargs)


class _SaintCollate:
    """Makes a batch of the number of its step; workers get it without the loader."""

    def __init__(self, data: Data, sampler: Sampler, norms: Any) -> None:
        self._data, self._sampler, self._norms = data, sampler, norms

    def __call__(self, steps: Any) -> Data:
        numbers = torch.as_tensor(steps, dtype=torch.int64, device="cpu")
        identity = self._sampler._identity.number(numbers)
        sampled: Any = as_torch(self._sampler._result(numbers[:0], identity))
        nodes = sampled.nodes.long()
        batch = self._data.__class__()
        batch.num_nodes = len(nodes)
        src, dst = sampled.edge_index
        fill_batch(batch, self._data, nodes, src, dst, sampled.edge_ids.long())
        if self._norms is not None:
            norms = self._norms.of_batch(nodes, *batch.edge_index, batch.e_id)
            batch.node_norm, batch.edge_norm = norms
        return batch
