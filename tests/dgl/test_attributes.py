"""Attributes of DGL's samplers, by name and value, for subclasses that read or assign them."""

from __future__ import annotations

import inspect
import pickle
from itertools import product
from typing import Any

import dgl
import pytest
import torch

from pygsampler import dgl as ours
from pygsampler.dgl import LaborSampler, NeighborSampler
from tests.dgl.graphs import content, random_graph

pytestmark = pytest.mark.filterwarnings("ignore:Dataloader CPU affinity")

BLOCKS = {
    "edge_dir": ["in", "out"],
    "prefetch_node_feats": [None, [], ["x"], {"a": ["x"]}],
    "prefetch_edge_feats": [None, ["y"]],
    "output_device": [None, "cpu", torch.device("cpu")],
}
OPTIONS: dict[str, dict[str, list[Any]]] = {
    "NeighborSampler": {
        "fanouts": [[3, 2], (4,), [{"a": 2}], []],
        "by": [{}, {"prob": "w"}, {"mask": "m"}, {"prob": None, "mask": "m"}],
        "replace": [False, True],
        "fused": [True, False],
        "prefetch_labels": [None, ["label"]],
        **BLOCKS,
    },
    "LaborSampler": {
        "fanouts": [[3, 2], [{"a": 2}], []],
        "prob": [None, "w"],
        "importance_sampling": [0, 2, -1],
        "layer_dependency": [False, True],
        "batch_dependency": [1, 4, 0],
        "prefetch_labels": [None, ["label"]],
        **BLOCKS,
    },
    "ShaDowKHopSampler": {
        "fanouts": [[3, 2], []],
        "replace": [False, True],
        "prob": [None, "w"],
        **{name: values for name, values in BLOCKS.items() if name != "edge_dir"},
    },
    "SAINTSampler": {
        "of": [
            {"mode": "node", "budget": 5},
            {"mode": "edge", "budget": 7},
            {"mode": "walk", "budget": (3, 2)},
        ],
        "cache": [True, False],
        "prefetch_ndata": [None, ["x"]],
        "prefetch_edata": [None, ["y"]],
        "output_device": ["cpu", None],
    },
}


