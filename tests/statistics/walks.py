"""The experiments of walks, the walkers that they are run on, and walkers that are wrong."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple, Protocol

import numpy as np

import pygsampler as pgs
from tests.statistics import laws, transitions
from tests.statistics.laws import Positions
from tests.statistics.sources import At, alike
from tests.statistics.transitions import (
    ARCS,
    DEAD_END,
    LOOP,
    PARALLEL,
    TRIANGLE,
    Law,
    Small,
)

# Walks of a case, and the edges of a vertex where two choices are looked at together.
WALKS = 4000
DEGREE = 6
GRID = (0.25, 0.5, 1.0, 2.0, 4.0)


class Rules(NamedTuple):
    """Those of ``RandomWalk`` that the cases have."""

    length: int
    weighted: bool = False
    p: float = 1.0
    q: float = 1.0
    stop: float = 0.0
    restart: float = 0.0
    count_jumps: bool = False


class Walker(Protocol):
    def walk(self, graph: Small, rules: Rules, root: int, count: int, at: At) -> Positions:
        """The vertices of walks from one root, [count, length + 1]."""

    def roots(
        self, graph: Small, roots: tuple[int, ...], steps: int, count: int, at: At
    ) -> tuple[Positions, Positions]:
        """Of walks of several roots: which steps, and where it goes, [count, steps] each."""

    def traversals(
        self, graph: Small, root: int, most: int, ends: float, count: int, at: At
    ) -> Positions:
        """What a walk of PinSAGE's visits, [count, most + 1]: the root and the ends, then -1."""

    def choices(self, count: int, steps: int, at: At) -> Positions:
        """Which of DEGREE edges each of ``count`` walks takes at each step.

        All begin at one vertex, and all vertices have the same edges: [count, steps].
        """


# ---- the engine ------------------------------------------------------------------------------


@lru_cache(maxsize=16)
def _there(graph: Small, device: str) -> pgs.Graph:
    made = pgs.Graph.from_coo(
        list(graph.src),
        list(graph.dst),
        num_nodes=graph.num_nodes,
        edge_data={"w": list(graph.weights)},
    )
    return made if device == "cpu" else made.to(device)


class WalkEngine:
    """pygsampler's own, by its public interface."""

    def __init__(self, device: str = "cpu") -> None:
        self.device = device

    def walk(self, graph: Small, rules: Rules, root: int, count: int, at: At) -> Positions:
        options = rules._asdict()
        prob = "w" if options.pop("weighted") else None
        sampler = pgs.RandomWalk(**options, prob=prob, walks_per_seed=count, seed=at.seed)
        there = _there(graph, self.device)
        found = sampler.sample(there, [root], epoch=at.epoch, batch=at.batch).cpu()
        return found.nodes.numpy().astype(np.int64)

    def roots(
        self, graph: Small, roots: tuple[int, ...], steps: int, count: int, at: At
    ) -> tuple[Positions, Positions]:
        sampler = pgs.walks.MultiRW(len(roots), steps, seed=at.seed)
        there = _there(graph, self.device)
        found = sampler.sample(there, list(roots) * count, epoch=at.epoch, batch=at.batch).cpu()
        slots, nodes = found.slots.numpy(), found.nodes.numpy()[:, 1:]
        return slots.astype(np.int64), nodes.astype(np.int64)

    def traversals(
        self, graph: Small, root: int, most: int, ends: float, count: int, at: At
    ) -> Positions:
        # One walk a seed: its two vertices at most, which stand by their first visits.
        sampler = pgs.walks.PinSAGE(most, ends, 1, most, seed=at.seed)
        there = _there(graph, self.device)
        found = sampler.sample(there, [root] * count, epoch=at.epoch, batch=at.batch)
        here = found.cpu().numpy()
        nodes, counts = here.nodes.astype(np.int64), here.counts.astype(np.int64)
        twice = counts[:, 0] == 2
        nodes[twice, 1] = nodes[twice, 0]
        return np.column_stack([np.full(count, root), nodes])

    def choices(self, count: int, steps: int, at: At) -> Positions:
        sampler = pgs.RandomWalk(
            steps, direction="in", walks_per_seed=count, edge_ids=True, seed=at.seed
        )
        there = alike(DEGREE, DEGREE, self.device)
        found = sampler.sample(there, [0], epoch=at.epoch, batch=at.batch).cpu()
        return found.edge_ids.numpy().astype(np.int64) % DEGREE


# ---- NumPy -----------------------------------------------------------------------------------


