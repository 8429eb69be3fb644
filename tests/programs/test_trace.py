"""``pgs.program``: what a function is traced to, and what cannot be traced."""

from __future__ import annotations

import copy
import functools
import itertools
import pickle
import random
import time
from typing import Any

import numpy as np
import pytest
import torch
from program_functions import ladies

import pygsampler as pgs
from pygsampler import samplers
from pygsampler.programs import stack


def code(function: Any, **constants: Any) -> list[str]:
    return list(pgs.program(function)(seed=0, **constants).code.split("\n"))


def body(function: Any, **constants: Any) -> list[str]:
    """Without the numbers of nodes."""
    return [line.partition(" = ")[2] or line for line in code(function, **constants)]


def test_ladies_as_the_paper_writes_it() -> None:
    sampler = ladies(K=4, hops=2, weight="w", seed=3)
    lines = sampler.code.split("\n")
    assert lines[:9] == [
        "%0 = seeds",
        "%1 = slice %0",
        "%2 = const value=2",
        "%3 = pow %1, %2",
        "%4 = sum %3 axis=1",
        "%5 = collective %1, %4 k=4 replace=false site=0",
        "%6 = div %5, %4 axis=1",
        "%7 = sum %6 axis=0",
        "%8 = div %6, %7 axis=0",
    ]
    assert lines[-1] == "return blocks %18, %8"
    assert sum(" site=1" in line for line in lines) == 1
    assert repr(sampler) == "ladies(K=4, hops=2, weight='w', seed=3)"
    assert sampler.name == "ladies"


def test_maps_of_the_graphs_matrix_are_matrices_of_their_own() -> None:
    def squares(A: Any, seeds: Any) -> Any:
        return {"q": (A**2).sum(axis=1), "r": abs(A).sum(axis=0), "s": A.select(1, 2).sum(axis=0)}

    assert body(squares) == [
        "seeds",
        "whole",
        "const value=2",
        "pow %1, %2",
        "sum %3 axis=1",
        "abs %1",
        "sum %5 axis=0",
        "const value=1",
        "const value=2",
        "where %1, %7, %8",
        "sum %9 axis=0",
        'return vectors "q"=%4 "r"=%6 "s"=%10',
    ]


