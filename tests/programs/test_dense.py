"""Dense rows and inputs of programs, beside the reference."""

from __future__ import annotations

import pickle
import random
from typing import Any

import numpy as np
import pytest
from program_functions import dots
from program_graphs import Arrays, graphs, larger, seeds_of
from program_parity import PASSES
from program_reference import Result, reference

import pygsampler as pgs
from pygsampler import samplers
from pygsampler.programs import stack

CASES = {**graphs(), "larger": larger()}
RNG = np.random.default_rng(5)


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
            sampler = samplers.learned.pass_sampler(
                fanouts=[3, 2],
                **two,
                W3=np.array([0.1, 0.2, 1.0]),
                features="rows",
                scope=scope,
                seed=2,
            )
            edges += same(sampler, graph, lists, seeds_of(case, rng))
    assert edges > 50


@pgs.program
def aggregates(A: Any, seeds: Any, *, W: Any, v: Any) -> Any:
    C, X = A[:, seeds], A.features("rows")
    R = X[C.row()]
    heard = C.T @ R
    scores = stack([C * (R @ W @ (heard @ W).T), C.sub(C.T @ (R @ v), axis=0)]) @ v.softmax()[:2]
    B = C.individual_sample(2, scores.relu() + 0.01)
    return B * 2, {"heard": heard, "back": B @ heard, "x": (A @ X)[:, 0], "y": C.T @ C.sum(axis=1)}


def test_products_are_those_of_the_reference() -> None:
    rng = random.Random(3)
    for name, case in CASES.items():
        graph, lists = stored(case, 3, "float32")
        inputs = {"W": RNG.normal(size=(3, 2)), "v": RNG.normal(size=3)}
        sampler = aggregates(**inputs, seed=3)
        # Vertex 7 of the larger graph has more edges than are added up at once.
        seeds = seeds_of(case, rng) + ([7] if name == "larger" else [])
        same(sampler, graph, lists, seeds)
        contents = {name: value.tolist() for name, value in sampler.inputs.items()}
        want = reference(sampler.code, lists, seeds, seed=3, inputs=contents).extras
        made = sampler.submit(graph, np.array(seeds, np.int64), epoch=0, batch=0).result()
        for name, values in made.numpy().extra.items():
            assert values.shape[1:] == ((3,) if name in ("heard", "back") else ())
            assert bits(values.reshape(-1)) == bits(want[name])
        torch = pytest.importorskip("torch")
        assert torch.equal(
            made.torch().extra["heard"], torch.as_tensor(made.numpy().extra["heard"])
        )


def test_products_of_the_whole_graph_are_made_once() -> None:
    """A @ X and what is made of it alone stay with the graph, whatever X is afterwards."""

    @pgs.program
    def smoothed(A: Any, seeds: Any) -> Any:
        X = A.features("x")
        once, twice = A.T @ X, A @ (A.T @ X)
        C = A[:, seeds]
        at_edges = C.dot(once, twice)
        return at_edges, {"own": once[seeds], "back": twice[C.row()], "all": once}

    rows = np.random.default_rng(4).normal(size=(40, 3)).astype(np.float32)
    src, dst = np.random.default_rng(5).integers(0, 40, (2, 300))
    graph = pgs.Graph.from_coo(src, dst, num_nodes=40, node_data={"x": rows})
    sampler, plain = smoothed(seed=1), smoothed(seed=1, passes=["preprocess"])
    told = sampler.explain(graph, 4)
    assert "once a graph" in next(x for x in told.split("\n")[::-1] if "= multiply" in x)
    assert "kept with the graph" in told
    assert "kept with the graph" not in plain.explain(graph, 4)

    def content(made: Any) -> list[bytes]:
        batch = made.numpy()
        return [batch.blocks[0].edge_data["w"].tobytes()] + [
            batch.extra[name].tobytes() for name in ("own", "back", "all")
        ]

    seeds = [3, 7, 7, 9]
    want = [content(plain.sample(graph, seeds, batch=b)) for b in range(2)]
    heard = np.zeros((40, 3))
    np.add.at(heard, dst, rows[src])
    assert sampler.sample(graph, seeds).extra["all"].numpy() == pytest.approx(heard, rel=1e-5)
    assert [content(sampler.sample(graph, seeds, batch=b)) for b in range(2)] == want
    rows[:] = 0
    assert [content(sampler.sample(graph, seeds, batch=b)) for b in range(2)] == want
    assert content(plain.sample(graph, seeds, batch=0)) != want[0]


