"""The forms of a graph that walks read: rows by out-edges, type and weight, what is behind."""

from __future__ import annotations

import gc
import os
import pickle
import weakref
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from forks import in_child

import pygsampler as pgs
from pygsampler._graph import relation as relation_module

NODES, EDGES, KINDS = 60, 900, 4
RANDOM = np.random.default_rng(3)
# The last vertices have no edges, and a row has edges more than once.
SRC, DST = RANDOM.integers(0, NODES - 5, (2, EDGES))
TYPES = RANDOM.integers(0, KINDS, EDGES).astype("int16")
POSITIVE = RANDOM.exponential(size=EDGES)
ZEROS = POSITIVE * (RANDOM.random(EDGES) > 0.4)
FORMS = [
    (direction, types, second)
    for direction in ("in", "out")
    for types in (None, "t")
    for second in (False, True)
]
Edge = tuple[int, int, int]  # row, neighbour, id


def data(ids: Any = None) -> dict[str, Any]:
    """The arrays of edges by their ids, where those of the edges are given."""
    size = EDGES if ids is None else int(max(ids)) + 1
    found = {}
    for name, values in {"t": TYPES, "p": POSITIVE, "z": ZEROS}.items():
        found[name] = np.zeros(size, values.dtype)
        found[name][range(EDGES) if ids is None else ids] = values
    return found


def in_memory(bits: int = 64, given: bool = False) -> pgs.Graph:
    graph = pgs.Graph.from_coo(SRC.astype(f"int{bits}"), DST.astype(f"int{bits}"), num_nodes=NODES)
    ids = np.random.default_rng(5).permutation(3 * EDGES)[:EDGES] if given else None
    rows = np.asarray(graph.indptr)[: NODES - 4]
    return pgs.Graph.from_csc(
        rows, graph.indices, edge_ids=ids, num_nodes=NODES, edge_data=data(ids)
    )


def symmetric() -> pgs.Graph:
    src, dst = np.concatenate([SRC, DST]), np.concatenate([DST, SRC])
    order = RANDOM.permutation(2 * EDGES)
    return pgs.Graph.from_coo(src[order], dst[order], num_nodes=NODES)


def edges_of(graph: pgs.Graph) -> list[Edge]:
    """All edges by row, in order."""
    indptr, indices = np.asarray(graph.indptr), graph.indices.tolist()
    ids = range(len(indices)) if graph.edge_ids is None else graph.edge_ids.tolist()
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr)).tolist()
    return list(zip(rows, indices, ids, strict=True))


def wanted(graph: pgs.Graph, direction: str, types: Any, prob: Any, second: bool) -> list[Edge]:
    """The form by its definition."""
    edges = edges_of(graph)
    if prob:
        edges = [edge for edge in edges if np.asarray(graph.edata[prob])[edge[2]]]
    if direction == "out":
        edges = [(u, v, i) for v, u, i in edges]
    if types:
        kind = np.asarray(graph.edata[types])
        edges = [(v * KINDS + int(kind[i]), u, i) for v, u, i in edges]
    sorted_rows = second or types or direction == "out"
    return sorted(edges, key=lambda edge: edge[: 2 if sorted_rows else 1])


@pytest.mark.parametrize("prob", [None, "p", "z"])
@pytest.mark.parametrize(("direction", "types", "second"), FORMS)
def test_rows(direction: Any, types: Any, second: bool, prob: Any) -> None:
    for bits in (32, 64):
        for given in (False, True):
            graph = in_memory(bits, given)
            form = graph._source._walked(direction, prob, types, second=second)
            assert edges_of(form) == wanted(graph, direction, types, prob, second)
            assert (form.num_nodes, form.dtype) == (NODES, f"int{bits}")
            assert form._kinds == (KINDS if types else 0)
            if types or direction == "out":
                assert len(form.indptr) == NODES * (KINDS if types else 1) + 1
            assert form._handle() == form._handle() > 0
            if prob:
                check_tables(form, np.asarray(graph.edata[prob]))
            else:
                assert form._source._open().alias is None
            if not second:
                assert form._back is None
                continue
            # Every x with an edge x -> t, by t, each as often as there are such edges.
            back = form._back
            walked = wanted(graph, direction, None, prob, True)
            assert isinstance(back, relation_module.Relation)
            found = [edge[:2] for edge in edges_of(back)]
            assert found == sorted((t, x) for x, t, _ in walked)
            assert back._kinds == 0


