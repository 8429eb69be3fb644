"""Slices of matrices that were sliced, drawn or computed, and the predicate that is made of."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import pygsampler as pgs

NODES, EDGES = 40, 400


@pytest.fixture(scope="module", params=[np.int32, np.int64])
def graph(request: pytest.FixtureRequest) -> pgs.Graph:
    draw = np.random.default_rng(2)
    # Some vertices have no in-edges, and there are parallel edges.
    src, dst = draw.integers(0, NODES, EDGES), draw.integers(0, NODES - 5, EDGES)
    values = draw.random(EDGES)
    made = pgs.Graph.from_coo(src.astype(request.param), dst.astype(request.param), num_nodes=NODES)
    return made.with_data(edge_data={"w": values})


def edges(block: Any, batch: Any) -> list[tuple[int, int, int, float]]:
    """Of a block: source, destination, edge id and value of each, in its order."""
    nodes = np.asarray(batch.input_nodes)
    src, dst = (np.asarray(x) for x in block.coo())
    return list(
        zip(
            nodes[src].tolist(),
            nodes[dst].tolist(),
            np.asarray(block.edge_ids).tolist(),
            np.asarray(block.edge_data["w"]).tolist(),
            strict=True,
        )
    )


def made(function: Any, graph: pgs.Graph, seeds: Any, **given: Any) -> Any:
    return pgs.program(function)(weight="w", seed=3).sample(graph, seeds, batch=4, **given)


SEEDS = [3, 9, 3, 38, 0, 9]


def lists(batch: Any) -> dict[str, list[Any]]:
    return {name: np.asarray(x).tolist() for name, x in batch.extra.items()}


def test_columns_are_those_of_a_list(graph: pgs.Graph) -> None:
    """By first occurrence, and empty where there is no such column; else as C has them."""

    def columns(A: Any, seeds: Any) -> Any:
        C = A[:, seeds].individual_sample(5, replace=True) * 2
        others = A[:, seeds].row().concat(seeds)
        D = C[:, others]
        extra = {"columns": D.column(), "counts": D.count(axis=0), "others": others}
        return [D, C], {**extra, "sums": D.sum(axis=0), "of C": C.sum(axis=0), "C": C.column()}

    batch = made(columns, graph, SEEDS)
    found, of = edges(batch.blocks[0], batch), edges(batch.blocks[1], batch)
    assert len(of) == 5 * 3 and sorted(found) == sorted(of)
    extra = lists(batch)
    assert extra["columns"] == list(dict.fromkeys(extra["others"]))
    assert len(extra["columns"]) > len(extra["C"]) == 4
    for v, count, total in zip(extra["columns"], extra["counts"], extra["sums"], strict=True):
        mine = [e for e in of if e[1] == v]
        assert count == len(mine) and [e for e in found if e[1] == v] == mine
        assert total == (extra["of C"][extra["C"].index(v)] if mine else 0)


def test_rows_are_those_of_a_list(graph: pgs.Graph) -> None:
    def rows(A: Any, seeds: Any) -> Any:
        C = A[:, seeds].individual_sample(9, A[:, seeds])
        R = C.row()[A.random()[C.row()] < 0.5].concat(seeds)
        by_mask = C.where(C.spread(C.row().isin(R), axis=1))
        D = C[R, :]
        extra = {"R": R, "rows": D.row(), "columns": D.column()}
        return [D, by_mask, C], extra

    batch = made(rows, graph, SEEDS)
    found, masked, of = (edges(block, batch) for block in batch.blocks)
    extra = lists(batch)
    want = [e for e in of if e[0] in extra["R"]]
    assert 0 < len(want) < len(of)
    assert found == masked == want
    assert extra["rows"] == list(dict.fromkeys(e[0] for e in want))
    assert extra["columns"] == [3, 9, 38, 0]  # also those without edges


def test_a_slice_of_a_slice_is_the_graphs(graph: pgs.Graph) -> None:
    """C[R, S] of what has all edges is A[R, S]."""

    def both(A: Any, seeds: Any) -> Any:
        S, R = seeds.unique(), A[:, seeds].individual_sample(3).row()
        B = A[:, A.column()[A.number() < 30]]
        return [A[R, S], B[R, S], (A * 1)[R, S], A.edata["w"][:, S][R, :]], {"S": B[R, S].column()}

    batch = made(both, graph, [3, 9, 29, 0])
    want, *others = (edges(block, batch) for block in batch.blocks)
    assert want and all(found == want for found in others)
    assert lists(batch)["S"] == [3, 9, 29, 0]


def test_a_subgraph_of_a_matrix(graph: pgs.Graph) -> None:
    def whole(A: Any, seeds: Any) -> Any:
        V = seeds | A[:, seeds].individual_sample(4).row()
        return A.induce(V)

    def part(A: Any, seeds: Any) -> Any:
        V = seeds | A[:, seeds].individual_sample(4).row()
        W = V | A[:, V].row()
        return V, A[:, W][V, V]

    a, b = (made(function, graph, SEEDS) for function in (whole, part))
    assert np.array_equal(a.nodes, b.nodes)
    assert np.array_equal(a.edge_ids, b.edge_ids) and len(a.edge_ids)
    assert np.array_equal(a.indices, b.indices) and np.array_equal(a.indptr, b.indptr)

    def other(A: Any, seeds: Any) -> Any:
        V, W = seeds.unique(), A[:, seeds].row()
        return V, A[:, V][W, V]

    with pytest.raises(ValueError, match=r"expected the matrix A\[list, list\] of a subgraph's"):
        made(other, graph, SEEDS)


def test_members_of_lists(graph: pgs.Graph) -> None:
    def members(A: Any, seeds: Any) -> Any:
        small = A.column()[A.number() < 5]
        return {
            "seeds": seeds.isin(small),
            "few": small.isin(seeds),
            "all": A.column().isin(seeds),
            "none": seeds.isin(seeds[A.number()[seeds] < 0]),
            "picked": seeds[~seeds.isin(small)],
        }

    found = lists(made(members, graph, SEEDS))
    assert found["seeds"] == [1, 0, 1, 0, 1, 0]
    assert found["few"] == [1, 0, 0, 1, 0]
    assert found["all"] == [float(v in SEEDS) for v in range(NODES)]
    assert found["none"] == [0] * 6
    assert found["picked"] == [9, 38, 9]


def test_edges_that_are_left_out(graph: pgs.Graph) -> None:
    """They are in no slice of a matrix, as they are in none of the graph's."""

    def both(A: Any, seeds: Any) -> Any:
        R = A[:, seeds].row()
        all_rows = (A * 1)[R, :]
        columns = (A * 1)[:, A.column()[A.number() < 7]]
        return [(A * 1)[:, seeds], A[:, seeds], columns, all_rows[:, seeds]]

    batch = made(both, graph, SEEDS, exclude=np.arange(0, EDGES, 3))
    a, b, columns, all_rows = (edges(block, batch) for block in batch.blocks)
    assert a == b == all_rows and columns
    assert all(e[2] % 3 for e in a + columns)
    src, dst = graph_edges(graph)
    kept = np.isin(dst, SEEDS) & (np.arange(EDGES) % 3 > 0)
    assert sorted(e[2] for e in a) == np.flatnonzero(kept).tolist()
    assert {e[0] for e in a} == set(src[kept].tolist())


