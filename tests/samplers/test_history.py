"""VR-GCN's history: the worked example, and its rows; AS-GCN's scores of features."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from sampler_laws import BOTH, batches, edges_of, of

import pygsampler as pgs
from pygsampler import samplers

torch = pytest.importorskip("torch", reason="needs torch")

A = torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64)
H = torch.tensor([0, 1, 5, 2, 7], dtype=torch.float64)[:, None]
BEFORE = torch.tensor([0, 1.5, 4, 2, 6], dtype=torch.float64)[:, None]


def star() -> pgs.Graph:
    """Four edges into 0, whose ids are not their places."""
    return pgs.Graph.from_coo([4, 3, 2, 1], [0, 0, 0, 0], num_nodes=5)


@pytest.mark.parametrize(("known", "variance"), [(True, 0.169), (False, 5.53)])
def test_the_worked_example(known: bool, variance: float) -> None:
    """The mean over the six pairs is the exact sum, 4.5; a history makes its variance small."""
    graph, coefficients = star(), A.flip(0)
    history = samplers.learned.History(graph, [1], dtype=torch.float64)
    if known:
        history.update(0, torch.arange(5), BEFORE)
    sampler = samplers.vrgcn(fanouts=[2], seed=3)
    found: dict[tuple[int, ...], float] = {}
    for number in range(200):
        block = sampler.sample(graph, [0], epoch=0, batch=number).torch().blocks[0]
        made = history.aggregate(0, block, H[block.src_nodes.long()], coefficients)
        found[tuple(sorted(block.edge_ids.tolist()))] = float(made)
    assert set(found) == set(itertools.combinations(range(4), 2))
    values = np.array(list(found.values()))
    assert values.mean() == pytest.approx(4.5, abs=1e-6)
    assert values.var() == pytest.approx(variance, rel=5e-3)


def test_what_is_known_is_exact() -> None:
    """Means over all in-edges in both layers of two blocks, and gradients of sampled rows."""
    rng = np.random.default_rng(2)
    src, dst = rng.integers(0, 40, (2, 500))
    graph = pgs.Graph.from_coo(src, dst, num_nodes=42)
    rows = torch.from_numpy(rng.normal(size=(42, 3)))
    history = samplers.learned.History(graph, [3], dtype=torch.float64)
    assert history.update(0, torch.arange(42), rows) == 1 == history.version
    exact = torch.zeros(42, 3, dtype=torch.float64).index_add_(0, torch.from_numpy(dst), rows[src])
    exact /= torch.from_numpy(np.bincount(dst, minlength=42)).clamp(min=1)[:, None]
    batch = samplers.vrgcn(fanouts=[2, 2], seed=1).sample(graph, [3, 4, 41, 40]).torch()
    for block in batch.blocks:
        now = rows[block.src_nodes.long()].requires_grad_()
        made = history.aggregate(0, block, now)
        # The weights are float32.
        assert torch.allclose(made, exact[block.dst_nodes.long()], atol=1e-6)
        made.sum().backward()
        assert now.grad is not None and now.grad.any()


def test_rows_and_states() -> None:
    history = samplers.learned.History(star(), [2, 3])
    one, other = history.tables
    history.update(1, torch.tensor([4, 2]), torch.tensor([[1.0, 2, 3], [4, 5, 6]]))
    assert history.read(1, torch.tensor([2, 0, 4])).tolist() == [[4, 5, 6], [0, 0, 0], [1, 2, 3]]
    assert not one.any() and other.any()
    again = samplers.learned.History(star(), [2, 3])
    state = history.state_dict()
    history.update(0, torch.tensor([0]), torch.ones(1, 2))
    again.load_state_dict(state)
    assert again.version == 1 and again.tables[1].equal(history.tables[1])
    assert not again.tables[0].any()


def test_what_is_wrong() -> None:
    history = samplers.learned.History(star(), [2])
    for wrong in ({}, {"version": 0, "tables": []}):
        with pytest.raises(ValueError, match="state: expected"):
            history.load_state_dict(wrong)
    with pytest.raises(ValueError, match="layer"):
        history.read(1, torch.tensor([0]))
    with pytest.raises(ValueError, match=r"rows: expected shape \(1, 2\), got \(1, 3\)"):
        history.update(0, torch.tensor([0]), torch.ones(1, 3))
    block = pgs.PGSampler([2]).sample(star(), [0]).torch().blocks[0]
    with pytest.raises(ValueError, match="block: expected one of samplers"):
        history.aggregate(0, block, torch.ones(block.num_src_nodes, 2))
    with pytest.raises(ValueError, match="widths"):
        samplers.learned.History(star(), [0])


def test_asgcn_of_features() -> None:
    """The batches of ``asgcn`` with the scores in the graph, before and after a change of w."""
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(5, 4)), rng.normal(size=(4, 2))
    graph = of(BOTH)
    options: dict[str, Any] = {"nodes": [2], "seed": 5}
    sampler = samplers.learned.asgcn_trained(graph, features=x, w=w, **options)
    found = []
    for version, change in enumerate((w, -w)):
        if version:
            assert sampler.update(torch.from_numpy(change)) == version
        scores = dict(zip(("h_source", "h_target"), (x @ change).T.copy(), strict=True))
        plain = samplers.asgcn(**options)
        sampler.set_epoch(0)
        here = batches(sampler, graph, [0, 3], 40)
        there = batches(plain, graph.with_data(node_data=scores), [0, 3], 40)
        found.append([edges_of(batch.blocks[0]) for batch in here])
        assert found[-1] == [edges_of(batch.blocks[0]) for batch in there]
    assert found[0] != found[1]
    assert set(sampler.state_dict()) == {"version", "h_source", "h_target"}
    for wrong in (w[:3], w * np.nan):
        with pytest.raises(ValueError, match="w: expected"):
            sampler.update(wrong)
    with pytest.raises(ValueError, match="features: expected a row for each of 5"):
        samplers.learned.asgcn_trained(graph, features=x[:4], w=w, **options)
