"""Ids of nodes as people have them: names, hashes, columns of pandas and Arrow."""

from __future__ import annotations

import datetime
import pickle
import uuid
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from partners import partner

import pygsampler as pgs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SRC, DST = ["bob", "eve", "bob", "ö"], ["eve", "alice", "alice", "bob"]
NAMES = ["alice", "bob", "eve", "ö"]
HASHES = [10**12 + 7, 3, 10**12 + 7, -5]


def named() -> pgs.Graph:
    return pgs.Graph.from_coo(SRC, DST, renumber=True, edge_data={"w": [1.0, 2, 3, 4]})


def by_name(graph: pgs.Graph) -> list[tuple[str, str, int]]:
    """(source, destination, edge id) of all edges, by name."""
    names: Any = graph.node_names
    indptr, ids = graph.indptr.tolist(), graph.edge_ids.tolist()
    return sorted(
        (names[u], names[v], ids[at])
        for v in range(graph.num_nodes)
        for at, u in enumerate(graph.indices.tolist())
        if indptr[v] <= at < indptr[v + 1]
    )


def columns() -> dict[str, Callable[[list[str]], Any]]:
    """Ways to have a column of names."""
    pd, pa = partner("pandas"), partner("pyarrow")
    index = range(5, 9)
    return {
        "list": list,
        "tuple": tuple,
        "numpy": np.array,
        "objects": lambda names: np.array(names, object),
        "series": lambda names: pd.Series(names, index=index),
        "series of objects": lambda names: pd.Series(names, index=index, dtype=object),
        "string": lambda names: pd.Series(names, index=index, dtype="string"),
        "category": lambda names: pd.Series(names, index=index, dtype="category"),
        "index": pd.Index,
        "arrow": pa.array,
        "large": lambda names: pa.array(names, pa.large_string()),
        "view": lambda names: pa.array(names, pa.string_view()),
        "chunked": lambda names: pa.chunked_array([names[:1], names[1:]]),
        "dictionary": lambda names: pa.array(names).dictionary_encode(),
        "dictionaries": lambda names: pa.chunked_array(
            [pa.array(names[:2]).dictionary_encode(), pa.array(names[2:]).dictionary_encode()]
        ),
    }


@pytest.mark.parametrize(
    "kind",
    [
        *("list", "tuple", "numpy", "objects", "series", "series of objects", "string"),
        *("category", "index", "arrow", "large", "view", "chunked", "dictionary", "dictionaries"),
    ],
)
def test_a_column_of_names_of_any_library_is_numbered(kind: str) -> None:
    column = columns()[kind]
    graph = pgs.Graph.from_coo(column(SRC), column(DST), renumber=True)
    assert graph.node_names == NAMES
    assert by_name(graph) == sorted(zip(SRC, DST, range(4), strict=True))
    assert graph.index_of(column(["ö", "alice", "ö", "bob"])).tolist() == [3, 0, 3, 1]
    with pytest.raises(TypeError, match=r"src: expected ids, .*, got names; renumber=True numbers"):
        pgs.Graph.from_coo(column(SRC), column(DST))
    if kind == "tuple":
        return
    with pytest.raises(TypeError, match=r"graph.index_of\(names\) gives the ids of nodes by name"):
        pgs.PGSampler([2]).sample(graph, column(SRC))


def test_uuids_and_dates_are_names_by_their_text() -> None:
    day, person = datetime.date(2024, 3, 1), uuid.UUID(int=7)
    graph = pgs.Graph.from_coo([person, day], np.array([day, person], object), renumber=True)
    assert graph.node_names == [str(person), "2024-03-01"]
    assert graph.index_of([day, person]).tolist() == [1, 0]
    assert (graph.index_of(day), graph.index_of(person)) == (1, 0)
    with pytest.raises(ValueError, match=r"src\[0\]: expected a name, got a missing value"):
        pgs.Graph.from_coo([None, person], [day, day], renumber=True)


