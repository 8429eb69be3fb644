"""Options that PGSampler for DGL refuses, and its messages."""

from __future__ import annotations

import inspect
import pickle
from pathlib import Path
from typing import Any

import dgl
import pytest
import torch

import pygsampler as pgs
import pygsampler.dgl as ours_as_a_module
from pygsampler.dgl import PGSampler, Sampler
from tests.dgl.graphs import content, random_graph


def test_signature_is_dgls_a_seed_factors_and_the_mode() -> None:
    ours = inspect.signature(PGSampler.__init__).parameters
    theirs = inspect.signature(dgl.dataloading.NeighborSampler.__init__).parameters
    keywords = ["seed", "edge_weights", "mode", "mode_options"]
    assert list(ours) == [*theirs, *keywords]
    for name, parameter in theirs.items():
        assert ours[name].default == parameter.default
        assert ours[name].kind == parameter.kind
    for name in keywords:
        assert ours[name].kind is inspect.Parameter.KEYWORD_ONLY
    sampler = PGSampler([3, 2])
    assert isinstance(sampler, dgl.dataloading.BlockSampler)
    arguments = inspect.getfullargspec(sampler.sample).args
    assert arguments == ["self", "g", "seed_nodes", "exclude_eids"]
    assert (sampler.fanouts, sampler.edge_dir, sampler.replace) == ([3, 2], "in", False)


def test_dgls_names() -> None:
    for name in ("NeighborSampler", "MultiLayerNeighborSampler"):
        assert getattr(ours_as_a_module, name) is PGSampler
    g = random_graph()
    seeds = torch.arange(20)
    full = ours_as_a_module.MultiLayerFullNeighborSampler(2, seed=3)
    theirs = dgl.dataloading.MultiLayerFullNeighborSampler(2)
    mine, same, other = (
        sampler.sample(g, seeds)
        for sampler in (pickle.loads(pickle.dumps(full)), PGSampler([-1, -1], seed=3), theirs)
    )
    assert mine[0].tolist() == same[0].tolist()
    for block, equal, dgls in zip(mine[2], same[2], other[2], strict=True):
        assert block.edata[dgl.EID].tolist() == equal.edata[dgl.EID].tolist()
        assert sorted(block.edata[dgl.EID].tolist()) == sorted(dgls.edata[dgl.EID].tolist())
    with pytest.raises(ValueError, match=r"^num_layers: expected an integer >= 0, got -1"):
        ours_as_a_module.MultiLayerFullNeighborSampler(-1)


@pytest.mark.research
@pytest.mark.filterwarnings("ignore:Dataloader CPU affinity")
def test_the_papers_queue_in_dgls_loader_samples_as_without_it() -> None:
    g = random_graph()
    paper = {"mode": "queue", "mode_options": {"fetch_size": 5}}
    batches = []
    for options in ({}, {"mode": "fused"}, {"mode": "queue"}, paper):
        sampler = PGSampler([4, 3], seed=3, **options)
        sampler.set_epoch(0)
        loader = dgl.dataloading.DataLoader(g, torch.arange(60), sampler, batch_size=25)
        batches.append([[b.edata[dgl.EID].tolist() for b in blocks] for _, _, blocks in loader])
    assert all(each == batches[0] for each in batches)
    assert (sampler.mode, sampler.mode_options) == ("queue", {"fetch_size": 5})
    assert repr(sampler).endswith("replace=False, mode='queue', mode_options={'fetch_size': 5})")
    assert pickle.loads(pickle.dumps(sampler)).mode_options == {"fetch_size": 5}
    sampler.mode_options = None
    assert repr(sampler).endswith("replace=False, mode='queue')")
    sampler.mode = "auto"
    assert repr(sampler).endswith("replace=False)")


