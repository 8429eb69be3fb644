"""What is assigned to a sampler or a loader of PyG's counts, or raises."""

from __future__ import annotations

import copy
import inspect
import pickle
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from pyg_reference import content, random_data
from torch_geometric import loader as loaders
from torch_geometric.data import HeteroData
from torch_geometric.loader import NodeLoader
from torch_geometric.sampler import NeighborSampler, NodeSamplerInput, NumNeighbors

import pygsampler.pyg
from pygsampler.pyg import LinkNeighborLoader, NeighborLoader, PGSampler

SEEDS = torch.arange(0, 60, 2)


def sampled(sampler: PGSampler) -> dict[str, Any]:
    sampler.set_epoch(1)
    return content(sampler.sample_from_nodes(NodeSamplerInput(None, SEEDS)))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_neighbors", [1]),
        ("num_neighbors", []),
        ("num_neighbors", NumNeighbors([2, 3, 1])),
        ("replace", True),
        ("disjoint", True),
        ("subgraph_type", "induced"),
        ("subgraph_type", "bidirectional"),
    ],
)
def test_assignments_act_on_that_object_alone(name: str, value: Any) -> None:
    """As PyG's LightningNodeData assigns eval_loader_kwargs to a shallow copy of the sampler."""
    data = random_data()
    sampler = PGSampler(data, [4, 3], seed=1)
    before = sampled(sampler)
    other = copy.copy(sampler)
    assert other.graph is sampler.graph
    assert sampled(other) == before
    setattr(other, name, value)
    expected = PGSampler(data, **{"num_neighbors": [4, 3], name: value}, seed=1)  # type: ignore[arg-type]
    assert sampled(other) == sampled(expected) != before
    assert repr(other) == repr(expected) == repr(pickle.loads(pickle.dumps(other)))
    assert sampled(sampler) == before
    other.set_epoch(2)
    assert content(sampler.sample_from_nodes(NodeSamplerInput(None, SEEDS))) == before


def test_edges_of_both_kinds_may_be_kept() -> None:
    sampler = PGSampler(random_data(), [4, 3], subgraph_type="bidirectional", seed=1)
    assert sampled(sampler)["orig_row"] is None
    sampler.keep_orig_edges = True
    assert sampled(sampler)["orig_row"] is not None


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("num_neighbors", [-2], ValueError),
        ("num_neighbors", {("a", "b", "c"): [1]}, NotImplementedError),
        ("replace", 2, TypeError),
        ("disjoint", "yes", TypeError),
        ("subgraph_type", "whole", ValueError),
        ("temporal_strategy", "last", AttributeError),
        ("time_attr", "time", AttributeError),
        ("node_time", SEEDS, AttributeError),
        ("edge_time", SEEDS, AttributeError),
        ("edge_types", [], AttributeError),
        ("is_hetero", True, AttributeError),
        ("weight_attr", "w", ValueError),
        ("weight_attr", 1, ValueError),
        ("edge_weight", SEEDS, AttributeError),
        ("sample_direction", "backward", AttributeError),
        ("is_sorted", True, AttributeError),
        ("colptr", SEEDS, AttributeError),
        ("row", SEEDS, AttributeError),
        ("perm", SEEDS, AttributeError),
        ("graph", None, AttributeError),
        ("device", "cpu", AttributeError),
        ("num_nodes", 3, AttributeError),
        ("seed", 3, AttributeError),
    ],
)
def test_what_cannot_be_assigned_raises_and_changes_nothing(
    name: str, value: Any, error: type[Exception]
) -> None:
    sampler = PGSampler(random_data(), [4, 3], seed=1)
    before = sampled(sampler)
    with pytest.raises(error, match=name):
        setattr(sampler, name, value)
    assert sampled(sampler) == before
    sampler.time_attr = sampler.weight_attr = None
    sampler.temporal_strategy = "uniform"


