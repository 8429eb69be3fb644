"""PyG's loaders and edge types by the name of their relation, and names with underscores."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
import torch
from partners import partner

# First: its import warns of torch.
partner("torch_geometric")

from torch_geometric.data import HeteroData  # noqa: E402
from torch_geometric.sampler import NodeSamplerInput, NumNeighbors  # noqa: E402

from pygsampler.pyg import (  # noqa: E402
    FeatureStore,
    GraphStore,
    LinkNeighborLoader,
    NeighborLoader,
    PGSampler,
)

# PyG warns of what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore:There exist type names")

NODES = {"user": 20, "shop__item": 30}
BUYS, BOUGHT = ("user", "has__bought", "shop__item"), ("shop__item", "rev__by", "user")
KNOWS = "user", "knows", "user"


def data() -> Any:
    random, made = torch.Generator().manual_seed(0), HeteroData()
    for kind, count in NODES.items():
        made[kind].x = torch.rand(count, 3, generator=random)
    for kind in (BUYS, BOUGHT, KNOWS):
        ends = [torch.randint(0, NODES[of], (120,), generator=random) for of in kind[::2]]
        made[kind].edge_index = torch.stack(ends)
    return made


FULL = {BUYS: [3, 1], BOUGHT: [2, 2], KNOWS: [1, 4]}


@pytest.mark.parametrize(
    "counts",
    [
        NumNeighbors(FULL),
        {"has__bought": [3, 1], "rev__by": [2, 2], "knows": [1, 4]},
        {"__".join(kind): counts for kind, counts in FULL.items()},
        NumNeighbors({BUYS: [3, 1], KNOWS: [1, 4]}, default=[2, 2]),
    ],
    ids=["NumNeighbors", "relations", "joined", "default"],
)
def test_names_with_two_underscores(counts: Any) -> None:
    given, seeds = data(), NodeSamplerInput(None, torch.arange(9), input_type="user")
    want = PGSampler(given, FULL, seed=1).sample_from_nodes(seeds)
    sampler = PGSampler(given, counts, seed=1)
    for each in (sampler, pickle.loads(pickle.dumps(sampler))):
        out = each.sample_from_nodes(seeds)
        for kind in FULL:
            assert out.num_sampled_edges[kind] == want.num_sampled_edges[kind]
    assert f"{BUYS}: [3, 1]" in repr(sampler)
    assert sampler.num_neighbors.num_hops == 2
    sampler.num_neighbors = counts
    (batch, *_) = NeighborLoader(given, counts, "user", batch_size=20)
    assert batch[BUYS].num_sampled_edges and batch["shop__item"].num_nodes
    for key in FULL:
        assert max(torch.bincount(batch[key].edge_index[1])) <= sum(FULL[key])


@pytest.mark.parametrize("kind", [BUYS, "has__bought", "user__has__bought__shop__item"])
def test_links_of_a_named_type(kind: Any) -> None:
    given = data()
    pair = torch.tensor([[1, 2], [3, 4]])
    for edges in (kind, (kind, pair)):
        (batch, *_) = LinkNeighborLoader(given, [2], edge_label_index=edges, batch_size=2, seed=1)
        assert batch[BUYS].edge_label_index.shape == (2, 2)


def test_features_of_either_order() -> None:
    given, x = data(), torch.rand(20, 2)
    w = torch.rand(120, 2)
    for features, of_edges in (
        ({"z": {"user": x}}, {"w": {"knows": w}}),
        ({"user": {"z": x}}, {KNOWS: {"w": w}}),
    ):
        loader = NeighborLoader(
            given, [4], "user", batch_size=20, features=features, edge_features=of_edges
        )
        (batch,) = loader
        assert batch["user"].z.equal(x[batch["user"].n_id])
        assert batch[KNOWS].w.equal(w[batch[KNOWS].e_id])


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        ({"sells": [1]}, r"num_neighbors: expected types of data, got 'sells'; there are \('user'"),
        ({"knows": [1], KNOWS: [2]}, "num_neighbors: expected each edge type once, got "),
    ],
)
def test_wrong_names(counts: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        PGSampler(data(), counts)
    with pytest.raises(ValueError, match="edge_label_index: expected types of data, got 'sells'"):
        LinkNeighborLoader(data(), [2], edge_label_index="sells")


def test_types_whose_joined_names_collide() -> None:
    """PyG's own sampler takes them for one type; here they are refused."""
    given = HeteroData()
    for kind in ("a", "a__b", "d"):
        given[kind].num_nodes = 3
    for kind in (("a", "b__c", "d"), ("a__b", "c", "d")):
        given[kind].edge_index = torch.tensor([[0, 1], [1, 2]])
    text = r"\('a', 'b__c', 'd'\) and \('a__b', 'c', 'd'\), which are both 'a__b__c__d'; call one"
    with pytest.raises(ValueError, match=text):
        NeighborLoader(given, [2], "d")
    features, edges = FeatureStore({"d": {"x": torch.ones(3)}}), GraphStore()
    for kind in given.edge_types:
        edges.put_edge_index(given[kind].edge_index, edge_type=kind, layout="coo", size=(3, 3))
    with pytest.raises(ValueError, match=text):
        NeighborLoader((features, edges), [2], "d")