def graph_edges(graph: pgs.Graph) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    draw = np.random.default_rng(2)
    return draw.integers(0, NODES, EDGES), draw.integers(0, NODES - 5, EDGES)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (lambda A, S: A[:, S][S], r"\[.*\] of a matrix: expected C\[:, S\], C\[R, :\] or C\[R, S"),
        (lambda A, S: A[:, S][:, 3], "int 3 as the columns of a matrix: expected : or a list of"),
        (lambda A, S: A[:, S][[1, 2], :], "as the rows of a matrix: expected : or a list of nodes"),
        (lambda A, S: A[:, S][1:, S], "as the rows of a matrix: expected : or a list of nodes"),
        (lambda A, S: S.isin([1, 2]), "with a list of nodes: expected another list of nodes"),
        (lambda A, S: A[:, S].isin(S), "isin"),
    ],
)
def test_what_is_no_list_is_refused(body: Any, message: str) -> None:
    with pytest.raises((TypeError, AttributeError), match=message) as found:
        pgs.program(body)()
    assert "test_slices.py:" in str(found.value)


def test_a_whole_slice_is_the_matrix() -> None:
    def same(A: Any, S: Any) -> Any:
        return A[:, S][:, :]

    assert pgs.program(same)().code == "%0 = seeds\n%1 = slice %0\nreturn blocks %1"


def test_a_slice_that_is_written_twice_is_one(graph: pgs.Graph) -> None:
    def twice(A: Any, seeds: Any) -> Any:
        C = A[:, seeds].individual_sample(9)
        return C[seeds, seeds].mul(C[seeds, seeds]).sub(C[:, seeds][seeds, :])

    assert len(made(twice, graph, SEEDS).blocks[0].edge_ids)
    code = pgs.program(twice)(seed=1).code
    assert code.count("extract") == code.count("filter") == 1
