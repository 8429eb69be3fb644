"""Dense rows and inputs of programs, beside the reference."""

from __future__ import annotations

import pickle
import random
from typing import Any

import numpy as np
import pytest
from program_graphs import Arrays, graphs, larger, seeds_of
from program_parity import PASSES
from program_reference import Result, reference

import pygsampler as pgs
from pygsampler import samplers

CASES = {**graphs(), "larger": larger()}
RNG = np.random.default_rng(5)


@pgs.program
def dots(A: Any, seeds: Any, *, W: Any, v: Any) -> Any:
    C = A[:, seeds]
    X = A.features("rows")
    D = C.individual_sample(3, (C.dot(X[C.row()] @ W, X[C.column()] @ W) * v[0]).relu())
    # Of all vertices, of edges of edges, and twice.
    E = D.dot(X, X) + D.dot(X[C.row()], X[C.column()]) / v[-1]
    return [D.mul(E.abs().sum(axis=1), axis=1)]


def stored(case: Arrays, width: int, dtype: str) -> tuple[pgs.Graph, Arrays]:
    rows = RNG.normal(size=(case.num_nodes, width)).astype(dtype)
    lists = Arrays(
        case.indptr,
        case.indices,
        case.edge_ids,
        case.num_nodes,
        case.edge_data,
        dict(case.node_data),
    )
    lists.node_data["rows"] = rows.tolist()
    return case.graph().with_data(node_data={"rows": rows}), lists


def result(batch: Any) -> Any:
    return [
        (b.indptr.tolist(), b.indices.tolist(), b.edge_ids.tolist(), bits(b.edge_data["w"]))
        for b in batch.numpy().blocks
    ]


def bits(values: Any) -> list[int]:
    return np.asarray(values, np.float32).view(np.int32).tolist()


def wanted(made: Result) -> Any:
    return [(b.indptr, b.indices, b.edge_ids, bits(b.values)) for b in made.blocks]


def same(sampler: Any, graph: pgs.Graph, lists: Arrays, seeds: list[int]) -> int:
    inputs = {name: value.tolist() for name, value in sampler.inputs.items()}
    want = reference(
        sampler.code, lists, seeds, seed=sampler.seed, weight=sampler.plan["weight"], inputs=inputs
    )
    made = sampler.submit(graph, np.array(seeds, np.int64), epoch=0, batch=0).result()
    assert result(made) == wanted(want)
    return sum(len(b.indices) for b in want.blocks)


@pytest.mark.parametrize(("width", "dtype"), [(1, "float32"), (11, "float64"), (16, "float16")])
def test_dense_rows_are_those_of_the_reference(width: int, dtype: str) -> None:
    rng, edges = random.Random(width), 0
    for case in CASES.values():
        if not case.num_nodes:
            continue
        graph, lists = stored(case, width, dtype)
        inputs = {"W": RNG.normal(size=(width, 9)), "v": RNG.uniform(0.5, 2, 3)}
        for passes in ((), PASSES):
            sampler = dots(**inputs, seed=3, passes=passes)
            edges += same(sampler, graph, lists, seeds_of(case, rng))
    assert edges > 50


def test_pass_is_that_of_the_reference() -> None:
    rng, edges = random.Random(7), 0
    for case in CASES.values():
        if not case.num_nodes:
            continue
        graph, lists = stored(case, 5, "float32")
        two = {name: RNG.normal(size=(5, 8)) for name in ("W1", "W2")}
        for scope in (-1, 4):
            sampler = samplers.pass_sampler(
                fanouts=[3, 2],
                **two,
                W3=np.array([0.1, 0.2, 1.0]),
                features="rows",
                scope=scope,
                seed=2,
            )
            edges += same(sampler, graph, lists, seeds_of(case, rng))
    assert edges > 50


def star() -> pgs.Graph:
    return pgs.Graph.from_coo(
        [1, 2, 3], [0, 0, 0], num_nodes=4, node_data={"x": np.array([[1.0], [2], [-1], [1]], "f4")}
    )


def of_star(**given: Any) -> Any:
    inputs: dict[str, Any] = {
        "W1": np.ones((1, 1)),
        "W2": np.full((1, 1), 0.5),
        "W3": [0.01, 0.01, 1],
    }
    inputs["W3"] = np.array(inputs["W3"])
    return samplers.pass_sampler(fanouts=[4], **{**inputs, **given}, seed=1)


def test_update_changes_batches_from_then_on() -> None:
    graph, sampler = star(), of_star()
    before = result(sampler.submit(graph, [0], epoch=0, batch=0).result())
    job = sampler.submit(graph, [0], epoch=0, batch=0)
    assert sampler.version == 0 and sampler.update(W1=np.full((1, 1), -3.0)) == 1
    assert result(job.result()) == before
    after = result(sampler.submit(graph, [0], epoch=0, batch=0).result())
    assert after != before
    assert after == result(
        of_star(W1=np.full((1, 1), -3.0)).submit(graph, [0], epoch=0, batch=0).result()
    )
    again = pickle.loads(pickle.dumps(sampler))
    assert (
        again.version == 1 and result(again.submit(graph, [0], epoch=0, batch=0).result()) == after
    )
    assert again.inputs["W1"].tolist() == [[-3.0]]


def test_errors_name_the_input() -> None:
    sampler = of_star()
    with pytest.raises(
        ValueError, match=r"pass_sampler.update: W1: expected shape \(1, 1\), got \(2, 1\)"
    ):
        sampler.update(W1=np.ones((2, 1)))
    with pytest.raises(TypeError, match=r"W9: expected one of its inputs \(W1, W2, W3\)"):
        sampler.update(W9=np.ones(3))
    with pytest.raises(TypeError, match="W1: expected a tensor of floats, got one of int64"):
        sampler.update(W1=np.ones((1, 1), np.int64))
    assert sampler.version == 0
    wide = of_star(W1=np.ones((2, 1)))
    with pytest.raises(
        ValueError, match=r"@: expected rows of 2 numbers for 'W1' of shape \(2, 1\), got 1"
    ):
        wide.sample(star(), [0])
    with pytest.raises(ValueError, match="dot: expected rows of one length, got 1 and 2 numbers"):
        uneven(W=np.ones((1, 2))).sample(star(), [0])
    with pytest.raises(
        ValueError, match=r"features: expected a row for each vertex, got ndata\['x'\]"
    ):
        sampler.sample(star().with_data(node_data={"x": np.ones(4)}), [0])
    with pytest.raises(ValueError, match="mul: expected values as input 1, got dense rows"):
        scaled(W=np.ones((1, 2)))


@pgs.program
def uneven(A: Any, seeds: Any, *, W: Any) -> Any:
    C, X = A[:, seeds], A.features("x")
    return C.where(C.dot(X, X @ W))


@pgs.program
def scaled(A: Any, seeds: Any, *, W: Any) -> Any:
    return A[:, seeds] * (A.features("x") @ W)


def test_explain_has_no_contents() -> None:
    assert len(of_star().explain(star(), 10)) < 20000