@pytest.mark.research
def test_the_mode_is_refused_where_it_is_not_there() -> None:
    sampler = PGSampler([3], mode="queue")
    with pytest.raises(ValueError, match=r"mode: expected one of .* got str 'fast'"):
        sampler.mode = "fast"
    assert sampler.mode == "queue"
    typed = dgl.heterograph({("a", "to", "b"): ([0, 1], [1, 0]), ("b", "by", "a"): ([0], [1])})
    with pytest.raises(ValueError, match=r"mode: expected one of .* for a heterogeneous graph"):
        sampler.sample(typed, {"b": torch.tensor([0])})


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"prob": 1}, TypeError, "^prob: expected the name of an edge array, got int 1"),
        ({"mask": True}, TypeError, "^mask: expected the name of an edge array, got bool"),
        ({"prob": "p", "mask": "m"}, ValueError, "prob, mask: expected at most one"),
        ({"edge_dir": "up"}, ValueError, "edge_dir: expected 'in' or 'out', got 'up'"),
        ({"replace": 1}, TypeError, "replace: expected True or False"),
        ({"seed": 1 << 64}, ValueError, "seed"),
        ({"seed": "a"}, TypeError, "seed"),
        ({"fanouts": [3, -3]}, ValueError, r"fanouts\[1\]: expected .*, got -3"),
        ({"fanouts": [1.5]}, TypeError, r"fanouts\[0\]"),
        ({"fanouts": 3}, TypeError, "fanouts"),
    ],
)
def test_options(options: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        PGSampler(**{"fanouts": [3, 2], **options})


@pytest.mark.parametrize(
    ("seeds", "error", "text"),
    [
        (torch.tensor([0, 500]), IndexError, "500"),
        (torch.tensor([-1]), IndexError, "-1"),
        (torch.tensor([0.5]), TypeError, "seed_nodes: expected int32 or int64"),
        (torch.tensor([True, False]), TypeError, "mask.nonzero"),
        (torch.tensor([[1]]), ValueError, "seed_nodes: expected a 1-D tensor"),
        (torch.zeros(1, dtype=torch.int64, device="meta"), ValueError, "on cpu, where g is"),
        ({"a": torch.tensor([0]), "b": torch.tensor([0])}, NotImplementedError, "dgl.to_homog"),
    ],
)
def test_seeds(seeds: Any, error: type[Exception], text: str) -> None:
    g = random_graph()
    sampler = PGSampler([3])
    with pytest.raises(error, match=text):
        sampler.sample(g, seeds)
    assert sampler.sample(g, torch.arange(3))[2][0].num_dst_nodes() == 3


@pytest.mark.parametrize("eids", [[4000], [-1], [-1, 7, 1 << 40, -5, 7]])
def test_excluded_ids_that_are_no_edges_exclude_nothing(eids: list[int]) -> None:
    g, seeds = random_graph(), torch.arange(60)
    edges = [e for e in eids if 0 <= e < g.num_edges()]
    sampler = PGSampler([30, 3], seed=1)
    sampler.set_epoch(0)
    given = sampler.sample(g, seeds, torch.tensor(eids))
    assert content(given) == content(sampler.sample(g, seeds, torch.tensor(edges).long()))
    assert not {7} & set(edges) & set(given[2][0].edata[dgl.EID].tolist())


def test_reverse_ids_of_edges_without_a_reverse() -> None:
    """The idiom: -1 for "none" in the table that as_edge_prediction_sampler takes."""
    g = random_graph()
    reverse = torch.full((g.num_edges(),), -1)
    reverse[:100] = torch.arange(100, 200)
    sampler = dgl.dataloading.as_edge_prediction_sampler(
        PGSampler([30, 30]), exclude="reverse_id", reverse_eids=reverse
    )
    _, _, blocks = sampler.sample(g, torch.tensor([0, 300]))
    found = {e for block in blocks for e in block.edata[dgl.EID].tolist()}
    assert found and not found & {0, 100, 300}


CHANGES: list[tuple[str, Any]] = [
    ("fanouts", [1, 4]),
    ("fanouts", (5,)),
    ("replace", True),
    ("prob", "weight"),
    ("mask", "weight"),
    ("prefetch_node_feats", ["feat"]),
    ("prefetch_labels", ["label"]),
    ("prefetch_edge_feats", ["weight"]),
    ("output_device", "cpu"),
]


@pytest.mark.parametrize(("name", "value"), CHANGES)
def test_assigned_attributes_count_from_the_next_batch(name: str, value: Any) -> None:
    g, seeds = random_graph(), torch.arange(60)
    options: dict[str, Any] = {"fanouts": [3, 2], name: value}
    sampler, expected = PGSampler([3, 2], seed=1), PGSampler(**options, seed=1)
    for each in (sampler, expected):
        each.set_epoch(0)
    before = content(sampler.sample(g, seeds))
    setattr(sampler, name, value)
    assert getattr(sampler, name) == value
    got, wanted = sampler.sample(g, seeds), expected.sample(g, seeds)
    assert content(got) == content(wanted)
    assert repr(sampler) == repr(expected)
    # A mask without a 0 leaves all edges.
    assert (content(got) != before) == (name in ("fanouts", "replace", "prob"))
    for mine, theirs in zip(got[2], wanted[2], strict=True):
        assert dict(mine.srcdata).keys() == dict(theirs.srcdata).keys()
        assert dict(mine.edata).keys() == dict(theirs.edata).keys()


def test_a_list_of_fanouts_may_be_changed_in_place() -> None:
    g, seeds = random_graph(), torch.arange(60)
    sampler = PGSampler([3, 2], seed=1)
    sampler.fanouts[1] = 5
    sampler.fanouts.append(1)
    wanted = PGSampler([3, 5, 1], seed=1).sample(g, seeds)
    assert content(sampler.sample(g, seeds)) == content(wanted)
    sampler.fanouts[0] = -3
    with pytest.raises(ValueError, match=r"fanouts\[0\]: expected .*, got -3"):
        sampler.sample(g, seeds)


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("fanouts", [3, -3], ValueError),
        ("replace", 1, TypeError),
        ("prob", 1, TypeError),
        ("mask", torch.ones(4000), TypeError),
        ("edge_dir", "up", ValueError),
        ("seed", 3, AttributeError),
    ],
)
def test_what_cannot_be_assigned_raises_and_changes_nothing(
    name: str, value: Any, error: type[Exception]
) -> None:
    g, seeds = random_graph(), torch.arange(60)
    sampler = PGSampler([3, 2], seed=1)
    sampler.set_epoch(0)
    before = content(sampler.sample(g, seeds))
    with pytest.raises(error, match=name):
        setattr(sampler, name, value)
    assert content(sampler.sample(g, seeds)) == before