def check_tables(form: pgs.Graph, weights: Any) -> None:
    """The sums of each row ascend as its weights do."""
    indptr, ids = np.asarray(form.indptr), np.array([edge[2] for edge in edges_of(form)])
    sums = np.asarray(form._source._open().sums).astype(float)
    for lo, hi in pairwise(indptr):
        if hi > lo:
            want = np.cumsum(weights[ids[lo:hi]])
            np.testing.assert_allclose(sums[lo:hi] / sums[hi - 1], want / want[-1], rtol=1e-6)


def test_each_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    make = relation_module.transpose

    def spy(*about: Any, **more: Any) -> Any:
        made.append(about[1])
        return make(*about, **more)

    monkeypatch.setattr(relation_module, "transpose", spy)
    graph = in_memory()
    for _ in range(2):
        for prob in (None, "p"):
            for direction, types, second in FORMS:
                graph._source._walked(direction, prob, types, second=second)
    # Both directions, each with and without types; what is behind out-edges is the sorted in-edges.
    assert sorted(made) == ["", "", "edata['t']", "edata['t']"]
    # Weights that leave nothing out share all but the tables.
    plain, drawn = graph._source._walked("out")._open(), graph._source._walked("out", "p")._open()
    assert all(a is b for a, b in zip(plain[:3], drawn[:3], strict=True))
    assert graph._source._walked("in") is graph._relation
    assert graph._source._walked("in", "p") is graph._source._sampled_edges("prob", "p")


def test_what_is_behind_is_shared() -> None:
    graph = symmetric()
    form = graph._source._walked("out", second=True)
    back, out = form._back, graph._source._walked("out")
    assert back is not None and back._source._open() == out._source._open() == form._source._open()
    # In a graph whose rows ascend, its own.
    ascending = pgs.Graph.from_csc(out.indptr, out.indices)
    back = ascending._source._walked("out", second=True)._back
    assert back is not None and back._source._open() == ascending._source._open()
    assert ascending._source._walked("in", second=True)._open() == ascending._source._open()
    # One that is not symmetric has another graph there, without ids of edges.
    back = in_memory()._source._walked("out", second=True)._back
    assert back is not None and back.edge_ids is None


def test_more_types_than_there_are() -> None:
    graph = in_memory()
    form = graph._source._walked("out", types="t", kinds=KINDS + 3)
    assert len(form.indptr) == NODES * (KINDS + 3) + 1
    assert form._kinds == KINDS + 3
    assert form is not graph._source._walked("out", types="t")
    assert form is graph._source._walked("out", types="t", kinds=KINDS + 3)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint16", "uint64"])
def test_types_of_any_integers(dtype: str) -> None:
    graph = in_memory().with_data({"t": TYPES.astype(dtype)})
    assert edges_of(graph._source._walked("out", types="t")) == wanted(
        graph, "out", "t", None, False
    )


def with_type(place: int, value: int) -> Any:
    types = TYPES.astype("int64")
    types[place] = value
    return types


@pytest.mark.parametrize(
    ("values", "kinds", "error", "text"),
    [
        (TYPES.astype(float), 0, TypeError, r"edata\['t'\]: expected integers, got float64"),
        (with_type(7, -1), 0, ValueError, r"\['t'\]\[7\]: expected a type in \[0, 32768\), got -1"),
        (with_type(8, 1 << 15), 0, ValueError, r"edata\['t'\]\[8\]: expected .*, got 32768"),
        (np.full(EDGES, 2**64 - 1, "uint64"), 0, ValueError, r"\[0\]: .*, got 9223372036854775807"),
        (TYPES, 2, ValueError, r"\]: expected a type in \[0, 2\), got [23]"),
        (TYPES, (1 << 15) + 1, ValueError, "kinds: expected 0 to 32768, got 32769"),
        (np.zeros((EDGES, 2), int), 0, ValueError, "^edge_types: expected a value for each edge"),
    ],
)
def test_types_that_are_none(values: Any, kinds: int, error: type[Exception], text: str) -> None:
    graph = in_memory().with_data({"t": values})
    for direction in ("in", "out"):
        with pytest.raises(error, match=text):
            graph._source._walked(direction, types="t", kinds=kinds)  # type: ignore[arg-type]


