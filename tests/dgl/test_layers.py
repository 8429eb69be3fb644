"""Every layer of DGL computes on our blocks what it computes on DGL's, forward and backward."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from copy import deepcopy
from inspect import signature
from typing import Any

import dgl
import dgl.nn.pytorch as layers
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from tests.dgl.block_pairs import (
    BLOCKS,
    Features,
    outcome,
    pair_of,
    reduce_by_engine,
    with_gradients,
)
from tests.dgl.graphs import DTYPES
from tests.dgl.layer_cases import (
    CASES,
    EDGE,
    HEADS,
    IN,
    ISOLATED,
    OUT,
    REFUSED,
    Call,
    Explained,
    Make,
)

# They want a graph with one type of nodes, and a block has two, even where it is square.
HOMOGENEOUS: dict[str, Callable[[Any, Features], Any]] = {
    "APPNPConv": lambda g, of: layers.APPNPConv(2, 0.1)(g, of.sources(IN)),
    "AtomicConv": lambda g, of: layers.AtomicConv(*torch.ones(3, 1))(
        g, of.sources(1), of.weights(1)
    ),
    "AvgPooling": lambda g, of: layers.AvgPooling()(g, of.sources(IN)),
    "ChebConv": lambda g, of: layers.ChebConv(IN, OUT, 2)(g, of.sources(IN), [2.0]),
    "DGNConv": lambda g, of: layers.DGNConv(IN, OUT, ["dir1-av"], ["identity"], 2.5)(
        g, of.sources(IN), eig_vec=of.sources(3)
    ),
    "DeepWalk": lambda g, of: layers.DeepWalk(g, 4, 6, 2).sample(torch.arange(2)),
    "EGNNConv": lambda g, of: layers.EGNNConv(IN, OUT, OUT)(g, of.sources(IN), of.sources(3)),
    "GCN2Conv": lambda g, of: layers.GCN2Conv(IN, 1, **ISOLATED)(g, of.sources(IN), of.sources(IN)),
    "GatedGCNConv": lambda g, of: layers.GatedGCNConv(IN, EDGE, OUT)(
        g, of.sources(IN), of.edges(EDGE)
    ),
    "GatedGraphConv": lambda g, of: layers.GatedGraphConv(IN, IN, 2, 1)(g, of.sources(IN)),
    "GlobalAttentionPooling": lambda g, of: layers.GlobalAttentionPooling(nn.Linear(IN, 1))(
        g, of.sources(IN)
    ),
    "HeteroPGExplainer": lambda g, of: layers.HeteroPGExplainer(Explained(), IN).explain_graph(
        g, {"_N": of.sources(IN).detach()}
    ),
    "HeteroSubgraphX": lambda g, of: layers.HeteroSubgraphX(Explained(), 1).explain_graph(
        g, {"_N": of.sources(IN).detach()}, 0
    ),
    "LabelPropagation": lambda g, of: layers.LabelPropagation(2, 0.5)(g, of.source_types(2)),
    "MaxPooling": lambda g, of: layers.MaxPooling()(g, of.sources(IN)),
    "MetaPath2Vec": lambda g, of: layers.MetaPath2Vec(g, ["_E"], 1, 4),
    "PGExplainer": lambda g, of: layers.PGExplainer(Explained(), IN).explain_graph(
        g, of.sources(IN).detach()
    ),
    "PNAConv": lambda g, of: layers.PNAConv(IN, OUT, ["mean"], ["identity"], 2.5)(
        g, of.sources(IN)
    ),
    "SGConv": lambda g, of: layers.SGConv(IN, OUT, **ISOLATED)(g, of.sources(IN)),
    "Set2Set": lambda g, of: layers.Set2Set(IN, 2, 1)(g, of.sources(IN)),
    "SetTransformerDecoder": lambda g, of: layers.SetTransformerDecoder(IN, 1, 2, 3, 1, 2)(
        g, of.sources(IN)
    ),
    "SetTransformerEncoder": lambda g, of: layers.SetTransformerEncoder(IN, 1, 2, 3)(
        g, of.sources(IN)
    ),
    "SortPooling": lambda g, of: layers.SortPooling(2)(g, of.sources(IN)),
    "SubgraphX": lambda g, of: layers.SubgraphX(Explained(), 1).explain_graph(
        g, of.sources(IN).detach(), 0
    ),
    "SumPooling": lambda g, of: layers.SumPooling()(g, of.sources(IN)),
    "TAGConv": lambda g, of: layers.TAGConv(IN, OUT)(g, of.sources(IN)),
    "TWIRLSConv": lambda g, of: layers.TWIRLSConv(IN, OUT, 4, 2)(g, of.sources(IN)),
    "TWIRLSUnfoldingAndAttention": lambda g, of: layers.TWIRLSUnfoldingAndAttention(
        IN, 1.0, 1.0, 2
    )(g, of.sources(IN)),
    "WeightAndSum": lambda g, of: layers.WeightAndSum(IN)(g, of.sources(IN)),
}

# They take features, distances, degrees or a matrix.
NO_GRAPH = {
    *("BiasedMHA", "DegreeEncoder", "DenseChebConv", "DenseGraphConv", "DenseSAGEConv"),
    *("EGTLayer", "EdgePredictor", "GraphormerLayer", "HeteroEmbedding", "HeteroLinear"),
    *("JumpingKnowledge", "KNNGraph", "LapPosEncoder", "PathEncoder", "RadiusGraph"),
    *("SegmentedKNNGraph", "SpatialEncoder", "SpatialEncoder3d", "TransE", "TransR"),
    *("TypedLinear", "WeightBasis"),
}

# They need RAPIDS' pylibcugraphops and a GPU.
CUGRAPH: dict[str, Make] = {
    "CuGraphGATConv": lambda: layers.CuGraphGATConv(IN, OUT, HEADS),
    "CuGraphRelGraphConv": lambda: layers.CuGraphRelGraphConv(IN, OUT, 3),
    "CuGraphSAGEConv": lambda: layers.CuGraphSAGEConv(IN, OUT),
}

SINCE_DGL_2 = {"GatedGCNConv", "HeteroPGExplainer", "PGExplainer"}
MISSING = SINCE_DGL_2 if dgl.__version__.startswith("1.") else set()


def test_every_layer_is_in_a_table() -> None:
    """A layer that another DGL brings, or drops, has to be looked at."""
    tables = [{name.split()[0] for name in CASES}, set(HOMOGENEOUS), NO_GRAPH, set(CUGRAPH)]
    named = [name for table in tables for name in table]
    assert len(named) == len(set(named))
    exported = {
        name
        for name, value in vars(layers).items()
        if isinstance(value, type) and issubclass(value, nn.Module)
    }
    assert exported == set(named) - MISSING


@pytest.mark.parametrize("name", sorted(NO_GRAPH))
def test_what_takes_no_graph(name: str) -> None:
    parameters = signature(getattr(layers, name).forward).parameters
    assert not {"g", "graph"} & set(parameters)


@pytest.mark.parametrize("make", CUGRAPH.values(), ids=CUGRAPH)
def test_what_cannot_be_made_here(make: Make) -> None:
    with pytest.raises(ModuleNotFoundError, match="pylibcugraphops"):
        make()


@pytest.mark.parametrize("name", sorted(set(HOMOGENEOUS) - MISSING))
def test_what_takes_no_block_takes_none_of_dgls(name: str) -> None:
    pair = pair_of("square")
    errors = []
    for block in pair:
        torch.manual_seed(0)
        errors.append(outcome(lambda block=block: HOMOGENEOUS[name](block, Features(block))))
    assert isinstance(errors[1], type), "DGL's own blocks are taken: it belongs into CASES"
    assert errors[0] is errors[1]


def results(layer: nn.Module, call: Call, block: Any, dtype: torch.dtype = torch.float32) -> Any:
    """The output, and the gradients of all features and parameters, or the error's class."""
    of = Features(block, dtype)
    # The explainers draw their first masks.
    torch.manual_seed(1)
    return outcome(
        lambda: with_gradients(call(layer, block, of), [*of.leaves, *layer.parameters()])
    )


