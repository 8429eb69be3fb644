"""The contract of ``KHop``'s steps once more, slowly and in plain Python.

Written from "Steps of samples" in docs/developer/walk-draws.md and not from the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from reference import WALKS, draw, part, row_state

TRIES = 32


class Steps(NamedTuple):
    """A row per sample for each step: nodes, and the places of edges in the CSC."""

    nodes: list[list[list[int]]]
    places: list[list[list[int]]]


def khop(
    indptr: Sequence[int],
    indices: Sequence[int],
    seeds: Sequence[int],
    fanouts: Sequence[int],
    unique: Any,
    seed: int,
    epoch: int,
    batch: int,
) -> Steps:
    """The samples of a call; ``unique`` is False, True or "transit"."""

    def lists_of(transits: list[int]) -> list[list[int]]:
        return [[] if v < 0 else list(range(indptr[v], indptr[v + 1])) for v in transits]

    return _samples(lists_of, indices, seeds, fanouts, unique, (seed, epoch, batch))


def layers(
    indptr: Sequence[int],
    indices: Sequence[int],
    seeds: Sequence[int],
    sizes: Sequence[int],
    unique: bool,
    seed: int,
    epoch: int,
    batch: int,
) -> Steps:
    """The samples of a call of ``LayerSample``: all transits have one list."""

    def lists_of(transits: list[int]) -> list[list[int]]:
        return [[p for v in transits if v >= 0 for p in range(indptr[v], indptr[v + 1])]]

    return _samples(lists_of, indices, seeds, sizes, unique, (seed, epoch, batch))


def _samples(
    lists_of: Callable[[list[int]], list[list[int]]],
    indices: Sequence[int],
    seeds: Sequence[int],
    fanouts: Sequence[int],
    unique: Any,
    numbers: tuple[int, int, int],
) -> Steps:
    """Steps of all samples, each from the lists of edges that its transits give."""
    steps = Steps([], [])
    before = [[v] for v in seeds]
    for step, fanout in enumerate(fanouts):
        states = [row_state(*numbers, step + 1, w, WALKS) for w in range(len(before))]
        places = [
            _step(lists_of(transits), indices, fanout, unique, state)
            for transits, state in zip(before, states, strict=True)
        ]
        before = [[-1 if p < 0 else indices[p] for p in row] for row in places]
        steps.nodes.append(before)
        steps.places.append(places)
    return steps


def _step(
    lists: list[list[int]], indices: Sequence[int], fanout: int, unique: Any, state: int
) -> list[int]:
    """The place of each slot of a sample, -1 for none."""
    width, taken, places = fanout * len(lists), set[int](), []
    for transit, edges in enumerate(lists):
        shuffled = list(edges)
        for j in range(fanout):
            t, place = transit * fanout + j, -1
            if unique is True:
                place = _left(edges, indices, taken, t, width, state)
                if place >= 0:
                    taken.add(indices[place])
            elif unique == "transit" and j < len(edges):
                r = j + draw(state, t, len(edges) - j)
                shuffled[j], shuffled[r] = shuffled[r], shuffled[j]
                place = shuffled[j]
            elif not unique and edges:
                place = edges[draw(state, t, len(edges))]
            places.append(place)
    return places


def _left(
    edges: list[int], indices: Sequence[int], taken: set[int], t: int, width: int, state: int
) -> int:
    """Returns the place that slot t takes among those that earlier slots have left, -1 for none."""
    for attempt in range(min(len(edges), TRIES)):
        place = edges[draw(state, attempt * width + t, len(edges))]
        if indices[place] not in taken:
            return place
    own = part(state, t)
    left = [(draw(own, i, 1 << 64), p) for i, p in enumerate(edges) if indices[p] not in taken]
    return min(left)[1] if left else -1


def unique_law(lists: Sequence[Sequence[int]], fanout: int) -> dict[tuple[int, ...], float]:
    """The chance of each outcome of a unique step whose transits have these neighbors: slot after
    slot, each edge to a node that no earlier slot has alike."""
    law: dict[tuple[int, ...], Fraction] = {(): Fraction(1)}
    for neighbors in lists:
        for _ in range(fanout):
            after: dict[tuple[int, ...], Fraction] = {}
            for nodes, chance in law.items():
                left = [v for v in neighbors if v not in nodes]
                for v in left or [-1]:
                    share = chance / max(len(left), 1)
                    after[(*nodes, v)] = after.get((*nodes, v), Fraction(0)) + share
            law = after
    return {nodes: float(chance) for nodes, chance in law.items()}
