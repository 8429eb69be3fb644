"""NextDoor's user-defined functions, called for many samples at a time: nodes, edges, draws.

A call has *lanes*: invocations of one function, each for a sample and a slot of its step. Values in
it have a number per lane, or are one number where a call has one lane. NumPy does the work.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from pygsampler._engine.checks import describe

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

_GOLDEN, _LOW = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
# The states of samples are those of nodes of purpose 2, walks, whose hops 0 to 16 are taken.
_HOP, _PURPOSE = 255, 2


def sample_states(seed: int, epoch: int, batch: int, samples: Ints) -> Words:
    """Returns a 64-bit state for each sample of a batch, by Philox4x32-10.

    docs/developer/draws.md has the words; uint64 has the room of a product of two of them.
    """
    words = (0, _HOP << 16 | _PURPOSE << 24, batch & 0xFFFFFFFF, batch >> 32 | epoch << 8)
    c0, c1, c2, c3 = (np.full(len(samples), word, np.uint64) for word in words)
    c0 |= samples.astype(np.uint64) & _LOW
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        p0, p1 = c0 * np.uint64(0xD2511F53), c2 * np.uint64(0xCD9E8D57)
        c0, c1 = (p1 >> _HALF) ^ c1 ^ np.uint64(k0), p1 & _LOW
        c2, c3 = (p0 >> _HALF) ^ c3 ^ np.uint64(k1), p0 & _LOW
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    states: Words = c0 | c1 << _HALF
    return states


def _mix(z: Words) -> Words:
    """SplitMix64's finaliser."""
    z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    mixed: Words = z ^ z >> np.uint64(31)
    return mixed


def part_states(states: Words, trees: Any) -> Words:
    """Returns the state of part ``trees[i]`` of ``states[i]``, as trees of a batch have it."""
    return _mix(states ^ (np.atleast_1d(np.asarray(trees, np.uint64)) + np.uint64(1)) * _GOLDEN)


def below(draws: Words, bounds: Words) -> Ints:
    """Returns the high half of each 128-bit product: numbers from 0 up to the bounds."""
    x1, x0, n1, n0 = draws >> _HALF, draws & _LOW, bounds >> _HALF, bounds & _LOW
    middle = x1 * n0 + (x0 * n0 >> _HALF)
    low = x0 * n1 + (middle & _LOW)
    high: Words = x1 * n1 + (middle >> _HALF) + (low >> _HALF)
    return high.astype(np.int64)


class TransitEdges:
    """The in-edges of a graph on the CPU as NumPy arrays, with the weights of ``edata[prob]``."""

    def __init__(self, graph: Any, prob: str | None) -> None:
        self.num_nodes = int(graph.num_nodes)
        self.indptr = graph.indptr.numpy().astype(np.int64)
        self.indices = graph.indices.numpy()
        self.weights: Any = None
        if prob is not None:
            weights = graph.edata[prob].numpy().astype(np.float64)
            ids = graph.edge_ids
            self.weights = weights if ids is None else weights[ids.numpy()]
            if self.weights.ndim != 1 or not (self.weights >= 0).all():
                raise ValueError(f"edata[{prob!r}]: expected weights >= 0 of shape [num_edges]")
            self.sums = np.concatenate([[0.0], np.cumsum(self.weights)])

    def bounds(self, nodes: Ints) -> tuple[Ints, Ints]:
        """Returns the first place and the number of the edges of each node; 0 of NULL."""
        inside = (nodes >= 0) & (nodes + 1 < len(self.indptr))
        v = np.where(inside, nodes, 0)
        if len(self.indptr) < 2:
            return v * 0, v * 0
        start = self.indptr[v]
        return start, np.where(inside, self.indptr[v + 1] - start, 0)


@dataclass
class Call:
    """A call of a function of the user's, with its lanes."""

    graph: TransitEdges
    samples: Ints  # of each lane, its place in the history
    states: Words  # of each lane
    scalar: bool
    drawn: Words | None = None  # how often each lane has drawn; None: never
    replaced: list[tuple[Ints, Ints, Ints]] = field(default_factory=list)
    edges: list[tuple[Ints, Ints]] = field(default_factory=list)

    def draw(self) -> Words:
        """The next draw of each lane."""
        before = np.zeros(self.states.shape, np.uint64) if self.drawn is None else self.drawn
        self.drawn = before + np.uint64(1)
        return _mix(self.states + self.drawn * _GOLDEN)

    def lanes(self, value: Any, dtype: Any = np.int64) -> Any:
        """A value as an array with an element for each lane; TypeError for a fraction."""
        if dtype is np.int64 and np.asarray(value).dtype.kind not in "iub":
            raise TypeError(f"expected integers, got {describe(value)}")
        return np.broadcast_to(np.asarray(value, dtype).reshape(-1), self.samples.shape)

    def shown(self, values: Any) -> Any:
        """An array of lanes as the user sees it."""
        return values.reshape(()) if self.scalar else values

    def nodes(self, values: Ints) -> Nodes:
        """Nodes of lanes as the user sees them."""
        shown: Nodes = self.shown(values.astype(np.int64).view(Nodes))
        return shown