def test_graphs() -> None:
    hetero = dgl.heterograph({("a", "x", "b"): ([0], [0]), ("b", "y", "a"): ([0], [0])})
    with pytest.raises(NotImplementedError, match="2 node types and 2 edge types"):
        Sampler(pgs.PGSampler([3])).sample(hetero, {"a": torch.tensor([0])})
    block = PGSampler([3]).sample(random_graph(), torch.arange(3))[2][0]
    with pytest.raises(NotImplementedError, match="homogeneous"):
        PGSampler([3]).sample(block, torch.arange(3))
    with pytest.raises(TypeError, match="g: expected a dgl"):
        PGSampler([3]).sample("graph", torch.arange(3))


@pytest.mark.parametrize("epoch", [-1, 1 << 24, 1.0, True])
def test_epoch(epoch: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="epoch: expected an integer"):
        PGSampler([3]).set_epoch(epoch)


def test_every_argument_is_in_the_table() -> None:
    """The page says what becomes of each argument of DGL's samplers and loader."""
    page = (Path(__file__).parents[2] / "docs" / "reference" / "dgl.md").read_text()
    table = page.partition("## Every argument")[2].partition("\n## ")[0]
    loading = dgl.dataloading
    for each in (
        loading.NeighborSampler,
        loading.LaborSampler,
        loading.as_edge_prediction_sampler,
        loading.DataLoader,
    ):
        # The graph and its seeds, and the samplers, which the table is of.
        known = {"kwargs", "graph", "indices", "graph_sampler", "sampler"}
        for name in inspect.signature(each).parameters:
            assert f"`{name}" in table or name in known, (each, name)
