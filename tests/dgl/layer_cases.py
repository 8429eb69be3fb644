"""The creation and the call of each layer of DGL that takes a block, with its main options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dgl
import dgl.nn.pytorch as layers
import torch
from torch import nn

from tests.dgl.block_pairs import KINDS, Features

Make = Callable[[], nn.Module]
Call = Callable[[nn.Module, Any, Features], Any]

IN, OUT, EDGE, HEADS = 5, 3, 4, 2
ISOLATED = {"allow_zero_in_degree": True}


def source(layer: nn.Module, block: Any, of: Features) -> Any:
    """DGL takes the first of the sources for the destinations then."""
    return layer(block, of.sources(IN))


def both(layer: nn.Module, block: Any, of: Features) -> Any:
    return layer(block, (of.sources(IN), of.destinations(IN)))


def two_sizes(layer: nn.Module, block: Any, of: Features) -> Any:
    return layer(block, (of.sources(IN), of.destinations(IN + 1)))


def weighted(layer: nn.Module, block: Any, of: Features) -> Any:
    return layer(block, of.sources(IN), edge_weight=of.weights())


def attention(layer: nn.Module, block: Any, of: Features) -> Any:
    return layer(block, of.sources(IN), get_attention=True)


def with_edges(layer: nn.Module, block: Any, of: Features) -> Any:
    return layer(block, of.sources(IN), of.edges(EDGE))


def both_with_edges(layer: nn.Module, block: Any, of: Features) -> Any:
    return layer(block, (of.sources(IN), of.destinations(IN)), of.edges(EDGE))


def two_sizes_with_edges(layer: nn.Module, block: Any, of: Features) -> Any:
    return layer(block, (of.sources(IN), of.destinations(IN + 1)), of.edges(EDGE))


def attention_with_edges(layer: nn.Module, block: Any, of: Features) -> Any:
    return layer(block, of.sources(IN), of.edges(EDGE), get_attention=True)


def relations(layer: nn.Module, block: Any, of: Features) -> Any:
    return layer(block, of.sources(6), of.edge_types(3))


def sorted_relations(layer: nn.Module, block: Any, of: Features) -> Any:
    return layer(block, of.sources(6), of.edge_types(3).sort().values, presorted=True)


def kinds_of_both(layer: nn.Module, block: Any, of: Features) -> Any:
    return layer(block, of.sources(6), of.source_types(2), of.edge_types(3))


def sorted_kinds_of_both(layer: nn.Module, block: Any, of: Features) -> Any:
    types = of.source_types(2).sort().values, of.edge_types(3).sort().values
    return layer(block, of.sources(6), *types, presorted=True)


class Explained(nn.Module):
    """A model as DGL's explainers ask for: one row for the whole graph, edges weighted or not."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = layers.GATConv(IN, OUT, 1, **ISOLATED)

    def forward(
        self, graph: Any, feat: Any, eweight: Any = None, edge_weight: Any = None, embed: Any = None
    ) -> Any:
        if embed:
            return feat
        weight = edge_weight if eweight is None else eweight
        if isinstance(weight, dict):
            (weight,) = weight.values()
        if isinstance(feat, dict):
            (feat,) = feat.values()
        weight = None if weight is None else weight.unsqueeze(1)
        return self.conv(graph, feat, edge_weight=weight).mean((0, 1)).unsqueeze(0)


