"""The two models that are compared: GraphSAGE, and an MLP that sees no edges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pygsampler.torch import segment_reduce

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pygsampler._batch.block import Block

HIDDEN = 128
DROPOUT = 0.5


class Bags:
    """Words of nodes: those of row v are ``indices[indptr[v]:indptr[v + 1]]``."""

    def __init__(self, indptr: Tensor, indices: Tensor) -> None:
        self.indptr = indptr
        self.indices = indices

    @classmethod
    def from_words(cls, words: Tensor, num_words: int) -> Bags:
        """Returns bags of rows filled up with ``num_words``, which is no word: [rows, longest]."""
        kept = words < num_words
        indptr = words.new_zeros(len(words) + 1)
        torch.cumsum(kept.sum(1), 0, out=indptr[1:])
        return cls(indptr, words[kept])

    def __getitem__(self, index: slice) -> Bags:
        """The first rows, as of a tensor."""
        indptr = self.indptr[: index.stop + 1]
        return Bags(indptr, self.indices[: int(indptr[-1])])


class WordSum(nn.Module):
    """A linear layer for indicators of words that adds rows up instead of multiplying by zeros."""

    def __init__(self, num_words: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(num_words, HIDDEN))
        bound = num_words**-0.5  # The initial range of nn.Linear.
        nn.init.uniform_(self.weight, -bound, bound)

    def forward(self, bags: Bags) -> Tensor:
        """[rows] -> [rows, HIDDEN]."""
        return segment_reduce(self.weight, bags.indptr, bags.indices)


class MeanConv(nn.Module):
    """A layer of GraphSAGE with the mean aggregator (Hamilton, Ying and Leskovec, 2017).

    A destination's output is ``self_layer`` of its input plus the mean of ``heard`` of its sampled
    in-neighbors' inputs; zero instead of the mean if there are none.
    """

    def __init__(self, self_layer: nn.Module, heard: nn.Module, size: int) -> None:
        super().__init__()
        self.own = self_layer
        self.heard = heard
        self.bias = nn.Parameter(torch.zeros(size))

    def forward(self, block: Block, x: Any) -> Tensor:
        """x: [num_src_nodes, ...] -> [num_dst_nodes, size]."""
        # Transforming before the mean does every source once, not every edge.
        mean = block.mean(self.heard(x))
        # The destinations are the first sources.
        own: Tensor = self.own(x[: block.num_dst_nodes])
        return own + mean + self.bias


class GraphSAGE(nn.Module):
    """Two layers, for batches that were sampled with two fanouts."""

    def __init__(self, num_words: int, num_classes: int) -> None:
        super().__init__()
        self.num_words = num_words
        self.first = MeanConv(WordSum(num_words), WordSum(num_words), HIDDEN)
        self.second = MeanConv(linear(num_classes), linear(num_classes), num_classes)

    def forward(self, blocks: Sequence[Block], words: Tensor) -> Tensor:
        """words: [num_src_nodes of blocks[0], longest] -> scores [num_dst_nodes, num_classes]."""
        x = F.relu(self.first(blocks[0], Bags.from_words(words, self.num_words)))
        x = F.dropout(x, DROPOUT, self.training)
        scores: Tensor = self.second(blocks[1], x)
        return scores


class MLP(nn.Module):
    """The same layers without the messages of neighbors."""

    def __init__(self, num_words: int, num_classes: int) -> None:
        super().__init__()
        self.num_words = num_words
        self.first = WordSum(num_words)
        self.bias = nn.Parameter(torch.zeros(HIDDEN))
        self.second = nn.Linear(HIDDEN, num_classes)

    def forward(self, words: Tensor) -> Tensor:
        """words: [batch, longest] -> scores [batch, num_classes]."""
        x = F.relu(self.first(Bags.from_words(words, self.num_words)) + self.bias)
        scores: Tensor = self.second(F.dropout(x, DROPOUT, self.training))
        return scores


def linear(num_classes: int) -> nn.Linear:
    return nn.Linear(HIDDEN, num_classes, bias=False)
