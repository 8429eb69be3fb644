"""Dependent rounding and chances with a sum: their laws, on columns of several lanes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import pygsampler as pgs

BATCHES = 4000


@pgs.program
def rounded(A: Any, seeds: Any) -> Any:
    return A[:, seeds].dependent_sample()


@pgs.program
def of_a_sum(A: Any, seeds: Any, *, K: float) -> Any:
    return A[:, seeds].cap(K).dependent_sample()


def column(p: list[float]) -> pgs.Graph:
    """Edge i leads from i + 1 to 0, and has p[i]."""
    d = len(p)
    return pgs.Graph.from_coo(
        list(range(1, d + 1)), [0] * d, num_nodes=d + 1, edge_data={"p": np.array(p)}
    )


def drawn(sampler: Any, graph: pgs.Graph) -> np.ndarray[Any, Any]:
    """Which edges each batch has: [BATCHES, edges]."""
    found = np.zeros((BATCHES, graph.num_edges), bool)
    made = sampler.sample_many(graph, [np.zeros(1, np.int64)] * BATCHES, epoch=0)
    for row, batch in zip(found, made, strict=True):
        row[batch.blocks[0].edge_ids.numpy()] = True
    return found


@pytest.mark.parametrize("edges", [5, 77])
@pytest.mark.parametrize("fraction", [0, 0.3])
def test_chances_are_exact_and_the_number_too(edges: int, fraction: float) -> None:
    rng = np.random.default_rng(edges)
    # 0, 1, and others whose sum is an integer, but for doubles, and a fraction.
    p = np.concatenate([[0, 1], rng.dirichlet(np.ones(edges - 3)) * 0.99, [0.01 + fraction]])
    found = drawn(rounded(weight="p", seed=3), column(p.tolist()))
    assert set(found.sum(axis=1)) == ({2, 3} if fraction else {2})
    error = np.abs(found.mean(axis=0) - p)
    assert (error <= 5 * np.sqrt(p * (1 - p) / BATCHES)).all()


def test_pairs_are_no_likelier_than_independent_ones() -> None:
    """Of six edges with a half each, three come: a pair comes in at most a quarter of batches."""
    found = drawn(rounded(weight="p", seed=3), column([0.5] * 6))
    assert set(found.sum(axis=1)) == {3}
    both = (found[:, :, None] & found[:, None, :]).mean(axis=0)[~np.eye(6, dtype=bool)]
    assert (both < 0.25 + 5 * math.sqrt(0.1875 / BATCHES)).all()
    # In all 15 pairs 3 of the 15 that three edges make.
    assert both.mean() == pytest.approx(0.2)


def test_chances_with_a_sum() -> None:
    """Two of six weights are capped by a sum of 3.5: what is left of it goes to the others."""
    v = np.array([40.0, 0, 1, 9, 3, 2])
    want = np.array([1, 0, 0.25, 1, 0.75, 0.5])
    found = drawn(of_a_sum(K=3.5, weight="p", seed=3), column(v.tolist()))
    assert set(found.sum(axis=1)) == {3, 4}
    assert (np.abs(found.mean(axis=0) - want) <= 5 * np.sqrt(want * (1 - want) / BATCHES)).all()
    # No more edges than that: all of them; and none.
    for K, edges in ((9, [0, 2, 3, 4, 5]), (5, [0, 2, 3, 4, 5]), (0, []), (-1, [])):
        made = of_a_sum(K=K, weight="p", seed=3).sample(column(v.tolist()), [0])
        assert made.blocks[0].edge_ids.numpy().tolist() == edges
        values = made.blocks[0].edge_data["w"].numpy() if edges else np.ones(0)
        assert set(values.tolist()) <= {1.0}


def test_a_sum_for_each_column() -> None:
    @pgs.program
    def shares(A: Any, seeds: Any) -> Any:
        C = A[:, seeds]
        chances = C.cap(A.ndata["sum"])
        return chances, {"sum": chances.sum(axis=0), "half": C.cap(C.count(axis=0) / 2).max(axis=0)}

    graph = pgs.Graph.from_coo(
        [1, 2, 3, 1, 2, 3, 0],
        [0, 0, 0, 1, 1, 1, 2],
        edge_data={"p": np.array([1.0, 2, 9, 1, 1, 1, 5])},
        node_data={"sum": np.array([1.5, 2.0, 1.0, 4.0])},
    )
    extra = shares(weight="p", seed=1).sample(graph, [2, 0, 1, 3]).extra
    assert extra["sum"].numpy() == pytest.approx([1, 1.5, 2, 0])
    assert extra["half"].numpy() == pytest.approx([0.5, 1, 0.5, 0])


@pytest.mark.parametrize("wrong", [-0.25, 1.25, math.nan, math.inf])
def test_what_is_no_chance(wrong: float) -> None:
    graph = column([0.5, wrong])
    with pytest.raises(ValueError, match=r"dependent_sample: expected chances in \[0, 1\], got"):
        rounded(weight="p", seed=1).sample(graph, [0])
    if wrong != 1.25:
        with pytest.raises(ValueError, match=r"cap: expected probabilities .* for node 0"):
            of_a_sum(K=1, weight="p", seed=1).sample(graph, [0])


def test_what_is_refused_when_it_is_traced() -> None:
    def row(A: Any, seeds: Any) -> Any:
        return A[:, seeds].cap(A[:, seeds].sum(axis=1))

    def word(A: Any, seeds: Any) -> Any:
        return A[:, seeds].cap("many")

    def vector(A: Any, seeds: Any) -> Any:
        return A[:, seeds].dependent_sample(A.degree())

    for body, message in (
        (row, "level: expected a vector along the matrix's columns"),
        (word, "cap: K: .*: expected a number, or a vector along its columns"),
        (vector, "dependent_sample: p: .*: expected a matrix"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            pgs.program(body)()
