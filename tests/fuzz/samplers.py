"""Calls of samplers, right and wrong, and of the jobs that they start."""

from __future__ import annotations

import copy
import pickle
from array import array
from random import Random
from typing import Any

import numpy as np

import pygsampler as pgs
from pygsampler._sampling.extensions import MODES as REGISTERED
from pygsampler.samplers.neighbor_plan import NEIGHBOR
from tests.fuzz.values import Liar, no_integer, not_from, right, wrong
from tests.fuzz.world import (
    NEW,
    BatchModel,
    Draw,
    GraphModel,
    SamplerModel,
    World,
    as_reference,
    expect,
    operation,
    refused,
    verify,
)

MODES = (*NEIGHBOR, *REGISTERED)
MAX_EPOCH, MAX_BATCH = (1 << 24) - 1, (1 << 40) - 1
NO_GRAPHS: list[Any] = [None, 3, "graph", pgs.Graph, object(), [[0, 1], [0]], {}]


def fanouts_of(random: Random) -> tuple[int, ...]:
    hops = random.choice((1, 1, 2, 2, 3, 4))
    return tuple(random.choice((0, 1, 1, 2, 2, 3, 5, 10, -1)) for _ in range(hops))


def new_sampler(world: World, random: Random) -> SamplerModel:
    fanouts = fanouts_of(random)
    options: dict[str, Any] = {}
    if random.random() < 0.3:
        options["replace"] = random.random() < 0.7
    if random.random() < 0.3:
        options["mode"] = random.choice(MODES)
    if options.get("mode") == "reservoir":
        options.pop("replace", None)
        if random.random() < 0.5:
            threshold = random.choice((None, "auto", 0, 3, 20, (1 << 63) - 1))
            options["mode_options"] = {
                "degree_threshold": threshold,
                "block_threshold": random.choice((None, 0, 1, 1 << 20)),
                "memory": random.choice(("adaptive", "shared", "global")),
                # "auto" goes by the order that this makes.
                "schedule": threshold == "auto" or random.random() < 0.5,
                "streams": random.choice((None, 1, 2)),
            }
    if random.random() < 0.2:
        # The task queue has no tables in the place of its map.
        small = (1, 64, 4096) if options.get("mode") != "queue" else (1 << 20,)
        options["map_bytes"] = random.choice((*small, 1 << 20, (1 << 63) - 1))
    if random.random() < 0.3 and options.get("mode") == "queue":
        sizes = (None, 1, 5, 256)
        options["mode_options"] = {
            "ordered": random.random() < 0.5,
            "fetch_size": random.choice(sizes),
        }
    if options.get("mode", "auto") in ("auto", "persistent"):
        options["frontier"] = random.choice(("all", "all", "all", "new"))
        options["disjoint"] = random.random() < 0.2
        options |= random.choice(({}, {}, {"prob": "w"}, {"mask": "m"}))
        options["edge_weights"] = random.choice((None, None, "ht"))
    if random.random() < 0.8:
        options["seed"] = random.choice((0, 1, -1, 1 << 63, (1 << 64) - 1, random.getrandbits(63)))
    given = random.choice((list, tuple, np.array))(fanouts)
    model = SamplerModel(pgs.PGSampler(given, **options), fanouts, options)
    expect(model.sampler.fanouts == fanouts, model.sampler, fanouts)
    expect(model.sampler.replace == options.get("replace", False), model.sampler)
    expect(model.sampler.prob == options.get("prob"), model.sampler)
    world.keep("samplers", model, random)
    return model


NEW["samplers"] = new_sampler
operation(2)(new_sampler)


@operation(1.5)
def wrong_sampler(world: World, random: Random) -> None:
    options: dict[str, Any] = {}
    fanouts: Any = [2]
    kind = random.randrange(9)
    if kind == 0:
        fanouts = wrong(random)
        arrays = any(hasattr(fanouts, name) for name in ("shape", "to_pylist"))
        if arrays or isinstance(fanouts, (range, array, Liar)):
            # Whatever holds integers is fanouts, as far as they fit.
            return
    elif kind == 1:
        fanouts = [1] * random.choice((0, 257, 5000))
    elif kind == 2:
        fanouts = [2, random.choice((-2, 1 << 31, 1 << 63, -(1 << 70)))]
    elif kind == 3:
        fanouts = [no_integer(random), 2]
    elif kind == 4:
        value = random.choice((None, 1, 0, "yes", 1.0))
        one = {"mode": "queue", "mode_options": {"ordered": value}}
        options |= random.choice(({"replace": value}, {"disjoint": value}, one))
    elif kind == 5:
        options["seed"] = not_from(random, -(1 << 63), (1 << 64) - 1)
    elif kind == 6:
        options["seed"] = random.choice((1.5, "1", b"1", True, [], object()))
    elif kind == 7:
        name = random.choice(("mode", "frontier"))
        options[name] = random.choice((None, "", "fast", 3, b"auto", ["auto"], object()))
        if random.random() < 0.2:
            # A task queue knows the frontier of DGL alone.
            options = {"mode": "queue", "frontier": "new"}
    else:
        options["map_bytes"] = random.choice((0, -1, 1 << 63, 1.0, "1", False))
    with refused():
        made = pgs.PGSampler(fanouts, **options)
        expect(False, made, "of", fanouts, options)


