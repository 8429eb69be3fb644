"""GraphSAGE, GCN and GAT for batches of ``pygsampler.torch.DataLoader``, each in two ways.

``plain`` is what a user writes with torch's own operations: rows of the inputs, a row for each
edge, ``index_add``. ``helpers`` are the reductions of blocks: the first layer reads the table of
features itself. Both have the same parameters and the same results.
"""

from __future__ import annotations

import itertools
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

FEATURES, HIDDEN, CLASSES, HEADS = 100, 256, 47, 4


class Model(nn.Module):
    """Layers over the blocks of a batch; ``table`` has the features of all vertices."""

    def __init__(self, hops: int, table: torch.Tensor, *, helpers: bool) -> None:
        super().__init__()
        self.helpers = helpers
        self.table = table
        sizes = [table.shape[1], *[HIDDEN] * (hops - 1), CLASSES]
        self.layers = nn.ModuleList(
            self.layer(a, b, last=b == CLASSES) for a, b in itertools.pairwise(sizes)
        )

    def layer(self, inputs: int, outputs: int, last: bool) -> nn.Module:
        raise NotImplementedError

    # True if helpers take the rows that the loader reads, not the table.
    takes_rows = False

    def forward(self, batch: Any) -> torch.Tensor:
        h = None
        if not self.helpers:
            h = self.table.index_select(0, batch.input_nodes)
        elif self.takes_rows:
            h = batch.x
        for place, (layer, block) in enumerate(zip(self.layers, batch.blocks, strict=True)):
            if h is None:
                h = layer.first(block, self.table, batch.input_nodes)
            else:
                h = layer(block, h) if self.helpers else layer.plain(block, h)
            if place + 1 < len(self.layers):
                h = F.relu(h)
        assert h is not None
        # Seeds are distinct: they are the first vertices, in their order.
        return h


class SageLayer(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.own = nn.Linear(inputs, outputs)
        self.neighbours = nn.Linear(inputs, outputs, bias=False)

    def _joined(self, own: torch.Tensor, mean: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.own(own)
        # Nobody else has it, and its gradient asks for none of its values.
        return out.addmm_(mean, self.neighbours.weight.t())

    def first(self, block: Any, table: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        return self._joined(*block.self_and_reduce(table, "mean", of=ids))

    def forward(self, block: Any, h: torch.Tensor) -> torch.Tensor:
        return self._joined(*block.self_and_reduce(h, "mean"))

    def plain(self, block: Any, h: torch.Tensor) -> torch.Tensor:
        src, dst = block.coo()
        sums = h.new_zeros((block.num_dst_nodes, h.shape[1]))
        sums = sums.index_add(0, dst, h.index_select(0, src))
        mean = sums / block.indptr.diff().clamp(min=1).unsqueeze(1)
        out: torch.Tensor = self.own(h[: block.num_dst_nodes]) + self.neighbours(mean)
        return out


class Sage(Model):
    """GraphSAGE with the mean (Hamilton and others, 2017)."""

    def layer(self, inputs: int, outputs: int, last: bool) -> nn.Module:
        return SageLayer(inputs, outputs)


class GcnLayer(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.line = nn.Linear(inputs, outputs)

    @staticmethod
    def _norms(block: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """1 / sqrt(degree) of sources, by their edges in the block, and of destinations."""
        out, into = block.out_degrees(), block.in_degrees()
        return out.clamp(min=1).float().rsqrt(), into.clamp(min=1).float().rsqrt()

    def first(self, block: Any, table: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        of_src, of_dst = self._norms(block)
        weights = of_src.index_select(0, block.indices)
        made = block.weighted_sum(table, weights, of=ids)
        out: torch.Tensor = self.line(made * of_dst.unsqueeze(1))
        return out

    def forward(self, block: Any, h: torch.Tensor) -> torch.Tensor:
        of_src, of_dst = self._norms(block)
        out: torch.Tensor = self.line(block.sum(h * of_src.unsqueeze(1)) * of_dst.unsqueeze(1))
        return out

    def plain(self, block: Any, h: torch.Tensor) -> torch.Tensor:
        src, dst = block.coo()
        ones = torch.ones(block.num_edges, device=h.device)
        of_src = ones.new_zeros(block.num_src_nodes).index_add(0, src, ones)
        of_src = of_src.clamp(min=1).rsqrt().unsqueeze(1)
        of_dst = block.indptr.diff().clamp(min=1).float().rsqrt().unsqueeze(1)
        sums = h.new_zeros((block.num_dst_nodes, h.shape[1]))
        sums = sums.index_add(0, dst, (h * of_src).index_select(0, src))
        out: torch.Tensor = self.line(sums * of_dst)
        return out


class Gcn(Model):
    """GCN with both norms, as DGL's GraphConv has them (Kipf and Welling, 2017)."""

    def layer(self, inputs: int, outputs: int, last: bool) -> nn.Module:
        return GcnLayer(inputs, outputs)


class GatLayer(nn.Module):
    def __init__(self, inputs: int, outputs: int, last: bool) -> None:
        super().__init__()
        # The heads of hidden layers stand side by side, the last layer's are averaged.
        self.width = outputs if last else outputs // HEADS
        self.last = last
        self.line = nn.Linear(inputs, HEADS * self.width, bias=False)
        self.source = nn.Parameter(torch.randn(HEADS, self.width) * 0.1)
        self.target = nn.Parameter(torch.randn(HEADS, self.width) * 0.1)

    def _projected(self, h: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.line(h).reshape(-1, HEADS, self.width)
        return out

    def _out(self, made: torch.Tensor) -> torch.Tensor:
        return made.mean(1) if self.last else made.flatten(1)

    def forward(self, block: Any, h: torch.Tensor) -> torch.Tensor:
        x = self._projected(h)
        # The products of rows and vectors, as narrow products of what is projected.
        ways = self.line.weight.unflatten(0, (HEADS, self.width))
        source = h @ torch.einsum("hdi,hd->ih", ways, self.source)
        target = h[: block.num_dst_nodes] @ torch.einsum("hdi,hd->ih", ways, self.target)
        return self._out(block.attention(x, source, target, negative_slope=0.2))

    def plain(self, block: Any, h: torch.Tensor) -> torch.Tensor:
        x = self._projected(h)
        src, dst = block.coo()
        source = (x * self.source).sum(-1)
        target = (x[: block.num_dst_nodes] * self.target).sum(-1)
        scores = F.leaky_relu(source.index_select(0, src) + target.index_select(0, dst), 0.2)
        rows = dst.long().unsqueeze(1).expand_as(scores)
        most = scores.new_full((block.num_dst_nodes, HEADS), -torch.inf)
        most = most.scatter_reduce(0, rows, scores.detach(), "amax")
        weights = (scores - most.index_select(0, dst)).exp()
        total = weights.new_zeros((block.num_dst_nodes, HEADS)).index_add(0, dst, weights)
        weights = weights / total.index_select(0, dst)
        made = x.new_zeros((block.num_dst_nodes, HEADS, self.width))
        return self._out(made.index_add(0, dst, x.index_select(0, src) * weights.unsqueeze(2)))


class Gat(Model):
    """GAT with four heads (Velickovic and others, 2018)."""

    # All of them are projected.
    takes_rows = True

    def layer(self, inputs: int, outputs: int, last: bool) -> nn.Module:
        return GatLayer(inputs, outputs, last)


MODELS: dict[str, type[Model]] = {"SAGE": Sage, "GCN": Gcn, "GAT": Gat}