_current: ContextVar[Call] = ContextVar("nextdoor_call")


def entered(call: Call, function: Any, *arguments: Any) -> Any:
    """Returns what a function of the user's returns in a call."""
    token = _current.set(call)
    try:
        return function(*arguments)
    finally:
        _current.reset(token)


def current(name: str) -> Call:
    """The call that runs."""
    call = _current.get(None)
    if call is None:
        raise RuntimeError(
            f"{name}: expected a call from next or stepTransits, got one outside of sampling"
        )
    return call


class Nodes(np.ndarray[Any, np.dtype[np.int64]]):
    """Nodes by number, -1 for NULL: one for each lane of a call.

    An array of int64, so that attributes of an application's own are ``values[v]``.
    """

    def degree(self) -> Any:
        """The number of edges."""
        return self._edges("degree").size()

    def maxEdgeWeight(self) -> Any:
        """The largest weight of the edges; 0 without any."""
        return self._edges("maxEdgeWeight").maxWeight()

    def prefixSum(self, idx: Any) -> Any:
        """The sum of the weights of edges 0 to ``idx``, ``idx`` included."""
        call = current("prefixSum")
        start, degree = call.graph.bounds(call.lanes(self))
        ends = start + np.clip(call.lanes(idx) + 1, 0, degree)
        weights = call.graph.weights
        sums = ends - start + 0.0 if weights is None else call.graph.sums
        return call.shown(sums if weights is None else sums[ends] - sums[start])

    def hasEdge(self, v: Any) -> Any:
        """True if an edge leads to ``v``. A look through all edges."""
        return self._edges("hasEdge").has(v)

    def _edges(self, name: str) -> Edges:
        call = current(name)
        return Edges(call, call.lanes(self)[:, None], np.arange(len(call.samples)))


class Edges:
    """The edges of one transit, or of all transits of a sample, one list behind another."""

    def __init__(self, call: Call, transits: Ints, groups: Ints) -> None:
        # Row groups[i] of the transits, [groups, transits of each], is that of lane i.
        self._call, self._groups = call, groups
        self._starts, self._degrees = call.graph.bounds(transits)
        self._ends = np.cumsum(self._degrees, axis=1)
        self._sizes = self._ends[:, -1] if transits.shape[1] else np.zeros(len(transits), int)

    def size(self) -> Any:
        """The number of edges."""
        return self._call.shown(self._sizes[self._groups])

    def __len__(self) -> int:
        if not self._call.scalar:
            raise TypeError("srcEdges: expected srcEdges.size() with batched=True, got len")
        return int(self.size())

    def __getitem__(self, idx: Any) -> Nodes:
        """The nodes at places of the list; NULL where it is empty."""
        places, empty = self._places(idx)
        nodes = np.full(places.shape, -1, np.int64)
        nodes[~empty] = self._call.graph.indices[places[~empty]]
        return self._call.nodes(nodes)

    def weight(self, idx: Any) -> Any:
        """The weights of the edges at places of the list; 0 where it is empty."""
        places, empty = self._places(idx)
        weights = np.where(empty, 0.0, 1.0)
        if self._call.graph.weights is not None:
            weights[~empty] = self._call.graph.weights[places[~empty]]
        return self._call.shown(weights)

    def maxWeight(self) -> Any:
        """The largest weight; 0 where the list is empty."""
        if self._call.graph.weights is None:
            return self._call.shown((self._sizes > 0)[self._groups] * 1.0)
        places, groups = self._listed(np.arange(len(self._sizes)))
        most = np.zeros(len(self._sizes))
        np.maximum.at(most, groups, self._call.graph.weights[places])
        return self._call.shown(most[self._groups])

    def has(self, v: Any, *, where: Any = True) -> Any:
        """True if an edge leads to ``v``, in the lanes that ``where`` says; False in others."""
        asking = np.flatnonzero(self._call.lanes(where, bool))
        places, some = self._listed(self._groups[asking])
        lanes = asking[some]
        result = np.zeros(len(self._groups), bool)
        result[lanes[self._call.graph.indices[places] == self._call.lanes(v)[lanes]]] = True
        return self._call.shown(result)

    def _listed(self, groups: Ints) -> tuple[Ints, Ints]:
        """The places of all edges of some groups, and which of them each is of."""
        starts, degrees = self._starts[groups].reshape(-1), self._degrees[groups].reshape(-1)
        first = np.cumsum(degrees) - degrees
        places = np.repeat(starts - first, degrees) + np.arange(degrees.sum())
        return places, np.repeat(np.arange(len(groups)), self._degrees[groups].sum(axis=1))

    def _places(self, idx: Any) -> tuple[Ints, npt.NDArray[np.bool_]]:
        """The place in the graph of a place of each lane's list, and where the list is empty."""
        at, sizes = self._call.lanes(idx), self._sizes[self._groups]
        empty = sizes == 0
        wrong = ~empty & ((at < 0) | (at >= sizes))
        if wrong.any():
            lane = wrong.argmax()
            raise IndexError(
                f"srcEdges: expected an index in [0, {sizes[lane]}), got {at[lane]}; "
                "randInt(0, srcEdges.size()) is one"
            )
        # One sorted list of the ends of all groups.
        befores = np.cumsum(self._sizes) - self._sizes
        ends = (self._ends + befores[:, None]).reshape(-1)
        flat = np.searchsorted(ends, np.where(empty, 0, at + befores[self._groups]), "right")
        flat = np.minimum(flat, max(ends.size - 1, 0))
        if not ends.size:
            return at, empty
        starts, degrees = self._starts.reshape(-1), self._degrees.reshape(-1)
        inside = at + befores[self._groups] - (ends[flat] - degrees[flat])
        return np.where(empty, 0, starts[flat] + inside), empty


