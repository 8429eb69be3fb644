"""The two models that are compared: GraphSAGE, and an MLP that sees no edges."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional as F

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pygsampler.converted import TorchBlock

HIDDEN = 128
DROPOUT = 0.5


class MeanConv(nn.Module):
    """A layer of GraphSAGE with the mean aggregator (Hamilton, Ying and Leskovec, 2017).

    A destination's output is ``own`` of its input plus the mean of ``heard`` of its sampled
    in-neighbours' inputs; zero in place of the mean where there are none.
    """

    def __init__(self, own: nn.Module, heard: nn.Module, size: int) -> None:
        super().__init__()
        self.own = own
        self.heard = heard
        self.bias = nn.Parameter(torch.zeros(size))

    def forward(self, block: TorchBlock, x: Tensor) -> Tensor:
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
        self.first = MeanConv(word_sum(num_words), word_sum(num_words), HIDDEN)
        self.second = MeanConv(linear(num_classes), linear(num_classes), num_classes)

    def forward(self, blocks: Sequence[TorchBlock], words: Tensor) -> Tensor:
        """words: [num_src_nodes of blocks[0], longest] -> scores [num_dst_nodes, num_classes]."""
        x = F.relu(self.first(blocks[0], words))
        x = F.dropout(x, DROPOUT, self.training)
        scores: Tensor = self.second(blocks[1], x)
        return scores


class MLP(nn.Module):
    """The same layers without what is heard from neighbours."""

    def __init__(self, num_words: int, num_classes: int) -> None:
        super().__init__()
        self.first = word_sum(num_words)
        self.bias = nn.Parameter(torch.zeros(HIDDEN))
        self.second = nn.Linear(HIDDEN, num_classes)

    def forward(self, words: Tensor) -> Tensor:
        """words: [batch, longest] -> scores [batch, num_classes]."""
        x = F.relu(self.first(words) + self.bias)
        scores: Tensor = self.second(F.dropout(x, DROPOUT, self.training))
        return scores


def word_sum(num_words: int) -> nn.EmbeddingBag:
    """A linear layer for indicators of words that adds rows up instead of multiplying by zeros.

    The row after the last word is the padding and counts for nothing.
    """
    layer = nn.EmbeddingBag(num_words + 1, HIDDEN, mode="sum", padding_idx=num_words)
    bound = num_words**-0.5  # As nn.Linear begins.
    nn.init.uniform_(layer.weight, -bound, bound)
    return layer


def linear(num_classes: int) -> nn.Linear:
    return nn.Linear(HIDDEN, num_classes, bias=False)
