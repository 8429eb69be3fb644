"""Sampling by weight against the slow reimplementation, written from the rules of randomness."""

from __future__ import annotations

import random

import pytest
import reference

import pygsampler as pgs

KINDS = {
    "even": lambda draw: draw.uniform(1, 5),
    "zeros": lambda draw: draw.choice([0.0, 0.0, 1.0, 2.5]),
    "heavy": lambda draw: draw.choice([1e-300, 1e300, 1.0, 1e-6, 3.0]),
    "subnormal": lambda draw: draw.choice([5e-324, 1e-322, 0.0]),
    "equal": lambda draw: 1.0,
}


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("with_ids", [False, True])
def test_equal_to_the_reference(kind, with_ids):
    draw = random.Random(kind)
    rows = [
        [draw.randrange(60) for _ in range(draw.choice([0, 1, 3, 8, 20, 45]))] for _ in range(60)
    ]
    indptr, indices = [0], []
    for row in rows:
        indices += row
        indptr.append(len(indices))
    ids = draw.sample(range(len(indices)), len(indices)) if with_ids else None
    weights = [KINDS[kind](draw) for _ in indices]
    graph = pgs.Graph.from_csc(indptr, indices, edge_ids=ids, edge_data={"w": weights})
    seeds = [5, 3, 59, 0, 3, 17]
    exclude = draw.sample(range(len(indices)), len(indices) // 4)
    for fanouts in ([4, 3], [-1, 2], [40], [7, 0]):
        for options in (
            {},
            {"replace": True},
            {"frontier": "new"},
            {"disjoint": True},
            {"exclude": exclude},
            {"exclude": exclude, "replace": True},
        ):
            sampling = {k: v for k, v in options.items() if k != "exclude"}
            how = {k: v for k, v in options.items() if k == "exclude"}
            sampler = pgs.PGSampler(fanouts, seed=9, prob="w", **sampling)
            got = sampler.sample(graph, seeds, epoch=2, batch=7, **how)
            want = reference.sample(
                indptr, indices, seeds, fanouts, edge_ids=ids, weights=weights,
                seed=9, epoch=2, batch=7, **options,
            )  # fmt: skip
            assert reference.Batch.of(got) == want, options
