"""Calls of the package's own functions, of loaders, and of a graph whose arrays change."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np

import pygsampler as pgs
from tests.fuzz.samplers import fanouts_of
from tests.fuzz.values import no_integer, not_from, right, torch, wrong
from tests.fuzz.world import (
    NEW,
    REFUSALS,
    World,
    check_message,
    expect,
    operation,
    refused,
)


@operation(0.7)
def threads_and_memory(world: World, random: Random) -> None:
    kind = random.randrange(4)
    if kind == 0:
        before = pgs.set_num_threads(random.choice((1, 2, 3, 64)))
        expect(before >= 1 and pgs.get_num_threads() >= 1, before)
    elif kind == 1:
        with refused(TypeError, ValueError):
            pgs.set_num_threads(random.choice((no_integer(random), not_from(random, 1, 4096))))
    elif kind == 2:
        stats = pgs.engine.memory_stats()
        expect(all(value >= 0 for value in stats.values()), stats)
    else:
        pgs.engine.trim()


@operation(0.3)
def ask_for_devices(world: World, random: Random) -> None:
    count = pgs.cuda.device_count()
    expect(pgs.cuda.is_available() == (count > 0) and pgs.cuda.driver_version() >= 0, count)
    ask = random.choice((pgs.cuda.device_name, pgs.cuda.memory_stats, pgs.cuda.trim))
    index = random.choice((no_integer(random), not_from(random, 0, max(count - 1, 0))))
    if not count:
        index = random.choice((index, 0))
    with refused(TypeError, IndexError, pgs.errors.CudaError):
        ask(index)


@operation(1)
def changing_arrays(world: World, random: Random) -> None:
    """A caller who breaks the rule: the arrays change under a graph. No answer is wrong that is
    a batch of the right seeds, or an error; and nothing outside of the arrays is read."""
    num_nodes = random.choice((3, 50, 1000))
    indptr = np.arange(0, 4 * num_nodes + 1, 4)
    indices = np.arange(4 * num_nodes) % num_nodes
    graph = pgs.Graph.from_csc(indptr, indices)
    sampler = pgs.PGSampler(fanouts_of(random)[:2], seed=0)
    seeds = [random.randrange(num_nodes) for _ in range(20)]
    jobs = [sampler.submit(graph, seeds) for _ in range(random.choice((0, 1, 3)))]
    target = random.choice((indptr, indices))
    for _ in range(random.choice((1, 5))):
        value = random.choice((-1, num_nodes, 1 << 31, 1 << 62, -(1 << 63), 0))
        target[random.randrange(len(target))] = value
    calls: list[Any] = [job.result for job in jobs]
    calls.append(lambda: sampler.sample(graph, seeds))
    for call in calls:
        try:
            batch = call()
        except (*REFUSALS, MemoryError) as error:
            check_message(error)
        except pgs.Error as error:
            expect("arrays changed" in str(error), error)
        else:
            expect(batch.output_nodes.tolist() == seeds, "seeds of a changed graph")


# ---- loaders ----


def new_loader(world: World, random: Random) -> Any:
    from pygsampler.torch import DataLoader

    graph = world.open_graph(random)
    while graph.num_nodes >= 4000 or graph.graph.device != "cpu":
        from tests.fuzz.graphs import new_graph

        graph = new_graph(world, random)
    seeds = list(range(graph.num_nodes))
    options: dict[str, Any] = {"batch_size": random.choice((1, 2, 3, 7, 1000))}
    for name, chances in {
        "shuffle": (True, False),
        "drop_last": (True, False),
        "prefetch": (0, 1, 2, 4, 50),
        "seed": (None, 0, -1, (1 << 64) - 1),
        "progress": (False,),
    }.items():
        if random.random() < 0.4:
            options[name] = random.choice(chances)
    sampler = world.some("samplers", random)
    bits = random.choice((32, 64))
    fanouts = random.choice((sampler.sampler, list(sampler.fanouts)))
    given = torch.tensor(seeds, dtype=torch.int32 if bits == 32 else torch.int64)
    loader = DataLoader(graph.graph, given, fanouts, **options)
    size, rest = divmod(len(seeds), options["batch_size"])
    expect(len(loader) == size + bool(rest and not options.get("drop_last")), repr(loader))
    made = (loader, graph, seeds, options, [])
    world.keep("loaders", made, random)
    return made


NEW["loaders"] = new_loader

if torch is not None:
    operation(1.5)(new_loader)

    @operation(3)
    def use_loader(world: World, random: Random) -> None:
        """A pass, or a part of one: every seed once, the same again with the same epoch."""
        loader, graph, seeds, options, open_ones = world.some("loaders", random)
        epoch = random.choice((0, 1, (1 << 24) - 1))
        if world.shared:
            sum(len(batch.output_nodes) for batch in loader)
            return
        loader.set_epoch(epoch)
        if graph.closed and len(loader):
            with refused(pgs.errors.ClosedError):
                next(iter(loader))
            return
        batches = iter(loader)
        if random.random() < 0.4:
            # Left in the middle, and perhaps kept for a while.
            for _, batch in zip(range(random.choice((0, 1, 2))), batches, strict=False):
                expect(len(batch.output_nodes) <= options["batch_size"], batch)
            if len(open_ones) < 3 and random.random() < 0.5:
                open_ones.append(batches)
            return
        seen: list[int] = []
        for step, batch in enumerate(batches):
            expect((batch.epoch, batch.batch) == (epoch, step), batch)
            seen += batch.output_nodes.tolist()
        if options.get("drop_last"):
            expect(set(seen) <= set(seeds) and len(set(seen)) == len(seen), "seeds")
        else:
            expect(sorted(seen) == seeds, "seeds", seen)

    @operation(0.5)
    def wrong_loader(world: World, random: Random) -> None:
        from pygsampler.torch import DataLoader

        graph = world.open_graph(random)
        arguments: list[Any] = [graph.graph, [0] if graph.num_nodes else [], [2]]
        options: dict[str, Any] = {"batch_size": 2}
        kind = random.randrange(5)
        if kind == 0:
            arguments[0] = random.choice((None, 3, "graph", [[0]]))
        elif kind == 1:
            arguments[1] = right(random, [0, graph.num_nodes], 64)
        elif kind == 2:
            arguments[2] = random.choice((None, [], "2", [2.0], 2, [[2]]))
        elif kind == 3:
            name = random.choice(("batch_size", "prefetch", "rank", "world_size"))
            options[name] = random.choice((no_integer(random), -1, -(1 << 70)))
        else:
            name = random.choice(("shuffle", "drop_last", "progress"))
            options[name] = random.choice((None, 1, "yes", 0.0))
        with refused(TypeError, ValueError, IndexError, pgs.errors.ClosedError):
            DataLoader(*arguments, **options)

    @operation(0.3)
    def copy_loader(world: World, random: Random) -> None:
        loader, graph, *rest = world.some("loaders", random)
        try:
            if random.random() < 0.5:
                other = copy.copy(loader)
            else:
                other = pickle.loads(pickle.dumps(loader))
                # With a graph of its own.
                graph = replace(graph, graph=other.graph, closed=False)
        except pgs.errors.ClosedError:
            expect(graph.closed or world.shared, "closed by nobody")
            return
        except TypeError as error:
            check_message(error)
            return
        except FileNotFoundError:
            expect(graph.graph.path is not None, "no file", graph)
            return
        expect(repr(other) == repr(loader), other, loader)
        world.keep("loaders", (other, graph, *rest[:2], []), random)

    @operation(0.3)
    def wrong_seeds_of_loader(world: World, random: Random) -> None:
        """Whatever is no list of ids; torch has words of its own for some of it."""
        from pygsampler.torch import DataLoader

        graph = world.open_graph(random)
        seeds = wrong(random)
        if isinstance(seeds, range):
            return
        try:
            loader = DataLoader(graph.graph, seeds, [1], batch_size=2)
        except (*REFUSALS, BufferError, RuntimeError) as error:
            expect(len(str(error)) > 0, error)
        else:
            expect(len(loader) >= 0, seeds)
