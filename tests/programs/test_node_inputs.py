"""Tensors of a program with a value or a row for each node, beside NumPy's dense arithmetic."""

from __future__ import annotations

import pickle
import re
from typing import Any

import numpy as np
import pytest
from partners import partner

import pygsampler as pgs
from pygsampler.programs import stack
from tests.support.assertions import assert_equal, content

NODES, EDGES, WIDTH = 30, 170, 3
RNG = np.random.default_rng(21)
ENDS = RNG.integers(0, NODES, (2, EDGES))
WEIGHTS = RNG.uniform(0.5, 1.5, EDGES).astype(np.float32)
X = RNG.normal(size=(NODES, WIDTH)).astype(np.float32)
V = RNG.uniform(0.5, 2, NODES).astype(np.float32)
D = RNG.normal(size=(NODES, NODES)).astype(np.float32)
W = RNG.normal(size=(WIDTH, 2)).astype(np.float32)
# Repeated, and in no order.
SEEDS = np.array([7, 2, 7, 19, 2, 11])
COLUMNS = [7, 2, 19, 11]
IDS = RNG.permutation(EDGES) + 5


def graph(shuffled: bool = False) -> pgs.Graph:
    """A graph whose edges have their order as ids, or ids with gaps in another order."""
    if not shuffled:
        return pgs.Graph.from_coo(*ENDS, num_nodes=NODES, edge_data={"w": WEIGHTS})
    order = np.argsort(ENDS[1], kind="stable")
    indptr = np.searchsorted(ENDS[1][order], np.arange(NODES + 1))
    by_id = np.zeros(EDGES + 5, np.float32)
    by_id[IDS] = WEIGHTS
    return pgs.Graph.from_csc(
        indptr, ENDS[0][order], edge_ids=IDS[order], num_nodes=NODES, edge_data={"w": by_id}
    )


def sampled(body: Any, seeds: Any = SEEDS, of: pgs.Graph | None = None, **tensors: Any) -> Any:
    """Returns the batch of a program whose arguments are the tensors."""
    names = ", ".join(tensors)
    scope: dict[str, Any] = {"body": body}
    exec(f"def made(A, seeds, *, {names}): return body(A, seeds, {names})", scope)
    made = pgs.program(scope["made"])(**tensors, weight="w", seed=3)
    batch = made.sample(graph() if of is None else of, seeds, epoch=0, batch=0)
    return batch.numpy()


def values(batch: Any, ids: Any = None) -> dict[int, float]:
    """Returns the values of a block's edges by the edges' places in ENDS."""
    (block,) = batch.blocks
    found = (
        block.edge_ids
        if ids is None
        else [int(np.flatnonzero(ids == e)[0]) for e in block.edge_ids]
    )
    return dict(zip(map(int, found), block.edge_data["w"].tolist(), strict=True))


IN = [e for e in range(EDGES) if ENDS[1][e] in COLUMNS]
SRC, DST = ENDS


