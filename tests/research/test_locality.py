"""``locality_scores``: GNNSampler's measure, as published and repaired."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest

import pygsampler as pgs
from pygsampler import research

# The package has a function of this name too.
module: Any = import_module("pygsampler.research.locality")

# Neighbours with the published and the repaired score.
RUN = list(range(3, 8))
LAW = [
    ([0, 50, 100, 150], 0.654, 0.020),
    ([v + 100_000 for v in (0, 50, 100, 150)], 1.000, 0.020),
    ([100_000, 150_000, 200_000, 250_000], 0.907, 2e-5),
    (RUN, 1.185, 1.0),
    ([10, 11, 12, 20], 0.956, 0.247),
    ([v + 10**6 for v in (10, 11, 12, 20)], 1.000, 0.247),
    ([7, 3, 4, 4, 5, 6, 6], None, 1.0),  # in any order, and once
    ([1, 2, 3], 0.0, 0.0),  # too few
]


def of_neighbors(lists: list[list[int]], num_nodes: int = 1_100_000, **how: Any) -> pgs.Graph:
    indptr = np.concatenate([[0], np.cumsum([len(part) for part in lists])])
    return pgs.Graph.from_csc(indptr, np.concatenate(lists), num_nodes=num_nodes, **how)


@pytest.mark.parametrize("chunk", [1, 9, 1 << 20])
@pytest.mark.parametrize("place", [1, 2])
def test_the_table(monkeypatch: pytest.MonkeyPatch, chunk: int, place: int) -> None:
    monkeypatch.setattr(module, "_CHUNK", chunk)
    graph = of_neighbors([list(row[0]) for row in LAW])
    measure = ["published", "repaired"][place - 1]
    scores = research.locality_scores(graph, measure=measure)
    assert scores.shape == (graph.num_nodes,)
    for score, row in zip(scores, LAW, strict=False):
        if row[place] is not None:
            assert score == pytest.approx(row[place], abs=6e-4, rel=2e-2)
    assert not scores[len(LAW) :].any()


def good_neighbors(ids: list[int], step: int) -> list[int]:
    """Generates a node's good neighbors as the authors' neigh_analysis.py does."""
    avg, half = int(np.mean(ids)), len(ids) // 2
    stop = avg + half * step + (1 if len(ids) % 2 == 0 else 2) * step
    return list(range(avg - half * step + step, stop, step))


@pytest.mark.parametrize("step", [1, 3, 50])
def test_a_step_sets_good_neighbors_apart(step: int) -> None:
    """Algorithm 5, line 6, computed node by node; marks are 1 above the threshold alone."""
    random = np.random.default_rng(step)
    lists = [sorted(random.integers(0, 400, n).tolist()) for n in range(1, 40)]
    graph = of_neighbors(lists, num_nodes=400)
    how: dict[str, Any] = {"measure": "published", "step": step, "min_neighbors": 4}
    law = [
        sum(x * g for x, g in zip(ids, good_neighbors(ids, step), strict=True))
        / sum(x * x for x in ids)
        if len(ids) >= 4
        else 0
        for ids in lists
    ]
    scores = research.locality_scores(graph, **how)
    np.testing.assert_allclose(scores[: len(law)], law, rtol=1e-6)
    s = float(np.median(law))
    marks = research.locality_scores(graph, threshold=s, **how)
    assert marks[: len(law)].tolist() == [float(each > s) for each in law] and marks.sum() > 0


def test_a_step_has_to_be_the_published_measures() -> None:
    graph = of_neighbors([RUN], num_nodes=20)
    with pytest.raises(ValueError, match="step: expected 1 with measure='repaired', got 2; "):
        research.locality_scores(graph, step=2)
    with pytest.raises(ValueError, match="step: expected an integer from 1"):
        research.locality_scores(graph, measure="published", step=0)


def test_scores_do_not_know_where_ids_lie() -> None:
    random = np.random.default_rng(3)
    lists = [random.integers(0, 1000, n).tolist() for n in range(1, 60)]
    here = module._repaired(np.concatenate(lists), np.arange(1, 60), 2)
    far = module._repaired(np.concatenate(lists) + (1 << 47), np.arange(1, 60), 2)
    np.testing.assert_array_equal(here, far)
    assert here[2:].all()


def test_marks() -> None:
    graph = of_neighbors([RUN, [0, 2, 4, 6], [0, 50, 100, 150], [1, 2]], num_nodes=200)
    assert research.locality_scores(graph, threshold=0.4).nonzero()[0].tolist() == [0, 1]
    assert research.locality_scores(graph, share=0.005).nonzero()[0].tolist() == [0]
    assert research.locality_scores(graph, share=1.0).nonzero()[0].tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="expected one of them, got both"):
        research.locality_scores(graph, threshold=0.4, share=0.5)
    with pytest.raises(ValueError, match="share: expected a number above 0 and at most 1, got 0"):
        research.locality_scores(graph, share=0)
    with pytest.raises(ValueError, match="measure: expected 'repaired' or 'published', got 'x'"):
        research.locality_scores(graph, measure="x")
    with pytest.raises(ValueError, match="min_neighbors"):
        research.locality_scores(graph, min_neighbors=1)
