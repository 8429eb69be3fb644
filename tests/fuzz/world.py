"""What a run of calls works on: live objects, and beside each what it has to be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

import pygsampler as pgs
from tests.support import reference

# What the documents promise of a wrong argument, whatever it is.
REFUSALS = (TypeError, ValueError, IndexError)
# Where the reference, in plain Python, would take longer than many calls.
SMALL = 400
MOST = {"graphs": 6, "samplers": 6, "batches": 6, "jobs": 8, "loaders": 3, "arrays": 8}
MOST |= {"context_graphs": 4, "contexts": 6}


class Broken(AssertionError):
    """A promise that a call did not keep."""


def expect(condition: bool, *what: object) -> None:
    if not condition:
        raise Broken(*what)


def check_message(error: BaseException) -> None:
    """Texts are for people: short, and nothing of the inside of the engine."""
    text = str(error)
    for inside in ("runtime error", "panic", "goroutine", "nil pointer", "0xc0"):
        expect(inside not in text, f"{type(error).__name__}: {text}")
    expect(0 < len(text) < 2000, f"{type(error).__name__} of {len(text)} characters")


@contextmanager
def refused(*kinds: type[BaseException]) -> Iterator[None]:
    """The call inside has to raise one of these, in words; REFUSALS where none is named."""
    expected = kinds or REFUSALS
    try:
        yield
    except expected as error:
        check_message(error)
    else:
        raise Broken(f"expected one of {expected}, got none")


@dataclass
class GraphModel:
    graph: pgs.Graph
    indptr: Any
    indices: Any
    edge_ids: Any
    num_nodes: int
    bits: int
    # The arrays "w" and "m" of its edges, by edge id: what they are as numbers.
    weights: Any
    mask: Any
    closed: bool = False

    def degree(self, v: int) -> int:
        return int(self.indptr[v + 1] - self.indptr[v]) if v + 1 < len(self.indptr) else 0


@dataclass
class SamplerModel:
    sampler: pgs.PGSampler
    fanouts: tuple[int, ...]
    options: dict[str, Any]

    @property
    def ordered(self) -> bool:
        """Whether nodes are numbered canonically: a queue on a GPU may leave that out."""
        mode_options: dict[str, Any] = self.options.get("mode_options") or {}
        return bool(mode_options.get("ordered", True))


@dataclass
class Draw:
    """A call of a sampler: all that its batch depends on."""

    graph: GraphModel
    sampler: SamplerModel
    seeds: list[int]
    epoch: int
    batch: int
    exclude: list[int] | None = None

    def kept(self) -> Any:
        """Whether each edge may be drawn, by its id; None where all may."""
        by = self.sampler.options
        if "prob" in by:
            return np.asarray(self.graph.weights) > 0
        return np.asarray(self.graph.mask) if "mask" in by else None

    def expected(self) -> reference.Batch:
        g, s = self.graph, self.sampler
        exclude = self.exclude
        if "mask" in s.options:
            # As if the graph had no other edges.
            exclude = [*(exclude or ()), *(e for e, kept in enumerate(g.mask) if not kept)]
        return reference.sample(
            g.indptr,
            g.indices,
            self.seeds,
            list(s.fanouts),
            edge_ids=g.edge_ids,
            replace=s.options.get("replace", False),
            seed=s.sampler.seed,
            epoch=self.epoch,
            batch=self.batch,
            exclude=exclude,
            frontier=s.options.get("frontier", "all"),
            disjoint=s.options.get("disjoint", False),
            weights=g.weights if "prob" in s.options else None,
            edge_weights=s.options.get("edge_weights"),
            mode=s.options.get("mode", "auto"),
        )


@dataclass
class BatchModel:
    batch: pgs.MiniBatch
    draw: Draw
    # The values as they were first read.
    values: reference.Batch


@dataclass
class World:
    """``shared``: several threads work on it, so any object may be closed under a call."""

    shared: bool = False
    device: str = "cpu"
    graphs: list[GraphModel] = field(default_factory=list)
    samplers: list[SamplerModel] = field(default_factory=list)
    batches: list[BatchModel] = field(default_factory=list)
    jobs: list[tuple[Any, Draw]] = field(default_factory=list)
    loaders: list[Any] = field(default_factory=list)
    arrays: list[Any] = field(default_factory=list)
    context_graphs: list[Any] = field(default_factory=list)
    contexts: list[Any] = field(default_factory=list)

    def keep(self, where: str, item: Any, random: Random) -> None:
        kept = getattr(self, where)
        if len(kept) >= MOST[where]:
            try:
                kept[random.randrange(len(kept))] = item
            except (IndexError, ValueError):
                # Another thread has emptied the list meanwhile.
                kept.append(item)
        else:
            kept.append(item)

    def some(self, where: str, random: Random) -> Any:
        """One of the objects of a kind; made now where there is none."""
        kept = tuple(getattr(self, where))
        if kept:
            return random.choice(kept)
        return NEW[where](self, random)

    def open_graph(self, random: Random) -> GraphModel:
        graphs = [g for g in tuple(self.graphs) if not g.closed]
        model: GraphModel = random.choice(graphs) if graphs else NEW["graphs"](self, random)
        return model


Operation = Callable[[World, Random], Any]
NEW: dict[str, Operation] = {}
OPERATIONS: dict[str, tuple[Operation, float]] = {}


def operation(weight: float = 1.0) -> Callable[[Operation], Operation]:
    def add(function: Operation) -> Operation:
        OPERATIONS[function.__name__] = (function, weight)
        return function

    return add


def step(world: World, random: Random, name: str) -> None:
    """One operation. What is closed by another thread under it may say so."""
    try:
        OPERATIONS[name][0](world, random)
    except pgs.errors.ClosedError as error:
        check_message(error)
        if not world.shared:
            raise
    except pgs.Error as error:
        check_message(error)
        if not world.shared or "cancelled" not in str(error):
            raise


def as_reference(batch: pgs.MiniBatch) -> reference.Batch:
    return reference.Batch.of(batch.cpu())


def verify(batch: pgs.MiniBatch, draw: Draw, random: Random) -> reference.Batch:
    """Fails unless the batch is the one that the call has to give; returns its values."""
    expect((batch.epoch, batch.batch) == (draw.epoch, draw.batch), "numbers", batch, draw)
    expect(batch.input_nodes.dtype == f"int{draw.graph.bits}", "dtype", batch, draw.graph)
    found = as_reference(batch)
    edges = sum(len(block.indices) for block in found.blocks)
    small = edges <= SMALL and isinstance(draw.graph.indptr, list)
    if small and draw.sampler.ordered and random.random() < 0.3:
        expect(found == draw.expected(), "differs from the reference", draw)
    else:
        laws(found, draw)
    return found


def laws(found: reference.Batch, draw: Draw) -> None:
    """Seeds first, vertices distinct, every edge an edge of its row, as many as the fanout says."""
    g, fanouts = draw.graph, draw.sampler.fanouts
    replace = draw.sampler.options.get("replace", False)
    nodes = np.array(found.nodes, np.int64)
    kept = draw.kept()
    below = None
    if kept is not None:
        by_place = kept if g.edge_ids is None else kept[np.asarray(g.edge_ids, np.int64)]
        below = np.concatenate([[0], by_place.cumsum()])
    expect(found.output_nodes == draw.seeds, "output_nodes", draw)
    expect([found.nodes[i] for i in found.output_index] == draw.seeds, "output_index", draw)
    subgraph_ids = [-1] * len(nodes) if found.subgraph_ids is None else found.subgraph_ids
    pairs = set(zip(subgraph_ids, found.nodes, strict=True))
    expect(len(pairs) == len(nodes), "a vertex twice", draw)
    expect(len(found.blocks) == len(fanouts), "blocks", draw)
    for hop, (fanout, block) in enumerate(zip(fanouts, found.blocks, strict=True)):
        starts = np.array(block.indptr)
        expect(len(starts) == block.num_dst + 1 and starts[0] == 0, "indptr", hop, draw)
        counts = np.diff(starts)
        expect(bool((counts >= 0).all()) and starts[-1] == len(block.indices), "rows", hop, draw)
        own = nodes[block.dst_offset : block.dst_offset + block.num_dst]
        expect(len(own) == block.num_dst, "destinations", hop, draw)
        rows = np.repeat(own, counts)
        expect(not block.indices or max(block.indices) < block.num_src, "indices", hop, draw)
        sources = nodes[np.array(block.indices, np.int64)]
        ids = np.array(block.edge_ids, np.int64)
        places = ids if g.edge_ids is None else _places(g)[ids]
        begin, end = _rows_of(g, rows)
        expect(bool(((begin <= places) & (places < end)).all()), "an edge of another row", draw)
        expect(bool((np.asarray(g.indices)[places] == sources).all()), "source", hop, draw)
        begin, end = _rows_of(g, own)
        degrees = end - begin if below is None else below[end] - below[begin]
        expect(kept is None or bool(kept[ids].all()), "an edge that is never drawn", hop, draw)
        if not replace:
            pairs = np.stack([np.repeat(np.arange(block.num_dst), counts), places])
            expect(len(np.unique(pairs, axis=1)[0]) == len(places), "an edge twice", hop, draw)
        if draw.exclude is None:
            want = degrees if fanout < 0 else np.full_like(degrees, fanout)
            want = np.where(degrees == 0, 0, want) if replace else np.minimum(want, degrees)
            expect(bool((counts == want).all()), "counts", hop, draw)
        else:
            expect(not set(draw.exclude) & set(block.edge_ids), "an excluded edge", hop, draw)


def _rows_of(g: GraphModel, vertices: Any) -> tuple[Any, Any]:
    indptr = np.asarray(g.indptr, np.int64)
    inside = vertices < len(indptr) - 1
    row = np.where(inside, vertices, 0)
    last = np.minimum(row + 1, len(indptr) - 1)
    return np.where(inside, indptr[row], 0), np.where(inside, indptr[last], 0)


def _places(g: GraphModel) -> Any:
    """Where an edge stands, by its original id."""
    found = np.empty(len(g.edge_ids), np.int64)
    found[np.asarray(g.edge_ids, np.int64)] = np.arange(len(g.edge_ids))
    return found
