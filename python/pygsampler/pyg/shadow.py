"""``ShaDowKHopSampler`` in the place of PyG's."""

from __future__ import annotations

from typing import Any

import torch
from torch_geometric.data import Batch, Data
from torch_geometric.sampler import NodeSamplerInput

from pygsampler._engine.checks import describe, integer
from pygsampler.pyg.graph import homogeneous
from pygsampler.pyg.loader_inputs import node_ids
from pygsampler.pyg.neighbor_sampler import PGSampler
from pygsampler.pyg.order import SeededLoader

__all__ = ["ShaDowKHopSampler"]

_MOST_HOPS, _MOST = 256, (1 << 31) - 1


class ShaDowKHopSampler(SeededLoader):
    """ShaDow (Zeng et al., 2021) replacing ``torch_geometric.loader.ShaDowKHopSampler``.

    It does not need torch-sparse. A batch is a ``Batch`` of one subgraph for each root: some hops
    around it, in each of which the nodes that the hop before reached draw neighbors, and all edges
    of ``data`` among these nodes. Subgraphs share neither nodes nor draws.

    Parameters
    ----------
    data : Data
        Homogeneous, with ``edge_index`` or ``adj_t``.
    depth : int
        The number of hops.
    num_neighbors : int
        In-neighbors to draw for each node in each hop; -1 takes all.
    node_idx : tensor, optional
        The roots: int32 or int64 ids, or a mask of bool. Default: all nodes.
    replace : bool
        Draw with replacement.
    seed : int, optional
        64-bit seed of the random numbers, as for ``NeighborLoader`` of this module. Default:
        torch's.
    **kwargs
        Arguments of torch's ``DataLoader``.

    Notes
    -----
    A batch has ``batch``, the root of each node; ``ptr``, the offset of the nodes of each root, in
    ascending order of ids; and ``root_n_id``, the positions of the roots. ``y`` has a row for each
    root, other attributes have rows for nodes and edges. In addition to PyG's attributes there are
    ``n_id`` and ``e_id``, ids in ``data``, and ``edge_index`` also if ``data`` has an ``adj_t``.

    Raises
    ------
    TypeError, ValueError, IndexError
        For arguments of a wrong type or value, naming the argument.
    NotImplementedError
        For HeteroData.
    """

    def __init__(
        self,
        data: Any,
        depth: int,
        num_neighbors: int,
        node_idx: torch.Tensor | None = None,
        replace: bool = False,
        *,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        check_data(data)
        self.depth = integer(depth, "depth", 0, _MOST_HOPS)
        self.num_neighbors = integer(num_neighbors, "num_neighbors", -1, _MOST)
        sampler = PGSampler(
            data,
            [self.num_neighbors] * self.depth,
            replace=replace,
            disjoint=True,
            subgraph_type="induced",
            seed=seed,
            device="cpu",
        )
        self.node_idx = node_ids(node_idx, "node_idx", sampler.num_nodes)
        self.data, self.replace = data, replace
        roots = self.node_idx.tolist()
        super().__init__(roots, sampler._identity, _Rooted(data, sampler), **kwargs)


class _Rooted:
    """Makes a batch of its roots; workers get it without the loader."""

    def __init__(self, data: Data, sampler: PGSampler) -> None:
        self._data, self._sampler = data, sampler

    def __call__(self, roots: Any) -> Batch:
        seeds = torch.as_tensor(roots, dtype=torch.int64)
        out = self._sampler.sample_from_nodes(NodeSamplerInput(None, seeds))
        # Each root's nodes by their ids, as PyG has them.
        order = (out.batch.long() * self._sampler.num_nodes + out.node.long()).argsort()
        place = torch.empty_like(order)
        place[order] = torch.arange(len(order))
        nodes, subgraph_ids = out.node[order].long(), out.batch[order].long()
        ptr = torch.zeros(len(seeds) + 1, dtype=torch.int64)
        torch.cumsum(torch.bincount(subgraph_ids, minlength=len(seeds)), 0, out=ptr[1:])
        row, col = place[out.row.long()], place[out.col.long()]
        batch = Batch(batch=subgraph_ids, ptr=ptr)
        # The roots were the first nodes.
        batch.root_n_id = place[: len(seeds)].clone()
        skip = "batch", "ptr", "root_n_id"
        fill_batch(batch, self._data, nodes, row, col, out.edge.long(), skip)
        y = self._data.get("y")
        if isinstance(y, torch.Tensor) and y.dim() and len(y) == self._data.num_nodes:
            batch.y = y[seeds.to(y.device)]
        return batch


def check_data(data: Any) -> None:
    """Raises TypeError or NotImplementedError unless ``data`` is a homogeneous Data."""
    homogeneous(data)
    if not isinstance(data, Data):
        raise TypeError(f"data: expected a torch_geometric.data.Data, got {describe(data)}")


def fill_batch(
    batch: Any,
    data: Any,
    nodes: torch.Tensor,
    src: torch.Tensor,
    dst: torch.Tensor,
    edges: torch.Tensor,
    skip: tuple[str, ...] = (),
) -> None:
    """Gives a batch of these nodes and edges their ids, and the attributes of ``data`` but some.

    Edges are ordered by their source, then by their target, as in PyG's batches.
    """
    order = (src.long() * len(nodes) + dst.long()).argsort(stable=True)
    edges = edges[order]
    batch.edge_index = torch.stack([src[order], dst[order]])
    batch.n_id, batch.e_id = nodes, edges
    for name, value in data:
        if name in ("edge_index", "adj_t", "num_nodes", *skip):
            continue
        if isinstance(value, torch.Tensor) and value.dim() and len(value) == data.num_nodes:
            value = value[nodes.to(value.device)]
        elif isinstance(value, torch.Tensor) and value.dim() and len(value) == data.num_edges:
            value = value[edges.to(value.device)]
        batch[name] = value
