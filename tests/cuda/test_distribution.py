"""Draws of the GPU against exact probabilities; that they are the CPU's is tested elsewhere."""

from __future__ import annotations

import pytest

import pygsampler as pgs
from tests.statistics import laws
from tests.statistics.sources import At, Engine, Shape
from tests.support.parity import MODES, of_rows, scaled


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("replace", [False, True])
def test_every_outcome_is_as_likely(mode: str, replace: bool) -> None:
    """3 of 7: each of 35 subsets, or of 343 sequences."""
    rows = scaled(60_000, 3500 if replace else 1000)
    (found,) = Engine("cuda", mode).hops(At(seed=71), Shape(rows, 7, 3, replace), 1)
    # Fixed seeds: the same numbers always.
    if replace:
        assert laws.sequences(found, 7, replace=True) > 1e-3
    else:
        assert laws.subsets(found, 7) > 1e-3
        assert laws.singles(found, 7) > 1e-3


@pytest.mark.parametrize("mode", MODES)
def test_hops_and_batches_are_independent(mode: str) -> None:
    shape = Shape(scaled(36_000, 1800), 4, 2)
    engine = Engine("cuda", mode)
    first, second = engine.hops(At(seed=72), shape, 2)
    (other,) = engine.hops(At(seed=72, batch=1), shape, 1)
    assert laws.independent(first, second, 4, replace=False) > 1e-3
    assert laws.independent(first, other, 4, replace=False) > 1e-3


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
