"""What PASS learns by: ratios of chances, and their gradients, against the formula."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from partners import partner

import pygsampler as pgs
from pygsampler import samplers

torch: Any = partner("torch")

NODES, D, H = 12, 3, 2
RNG = np.random.default_rng(4)
SRC, DST = RNG.integers(0, NODES, (2, 50))
X, WEIGHT = RNG.normal(size=(NODES, D)), RNG.uniform(0.5, 2, 50)


def tensors(seed: int) -> dict[str, Any]:
    random = torch.Generator().manual_seed(seed)
    W1, W2 = torch.randn(2, D, H, generator=random, dtype=torch.float64)
    return {"W1": W1, "W2": W2, "W3": torch.rand(3, generator=random, dtype=torch.float64)}


def chances(given: dict[str, Any], weight: Any) -> Any:
    """p of every edge of the graph, as the paper has it."""
    W1, W2, W3 = (given[name].numpy() for name in ("W1", "W2", "W3"))
    share = np.exp(W3) / np.exp(W3).sum()
    att = np.zeros(len(SRC))
    for e, (u, v) in enumerate(zip(SRC, DST, strict=True)):
        a = [(X[u] @ W) @ (X[v] @ W) for W in (W1, W2)] + [weight[e] / weight[v == DST].sum()]
        att[e] = max(share @ a, 0) + 1e-9
    return np.array([a / att[v == DST].sum() for a, v in zip(att, DST, strict=True)])


def drawn(given: dict[str, Any], weighted: bool) -> tuple[pgs.Graph, Any, dict[str, Any]]:
    graph = pgs.Graph.from_coo(SRC, DST, num_nodes=NODES)
    graph = graph.with_data({"w": WEIGHT}, {"x": X.astype(np.float32)})
    weight = "w" if weighted else None
    sampler = samplers.learned.pass_sampler(fanouts=[3, 4], **given, weight=weight, seed=2)
    made = sampler.sample(graph, [5, 1, 7]).torch()
    return graph, made, {"weight": torch.from_numpy(WEIGHT) if weighted else None}


@pytest.mark.parametrize("weighted", [False, True])
def test_ratios_are_of_now_and_then(weighted: bool) -> None:
    then, now = tensors(1), tensors(2)
    graph, made, options = drawn(then, weighted)
    weight = WEIGHT if weighted else np.ones(len(SRC))
    changed = chances(now, weight) / chances(then, weight)
    assert not np.allclose(changed, 1, atol=0.1)
    for block in made.blocks:
        same = samplers.learned.pass_ratio(graph, block, torch.from_numpy(X), **then, **options)
        assert len(same) == block.num_edges > 0
        assert torch.allclose(same, torch.ones_like(same), rtol=1e-5)
        other = samplers.learned.pass_ratio(graph, block, torch.from_numpy(X), **now, **options)
        assert np.allclose(other, changed[block.edge_ids], rtol=1e-4)


@pytest.mark.parametrize("weighted", [False, True])
def test_gradients_are_those_of_log_p(weighted: bool) -> None:
    """By finite differences, of a sum with a factor for each draw, as dL/dh_v . h_u is."""
    given = tensors(1)
    graph, made, options = drawn(given, weighted)
    block, weight = made.blocks[0], WEIGHT if weighted else np.ones(len(SRC))
    factors = torch.randn(block.num_edges, generator=torch.Generator().manual_seed(3)).double()
    leaves = {name: W.clone().requires_grad_() for name, W in given.items()}
    ratio = samplers.learned.pass_ratio(graph, block, torch.from_numpy(X), **leaves, **options)
    (factors * ratio).sum().backward()
    step = 1e-5
    for name, leaf in leaves.items():
        assert leaf.grad is not None and leaf.grad.abs().max() > 0.01
        for at in np.ndindex(*leaf.shape):
            sums = []
            for sign in (1, -1):
                moved = {key: W.clone() for key, W in given.items()}
                moved[name][at] += sign * step
                logs = np.log(chances(moved, weight))[block.edge_ids]
                sums.append(float(factors.numpy() @ logs))
            slope = (sums[0] - sums[1]) / (2 * step)
            assert leaf.grad[at] == pytest.approx(slope, rel=1e-4, abs=1e-5)


def test_what_is_wrong() -> None:
    given = tensors(1)
    graph, made, _ = drawn(given, False)
    x, block = torch.from_numpy(X), made.blocks[0]
    with pytest.raises(TypeError, match=r"graph: expected a pygsampler.Graph, got int 3"):
        samplers.learned.pass_ratio(3, block, x, **given)  # type: ignore[arg-type]
    plain = pgs.PGSampler([2]).sample(graph, [0]).torch().blocks[0]
    with pytest.raises(ValueError, match=r"block: expected a Block of samplers"):
        samplers.learned.pass_ratio(graph, plain, x, **given)
    with pytest.raises(ValueError, match=r"x: expected shape \[12, any\], got \[11, 3\]"):
        samplers.learned.pass_ratio(graph, block, x[:11], **given)
    with pytest.raises(ValueError, match=r"W2: expected shape \[3, any\], got \[2, 2\]"):
        samplers.learned.pass_ratio(graph, block, x, **{**given, "W2": given["W2"][:2]})
    with pytest.raises(TypeError, match="W3: expected a tensor, got list"):
        samplers.learned.pass_ratio(graph, block, x, **{**given, "W3": [1.0, 1, 1]})
