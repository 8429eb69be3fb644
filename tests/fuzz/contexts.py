"""Calls of ``samplers.context``, on graphs with types and times and on those of the other calls."""

from __future__ import annotations

import copy
import pickle
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np

import pygsampler as pgs
from benchmarks.numpy_contexts import Reference
from pygsampler.samplers import Contexts, Temporal, context
from tests.fuzz.samplers import MAX_BATCH, MAX_EPOCH
from tests.fuzz.values import no_integer, not_from, right, torch, wrong
from tests.fuzz.world import NEW, GraphModel, World, expect, operation, refused
from tests.support.context_graphs import ContextGraph, assert_same

BUDGETS = (1, 2, 3, 7, 20, 64, 300, 1500)
DTYPES = ("int32", "int64", "float32", "float64")
MOST_BUDGET = 1 << 16


@dataclass
class ContextGraphModel:
    """A graph with types, its copy on some device, and the same for the rule in NumPy."""

    made: ContextGraph
    graph: pgs.Graph
    rule: Reference

    def with_random(self, random: Random) -> ContextGraph:
        """What the graph was made of, whose seeds and times are drawn by this call alone."""
        made = copy.copy(self.made)
        made.random = np.random.default_rng(random.getrandbits(32))
        return made


@dataclass
class ContextModel:
    contexts: Contexts[Any]
    expected: dict[str, Any]
    types: bool


def new_context_graph(world: World, random: Random) -> ContextGraphModel:
    times = random.choice((None, "edge", "edge", "node", "node"))
    made = ContextGraph(random.getrandbits(32), times, random.choice(DTYPES), random.randint(1, 5))
    graph = made.graph(random.choice(("int32", "int64")))
    if world.device != "cpu" and random.random() < 0.6:
        graph = graph.pin() if random.random() < 0.3 else graph.to(world.device)
    model = ContextGraphModel(made, graph, made.reference())
    world.keep("context_graphs", model, random)
    return model


def new_contexts(world: World, random: Random) -> ContextModel:
    while not world.contexts:
        contexts_of_types(world, random)
    # Another thread may have emptied the list meanwhile.
    return random.choice(tuple(world.contexts) or (new_contexts(world, random),))


NEW["context_graphs"] = new_context_graph
NEW["contexts"] = new_contexts
operation(1)(new_context_graph)


