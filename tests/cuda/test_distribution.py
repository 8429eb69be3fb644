"""Draws of the GPU against exact probabilities; that they are the CPU's is tested elsewhere."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import pygsampler as pgs
from tests.support.parity import MODES, of_rows, scaled

DEGREE, FANOUT = 7, 3


def chi_square(observed: np.ndarray[tuple[int], np.dtype[np.int64]], classes: int) -> float:
    """The statistic in standard deviations of its distribution, for classes of equal weight."""
    expected = observed.sum() / classes
    statistic = float(((observed - expected) ** 2 / expected).sum())
    return (statistic - (classes - 1)) / math.sqrt(2 * (classes - 1))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("replace", [False, True])
def test_every_outcome_is_as_likely(mode: str, replace: bool) -> None:
    """3 of 7: each of 35 subsets, or of 343 sequences."""
    rows = scaled(60_000, 3000 if replace else 1000)
    csc = of_rows([range(DEGREE)], rows)
    csc = type(csc)(np.arange(rows + 1) * DEGREE, np.tile(np.arange(DEGREE), rows), rows)
    sampler = pgs.PGSampler([FANOUT], seed=71, mode=mode, replace=replace)
    batch = sampler.sample(csc.graph(32).to("cuda"), np.arange(rows), batch=0)
    places = batch.blocks[0].edge_ids.cpu().numpy().reshape(rows, FANOUT) % DEGREE
    if replace:
        outcomes = list(itertools.product(range(DEGREE), repeat=FANOUT))
    else:
        places = np.sort(places)
        outcomes = list(itertools.combinations(range(DEGREE), FANOUT))
    weights = DEGREE ** np.arange(FANOUT)
    codes = {int(np.dot(outcome, weights)): i for i, outcome in enumerate(outcomes)}
    classes = np.array([codes[int(code)] for code in places @ weights])
    observed = np.bincount(classes, minlength=len(outcomes))
    # Fixed seeds: the same numbers always. Without replacement Floyd's order is not uniform,
    # the subset is.
    assert chi_square(observed, len(outcomes)) < 4
    for draw in range(FANOUT if replace else 0):
        each = np.bincount(places[:, draw], minlength=DEGREE)
        assert chi_square(each, DEGREE) < 4


def test_hops_and_batches_draw_afresh() -> None:
    """A vertex that is reached again gets other edges, and so does the next batch."""
    degree, rows = 200, 64
    csc = of_rows([range(degree)] * rows, degree)
    graph = csc.graph().to("cuda")
    sampler = pgs.PGSampler([10, 10], seed=72)
    seen = set()
    for number in range(4):
        batch = sampler.sample(graph, [0], batch=number)
        for block in batch.blocks:
            seen.add(tuple(sorted(block.edge_ids.cpu().tolist()[:10])))
    assert len(seen) == 8
