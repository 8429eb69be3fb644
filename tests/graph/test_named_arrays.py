"""The named arrays of a graph's edges and vertices."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from array import array
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
import torch
from forks import in_child
from graphs import circulant
from partners import partner

import pygsampler as pgs
from pygsampler._arrays.dtypes import KINDS

# Rows: 0 <- {1, 2}, 1 <- {0}, 2 <- {}, 3 <- {0, 0, 3}
INDPTR = [0, 2, 3, 3, 6]
INDICES = [1, 2, 0, 0, 0, 3]
WEIGHTS = np.arange(6, dtype="float32") / 4
POINTS = np.arange(12.0).reshape(4, 3)


def weighted(**more: Any) -> pgs.Graph:
    return pgs.Graph.from_csc(
        INDPTR, INDICES, edge_data={"w": WEIGHTS}, node_data={"x": POINTS}, **more
    )


def values(graph: pgs.Graph) -> dict[str, tuple[str, tuple[int, ...], Any]]:
    """All that there is, by kind and name."""
    return {
        f"{kind}.{name}": (array.dtype, array.shape, array.tolist())
        for kind, arrays in (("edge", graph.edata), ("node", graph.ndata))
        for name, array in arrays.items()
    }


def by_ends(graph: pgs.Graph, name: str) -> list[tuple[int, int, Any]]:
    """(source, target, value) of every edge, as sampling finds them."""
    block = pgs.PGSampler([-1], seed=0).sample(graph, range(graph.num_nodes)).blocks[0]
    nodes, data = block.src_nodes.tolist(), graph.edata[name]
    src, dst = block.coo()
    return sorted(
        (nodes[u], nodes[v], data[e]) for u, v, e in zip(src, dst, block.edge_ids, strict=True)
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "graph.pgs"


def sources() -> dict[str, tuple[Any, str]]:
    """Arrays with a row for each of six edges, and what their dtype is."""
    found: dict[str, tuple[Any, str]] = {}
    for dtype in KINDS:
        if dtype != "bfloat16":
            found[f"numpy {dtype}"] = (np.ones((6, 3), dtype), dtype)
        # Older versions of torch have uint8 alone.
        if hasattr(torch, dtype):
            found[f"torch {dtype}"] = (torch.ones(6, dtype=getattr(torch, dtype)), dtype)
    return found | {
        "list": ([0.5] * 6, "float64"),
        "range": (range(6), "int64"),
        "array": (array("f", range(6)), "float32"),
        "memoryview": (memoryview(bytes(12)).cast("B", (6, 2)), "uint8"),
        "arrow": (pa.array(range(6), "float32"), "float32"),
        "every second": (torch.arange(12)[::2], "int64"),
        "with a gradient": (torch.ones(6, 2, 2, requires_grad=True), "float32"),
        "no columns": (np.zeros((6, 0), "int8"), "int8"),
        "more edges": (circulant(6, 1).indices, "int64"),
    }


def test_arrays_of_any_kind_are_named(path):
    given = sources()
    graph = pgs.Graph.from_csc(
        INDPTR, INDICES, edge_data={name: value for name, (value, _) in given.items()}
    )
    assert list(graph.edata) == list(given)
    assert graph.ndata == {}
    for name, (value, dtype) in given.items():
        found = graph.edata[name]
        assert isinstance(found, pgs.Array)
        assert (found.dtype, len(found), found.device) == (dtype, 6, "cpu")
        if dtype != "bfloat16" and name != "with a gradient":
            assert found.shape == np.shape(value)
            assert found.tolist() == np.asarray(value).tolist()
    for again in (pickle.loads(pickle.dumps(graph)), copy.deepcopy(graph)):
        assert values(again) == values(graph)
    graph.save(path)
    assert values(pgs.Graph.open(path, verify=True)) == values(graph)


def test_arrays_are_used_where_they_lie():
    x = torch.rand(4, 2)
    graph = pgs.Graph.from_csc(INDPTR, INDICES, edge_data={"w": WEIGHTS}, node_data={"x": x})
    assert graph.edata["w"].numpy().ctypes.data == WEIGHTS.ctypes.data
    assert graph.ndata["x"].torch().data_ptr() == x.data_ptr()
    assert graph.edata["w"] is graph.edata["w"]
    x[0] = 7
    assert graph.ndata["x"][0].tolist() == [7, 7]
    # Torch has put it elsewhere.
    x.share_memory_()
    x[1] = 8
    assert graph.ndata["x"][1].tolist() == [8, 8]
    y = torch.rand(4)
    graph = graph.with_data(node_data={"y": y})
    y.resize_(1 << 16)
    assert graph.ndata["y"].torch().data_ptr() == y.data_ptr()


def test_the_mappings_are_read_only():
    graph = weighted()
    with pytest.raises(TypeError):
        graph.edata["w"] = WEIGHTS  # type: ignore[index]
    with pytest.raises(KeyError):
        graph.ndata["w"]
    assert repr(graph.edata) == "{'w': float32 [6]}"
    assert pickle.loads(pickle.dumps(graph.edata))["w"].tolist() == WEIGHTS.tolist()
    assert pgs.Graph.from_csc(INDPTR, INDICES).edata == {} == circulant(3, 1).ndata


def test_a_row_is_of_the_edge_of_that_id():
    src, dst = [0, 1, 3, 0, 2, 0], [3, 0, 3, 1, 0, 3]
    graph = pgs.Graph.from_coo(src, dst, edge_data={"w": WEIGHTS}, node_data={"x": POINTS})
    assert by_ends(graph, "w") == sorted(zip(src, dst, WEIGHTS.tolist(), strict=True))
    assert graph.ndata["x"].tolist() == POINTS.tolist()
    ids = [5, 4, 9, 0, 1, 2]
    graph = pgs.Graph.from_csc(INDPTR, INDICES, edge_ids=ids, edge_data={"w": range(10)})
    assert [w for *_, w in by_ends(graph, "w")] == [9, 0, 1, 5, 4, 2]


@pytest.mark.parametrize(
    ("data", "error", "text"),
    [
        (
            {"w": np.ones(5)},
            ValueError,
            r"edge_data\['w'\]: expected one row for .* got 5",
        ),
        ({"w": np.ones((7, 6))}, ValueError, "of 6 edges, got 7"),
        ({"w": np.float32(1)}, ValueError, "of 6 edges, got a number without dimensions"),
        ({"w": None}, TypeError, r"edge_data\['w'\]: expected an array of bool, .*, got None"),
        ({"w": lambda: [1] * 6}, TypeError, r"edge_data\['w'\]: expected an array"),
        ({"w": np.ones(6, "complex64")}, TypeError, r"edge_data\['w'\]: .*complex64"),
        ({"w": torch.eye(6).to_sparse()}, TypeError, r"edge_data\['w'\]: .*sparse"),
        ({1: WEIGHTS}, TypeError, "edge_data: expected names of type str, got int 1"),
        ({"": WEIGHTS}, ValueError, "edge_data: expected names of 1 to 53 bytes of UTF-8, got ''"),
        ({"ö" * 27: WEIGHTS}, ValueError, "names of 1 to 53 bytes"),
        ({"\ud800": WEIGHTS}, ValueError, "names of 1 to 53 bytes"),
        ({"a\0": WEIGHTS}, ValueError, "names of 1 to 53 bytes"),
        (WEIGHTS, TypeError, "edge_data: expected a mapping of names to arrays, got"),
    ],
)
def test_what_cannot_be_taken_is_named(data, error, text):
    for make in (
        lambda: pgs.Graph.from_csc(INDPTR, INDICES, edge_data=data),
        lambda: pgs.Graph.from_coo(INDICES, INDICES, edge_data=data),
        lambda: pgs.Graph.from_csc(INDPTR, INDICES).with_data(data),
    ):
        with pytest.raises(error, match=text):
            make()


def test_as_many_rows_as_vertices_and_at_least_as_many_as_edges_with_ids():
    for rows in (3, 5):
        text = rf"node_data\['x'\]: expected one row for each of 4 nodes, got {rows}"
        with pytest.raises(ValueError, match=text):
            pgs.Graph.from_csc(INDPTR, INDICES, node_data={"x": np.ones(rows)})
    text = "expected at least one row for each of 6 edges, got 5"
    with pytest.raises(ValueError, match=text):
        pgs.Graph.from_csc(INDPTR, INDICES, edge_ids=range(6), edge_data={"w": np.ones(5)})


def test_the_longest_names_come_back(path):
    names = ("x" * 53, "ö.edge_data")
    graph = pgs.Graph.from_csc(INDPTR, INDICES, edge_data=dict.fromkeys(names, WEIGHTS))
    graph.save(path)
    assert tuple(pgs.Graph.open(path).edata) == names


def test_another_graph_with_more_data():
    graph = weighted()
    other = graph.with_data({"w": [1] * 6, "t": range(6)}, {"y": [0, 1, 0, 1]})
    assert (list(other.edata), list(other.ndata)) == (["w", "t"], ["x", "y"])
    assert other.edata["w"].tolist() == [1] * 6
    assert other.ndata["x"] is graph.ndata["x"]
    assert graph.edata["w"].tolist() == WEIGHTS.tolist()
    assert list(graph.ndata) == ["x"]
    graph.close()
    assert [w for *_, w in by_ends(other, "t")] == [2, 3, 4, 0, 1, 5]


def test_close_lets_go():
    graph = weighted()
    x = graph.ndata["x"]
    graph.close()
    for use in (lambda: graph.edata, lambda: graph.ndata, lambda: graph.with_data()):
        with pytest.raises(pgs.errors.ClosedError):
            use()
    assert x.tolist() == POINTS.tolist()


def test_data_go_along():
    graph = weighted()
    assert graph.to("cpu").edata is graph.edata
    # What a graph on a device holds; no device is asked before it is used.
    there = pgs.Graph._later(graph, 0, False)
    assert there.edata is graph.edata
    assert values(there.with_data({"t": range(6)})).keys() == {"edge.w", "edge.t", "node.x"}
    assert there.with_data().device == "cuda:0"
    assert in_child(lambda: values(graph)) == values(graph)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickles(protocol, path):
    graph = weighted(edge_ids=range(6)).with_data({"b": torch.ones(6, 2, dtype=torch.bfloat16)})
    again = pickle.loads(pickle.dumps(graph, protocol))
    assert values(again) == values(graph)
    assert values(pickle.loads(pickle.dumps(again, protocol))) == values(graph)
    # A file's are found by its path; only what came later is sent.
    graph.with_data(node_data={"z": np.zeros((4, 1000))}).save(path)
    opened = pgs.Graph.open(path)
    assert len(pickle.dumps(opened, protocol)) < 400
    more = opened.with_data({"w": [7] * 6, "t": range(6)})
    assert len(pickle.dumps(more, protocol)) < 1000
    again = pickle.loads(pickle.dumps(more, protocol))
    assert values(again) == values(more)
    assert again.path == path


def test_a_forged_pickle_is_checked():
    make, arguments, (_, of_nodes) = weighted()._source.__reduce__()
    with pytest.raises(ValueError, match=r"edge_data\['w'\]: expected one row for each of 6"):
        make(*arguments).__setstate__(({"w": np.ones(3)}, of_nodes))


def where(graph: pgs.Graph, results: Any) -> None:
    x = graph.ndata["x"]
    results.put((x._source.is_shared(), x.dtype, x.tolist()))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.bool, torch.int64])
def test_torch_tensors_travel_through_shared_memory(dtype):
    x = torch.ones(100, dtype=dtype)
    graph = pgs.Graph.from_csc(range(101), range(100), node_data={"x": x})
    address = x.data_ptr()
    context = torch.multiprocessing.get_context("spawn")
    results = context.SimpleQueue()
    worker = context.Process(target=where, args=(graph, results))
    worker.start()
    found = results.get()
    worker.join()
    assert found == (True, str(dtype).removeprefix("torch."), x.tolist())
    assert (x.data_ptr(), x.is_shared()) == (address, False)
    assert multiprocessing.reduction.ForkingPickler.dumps(graph).nbytes < 5000


# ---- files ----


def test_a_file_has_them_in_sections_of_their_own(path):
    graph = weighted().with_data(node_data={"m": torch.tensor([True, False, True, True])})
    graph.save(path, arrays={"names": [1, 2]})
    opened = pgs.Graph.open(path)
    assert values(opened) == values(graph)
    assert list(opened.file_arrays) == ["names"]
    assert opened.edata["w"].readonly
    assert opened.ndata["m"].torch().tolist() == [True, False, True, True]
    data = path.read_bytes()
    for name in (b"edge_data.w\0", b"node_data.x\0", b"node_data.m\0"):
        assert data.count(name) == 1
    # Over the file itself, with and without the arrays beside them.
    opened.save(path)
    assert path.read_bytes() == data
    more = opened.with_data({"w": [2] * 6})
    more.save(path, arrays={})
    again = pgs.Graph.open(path)
    assert (again.file_arrays, values(again)) == ({}, values(more))
    assert values(opened) == values(graph)


@pytest.mark.parametrize("name", ["edge_data.w", "node_data."])
def test_names_of_these_sections_are_not_for_others(path, name):
    with pytest.raises(ValueError, match=r"names that do not begin with edge_data\. or node_data"):
        weighted().save(path, arrays={name: WEIGHTS})
    assert not path.exists()


@pytest.mark.parametrize(
    ("section", "rows", "text"),
    [
        (
            "edge_data.w",
            (5,),
            r"section 'edge_data\.w': .* of 6 edges, got 5",
        ),
        ("node_data.x", (6, 2), r"section 'node_data\.x': .* of 4 nodes, got 6"),
        ("node_data.x", (), r"section 'node_data\.x': .* got a number"),
        ("node_data.", (4,), r"section 'node_data\.': expected a name after"),
    ],
)
def test_a_file_with_other_rows_is_refused(path, monkeypatch, section, rows, text):
    monkeypatch.setattr("pygsampler._graph.file_writer.PREFIXES", ())
    pgs.Graph.from_csc(INDPTR, INDICES).save(path, arrays={section: np.ones(rows)})
    with pytest.raises(ValueError, match=text) as caught:
        pgs.Graph.open(path)
    assert str(caught.value).startswith(str(path))


# ---- other libraries ----


@pytest.mark.parametrize("kind", ["csc", "csr", "coo", "lil", "dia"])
def test_the_values_of_a_sparse_matrix(kind):
    rows, columns = np.array([2, 0, 1, 0, 3]), np.array([0, 1, 1, 3, 2])
    matrix = sp.coo_matrix((np.arange(1, 6.0), (rows, columns)), shape=(4, 4)).asformat(kind)
    graph = pgs.Graph.from_scipy(matrix)
    expected = [(0, 1, 2.0), (0, 3, 4.0), (1, 1, 3.0), (2, 0, 1.0), (3, 2, 5.0)]
    assert by_ends(graph, "weight") == expected
    if kind in ("csc", "csr", "coo"):
        assert graph.edata["weight"].numpy().ctypes.data == matrix.data.ctypes.data
    assert pgs.Graph.from_scipy(matrix.astype("complex128")).edata == {}


def test_the_weights_of_networkx():
    nx = partner("networkx")
    g = nx.DiGraph()
    g.add_weighted_edges_from([("a", "b", 1), ("c", "a", 2), ("b", "c", 3)])
    graph = pgs.Graph.from_networkx(g)
    assert graph.edata["weight"].dtype == "int64"
    assert by_ends(graph, "weight") == [(0, 1, 1), (1, 2, 3), (2, 0, 2)]
    assert "node_names.bytes" in graph.file_arrays
    again = pickle.loads(pickle.dumps(graph))
    assert (values(again), list(again.file_arrays)) == (values(graph), list(graph.file_arrays))
    # Both directions, and a self loop, which has one.
    g = nx.MultiGraph()
    g.add_weighted_edges_from([(0, 1, np.float32(0.5)), (1, 1, 2), (0, 1, 4)])
    expected = [(0, 1, 0.5), (0, 1, 4.0), (1, 0, 0.5), (1, 0, 4.0), (1, 1, 2.0)]
    assert by_ends(pgs.Graph.from_networkx(g), "weight") == expected
    for bad in ("heavy", None, True, [1], 1j, 10**400):
        g.add_edge(0, 2, weight=bad)
        assert pgs.Graph.from_networkx(g).edata == {}
        g.remove_edge(0, 2)
    g.add_edge(0, 2)
    assert pgs.Graph.from_networkx(g).edata == {}


def test_what_dgl_has():
    dgl = partner("dgl")
    g = dgl.graph((torch.tensor([1, 0, 2, 0]), torch.tensor([0, 3, 0, 1])), num_nodes=5)
    w, x = torch.rand(4), torch.rand(5, 2)
    g.edata["w"], g.ndata["x"] = w, x
    g.ndata["half"] = torch.ones(5, dtype=torch.bfloat16)
    g.edata["c"] = torch.ones(4, dtype=torch.complex64)
    g.ndata["n" * 60] = x
    graph = pgs.Graph.from_dgl(g)
    g.edata["w"], g.ndata["later"] = w + 1, x
    assert (list(graph.edata), list(graph.ndata)) == (["w"], ["x", "half"])
    assert graph.edata["w"].torch().data_ptr() == w.data_ptr()
    assert graph.ndata["x"].tolist() == x.tolist()
    ends = zip([1, 0, 2, 0], [0, 3, 0, 1], w.tolist(), strict=True)
    assert by_ends(graph, "w") == sorted(ends)
    # DGL selects the rows of a subgraph when they are read.
    part = pgs.Graph.from_dgl(dgl.node_subgraph(g, [0, 1, 3]))
    assert part.ndata["x"].tolist() == x[[0, 1, 3]].tolist()
    assert "_ID" not in {*part.ndata, *part.edata}
    assert values(pickle.loads(pickle.dumps(part))) == values(part)


has_pyg = find_spec("torch_geometric") is not None
pyg = pytest.mark.skipif(not has_pyg, reason="this environment has no PyG")


@pyg
def test_what_pyg_has():
    torch_geometric = partner("torch_geometric")
    edge_index = torch.tensor([[1, 0, 2, 0, 3], [0, 3, 0, 1, 3]])
    data = torch_geometric.data.Data(
        x=torch.rand(6, 2),
        edge_index=edge_index,
        edge_attr=torch.rand(5, 3),
        edge_weight=torch.rand(5),
        y=torch.arange(6),
        batch=torch.zeros(6, dtype=torch.int64),
        edge_label=torch.ones(5),
        face=torch.zeros(3, 6, dtype=torch.int64),
        name="graph",
        loss=torch.tensor(1.0),
        matrix=torch.eye(6).to_sparse(),
        other=torch.ones(6, dtype=torch.complex64),
        numbers=[1] * 6,
    )
    graph = pgs.Graph.from_pyg(data)
    assert set(graph.edata) == {"edge_attr", "edge_weight"}
    assert set(graph.ndata) == {"x", "y"}
    assert all(data.is_edge_attr(key) for key in graph.edata)
    assert all(data.is_node_attr(key) for key in graph.ndata)
    assert graph.ndata["x"].torch().data_ptr() == data.x.data_ptr()
    ends = zip(*edge_index.tolist(), data.edge_weight.tolist(), strict=True)
    assert by_ends(graph, "edge_weight") == sorted(ends)
    # As many edges as vertices: the names decide.
    data = torch_geometric.data.Data(
        edge_index=edge_index, num_nodes=5, mine=torch.ones(5), edge_mine=torch.ones(5)
    )
    graph = pgs.Graph.from_pyg(data)
    assert (list(graph.ndata), list(graph.edata)) == (["mine"], ["edge_mine"])
    assert (data.is_node_attr("mine"), data.is_edge_attr("edge_mine")) == (True, True)


@pyg
@pytest.mark.filterwarnings("ignore:Sparse")
def test_the_values_of_a_transposed_adjacency():
    torch_geometric = partner("torch_geometric")
    edge_index = torch.tensor([[1, 0, 2, 0, 3], [0, 3, 0, 1, 3]])
    weights = torch.rand(5)
    data = torch_geometric.data.Data(
        x=torch.rand(4, 2), edge_index=edge_index, edge_weight=weights, edge_time=torch.arange(5)
    )
    sparse = torch_geometric.transforms.ToSparseTensor(layout=torch.sparse_csr)(data)
    graph = pgs.Graph.from_pyg(sparse)
    assert (list(graph.edata), list(graph.ndata)) == (["edge_weight"], ["x"])
    ends = zip(*edge_index.tolist(), weights.tolist(), strict=True)
    assert by_ends(graph, "edge_weight") == sorted(ends)


@pytest.mark.filterwarnings("ignore:Sparse")
def test_an_adjacency_with_rows_of_values():
    class SparseTensor:
        def csr(self):
            return torch.tensor(INDPTR), torch.tensor(INDICES), torch.ones(6, 2)

    graph = pgs.Graph.from_pyg(SimpleNamespace(adj_t=SparseTensor(), num_nodes=4))
    assert values(graph) == {"edge.edge_attr": ("float32", (6, 2), [[1, 1]] * 6)}


def test_a_part_of_an_array_of_a_tensor_is_taken_as_that_part():
    whole = pgs.Graph.from_csc(torch.tensor([0, 1, 2, 4]), torch.tensor([0, 1, 2, 0]))
    part = pgs.Graph.from_csc([0, 1, 2], whole.indices[2:4], num_nodes=3)
    assert part.indices.tolist() == [2, 0]
    (block,) = pgs.PGSampler([-1]).sample(part, [0, 1]).blocks
    assert block.src_nodes.tolist() == [0, 1, 2]
    assert block.indices.tolist() == [2, 0]


def tables() -> dict[str, Any]:
    pandas = partner("pandas")
    columns = {"w": WEIGHTS, "n": np.arange(6)}
    table = pa.table(columns)
    # Rows of an index of its own, and a table of several chunks.
    return {
        "pandas": pandas.DataFrame(columns, index=np.arange(6)[::-1] + 4),
        "arrow": table,
        "chunks": pa.concat_tables([table.slice(0, 2), table.slice(2)]),
        "record batch": table.to_batches()[0],
    }


@pytest.mark.parametrize("name", ["pandas", "arrow", "chunks", "record batch"])
def test_the_columns_of_a_table_are_named_arrays(name: str) -> None:
    table = tables()[name]
    for graph in (
        pgs.Graph.from_csc(INDPTR, INDICES, edge_data=table),
        pgs.Graph.from_csc(INDPTR, INDICES).with_data(table),
        pgs.Graph.from_coo(INDICES, INDICES, num_nodes=6, edge_data=table, node_data=table),
    ):
        assert graph.edata["w"].tolist() == WEIGHTS.tolist()
        assert graph.edata["n"].tolist() == list(range(6))
    assert graph.ndata["w"].tolist() == WEIGHTS.tolist()
    types = pgs.Graph.from_coo(
        {("a", "to", "b"): (INDICES, INDICES)},
        num_nodes={"a": 6, "b": 6},
        edge_data={("a", "to", "b"): table},
    )
    assert types.edata[("a", "to", "b")]["n"].tolist() == list(range(6))


def test_what_is_no_table_is_named() -> None:
    pandas = partner("pandas")
    for data, text in (
        (pandas.Series(WEIGHTS, name="w"), "expected a mapping of names to arrays, got Series"),
        (pandas.DataFrame({3: WEIGHTS}), "expected names of type str, got int 3"),
        (np.ones((6, 2)), "expected a mapping of names to arrays, got ndarray"),
    ):
        with pytest.raises(TypeError, match=f"edge_data: {text}"):
            pgs.Graph.from_csc(INDPTR, INDICES, edge_data=data)
