"""What PGSampler for DGL refuses, and how it says so."""

from __future__ import annotations

import inspect
from typing import Any

import dgl
import pytest
import torch
from dgl_graphs import random_graph

from pygsampler.dgl import PGSampler


def test_signature_is_dgls_and_a_seed() -> None:
    ours = inspect.signature(PGSampler.__init__).parameters
    theirs = inspect.signature(dgl.dataloading.NeighborSampler.__init__).parameters
    assert list(ours) == [*theirs, "seed"]
    for name, parameter in theirs.items():
        assert ours[name].default == parameter.default
        assert ours[name].kind == parameter.kind
    assert ours["seed"].kind is inspect.Parameter.KEYWORD_ONLY
    sampler = PGSampler([3, 2])
    assert isinstance(sampler, dgl.dataloading.BlockSampler)
    arguments = inspect.getfullargspec(sampler.sample).args
    assert arguments == ["self", "g", "seed_nodes", "exclude_eids"]
    assert (sampler.fanouts, sampler.edge_dir, sampler.replace) == ([3, 2], "in", False)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"prob": "p"}, NotImplementedError, "^prob: weighted sampling is not offered yet"),
        ({"mask": "m"}, NotImplementedError, "^mask: expected None, got .*dgl.edge_subgraph"),
        ({"prob": "p", "mask": "m"}, ValueError, "prob, mask: expected at most one"),
        ({"edge_dir": "out"}, NotImplementedError, r"edge_dir: .*dgl.reverse\(g\)"),
        ({"edge_dir": "up"}, ValueError, "edge_dir: expected 'in', got 'up'"),
        ({"replace": 1}, TypeError, "replace: expected True or False"),
        ({"seed": 1 << 64}, ValueError, "seed"),
        ({"seed": "a"}, TypeError, "seed"),
        ({"fanouts": []}, ValueError, "fanouts"),
        ({"fanouts": [3, -3]}, ValueError, r"fanouts\[1\]: expected .*, got -3"),
        ({"fanouts": [1.5]}, TypeError, r"fanouts\[0\]"),
        ({"fanouts": 3}, TypeError, "fanouts"),
        ({"fanouts": [{"a": 3}]}, NotImplementedError, "fanouts: .*heterographs"),
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
        ({"a": torch.tensor([0]), "b": torch.tensor([0])}, NotImplementedError, "one type"),
    ],
)
def test_seeds(seeds: Any, error: type[Exception], text: str) -> None:
    g = random_graph()
    sampler = PGSampler([3])
    with pytest.raises(error, match=text):
        sampler.sample(g, seeds)
    assert sampler.sample(g, torch.arange(3))[2][0].num_dst_nodes() == 3


@pytest.mark.parametrize("eids", [torch.tensor([4000]), torch.tensor([-1])])
def test_excluded_edges_out_of_range(eids: torch.Tensor) -> None:
    with pytest.raises(ValueError, match="exclude"):
        PGSampler([3]).sample(random_graph(), torch.arange(3), eids)


def test_graphs() -> None:
    hetero = dgl.heterograph({("a", "x", "b"): ([0], [0]), ("b", "y", "a"): ([0], [0])})
    with pytest.raises(NotImplementedError, match="2 node types and 2 edge types"):
        PGSampler([3]).sample(hetero, {"a": torch.tensor([0])})
    block = PGSampler([3]).sample(random_graph(), torch.arange(3))[2][0]
    with pytest.raises(NotImplementedError, match="homogeneous"):
        PGSampler([3]).sample(block, torch.arange(3))
    with pytest.raises(TypeError, match="g: expected a dgl"):
        PGSampler([3]).sample("graph", torch.arange(3))


@pytest.mark.parametrize("epoch", [-1, 1 << 24, 1.0, True])
def test_epoch(epoch: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="epoch: expected an integer"):
        PGSampler([3]).set_epoch(epoch)
