"""The listings of gSampler's paper (Gong et al., SOSP 2023, Figures 2 and 3), as printed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pygsampler as pgs
from pygsampler.programs import stack

NODES, EDGES = 40, 300
RNG = np.random.default_rng(11)
ENDS = RNG.integers(0, NODES, (2, EDGES))
WEIGHTS = RNG.uniform(0.1, 1, EDGES)
X = RNG.normal(size=(NODES, 5)).astype(np.float32)
GRAPH = pgs.Graph.from_coo(*ENDS, num_nodes=NODES, edge_data={"weight": WEIGHTS})
SEEDS = np.array([3, 17, 3, 8, 25])


def column(node: int) -> np.ndarray:
    """Returns the ids of the edges to a node."""
    return np.flatnonzero(ENDS[1] == node)


def edges_of(block: Any) -> list[tuple[int, np.ndarray, np.ndarray]]:
    """Returns for each destination its id, its edges' ids, and their values."""
    ends = block.indptr.tolist()
    return [
        (v, block.edge_ids.numpy()[a:b], block.edge_data["w"].numpy()[a:b])
        for v, a, b in zip(block.dst_nodes.tolist(), ends, ends[1:], strict=False)
    ]


@pgs.program
def graphsage(A, frontiers, K):
    sub_A = A[:, frontiers]
    sample_A = sub_A.individual_sample(K)
    next_frontiers = sample_A.row()
    return sample_A, next_frontiers


def test_figure_3a_graphsage_runs_as_printed() -> None:
    batch = graphsage(K=3, seed=1, weight="weight").sample(GRAPH, SEEDS)
    (block,) = batch.blocks
    assert block.dst_nodes.tolist() == [3, 17, 8, 25]
    for v, ids, values in edges_of(block):
        assert len(ids) == min(3, len(column(v))) and set(ids) <= set(column(v))
        assert values.tolist() == WEIGHTS[ids].astype(np.float32).tolist()
    frontiers = batch.extra["next_frontiers"].numpy()
    assert len(set(frontiers.tolist())) == len(frontiers)
    assert set(frontiers.tolist()) == set(ENDS[0][block.edge_ids.numpy()].tolist())


def test_layers_of_a_listing_are_stacked_in_a_program() -> None:
    def layer(A: Any, frontiers: Any, K: int) -> Any:
        sample_A = A[:, frontiers].individual_sample(K)
        return sample_A, sample_A.row()

    @pgs.program
    def both(A: Any, seeds: Any, K: int) -> Any:
        inner, frontiers = layer(A, seeds, K)
        outer, frontiers = layer(A, frontiers, K)
        return [outer, inner], frontiers

    batch = both(K=2, seed=1).sample(GRAPH, SEEDS)
    assert len(batch.blocks) == 2
    outermost = batch.blocks[0]
    assert set(batch.extra["next_frontiers"].tolist()) == set(
        ENDS[0][outermost.edge_ids.numpy()].tolist()
    )


@pgs.program
def normalized(A, seeds):
    h = (A[:, seeds] ** 2).sum(axis=1)
    return {"rows": A[:, seeds].row(), "h": h / h.sum()}


def test_figure_2_normalizes_along_rows() -> None:
    extra = normalized(seed=0, weight="weight").sample(GRAPH, SEEDS).extra
    total = np.zeros(NODES)
    for v in set(SEEDS.tolist()):
        np.add.at(total, ENDS[0][column(v)], WEIGHTS[column(v)] ** 2)
    rows = extra["rows"].numpy()
    assert extra["h"].numpy() == pytest.approx(total[rows] / total.sum(), rel=1e-6)


@pgs.program
def ladies_as_printed(A, frontiers, K):
    sub_A = A[:, frontiers]
    row_probs = (sub_A ** 2).sum(axis=0)  # fmt: skip
    sample_A = sub_A.collective_sample(K, row_probs)
    select_probs = row_probs[sample_A.row()]
    sample_A = sample_A.div(select_probs, axis=1)
    sample_A = sample_A.div(sample_A.sum(axis=0))
    next_frontiers = sample_A.row()
    return sample_A, next_frontiers


@pgs.program
def ladies(A, frontiers, K):
    sub_A = A[:, frontiers]
    row_probs = (sub_A ** 2).sum(axis=1)  # fmt: skip
    sample_A = sub_A.collective_sample(K, row_probs)
    select_probs = row_probs[sample_A.row()]
    sample_A = sample_A.div(select_probs, axis=1)
    sample_A = sample_A.div(sample_A.sum(axis=0))
    next_frontiers = sample_A.row()
    return sample_A, next_frontiers