def seeds_for(model: GraphModel, random: Random) -> list[int]:
    if not model.num_nodes:
        return []
    count = random.choice((0, 1, 1, 2, 3, 5, 8, 20))
    return [random.randrange(model.num_nodes) for _ in range(count)]


def bearable(graph: GraphModel, sampler: SamplerModel, seeds: list[int]) -> bool:
    """Whether the batch is of a size that a run of so many calls can do with."""
    if graph.num_nodes < 4000:
        return True
    edges = float(len(seeds))
    for fanout in reversed(sampler.fanouts):
        edges += min(edges, graph.num_nodes) * (14 if fanout < 0 else fanout)
    return edges < 20_000


def draw_of(world: World, random: Random) -> tuple[Draw, Any, dict[str, Any]]:
    """A call that is right: what it is of, its seeds in some container, and its options."""
    graph, sampler = world.open_graph(random), world.some("samplers", random)
    seeds = seeds_for(graph, random)
    while not bearable(graph, sampler, seeds):
        sampler = new_sampler(world, random)
    options: dict[str, Any] = {}
    epoch, batch = random.choice((0, 1, MAX_EPOCH)), random.choice((0, 1, 2, 77, MAX_BATCH - 8))
    if random.random() < 0.25 and len(graph.indices):
        ids = range(len(graph.indices)) if graph.edge_ids is None else graph.edge_ids
        exclude = random.sample(ids, random.randint(0, min(len(ids), 8)))
        exclude += exclude[: random.choice((0, 0, 1))]
        options["exclude"] = right(random, exclude, random.choice((32, 64)))
    else:
        exclude = None
    options["epoch"], options["batch"] = epoch, batch
    if random.random() < 0.2:
        options["threads"] = random.choice((0, 1, 2, 5, 1 << 20))
    draw = Draw(graph, sampler, seeds, epoch, batch, exclude)
    bits = random.choice((32, 64))
    return draw, right(random, seeds, bits), options


@operation(0.5)
def wrong_weights(world: World, random: Random) -> None:
    """Names that the graph does not have, arrays that hold no weights, and options for neither."""
    by = random.choice(("prob", "mask"))
    with refused():
        pgs.PGSampler([2], **{by: random.choice((3, b"w", ["w"], True))})
    with refused(ValueError):
        pgs.PGSampler([2], prob="w", mask="m")
    with refused(ValueError):
        pgs.PGSampler([2], mode=random.choice((*REGISTERED,) or ("queue",)), **{by: "w"})
    model = world.open_graph(random)
    edges = model.graph.num_edges
    if not edges:
        return
    with refused(ValueError):
        pgs.PGSampler([2], **{by: "W"}).sample(model.graph, [])
    bad = np.ones(edges)
    bad[random.randrange(edges)] = random.choice((-1.0, -5e-324, np.nan, np.inf))
    for values in (bad, np.ones((edges, 2)), np.ones(edges, np.float16)):
        graph = model.graph.with_data(edge_data={"w": values})
        with refused():
            pgs.PGSampler([2], prob="w").sample(graph, [])
        with refused():
            graph.save("/nowhere/at all", tables=["w"])


@operation(12)
def sample(world: World, random: Random) -> None:
    draw, seeds, options = draw_of(world, random)
    batch = draw.sampler.sampler.sample(draw.graph.graph, seeds, **options)
    values = verify(batch, draw, random)
    if random.random() < 0.4:
        world.keep("batches", BatchModel(batch, draw, values), random)
    if random.random() < 0.1:
        options["threads"] = random.choice((0, 1, 3))
        again = draw.sampler.sampler.sample(draw.graph.graph, seeds, **options)
        if draw.sampler.ordered:
            expect(as_reference(again) == values, "another sample of the same call", draw)


@operation(2)
def sample_many(world: World, random: Random) -> None:
    draw, _, _ = draw_of(world, random)
    sets = [seeds_for(draw.graph, random) for _ in range(random.choice((0, 1, 2, 3, 20)))]
    sets = [seeds for seeds in sets if bearable(draw.graph, draw.sampler, seeds)]
    number = min(draw.batch, MAX_BATCH - 20)
    given: Any = [right(random, seeds, random.choice((32, 64))) for seeds in sets]
    given = random.choice((given, tuple(given), iter(given)))
    many = draw.sampler.sampler.sample_many(draw.graph.graph, given, epoch=draw.epoch, batch=number)
    expect(len(many) == len(sets), "batches", len(many), sets)
    for i, (batch, seeds) in enumerate(zip(many, sets, strict=True)):
        verify(batch, Draw(draw.graph, draw.sampler, seeds, draw.epoch, number + i), random)
    if len(sets) > 1 and draw.graph.num_nodes:
        given = [*sets]
        bad = random.randrange(len(given))
        given[bad] = [*given[bad], draw.graph.num_nodes]
        with refused(IndexError):
            draw.sampler.sampler.sample_many(draw.graph.graph, given)


