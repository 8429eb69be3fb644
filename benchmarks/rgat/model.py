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
    """GAT of one relation: rows are projected, and weighted by the attention of four heads."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.project = nn.Linear(width, hidden, bias=False)
        # The products of projected rows with vectors of attention, as narrow layers of the rows.
        self.source = nn.Linear(width, HEADS, bias=False)
        self.target = nn.Linear(width, HEADS, bias=False)

    def forward(self, block: Any, x: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
        rows = self.project(x).unflatten(1, (HEADS, -1))
        return block.attention(rows, self.source(x), self.target(own)).flatten(1)


class Layer(nn.Module):
    """One hop: for each node type the sum over the relations that lead to it."""

    def __init__(self, edge_types: Sequence[EdgeType], width: int, hidden: int) -> None:
        super().__init__()
        self.relations = nn.ModuleDict(
            {"__".join(kind): Relation(width, hidden) for kind in edge_types}
        )

    def forward(self, hop: Any, h: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        sums: dict[str, torch.Tensor] = {}
        for kind, block in hop.items():
            src, _, dst = kind
            name = "__".join(kind)
            if name not in self.relations or not block.num_edges:
                continue
            x, own = h[src][: block.num_src_nodes], h[dst][: block.num_dst_nodes]
            out = self.relations[name](block, x, own)
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