def test_products_by_hand() -> None:
    batch = by_hand(W=np.array([[2.0], [1.0]]), v=np.array([1.0, 0.5])).sample(
        star_of_two(), [0, 1]
    )
    found = {name: values.tolist() for name, values in batch.extra.items()}
    # Columns 0 and 1 hear from 1, 2 and 3, and from 2, by weights 1, 2, 3 and 4.
    assert found["heard"] == [[14.0, 140.0], [8.0, 80.0]]
    # Rows 1, 2, 3 send to those columns, whose rows of X are (0, 0) and (1, 10).
    assert found["sent"] == [[0.0, 0.0], [4.0, 40.0], [0.0, 0.0]]
    assert found["scores"] == [6.0, 12.0, 18.0]
    assert found["second"] == [0.0, 10.0, 20.0, 30.0]
    # X W is (0, 12, 24, 36): twice 4 times the product of 24 and 12.
    assert batch.blocks[0].edge_data["w"].tolist() == [0.0, 0.0, 0.0, 8 * 24 * 12]


def star_of_two() -> pgs.Graph:
    x = np.array([[v, 10 * v] for v in range(4)], "f4")
    ends = [1, 2, 3, 2], [0, 0, 0, 1]
    return pgs.Graph.from_coo(
        *ends, num_nodes=4, edge_data={"w": np.array([1.0, 2, 3, 4])}, node_data={"x": x}
    )


@pgs.program
def by_hand(A: Any, seeds: Any, *, W: Any, v: Any) -> Any:
    C, X = A[:, seeds].edata["w"], A.features("x")
    P = X[C.row()] @ W
    dots = C * (P @ (X[C.column()] @ W).T)
    extra = {"heard": C.T @ X, "sent": C @ X[C.column()], "scores": X[C.row()] @ v}
    return dots * 2, extra | {"second": X[:, 1]}


def test_products_that_do_not_fit() -> None:
    graph = star_of_two()
    for body, message in (
        (
            lambda A, S: A[:, S] @ A.features("x")[A[:, S].row()],
            "dense rows along the matrix's col",
        ),
        (lambda A, S: A[:, S].T @ A.features("x")[S], "dense rows along the matrix's rows, or of"),
        (
            lambda A, S: A[:, S] @ 3,
            "@ of int 3 and a matrix: expected a vector or dense rows along",
        ),
        (lambda A, S: A[:, S].T @ 3, "@ of int 3 and a matrix: expected a vector or dense rows"),
        (lambda A, S: A.features("x") @ A.features("x"), r"expected an input, or the rows Q\.T"),
        (lambda A, S: A.features("x").T @ A.features("x"), r"on the right, as in P @ Q\.T"),
        (lambda A, S: A.degree() * (A.features("x") @ A.features("x").T), "expected a matrix with"),
        (lambda A, S: A.features("x")[:, -1], "number -1 of dense rows: expected one from 0 on"),
        (lambda A, S: A.features("x")[3], "int 3 as an index of dense rows: expected a list of"),
        (lambda A, S: stack([A[:, S], A[:, S]]) @ [1], "a stack of 2 times a matrix: expected as"),
        (lambda A, S: stack([]) @ [1], "stack: expected matrices or vectors of a program, got "),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            pgs.program(lambda A, seeds, body=body: {"x": body(A, seeds)})().sample(graph, [0])


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
    return samplers.learned.pass_sampler(fanouts=[4], **{**inputs, **given}, seed=1)


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
        ValueError, match=r"features: expected a row for each node, got ndata\['x'\]"
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