@operation(4)
def wrong_call(world: World, random: Random) -> None:
    """One argument is wrong; the others are right."""
    draw, seeds, options = draw_of(world, random)
    sampler: Any = draw.sampler.sampler
    graph: Any = draw.graph.graph
    call = random.choice((sampler.sample, sampler.submit))
    kind = random.randrange(9)
    kinds: tuple[type[BaseException], ...] = ()
    if kind == 0:
        graph, kinds = random.choice(NO_GRAPHS), (TypeError,)
    elif kind == 1:
        seeds = wrong(random)
    elif kind == 2:
        outside = not_from(random, 0, max(draw.graph.num_nodes - 1, 0))
        if not draw.graph.num_nodes:
            outside = 0
        seeds, kinds = [*draw.seeds, outside], (IndexError,)
        call = sampler.sample
    elif kind == 3:
        name = random.choice(("epoch", "batch", "threads"))
        options[name] = no_integer(random)
        if options[name] is None and name != "threads":
            return
    elif kind == 4:
        name, most = random.choice((("epoch", MAX_EPOCH), ("batch", MAX_BATCH)))
        options[name] = not_from(random, 0, most)
    elif kind == 5:
        options["threads"] = not_from(random, 0, (1 << 31) - 1)
    elif kind == 6:
        options["exclude"] = wrong(random)
        if options["exclude"] is None:
            return
    elif kind == 7:
        closed = [g for g in tuple(world.graphs) if g.closed]
        # One that another thread is about to close is open still.
        if not closed or world.shared:
            return
        graph, kinds = closed[0].graph, (pgs.errors.ClosedError,)
    else:
        call, kinds = sampler.sample_many, (TypeError, ValueError, IndexError)
        seeds = random.choice((None, 3, "12", b"12", {}, [3], [[0], None], [[0], ["a"]]))
        options = {}
    if random.random() < 0.5:
        options.pop("exclude", None) if kind != 6 else None
    with refused(*kinds):
        made = call(graph, seeds, **options)
        if isinstance(made, pgs.MiniBatch):
            expect(False, "a batch of a wrong call", kind, seeds, options)
        made.result()


@operation(1)
def numbers_advance(world: World, random: Random) -> None:
    """Without a number the next one is taken, and ``set_epoch`` starts anew."""
    graph, sampler = world.open_graph(random), world.some("samplers", random).sampler
    if graph.num_nodes >= 4000:
        return
    epoch = random.choice((0, 5, MAX_EPOCH))
    sampler.set_epoch(epoch)
    first, second = sampler.sample(graph.graph, []), sampler.sample(graph.graph, [])
    if not world.shared:
        expect((first.epoch, first.batch, second.batch) == (epoch, 0, 1), first, second)
        expect(sampler.epoch == epoch, sampler.epoch)
    with refused():
        sampler.set_epoch(random.choice((no_integer(random), not_from(random, 0, MAX_EPOCH))))


@operation(0.5)
def copy_sampler(world: World, random: Random) -> None:
    model = world.some("samplers", random)
    how = random.choice((copy.copy, copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))))
    other = how(model.sampler)
    expect(repr(other) == repr(model.sampler), other, model.sampler)
    world.keep("samplers", SamplerModel(other, model.fanouts, model.options), random)


# ---- jobs ----


def new_job(world: World, random: Random) -> tuple[Any, Draw]:
    draw, seeds, options = draw_of(world, random)
    job = draw.sampler.sampler.submit(draw.graph.graph, seeds, **options)
    world.keep("jobs", (job, draw), random)
    return job, draw


NEW["jobs"] = new_job
operation(3)(new_job)


@operation(4)
def use_job(world: World, random: Random) -> None:
    job, draw = world.some("jobs", random)
    what = random.random()
    if what < 0.2:
        expect(isinstance(job.done(), bool), "done")
        expect(repr(job).startswith("Job("), repr(job))
    elif what < 0.3:
        with refused(TypeError):
            random.choice((pickle.dumps, copy.copy, copy.deepcopy))(job)
    elif what < 0.45:
        job.cancel()
        job.cancel()
        expect(job.done(), "a cancelled job is not done")
    else:
        try:
            batch = job.result()
        except pgs.errors.ClosedError:
            expect(draw.graph.closed or world.shared, "closed by nobody")
        except pgs.Error as error:
            expect("cancelled" in str(error) or world.shared, error)
        else:
            verify(batch, draw, random)
            expect(job.result() is batch and job.done(), "another result")


@operation(0.5)
def drop_jobs(world: World, random: Random) -> None:
    world.jobs.clear()
