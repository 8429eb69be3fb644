"""The laws of walks on small graphs, exactly: by the definitions, over all paths."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Law = npt.NDArray[np.float64]


class Small(NamedTuple):
    """A graph by its edges ``src -> dst``, with their weights."""

    num_nodes: int
    src: tuple[int, ...]
    dst: tuple[int, ...]
    weights: tuple[float, ...]

    @property
    def by_weight(self) -> Law:
        """What all edges from u to v weigh, [u, v]."""
        found = np.zeros((self.num_nodes, self.num_nodes))
        np.add.at(found, (self.src, self.dst), self.weights)
        return found

    @property
    def even(self) -> Law:
        """How many edges there are from u to v."""
        found = np.zeros((self.num_nodes, self.num_nodes))
        np.add.at(found, (self.src, self.dst), 1.0)
        return found


def both_ways(num_nodes: int, edges: dict[tuple[int, int], float]) -> Small:
    """An undirected graph; a loop is one edge."""
    pairs = [(u, v, w) for (u, v), w in edges.items()]
    pairs += [(v, u, w) for u, v, w in pairs if u != v]
    src, dst, weights = zip(*pairs, strict=True)
    return Small(num_nodes, src, dst, weights)


# A triangle with a tail; a path with a loop in its middle; arcs, where x -> t is not t -> x.
TRIANGLE = both_ways(5, {(0, 1): 1, (0, 2): 2, (1, 2): 3, (2, 3): 4, (3, 4): 5})
LOOP = both_ways(3, {(0, 1): 1.0, (1, 1): 2.0, (1, 2): 4.0})
ARCS = Small(4, (0, 1, 1, 0, 1, 3), (1, 0, 2, 2, 3, 0), (1.0, 3.0, 2.0, 1.0, 5.0, 1.0))
# Vertex 0 has edges to 1 three times, and one that nothing may draw.
PARALLEL = Small(4, (0, 0, 0, 0, 1, 2, 3, 0), (1, 1, 1, 2, 0, 0, 1, 3), (1, 2, 3, 6, 1, 1, 1, 0.0))
# Vertex 3 has no edges.
DEAD_END = Small(4, (0, 0, 1, 2, 2), (1, 2, 2, 0, 3), (1.0, 2.0, 1.0, 3.0, 1.0))


def rows_to_one(weights: Law) -> Law:
    """Rows of probabilities; those of weight 0 stay."""
    sums = weights.sum(axis=-1, keepdims=True)
    return np.divide(weights, sums, out=np.zeros_like(weights), where=sums > 0)


def second_order(weights: Law, p: float, q: float) -> Law:
    """node2vec's chances [t, v, x] of going on to x, at v, having come from t.

    The last t is for walks that have not come from anywhere, which go by weight alone.
    """
    n = len(weights)
    found = np.empty((n + 1, n, n))
    found[n] = weights
    for t in range(n):
        factor = np.where(weights[:, t] > 0, 1.0, 1 / q)
        factor[t] = 1 / p
        found[t] = weights * factor
    return rows_to_one(found)


def first_order(weights: Law) -> Law:
    """The same of walks that do not look back."""
    return np.repeat(rows_to_one(weights)[None], len(weights) + 1, axis=0)


def paths(chances: Law, root: int, steps: int) -> Law:
    """The chance of each path of so many steps; a walk that ends goes on as vertex n."""
    n = chances.shape[1]
    found: dict[tuple[int, ...], float] = {(root,): 1.0}
    for _ in range(steps):
        longer: dict[tuple[int, ...], float] = {}
        for path, chance in found.items():
            if path[-1] == n or not chances[_last(path, n), path[-1]].any():
                longer[(*path, n)] = chance
                continue
            for x, part in enumerate(chances[_last(path, n), path[-1]]):
                if part:
                    longer[(*path, x)] = chance * part
        found = longer
    law = np.zeros((n + 1) ** steps)
    for path, chance in found.items():
        law[path_number(np.array([path]), n)] += chance
    return law


def _last(path: tuple[int, ...], none: int) -> int:
    return path[-2] if len(path) > 1 else none


def path_number(nodes: Any, num_nodes: int) -> Any:
    """A number for each walk by its vertices after the root; -1 and n are the end."""
    steps = np.where(nodes[:, 1:] < 0, num_nodes, nodes[:, 1:]).astype(np.int64)
    return steps @ (num_nodes + 1) ** np.arange(steps.shape[1])


def several_roots(edges: Law, roots: tuple[int, ...], steps: int) -> Law:
    """The chance of each sequence of (root, vertex that it goes to), by ``step_number``."""
    n, count = len(edges), len(roots)
    found: dict[tuple[int, ...], tuple[float, tuple[int, ...]]] = {(): (1.0, roots)}
    for _ in range(steps):
        longer = {}
        for done, (chance, at) in found.items():
            leaving = edges[list(at)].sum()
            for slot, x in np.argwhere(edges[list(at)]).tolist():
                moved = (*at[:slot], x, *at[slot + 1 :])
                part = chance * edges[at[slot], x] / leaving
                longer[(*done, slot * n + x)] = part, moved
        found = longer
    law = np.zeros((count * n) ** steps)
    for done, (chance, _) in found.items():
        law[step_number(np.array([done]), count * n)] += chance
    return law


def step_number(steps: Any, outcomes: int) -> Any:
    """A number for each row of outcomes."""
    return steps @ outcomes ** np.arange(steps.shape[1])


def visited(weights: Law, root: int, traversals: int, ends: float) -> Law:
    """The chance of each sequence of ends of traversals, as ``paths`` has them.

    The first traversal is sure, and each further one is not made by the chance ``ends``.
    """
    n, law = len(weights), paths(first_order(weights), root, traversals)
    places = np.arange(len(law))
    found = np.zeros(len(law))
    for made in range(1, traversals + 1):
        chance = (1 - ends) ** (made - 1) * (ends if made < traversals else 1)
        # Whatever stands behind is none.
        low = (n + 1) ** made
        none = sum(n * (n + 1) ** step for step in range(made, traversals))
        np.add.at(found, places % low + none, chance * law)
    return found


def lengths(stop: float, most: int) -> Law:
    """Of walks that never come to a dead end."""
    return np.array([*(stop * (1 - stop) ** n for n in range(most)), (1 - stop) ** most])


def page_rank(weights: Law, root: int, stop: float, most: int) -> Law:
    """Where walks end that stop with a chance before each step, and are cut after so many."""
    step, at = rows_to_one(weights), np.eye(len(weights))[root]
    ends = np.zeros(len(weights))
    for _ in range(most):
        going = (1 - stop) * at
        dead = np.where(step.any(axis=1), 0, going)
        ends += stop * at + dead
        at = (going - dead) @ step
    return ends + at


def with_restarts(weights: Law, root: int, restart: float, steps: int, counted: bool) -> Law:
    """Where walks are after so many steps, of which each goes back to the root by a chance.

    A walk goes back where there are no edges, too; ``counted``: going back is a step of its own.
    """
    step, at = rows_to_one(weights), np.eye(len(weights))[root]
    home = np.eye(len(weights))[root]
    dead = ~step.any(axis=1)
    for _ in range(steps):
        back = restart + (1 - restart) * at[dead].sum()
        going = (1 - restart) * np.where(dead, 0, at)
        at = going @ step + back * (home if counted else home @ step)
    return at