def calls(options: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """All pairs of values of two options, the first values of the others."""
    first = {name: values[0] for name, values in options.items()}
    found = []
    for one, other in product(options, options):
        for a, b in product(options[one], options[other]):
            chosen = {**first, one: a, other: b} if one < other else {**first, one: a}
            call: dict[str, Any] = {}
            for name, value in chosen.items():
                call |= value if name in ("by", "of") else {name: value}
            if call not in found:
                found.append(call)
    return found


def same(name: str, mine: Any, theirs: Any) -> bool:
    """True if values mean the same; random ones are alike in kind, and methods in name."""
    if name in ("random_seed", "rng"):
        return type(mine) is type(theirs) and getattr(mine, "shape", 0) == getattr(
            theirs, "shape", 0
        )
    if inspect.ismethod(theirs):
        return bool(mine.__name__ == theirs.__name__)
    if isinstance(theirs, torch.Tensor):
        return mine.dtype == theirs.dtype and mine.tolist() == theirs.tolist()
    return bool(mine == theirs) and type(mine) is type(theirs)


def compare(mine: Any, theirs: Any) -> None:
    """Every attribute of DGL's sampler is one of ours, with the same value."""
    for name, value in vars(theirs).items():
        assert same(name, getattr(mine, name), value), (name, getattr(mine, name), value)


@pytest.mark.parametrize("name", OPTIONS)
def test_attributes_are_those_of_dgl(name: str) -> None:
    for call in calls(OPTIONS[name]):
        compare(getattr(ours, name)(**call), getattr(dgl.dataloading, name)(**call))


def test_attributes_of_a_sampler_of_all_neighbors_are_those_of_dgl() -> None:
    for layers, options in product((0, 1, 3), ({}, {"mask": "m", "edge_dir": "out"})):
        compare(
            ours.MultiLayerFullNeighborSampler(layers, **options),
            dgl.dataloading.MultiLayerFullNeighborSampler(layers, **options),
        )


def test_attributes_of_clusters_are_those_of_dgl(tmp_path: Any) -> None:
    g = random_graph()
    options = {"prefetch_ndata": ["feat"], "output_device": "cpu"}
    mine = ours.ClusterGCNSampler(g, 3, None, **options)
    # METIS of DGL 1.1.3 does not end on some graphs: it reads the parts.
    path = tmp_path / "parts"
    path.write_bytes(pickle.dumps((mine.partition_offset, mine.partition_node_ids)))
    compare(mine, dgl.dataloading.ClusterGCNSampler(g, 3, str(path), **options))
    mine.prefetch_edata = ["weight"]
    assert mine.prefetch_edge_feats == ["weight"]


def test_attributes_of_pinsage_are_those_of_dgl() -> None:
    g = dgl.heterograph(
        {
            ("user", "buys", "item"): ([0, 0, 1, 1], [0, 1, 1, 2]),
            ("item", "bought-by", "user"): ([0, 1, 1, 2], [0, 0, 1, 1]),
        }
    )
    for call in (
        lambda of: of.PinSAGESampler(g, "user", "item", 3, 0.5, 10, 2),
        lambda of: of.PinSAGESampler(g, "item", "user", 1, 0.25, 4, 3, weight_column="n"),
        lambda of: of.RandomWalkNeighborSampler(g, 2, 0.5, 10, 3, ["buys", "bought-by"]),
    ):
        mine, theirs = call(ours), call(dgl.sampling)
        compare(mine, theirs)
        mine.num_traversals, theirs.num_traversals = 1, 1
        assert len(mine.full_metapath) == 2 and len(mine.restart_prob) == 2


def test_edge_prediction_has_the_attributes_of_dgl() -> None:
    options = {"exclude": "self", "prefetch_labels": ["w"]}
    mine, theirs = (
        dgl.dataloading.as_edge_prediction_sampler(each([2], output_device="cpu"), **options)
        for each in (NeighborSampler, dgl.dataloading.NeighborSampler)
    )
    for name, value in vars(theirs).items():
        if name != "sampler":
            assert getattr(mine, name) == value


def test_assigned_attributes_are_read_back() -> None:
    """Checks that values assigned to the attributes of DGL's sampler are read back and used."""
    for name, call in (("NeighborSampler", {"fanouts": [2]}), ("LaborSampler", {"fanouts": [2]})):
        mine = getattr(ours, name)(**call)
        for each, value in (
            ("fanouts", [4, 1]),
            ("edge_dir", "out"),
            ("prob", "weight"),
            ("prefetch_labels", ["label"]),
        ):
            setattr(mine, each, value)
            assert getattr(mine, each) == value
        assert len(mine.sample(random_graph(), torch.arange(5))[2]) == 2


def test_a_mask_is_read_as_prob() -> None:
    sampler = NeighborSampler([3], mask="m")
    assert (sampler.prob, sampler.mask) == ("m", "m")
    sampler.prob = "m"
    assert (sampler.prob, sampler.mask) == ("m", "m")
    sampler.mask = "n"
    assert (sampler.prob, sampler.mask) == ("n", "n")
    sampler.prob = None
    assert (sampler.prob, sampler.mask) == (None, None)
    sampler.prob = "w"
    assert (sampler.prob, sampler.mask) == ("w", None)


def test_fanouts_of_no_hop_have_no_blocks() -> None:
    g, seeds = random_graph(), torch.tensor([3, 1])
    for of in (ours, dgl.dataloading):
        for sampler in (
            of.NeighborSampler([]),
            of.MultiLayerFullNeighborSampler(0),
            of.LaborSampler([]),
        ):
            nodes, outputs, blocks = sampler.sample_blocks(g, seeds)
            assert nodes is seeds and outputs is seeds and blocks == []
        nodes, outputs, subgraph = of.ShaDowKHopSampler([]).sample(g, seeds)
        assert nodes.tolist() == outputs.tolist() == [3, 1] and subgraph.num_nodes() == 2
    typed = dgl.heterograph({("a", "to", "b"): ([0, 1], [1, 0])})
    ids = {"b": torch.tensor([1])}
    assert NeighborSampler([]).sample(typed, ids) == (ids, ids, [])
    # DGL's own ends with an IndexError here.
    for sampler in (NeighborSampler([], prefetch_labels=["label"]), LaborSampler([])):
        assert sampler.sample(g, seeds)[2] == []
        loader = dgl.dataloading.DataLoader(g, torch.arange(10), sampler, batch_size=4)
        assert [len(outputs) for _, outputs, _ in loader] == [4, 4, 2]
    # A hop that is added to the list counts.
    sampler.fanouts.append(2)
    assert len(sampler.sample(g, seeds)[2]) == 1


def test_numbers_of_labor_go_on_by_the_law_of_dgl() -> None:
    """A subclass that samples by ``g.sample_labors`` gets other numbers in each batch."""
    for period in (1, 3, 0):
        mine, theirs = (
            of([3], batch_dependency=period) for of in (LaborSampler, dgl.dataloading.LaborSampler)
        )
        compare(mine, theirs)
        for each in (mine, theirs):
            each.set_seed(5)
        seen = []
        for _ in range(7):
            assert mine.cnt.tolist() == theirs.cnt.tolist()
            assert mine.random_seed.tolist() == theirs.random_seed.tolist()
            seen.append(tuple(mine.random_seed.tolist()))
            mine.set_seed()
            theirs.set_seed()
        assert len(set(seen)) == {1: 7, 3: 3, 0: 1}[period]


def test_our_own_samples_do_not_read_the_numbers_of_dgl() -> None:
    g, seeds = random_graph(), torch.arange(40)
    found = []
    for read in (False, True):
        sampler = LaborSampler([4], seed=3)
        sampler.set_epoch(1)
        if read:
            assert sampler.rng is not None
        found.append(content(sampler.sample(g, seeds)))
    assert found[0] == found[1]