def test_names_survive_files_pickles_and_new_arrays(tmp_path: Path) -> None:
    graph = named()
    graph.save(tmp_path / "graph.pgs")
    opened = pgs.Graph.open(tmp_path / "graph.pgs", verify=True)
    for each in (
        *(graph, opened, graph.with_data({"v": [1, 2, 3, 4]}), opened.with_data({"v": [1] * 4})),
        *(pickle.loads(pickle.dumps(one)) for one in (graph, opened)),
    ):
        assert each.node_names == NAMES
        assert each.node_ids is None
        assert by_name(each) == by_name(graph)
        assert each.index_of(["eve", "bob"]).tolist() == [2, 1]
        assert each.edata["w"].tolist() == [1, 2, 3, 4]


def test_names_are_read_by_id() -> None:
    graph = named()
    names: Any = graph.node_names
    assert (len(names), names[1], names[-1], names[np.int64(3)]) == (4, "bob", "ö", "ö")
    assert names[1:3] == ["bob", "eve"]
    assert names[::2] == ["alice", "eve"]
    assert names[5:] == []
    assert list(names) == names.tolist() == NAMES
    assert "eve" in names
    assert names != NAMES[:3]
    assert repr(names) == "NodeNames(['alice', 'bob', 'eve', ...], length=4)"
    block = pgs.PGSampler([-1]).sample(graph, graph.index_of(["alice"])).blocks[0]
    assert names[block.src_nodes] == ["alice", "eve", "bob"]
    for bad in (4, -5):
        with pytest.raises(IndexError, match=f"node_names: expected an id below 4, got {bad}"):
            names[bad]
    with pytest.raises(IndexError, match=r"node_names\[1\]: expected an id in \[0, 4\), got 9"):
        names[[0, 9]]
    assert named().node_names == names
    empty = pgs.Graph.from_coo([], [], renumber=True)
    assert (empty.num_nodes, empty.node_ids.tolist()) == (0, [])


def test_hashes_are_numbered_and_found() -> None:
    graph = pgs.Graph.from_coo(HASHES, HASHES[::-1], renumber=True)
    assert graph.node_ids.tolist() == [-5, 3, 10**12 + 7]
    assert graph.node_names is None
    assert graph.indices.tolist() == [2, 2, 1, 0]
    assert graph.index_of([3, 10**12 + 7, 3]).tolist() == [1, 2, 1]
    assert graph.index_of(np.array([-5])).tolist() == [0]
    assert (graph.index_of(3), graph.index_of(np.int64(-5))) == (1, 0)
    assert graph.index_of([]).tolist() == []
    with pytest.raises(KeyError, match=r"expected nodes of the graph, got 4, 9 \(2 of 3 are unkn"):
        graph.index_of([4, 3, 9])
    with pytest.raises(TypeError, match=r"labels\[0\]: expected an integer, got str 'a'"):
        graph.index_of(["a"])


def test_ids_that_number_no_nodes_name_the_way() -> None:
    way = r"src\[1\]: expected ids that number the nodes from 0, got {} .*; renumber=True numbers"
    with pytest.raises(MemoryError, match=way.format(10**12)):
        pgs.Graph.from_coo([0, 10**12], [1, 0])
    with pytest.raises(ValueError, match=way.format(1 << 60)):
        pgs.Graph.from_coo([0, 1 << 60], [1, 0])
    outside = r"src\[1\]: expected an id in \[0, 1\), got 1000000000000; renumber=True numbers"
    with pytest.raises(ValueError, match=outside):
        pgs.Graph.from_coo({("a", "to", "b"): ([0, 10**12], [1, 0])}, num_nodes={"a": 1, "b": 2})
    with pytest.raises(ValueError, match=outside):
        pgs.Graph.from_coo([0, 10**12], [0, 0], num_nodes=1)