def check(batch: Any, of: Any, ids: Any = None) -> None:
    found = values(batch, ids)
    assert sorted(found) == IN
    for e, value in found.items():
        assert value == pytest.approx(of(e), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(
    ("name", "of"),
    [
        ("add", lambda w, v: w + v),
        ("sub", lambda w, v: w - v),
        ("mul", lambda w, v: w * v),
        ("div", lambda w, v: w / v),
        ("pow", lambda w, v: w**v),
        ("minimum", min),
        ("maximum", max),
    ],
)
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_a_vector_of_all_nodes_is_an_operand(name: str, of: Any, axis: int | None) -> None:
    how = {} if axis is None else {"axis": axis}
    batch = sampled(lambda A, S, V: getattr(A[:, S], name)(V, **how), V=V)
    ends = SRC if axis == 1 else DST
    check(batch, lambda e: of(float(WEIGHTS[e]), float(V[ends[e]])))


def test_a_dense_matrix_of_all_nodes_is_an_operand() -> None:
    operators = [
        (lambda C, D: C * D, lambda w, d: w * d),
        (lambda C, D: C + D, lambda w, d: w + d),
        (lambda C, D: D - C, lambda w, d: d - w),
        (lambda C, D: C / D, lambda w, d: w / d),
        (lambda C, D: C > D, lambda w, d: float(w > d)),
    ]
    for own, ids in ((graph(), None), (graph(shuffled=True), IDS)):
        for written, of in operators:
            batch = sampled(lambda A, S, D, f=written: f(A[:, S], D), of=own, D=D)
            check(batch, lambda e, of=of: of(float(WEIGHTS[e]), float(D[SRC[e], DST[e]])), ids)


def test_products_with_a_tensor_are_those_of_dense_matrices() -> None:
    dense = np.zeros((NODES, NODES))
    np.add.at(dense, (SRC, DST), WEIGHTS.astype(float))
    extra = sampled(
        lambda A, S, X, V: {
            "rows": A[:, S].row(),
            "sent": A[:, S] @ X,
            "heard": A[:, S].T @ X,
            "sums": A[:, S] @ V,
            "left": V @ A[:, S],
            "whole": A @ X,
        },
        X=X,
        V=V,
    ).extra
    part = dense[:, COLUMNS]
    rows = extra["rows"]
    wanted = {
        "sent": (part @ X[COLUMNS])[rows],
        "heard": part.T @ X,
        "sums": (part @ V[COLUMNS])[rows],
        "left": V @ part,
        "whole": dense @ X,
    }
    for name, of in wanted.items():
        assert extra[name] == pytest.approx(of, rel=1e-5, abs=1e-5), name


def test_rows_and_values_of_repeated_seeds() -> None:
    extra = sampled(
        lambda A, S, X, V, W: {
            "x": X[S],
            "v": V[S],
            "h": X[S] @ W,
            "second": X[:, 1][S],
            "log": V.log()[S] + 1 - V[S],
        },
        X=X,
        V=V,
        W=W,
    ).extra
    assert (extra["x"] == X[SEEDS]).all() and (extra["v"] == V[SEEDS]).all()
    assert (extra["second"] == X[SEEDS, 1]).all()
    assert extra["h"] == pytest.approx(X[SEEDS] @ W, rel=1e-5)
    assert extra["log"] == pytest.approx(np.log(V[SEEDS]) + 1 - V[SEEDS], rel=1e-5)


def test_values_along_repeated_seeds_go_with_the_columns() -> None:
    w, v, x = (array.astype(float) for array in (WEIGHTS, V, X))
    for body, wanted in (
        (lambda A, S, X, V, W: A[:, S].sub(V[S]), lambda e: w[e] - v[DST[e]]),
        (
            lambda A, S, X, V, W: A[:, S].mul((V[S] * 2).exp()),
            lambda e: w[e] * np.exp(2 * v[DST[e]]),
        ),
        (lambda A, S, X, V, W: A[:, S].spread(V[S], axis=0), lambda e: v[DST[e]]),
        (lambda A, S, X, V, W: A[:, S].dot(X, X[S]), lambda e: x[SRC[e]] @ x[DST[e]]),
        (
            lambda A, S, X, V, W: (A[:, S] * 2) * ((X @ W) @ (X[S] @ W).T),
            lambda e: 2 * w[e] * ((x[SRC[e]] @ W) @ (x[DST[e]] @ W)),
        ),
        (lambda A, S, X, V, W: V[S].mul(A[:, S], axis=0), lambda e: w[e] * v[DST[e]]),
    ):
        check(sampled(body, X=X, V=V, W=W), wanted)
    # Another list's values stay what they are: an error.
    with pytest.raises(ValueError, match="expected a vector along the matrix's columns"):
        sampled(lambda A, S, V: A[:, S].sub(V[S.concat(S)]), V=V)


def test_reductions_without_an_axis_are_of_all_edges() -> None:
    for body, of in (
        (lambda C: C.sum(), np.sum),
        (lambda C: C.mean(), np.mean),
        (lambda C: C.max(), np.max),
        (lambda C: C.min(), np.min),
        (lambda C: C.count(), len),
    ):
        for sign in (1, -1):
            batch = sampled(
                lambda A, S, V, f=body, s=sign: {
                    "x": V * 0 + f(A[:, S] * s),
                    "all": V * 0 + f(A * s),
                },
                V=V,
            )
            # Node 11 or another may have no edges: such columns have no part in it.
            for name, edges in (("x", IN), ("all", list(range(EDGES)))):
                want = float(of(sign * WEIGHTS[edges].astype(float)))
                assert batch.extra[name] == pytest.approx(np.full(NODES, want), rel=1e-6)
        none = pgs.Graph.from_coo([0], [1], num_nodes=NODES, edge_data={"w": np.ones(1, "f4")})
        empty = sampled(lambda A, S, V, f=body: {"x": V * 0 + f(A[:, S])}, [5, 6], none, V=V)
        assert (empty.extra["x"] == 0).all()


def test_an_update_counts_from_the_next_batch_on() -> None:
    own = graph()

    @pgs.program
    def scaled(A: Any, seeds: Any, *, V: Any, a: Any) -> Any:
        return A[:, seeds].mul(V) * a[0]

    sampler = scaled(V=V, a=np.array([2.0]), weight="w", seed=1)
    other = sampler.with_seed(1)
    pending = sampler.submit(own, SEEDS, epoch=0, batch=0)
    assert set(sampler.inputs) == {"V", "a"} and (sampler.inputs["V"] == V).all()
    assert sampler.update(V=V + 1) == 1
    check(pending.result().numpy(), lambda e: 2 * WEIGHTS[e] * V[DST[e]])
    check(sampler.sample(own, SEEDS).numpy(), lambda e: 2 * WEIGHTS[e] * (V[DST[e]] + 1))
    check(other.sample(own, SEEDS).numpy(), lambda e: 2 * WEIGHTS[e] * V[DST[e]])
    sampler.update(a=np.array([3.0]), V=V + 2)
    again = pickle.loads(pickle.dumps(sampler))
    for each in (sampler, again, *sampler.sample_many(own, [SEEDS])):
        batch = each if isinstance(each, pgs.MiniBatch) else each.sample(own, SEEDS)
        check(batch.numpy(), lambda e: 3 * WEIGHTS[e] * (V[DST[e]] + 2))
    assert again.version == sampler.version == 2
    # What the caller's array holds later is no matter.
    mine = V.copy()
    copied = scaled(V=mine, a=np.array([1.0]), weight="w", seed=1)
    mine[:] = 0
    check(copied.sample(own, SEEDS).numpy(), lambda e: WEIGHTS[e] * V[DST[e]])


def test_what_is_made_of_an_input_alone_follows_its_updates() -> None:
    own = graph()

    @pgs.program
    def smoothed(A: Any, seeds: Any, *, X: Any) -> Any:
        return {"all": A.T @ X}

    sampler, dense = smoothed(X=X, seed=1), np.zeros((NODES, NODES))
    np.add.at(dense, (SRC, DST), 1)
    for scale in (1, 2, 5):
        sampler.update(X=X * scale)
        found = sampler.sample(own, SEEDS).extra["all"].numpy()
        assert found == pytest.approx(dense.T @ (X * scale), rel=1e-5, abs=1e-5)


def test_the_graph_keeps_arrays_of_its_own() -> None:
    own = graph().with_data(node_data={"V": np.zeros(NODES, np.float32), "x": X})

    @pgs.program
    def both(A: Any, seeds: Any, *, V: Any) -> Any:
        return {"mine": V[seeds], "theirs": A.ndata["V"][seeds], "x": A.features("x")[seeds]}

    sampler = both(V=V, seed=1)
    assert sampler.array_names == ((), ("V", "x"))
    extra = sampler.sample(own, SEEDS).extra
    assert (extra["mine"].numpy() == V[SEEDS]).all() and not extra["theirs"].numpy().any()
    assert set(own.ndata) == {"V", "x"}


def test_shapes_that_do_not_fit_are_told() -> None:
    for body, tensors, message in (
        (
            lambda A, S, V: A[:, S].add(V),
            {"V": V[:-1]},
            r"made: V: expected shape (30,) for a graph of 30 nodes, got (29,)",
        ),
        (
            lambda A, S, X: {"x": X[S]},
            {"X": X[1:]},
            r"made: X: expected shape (30, 3) for a graph of 30 nodes, got (29, 3)",
        ),
        (
            lambda A, S, D: A[:, S] * D,
            {"D": D[1:, 1:]},
            r"made: D: expected shape (30, 30) for a graph of 30 nodes, got (29, 29)",
        ),
        (
            lambda A, S, X: A[:, S] * X,
            {"X": X},
            "the input X of shape (30, 3) with a matrix: expected a tensor of shape (num_nodes, ",
        ),
        (
            lambda A, S, V: A[:, S] * V,
            {"V": V},
            "* of a vector and a matrix: expected C.mul(v, axis=0)",
        ),
        (lambda A, S, X: A.degree() * X, {"X": X}, "the input X of shape (30, 3) with a vector"),
        (
            lambda A, S, V: {"x": V.T},
            {"V": V},
            "T of the input V of shape (30,): expected one of 2 dimensions",
        ),
        (
            lambda A, S, X: {"x": X @ X},
            {"X": X},
            "@: expected rows of 30 numbers for 'X' of shape (30, 3), got 3",
        ),
    ):
        with pytest.raises((TypeError, ValueError), match=re.escape(message)):
            sampled(body, **tensors)


def test_a_tensor_of_all_types_is_in_the_order_of_the_concatenated_graph() -> None:
    writes, cites = ("a", "writes", "p"), ("p", "cites", "p")
    edges = {writes: ([0, 1, 2, 2], [0, 0, 1, 3]), cites: ([0, 1, 3], [3, 3, 1])}
    own = pgs.Graph.from_coo(edges, num_nodes={"p": 4, "a": 3})

    @pgs.program
    def scaled(A: Any, seeds: Any, *, V: Any) -> Any:
        B = A[writes][:, seeds].mul(V).mul(V, axis=1)
        return [B, A[cites][:, seeds].mul(V)]

    V = np.arange(1.0, 8)
    sampler = scaled(V=V, seed=1)
    batch = sampler.sample(own, {"p": [3, 0, 3]}).numpy()
    # The first relation's sources come first: a, then p.
    of = {"a": V[:3], "p": V[3:]}
    found = 0
    for blocks, kind in zip(batch.blocks, (writes, cites), strict=True):
        block, (src, dst) = blocks[kind], edges[kind]
        for e, value in zip(block.edge_ids, block.edge_data["w"], strict=True):
            left = of["a"][src[e]] if kind == writes else 1
            assert value == left * of["p"][dst[e]]
            found += 1
    assert found == 5
    with pytest.raises(ValueError, match=r"scaled: V: expected shape \(7,\) for a graph of 7"):
        scaled(V=np.ones(4), seed=1).sample(own, {"p": [3]})


def test_chances_of_all_nodes_by_their_exponentials() -> None:
    def body(A: Any, S: Any, V: Any) -> Any:
        e = (V - V.max()).exp()
        return {"p": e / e.sum()}

    found = sampled(body, V=V).extra["p"]
    assert found == pytest.approx(np.exp(V) / np.exp(V.astype(float)).sum(), rel=1e-5)


def test_a_service_is_not_asked_for_what_it_does_not_have() -> None:
    partner("pyarrow")
    from pygsampler.flight.registry import plan_entry

    @pgs.program
    def scaled(A: Any, seeds: Any, *, V: Any) -> Any:
        return A[:, seeds].mul(V)

    with pytest.raises(ValueError, match="got one with a row for each node in V; put them on"):
        plan_entry(scaled(V=V, seed=1))


@pgs.program
def of_many_tensors(A: Any, seeds: Any, *, X: Any, V: Any, D: Any, W: Any, a: Any) -> Any:
    C = A[:, seeds]
    score = stack([C * ((X @ W) @ (X[seeds] @ W).T), C.add(V, axis=1), C * D]) @ a.softmax()
    chance = (score - C.max() + C.sum() / C.count()).exp().minimum(5)
    B = C.individual_sample(3, chance)
    extra = {"h": A.T @ X, "v": V[seeds], "x": X[seeds], "m": V * 0 + C.mean() + C.min()}
    return B.mul(V[seeds]), extra


@pytest.mark.backends("emulator", "cuda")
def test_tensors_on_a_device_make_the_bytes_of_the_cpu(backend: str) -> None:
    """Whatever room a launch of ``sample_many`` has."""
    tensors = {"X": X, "V": V, "D": D, "W": W, "a": np.ones(3)}
    sampler = of_many_tensors(**tensors, weight="w", seed=2)
    graphs = graph(), graph().to("cuda")

    def compare(batch: int) -> None:
        want, found = (sampler.sample(g, SEEDS, epoch=0, batch=batch) for g in graphs)
        assert_equal(found, want)

    compare(0)
    compare(1)
    sampler.update(V=V * 2, D=-D)
    compare(2)
    many = [SEEDS, SEEDS[:2], SEEDS]
    wanted = [content(batch) for batch in sampler.sample_many(graphs[0], many, epoch=0, batch=0)]
    for memory in (None, 1, 10**9):
        found = sampler.sample_many(graphs[1], many, epoch=0, batch=0, memory=memory)
        assert [content(batch) for batch in found] == wanted
