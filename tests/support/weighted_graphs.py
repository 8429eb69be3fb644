"""Rows with weights, and the exact law of what is drawn of them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

import pygsampler as pgs
from tests.statistics import laws

# With fixed seeds a p-value is the same in every run: below it the law is another one.
LEVEL = 1e-3


def edges_of(rows: int, degree: int) -> tuple[Any, Any]:
    """(src, dst) of ``rows`` vertices with as many in-edges each; edge i is number i % degree."""
    src = np.tile(np.arange(degree), rows)
    return src, np.repeat(np.arange(rows), degree)


def alike(weights: Sequence[float], rows: int, dtype: str = "float64") -> pgs.Graph:
    """A graph of ``rows`` vertices whose in-edges have these weights each, as ``edata["w"]``."""
    src, dst = edges_of(rows, len(weights))
    values = np.tile(np.asarray(weights, dtype), rows)
    return pgs.Graph.from_coo(src, dst, num_nodes=max(rows, len(weights)), edge_data={"w": values})


def successive(weights: Sequence[float], fanout: int) -> dict[tuple[int, ...], Fraction]:
    """The chance of each set: draw by weight, remove, and go on with what is left."""
    exact = [Fraction(weight) for weight in weights]
    law: dict[tuple[int, ...], Fraction] = {}
    for order in itertools.permutations(range(len(weights)), fanout):
        chance, left = Fraction(1), sum(exact)
        for place in order:
            chance *= exact[place] / left if exact[place] else 0
            left -= exact[place]
            if not chance:
                break
        chosen = tuple(sorted(order))
        law[chosen] = law.get(chosen, Fraction(0)) + chance
    return law


def inclusion(weights: Sequence[float], fanout: int) -> list[Fraction]:
    """The chance of each edge to be drawn."""
    law = successive(weights, fanout).items()
    return [sum((p for s, p in law if i in s), Fraction(0)) for i in range(len(weights))]


def p_of_sets(edge_ids: Any, weights: Sequence[float], fanout: int) -> float:
    """Returns the p-value of rows [n, fanout] without replacement; positions are ids % degree."""
    positions = np.sort(np.asarray(edge_ids).reshape(-1, fanout) % len(weights), axis=1)
    law = successive(weights, fanout)
    number = {chosen: i for i, chosen in enumerate(law)}
    found = np.array([number[tuple(row)] for row in positions.tolist()])
    return laws.classes(found, np.array([float(p) for p in law.values()]))


def p_of_draws(edge_ids: Any, weights: Sequence[float]) -> float:
    """Returns the p-value of draws with replacement, one by one."""
    chances = np.asarray(weights, float) / np.sum(weights)
    return laws.classes(np.asarray(edge_ids).ravel() % len(weights), chances)