@pytest.mark.filterwarnings("ignore:The input graph for the user-defined edge function")
@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
@pytest.mark.parametrize(("kind", "dtype"), BLOCKS)
@pytest.mark.parametrize("name", CASES)
def test_a_layer_gives_what_it_gives_on_dgls_blocks(
    name: str, kind: str, dtype: torch.dtype
) -> None:
    pair = pair_of(kind, dtype)
    make, call = CASES[name]
    torch.manual_seed(0)
    layer = make()
    ours, theirs = results(deepcopy(layer), call, pair.ours), results(layer, call, pair.theirs)
    kinds, error = REFUSED.get(name, REFUSED.get(name.split()[0], ((), None)))
    if kind in kinds:
        assert theirs is error
        assert ours is error
    else:
        assert not isinstance(theirs, type), theirs
        assert_close(ours, theirs)


@pytest.mark.filterwarnings("ignore:The input graph for the user-defined edge function")
@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", CASES)
def test_a_layer_gives_the_same_where_the_engine_reduces(
    monkeypatch: pytest.MonkeyPatch, name: str, dtype: torch.dtype
) -> None:
    reduce_by_engine(monkeypatch)
    make, call = CASES[name]
    for kind, ids in (("outer", torch.int32), ("parallel", torch.int64), ("no edges", torch.int64)):
        pair = pair_of(kind, ids)
        torch.manual_seed(0)
        layer = make().to(dtype)
        ours = results(deepcopy(layer), call, pair.ours, dtype)
        theirs = results(layer, call, pair.theirs, dtype)
        if isinstance(theirs, type):
            assert ours is theirs
        else:
            assert_close(ours, theirs)


