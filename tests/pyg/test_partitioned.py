"""PyG's loaders of graphs in parts: the batches of the whole graph."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import flight_graphs
import partitioned_graphs
import pytest
import torch
from local_exchange import Here
from partners import partner

from pygsampler import distributed
from pygsampler.distributed import partition

# First: its import warns of torch.
partner("torch_geometric")

from pygsampler.pyg import FeatureStore, GraphStore, HGTLoader, NeighborLoader  # noqa: E402


def batches(make: Callable[..., Any], graph: Any) -> list[Any]:
    torch.manual_seed(3)
    loader = make((FeatureStore({}), GraphStore(graph)), batch_size=32, seed=1)
    torch.manual_seed(4)
    return [
        [(key, value.tolist()) for key, value in sorted(store.items()) if torch.is_tensor(value)]
        for batch in loader
        for store in batch.stores
    ]


def neighbors(hops: list[int], nodes: Any, **how: Any) -> Callable[..., Any]:
    return lambda data, **about: NeighborLoader(data, hops, nodes, **how, **about)


def test_with_types(tmp_path: Path) -> None:
    whole = flight_graphs.typed()
    partition(whole, tmp_path / "parts", 3)
    nodes = "paper", torch.arange(90)
    with distributed.open_graph(tmp_path / "parts", Here(tmp_path / "parts", 3)) as graph:
        for make in (
            neighbors([3, 2], nodes),
            neighbors([3, 2], nodes, labor="poisson", weight_attr="w"),
            lambda data, **about: HGTLoader(data, [4, 3], nodes, **about),
        ):
            assert batches(make, graph) == batches(make, whole)
        for disjoint in (False, True):
            make = neighbors([3], nodes, subgraph_type="induced", disjoint=disjoint)
            with pytest.raises(ValueError, match="for its indptr, got one in 3 parts"):
                batches(make, graph)


def test_without_types(tmp_path: Path) -> None:
    whole = partitioned_graphs.of("ids")
    partition(whole, tmp_path / "parts", 3)
    nodes = torch.arange(partitioned_graphs.NODES)
    with distributed.open_graph(tmp_path / "parts", Here(tmp_path / "parts", 3)) as graph:
        for how in (
            {"weight_attr": "w"},
            {"labor": "poisson", "edge_weights": "mean"},
            {"labor": "exact", "weight_attr": "w"},
        ):
            make = neighbors([3, 2], nodes, **how)
            assert batches(make, graph) == batches(make, whole), how
        for how in ({}, {"labor": "exact"}, {"disjoint": True}):
            make = neighbors([3], nodes, subgraph_type="induced", **how)
            with pytest.raises(ValueError, match="expected a graph on this machine"):
                batches(make, graph)
        with pytest.raises(ValueError, match="expected the name of an edge array"):
            batches(neighbors([3], nodes, labor="exact", weight_attr="z"), graph)