def everything(A: Any, seeds: Any) -> Any:
    C = A[:, seeds.unique()]
    r = A.random()
    x = A.ndata["x"]
    V = seeds.concat(seeds).unique() | C.row() | C.column()
    V = V[(x[V] >= 1) & ~(x[V] > 5) | (x[V] == 2)]
    D = A[V, seeds.unique()].edata["t"]
    D = D.where((D != 0) & (D.random() <= 0.5)).merge(D.top_k(2)).top_k(3, None)
    D = D.add(r, axis=1).sub(r, axis=1).mul(x, axis=0).div(x, axis=0).pow(2.0).minimum(1)
    D = (-D).abs().sqrt().exp().log().relu().maximum(0.5) + abs(D) ** 0.5 - 1 / D * 2
    D = D.spread(D.max(axis=0) - D.min(axis=0), axis=0).add(D.mean(axis=1), axis=1)
    D = (D < 1).select(D, 1 - D) * (2**D).count(axis=0).sum().log()
    E = D.individual_sample(3, D * D, replace=True).individual_sample(1)
    E = E.dependent_sample(E.cap(0.5).minimum(E.cap(E.count(axis=0) / 2)))
    F = E.collective_sample(2, E.count(axis=1), replace=True)
    F = F.mul(F.times(), axis=1).collective_sample(2)
    W = (A.degree() + A.number()).draw(5, replace=True).concat(A.walk(A.roots(3), 2)).unique()
    c = x[W].cap(2)
    q0 = E.labor(2).sum() + E.labor(2, abs(E)).sum()
    s = c.sum() + c.mean() + c.max() + c.min() + c.count()
    q = A.sum(axis=1) / (A**2).sum(axis=0)
    return F, {"c": c * s * q0, "W": W, 'a "name"': q[W]}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (lambda A, seeds: {"w": A.walk(A, 2)}, "walk: roots: .*: expected a list of nodes"),
        (lambda A, seeds: {"w": A.walk(seeds, -1)}, "walk: k: expected an integer >= 0, got -1"),
        (lambda A, seeds: {"w": A.roots(-1)}, "roots: k: expected an integer >= 0, got -1"),
    ],
)
def test_walks_that_are_refused(body: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        pgs.program(body)()


def test_all_operators() -> None:
    lines = code(everything)
    ops = {line.split(" ")[2] for line in lines[:-1]}
    assert ops == {
        "seeds", "column", "row", "union", "unique", "concat", "pick", "draw", "whole", "slice",
        "cross", "data", "individual", "collective", "filter", "top_k", "merge", "vertices",
        "degree", "const", "random", "neg", "abs", "sqrt", "exp", "log", "relu", "not", "add",
        "sub", "mul", "div", "pow", "min", "max", "lt", "le", "eq", "ne", "where", "spread", "sum",
        "mean", "largest", "smallest", "count", "times", "gather", "cap", "labor", "roots", "walk",
        "number", "level", "dependent",
    }  # fmt: skip
    sites = [int(line.rpartition(" site=")[2]) for line in lines if " site=" in line]
    assert sites == list(range(len(sites)))
    assert lines[-1].count("=") == 3
    assert ' "a \\"name\\""=%' in lines[-1]


def test_what_is_made_of_the_graph_is_another_matrix() -> None:
    def norms(A: Any, seeds: Any) -> Any:
        return {"q": (A * A + A.sqrt()).sum(axis=1), "d": A.count(axis=0)}

    assert body(norms) == [
        "seeds",
        "whole",
        "mul %1, %1",
        "sqrt %1",
        "add %2, %3",
        "sum %4 axis=1",
        "count %1 axis=0",
        'return vectors "q"=%5 "d"=%6',
    ]


def test_loops_and_branches_on_constants_unroll() -> None:
    def made(A: Any, seeds: Any, fanouts: list[int], twice: bool = False, name: str = "w") -> Any:
        for K in fanouts:
            B = A[:, seeds].individual_sample(K, replace=twice)
            seeds = seeds | B.row()
        return B.edata[name]

    lines = body(made, fanouts=[3, 4], twice=True)
    assert [x for x in lines if "individual" in x] == [
        "individual %1 k=3 replace=true site=0",
        "individual %5 k=4 replace=true site=1",
    ]
    assert 'data %6 name="w"' in lines
    hostile = 'a"; return 1\n%9 = seeds'
    assert body(made, fanouts=[1], name=hostile)[-2] == (
        'data %2 name="a\\"; return 1\\n%9 = seeds"'
    )


def branch(A: Any, seeds: Any) -> Any:
    if A[:, seeds].sum(axis=0) > 3:
        return A[:, seeds]
    return None


def loop(A: Any, seeds: Any) -> Any:
    return [A[:, v] for v in seeds]


def length(A: Any, seeds: Any) -> Any:
    return A[:, seeds].individual_sample(len(seeds))


def numpy_function(A: Any, seeds: Any) -> Any:
    return np.sqrt(A[:, seeds])


def torch_function(A: Any, seeds: Any) -> Any:
    return torch.sqrt(A[:, seeds])


def tensor(A: Any, seeds: Any) -> Any:
    return A[:, seeds] * torch.ones(3)


def index(A: Any, seeds: Any) -> Any:
    return A[seeds]


def other_edges(A: Any, seeds: Any) -> Any:
    C = A[:, seeds]
    return C.individual_sample(2) * C


def other_rows(A: Any, seeds: Any) -> Any:
    C = A[:, seeds]
    return C.mul(C.sum(axis=1), axis=0)


def no_axis(A: Any, seeds: Any) -> Any:
    C = A[:, seeds]
    return C * C.sum(axis=1)


def reduced(A: Any, seeds: Any) -> Any:
    return {"x": A[:, seeds].sum(axis=2)}


def wrong_axis(A: Any, seeds: Any) -> Any:
    return A[:, seeds].mul(A.degree(), axis=2)


def vectors_axis(A: Any, seeds: Any) -> Any:
    return {"x": A.degree().sum(axis=0)}


def unknown(A: Any, seeds: Any) -> Any:
    return A[:, seeds].hardmax()


def product(A: Any, seeds: Any) -> Any:
    return A[:, seeds] @ A[:, seeds]


def vector_for_edges(A: Any, seeds: Any) -> Any:
    return A[:, seeds].individual_sample(2, A.number())


def index_of_columns(A: Any, seeds: Any) -> Any:
    return A[:, seeds][:, 0]


def comparison(A: Any, seeds: Any) -> Any:
    return A[:, seeds] if seeds == seeds.unique() else None


def difference(A: Any, seeds: Any) -> Any:
    return A[:, seeds - seeds]


def assigned(A: Any, seeds: Any) -> Any:
    A[:, seeds].edata["w"] = 1


def changed(A: Any, seeds: Any) -> Any:
    A[:, seeds][0] = 1


def compared(A: Any, seeds: Any) -> Any:
    return A[:, seeds].where(A[:, seeds] > A.degree())


def too_few(A: Any, seeds: Any) -> Any:
    return A[:, seeds].individual_sample(-2)


def largest(A: Any, seeds: Any) -> Any:
    return {"x": A[:, seeds].max(axis="rows")}


def elsewhere(A: Any, seeds: Any) -> Any:
    C = A[:, seeds]
    return {"x": C.collective_sample(3).sum(axis=1)[C.row()]}


def columns(A: Any, seeds: Any) -> Any:
    return A[:, seeds].compact(axis=0)


def frozen(A: Any, seeds: Any) -> Any:
    return A[:, seeds].where(A[:, seeds] > random.random())


def numpys(A: Any, seeds: Any) -> Any:
    return A[:, seeds].individual_sample(1 + int(np.random.randint(2**30)))


def torchs(A: Any, seeds: Any) -> Any:
    return A[:, seeds] * float(torch.rand(()))


GENERATOR = np.random.default_rng(1)
ROUNDS = itertools.count()


def generators(A: Any, seeds: Any) -> Any:
    return A[:, seeds] * GENERATOR.random()


def fresh(A: Any, seeds: Any) -> Any:
    return A[:, seeds] * np.random.default_rng().random()


def lengths(A: Any, seeds: Any) -> Any:
    C = A[:, seeds]
    for _ in range(next(ROUNDS)):
        C = C * 2
    return C


def either(A: Any, seeds: Any) -> Any:
    both = A[:, seeds].individual_sample(2), A[:, seeds].individual_sample(3)
    return both[next(ROUNDS) % 2]


def clocks(A: Any, seeds: Any) -> Any:
    return A[:, seeds].individual_sample(time.perf_counter_ns() % 2**31)


def too_large(A: Any, seeds: Any) -> Any:
    return A[:, seeds] * 10**400


def surrogate(A: Any, seeds: Any) -> Any:
    return A[:, seeds].edata["\ud800"]


def symbolic(A: Any, seeds: Any) -> Any:
    return A[:, seeds].individual_sample(A.degree().sum())


def replaced(A: Any, seeds: Any) -> Any:
    return A[:, seeds].individual_sample(2, replace="no")


def replaced_rows(A: Any, seeds: Any) -> Any:
    return A[:, seeds].collective_sample(2, None, 1)


def replaced_draws(A: Any, seeds: Any) -> Any:
    return {"x": A.degree().draw(2, None)}


def shifted(A: Any, seeds: Any) -> Any:
    return A[:, seeds] << 1


def times_two(A: Any, seeds: Any) -> Any:
    return A[:, seeds * 2]


def less(A: Any, seeds: Any) -> Any:
    return A[:, seeds[seeds < 3]]


def equal_rows(A: Any, seeds: Any) -> Any:
    return A[:, seeds] if A.features("x") == 0 else None


def scaled_rows(A: Any, seeds: Any) -> Any:
    return {"x": 2 * A.features("x")}


def rounded(A: Any, seeds: Any) -> Any:
    return round(A[:, seeds])


def by_dot(A: Any, seeds: Any) -> Any:
    return A[:, seeds].edata.w


def turned(A: Any, seeds: Any) -> Any:
    return A[:, seeds].T.sum(axis=0)


def turned_rows(A: Any, seeds: Any) -> Any:
    return A.features("x").T.sum(axis=0)


def whole_array(A: Any, seeds: Any) -> Any:
    return A.edata["w"]


def whole(A: Any, seeds: Any) -> Any:
    return A[:, :]


def nothing(A: Any, seeds: Any) -> Any:
    A[:, seeds].individual_sample(2)


def no_blocks(A: Any, seeds: Any) -> Any:
    return []


def unraced(A: Any, seeds: Any) -> Any:
    return A[:, seeds].collective_sample(3, replace=True).race()


def vector(A: Any, seeds: Any) -> Any:
    return A.degree()


def sites(A: Any, seeds: Any) -> Any:
    C = A[:, seeds]
    for _ in range(257):
        C = C.individual_sample(3)
    return C


RESULTS = (vector, whole, nothing, no_blocks, either)


@pytest.mark.parametrize(
    ("function", "kind", "message"),
    [
        (branch, TypeError, r"a branch on a vector: expected a constant"),
        (loop, TypeError, r"a loop over a list of nodes"),
        (length, TypeError, r"the length of a list of nodes"),
        (numpy_function, TypeError, r"NumPy's sqrt of a matrix"),
        (torch_function, TypeError, r"torch's sqrt of a matrix"),
        (tensor, TypeError, r"expected (a number or a value|operators) of the program"),
        (index, TypeError, r"expected A\[:, S\], A\[R, :\] or A\[R, S\]"),
        (other_edges, ValueError, r"expected matrices of the same edges"),
        (other_rows, ValueError, r"expected a vector along the matrix's columns"),
        (no_axis, TypeError, r"\* of a vector and a matrix: expected C\.mul\(v, axis=0\)"),
        (reduced, TypeError, r"sum: axis=2 of a matrix: expected 0 \(columns\)"),
        (wrong_axis, TypeError, r"mul: axis=2 of a matrix: expected 0 \(columns\)"),
        (vectors_axis, TypeError, r"sum: axis=0 of a vector: expected None"),
        (unknown, AttributeError, r"hardmax of a matrix: expected one of T, abs, add"),
        (product, TypeError, r"@ of Matrix .* expected a vector or dense rows along its columns"),
        (vector_for_edges, TypeError, r"expected a matrix; C.spread\(v, axis=\) makes one"),
        (index_of_columns, TypeError, r"as the columns of a matrix: expected : or a list of nodes"),
        (comparison, TypeError, r"a comparison of a list of nodes"),
        (difference, TypeError, r"- of a list of nodes: expected V\[mask\]"),
        (assigned, TypeError, r"'w' as an array of a matrix"),
        (changed, TypeError, r"an assignment to a matrix: expected where\(mask\)"),
        (compared, TypeError, r"a comparison of a vector and a matrix: expected C\.spread"),
        (too_few, ValueError, r"individual_sample: k: expected an integer from -1"),
        (largest, TypeError, r"max: axis='rows' of a matrix: expected 0 \(columns\)"),
        (
            elsewhere,
            ValueError,
            r"v\[list\]: expected a vector of all .* v\[B\.row\(\)\] .* B\.div",
        ),
        (columns, TypeError, r"compact: axis=0 of a matrix: expected 1, since columns stay"),
        (frozen, TypeError, r"a random number that is drawn while .*: expected A\.random\(\)"),
        (numpys, TypeError, r"a random number that is drawn while .*: expected A\.random\(\)"),
        (torchs, TypeError, r"a random number that is drawn while .*: expected A\.random\(\)"),
        (generators, TypeError, r"\.py:\d+: a random number that is drawn while .*: expected A\.r"),
        (fresh, TypeError, r"a random number that is drawn while .*: expected A\.random\(\)"),
        (lengths, TypeError, r"a random number that is drawn while .*: expected A\.random\(\)"),
        (either, TypeError, r"\.py:\d+: a random number that is drawn while .*: expected A\.r"),
        (clocks, TypeError, r"a random number that is drawn while .*, or a time: expected A"),
        (too_large, TypeError, r"expected a number of double precision"),
        (surrogate, TypeError, r"expected the name of an array"),
        (symbolic, TypeError, r"K: a scalar for a matrix: expected a constant"),
        (unraced, TypeError, r"race of.*: expected what collective_sample without replace"),
        (vector, TypeError, r"expected matrices, A\.induce"),
        (replaced, TypeError, r"individual_sample: replace: str 'no': expected True or False"),
        (replaced_rows, TypeError, r"collective_sample: replace: int 1: expected True or False"),
        (replaced_draws, TypeError, r"draw: replace: NoneType None: expected True or False"),
        (shifted, TypeError, r"<< of a matrix: it is no operator of programs"),
        (times_two, TypeError, r"\* of a list of nodes: it is no operator of programs"),
        (less, TypeError, r"< of a list of nodes: it is no operator of programs"),
        (equal_rows, TypeError, r"== of dense rows: it is no operator of programs"),
        (scaled_rows, TypeError, r"\* of dense rows: it is no operator of programs"),
        (rounded, TypeError, r"round of a matrix: it is no operator of programs"),
        (by_dot, AttributeError, r"w of the graph's arrays: expected \['w'\]"),
        (turned, AttributeError, r"sum of a matrix transposed: expected C\.T @ D, or what C has"),
        (turned_rows, AttributeError, r"sum of dense rows transposed: expected P @ Q\.T"),
        (whole, TypeError, r"return: A, all edges of the graph: expected matrices, A\.induce"),
        (whole_array, ValueError, r"expected a matrix of chosen edges, got one of all edges"),
        (nothing, TypeError, r"return: NoneType None: expected matrices"),
        (no_blocks, TypeError, r"return: list \[\]: expected matrices"),
        (sites, ValueError, r"expected at most 256 sampling calls"),
    ],
)
def test_what_cannot_be_is_told_with_its_line(
    function: Any, kind: type[Exception], message: str
) -> None:
    first = function.__code__.co_firstlineno
    with pytest.raises(kind, match=message) as found:
        pgs.program(function)(seed=0)
    text = str(found.value)
    assert text.startswith(f"program {function.__name__}, test_trace.py:")
    line = int(text.partition("test_trace.py:")[2].partition(":")[0])
    # A result is refused when the function has ended: its first line is told.
    assert first < line < first + 6 or (function in RESULTS and line == first)


def test_all_edges_are_the_graphs_matrix() -> None:
    def written(A: Any, seeds: Any) -> Any:
        return {"x": A[:, :].sum(axis=1)}

    assert body(written) == body(lambda A, seeds: {"x": A.sum(axis=1)})


def test_what_inputs_have_no_operators_for() -> None:
    def by_elements(A: Any, seeds: Any, W: Any) -> Any:
        C = A[:, seeds]
        return C * sum(w for w in W)

    made = pgs.program(by_elements)(W=np.array([1.0, 2.5], np.float32), seed=0)
    graph = pgs.Graph.from_coo([0, 1], [1, 0], num_nodes=2)
    assert made.sample(graph, [0]).blocks[0].edge_data["w"].tolist() == [3.5]
    for wrong, sign in (
        (lambda A, seeds, W: A[:, seeds] * (W * 2), r"\*"),
        (lambda A, seeds, W: A[:, seeds] * (1 - W), "-"),
        (lambda A, seeds, W: A[:, seeds] if W == 1 else None, "=="),
    ):
        with pytest.raises(
            TypeError,
            match=rf"test_trace.py:\d+: {sign} of the input W of shape \(2, 2\): expected X",
        ):
            pgs.program(wrong)(W=np.ones((2, 2), np.float32))
    with pytest.raises(TypeError, match=r"test_trace.py:\d+: @ of DenseRows .*: expected an input"):
        pgs.program(lambda A, seeds, W: {"x": W @ A.features("x")})(W=np.ones((2, 2), np.float32))


def test_a_stack_of_nothing() -> None:
    with pytest.raises(TypeError, match=r"stack: expected matrices or vectors .*, got none"):
        stack([])


def test_what_others_draw_while_it_is_traced_is_no_matter() -> None:
    def made(A: Any, seeds: Any) -> Any:
        random.random()
        return A[:, seeds].individual_sample(2)

    assert body(made)[-1] == "return blocks %2"


def test_slices_that_are_written_twice_are_of_the_same_edges() -> None:
    def twice(A: Any, seeds: Any) -> Any:
        return A[:, seeds].individual_sample(2, A[:, seeds] ** 2), A[seeds, :].compact()

    def once(A: Any, seeds: Any) -> Any:
        C = A[:, seeds]
        return C.individual_sample(2, C**2), A[seeds, :]

    assert body(twice) == body(once)

    def draws(A: Any, seeds: Any) -> Any:
        return A[:, seeds].individual_sample(2), A[:, seeds].individual_sample(2)

    assert [x for x in body(draws) if "individual" in x] == [
        f"individual %1 k=2 replace=false site={site}" for site in range(2)
    ]


def test_a_vector_stands_along_columns_unless_told() -> None:
    """gSampler's Table 4: op(V, axis = 0)."""

    def made(A: Any, seeds: Any, **axis: int) -> Any:
        C = A[:, seeds]
        v = C.sum(axis=0)
        for name in ("add", "sub", "mul", "div", "pow", "minimum", "maximum"):
            C = getattr(C, name)(v, **axis)
        return C.neg(), -C

    def without(A: Any, seeds: Any) -> Any:
        return made(A, seeds)

    def along(A: Any, seeds: Any) -> Any:
        return made(A, seeds, axis=0)

    assert body(without) == body(along)
    assert sum(" axis=0" in line for line in body(along)) == 8
    assert [line[:3] for line in body(along)[-3:-1]] == ["neg", "neg"]


def test_numbers_of_numpy_are_numbers() -> None:
    def made(A: Any, seeds: Any) -> Any:
        C = A[:, seeds]
        return np.float64(2) * C - np.float32(0.5) * (np.int64(3) < C) + (C | np.bool_(True))

    def same(A: Any, seeds: Any) -> Any:
        C = A[:, seeds]
        return 2 * C - 0.5 * (C > 3) + (C | True)

    assert body(made) == body(same)
    assert body(same)[3:] == [
        "mul %2, %1", "const value=3", "lt %4, %1", "const value=0.5", "mul %6, %5", "sub %3, %7",
        "const value=0", "ne %1, %9", "const value=1", "max %10, %11", "add %8, %12",
        "return blocks %13",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["\a\x7f", "\N{ZERO WIDTH SPACE}", "\U000e0001", '\\"\n'])
def test_names_with_any_character(name: str) -> None:
    def made(A: Any, seeds: Any, name: str) -> Any:
        C = A[:, seeds].edata[name]
        return {name: C.mul(A.ndata[name], axis=1).sum(axis=0)}

    sampler = pickle.loads(pickle.dumps(pgs.program(made)(name=name)))
    assert sampler.array_names == ((name,), (name,))
    edges = {name: np.array([2.0, 3.0])}
    graph = pgs.Graph.from_coo(
        [0, 1], [1, 0], num_nodes=2, edge_data=edges, node_data={name: np.array([5.0, 7.0])}
    )
    assert sampler.sample(graph, [0, 1]).extra[name].tolist() == [21.0, 10.0]


@pgs.program
def with_fanouts(A: Any, seeds: Any, fanouts: Any, replace: bool = False) -> Any:
    """Takes its list apart."""
    blocks = []
    while fanouts:
        B = A[:, seeds].individual_sample(fanouts.pop(), replace=replace)
        blocks.insert(0, B)
        seeds = seeds | B.row()
    return blocks


def test_constants_stay_as_they_were_given() -> None:
    given = [3, 4]
    sampler = with_fanouts(fanouts=given, replace=np.True_, seed=1)
    assert given == [3, 4]
    assert repr(sampler) == "with_fanouts(fanouts=[3, 4], replace=True, seed=1)"
    assert sampler.code.count("individual") == 2


def test_functions_of_programs() -> None:
    assert pickle.loads(pickle.dumps(with_fanouts)) is with_fanouts
    assert with_fanouts.__doc__ == "Takes its list apart."
    assert repr(with_fanouts).startswith("<program with_fanouts(A")

    def one(A: Any, seeds: Any, K: int) -> Any:
        return A[:, seeds].individual_sample(K)

    class Two:
        def __call__(self, A: Any, seeds: Any) -> Any:
            return A[:, seeds].individual_sample(2)

    assert repr(pgs.program(functools.partial(one, K=2))(seed=0)) == "one(seed=0)"
    assert pgs.program(Two())().plan == pgs.program(one)(K=2).plan


def test_arguments() -> None:
    @pgs.program
    def one(A: Any, seeds: Any, K: Any, name: str = "w") -> Any:
        return A[:, seeds].individual_sample(K)

    with pytest.raises(TypeError, match="one: k: expected one of K, name, passes, seed, weight"):
        one(k=3)
    with pytest.raises(TypeError, match="one: expected K=, got none"):
        one(name="x")
    with pytest.raises(TypeError, match=r"one: expected K=, name=, .* by name, got int 3"):
        one(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"program: more: expected constants by name, got \*\*more"):
        pgs.program(lambda A, seeds, **more: A)
    with pytest.raises(TypeError, match=r"individual_sample: K: .*: expected an integer"):
        one(K=np.ones(3))
    with pytest.raises(TypeError, match=r"one: K: expected a number, a string.*belong to the"):
        one(K=b"3")
    with pytest.raises(TypeError, match=r"one: K\[1\]: expected a number"):
        one(K=[1, object()])
    with pytest.raises(TypeError, match="program: seed: expected another name"):
        pgs.program(lambda A, seeds, seed: A)
    with pytest.raises(TypeError, match=r"expected a function of the graph.*, got \(A\)"):
        pgs.program(lambda A: A)
    with pytest.raises(TypeError, match="program: expected a function whose arguments are known"):
        pgs.program(max)
    assert repr(one(K=3, passes=("cse",), seed=0)) == "one(K=3, passes=['cse'], seed=0)"
    with pytest.raises((TypeError, ValueError), match="weight"):
        one(K=3, weight=7)
    with pytest.raises(AttributeError, match=r"one: sample: expected a sampler, which one\(K=, "):
        one.sample  # noqa: B018
    assert not hasattr(one, "no_such_name")
    with pytest.raises(ValueError, match="passes"):
        one(K=3, passes=["no such pass"])
    with pytest.raises(TypeError, match="passes: expected a list of names, got str 'cse'"):
        one(K=3, passes="cse")


def test_whose_elements_results_have() -> None:
    def made(A: Any, seeds: Any) -> Any:
        C = A[:, seeds]
        V = seeds.unique()
        beside = {"V": V, "all": A.degree(), "given": A.degree()[seeds], "seeds": A.number()[V]}
        return {"w": C, "p": C * 2}, beside | {"columns": C.count(axis=0), "rows": C.sum(axis=1)}

    assert dict(pgs.program(made)(seed=0).extra_places) == {
        "V": "", "all": "all_nodes", "given": "seeds", "seeds": "unique_seeds",
        "columns": "unique_seeds", "rows": "",
    }  # fmt: skip
    assert not pgs.PGSampler([2]).extra_places and not with_fanouts(fanouts=[2]).extra_places
    assert samplers.saint_node(budget=2).extra_places == {"node_norm": "nodes"}


def test_a_sampler_is_one_like_any_other() -> None:
    sampler = pgs.program(everything)(seed=5)
    sampler.set_epoch(3)
    again = pickle.loads(pickle.dumps(sampler))
    assert (again.plan, again.seed, again.epoch) == (sampler.plan, 5, 3)
    assert hash(again.plan) == hash(sampler.plan)
    assert copy.copy(sampler).plan == sampler.plan
    assert sampler.with_seed(9).seed == 9
    assert pgs.program(everything)(seed=1).plan == sampler.plan
    assert isinstance(sampler, pgs.Sampler)