@pytest.mark.parametrize("yes", [1, numpy.True_])
@pytest.mark.parametrize("name", ["replace", "disjoint"])
def test_truth_values_are_taken_as_pyg_takes_them(name: str, yes: Any) -> None:
    data, typed = random_data(), HeteroData()
    typed["v"].num_nodes = data.num_nodes
    typed["v", "to", "v"].edge_index = data.edge_index
    options: dict[str, Any] = {name: yes, "share_memory": 0, "is_sorted": numpy.False_}
    for each, seeds in ((data, None), (typed, "v")):
        found = PGSampler(each, [3], **options)
        assert getattr(found, name) is True
        setattr(found, name, 0)
        assert getattr(found, name) is False
        setattr(found, name, yes)
        one = NeighborLoader(each, [3], seeds, seed=1, **{name: yes})
        other = NeighborLoader(each, [3], seeds, seed=1, **{name: True})
        assert [str(b.to_dict()) for b in one] == [str(b.to_dict()) for b in other]
    with pytest.raises(TypeError, match=f"{name}: expected True or False, got float 1.0"):
        PGSampler(data, [3], **{name: 1.0})


@pytest.mark.parametrize("make", [NeighborLoader, LinkNeighborLoader])
def test_a_loader_takes_another_sampler_and_a_transform(make: Any) -> None:
    data = random_data()
    loader = make(data, [4, 3], batch_size=25, seed=1)
    other = PGSampler(data, [2], seed=1)
    name = "node_sampler" if make is NeighborLoader else "link_sampler"
    setattr(loader, name, other)
    expected = make(data, [2], batch_size=25, seed=1)
    for each in (loader, expected):
        each.set_epoch(3)
    assert list(map(content, loader)) == list(map(content, expected))
    loader.transform = lambda batch: "transformed"
    assert set(loader) == {"transformed"}


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_torchs_seed_before_a_pass_repeats_it(workers: int, shuffle: bool) -> None:
    """Whenever the loader was made, and the same seed twice in one process, as in PyG."""
    torch.manual_seed(5)
    data = random_data()
    options: Any = {"batch_size": 25, "shuffle": shuffle, "num_workers": workers}
    loader = NeighborLoader(data, [4, 3], **options)

    def epochs(manual: int, each: Any = loader) -> list[Any]:
        torch.manual_seed(manual)
        return [[content(batch) for batch in each] for _ in range(2)]

    first = epochs(1)
    assert first[0] != first[1]
    assert epochs(1) == first != epochs(2)
    torch.manual_seed(6)
    assert epochs(1, NeighborLoader(data, [4, 3], **options)) == first
    assert epochs(1) == first


def test_a_seed_that_was_given_stays() -> None:
    loader = NeighborLoader(random_data(), [4, 3], batch_size=25, seed=3)
    loader.set_epoch(0)
    torch.manual_seed(1)
    first = list(map(content, loader))
    torch.manual_seed(2)
    assert list(map(content, loader)) == first
    assert loader.node_sampler.seed == 3


@pytest.mark.parametrize("make", [NeighborLoader, LinkNeighborLoader])
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_set_seed_reaches_workers_that_live_on(make: Any) -> None:
    data = random_data()
    loader = make(data, [4, 3], batch_size=25, num_workers=1, persistent_workers=True)
    loader.set_epoch(2)
    for seed in (8, 9):
        loader.set_seed(seed)
        expected = make(data, [4, 3], batch_size=25, seed=seed)
        expected.set_epoch(2)
        assert [content(batch) for batch in loader] == [content(batch) for batch in expected]
    # Ends the workers now; the collector would wait 5 s for each.
    loader._iterator = None


