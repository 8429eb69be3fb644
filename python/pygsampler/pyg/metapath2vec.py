"""``MetaPath2Vec``: PyG's, with walks of this engine."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader
from torch_geometric import nn
from torch_geometric.typing import EdgeType, NodeType

from pygsampler._engine.checks import integer
from pygsampler._graph.graph import Graph
from pygsampler.pyg.options import check_range
from pygsampler.pyg.walk_loader import WalkSampler, loader, windows
from pygsampler.walks.random_walk import RandomWalk

__all__ = ["MetaPath2Vec"]

_TYPE = "type"


class _HeteroWalk(RandomWalk):
    """A walk along a metapath that names each type there is: also one without edges."""

    __slots__ = ()

    def sampled_graph(self, graph: Graph) -> Graph:
        """Returns the graph by the types of its edges, which ``graph`` caches."""
        walked: Graph = graph._source._walked("out", None, _TYPE, max(self.plan["metapath"]) + 1)
        return walked


class MetaPath2Vec(nn.MetaPath2Vec):  # type: ignore[misc]
    """``torch_geometric.nn.MetaPath2Vec`` with walks of ``pygsampler.RandomWalk``.

    Loss, test and embedding are PyG's; the device of the model walks: ``loader()`` of a model on a
    GPU walks there, unless it has workers or ``pin_memory``.

    Parameters
    ----------
    edge_index_dict : dict of (str, str, str) to int tensors, shape [2, E]
        Row 0 are nodes of the first type, row 1 of the last.
    embedding_dim : int
        The width of the embedding.
    metapath : list of (str, str, str)
        The edge types to take, step by step, repeated for longer walks: at most 64.
    walk_length : int
        The steps of a walk. After the end of a walk that stops early comes the dummy node, the last
        row of the embedding.
    context_size : int
        The number of successive nodes that are trained on together.
    walks_per_node : int
        Walks from each node of a batch.
    num_negative_samples : int
        Walks of random nodes, of the types of the metapath, for each walk.
    num_nodes_dict : dict of str to int, optional
        The number of nodes of each type; by default the largest ids plus one.
    sparse : bool
        Sparse gradients of the embedding.
    seed : int, optional
        As for ``Node2Vec``.

    Raises
    ------
    TypeError, ValueError, IndexError
        For arguments of another type, shape or value; errors of a metapath are PyG's.

    Notes
    -----
    Source: metapath2vec (Dong et al., 2017).
    """

    def __init__(
        self,
        edge_index_dict: dict[EdgeType, Tensor],
        embedding_dim: int,
        metapath: list[EdgeType],
        walk_length: int,
        context_size: int,
        walks_per_node: int = 1,
        num_negative_samples: int = 1,
        num_nodes_dict: dict[NodeType, int] | None = None,
        sparse: bool = False,
        *,
        seed: int | None = None,
    ) -> None:
        integer(walk_length, "walk_length", 1)
        integer(context_size, "context_size", 1, walk_length + 1)
        super().__init__(
            edge_index_dict,
            embedding_dim,
            metapath,
            walk_length,
            context_size,
            integer(walks_per_node, "walks_per_node", 1),
            integer(num_negative_samples, "num_negative_samples", 0),
            num_nodes_dict,
            sparse,
        )
        # The graph that PyG would walk on, which our walks do not need.
        del self.rowptr_dict, self.col_dict, self.rowcount_dict
        types = list(dict.fromkeys(metapath))
        self._path = [types.index(each) for each in metapath]
        self._walker = WalkSampler(
            self._homogeneous_graph(edge_index_dict, types), seed, _HeteroWalk
        )
        self._walker.check(walk_length, metapath=self._path, edge_types=_TYPE)

    def _homogeneous_graph(
        self, edge_index_dict: dict[EdgeType, Tensor], types: list[EdgeType]
    ) -> Graph:
        """All nodes of the metapath in one space of ids, those of the embedding."""
        ends: tuple[list[Tensor], list[Tensor]] = [], []
        for edge_type in types:
            edges = edge_index_dict[edge_type].cpu().long()
            for row, kind in enumerate((edge_type[0], edge_type[-1])):
                where = f"edge_index_dict[{edge_type!r}][{row}]"
                check_range(edges[row], where, self.num_nodes_dict[kind])
                ends[row].append(edges[row] + self.start[kind])
        counts = torch.tensor([len(part) for part in ends[0]])
        each = torch.arange(len(types), dtype=torch.int32).repeat_interleave(counts)
        src, dst = (torch.cat(parts) for parts in ends)
        return Graph.from_coo(src, dst, num_nodes=self.dummy_idx, edge_data={_TYPE: each})

    def loader(self, **kwargs: Any) -> DataLoader[Any]:
        """Returns a loader over all nodes of the metapath's first type.

        It is torch's ``DataLoader`` with the arguments ``kwargs``. A batch is a pair of tensors:
        runs of ``context_size`` nodes of walks, and runs of random nodes.
        """
        count, device = self.num_nodes_dict[self.metapath[0][0]], self.embedding.weight.device
        return loader(self._walker.numbers, count, self._sampled, device, kwargs)

    def _pos_sample(self, batch: Tensor) -> Tensor:
        return self._positive(batch, batch.device)

    def _positive(self, batch: Tensor, device: torch.device) -> Tensor:
        seeds = batch.repeat(self.walks_per_node) + self.start[self.metapath[0][0]]
        options = {"metapath": self._path, "edge_types": _TYPE}
        nodes = self._walker.walk(seeds, device, self.walk_length, **options).nodes
        return windows(nodes.masked_fill(nodes < 0, self.dummy_idx), self.context_size)

    def _neg_sample(self, batch: Tensor) -> Tensor:
        count = len(batch) * self.walks_per_node * self.num_negative_samples
        first = self.metapath[0][0]
        steps = [batch.repeat(count // max(len(batch), 1)) + self.start[first]]
        for step in range(self.walk_length):
            kind = self.metapath[step % len(self.metapath)][-1]
            low, high = self.start[kind], self.end[kind]
            steps.append(torch.randint(low, high, (count,), device=batch.device))
        return windows(torch.stack(steps, dim=1), self.context_size)

    def _sampled(self, batch: Tensor, device: torch.device) -> tuple[Tensor, Tensor]:
        positive = self._positive(batch, device)
        with self._walker.negatives(device):
            return positive, self._neg_sample(batch.to(device))