class HonestWalker:
    """The same contract on NumPy's random numbers, without a flaw; the flaws derive from it."""

    def chances(self, graph: Small, rules: Rules) -> Law:
        weights = graph.by_weight if rules.weighted else graph.even
        if (rules.p, rules.q) == (1, 1):
            return transitions.first_order(weights)
        return transitions.second_order(weights, rules.p, rules.q)

    def walk(self, graph: Small, rules: Rules, root: int, count: int, at: At) -> Positions:
        chances, n = self.chances(graph, rules), graph.num_nodes
        random = np.random.default_rng([*at])
        nodes = np.full((count, rules.length + 1), -1)
        nodes[:, 0] = here = np.full(count, root)
        last, alive = np.full(count, n), np.ones(count, bool)
        for step in range(rules.length):
            alive &= random.random(count) >= self.stop(rules, step)
            back = random.random(count) < rules.restart
            if rules.restart:
                back |= ~chances[n, here].any(axis=1)
            here, last = np.where(back, root, here), np.where(back, n, last)
            upto = chances[last, here].cumsum(axis=1)
            following = (random.random(count)[:, None] * upto[:, -1:] >= upto).sum(axis=1)
            alive &= upto[:, -1] > 0
            waits = back & rules.count_jumps
            last = np.where(waits, n, here)
            here = np.where(waits | ~alive, here, following)
            nodes[alive, step + 1] = here[alive]
        return nodes

    def stop(self, rules: Rules, step: int) -> float:
        return rules.stop

    def roots(
        self, graph: Small, roots: tuple[int, ...], steps: int, count: int, at: At
    ) -> tuple[Positions, Positions]:
        random = np.random.default_rng([*at])
        here = np.tile(roots, (count, 1))
        slots, nodes = np.empty((count, steps), int), np.empty((count, steps), int)
        for step in range(steps):
            chances = self.leaving(graph.even[here])
            flat = chances.reshape(count, -1).cumsum(axis=1)
            drawn = (random.random(count)[:, None] * flat[:, -1:] >= flat).sum(axis=1)
            slots[:, step], nodes[:, step] = np.divmod(drawn, graph.num_nodes)
            self.arrive(here, slots[:, step], nodes[:, step])
        return slots, nodes

    def leaving(self, edges: Law) -> Law:
        """What the edges [walk, root, vertex] weigh."""
        return edges

    def arrive(self, here: Positions, slots: Positions, nodes: Positions) -> None:
        here[np.arange(len(here)), slots] = nodes

    def traversals(
        self, graph: Small, root: int, most: int, ends: float, count: int, at: At
    ) -> Positions:
        found = self.walk(graph, Rules(most), root, count, at)
        going = np.random.default_rng([*at, 1]).random((count, most - 1)) >= ends
        found[:, 2:][~np.logical_and.accumulate(going, axis=1)] = -1
        return found

    def choices(self, count: int, steps: int, at: At) -> Positions:
        return self.draws([*at], count, steps)

    def draws(self, key: list[int], count: int, steps: int) -> Positions:
        return np.random.default_rng(key).integers(0, DEGREE, (count, steps))


class Weights(HonestWalker):
    """node2vec's weights with other factors, or of another neighbourhood."""

    def __init__(self, factors: Callable[[float, float], tuple[float, float, float]]) -> None:
        self.factors = factors

    def chances(self, graph: Small, rules: Rules) -> Law:
        weights = graph.by_weight if rules.weighted else graph.even
        n = len(weights)
        back, common, far = self.factors(rules.p, rules.q)
        found = np.empty((n + 1, n, n))
        found[n] = weights
        for t in range(n):
            factor = np.where(self.near(weights, t), common, far)
            factor[t] = back
            found[t] = weights * factor
        return transitions.rows_to_one(found)

    def near(self, weights: Law, t: int) -> Any:
        return weights[:, t] > 0


def exact(p: float, q: float) -> tuple[float, float, float]:
    return 1 / p, 1.0, 1 / q


class Forwards(Weights):
    """Asks for the edge t -> x, in the place of x -> t."""

    def near(self, weights: Law, t: int) -> Any:
        return weights[t] > 0


class EdgeNumbers(HonestWalker):
    """Takes the place of an edge in its row for the vertex that it leads to."""

    def chances(self, graph: Small, rules: Rules) -> Law:
        found = super().chances(graph, rules)
        weights = graph.even
        n = len(weights)
        for t in range(n):
            for v in range(n):
                row = np.flatnonzero(weights[v])
                factor = np.where(weights[np.arange(len(row)), t] > 0, 1.0, 1 / rules.q)
                factor[np.arange(len(row)) == t] = 1 / rules.p
                found[t, v] = 0
                found[t, v, row] = factor
        return transitions.rows_to_one(found)


class MadeUp(HonestWalker):
    """A walk's first step has come from vertex 0."""

    def chances(self, graph: Small, rules: Rules) -> Law:
        found = super().chances(graph, rules)
        found[-1] = found[0]
        return found


