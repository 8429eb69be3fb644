"""Graphs as those of other libraries, and back."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from partners import partner

import pygsampler as pgs

RNG = np.random.default_rng(0)
NODES, EDGES = 12, 30
BUYS, RATED, KNOWS = ("user", "buys", "item"), ("item", "rated", "user"), ("user", "knows", "user")


def state(graph: pgs.Graph) -> tuple[Any, ...]:
    """All of a graph, with a row for each node, and the ids that edges without any have."""
    indptr = graph.indptr.tolist()
    indptr += [indptr[-1]] * (graph.num_nodes + 1 - len(indptr))
    ids = range(graph.num_edges) if graph.edge_ids is None else graph.edge_ids.tolist()
    data = [
        {name: (array.dtype, array.tolist()) for name, array in arrays.items()}
        for arrays in (graph.edata, graph.ndata)
    ]
    return graph.dtype, graph.num_nodes, indptr, graph.indices.tolist(), list(ids), *data


def made(kind: str, dtype: str, **data: Any) -> pgs.Graph:
    src, dst = RNG.integers(0, NODES, EDGES), RNG.integers(0, NODES - 2, EDGES)
    graph = pgs.Graph.from_coo(src.astype(dtype), dst.astype(dtype), num_nodes=NODES, **data)
    if kind == "coo":
        return graph
    return pgs.Graph.from_csc(graph.indptr[:11], graph.indices, num_nodes=NODES, **data)


def arrays() -> dict[str, Any]:
    return {
        "edge_data": {"weight": RNG.random(EDGES), "e": RNG.integers(0, 9, (EDGES, 2))},
        "node_data": {"x": RNG.random((NODES, 3)), "mask": RNG.random(NODES) < 0.5},
    }


KINDS = [(kind, dtype) for kind in ("coo", "csc") for dtype in ("int32", "int64")]


@pytest.mark.parametrize(("kind", "dtype"), KINDS)
def test_dgl_gives_the_same_graph_back(kind: str, dtype: str) -> None:
    dgl = partner("dgl")
    graph = made(kind, dtype, **arrays())
    theirs = graph.to_dgl()
    assert isinstance(theirs, dgl.DGLGraph)
    assert state(pgs.Graph.from_dgl(theirs)) == state(graph)
    assert theirs.edata["weight"].data_ptr() == graph.edata["weight"]._address
    some = graph.to_dgl(edge_data=["e"], node_data=[])
    assert (list(some.edata), list(some.ndata)) == (["e"], [])


@pytest.mark.parametrize(("kind", "dtype"), KINDS)
def test_pyg_gives_the_same_graph_back(kind: str, dtype: str) -> None:
    pyg = partner("torch_geometric.data")
    graph = made(kind, dtype, **arrays())
    data = graph.to_pyg()
    assert isinstance(data, pyg.Data)
    assert data.validate()
    # PyG has no ids of 32 bits.
    assert state(pgs.Graph.from_pyg(data))[1:] == state(graph)[1:]
    assert data.x.data_ptr() == graph.ndata["x"]._address
    some = graph.to_pyg(edge_data=["e"], node_data=[])
    assert sorted(some.keys()) == ["e", "edge_index", "num_nodes"]
    both = graph.with_data({"x": np.zeros(EDGES)})
    with pytest.raises(
        ValueError, match=r"edge_data: expected names that no node array has, .* 'x'"
    ):
        both.to_pyg()
    assert both.to_pyg(edge_data=["weight"]).x.shape == (NODES, 3)
    with pytest.raises(ValueError, match="data: expected names other than edge_index, num_nodes"):
        graph.with_data({"edge_index": np.zeros(EDGES)}).to_pyg()


@pytest.mark.parametrize(("kind", "dtype"), KINDS)
def test_scipy_gives_the_same_graph_back(kind: str, dtype: str) -> None:
    graph = made(kind, dtype, edge_data={"weight": RNG.random(EDGES)})
    matrix = graph.to_scipy()
    assert matrix.format == kind
    assert matrix.shape == (NODES, NODES)
    again = pgs.Graph.from_scipy(matrix)
    assert state(again)[1:] == state(graph)[1:]
    times = graph.with_data({"t": np.arange(EDGES), "e": np.zeros((EDGES, 2))})
    assert times.to_scipy(weight="t").data.tolist() == list(range(EDGES))
    ones = made(kind, dtype).to_scipy()
    assert (ones.dtype, ones.sum()) == (np.float32, EDGES)
    assert (matrix @ np.ones(NODES)).shape == (NODES,)
    with pytest.raises(
        ValueError, match=r"weight: expected an edge array of the graph \('weight'\)"
    ):
        graph.to_scipy(weight="x")
    with pytest.raises(ValueError, match=r"weight: expected shape \[30\], got \(30, 2\)"):
        times.to_scipy(weight="e")


@pytest.mark.parametrize(("kind", "dtype"), KINDS)
def test_scipy_gets_weights_that_it_has(kind: str, dtype: str) -> None:
    torch = partner("torch")
    values = RNG.integers(0, 9, EDGES) / 4
    for half in (values.astype(np.float16), torch.tensor(values, dtype=torch.bfloat16)):
        graph = made(kind, dtype, edge_data={"weight": half})
        matrix = graph.to_scipy()
        assert matrix.dtype == np.float32
        assert matrix.data.tolist() == values.tolist()
        assert graph.to_scipy(weight="weight").data.tolist() == values.tolist()
        assert pgs.Graph.from_scipy(matrix).edata["weight"].tolist() == values.tolist()
    wide = made(kind, dtype, edge_data={"weight": RNG.random((EDGES, 2))})
    assert wide.to_scipy().data.tolist() == [1] * EDGES
    with pytest.raises(ValueError, match=r"weight: expected shape \[30\], got \(30, 2\)"):
        wide.to_scipy(weight="weight")
    typed = pgs.Graph.from_coo(
        {BUYS: ([0, 1], [0, 0]), RATED: ([0], [1])},
        num_nodes={"user": 2, "item": 1},
        edge_data={
            BUYS: {"weight": np.array([2, 3], np.float16)},
            RATED: {"weight": np.ones((1, 2))},
        },
    )
    assert {of: matrix.data.tolist() for of, matrix in typed.to_scipy().items()} == {
        BUYS: [2, 3],
        RATED: [1],
    }


@pytest.mark.parametrize(("kind", "dtype"), KINDS)
def test_networkx_gives_the_same_graph_back(kind: str, dtype: str) -> None:
    partner("networkx")
    data = arrays()
    data["node_data"]["mask"] = RNG.integers(0, 2, NODES)
    graph = made(kind, dtype, **data)
    theirs = graph.to_networkx()
    again = pgs.Graph.from_networkx(theirs, edge_attrs=["weight", "e"], node_attrs=["x", "mask"])
    assert state(again)[1:] == state(graph)[1:]
    assert list(pgs.Graph.from_networkx(theirs).edata) == ["weight"]
    some = graph.to_networkx(edge_data=[], node_data=["mask"])
    assert {tuple(attributes) for *_, attributes in some.edges(data=True)} == {("edge_id",)}
    assert some.nodes[3] == {"mask": data["node_data"]["mask"][3]}


@pytest.mark.parametrize("name", ["key", "u_for_edge", "v_for_edge", "self"])
def test_arrays_of_any_name_are_attributes_of_networkx(name: str) -> None:
    partner("networkx")
    src, dst, values = [0, 0, 1], [1, 1, 0], [5, 5, 6]
    plain = pgs.Graph.from_coo(src, dst, edge_data={name: values}, node_data={name: [7, 8]})
    found = [(u, v, of["edge_id"], of[name]) for u, v, of in plain.to_networkx().edges(data=True)]
    assert sorted(found) == [(0, 1, 0, 5), (0, 1, 1, 5), (1, 0, 2, 6)]
    assert plain.to_networkx().nodes[1][name] == 8
    typed = pgs.Graph.from_coo(
        {KNOWS: (src, dst)}, num_nodes={"user": 2}, edge_data={KNOWS: {name: values}}
    )
    found = [(of["edge_id"], of[name]) for *_, of in typed.to_networkx().edges(data=True)]
    assert sorted(found) == [(0, 5), (1, 5), (2, 6)]


def test_labels_are_the_nodes_of_networkx() -> None:
    partner("networkx")
    named = pgs.Graph.from_coo(["b", "a", "c"], ["a", "c", "a"], renumber=True)
    again = pgs.Graph.from_networkx(named.to_networkx())
    assert state(again) == state(named)
    assert again.node_names == ["a", "b", "c"]
    hashed = pgs.Graph.from_coo([10**12, 7], [7, 7], renumber=True)
    theirs = hashed.to_networkx()
    assert list(theirs.nodes) == [7, 10**12]
    assert pgs.Graph.from_networkx(theirs).node_ids.tolist() == [7, 10**12]


def test_attributes_of_networkx_become_arrays() -> None:
    nx = partner("networkx")
    g = nx.Graph()
    g.add_nodes_from([(2, {"x": [1.0, 2.0], "k": 3}), (0, {"x": [0.0, 1.0], "k": 4}), (1, {})])
    g.nodes[1].update(x=np.array([5.0, 6.0]), k=5)
    g.add_edge(2, 0, t=7, f=[1, 2])
    g.add_edge(0, 0, t=8, f=[3, 4])
    g.add_edge(0, 1, t=9, f=[5, 6])
    graph = pgs.Graph.from_networkx(g, edge_attrs=["t", "f"], node_attrs=("k", "x"))
    assert graph.ndata["k"].tolist() == [4, 5, 3]
    assert graph.ndata["x"].tolist() == [[0, 1], [5, 6], [1, 2]]
    # A self loop has one value, and each other edge its value in both directions.
    assert graph.edata["t"].tolist() == [7, 8, 9, 7, 9]
    assert graph.edata["f"].tolist() == [[1, 2], [3, 4], [5, 6], [1, 2], [5, 6]]
    assert "weight" not in pgs.Graph.from_networkx(g, edge_attrs=[]).edata
    for options, error, message in (
        (
            {"edge_attrs": ["w"]},
            ValueError,
            r"edge_attrs: expected 'w' of all edges, got none of \(",
        ),
        ({"node_attrs": ["w"]}, ValueError, "node_attrs: expected 'w' of all nodes, got none of 0"),
        ({"edge_attrs": "t"}, TypeError, "edge_attrs: expected a list of names, got str 't'"),
        ({"node_attrs": [1]}, TypeError, r"node_attrs\[0\]: expected a str, got int 1"),
    ):
        with pytest.raises(error, match=message):
            pgs.Graph.from_networkx(g, **options)
    g.edges[0, 1]["t"] = "late"
    with pytest.raises(
        TypeError, match=r"edge_data\['t'\]: expected an array of bool, integers or"
    ):
        pgs.Graph.from_networkx(g, edge_attrs=["t"])


@pytest.mark.parametrize("kind", [str, datetime, np.datetime64, timedelta])
@pytest.mark.parametrize("directed", [True, False])
def test_dates_of_networkx_are_times(kind: Any, directed: bool) -> None:
    nx = partner("networkx")
    days = [datetime(1970, 1, 1 + day) for day in (2, 0, 1)]
    values = {
        str: [day.isoformat() for day in days],
        datetime: days,
        np.datetime64: list(map(np.datetime64, days)),
        timedelta: [day - datetime(1970, 1, 1) for day in days],
    }[kind]
    g = (nx.DiGraph if directed else nx.Graph)()
    for node, value in enumerate(values):
        g.add_node(node, born=value)
        g.add_edge(node, (node + 1) % 3, t=value)
    graph = pgs.Graph.from_networkx(g, edge_attrs=["t"], node_attrs=["born"])
    edges = list(g.edges(data="t"))
    if not directed:
        edges += [(v, u, value) for u, v, value in edges]
    src, dst, given = map(list, zip(*edges, strict=True))
    same = pgs.Graph.from_coo(
        src, dst, num_nodes=3, edge_data={"t": given}, node_data={"born": np.array(values)}
    )
    assert state(graph) == state(same)
    day = 24 * 3600 * 10**9
    assert graph.ndata["born"].tolist() == [2 * day, 0, day]
    for ours, theirs in ((graph.edata, same.edata), (graph.ndata, same.ndata)):
        assert [ours.kind(name) for name in ours] == [theirs.kind(name) for name in theirs]
    assert graph.edata.kind("t") == ("m" if kind is timedelta else "M")
    g.edges[0, 1]["t"] = "late"
    with pytest.raises((TypeError, ValueError), match=r"edge_data\['t'\]\[0\]: expected"):
        pgs.Graph.from_networkx(g, edge_attrs=["t"])


def test_edge_ids_beyond_the_edges_are_refused() -> None:
    for name in ("dgl", "torch_geometric", "networkx"):
        partner(name)
    graph = pgs.Graph.from_csc([0, 1, 2], [1, 0], edge_ids=[5, 9])
    for name in ("to_dgl", "to_pyg", "to_scipy", "to_networkx"):
        with pytest.raises(ValueError, match=f"{name}: expected edge ids that number the 2 edges"):
            getattr(graph, name)()
    for name in ("to_dgl", "to_pyg", "to_networkx"):
        plain = pgs.Graph.from_coo([0], [1])
        with pytest.raises(
            ValueError, match=r"edge_data: expected names of arrays \(none\), got 'w'"
        ):
            getattr(plain, name)(edge_data=["w"])
        with pytest.raises(TypeError, match="node_data: expected a list of names, got str 'w'"):
            getattr(plain, name)(node_data="w")


# ---- with types ----


def typed() -> pgs.Graph:
    counts = {"user": 6, "item": 8, "shop": 3}
    edges = {
        kind: (RNG.integers(0, counts[kind[0]], size), RNG.integers(0, counts[kind[2]], size))
        for kind, size in ((BUYS, 20), (RATED, 9), (KNOWS, 6))
    }
    return pgs.Graph.from_coo(
        edges,
        num_nodes=counts,
        edge_data={BUYS: {"weight": RNG.random(20), "f": RNG.random((20, 2))}},
        node_data={"user": {"x": RNG.random((6, 2))}, "shop": {"x": RNG.random((3, 1))}},
    )


def typed_state(graph: pgs.Graph) -> tuple[Any, ...]:
    relations = {}
    for kind in sorted(graph.edge_types):
        dtype, _, indptr, *rest = state(graph[kind])
        # As many rows as the larger type has.
        relations[kind] = dtype, indptr[: graph.num_nodes[kind[2]] + 1], *rest
    of_nodes = {
        kind: {name: array.tolist() for name, array in arrays.items()}
        for kind, arrays in graph.ndata.items()
    }
    return dict(graph.num_nodes), relations, of_nodes


def test_types_come_back_from_dgl_and_pyg() -> None:
    dgl, pyg = partner("dgl"), partner("torch_geometric.data")
    graph = typed()
    assert isinstance(graph.to_dgl(), dgl.DGLGraph)
    assert isinstance(graph.to_pyg(), pyg.HeteroData)
    assert typed_state(pgs.Graph.from_dgl(graph.to_dgl())) == typed_state(graph)
    assert typed_state(pgs.Graph.from_pyg(graph.to_pyg())) == typed_state(graph)


def test_types_come_back_from_scipy() -> None:
    graph = typed()
    matrices = graph.to_scipy()
    assert {kind: matrix.shape for kind, matrix in matrices.items()} == {
        BUYS: (6, 8),
        RATED: (8, 6),
        KNOWS: (6, 6),
    }
    again = pgs.Graph.from_scipy(matrices, num_nodes={"shop": 3})
    assert dict(again.num_nodes) == {"shop": 3, "user": 6, "item": 8}
    for kind in graph.edge_types:
        assert state(again[kind])[2:5] == state(graph[kind])[2:5]
    assert again[BUYS].edata["weight"].tolist() == graph[BUYS].edata["weight"].tolist()
    assert again[KNOWS].edata["weight"].tolist() == [1] * 6


@pytest.mark.parametrize("format", ["csc", "csr", "coo", "lil"])
def test_matrices_of_relations(format: str) -> None:
    buys = sp.coo_matrix(([1.0, 2, 3], ([0, 1, 0], [2, 0, 0])), (2, 3)).asformat(format)
    graph = pgs.Graph.from_scipy(
        {BUYS: buys, KNOWS: sp.eye(2, format="csr")},
        node_data={"item": {"x": [1, 2, 3]}},
    )
    assert dict(graph.num_nodes) == {"user": 2, "item": 3}
    assert graph.ndata["item"]["x"].tolist() == [1, 2, 3]
    relation = graph[BUYS]
    weights = relation.edata["weight"].tolist()
    ids = range(3) if relation.edge_ids is None else relation.edge_ids.tolist()
    dst = np.repeat(np.arange(3), np.diff(relation.indptr.tolist()[:4]))
    edges = zip(relation.indices.tolist(), dst.tolist(), [weights[e] for e in ids], strict=True)
    assert sorted(edges) == [(0, 0, 3), (0, 2, 1), (1, 0, 2)]


def test_matrices_that_do_not_fit() -> None:
    buys = sp.eye(2, 3, format="csr")
    with pytest.raises(
        ValueError,
        match=r"matrices\[\('item', 'rated', 'user'\)\]: expected 3 rows, as matrices\[\('user', "
        r"'buys', 'item'\)\] has nodes of type 'item', got 2",
    ):
        pgs.Graph.from_scipy({BUYS: buys, RATED: buys})
    with pytest.raises(ValueError, match=r"\]: expected 5 columns, as num_nodes has nodes of type"):
        pgs.Graph.from_scipy({BUYS: buys}, num_nodes={"item": 5})
    with pytest.raises(
        TypeError, match=r"\]: expected a scipy.sparse matrix or array, got ndarray"
    ):
        pgs.Graph.from_scipy({BUYS: np.eye(3)})
    with pytest.raises(ValueError, match="num_nodes: expected None for a matrix"):
        pgs.Graph.from_scipy(buys, num_nodes={"item": 5})
    with pytest.raises(ValueError, match="bipartite: expected None in from_scipy of a heterogen"):
        pgs.Graph.from_scipy({BUYS: buys}, bipartite=True)
    wide = sp.csc_array((np.ones(1), np.array([0]), np.array([0, 1])), (1, 1))
    wide.indices, wide.indptr = wide.indices.astype("int64"), wide.indptr.astype("int64")
    both = {KNOWS: wide, ("user", "likes", "user"): sp.eye(1, format="csc")}
    assert pgs.Graph.from_scipy(both).dtype == "int64"


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
def test_two_kinds_of_nodes_are_not_one() -> None:
    torch, pyg = partner("torch"), partner("torch_geometric")
    way = "whose rows and columns are nodes of two kinds; Graph.from_pyg takes a HeteroData"
    matrix = torch.eye(3)[:2].to_sparse_csr()
    data = pyg.data.Data(adj_t=matrix, num_nodes=3)
    with pytest.raises(ValueError, match=rf"data.adj_t: expected a square .* \(2, 3\), {way}"):
        pgs.Graph.from_pyg(data)
    data = pyg.data.Data(
        x=(torch.zeros(2, 1), torch.zeros(3, 1)), edge_index=torch.tensor([[0], [1]])
    )
    with pytest.raises(ValueError, match=r"data.x: expected one tensor, got two kinds of nodes"):
        pgs.Graph.from_pyg(data)
    if hasattr(pyg, "EdgeIndex"):
        index = pyg.EdgeIndex([[0, 1], [2, 0]], sparse_size=(2, 3))
        data = pyg.data.Data(edge_index=index, num_nodes=3)
        with pytest.raises(ValueError, match=r"data.edge_index: expected a square .* \(2, 3\)"):
            pgs.Graph.from_pyg(data)


def test_networkx_shows_types() -> None:
    partner("networkx")
    graph = typed()
    theirs = graph.to_networkx()
    assert theirs.number_of_nodes() == 17
    assert theirs.nodes["user", 2]["node_type"] == "user"
    assert theirs.nodes["user", 2]["x"] == graph.ndata["user"]["x"].tolist()[2]
    edges = {
        (u, v, attributes["edge_id"])
        for u, v, attributes in theirs.edges(data=True)
        if attributes["edge_type"] == BUYS
    }
    relation = graph[BUYS]
    dst = np.repeat(np.arange(len(relation.indptr) - 1), np.diff(relation.indptr.numpy()))
    expected = zip(relation.indices.tolist(), dst.tolist(), relation.edge_ids.tolist(), strict=True)
    assert edges == {(("user", u), ("item", v), e) for u, v, e in expected}
    named = pgs.Graph.from_coo({("a", "to", "b"): (["x"], [10**12])}, renumber=True)
    assert list(named.to_networkx().edges()) == [(("a", "x"), ("b", 10**12))]
