"""``Node2Vec``: PyG's, with any p and q, and walks of this engine."""

# Annotations are no strings here: torch.jit.script reads those of ``pos_sample``.

from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader
from torch_geometric import nn
from torch_geometric.data import Data
from torch_geometric.utils.num_nodes import maybe_num_nodes

from pygsampler._engine.checks import integer
from pygsampler._graph.graph import Graph
from pygsampler.pyg.graph import graph_of
from pygsampler.pyg.walk_loader import WalkSampler, loader, windows

__all__ = ["Node2Vec"]


class Node2Vec(nn.Node2Vec):  # type: ignore[misc]
    """``torch_geometric.nn.Node2Vec`` for any ``p`` and ``q``, without pyg-lib and torch-cluster.

    Loss, test and embedding are PyG's; walks are walks of ``pygsampler.RandomWalk`` on the model's
    device. ``loader()`` of a model on a GPU walks there, unless it has workers or ``pin_memory``.
    The result of ``torch.jit.script`` embeds and has a loss, but does not sample.

    Parameters
    ----------
    edge_index : int32 or int64 tensor, shape [2, E], or Graph
        Row 0 are sources, row 1 targets: walks go from the former to the latter. A
        ``pygsampler.Graph`` is walked on as it is.
    embedding_dim : int
        The width of the embedding.
    walk_length : int
        The number of nodes of a walk, with the first. A walk without a further edge stays at its
        node.
    context_size : int
        The number of successive nodes that are trained on together.
    walks_per_node : int
        Walks from each node of a batch.
    p, q : float
        node2vec's return and in-out parameters, above 0.
    num_negative_samples : int
        Walks of random nodes for each walk.
    num_nodes : int, optional
        The number of nodes; by default the largest id of ``edge_index`` plus one.
    sparse : bool
        Sparse gradients of the embedding.
    prob : str, optional
        The name of an edge array, if ``edge_index`` is a Graph: weights to walk by.
    seed : int, optional
        64-bit seed of order, walks and negatives of the loader. They depend on nothing else: epochs
        are counted. Default: torch's initial seed, so ``torch.manual_seed`` before an epoch repeats
        it.

    Raises
    ------
    TypeError, ValueError, IndexError
        For arguments of another type, shape or value.

    Notes
    -----
    Source: node2vec (Grover and Leskovec, 2016).
    """

    def __init__(
        self,
        edge_index: Tensor | Graph,
        embedding_dim: int,
        walk_length: int,
        context_size: int,
        walks_per_node: int = 1,
        p: float = 1.0,
        q: float = 1.0,
        num_negative_samples: int = 1,
        num_nodes: int | None = None,
        sparse: bool = False,
        *,
        prob: str | None = None,
        seed: int | None = None,
    ) -> None:
        # Not PyG's, which asks for pyg-lib.
        torch.nn.Module.__init__(self)
        if not isinstance(edge_index, Graph):
            nodes = maybe_num_nodes(edge_index, num_nodes)
            edge_index = graph_of(Data(edge_index=edge_index, num_nodes=nodes))
        elif num_nodes not in (None, edge_index.num_nodes):
            raise ValueError(
                f"num_nodes: expected {edge_index.num_nodes}, as the graph has, got {num_nodes}"
            )
        self.num_nodes = edge_index.num_nodes
        self.EPS = 1e-15
        self.embedding_dim = embedding_dim
        self.context_size = integer(context_size, "context_size", 1)
        # PyG counts nodes up to here, and steps from here on.
        self.walk_length = integer(walk_length, "walk_length", self.context_size) - 1
        self.walks_per_node = integer(walks_per_node, "walks_per_node", 1)
        self.p, self.q, self.prob = p, q, prob
        self.num_negative_samples = integer(num_negative_samples, "num_negative_samples", 0)
        self._walker = WalkSampler(edge_index, seed)
        # Now: wrong options are wrong arguments.
        self._walker.check(self.walk_length, p=p, q=q, prob=prob)
        self.embedding = torch.nn.Embedding(self.num_nodes, embedding_dim, sparse=sparse)
        self.reset_parameters()

    def loader(self, **kwargs: Any) -> DataLoader[Any]:
        """Returns torch's ``DataLoader`` over all nodes, whose batches come from ``sample``.

        It has the arguments ``kwargs``.
        """
        device = self.embedding.weight.device
        return loader(self._walker.numbers, self.num_nodes, self._sample, device, kwargs)

    @torch.jit.ignore  # type: ignore[untyped-decorator]
    def pos_sample(self, batch: Tensor) -> Tensor:
        """Runs of ``context_size`` nodes of walks from ``batch``, int [N], on its device.

        Shape [walks_per_node * N * (walk_length - context_size + 1), context_size], ``walk_length``
        in nodes: those from the walks' first node on, then from the second.
        """
        return self._positive(batch, batch.device)

    def _positive(self, batch: Tensor, device: torch.device) -> Tensor:
        seeds = batch.repeat(self.walks_per_node)
        options = {"p": self.p, "q": self.q, "prob": self.prob}
        walks = self._walker.walk(seeds, device, self.walk_length, **options)
        return windows(walks.staying().to(batch.dtype), self.context_size)

    def _sample(self, batch: Tensor, device: torch.device) -> tuple[Tensor, Tensor]:
        positive = self._positive(batch, device)
        with self._walker.negatives(device):
            return positive, self.neg_sample(batch.to(device))