def options_of(
    random: Random, names: tuple[str, ...], timed: bool
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options of a sampler, and the same for the rule; ``names`` are the node types."""
    budget, width = random.choice(BUDGETS), random.choice((None, 1, 2, 3, 10, 128, 1 << 20))
    options: dict[str, Any] = {"budget": budget, "width": width}
    expected: dict[str, Any] = {"budget": budget, "width": width}
    if width == 128 and random.random() < 0.5:
        del options["width"]
    if random.random() < 0.4:
        cells = [random.randint(1, 9) for _ in names]
        options |= {"by": "cell", "cells": dict(zip(names, cells, strict=True))}
        if random.random() < 0.3 or names == ("",):
            cells = cells[:1] * len(names)
            options["cells"] = cells[0]
        expected["cells"] = cells
    if timed:
        window, inclusive = random.choice((None, 0, 2, 7)), random.random() < 0.7
        # A strategy is that of other samplers.
        how = {"strategy": random.choice(("uniform", "last"))}
        options["time"] = Temporal("t", window=window, inclusive=inclusive, **how)
        if window is None and inclusive and random.random() < 0.5:
            options["time"] = "t"
        expected |= {"window": window, "inclusive": inclusive}
    return options, expected


def call_of(random: Random, sampler: Any, graph: Any, seeds: Any, times: Any) -> Any:
    """The contexts of a call, by one of the ways to it, and a copy of the sampler."""
    epoch, batch = random.choice((0, 1, MAX_EPOCH)), random.choice((0, 5, MAX_BATCH))
    numbers = {"epoch": epoch, "batch": batch}
    more = {} if times is None else {"seed_time": times}
    way = random.randrange(5)
    if way == 0:
        sampler = pickle.loads(pickle.dumps(sampler))
    if way == 1:
        found = sampler.submit(graph, seeds, **numbers, **more).result()
    elif way == 2:
        number = max(batch - 1, 0)
        many = {} if times is None else {"seed_time": [times, times]}
        both = sampler.sample_many(graph, [seeds, seeds], epoch=epoch, batch=number, **many)
        found = both[batch - number]
    else:
        found = sampler.sample(graph, seeds, threads=random.choice((0, 1, 3)), **numbers, **more)
    expect((found.epoch, found.batch) == (epoch, batch), found, numbers)
    expect(f"epoch={epoch}, batch={batch}" in repr(found), repr(found))
    return found


def times_of(random: Random, values: Any) -> Any:
    """Times of seeds in some container."""
    if values.dtype.kind == "i":
        return right(random, values.tolist(), 32 if values.dtype.itemsize == 4 else 64)
    return random.choice((values, values.tolist(), tuple(values.tolist())))


@operation(5)
def contexts_of_types(world: World, random: Random) -> None:
    model = world.some("context_graphs", random)
    made = model.with_random(random)
    names = tuple(made.node_types)
    options, expected = options_of(random, names, made.times is not None)
    by_type, nodes, kinds = made.seeds(random.choice((0, 1, 1, 4, 12, 40)))
    seed_time, bounds = made.bounds(kinds)
    if bounds is not None and len(bounds) and random.random() < 0.2:
        # One time for all seeds, or for those of each type.
        bounds[:] = bounds[0]
        one = bounds[0].item()
        seed_time = random.choice((one, dict.fromkeys(by_type, one)))
    elif bounds is not None:
        seed_time = {name: times_of(random, values) for name, values in seed_time.items()}
    seeds = {
        name: right(random, ids.tolist(), random.choice((32, 64))) for name, ids in by_type.items()
    }
    if len(names) == 1 and seeds and random.random() < 0.3:
        seeds = seeds[names[0]]
    sampler = context(**options, seed=random.getrandbits(20))
    cells = expected.get("cells")
    if cells is not None and any(cells[kind] > options["budget"] for kind in kinds):
        with refused(ValueError):
            call_of(random, sampler, model.graph, seeds, seed_time)
        return
    found = call_of(random, sampler, model.graph, seeds, seed_time)
    wanted = dict(model.rule.sample(nodes, kinds, bounds, **expected))
    finish(world, random, found, wanted, types=True)
    expect(found.node_types == names, found.node_types, names)


@operation(3)
def contexts_of_one_type(world: World, random: Random) -> None:
    """Contexts on the graphs of other calls, whose weights may be the times of their edges."""
    model = world.open_graph(random)
    dtype = str(model.graph.edata["w"].dtype)
    timed = dtype in DTYPES and random.random() < 0.6
    options, expected = options_of(random, ("",), timed)
    if timed:
        rule = options["time"]
        options["time"] = "w" if rule == "t" else replace(rule, attr="w")
    count = random.choice((0, 1, 3, 9)) if model.num_nodes else 0
    nodes = np.array([random.randrange(model.num_nodes) for _ in range(count)], np.int64)
    seeds = right(random, nodes.tolist(), random.choice((32, 64)))
    edge_times = bounds = seed_time = None
    if timed:
        edge_times = weights_by_place(model)
        some = [*edge_times[:50].tolist(), 0.0, 3.0]
        bounds = np.array([random.choice(some) for _ in range(count)], dtype)
        seed_time = times_of(random, bounds)
    sampler = context(**options)
    cells = expected.get("cells")
    if cells is not None and cells[0] > options["budget"]:
        # No row fits, so that it is an error without seeds, too.
        with refused(ValueError):
            call_of(random, sampler, model.graph, seeds, seed_time)
        return
    found = call_of(random, sampler, model.graph, seeds, seed_time)
    degrees = np.diff(np.asarray(model.indptr, np.int64))
    into = np.repeat(np.arange(len(degrees)), degrees)
    edges = [(0, 0, np.asarray(model.indices, np.int64), into, edge_times)]
    reference = Reference([max(model.num_nodes, 1)], edges)
    wanted = dict(reference.sample(nodes, np.zeros(count, np.int64), bounds, **expected))
    finish(world, random, found, wanted, types=False)
    expect(found.types is None and found.node_types is None, found)


def weights_by_place(model: GraphModel) -> Any:
    """The array "w" of a graph in the order of its CSC."""
    values = np.asarray(model.weights, np.float64)
    return values if model.edge_ids is None else values[np.asarray(model.edge_ids, np.int64)]


def finish(
    world: World, random: Random, found: Any, wanted: dict[str, Any], *, types: bool
) -> None:
    assert_same(found.cpu(), wanted, types)
    expect(len(found) == len(wanted["lengths"]), found)
    if random.random() < 0.3:
        world.keep("contexts", ContextModel(found, wanted, types), random)


@operation(1)
def read_contexts(world: World, random: Random) -> None:
    """Contexts are what they were, in each form, whatever became of their graph."""
    model = world.some("contexts", random)
    found = model.contexts.cpu()
    how = random.randrange(4)
    if how == 0:
        found = pickle.loads(pickle.dumps(found, random.randint(2, 5)))
    elif how == 1:
        found = random.choice((copy.copy, copy.deepcopy))(found)
    elif how == 2 and torch is not None:
        tensors = found.torch()
        expect(tensors.nodes.tolist() == model.expected["nodes"].tolist(), "torch")
        expect(tensors.mask.dtype == torch.bool, tensors.mask.dtype)
    elif model.contexts.device != "cpu":
        with refused(TypeError):
            random.choice((model.contexts.numpy, lambda: pickle.dumps(model.contexts)))()
    assert_same(found, model.expected, model.types)
    expect("parents" in found._repr_html_(), "html")


@operation(0.5)
def close_context_graph(world: World, random: Random) -> None:
    model = world.some("context_graphs", random)
    model.graph.close()
    with refused(pgs.errors.ClosedError):
        context().sample(model.graph, {model.made.node_types[0]: [0]})
    world.context_graphs[:] = [each for each in world.context_graphs if each is not model]


@operation(1)
def wrong_context(world: World, random: Random) -> None:
    """One option of a sampler is wrong."""
    names = ("budget", "width", "order", "by", "time", "cells", "cells", "seed")
    name = random.choice(names)
    options: dict[str, Any] = {}
    if name in ("budget", "width"):
        low, high = 1, MOST_BUDGET if name == "budget" else 1 << 62
        options[name] = random.choice((no_integer(random), not_from(random, low, high)))
        if options[name] is None and name == "width":
            return
    elif name in ("order", "by"):
        options[name] = random.choice((None, "", "depth", 3, b"row", ["row"], object()))
    elif name == "time":
        options[name] = random.choice((3, b"t", ["t"], object(), Temporal("t", carry="edge")))
    elif name == "cells":
        one = random.choice((no_integer(random), not_from(random, 1, MOST_BUDGET)))
        if one is None or isinstance(one, dict):
            return
        options = {"by": "cell", "cells": random.choice((one, {"n0": one}))}
        if random.random() < 0.2:
            options = {"by": "row", "cells": 3}
    else:
        options[name] = random.choice((1.5, "1", True, [], 1 << 64))
    with refused():
        expect(False, context(**options), "of", options)


@operation(2)
def wrong_call_of_context(world: World, random: Random) -> None:
    """One argument is wrong; the graph is as good as before."""
    model = world.some("context_graphs", random)
    made = model.with_random(random)
    graph: Any = model.graph
    name = made.node_types[0]
    timed = made.times is not None
    sampler = context(budget=9, time="t" if timed else None)
    seeds: Any = {name: [0]}
    more: dict[str, Any] = {"seed_time": 1} if timed else {}
    kinds: tuple[type[BaseException], ...] = ()
    kind = random.randrange(8)
    if kind == 0:
        seeds = {name: wrong(random)}
    elif kind == 1:
        outside = not_from(random, 0, int(made.sizes[0]) - 1)
        seeds, kinds = {name: [0, outside]}, (IndexError,)
        more = {"seed_time": 1} if timed else {}
    elif kind == 2:
        seeds = random.choice(({"nobody": [0]}, {3: [0]}, {name: [0], "": []}))
    elif kind == 3:
        more["exclude"] = {made_type: [0] for made_type in list(made.ends)[:1]}
        kinds = (NotImplementedError,)
    elif kind == 4:
        if timed:
            more["seed_time"] = random.choice(
                (None, [1, 2], "soon", True, object(), {"nobody": [1]}, 1 << 70, [None], b"12")
            )
            if more["seed_time"] == 1 << 70 and "float" in made.dtype:
                return
        else:
            more["seed_time"], kinds = random.choice((0, [1], {name: [1]})), (ValueError,)
    elif kind == 5:
        more[random.choice(("epoch", "batch", "threads"))] = random.choice((1.5, "1", -1, 1 << 70))
    elif kind == 6:
        sampler = context(budget=9, by="cell", cells={"nobody": 1})
        more = {}
    else:
        sampler, more = context(time="nothing"), {"seed_time": 1}
    with refused(*kinds):
        made_contexts = random.choice((sampler.sample, sampler.submit))(graph, seeds, **more)
        if isinstance(made_contexts, Contexts):
            expect(False, "contexts of a wrong call", kind, seeds, more)
        made_contexts.result()
    contexts_of_types(world, random)