class Transits:
    """The transits of each lane: one with individual sampling, all of the sample else."""

    def __init__(self, call: Call, nodes: Ints, groups: Ints) -> None:
        self._call, self._nodes, self._groups = call, nodes, groups

    def size(self) -> int:
        """The number of transits, NULL ones included."""
        return int(self._nodes.shape[1])

    __len__ = size

    def __getitem__(self, i: int) -> Nodes:
        return self._call.nodes(self._nodes[self._groups, i])

    def __iter__(self) -> Iterator[Nodes]:
        return map(self.__getitem__, range(self.size()))


class Roots:
    """The roots of each lane's sample, as they are before a step."""

    def __init__(self, call: Call, nodes: Ints) -> None:
        self._call, self._nodes = call, nodes

    def size(self) -> Any:
        """The number of roots, without NULL."""
        return self._call.shown((self._nodes >= 0).sum(axis=1)[self._call.samples])

    def __getitem__(self, i: Any) -> Nodes:
        at = _positions(self._call, i, self._nodes.shape[1], "s.roots")
        return self._call.nodes(self._nodes[self._call.samples, at])

    def replace(self, old: Any, new: Any) -> None:
        """Puts ``new`` in the place of the first root ``old`` after the step.

        NULL, and a root that is not there any more, change nothing. Replacements follow each other
        in the order of the step's slots.
        """
        call = self._call
        call.replaced.append((np.arange(len(call.samples)), call.lanes(old), call.lanes(new)))


class Sample:
    """The samples of a call's lanes, as ``s`` of ``next`` and ``stepTransits``."""

    def __init__(self, call: Call, roots: Ints, history: list[Ints], sizes: Ints) -> None:
        self._call, self._history, self._sizes = call, history, sizes
        self.roots = Roots(call, roots)

    def numRoots(self) -> Any:
        """The number of roots."""
        return self.roots.size()

    def size(self) -> Any:
        """The number of nodes before the step: roots, and nodes that steps added."""
        return self._call.shown(self._sizes[self._call.samples])

    def prevVertex(self, i: int, pos: Any) -> Nodes:
        """The node at position ``pos`` of the last ``i``-th step; the step before is 1.

        The step before the first has the roots. NULL further back.
        """
        if i < 1:
            raise ValueError(f"prevVertex: expected i >= 1, got {i}")
        if i > len(self._history):
            return self._call.nodes(np.full(self._call.samples.shape, -1))
        nodes = self._history[-i]
        at = _positions(self._call, pos, nodes.shape[1], "prevVertex")
        return self._call.nodes(nodes[self._call.samples, at])

    def prevEdges(self, i: int, pos: Any) -> Edges:
        """The edges of ``prevVertex(i, pos)``."""
        return self.prevVertex(i, pos)._edges("prevEdges")

    def addEdge(self, step: int, transit: Any, v: Any, *, where: Any = True) -> None:
        """Adds the edge from ``v`` to ``transit`` to the sample's edges of the step.

        ``where`` says which lanes do, for calls of many lanes, instead of an ``if``.
        """
        call = self._call
        lanes = np.flatnonzero(call.lanes(where, bool))
        ends = (call.lanes(step), call.lanes(transit), call.lanes(v))
        call.edges.append((lanes, np.stack([end[lanes] for end in ends], axis=1)))


def _positions(call: Call, value: Any, width: int, name: str) -> Ints:
    at: Ints = call.lanes(value)
    if at.size and not (at.min() >= 0 and at.max() < width):
        wrong = at[(at < 0) | (at >= width)][0]
        raise IndexError(f"{name}: expected a position in [0, {width}), got {wrong}")
    return at


def returned_nodes(call: Call, value: Any, name: str) -> Ints:
    """Returns what ``next`` or ``stepTransits`` returned as a node for each lane."""
    if value is None:
        return np.full(call.samples.shape, -1)
    values = np.asarray(value)
    if values.dtype.kind not in "iu" or values.size not in (1, len(call.samples)):
        raise TypeError(f"{name}: expected a node, or NULL, for each sample, got {describe(value)}")
    nodes: Ints = call.lanes(values)
    wrong = (nodes < -1) | (nodes >= call.graph.num_nodes)
    if wrong.any():
        raise IndexError(
            f"{name}: expected NULL or a node in [0, {call.graph.num_nodes}), got "
            f"{nodes[wrong.argmax()]}"
        )
    return nodes
