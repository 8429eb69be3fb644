"""``NeighborSampler``: PyG's older loader, whose batches are ``(batch_size, n_id, adjs)``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch_geometric.data import Data
from torch_geometric.data.data import BaseData
from torch_geometric.loader.neighbor_sampler import Adj, EdgeIndex

from pygsampler._adapters.batch_number import BatchNumber
from pygsampler._adapters.engine_batch import engine_batch
from pygsampler._batch.induced_edges import edge_rows
from pygsampler._batch.repeated_seeds import index_with_repeats, rows_with_repeats, select_rows
from pygsampler._engine.checks import describe
from pygsampler._graph.converters import csr_arrays
from pygsampler._graph.graph import Graph, is_homogeneous
from pygsampler.pyg.graph import graph_of
from pygsampler.pyg.loader_inputs import node_ids
from pygsampler.pyg.options import flag, num_neighbors
from pygsampler.pyg.order import SeededLoader
from pygsampler.samplers import neighbor

__all__ = ["NeighborSampler"]


class NeighborSampler(SeededLoader):
    """``torch_geometric.loader.NeighborSampler``, without torch-sparse: change the import only.

        from pygsampler.pyg.loader import NeighborSampler

        loader = NeighborSampler(edge_index, sizes=[15, 10], node_idx=train, batch_size=1024)
        for batch_size, n_id, adjs in loader:
            ...

    A batch has the number of its seeds, the ids of all nodes, the seeds first, and a bipartite
    graph for each layer of a model, the outermost first: ``(edge_index, e_id, size)``, whose
    targets are the first nodes of its sources. Each hop draws neighbors of all nodes reached so
    far. With one number in ``sizes`` it is a single graph instead of a list, as in PyG.

    Parameters
    ----------
    edge_index : int32 or int64 tensor, shape [2, E], SparseTensor, sparse CSR tensor, or Graph
        The edges, from row 0 to row 1. The rows of a matrix, as ``ToSparseTensor`` stores it in
        ``adj_t``, are targets: batches then have ``(adj_t, e_id, size)``, with matrices of that
        kind.
    sizes : list of int
        In-neighbors to draw for each node, ``sizes[0]`` for the seeds; -1 takes all.
    node_idx : int tensor or mask, optional
        The seeds. Default: all nodes.
    num_nodes : int, optional
        Default: the largest id plus one, or the length of a mask.
    return_e_id : bool
        False: ``e_id`` is None.
    transform : callable, optional
        A function; the batch is the result of ``transform(batch_size, n_id, adjs)``.
    seed : int, optional
        64-bit seed of order and samples, as for ``NeighborLoader``.
    device : str or torch.device, optional
        The device that samples and has the batches. Default: the CPU, as in PyG.
    **kwargs
        Options of torch's ``DataLoader``.

    Raises
    ------
    TypeError, ValueError, IndexError
        For arguments of a wrong type or value, naming the argument.
    """

    def __init__(
        self,
        edge_index: Any,
        sizes: Sequence[int],
        node_idx: torch.Tensor | None = None,
        num_nodes: int | None = None,
        return_e_id: bool = True,
        transform: Callable[..., Any] | None = None,
        *,
        seed: int | None = None,
        device: Any = "cpu",
        **kwargs: Any,
    ) -> None:
        self.edge_index, self.node_idx, self.num_nodes = edge_index, node_idx, num_nodes
        self.sizes, self.transform = sizes, transform
        self.return_e_id = flag(return_e_id, "return_e_id")
        graph, self._matrix = _graph(edge_index, node_idx, num_nodes)
        self._graph = graph.to(device)
        self._sampler = neighbor.PGSampler(num_neighbors(sizes, "sizes")[::-1] or [0], seed=seed)
        seeds = node_ids(node_idx, "node_idx", graph.num_nodes)
        super().__init__(seeds.tolist(), BatchNumber(seed), self.sample, **kwargs)

    def sample(self, batch: Any) -> Any:
        """The batch of these seeds, ids of nodes."""
        seeds = torch.as_tensor(batch, dtype=torch.int64)
        fanouts = num_neighbors(self.sizes, "sizes")[::-1]
        # Assigned sizes or seeds take effect here.
        self._sampler = self._sampler._with(fanouts=fanouts or [0])
        epoch, number = self._numbers.number(seeds)
        if self._sampler.seed != self._numbers.seed:
            self._sampler = self._sampler.with_seed(self._numbers.seed)
        made = engine_batch(self._sampler, self._graph, seeds, epoch, number)
        n_id = made.input_nodes.long()
        adjs = [self._adjacency(*layer) for layer in _layers(made)] if fanouts else []
        more = len(seeds) - made._distinct_seeds()
        if more:
            n_id = torch.cat([made.output_nodes.long(), n_id[len(seeds) - more :]])
        out = len(seeds), n_id, adjs[0] if len(adjs) == 1 else adjs
        return out if self.transform is None else self.transform(*out)

    def _adjacency(
        self, indptr: torch.Tensor, source: torch.Tensor, edge: torch.Tensor, size: tuple[int, int]
    ) -> EdgeIndex | Adj:
        e_id = edge if self.return_e_id else None
        if self._matrix is None:
            target = edge_rows(indptr.diff(), len(source))
            return EdgeIndex(torch.stack([source, target]), e_id, size)
        return Adj(self._matrix(indptr, source, edge, size[::-1]), e_id, size)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(sizes={self.sizes})"


Layer = tuple[torch.Tensor, torch.Tensor, torch.Tensor, tuple[int, int]]


def _layers(batch: Any) -> Iterator[Layer]:
    """Yields the starts of targets, the sources and the ids of edges, and the size of layers.

    Each seed has a row of its own; of one that is there twice with the same edges.
    """
    distinct = batch._distinct_seeds()
    seeds, more = batch.output_index.long(), len(batch.output_nodes) - distinct
    place = index_with_repeats(seeds, distinct, len(batch.input_nodes)) if more else seeds
    for block in batch.blocks:
        indptr, source, edge = block.indptr.long(), block.indices.long(), block.edge_ids
        size = block.num_src_nodes + more, block.num_dst_nodes + more
        if more:
            rows = rows_with_repeats(seeds, distinct, block.num_dst_nodes)
            indptr, edges = select_rows(indptr, rows)
            source, edge = place[source[edges]], edge[edges]
        yield indptr, source, edge, size


def _graph(edge_index: Any, node_idx: Any, num_nodes: int | None) -> tuple[Graph, Any]:
    """Returns the in-edges, and a factory of matrices of the argument's kind, or None for edges."""
    if is_homogeneous(edge_index):
        return edge_index, None
    if isinstance(edge_index, BaseData):
        raise TypeError(
            f"edge_index: expected edges, got a {type(edge_index).__name__}; give data.edge_index"
        )
    if hasattr(edge_index, "csr") or (
        isinstance(edge_index, torch.Tensor) and edge_index.layout != torch.strided
    ):
        indptr, source, values = csr_arrays(edge_index, "edge_index")
        graph = Graph.from_csc(indptr, source, num_nodes=edge_index.size(1))
        return graph, _Matrix(hasattr(edge_index, "csr"), values)
    if not isinstance(edge_index, torch.Tensor) or edge_index.dim() != 2 or len(edge_index) != 2:
        shape = getattr(edge_index, "shape", describe(edge_index))
        raise TypeError(
            "edge_index: expected a tensor of shape [2, E], a sparse matrix or a Graph, got "
            f"{shape}"
        )
    if num_nodes is None:
        num_nodes = int(edge_index.max()) + 1 if edge_index.numel() else 0
        if isinstance(node_idx, torch.Tensor) and node_idx.numel():
            masks = node_idx.dtype == torch.bool
            num_nodes = len(node_idx) if masks else max(num_nodes, int(node_idx.max()) + 1)
    return graph_of(Data(edge_index=edge_index, num_nodes=num_nodes), "cpu"), None


class _Matrix:
    """Creates matrices of the kind of a matrix, with its values."""

    def __init__(self, of_torch_sparse: bool, values: torch.Tensor | None) -> None:
        self._of_torch_sparse, self._values = of_torch_sparse, values

    def __call__(
        self, indptr: torch.Tensor, source: torch.Tensor, edge: torch.Tensor, size: tuple[int, int]
    ) -> Any:
        values = None if self._values is None else self._values[edge.to(self._values.device)]
        if self._of_torch_sparse:
            from torch_geometric.typing import SparseTensor

            return SparseTensor(
                rowptr=indptr, col=source, value=values, sparse_sizes=size, is_sorted=True
            )
        if values is None:
            values = torch.ones(len(source), device=source.device)
        return torch.sparse_csr_tensor(indptr, source, values, size, check_invariants=False)