# The creation and the call of a layer, by its name and a variant of it.
CASES: dict[str, tuple[Make, Call]] = {
    "AGNNConv": (lambda: layers.AGNNConv(**ISOLATED), source),
    "AGNNConv both": (lambda: layers.AGNNConv(0.7, False, **ISOLATED), both),
    "CFConv": (lambda: layers.CFConv(IN, EDGE, 6, OUT), with_edges),
    "DotGatConv": (lambda: layers.DotGatConv(IN, OUT, HEADS, **ISOLATED), source),
    "DotGatConv attention": (lambda: layers.DotGatConv(IN, OUT, HEADS, **ISOLATED), attention),
    "DotGatConv two sizes": (
        lambda: layers.DotGatConv((IN, IN + 1), OUT, HEADS, **ISOLATED),
        two_sizes,
    ),
    "EGATConv": (lambda: layers.EGATConv(IN, EDGE, OUT, 2, HEADS), both_with_edges),
    "EGATConv attention": (
        lambda: layers.EGATConv(IN, EDGE, OUT, 2, 1),
        lambda layer, block, of: layer(
            block, (of.sources(IN), of.destinations(IN)), of.edges(EDGE), get_attention=True
        ),
    ),
    "EGATConv two sizes": (
        lambda: layers.EGATConv((IN, IN + 1), EDGE, OUT, 2, HEADS),
        two_sizes_with_edges,
    ),
    "EGATConv weights": (
        lambda: layers.EGATConv(IN, EDGE, OUT, 2, HEADS),
        lambda layer, block, of: layer(
            block, (of.sources(IN), of.destinations(IN)), of.edges(EDGE), edge_weight=of.weights()
        ),
    ),
    "EdgeConv": (lambda: layers.EdgeConv(IN, OUT, **ISOLATED), source),
    "EdgeConv both": (lambda: layers.EdgeConv(IN, OUT, batch_norm=True, **ISOLATED), both),
    "EdgeGATConv": (lambda: layers.EdgeGATConv(IN, EDGE, OUT, HEADS, **ISOLATED), with_edges),
    "EdgeGATConv attention": (
        lambda: layers.EdgeGATConv(
            IN, EDGE, OUT, HEADS, residual=False, activation=torch.tanh, **ISOLATED
        ),
        attention_with_edges,
    ),
    "EdgeGATConv two sizes": (
        lambda: layers.EdgeGATConv((IN, IN + 1), EDGE, OUT, HEADS, bias=False, **ISOLATED),
        two_sizes_with_edges,
    ),
    **{
        f"EdgeWeightNorm {norm}": (
            lambda norm=norm: layers.EdgeWeightNorm(norm, eps=0.1),
            lambda layer, block, of: layer(block, of.weights()),
        )
        for norm in ("none", "right", "both")
    },
    "GATConv": (lambda: layers.GATConv(IN, OUT, HEADS, **ISOLATED), source),
    "GATConv attention": (
        lambda: layers.GATConv(IN, OUT, HEADS, activation=torch.tanh, **ISOLATED),
        attention,
    ),
    "GATConv two sizes": (
        lambda: layers.GATConv((IN, IN + 1), OUT, HEADS, residual=True, **ISOLATED),
        two_sizes,
    ),
    "GATConv weights": (lambda: layers.GATConv(IN, OUT, HEADS, bias=False, **ISOLATED), weighted),
    "GATv2Conv": (lambda: layers.GATv2Conv(IN, OUT, HEADS, **ISOLATED), source),
    "GATv2Conv attention": (
        lambda: layers.GATv2Conv(IN, OUT, HEADS, share_weights=True, **ISOLATED),
        attention,
    ),
    "GATv2Conv two sizes": (
        lambda: layers.GATv2Conv((IN, IN + 1), OUT, HEADS, residual=True, **ISOLATED),
        two_sizes,
    ),
    **{
        f"GINConv {how}": (lambda how=how: layers.GINConv(nn.Linear(IN, OUT), how), source)
        for how in ("sum", "max", "mean")
    },
    "GINConv both": (lambda: layers.GINConv(None, "max", 0.5, learn_eps=True), both),
    "GINConv weights": (lambda: layers.GINConv(activation=torch.tanh), weighted),
    "GINEConv": (
        lambda: layers.GINEConv(nn.Linear(IN, OUT)),
        lambda layer, block, of: layer(block, of.sources(IN), of.edges(IN)),
    ),
    "GINEConv both": (
        lambda: layers.GINEConv(None, 0.5, learn_eps=True),
        lambda layer, block, of: layer(block, (of.sources(IN), of.destinations(IN)), of.edges(IN)),
    ),
    "GNNExplainer": (
        lambda: layers.GNNExplainer(Explained(), 1, num_epochs=2, log=False),
        lambda layer, block, of: layer.explain_graph(block, of.sources(IN).detach()),
    ),
    **{
        f"GMMConv {how}": (
            lambda how=how: layers.GMMConv(IN, OUT, EDGE, 2, how, **ISOLATED),
            with_edges,
        )
        for how in ("sum", "mean", "max")
    },
    "GMMConv two sizes": (
        lambda: layers.GMMConv((IN, IN + 1), OUT, EDGE, 2, residual=True, **ISOLATED),
        two_sizes_with_edges,
    ),
    **{
        f"GraphConv {norm}": (lambda norm=norm: layers.GraphConv(IN, OUT, norm, **ISOLATED), source)
        for norm in ("none", "both", "right", "left")
    },
    "GraphConv pair": (lambda: layers.GraphConv(IN, IN + 2, bias=False, **ISOLATED), both),
    "GraphConv weights": (lambda: layers.GraphConv(IN, OUT, **ISOLATED), weighted),
    "GraphConv no matrix": (lambda: layers.GraphConv(IN, IN, weight=False, **ISOLATED), source),
    "GraphConv given matrix": (
        lambda: layers.GraphConv(IN, OUT, weight=False, activation=torch.tanh, **ISOLATED),
        lambda layer, block, of: layer(block, of.sources(IN), weight=of.matrix(IN, OUT)),
    ),
    "GroupRevRes": (
        lambda: layers.GroupRevRes(layers.AGNNConv(**ISOLATED), groups=2),
        lambda layer, block, of: layer(block, of.sources(6)),
    ),
    "HGTConv": (lambda: layers.HGTConv(6, 3, HEADS, 2, 3, dropout=0), kinds_of_both),
    "HGTConv norm": (lambda: layers.HGTConv(6, 4, 1, 2, 3, 0, use_norm=True), kinds_of_both),
    "HGTConv sorted": (lambda: layers.HGTConv(6, 3, HEADS, 2, 3, 0), sorted_kinds_of_both),
    "HeteroGNNExplainer": (
        lambda: layers.HeteroGNNExplainer(Explained(), 1, num_epochs=2, log=False),
        lambda layer, block, of: layer.explain_graph(block, {"_N": of.sources(IN).detach()}),
    ),
    **{
        f"HeteroGraphConv {how}": (
            lambda how=how: layers.HeteroGraphConv(
                {"_E": layers.GATConv(IN, OUT, HEADS, **ISOLATED)}, how
            ),
            lambda layer, block, of: layer(block, {"_N": of.sources(IN)}),
        )
        for how in ("sum", "max", "min", "mean", "stack")
    },
    "HeteroGraphConv both": (
        lambda: layers.HeteroGraphConv({"_E": layers.SAGEConv((IN, IN + 1), OUT, "mean")}),
        lambda layer, block, of: layer(
            block,
            ({"_N": of.sources(IN)}, {"_N": of.destinations(IN + 1)}),
            mod_kwargs={"_E": {"edge_weight": of.weights()}},
        ),
    ),
    "HeteroGraphConv edges": (
        lambda: layers.HeteroGraphConv({"_E": layers.EdgeGATConv(IN, EDGE, 3, 2, **ISOLATED)}),
        lambda layer, block, of: layer(
            block, {"_N": of.sources(IN)}, mod_args={"_E": (of.edges(EDGE),)}
        ),
    ),
    **{
        f"NNConv {how}": (
            lambda how=how: layers.NNConv(IN, OUT, nn.Linear(EDGE, IN * OUT), how),
            with_edges,
        )
        for how in ("sum", "mean", "max")
    },
    "NNConv two sizes": (
        lambda: layers.NNConv((IN, IN + 1), OUT, nn.Linear(EDGE, IN * OUT), residual=True),
        two_sizes_with_edges,
    ),
    "RelGraphConv": (lambda: layers.RelGraphConv(6, OUT, 3), relations),
    "RelGraphConv basis": (
        lambda: layers.RelGraphConv(6, OUT, 3, "basis", 2, layer_norm=True),
        relations,
    ),
    "RelGraphConv bdd": (
        lambda: layers.RelGraphConv(6, 4, 3, "bdd", 2, self_loop=False, activation=torch.tanh),
        relations,
    ),
    "RelGraphConv norm": (
        lambda: layers.RelGraphConv(6, OUT, 3, bias=False),
        lambda layer, block, of: layer(block, of.sources(6), of.edge_types(3), norm=of.weights(1)),
    ),
    "RelGraphConv sorted": (lambda: layers.RelGraphConv(6, OUT, 3), sorted_relations),
    **{
        f"SAGEConv {how}": (lambda how=how: layers.SAGEConv(IN, OUT, how), source)
        for how in ("mean", "gcn", "pool", "lstm")
    },
    **{
        f"SAGEConv {how} weights": (lambda how=how: layers.SAGEConv(IN, IN + 2, how), weighted)
        for how in ("mean", "gcn", "pool", "lstm")
    },
    "SAGEConv gcn both": (lambda: layers.SAGEConv(IN, OUT, "gcn", bias=False), both),
    "SAGEConv two sizes": (lambda: layers.SAGEConv((IN, IN + 1), OUT, "mean"), two_sizes),
    "Sequential": (lambda: layers.Sequential(layers.GATConv(IN, OUT, HEADS, **ISOLATED)), source),
}

HAS_ISOLATED = set(KINDS) - {"all have edges"}
NOT_SQUARE = set(KINDS) - {"square", "no edges"}

# Calls that DGL refuses on blocks of its own too: case, kinds of blocks, error.
REFUSED = {
    "EGATConv": (HAS_ISOLATED, dgl.DGLError),
    "EdgeConv": ({"no edges"}, RuntimeError),
    "GNNExplainer": ({"no edges"}, RuntimeError),
    "HeteroGNNExplainer": ({"no edges"}, RuntimeError),
    "GMMConv max": ({"no edges"}, RuntimeError),
    "GroupRevRes": (NOT_SQUARE, RuntimeError),
    "NNConv max": ({"no edges"}, RuntimeError),
    "SAGEConv pool weights": ({"no edges"}, RuntimeError),
}