@pytest.mark.parametrize("subgraph_type", ["directional", "bidirectional", "induced"])
@pytest.mark.parametrize("disjoint", [False, True])
def test_backward_is_forward_on_the_reversed_edges(subgraph_type: str, disjoint: bool) -> None:
    data = random_data()
    turned = data.clone()
    turned.edge_index = data.edge_index.flip(0)
    options: Any = {"disjoint": disjoint, "seed": 1, "subgraph_type": subgraph_type}
    sampler = PGSampler(data, [4, 3], sample_direction="backward", **options)
    assert sampler.sample_direction == "backward"
    got, forward = sampled(sampler), sampled(PGSampler(turned, [4, 3], **options))
    if subgraph_type == "bidirectional":
        # Both ways are sorted by target.
        assert got["node"] == forward["node"]
        assert set(zip(got["row"], got["col"], strict=True)) == set(
            zip(forward["row"], forward["col"], strict=True)
        )
        return
    assert (got.pop("row"), got.pop("col")) == (forward.pop("col"), forward.pop("row"))
    assert got == forward
    loader = NodeLoader(data, sampler, SEEDS, batch_size=10)
    for batch in loader:
        assert batch.n_id[batch.edge_index].equal(data.edge_index[:, batch.e_id])


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
def test_backward_of_every_kind_of_graph() -> None:
    """All out-edges, by their ids, of sorted edges, of a matrix and of a Graph with ids."""
    data = random_data()
    order = data.edge_index[0].argsort(stable=True)
    in_order = data.clone()
    in_order.edge_index = data.edge_index[:, order]
    rows = torch.sparse_coo_tensor(
        data.edge_index.flip(0), data.edge_attr, (100, 100), check_invariants=True
    )
    matrix = data.clone()
    matrix.edge_index = None
    matrix.adj_t = rows.coalesce().to_sparse_csr()
    edges = rows.coalesce().indices().flip(0)
    for given, known, options in (
        (data, data.edge_index, {}),
        (in_order, in_order.edge_index, {"is_sorted": True}),
        (matrix, edges, {}),
        (PGSampler(data, [1]).graph, data.edge_index, {}),
    ):
        sampler = PGSampler(given, [-1], sample_direction="backward", **options)
        out = sampler.sample_from_nodes(NodeSamplerInput(None, SEEDS))
        assert out.node[torch.stack([out.row, out.col])].equal(known[:, out.edge])
        from_seeds = torch.isin(known[0], SEEDS).nonzero().squeeze(1)
        assert out.edge.sort().values.equal(from_seeds)
    with pytest.raises(ValueError, match="is_sorted: expected edge_index ordered by its row 0"):
        PGSampler(data, [1], sample_direction="backward", is_sorted=True)
    with pytest.raises(ValueError, match="sample_direction: expected 'forward' or 'backward'"):
        PGSampler(data, [1], sample_direction="up")


@pytest.mark.filterwarnings("ignore:directed=False is deprecated")
def test_arguments_are_those_of_pygs_sampler() -> None:
    """Also by position; ours have more."""
    ours = inspect.signature(PGSampler.__init__).parameters
    theirs = inspect.signature(NeighborSampler.__init__).parameters
    # PyG before 2.7 has no sample_direction.
    assert [*theirs] == [name for name in ours if name in theirs]
    more = {"seed", "device", "edge_weights", "temporal_comparison", "carry"}
    assert set(ours) - set(theirs) <= more | {"sample_direction"}
    for name, parameter in theirs.items():
        assert ours[name].kind is parameter.kind
        assert ours[name].default == parameter.default
    data = random_data()
    by_place = PGSampler(data, [4, 3], "induced", True, True, seed=1)
    by_name = PGSampler(data, [4, 3], replace=True, disjoint=True, directed=False, seed=1)
    assert sampled(by_place) == sampled(by_name)
    with pytest.raises(TypeError, match="share_memory: expected True or False"):
        PGSampler(data, [4], share_memory=2)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["NeighborLoader", "LinkNeighborLoader", "HGTLoader"])
def test_every_argument_is_in_the_table(name: str) -> None:
    """Ours take what PyG's take, in its order, and the page says what becomes of each."""
    page = (Path(__file__).parents[2] / "docs" / "reference" / "pyg.md").read_text()
    table = page.partition("## Every argument")[2].partition("\n## ")[0]
    theirs = inspect.signature(getattr(loaders, name).__init__).parameters
    ours = inspect.signature(getattr(pygsampler.pyg, name).__init__).parameters
    assert [each for each in ours if each in theirs] == [*theirs]
    for each in ours:
        assert f"`{each}`" in table or each in ("self", "kwargs"), each