class Neighbour0(HonestWalker):
    """A walk's first step is the first edge."""

    def chances(self, graph: Small, rules: Rules) -> Law:
        found = super().chances(graph, rules)
        for row in found[-1]:
            first = np.flatnonzero(row)[:1]
            row[:] = 0
            row[first] = 1.0
        return found


class LateStop(HonestWalker):
    """Asks whether to stop after the first step, and not before."""

    def stop(self, rules: Rules, step: int) -> float:
        return rules.stop if step else 0.0


class OtherLayout(HonestWalker):
    """Writes [step][walk] and reads it as [walk][step]."""

    def walk(self, graph: Small, rules: Rules, root: int, count: int, at: At) -> Positions:
        found = super().walk(graph, rules, root, count, at)
        return np.column_stack([found[:, 0], found[:, 1:].T.reshape(count, rules.length)])


class ByVertex(HonestWalker):
    """Draws belong to the vertex: walks that stand on one go on together."""

    def draws(self, key: list[int], count: int, steps: int) -> Positions:
        return np.repeat(super().draws(key, 1, steps), count, axis=0)


class ByWalk(HonestWalker):
    """All steps of a walk have one draw."""

    def draws(self, key: list[int], count: int, steps: int) -> Positions:
        return np.repeat(super().draws(key, count, 1), steps, axis=1)


class WithoutNumber(HonestWalker):
    """Leaves one of seed, epoch and batch out of its key."""

    def __init__(self, place: int) -> None:
        self.place = place

    def choices(self, count: int, steps: int, at: At) -> Positions:
        key = [*at]
        key[self.place] = 0
        return self.draws(key, count, steps)


class Unweighted(HonestWalker):
    """Draws evenly whatever the weights."""

    def chances(self, graph: Small, rules: Rules) -> Law:
        return super().chances(graph, rules._replace(weighted=False))


class OneEdge(HonestWalker):
    """Parallel edges count as one."""

    def chances(self, graph: Small, rules: Rules) -> Law:
        return transitions.first_order((graph.even > 0).astype(float))


class EvenRoots(HonestWalker):
    """Takes each root as often as any other."""

    def leaving(self, edges: Law) -> Law:
        return transitions.rows_to_one(edges)


class RootsThatStay(HonestWalker):
    """Steps from the roots that the walk began with."""

    def arrive(self, here: Positions, slots: Positions, nodes: Positions) -> None:
        return


class FirstMayEnd(HonestWalker):
    """Ends before the first traversal, too."""

    def traversals(
        self, graph: Small, root: int, most: int, ends: float, count: int, at: At
    ) -> Positions:
        found = super().traversals(graph, root, most, ends, count, at)
        found[np.random.default_rng([*at, 2]).random(count) < ends, 1:] = -1
        return found


# ---- the experiments -------------------------------------------------------------------------


class WalkCase(NamedTuple):
    """``run(walker, seed, scale)``, by the name of the page's table."""

    name: str
    run: Callable[[Walker, int, int], float]


def _paths(
    graph: Small, rules: list[Rules], roots: tuple[int, ...], walker: Walker, seed: int, scale: int
) -> float:
    """Whole walks of each of several rules, from each of several roots."""
    parts = []
    for number, (rule, root) in enumerate((rule, root) for rule in rules for root in roots):
        law = transitions.paths(HonestWalker().chances(graph, rule), root, rule.length)
        found = walker.walk(graph, rule, root, WALKS * scale, At(seed, batch=number))
        assert (found[:, 0] == root).all()
        parts.append((transitions.path_number(found, graph.num_nodes), law))
    return laws.several(parts)


def _lengths(walker: Walker, seed: int, scale: int) -> float:
    rules = Rules(12, stop=0.2)
    found = walker.walk(TRIANGLE, rules, 2, WALKS * scale, At(seed))
    return laws.classes((found >= 0).sum(axis=1) - 1, transitions.lengths(0.2, 12))


def _ends(graph: Small, walker: Walker, seed: int, scale: int) -> float:
    rules = Rules(40, stop=0.15, weighted=True)
    found = walker.walk(graph, rules, 0, WALKS * scale, At(seed))
    last = found[np.arange(len(found)), (found >= 0).sum(axis=1) - 1]
    return laws.classes(last, transitions.page_rank(graph.by_weight, 0, 0.15, 40))


def _restarts(graph: Small, counted: bool, walker: Walker, seed: int, scale: int) -> float:
    rules = Rules(6, restart=0.3, count_jumps=counted)
    found = walker.walk(graph, rules, 0, WALKS * scale, At(seed))
    return laws.classes(found[:, 6], transitions.with_restarts(graph.even, 0, 0.3, 6, counted))


def _roots(walker: Walker, seed: int, scale: int) -> float:
    """Where edges leave 2 and 4, one edge in four leaves 4; even roots take it in two."""
    n, steps, start = TRIANGLE.num_nodes, 2, (2, 4)
    slots, nodes = walker.roots(TRIANGLE, start, steps, WALKS * scale, At(seed))
    law = transitions.several_roots(TRIANGLE.even, start, steps)
    return laws.several([(transitions.step_number(slots * n + nodes, len(start) * n), law)])


