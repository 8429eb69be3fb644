"""The R-GAT of MLPerf's benchmark: a GAT layer for each relation, summed by destination.

Source: D. Busbridge et al., "Relational Graph Attention Networks", 2019, within-relation attention.
Three layers of width 512 in four heads, and a linear layer over the papers at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from pygsampler._graph.schema import EdgeType

HIDDEN, HEADS, LAYERS, FANOUTS = 512, 4, 3, (15, 10, 5)
DROPOUT = 0.2


class Relation(nn.Module):
    """GAT of one relation, without its scores: rows are projected, and added by their attention."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.project = nn.Linear(width, hidden, bias=False)

    def forward(
        self, block: Any, x: torch.Tensor, source: torch.Tensor, target: torch.Tensor
    ) -> torch.Tensor:
        """Returns [destinations, hidden]; source and target are [rows, heads]."""
        if aggregates_first(block, x):
            return self.aggregated(block, x, source, target)
        rows = self.project(x).unflatten(1, (HEADS, -1))
        out: torch.Tensor = block.attention(rows, source, target).flatten(1)
        return out

    def aggregated(
        self, block: Any, x: torch.Tensor, source: torch.Tensor, target: torch.Tensor
    ) -> torch.Tensor:
        """Returns what ``forward`` returns, by a projection of sums instead of rows."""
        sums = block.attention(x.unsqueeze(1), source, target)
        heads = self.project.weight.unflatten(0, (HEADS, -1))
        return torch.einsum("nhi,hoi->nho", sums, heads).flatten(1)


def aggregates_first(block: Any, x: torch.Tensor) -> bool:
    """True if it is cheaper to add rows and to project the sums, one for each head.

    The attention is linear in the rows, and its heads share them. In each direction a step that
    adds first moves a row as wide as x for each edge, and for each destination's head. A step that
    projects first moves one for each source, in the projection or the gradient of its weights, and
    about as much again in projected rows, which are half as wide: they are written, read for their
    edges, and have gradients. A type's nodes are sources of all of its relations, so most blocks
    have more sources than edges. Rows that need a gradient would have it added up for each head.
    """
    moved = block.num_edges + HEADS * block.num_dst_nodes
    return not x.requires_grad and moved < 2 * block.num_src_nodes


class Layer(nn.Module):
    """One hop: for each node type the sum over the relations that lead to it."""

    def __init__(self, edge_types: Sequence[EdgeType], width: int, hidden: int) -> None:
        super().__init__()
        self.relations = nn.ModuleDict(
            {"__".join(kind): Relation(width, hidden) for kind in edge_types}
        )
        # The products of projected rows with vectors of attention are products of the rows with
        # other vectors: those of all relations from and to a node type read its rows once.
        self.ends: dict[str, list[tuple[str, str]]] = {}
        for src, name, dst in edge_types:
            for kind, end in ((src, "source"), (dst, "target")):
                self.ends.setdefault(kind, []).append(("__".join((src, name, dst)), end))
        self.scores = nn.ModuleDict(
            {kind: nn.Linear(width, HEADS * len(ends), False) for kind, ends in self.ends.items()}
        )

    def forward(self, hop: Any, h: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        scores = {
            key: each
            for kind, ends in self.ends.items()
            if kind in h
            for key, each in zip(ends, self.scores[kind](h[kind]).split(HEADS, 1), strict=True)
        }
        sums: dict[str, torch.Tensor] = {}
        for kind, block in hop.items():
            src, _, dst = kind
            name = "__".join(kind)
            if name not in self.relations or not block.num_edges:
                continue
            source = scores[name, "source"][: block.num_src_nodes]
            target = scores[name, "target"][: block.num_dst_nodes]
            out = self.relations[name](block, h[src][: block.num_src_nodes], source, target)
            sums[dst] = sums[dst] + out if dst in sums else out
        return sums


def relations_of_layers(edge_types: Sequence[EdgeType]) -> list[list[EdgeType]]:
    """Returns the relations of each layer, outermost hop first, whose output reaches a paper."""
    targets, layers = {"paper"}, []
    for _ in range(LAYERS):
        layers.append([kind for kind in edge_types if kind[2] in targets])
        targets = targets | {src for src, _, _ in layers[-1]}
    return layers[::-1]


class RGAT(nn.Module):
    """Scores of the classes of a batch's papers, [seeds, classes]."""

    def __init__(
        self, edge_types: Sequence[EdgeType], width: int, classes: int, hidden: int
    ) -> None:
        super().__init__()
        widths = [width, *[hidden] * (LAYERS - 1)]
        kinds = relations_of_layers(edge_types)
        self.layers = nn.ModuleList(
            Layer(some, each, hidden) for some, each in zip(kinds, widths, strict=True)
        )
        self.classify = nn.Linear(hidden, classes)

    def forward(self, batch: Any) -> torch.Tensor:
        h = dict(batch.x)
        for layer, hop in zip(self.layers, batch.blocks, strict=True):
            h = layer(hop, h)
            h = {
                kind: functional.dropout(functional.leaky_relu(rows), DROPOUT, self.training)
                for kind, rows in h.items()
            }
        scores: torch.Tensor = self.classify(h["paper"])
        return scores
