"""The contract of walks once more, slowly and in plain Python.

Written from "Walks" in docs/developer/walk-draws.md and not from the engine: whole walks one after
another, rows as lists of edges, chances as numbers of 63 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import reference
from reference import GAMMA, MASK32, MASK64, row_state, splitmix64

WHOLE = 1 << 63
TRIES = 64
STOP, RESTART, FIRST_TRY, OF_A_TRY = 0, 1, 2, 3
CLASS = FIRST_TRY + OF_A_TRY * TRIES
RANK = CLASS + 1


class Edge(NamedTuple):
    to: int
    id: int
    weight: int = 1


class Walks(NamedTuple):
    """A row is a walk, with -1 after its end."""

    nodes: list[list[int]]
    edge_ids: list[list[int]]
    lengths: list[int]


class Form:
    """A graph as walks read it: the edges of each vertex and type, and who leads to whom."""

    def __init__(
        self,
        indptr: Sequence[int],
        indices: Sequence[int],
        *,
        edge_ids: Sequence[int] | None = None,
        weights: Sequence[float] | None = None,
        types: Sequence[int] | None = None,
        direction: str = "out",
        second: bool = False,
    ) -> None:
        self.weighted = weights is not None
        self.links: set[tuple[int, int]] = set()
        found: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for v in range(len(indptr) - 1):
            for place in range(indptr[v], indptr[v + 1]):
                number = place if edge_ids is None else edge_ids[place]
                if weights is not None and weights[number] == 0:
                    continue
                a, b = (indices[place], v) if direction == "out" else (v, indices[place])
                self.links.add((a, b))
                kind = 0 if types is None else types[number]
                found.setdefault((a, kind), []).append((b, number))
        # Python's sort keeps the order of the CSC where neighbours are equal.
        if direction == "out" or types is not None or second:
            for row in found.values():
                row.sort(key=lambda edge: edge[0])
        self.rows: dict[tuple[int, int], list[Edge]] = {}
        self.tables: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for key, row in found.items():
            whole = [1] * len(row)
            if weights is not None:
                whole = reference.integers([weights[number] for _, number in row])
                self.tables[key] = reference.alias_table(whole)
            self.rows[key] = [Edge(to, i, w) for (to, i), w in zip(row, whole, strict=True)]

    def row(self, v: int) -> list[Edge]:
        """The edges that leave a vertex, of graphs without types."""
        return self.rows.get((v, 0), [])


def bits(state: int, number: int) -> int:
    """A draw of a state: 64 bits."""
    return splitmix64((state + (number + 1) * GAMMA) & MASK64)


def coin(state: int, number: int) -> int:
    return bits(state, number) >> 1


def below(draw: int, bound: int) -> int:
    return draw * bound >> 64


class Walker:
    """Walks one walk at a time."""

    def __init__(
        self,
        form: Form,
        length: int,
        *,
        stop: float = 0.0,
        restart: float = 0.0,
        p: float = 1.0,
        q: float = 1.0,
        metapath: Sequence[int] | None = None,
        count_jumps: bool = False,
        visit_every: int = 0,
    ) -> None:
        self.form, self.length = form, length
        self.visit_every = visit_every
        self.stop, self.restart = int(stop * WHOLE), int(restart * WHOLE)
        self.returns = restart > 0
        self.second = (p, q) != (1, 1)
        self.path = list(metapath or [0])
        self.count_jumps = count_jumps
        self.back, self.far = 1 / p, 1 / q
        self.bound = max(1.0, self.far)
        self.extra = max(self.back - self.bound, 0.0)
        # The number of steps whose first try failed, and of steps whose every try failed.
        self.again = self.finished = 0

    def walk(self, root: int, state: int) -> tuple[list[int], list[int]]:
        """The vertices and edges of a walk, as far as it goes."""
        nodes, ids, last = [root], [], -1
        for step in range(self.length):
            x = bits(state, step)
            kind = self.path[step % len(self.path)]
            at = nodes[-1]
            if self.may_stop(step) and coin(x, STOP) < self.stop:
                break
            jumped = coin(x, RESTART) < self.restart
            if not jumped:
                # A walk with restarts goes back where there is no edge, too.
                jumped = self.returns and at != root and not self.form.rows.get((at, kind))
            if jumped:
                at, last = root, -1
                if self.count_jumps:
                    nodes.append(root)
                    ids.append(-1)
                    continue
            if not self.form.rows.get((at, kind)):
                break
            edge = self.choose((at, kind), last, x)
            last = at
            nodes.append(edge.to)
            ids.append(edge.id)
        return nodes, ids

    def may_stop(self, step: int) -> bool:
        """Before each step, or, of walks that make traversals, between two of them."""
        return not self.visit_every or (step > 0 and step % self.visit_every == 0)

    def choose(self, key: tuple[int, int], last: int, x: int) -> Edge:
        row = self.form.rows[key]
        if not self.second or last < 0 or len(row) == 1:
            return self.propose(key, x)
        chances = {
            "back": self.chance(self.back),
            "common": self.chance(1.0),
            "far": self.chance(self.far),
        }
        backs = [edge for edge in row if edge.to == last]
        of_backs, of_all = weight(backs), weight(row)
        area = 0
        if backs and self.extra > 0:
            own = self.extra * float(of_backs)
            area = int(own / (float(of_all) * self.bound + own) * WHOLE)
        for number in range(TRIES):
            at = FIRST_TRY + OF_A_TRY * number
            self.again += number == 1
            if coin(x, at + 2) < area:
                return ranked(backs, below(bits(x, at), of_backs))
            edge = self.propose(key, bits(x, at))
            if coin(x, at + 1) < chances[self.class_of(edge, last)]:
                return edge
        self.finished += 1
        classes = {
            name: [edge for edge in row if self.class_of(edge, last) == name] for name in chances
        }
        chosen = classes[self.chosen_class(x, {k: weight(v) for k, v in classes.items()})]
        return ranked(chosen, below(bits(x, RANK), weight(chosen)))

    def chance(self, factor: float) -> int:
        return int(min(factor, self.bound) / self.bound * WHOLE)

    def class_of(self, edge: Edge, last: int) -> str:
        if edge.to == last:
            return "back"
        return "common" if (edge.to, last) in self.form.links else "far"

    def chosen_class(self, x: int, weights: dict[str, int]) -> str:
        first = self.back * float(weights["back"])
        second = first + float(weights["common"])
        total = second + self.far * float(weights["far"])
        place = float(bits(x, CLASS) >> 11) * 2.0**-53 * total
        if place < first:
            return "back"
        # Rounding may carry a place beyond the last class that has edges.
        order = ["common", "far"] if place < second else ["far", "common"]
        return next((name for name in order if weights[name]), "back")

    def propose(self, key: tuple[int, int], draw: int) -> Edge:
        """By weight alone."""
        row = self.form.rows[key]
        product = draw * len(row)
        slot, toss = product >> 64, product >> 32 & MASK32
        if not self.form.weighted:
            return row[slot]
        own, other = self.form.tables[key][slot]
        return row[slot if toss < own else other]


def weight(edges: Sequence[Edge]) -> int:
    return sum(edge.weight for edge in edges)


def ranked(edges: Sequence[Edge], rank: int) -> Edge:
    """The edge in whose part of the weights a rank falls."""
    ends = accumulate(edge.weight for edge in edges)
    return next(edge for edge, end in zip(edges, ends, strict=True) if rank < end)


def walks(
    walker: Walker,
    seeds: Sequence[int],
    *,
    walks_per_seed: int = 1,
    seed: int = 0,
    epoch: int = 0,
    batch: int = 0,
) -> Walks:
    """Returns the expected walks of ``RandomWalk.sample``."""
    roots = [root for root in seeds for _ in range(walks_per_seed)]
    found = Walks([], [], [])
    for number, root in enumerate(roots):
        state = row_state(seed, epoch, batch, 0, number, reference.WALKS)
        nodes, ids = walker.walk(root, state)
        missing = walker.length - len(ids)
        found.nodes.append(nodes + [-1] * missing)
        found.edge_ids.append(ids + [-1] * missing)
        found.lengths.append(len(ids))
    return found


def most_visited(
    found: Walks, walks_per_seed: int, every: int, top: int
) -> tuple[list[list[int]], list[list[int]]]:
    """Returns the expected nodes and counts of ``PinSAGE.sample``."""
    nodes, counts = [], []
    for first in range(0, len(found.nodes), walks_per_seed):
        ends = [v for row in found.nodes[first : first + walks_per_seed] for v in row[every::every]]
        there = [v for v in ends if v >= 0]
        by_rank = sorted(set(there), key=lambda v: (-there.count(v), there.index(v)))[:top]
        missing = top - len(by_rank)
        nodes.append(by_rank + [-1] * missing)
        counts.append([there.count(v) for v in by_rank] + [0] * missing)
    return nodes, counts


def of_several_roots(
    form: Form,
    roots: int,
    budget: int,
    seeds: Sequence[int],
    *,
    seed: int = 0,
    epoch: int = 0,
    batch: int = 0,
) -> tuple[Walks, list[list[int]]]:
    """Returns the expected walks of ``MultiRW.sample``, and the root that moves in each step."""
    found, slots = Walks([], [], []), []
    for number in range(len(seeds) // roots):
        at = list(seeds[number * roots : (number + 1) * roots])
        state = row_state(seed, epoch, batch, 0, number, reference.WALKS)
        nodes, ids, moved = [at[0]], [], []
        for step in range(budget):
            leaving = [(slot, edge) for slot in range(roots) for edge in form.row(at[slot])]
            if not leaving:
                break
            slot, edge = leaving[below(bits(state, step), len(leaving))]
            at[slot] = edge.to
            nodes.append(edge.to)
            ids.append(edge.id)
            moved.append(slot)
        missing = [-1] * (budget - len(ids))
        found.nodes.append(nodes + missing)
        found.edge_ids.append(ids + missing)
        found.lengths.append(len(ids))
        slots.append(moved + missing)
    return found, slots
