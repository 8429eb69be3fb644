"""Calls that make, use, move, pickle and close graphs."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np

import pygsampler as pgs
from tests.fuzz.values import NUMPY, no_integer, not_from, optional, right, torch, wrong
from tests.fuzz.world import (
    NEW,
    Broken,
    GraphModel,
    World,
    check_message,
    expect,
    operation,
    refused,
)

scipy_sparse = optional("scipy.sparse")
_shared: dict[int, Any] = {}


def lists(random: Random) -> tuple[list[int], list[int], int]:
    """A CSC: mostly tiny, with parallel edges, self loops and vertices without a row."""
    size = random.random()
    most = 1 if size < 0.1 else 12 if size < 0.85 else 120
    num_nodes = random.randint(0 if size < 0.05 else 1, most)
    rows = random.randint(0, num_nodes)
    indptr, indices = [0], []
    for _ in range(rows):
        degree = random.choice((0, 1, 2, 3, 6, 9)) if num_nodes else 0
        indices += [random.randrange(num_nodes) for _ in range(degree)]
        indptr.append(len(indices))
    return indptr, indices, num_nodes


def large(which: int) -> tuple[Any, Any, int]:
    """A graph of 4000 vertices in arrays, made once."""
    if which not in _shared:
        random = np.random.default_rng(which)
        degrees = (random.random(4000) ** 4 * 60).astype(np.int64)
        indptr = np.concatenate([[0], degrees.cumsum()])
        _shared[which] = (indptr, random.integers(0, 4000, indptr[-1]))
    return *_shared[which], 4000


# Weights as people have them, and as nobody should.
WEIGHTS: dict[str, Any] = {
    "even": lambda draw, n: draw.uniform(1, 5, n).astype(np.float32),
    "zeros": lambda draw, n: draw.integers(0, 3, n),
    "none": lambda draw, n: np.zeros(n),
    "wide": lambda draw, n: draw.choice([0.0, 5e-324, 1e-300, 1.0, 1e300], n),
    "heavy": lambda draw, n: np.where(draw.random(n) < 0.1, 1e9, draw.random(n) + 1e-9),
    "bytes": lambda draw, n: draw.integers(0, 256, n).astype(np.uint8),
    "truths": lambda draw, n: draw.random(n) < 0.7,
}


def furnished(random: Random, graph: pgs.Graph, *model: Any) -> GraphModel:
    """The model of a graph that has weights and a mask, too."""
    draw = np.random.default_rng(random.getrandbits(32))
    weights = random.choice(list(WEIGHTS.values()))(draw, graph.num_edges)
    mask = draw.random(graph.num_edges) < random.choice((0, 0.3, 0.9, 1))
    given = mask.astype(random.choice(("?", "u1", "f4", "i8")))
    graph = graph.with_data(edge_data={"w": weights, "m": given})
    return GraphModel(graph, *model, weights.astype(float).tolist(), mask.tolist())


def new_graph(world: World, random: Random) -> GraphModel:
    bits = random.choice((32, 64))
    if random.random() < 0.04:
        indptr, indices, num_nodes = large(random.randrange(3))
        graph = pgs.Graph.from_csc(indptr, indices.astype(NUMPY[bits]))
        model = furnished(random, graph, indptr, indices, None, num_nodes, bits)
    else:
        indptr, indices, num_nodes = lists(random)
        ids = None
        if random.random() < 0.4:
            ids = random.sample(range(len(indices)), len(indices))
        numbers = right(random, ids, random.choice((32, 64))) if ids is not None else None
        graph = pgs.Graph.from_csc(
            right(random, indptr, random.choice((32, 64))),
            right(random, indices, bits),
            edge_ids=numbers,
            num_nodes=num_nodes,
        )
        model = furnished(random, graph, indptr, indices, ids, num_nodes, bits)
    agrees(model)
    if world.device != "cpu" and random.random() < 0.6:
        model.graph = model.graph.pin() if random.random() < 0.3 else model.graph.to(world.device)
    world.keep("graphs", model, random)
    return model


NEW["graphs"] = new_graph
operation(3)(new_graph)


def agrees(model: GraphModel) -> None:
    graph = model.graph
    expect(graph.num_nodes == model.num_nodes, graph, model.num_nodes)
    expect(graph.num_edges == len(model.indices), graph, len(model.indices))
    expect(graph.dtype == f"int{model.bits}", graph, model.bits)
    expect({"w", "m"} <= set(graph.edata), graph, "edata")


@operation()
def graph_of_edges(world: World, random: Random) -> None:
    bits, num_nodes = random.choice((32, 64)), random.randint(1, 15)
    count = random.choice((0, 1, 5, 40))
    src = [random.randrange(num_nodes) for _ in range(count)]
    dst = [random.randrange(num_nodes) for _ in range(count)]
    given = num_nodes if random.random() < 0.6 else None
    graph = pgs.Graph.from_coo(right(random, src, bits), right(random, dst, bits), num_nodes=given)
    keep_edges(world, random, graph, src, dst, bits, given)


def keep_edges(
    world: World, random: Random, graph: pgs.Graph, src: Any, dst: Any, bits: int, given: int | None
) -> None:
    """The model of a graph of edges, whose ids are their places."""
    num_nodes = max([*src, *dst], default=-1) + 1 if given is None else given
    order = sorted(range(len(dst)), key=lambda i: dst[i])
    indptr = [0]
    for v in range(num_nodes):
        indptr.append(indptr[-1] + dst.count(v))
    indices = [src[i] for i in order]
    model = furnished(random, graph, indptr, indices, order, num_nodes, bits)
    agrees(model)
    expect(graph.indices.tolist() == model.indices, "indices", src, dst)
    expect(graph.edge_ids is not None and graph.edge_ids.tolist() == order, "edge_ids", src, dst)
    world.keep("graphs", model, random)


@operation(0.5)
def graph_of_others(world: World, random: Random) -> None:
    """SciPy's matrices and what looks like PyG's ``Data``."""
    num_nodes, count = random.randint(1, 9), random.choice((0, 1, 12))
    src = [random.randrange(num_nodes) for _ in range(count)]
    dst = [random.randrange(num_nodes) for _ in range(count)]
    if torch is not None and random.random() < 0.5:
        index = torch.tensor([src, dst], dtype=torch.int64)
        graph = pgs.Graph.from_pyg(SimpleNamespace(edge_index=index, num_nodes=num_nodes))
        keep_edges(world, random, graph, src, dst, 64, num_nodes)
    elif scipy_sparse is not None:
        shape = (num_nodes, num_nodes)
        matrix = scipy_sparse.coo_array((np.ones(count), (src, dst)), shape=shape)
        kind = random.choice(("coo", "csr", "csc", "lil", "dok"))
        graph = pgs.Graph.from_scipy(matrix.asformat(kind))
        expect(graph.num_nodes == num_nodes, graph, kind)
        expect(graph.num_edges <= count, graph, kind)


@operation(2)
def wrong_graph(world: World, random: Random) -> None:
    """Each argument in turn is no array, or an array that is no graph."""
    indptr, indices, num_nodes = lists(random)
    kind = random.randrange(10)
    bits = random.choice((32, 64))
    if kind == 0:
        with refused():
            pgs.Graph.from_csc(wrong(random), right(random, [0], bits))
    elif kind == 1:
        with refused():
            pgs.Graph.from_csc(right(random, [0, 1], bits), wrong(random))
    elif kind == 2:
        ids = wrong(random)
        if ids is None:
            return
        with refused():
            pgs.Graph.from_csc([0, 1], [0], edge_ids=ids)
    elif kind == 3:
        with refused():
            pgs.Graph.from_csc(indptr, indices, num_nodes=no_integer(random) or "0")
    elif kind == 4:
        with refused(ValueError):
            pgs.Graph.from_csc([0, 0], [], num_nodes=not_from(random, 1, 1 << 48))
    elif kind == 5:
        # A row structure that is none.
        broken = [*indptr]
        broken[random.randrange(len(indptr))] = random.choice((-1, 1 << 31, 1 << 62, 7, 1))
        if broken == sorted(broken) and broken[0] == 0 and broken[-1] == len(indices):
            return
        with refused():
            pgs.Graph.from_csc(broken, indices, num_nodes=num_nodes)
    elif kind == 6:
        place = random.randrange(len(indices) + 1)
        num_nodes = max(num_nodes, 1)
        broken = [*indices[:place], random.choice((-1, num_nodes, 1 << 40)), *indices[place:]]
        with refused():
            pgs.Graph.from_csc([0, len(broken)], broken, num_nodes=num_nodes)
    elif kind == 7:
        with refused():
            pgs.Graph.from_coo(right(random, [0, 1], 64), wrong(random), num_nodes=5)
    elif kind == 8:
        ends = right(random, [0, random.choice((-1, 5, 1 << 62))], 64)
        with refused():
            pgs.Graph.from_coo(ends, right(random, [0, 1], 64), num_nodes=5)
    else:
        what = wrong(random)
        make = random.choice((pgs.Graph.from_scipy, pgs.Graph.from_pyg))
        if isinstance(what, np.ndarray) or what is torch:
            return
        with refused(TypeError, ValueError, IndexError):
            make(what)


@operation(2)
def look_at_graph(world: World, random: Random) -> None:
    model = world.some("graphs", random)
    try:
        agrees(model)
        expect("num_nodes" in repr(model.graph) or world.shared, repr(model.graph))
        if random.random() < 0.2 and model.graph.device == "cpu":
            expect(model.graph.indptr.tolist() == list(model.indptr), "indptr")
            expect(model.graph.indices.tolist() == list(model.indices), "indices")
            world.keep("arrays", model.graph.indices, random)
    except pgs.errors.ClosedError:
        expect(model.closed or world.shared, "closed by nobody")
        return
    expect(not model.closed or world.shared, "a closed graph answers")


@operation(0.5)
def pickle_graph(world: World, random: Random) -> None:
    model = world.some("graphs", random)
    how = random.randrange(3)
    try:
        if how == 0:
            other = copy.copy(model.graph)
        elif how == 1:
            other = copy.deepcopy(model.graph)
        else:
            text = pickle.dumps(model.graph, random.randint(2, pickle.HIGHEST_PROTOCOL))
            other = pickle.loads(text)
    except pgs.errors.ClosedError:
        expect(model.closed or world.shared, "closed by nobody")
        return
    except TypeError as error:
        # Memory views, ctypes arrays and capsules have no pickle; copies of them are no better.
        check_message(error)
        return
    except FileNotFoundError:
        # A graph of a file travels by its path.
        expect(model.graph.path is not None, "no file", model.graph)
        return
    made = replace(model, graph=other, closed=False)
    agrees(made)
    world.keep("graphs", made, random)


@operation(0.7)
def close_graph(world: World, random: Random) -> None:
    model = world.some("graphs", random)
    model.closed = True
    if random.random() < 0.3 and not world.shared:
        model.graph.close()
        with refused(pgs.errors.ClosedError), model.graph:
            raise Broken("a closed graph was entered")
    for _ in range(random.randint(1, 2)):
        model.graph.close()
    if not world.shared:
        expect(repr(model.graph) == "Graph(closed)", repr(model.graph))
        with refused(pgs.errors.ClosedError):
            _ = model.graph.indptr


DEVICES: list[Any] = ["gpu", "CPU", "cuda:", "cuda:-1", "cuda:x", "cuda:99", "", "cpu:1", -1, None]
DEVICES += [True, 1.0, object(), b"cpu", ["cpu"], 1 << 70, "cuda:99999999999", 17]


@operation(0.5)
def move_graph(world: World, random: Random) -> None:
    model = world.open_graph(random)
    if random.random() < 0.3:
        there = model.graph.to("cpu")
        expect(there is model.graph or model.graph.device != "cpu", there)
        agrees(replace(model, graph=there))
        return
    with refused(TypeError, ValueError, pgs.errors.CudaError):
        random.choice((model.graph.to, model.graph.pin))(random.choice(DEVICES))
    if not pgs.cuda.is_available():
        with refused(pgs.errors.CudaError):
            random.choice((model.graph.to, model.graph.pin))(random.choice(("cuda", 0, "cuda:1")))
