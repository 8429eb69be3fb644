"""MVS with the bounds that training brings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from partners import partner
from sampler_laws import BOTH, batches, edges_of, of

import pygsampler as pgs
from pygsampler import samplers

torch: Any = partner("torch")


def test_batches_are_those_of_mvs_with_the_bounds() -> None:
    graph = of(BOTH)
    sampler = samplers.learned.mvs_trained(graph, size=2, fanouts=[1, -1], seed=3)
    bounds = np.ones(5)
    for version in range(2):
        if version:
            assert sampler.update([1, 4], torch.tensor([3.0, 5.0])) == sampler.version == 1
            bounds[[1, 4]] = 3, 5
        plain = samplers.mvs(size=2, fanouts=[1, -1], seed=3)
        sampler.set_epoch(0)
        here = batches(sampler, graph, [0, 1, 3, 4], 40)
        there = batches(
            plain, graph.with_data(node_data={"gradient_norm": bounds}), [0, 1, 3, 4], 40
        )
        for one, other in zip(here, there, strict=True):
            assert one.extra["loss_weight"].tolist() == other.extra["loss_weight"].tolist()
            assert [edges_of(b) for b in one.blocks] == [edges_of(b) for b in other.blocks]
    assert sampler.state_dict()["gradient_norm"].tolist() == bounds.tolist()


def test_hops_are_of_those_that_stay() -> None:
    sampler = samplers.learned.mvs_trained(of(BOTH), size=1, fanouts=[-1, -1], seed=3)
    for made in batches(sampler, of(BOTH), [0, 4], 50):
        stays = {v for v, w in zip((0, 4), made.extra["loss_weight"], strict=True) if w > 0}
        near = {(u, v) for u, v in BOTH if v in stays}
        reached = stays | {u for u, _ in near}
        assert {(u, v) for u, v, _ in edges_of(made.blocks[1])} == near
        assert {(u, v) for u, v, _ in edges_of(made.blocks[0])} == {
            (u, v) for u, v in BOTH if v in reached
        }


def test_bounds_are_above_a_share_of_the_mean() -> None:
    sampler = samplers.learned.mvs_trained(of(BOTH), size=2, seed=3)
    sampler.update(np.array([0, 2, 3]), np.array([0.0, 6, 9]), least=0.5)
    assert sampler.state_dict()["gradient_norm"].tolist() == [2.5, 1, 6, 9, 1]
    sampler.update([0, 1], [0.0, 0.0])
    assert (sampler.state_dict()["gradient_norm"] > 0).all()
    assert sampler.update([], []) == 3


def test_norms_of_gradients() -> None:
    """Of cross entropy: the norm of what softmax has beside the label."""
    layer, x = torch.nn.Linear(4, 3), torch.randn(6, 4)
    labels = torch.arange(6) % 3
    scores = layer(x)
    losses = torch.nn.functional.cross_entropy(scores, labels, reduction="none")
    found = samplers.learned.gradient_norms(losses, scores)
    beside = scores.softmax(1) - torch.nn.functional.one_hot(labels, 3)
    assert torch.allclose(found, beside.norm(dim=1), atol=1e-6)
    losses.mean().backward()
    assert layer.weight.grad is not None
    with pytest.raises(ValueError, match=r"losses: expected one for each row of scores \[6, 3\]"):
        samplers.learned.gradient_norms(losses[:5], scores)
    with pytest.raises(ValueError, match="losses: expected some with a gradient"):
        samplers.learned.gradient_norms(losses.detach(), scores)
    with pytest.raises(TypeError, match="scores: expected a tensor, got None"):
        samplers.learned.gradient_norms(losses, None)  # type: ignore[arg-type]


def test_what_is_wrong() -> None:
    sampler = samplers.learned.mvs_trained(of(BOTH), size=2)
    for nodes, norms, wrong in (
        ([0, 1], [1.0], ValueError),
        ([0, 0], [1.0, 1], ValueError),
        ([0, 1], [1.0, -1], ValueError),
        ([0, 1], [1.0, np.nan], ValueError),
        ([0, 5], [1.0, 1], IndexError),
        ([-1, 2], [1.0, 1], IndexError),
    ):
        with pytest.raises(wrong, match=r"nodes: expected|norms: expected"):
            sampler.update(nodes, norms)
    for least in (0, 2):
        with pytest.raises(ValueError, match=r"least: expected a number in \(0, 1\]"):
            sampler.update([0], [1.0], least=least)
    assert sampler.version == 0
    with pytest.raises(TypeError, match=r"graph: expected a pygsampler.Graph"):
        samplers.learned.mvs_trained(3, size=2)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="fanouts: expected a list of int"):
        samplers.learned.mvs_trained(pgs.Graph.from_csc([0], []), size=2, fanouts=3)  # type: ignore[arg-type]
