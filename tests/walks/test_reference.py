"""``RandomWalk`` against the slow reimplementation, which follows docs/developer/walk-draws.md."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import reference_walks as reference
from walk_graphs import HARD, Shape, of_rows, settings, shapes

import pygsampler as pgs

SHAPES = shapes()
SETTINGS = settings()
AT = {"epoch": 5, "batch": 1 << 33}


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    before = pgs.set_num_threads(2)
    yield
    pgs.set_num_threads(before)


def walk(options: dict[str, Any], seed: int = 9) -> pgs.RandomWalk:
    given = dict(options)
    return pgs.RandomWalk(given.pop("length"), **given, seed=seed)


def seeds_of(shape: Shape) -> list[int]:
    """All vertices, so those without edges, and the last one, too; some of them twice."""
    return [*range(shape.num_nodes), 0, shape.num_nodes - 1, 0]


def same(got: pgs.Walks, want: reference.Walks, edges: bool, bits: int, what: object = "") -> None:
    length = len(want.nodes[0]) - 1
    tables = [(got.nodes, want.nodes), (got.lengths, want.lengths)]
    if edges:
        tables.append((got.edge_ids, want.edge_ids))
    for mine, theirs in tables:
        assert mine.numpy().tolist() == theirs, what
    assert got.nodes.numpy().dtype == f"int{bits}"
    assert got.lengths.numpy().dtype == np.int32
    assert got.nodes.shape == (len(want.nodes), length + 1)
    assert got.edge_ids.shape == (len(want.nodes), length)


@pytest.mark.parametrize("setting", list(SETTINGS))
def test_equal_to_the_reference(setting: str) -> None:
    options = SETTINGS[setting]
    for name, shape in SHAPES.items():
        if "metapath" in options and not shape.indices:
            continue  # their edges have no types; test_random_walk has what is said of that
        seeds = seeds_of(shape)
        want = shape.walks(seeds, options, seed=9, **AT)
        for bits, edges in ((64, False), (32, True)):
            sampler = walk({**options, "edge_ids": edges})
            got = sampler.sample(shape.graph(bits), np.array(seeds), **AT)
            same(got, want, True, bits, (name, bits))
            assert (got.epoch, got.batch) == (5, 1 << 33)


def test_the_reference_has_seen_all_that_walks_do() -> None:
    """Second tries, and steps that all tries leave open, are among what is compared above."""
    again = finished = 0
    for options in (SETTINGS["return, out, None"], SETTINGS["hard, out, w"], HARD):
        for shape in SHAPES.values():
            form = reference.Form(shape.indptr, shape.indices, second=True)
            walker = reference.Walker(form, options["length"], p=options["p"], q=options["q"])
            reference.walks(walker, seeds_of(shape), seed=9, **AT)
            again, finished = again + walker.again, finished + walker.finished
    assert again > 100 and finished > 100


@pytest.mark.parametrize("setting", ["several, out, w", "second, all, out, w", "jumps, in, None"])
def test_however_they_are_asked_for(setting: str) -> None:
    """sample, submit, sample_many and launch; any number of threads, epochs and batches."""
    options, shape = SETTINGS[setting], SHAPES["ids"]
    graph, seeds = shape.graph(), seeds_of(shape)
    # More walks than a worker takes at a time.
    seeds = seeds * 14
    sampler = walk({**options, "edge_ids": True})
    for epoch, batch in ((0, 0), (3, 1), ((1 << 24) - 1, (1 << 40) - 1)):
        want = shape.walks(seeds, options, seed=9, epoch=epoch, batch=batch)
        for threads in (0, 1, 2, 7):
            numbers = {"epoch": epoch, "batch": batch, "threads": threads}
            for got in (
                sampler.sample(graph, seeds, **numbers),
                sampler.submit(graph, seeds, **numbers).result(),
                sampler.launch(graph, seeds, asynchronous=True, **numbers).result(),
            ):
                same(got, want, True, 64, (epoch, batch, threads))
    many = sampler.sample_many(graph, [seeds, seeds[::-1], [3]], epoch=2, batch=7)
    for number, (got, own) in enumerate(zip(many, [seeds, seeds[::-1], [3]], strict=True)):
        same(got, shape.walks(own, options, seed=9, epoch=2, batch=7 + number), True, 64)


def test_batches_count_as_those_of_neighbours_do() -> None:
    shape = SHAPES["symmetric"]
    graph, sampler = shape.graph(), walk({"length": 4})
    found = [sampler.sample(graph, [1, 2]) for _ in range(2)]
    sampler.set_epoch(6)
    found.append(sampler.sample(graph, [1, 2]))
    assert [(one.epoch, one.batch) for one in found] == [(0, 0), (0, 1), (6, 0)]
    for one in found:
        numbers = {"epoch": one.epoch, "batch": one.batch}
        same(one, shape.walks([1, 2], {"length": 4}, seed=9, **numbers), True, 64)


@pytest.mark.parametrize("seed", [0, 1, 2**32, 2**64 - 1, -1])
def test_seeds_of_64_bits(seed: int) -> None:
    shape = SHAPES["symmetric"]
    got = walk({"length": 5}, seed).sample(shape.graph(), [3, 4], epoch=0, batch=0)
    same(got, shape.walks([3, 4], {"length": 5}, seed=seed % 2**64), True, 64)


def test_a_long_row() -> None:
    """A hub of 3000 edges, by weight and of second order: searches take several rounds."""
    n = 300
    rows = [[0] * (v % 5) + [v % 7, (v + 1) % n] for v in range(n)]
    rows[0] = [u for v in range(1, n) for u in [v] * 10]
    shape = of_rows(rows, n, "mixed")
    for setting in ("uniform, out, w", "return, in, w", "back and far, in, None", "far, out, w"):
        options = {**SETTINGS[setting], "length": 40}
        got = walk(options).sample(shape.graph(), [0, 5, 299], **AT)
        same(got, shape.walks([0, 5, 299], options, seed=9, **AT), True, 64, setting)


def test_weights_of_extremes() -> None:
    for weights in ([5e-324, 1e308, 1.0], [1e-300, 1e300, 0.0], [0.0, 0.0, 5e-324]):
        shape = of_rows([[1, 2, 3], [0, 2], [0, 1, 1], [0]], 4)
        shape.weights = (weights * 3)[: len(shape.indices)]
        for options in ({"length": 30}, {"length": 30, "p": 0.25, "q": 2.0}):
            given = {**options, "prob": "w"}
            got = walk(given).sample(shape.graph(), [0, 1, 2, 3], **AT)
            same(got, shape.walks([0, 1, 2, 3], given, seed=9, **AT), True, 64, weights)


def test_edges_that_are_asked_for_later_are_the_same() -> None:
    shape = SHAPES["gaps"]
    for setting in ("several, out, w", "second, all, in, w", "metapath, out, None"):
        options, seeds = SETTINGS[setting], seeds_of(shape)
        at_once = walk({**options, "edge_ids": True}).sample(shape.graph(), seeds, **AT)
        later = walk(options).sample(shape.graph(), seeds, **AT)
        assert later.edge_ids.tolist() == at_once.edge_ids.tolist(), setting