def asked(block: Any) -> Any:
    """A block that has all formats, its CSC having been sorted by DGL."""
    block.create_formats_()
    block.global_uniform_negative_sampling(3)
    return block


# The forms that a block takes in workers, and by calls of its owner.
DERIVED: dict[str, Callable[[Any], Any]] = {
    "asked": asked,
    "block_to_graph": dgl.block_to_graph,
    "copied": deepcopy,
    "coo and csc": lambda block: block.formats(["coo", "csc"]),
    "int": lambda block: block.int(),
    "local_var": lambda block: block.local_var(),
    "long": lambda block: block.long(),
    "pickled": lambda block: pickle.loads(pickle.dumps(block)),
    "relation": lambda block: block["_N", "_E", "_N"],
    "shared": lambda block: block.shared_memory(f"pygsampler{os.getpid()}_{id(block)}"),
}


@pytest.mark.parametrize("is_large", [False, True], ids=["small", "large"])
@pytest.mark.parametrize("derive", DERIVED.values(), ids=DERIVED)
@pytest.mark.parametrize("name", ["GATConv two sizes", "EdgeConv both", "EdgeWeightNorm right"])
def test_layers_on_what_a_block_becomes(
    monkeypatch: pytest.MonkeyPatch, name: str, derive: Callable[[Any], Any], is_large: bool
) -> None:
    if is_large:
        reduce_by_engine(monkeypatch)
    make, call = CASES[name]
    for kind, dtype in BLOCKS[1:4]:
        pair = pair_of(kind, dtype)
        torch.manual_seed(0)
        layer = make()
        ours = results(deepcopy(layer), call, derive(pair.ours))
        theirs = results(layer, call, derive(pair.theirs))
        assert not isinstance(theirs, type), theirs
        assert_close(ours, theirs)


@pytest.mark.parametrize("dtype", DTYPES)
def test_layers_over_both_hops(dtype: torch.dtype) -> None:
    outer, inner = pair_of("outer", dtype), pair_of("inner", dtype)
    torch.manual_seed(0)
    model = layers.Sequential(
        layers.EdgeConv(IN, 4, **ISOLATED), layers.GATConv(4, OUT, HEADS, **ISOLATED)
    )
    ours, theirs = (
        with_gradients(model(list(blocks), feat), [feat, *model.parameters()])
        for blocks in zip(outer, inner, strict=True)
        for feat in [Features(blocks[0]).sources(IN)]
    )
    assert_close(ours, theirs)