def _visits(walker: Walker, seed: int, scale: int) -> float:
    found = walker.traversals(TRIANGLE, 2, 2, 0.4, WALKS * scale, At(seed))
    law = transitions.visited(TRIANGLE.even, 2, 2, 0.4)
    return laws.several([(transitions.path_number(found, TRIANGLE.num_nodes), law)])


def _joint(first: Positions, second: Positions) -> float:
    return laws.independent(first[:, None], second[:, None], DEGREE, replace=True)


def _two_walks(far: bool, walker: Walker, seed: int, scale: int) -> float:
    found = walker.choices(2 * WALKS * scale, 2, At(seed))
    half = len(found) // 2
    pairs = (found[:half], found[half:]) if far else (found[::2], found[1::2])
    # Of both steps: what walks have in common, they have at each.
    return _joint(*(np.concatenate([half[:, 0], half[:, 1]]) for half in pairs))


def _two_steps(apart: int, walker: Walker, seed: int, scale: int) -> float:
    found = walker.choices(WALKS * scale, apart + 1, At(seed))
    return _joint(found[:, 0], found[:, apart])


def _other(other: Callable[[At], At], walker: Walker, seed: int, scale: int) -> float:
    at = At(seed, epoch=3, batch=8)
    return _joint(*(walker.choices(WALKS * scale, 1, each)[:, 0] for each in (at, other(at))))


def _neighbours(walker: Walker, seed: int, scale: int) -> float:
    """A walk's first step, and the neighbour that the vertex of its number draws."""
    found = walker.choices(WALKS * scale, 1, At(seed))[:, 0]
    graph = alike(WALKS * scale, DEGREE)
    batch = pgs.PGSampler([1], replace=True, seed=seed).sample(
        graph, np.arange(WALKS * scale), epoch=0, batch=0
    )
    return _joint(found, np.asarray(batch.blocks[0].edge_ids).astype(np.int64) % DEGREE)


def _cases() -> list[WalkCase]:
    found = []
    for how, weighted in (("", False), (", by weight", True)):
        plain = [Rules(3, weighted)]
        found += [
            WalkCase(f"walks{how}", partial(_paths, TRIANGLE, plain, (0, 2, 4))),
            WalkCase(f"walks, parallel edges{how}", partial(_paths, PARALLEL, plain, (0, 3))),
            WalkCase(f"walks, dead ends{how}", partial(_paths, DEAD_END, plain, (0, 2, 3))),
        ]
        for p in GRID:
            rules = [Rules(3, weighted, p, q) for q in GRID]
            name = f"node2vec, p = {p:g}{how}"
            found.append(WalkCase(name, partial(_paths, TRIANGLE, rules, (0, 2))))
        rules = [Rules(3, weighted, p, q) for p, q in ((2, 0.5), (0.25, 4), (4, 0.25))]
        found += [
            WalkCase(f"node2vec, loops{how}", partial(_paths, LOOP, rules, (0, 1))),
            WalkCase(f"node2vec, arcs{how}", partial(_paths, ARCS, rules, (0, 1))),
            WalkCase(f"node2vec, parallel edges{how}", partial(_paths, PARALLEL, rules, (0, 3))),
        ]
    found += [
        WalkCase("lengths of walks that stop", _lengths),
        WalkCase("ends of walks that stop", partial(_ends, TRIANGLE)),
        WalkCase("ends of walks that stop, dead ends", partial(_ends, DEAD_END)),
        WalkCase("walks that restart", partial(_restarts, TRIANGLE, False)),
        WalkCase("walks that restart, jumps", partial(_restarts, TRIANGLE, True)),
        WalkCase("walks that restart, dead ends", partial(_restarts, DEAD_END, False)),
        WalkCase("walks of several roots", _roots),
        WalkCase("visits of traversals", _visits),
        WalkCase("two walks from a node", partial(_two_walks, False)),
        WalkCase("two walks far apart", partial(_two_walks, True)),
        WalkCase("steps 0 and 1", partial(_two_steps, 1)),
        WalkCase("steps 0 and 7", partial(_two_steps, 7)),
        WalkCase("walks and neighbors", _neighbours),
    ]
    others: dict[str, Callable[[At], At]] = {
        "the next batch": lambda at: at._replace(batch=at.batch + 1),
        "the next epoch": lambda at: at._replace(epoch=at.epoch + 1),
        "seed + 2^32": lambda at: at._replace(seed=at.seed + (1 << 32)),
    }
    return found + [WalkCase(f"walks, {name}", partial(_other, f)) for name, f in others.items()]


WALK_CASES = _cases()