def test_names_that_are_none() -> None:
    with pytest.raises(
        ValueError, match=r"^edge_types: expected the name of an edge array .*got 'x'"
    ):
        in_memory()._source._walked("out", types="x")
    with pytest.raises(ValueError, match=r"prob: expected the name of an edge array .*got 'x'"):
        in_memory()._source._walked("out", "x")


def test_closing_the_graph_closes_its_forms() -> None:
    graph = in_memory()
    forms = [
        graph._source._walked(direction, prob, types, second=second)
        for direction, types, second in FORMS
        for prob in (None, "z")
    ]
    handles = [form._handle() for form in forms]
    assert all(handles)
    graph.close()
    for form in forms:
        with pytest.raises(pgs.errors.ClosedError, match="graph: expected an open graph"):
            form._handle()
        assert form._back is None
    with pytest.raises(pgs.errors.ClosedError):
        graph._source._walked("out")


def test_their_memory_goes_with_the_graph() -> None:
    gc.collect()
    before = pgs.engine.memory_stats()["live_bytes"]
    gc.disable()
    try:
        for make in (in_memory, symmetric):
            graph = make()
            for direction, types, second in FORMS if make is in_memory else FORMS[:1]:
                graph._source._walked(direction, None, types, second=second)._handle()  # type: ignore[arg-type]
            graph._source._walked("out", second=True)._handle()
            out = graph._source._walked("out")
            ascending = pgs.Graph.from_csc(out.indptr, out.indices)
            ascending._source._walked("out", second=True)._handle()
            alive = weakref.ref(graph), weakref.ref(ascending)
            del graph, ascending, out
            assert [known() for known in alive] == [None, None]
    finally:
        gc.enable()
    assert pgs.engine.memory_stats()["live_bytes"] == before


def test_forms_are_not_pickled() -> None:
    graph = in_memory()
    for form in (graph._source._walked("out"), graph._source._walked("in", types="t", second=True)):
        with pytest.raises(TypeError, match="expected the original graph to pickle"):
            pickle.dumps(form)
    again = pickle.loads(pickle.dumps(graph))
    assert edges_of(again._source._walked("out")) == edges_of(graph._source._walked("out"))


def test_in_forked_children() -> None:
    graph = in_memory()
    forms = [graph._source._walked(d, "z", types, second=second) for d, types, second in FORMS]  # type: ignore[arg-type]
    before = [(edges_of(form), form._handle()) for form in forms]

    def child() -> Any:
        assert all(form._handle() > 0 for form in forms)
        # Made there for the first time, of a form that the parent has.
        new = graph._source._walked("out", "p", "t", second=True)
        return [edges_of(form) for form in forms], edges_of(new), os.getpid()

    kept, new, process = in_child(child)
    assert process != os.getpid()
    assert kept == [edges for edges, _ in before]
    assert new == wanted(graph, "out", "t", "p", True)
    assert [form._handle() for form in forms] == [handle for _, handle in before]


def test_where_torch_has_moved_the_arrays() -> None:
    torch = pytest.importorskip("torch")
    out = in_memory()._source._walked("out")
    indptr, indices = (torch.from_numpy(np.array(a)) for a in (out.indptr, out.indices))
    graph = pgs.Graph.from_csc(indptr, indices)
    form = graph._source._walked("out", second=True)
    before = form._handle()
    indices.share_memory_()
    assert form._handle() != before
    back = form._back
    assert back is not None and back.indices._address == indices.data_ptr()
    assert form._handle() == form._handle()