def test_unknown_names_are_errors() -> None:
    graph = named()
    assert graph.index_of("eve") == 2
    with pytest.raises(KeyError, match=r"expected nodes of the graph, got 'zoe', 'Bob' \(2 of 3"):
        graph.index_of(["zoe", "bob", "Bob"])
    with pytest.raises(KeyError, match="got 'zoe'"):
        graph.index_of("zoe")
    with pytest.raises(TypeError, match="labels: expected names of type str, got list"):
        graph.index_of([1])
    with pytest.raises(TypeError, match="labels: expected names or ids of nodes, got NoneType"):
        graph.index_of(None)
    with pytest.raises(ValueError, match="index_of: expected a graph whose nodes have names or"):
        pgs.Graph.from_coo([0], [1]).index_of(["a"])


@pytest.mark.parametrize(
    ("src", "dst", "error", "message"),
    [
        (["a"], [1], TypeError, "dst: expected names, as src has, got integers"),
        ([1], ["a"], TypeError, "dst: expected integers, as src has, got names"),
        (["a", None], ["b", "c"], ValueError, r"src\[1\]: expected a name, got a missing value"),
        (["a", 2], ["b", "c"], TypeError, r"src\[1\]: expected names of type str, .* got int 2"),
        (np.array([b"a"]), ["b"], TypeError, r"src: expected names .*, got bytes; numpy.char.dec"),
        (np.array([["a"]]), ["b"], ValueError, r"src: expected one dimension, got shape \(1, 1\)"),
        (["a\ud800"], ["b"], ValueError, "node_names: expected text that UTF-8 has, got"),
        (["a", "b"], ["b"], ValueError, r"dst: expected as many values as src has \(2\), got 1"),
        ([0.5], [1], TypeError, r"src\[0\]: expected an integer, got float 0.5"),
    ],
)
def test_columns_that_are_no_labels(src: Any, dst: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        pgs.Graph.from_coo(src, dst, renumber=True)


def test_options_that_do_not_go_together() -> None:
    with pytest.raises(ValueError, match=r"num_nodes: expected None with renumber=True, .* got 5"):
        pgs.Graph.from_coo(SRC, DST, num_nodes=5, renumber=True)
    with pytest.raises(TypeError, match="renumber: expected True or False, got int 1"):
        pgs.Graph.from_coo(SRC, DST, renumber=1)
    relations = {("a", "to", "b"): (SRC, DST)}
    with pytest.raises(ValueError, match="num_nodes: expected None with renumber=True"):
        pgs.Graph.from_coo(relations, num_nodes={"a": 9, "b": 9}, renumber=True)
    with pytest.raises(TypeError, match=r"num_nodes: .* got NoneType None; renumber=True counts"):
        pgs.Graph.from_coo(relations)
    with pytest.raises(
        TypeError, match=r"edges\[\('a', 'to', 'b'\)\]: src: expected ids, .* got n"
    ):
        pgs.Graph.from_coo(relations, num_nodes={"a": 9, "b": 9})


def test_missing_values_of_pandas_and_arrow() -> None:
    pd, pa = partner("pandas"), partner("pyarrow")
    for column in (
        pd.Series(["a", None]),
        pd.Series(["a", None], dtype="category"),
        pd.Series(["a", pd.NA], dtype="string"),
        pd.Series(["a", float("nan")], dtype=object),
        pa.array(["a", None]),
    ):
        with pytest.raises(ValueError, match=r"src\[1\]: expected a name, got a missing value"):
            pgs.Graph.from_coo(column, ["b", "c"], renumber=True)


def test_a_dictionary_of_arrow_counts_by_the_names_that_occur() -> None:
    pa = partner("pyarrow")
    part = pa.array(["a", "b", "zz"]).dictionary_encode()[:2]
    twice = pa.DictionaryArray.from_arrays([0, 1, 2], ["b", "a", "b"])
    views = pa.DictionaryArray.from_arrays([0, 1], pa.array(["b", "a", "zz"], pa.string_view()))
    for column, names in (
        (part, ["a", "b"]),
        (pa.chunked_array([part, part[:1]]), ["a", "b"]),
        (pa.chunked_array([], part.type), []),
        (twice, ["a", "b"]),
        (views, ["a", "b"]),
        (pa.array(["a", "b", "zz"], pa.large_string()).dictionary_encode()[1:], ["b", "zz"]),
    ):
        graph = pgs.Graph.from_coo(column, column, renumber=True)
        assert graph.num_nodes == len(names)
        assert list(graph.node_names or ()) == names
    for indices, names, kind in (
        ([1, 0], [None, "a"], pa.string()),
        ([0, None], ["a"], pa.string()),
        ([1, 0], [None, "a"], pa.string_view()),
    ):
        column = pa.DictionaryArray.from_arrays(indices, pa.array(names, kind))
        for each in (column, pa.chunked_array([column])):
            with pytest.raises(ValueError, match=r"src\[1\]: expected a name, got a missing value"):
                pgs.Graph.from_coo(each, ["b", "c"], renumber=True)


def test_narrow_columns_beside_wide_ones_are_promoted() -> None:
    narrow, wide = np.array([0, 2, 1], np.int32), np.array([1, 0, 0])
    expected = pgs.Graph.from_coo(narrow.astype(np.int64), wide)
    for src, dst in ((narrow, wide), (wide, narrow)):
        graph = pgs.Graph.from_coo(src, dst)
        assert graph.dtype == "int64"
        turned = expected if src is narrow else pgs.Graph.from_coo(wide, narrow.astype(np.int64))
        assert graph.indices.tolist() == turned.indices.tolist()
        assert graph.indptr.tolist() == turned.indptr.tolist()
    assert pgs.Graph.from_coo(narrow, narrow).dtype == "int32"
    typed = pgs.Graph.from_coo(
        {("a", "to", "a"): (narrow, narrow), ("a", "by", "a"): (narrow, wide)}, num_nodes={"a": 3}
    )
    assert typed.dtype == "int64"
    assert typed["a", "to", "a"].indices.tolist() == [0, 1, 2]


RELATIONS: dict[Any, Any] = {
    ("user", "buys", "item"): (["u2", "u1", "u2"], ["i1", "i1", "i9"]),
    ("item", "of", "brand"): (["i1", "i3"], [10**12, 7]),
    ("user", "knows", "user"): (["u1"], ["u7"]),
}


def test_each_type_has_labels_of_its_own(tmp_path: Path) -> None:
    graph = pgs.Graph.from_coo(
        RELATIONS, renumber=True, edge_data={("user", "buys", "item"): {"w": [1.0, 2, 3]}}
    )
    graph.save(tmp_path / "graph.pgs")
    opened = pgs.Graph.open(tmp_path / "graph.pgs", verify=True)
    for each in (graph, opened, *(pickle.loads(pickle.dumps(one)) for one in (graph, opened))):
        assert dict(each.num_nodes) == {"user": 3, "item": 3, "brand": 2}
        assert each.node_names == {"user": ["u1", "u2", "u7"], "item": ["i1", "i3", "i9"]}
        assert {kind: ids.tolist() for kind, ids in each.node_ids.items()} == {"brand": [7, 10**12]}
        found = each.index_of({"user": ["u7", "u1"], "brand": [10**12], "item": "i9"})
        assert {k: v if k == "item" else v.tolist() for k, v in found.items()} == {
            "user": [2, 0],
            "brand": [1],
            "item": 2,
        }
        assert each["user", "buys", "item"].indices.tolist() == [1, 0, 1]
        assert each["item", "of", "brand"].edge_ids.tolist() == [1, 0]
        assert each["item", "of", "brand"].indices.tolist() == [1, 0]
    with pytest.raises(KeyError, match=r"labels\['user'\]: expected nodes of the graph, got 'i1'"):
        graph.index_of({"user": ["u1", "i1"]})
    with pytest.raises(ValueError, match="labels: expected types of the graph, got 'shop'"):
        graph.index_of({"shop": []})
    with pytest.raises(TypeError, match="labels: expected a mapping of types, got list"):
        graph.index_of(["u1"])
    plain = pgs.Graph.from_coo({("a", "to", "a"): ([0], [1])}, num_nodes={"a": 2})
    assert (plain.node_names, plain.node_ids) == ({}, {})
    with pytest.raises(ValueError, match="index_of: expected a graph whose nodes have names or"):
        plain.index_of({"a": [0]})


@pytest.mark.parametrize(
    "empty",
    [
        *([], (), np.array([]), np.array([], "U1"), np.array([], np.int32), np.array([], object)),
        *("pandas", "pandas string", "arrow", "arrow string"),
    ],
    ids=repr,
)
def test_an_empty_relation_stands_beside_any_labels(empty: Any) -> None:
    if isinstance(empty, str):
        library, _, dtype = empty.partition(" ")
        module = partner("pandas" if library == "pandas" else "pyarrow")
        if library == "pandas":
            empty = module.Series([], dtype=dtype or "int64")
        else:
            empty = module.array([], module.string() if dtype else module.int64())
    for src, dst in ((["x", "z"], ["y", "y"]), ([10**12, 7], [5, 5])):
        full, bare = ("u", "a", "v"), ("u", "b", "v")
        columns = {full: (src, dst), bare: (empty, empty)}
        for edges in (columns, dict(reversed(columns.items()))):
            graph = pgs.Graph.from_coo(edges, renumber=True)
            assert dict(graph.num_nodes) == {"u": 2, "v": 1}
            assert (graph[full].num_edges, graph[bare].num_edges) == (2, 0)
            labels = graph.node_names or {k: ids.tolist() for k, ids in graph.node_ids.items()}
            assert labels == {"u": sorted(src), "v": dst[:1]}
    none = pgs.Graph.from_coo({bare: (empty, [])}, renumber=True)
    assert dict(none.num_nodes) == {"u": 0, "v": 0}
    for wrong in ("", b"", {}, np.zeros((0, 2), np.int64)):
        with pytest.raises((TypeError, ValueError), match="src"):
            pgs.Graph.from_coo(wrong, ["a"], renumber=True)


def test_a_file_with_names_of_another_number_of_nodes(tmp_path: Path) -> None:
    graph = pgs.Graph.from_coo({("a", "to", "a"): (["x"], ["y"])}, renumber=True)
    other = pgs.Graph.from_coo({("a", "to", "a"): (["x"], ["x"])}, renumber=True)
    graph._source._labels.update(other._source._labels)
    graph.save(tmp_path / "graph.pgs")
    with pytest.raises(ValueError, match=r"nodes0.node_names.offsets.*: expected names of 2 nodes"):
        pgs.Graph.open(tmp_path / "graph.pgs")


def test_labels_of_networkx_are_kept_or_refused() -> None:
    nx = partner("networkx")
    pairs = [(3, 1), (1, 0), (0, 2)]
    plain = pgs.Graph.from_networkx(nx.DiGraph(pairs))
    assert (plain.node_ids, plain.indices.tolist()) == (None, [1, 3, 0])
    for kind in (np.int64, np.int32, np.uint8):
        graph = pgs.Graph.from_networkx(nx.DiGraph([(kind(u), kind(v)) for u, v in pairs]))
        assert (graph.node_ids, graph.indices.tolist()) == (None, [1, 3, 0])
        assert graph.indptr.tolist() == plain.indptr.tolist()
    gaps = pgs.Graph.from_networkx(nx.DiGraph([(np.int64(30), 10), (10, np.int64(20))]))
    assert gaps.node_ids.tolist() == [30, 10, 20]
    assert gaps.index_of([20, 30]).tolist() == [2, 0]
    texts = pgs.Graph.from_networkx(nx.DiGraph([(np.str_("b"), "a")]))
    assert texts.node_names == ["b", "a"]
    both = r"networkx.relabel_nodes\(g, str\) names them, and networkx.convert_node_labels"
    for labels, got in (
        (((0, 0), (0, 1)), r"tuple \(0, 0\)"),
        ((1, "b"), "int 1 and str 'b'"),
        ((True, 7), "bool True"),
        ((1.5, 2.5), "float 1.5"),
        ((1, 1 << 63), "9223372036854775808"),
    ):
        with pytest.raises(TypeError, match=f"g: expected nodes .*, got {got}; {both}"):
            pgs.Graph.from_networkx(nx.DiGraph([labels]))


# ---- on any device ---------------------------------------------------------------------------

BUYS, SOLD = ("user", "buys", "item"), ("item", "sold", "user")


def placed(graph: Any, device: str) -> list[Any]:
    """The graph in the memory of the device, and pinned for it."""
    return [graph.to(device)] + ([graph.pin()] if device != "cpu" else [])


@pytest.mark.backends("cpu", "emulator", "cuda")
def test_names_and_edges_stay_with_the_graph(device: str) -> None:
    graph = pgs.Graph.from_coo(
        ["a", "b", "b", "a"],
        ["b", "b", "a", "c"],
        renumber=True,
        edge_data={"weight": [1, 2, 3, 4]},
    )
    for there in placed(graph, device):
        for each in (there, there.with_data({"v": [0] * 4}), pickle.loads(pickle.dumps(there))):
            assert each.device.startswith(device)
            assert each.node_names == ["a", "b", "c"]
            seeds = each.index_of(["c", "b"])
            assert seeds.tolist() == [2, 1]
            batch = pgs.PGSampler([-1]).sample(each, seeds)
            assert each.node_names[batch.output_nodes] == ["c", "b"]
            assert each.in_degrees().tolist() == [1, 2, 1]
            assert each.out_degrees([1]).tolist() == [2]
            assert each.in_degrees(batch.output_nodes).tolist() == [1, 2]
    for there in placed(pgs.Graph.from_coo([0, 1], [1, 0]), device):
        assert there.reverse_edge_ids().tolist() == [1, 0]
    partner("scipy")
    for there in placed(graph, device):
        assert there.to_scipy().toarray().tolist() == [[0, 1, 4], [3, 2, 0], [0, 0, 0]]


@pytest.mark.backends("cpu", "emulator", "cuda")
def test_labels_of_types_stay_with_the_graph(device: str) -> None:
    edges = {BUYS: (["a", "b"], [10**12, 7]), SOLD: ([7, 10**12], ["b", "a"])}
    for graph in placed(pgs.Graph.from_coo(edges, renumber=True), device):
        for each in (graph, pickle.loads(pickle.dumps(graph)), graph.to("cpu")):
            assert each.node_names == {"user": ["a", "b"]}
            assert each.node_ids["item"].tolist() == [7, 10**12]
            found = each.index_of({"user": ["b"], "item": [10**12, 7]})
            assert {k: ids.tolist() for k, ids in found.items()} == {"user": [1], "item": [1, 0]}
            assert each.reverse_edge_ids(BUYS, SOLD).tolist() == [1, 0]
            assert each.in_degrees(edge_type=BUYS).tolist() == [1, 1]


@pytest.mark.backends("cpu", "emulator", "cuda")
def test_batches_convert(device: str) -> None:
    graph = pgs.Graph.from_coo([0, 1, 2], [1, 2, 0])
    batch = pgs.PGSampler([2, 2], seed=1).sample(graph.to(device), [0, 1])
    assert batch.device.startswith(device)
    partner("scipy")
    # From sources to destinations: 0 -> 1, 1 -> 2 and 2 -> 0, then those into the seeds.
    assert [matrix.toarray().tolist() for matrix in batch.to_scipy()] == [
        [[0, 1, 0], [0, 0, 1], [1, 0, 0]],
        [[0, 1], [0, 0], [1, 0]],
    ]
    partner("networkx")
    edges = sorted(batch.to_networkx().edges(data="edge_id"))
    assert edges == [(0, 1, 0), (0, 1, 0), (1, 2, 1), (2, 0, 2), (2, 0, 2)]