def test_figure_3b_ladies_says_which_axis_the_paper_means() -> None:
    with pytest.raises(
        ValueError,
        match=r"test_gsampler_listings.py:\d+: collective_sample: expected a vector along the "
        r"matrix's rows, as sum\(axis=1\) makes, got one along its columns; gSampler's listing of "
        r"LADIES .* Figure 3b\) is printed with axis=0, and its Figure 2 with axis=1",
    ):
        ladies_as_printed(K=4, weight="weight")


def test_figure_3b_ladies_runs_with_the_axis_of_figure_2() -> None:
    batch = ladies(K=4, seed=2, weight="weight").sample(GRAPH, SEEDS)
    (block,) = batch.blocks
    chance = np.zeros(NODES)
    for v in set(SEEDS.tolist()):
        np.add.at(chance, ENDS[0][column(v)], WEIGHTS[column(v)] ** 2)
    rows = batch.extra["next_frontiers"].tolist()
    assert len(rows) == 4
    for v, ids, values in edges_of(block):
        # All edges between chosen rows and the column, and no others.
        assert sorted(ids) == [e for e in column(v) if ENDS[0][e] in rows]
        share = WEIGHTS[ids] / chance[ENDS[0][ids]]
        assert values == pytest.approx(share / share.sum(), rel=1e-6)


@pgs.program
def pass_as_printed(A, frontiers, K, features, W1, W2, W3):
    sub_A = A[:, frontiers]
    B = features
    C = features[frontiers]
    A1 = sub_A * ((B @ W1) @ (C @ W1))
    A2 = sub_A * ((B @ W2) @ (C @ W2))
    A3 = sub_A.div(sub_A.sum(axis=0))
    att_A = stack([A1, A2, A3])
    att_A = (att_A @ W3.softmax()).relu()
    sample_A = sub_A.individual_sample(k, att_A)  # noqa: F821
    next_frontiers = sample_A.row()
    return sample_A, next_frontiers


@pgs.program
def attention(A, frontiers, K, features, W1, W2, W3):
    sub_A = A[:, frontiers]
    B = features
    C = features[frontiers]
    A1 = sub_A * ((B @ W1) @ (C @ W1).T)
    A2 = sub_A * ((B @ W2) @ (C @ W2).T)
    A3 = sub_A.div(sub_A.sum(axis=0))
    att_A = stack([A1, A2, A3])
    att_A = (att_A @ W3.softmax()).relu()
    sample_A = sub_A.individual_sample(K, att_A)
    next_frontiers = sample_A.row()
    return sample_A, next_frontiers


MATRICES = {name: RNG.normal(size=(5, 4)).astype(np.float32) for name in ("W1", "W2")}
W3 = np.array([0.5, -0.25, 1], np.float32)


def test_figure_3c_pass_says_that_a_transpose_is_missing() -> None:
    with pytest.raises(
        TypeError,
        match=r"test_gsampler_listings.py:\d+: @ of DenseRows .* the rows Q\.T: .*Figure 3c\) is "
        r"printed without \.T",
    ):
        pass_as_printed(K=3, features=X, **MATRICES, W3=W3)


def test_figure_3c_pass_runs_with_the_transpose() -> None:
    sampler = attention(K=3, features=X, **MATRICES, W3=W3, seed=4, weight="weight")
    assert set(sampler.inputs) == {"features", "W1", "W2", "W3"}
    batch = sampler.sample(GRAPH, SEEDS)
    (block,) = batch.blocks
    share = np.exp(W3.astype(float)) / np.exp(W3.astype(float)).sum()
    first, second = (X @ W for W in MATRICES.values())
    drawn = 0
    for v, ids, _ in edges_of(block):
        every = column(v)
        src, w = ENDS[0][every], WEIGHTS[every]
        score = share[0] * w * (first[src] @ first[v]) + share[1] * w * (second[src] @ second[v])
        att = dict(zip(every, np.maximum(score + share[2] * w / w.sum(), 0), strict=True))
        assert len(ids) == min(3, sum(each > 0 for each in att.values()))
        assert all(att[e] > 0 for e in ids)
        drawn += len(ids)
    assert drawn > 6
