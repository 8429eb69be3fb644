"""Options of our loaders for PyG: assignments, and features that cannot be taken."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from pyg_reference import random_data
from torch_geometric.data import Data, HeteroData

from pygsampler.pyg import LinkNeighborLoader, NeighborLoader

NODES, EDGES = 20, 90
KIND = ("a", "to", "a")


def data() -> Data:
    return Data(edge_index=random_data(NODES, EDGES).edge_index, num_nodes=NODES)


def types() -> HeteroData:
    made = HeteroData()
    made["a"].x = torch.ones(NODES, 1)
    made[KIND].edge_index = data().edge_index
    return made


def edges_of(loader: Any) -> list[Any]:
    loader.set_epoch(0)
    return [batch.edge_index.tolist() for batch in loader]


@pytest.mark.parametrize(
    "name",
    [
        *("num_neighbors", "replace", "disjoint", "time_attr", "weight_attr", "is_sorted"),
        *("seed", "device", "features", "edge_features", "labor", "prefetch", "edge_weights"),
    ],
)
@pytest.mark.parametrize("kind", [NeighborLoader, LinkNeighborLoader])
def test_options_that_were_used_are_not_assigned(kind: Any, name: str) -> None:
    loader = kind(data(), [3], batch_size=4, seed=1)
    before = edges_of(loader)
    with pytest.raises(AttributeError, match=f"{name}: expected no assignment, since a loader"):
        setattr(loader, name, 1)
    assert edges_of(loader) == before


def test_other_attributes_are_assigned_as_in_pyg() -> None:
    class Mine(NeighborLoader):
        def __init__(self, *given: Any, **options: Any) -> None:
            self.num_neighbors = "before"
            super().__init__(*given, **options)
            self.name = "mine"

    loader = Mine(data(), [3], batch_size=4, seed=1)
    loader.num_neighbors = "its own"
    loader.transform = lambda batch: "transformed"
    assert list(loader) == ["transformed"] * 5
    with pytest.raises(ValueError, match="batch_size attribute should not be set"):
        loader.batch_size = 3


@pytest.mark.parametrize("kind", [NeighborLoader, LinkNeighborLoader])
def test_features_that_cannot_be_taken_are_named(kind: Any) -> None:
    weight = torch.nn.Parameter(torch.ones(NODES, 2))
    for name, values, error, text in (
        ("features", weight, ValueError, r"features\['h'\]: expected values without gradients"),
        ("features", torch.nn.Embedding(NODES, 2), TypeError, r"embedding\(batch.input_nodes\)"),
        ("features", torch.ones(NODES + 3), ValueError, r"features\['h'\]: .*20 nodes, got 23"),
        ("features", torch.ones(NODES - 3), ValueError, r"features\['h'\]: .*20 nodes, got 17"),
        ("edge_features", weight, ValueError, r"edge_features\['h'\]: expected values without"),
    ):
        with pytest.raises(error, match=text):
            kind(data(), [3], batch_size=4, **{name: {"h": values}})
    with pytest.raises(ValueError, match="expected a row for each of 20 nodes of 'a', got 23"):
        NeighborLoader(types(), [3], "a", features={"h": {"a": torch.ones(NODES + 3)}})


def test_a_subclass_has_attributes_of_its_own() -> None:
    class Own(NeighborLoader):
        def __init__(self, device: str, **options: Any) -> None:
            super().__init__(data(), [2], batch_size=10, **options)
            self.device = device

    assert Own("mine").device == "mine"


@pytest.mark.parametrize(
    "options", [{"carry": "edge"}, {"temporal_comparison": "strictly_decreasing"}]
)
@pytest.mark.parametrize("make", [data, types])
def test_comparisons_want_times(make: Any, options: dict[str, Any]) -> None:
    (name,) = options
    nodes = "a" if make is types else None
    with pytest.raises(ValueError, match=f"{name}: expected None without time_attr"):
        NeighborLoader(make(), [2], nodes, batch_size=4, **options)
