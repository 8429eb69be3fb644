from __future__ import annotations

import gc
import weakref
from array import array
from importlib.util import find_spec
from types import SimpleNamespace

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from graphs import cases, circulant
from hypothesis import given

import pygsampler as pgs

# Rows: 0 <- {1, 2}, 1 <- {0}, 2 <- {}, 3 <- {0, 0, 3}
INDPTR = [0, 2, 3, 3, 6]
INDICES = [1, 2, 0, 0, 0, 3]
EDGES = sorted([(1, 0), (2, 0), (0, 1), (0, 3), (0, 3), (3, 3)])


def edges(graph: pgs.Graph) -> list[tuple[int, int, int]]:
    """(source, target, edge id) of every edge, as sampling finds them."""
    seeds = range(graph.num_nodes)
    block = pgs.PGSampler([-1], seed=0).sample(graph, seeds).blocks[0]
    nodes = block.src_nodes.tolist()
    src, dst = block.coo()
    return [(nodes[u], nodes[v], e) for u, v, e in zip(src, dst, block.edge_ids, strict=True)]


def pairs(graph: pgs.Graph) -> list[tuple[int, int]]:
    return sorted((u, v) for u, v, _ in edges(graph))


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("indptr_dtype", ["int32", "int64"])
def test_a_csc_is_used_where_it_lies(dtype, indptr_dtype):
    indptr = np.array(INDPTR, dtype=indptr_dtype)
    indices = np.array(INDICES, dtype=dtype)
    edge_ids = np.arange(10, 16, dtype="int64")
    graph = pgs.Graph.from_csc(indptr, indices, edge_ids=edge_ids)
    assert (graph.num_nodes, graph.num_edges, graph.dtype, graph.device) == (4, 6, dtype, "cpu")
    assert graph.indptr.numpy().ctypes.data == indptr.ctypes.data
    assert graph.indices.numpy().ctypes.data == indices.ctypes.data
    assert graph.edge_ids.numpy().ctypes.data == edge_ids.ctypes.data
    assert graph.indptr.dtype == indptr_dtype
    assert pairs(graph) == EDGES
    assert [e for *_, e in edges(graph)] == list(range(10, 16))
    assert repr(graph) == f"Graph(num_nodes=4, num_edges=6, dtype={dtype}, device=cpu)"


def test_without_ids_an_edge_is_its_place():
    graph = pgs.Graph.from_csc(INDPTR, INDICES)
    assert graph.edge_ids is None
    assert [e for *_, e in edges(graph)] == list(range(6))


def test_vertices_past_the_last_row_have_no_in_edges():
    graph = pgs.Graph.from_csc([0, 1], [5], num_nodes=7)
    assert graph.num_nodes == 7
    assert edges(graph) == [(5, 0, 0)]
    empty = pgs.Graph.from_csc([0], [])
    assert (empty.num_nodes, empty.num_edges) == (0, 0)
    assert pgs.Graph.from_csc([0], [], num_nodes=3).num_nodes == 3


def test_read_only_memory_stays_read_only():
    indices = np.array(INDICES)
    indices.flags.writeable = False
    graph = pgs.Graph.from_csc(np.array(INDPTR), indices)
    assert graph.indices.readonly
    assert not graph.indptr.readonly
    assert not graph.indices.numpy().flags.writeable


@given(case=cases(), bits=st.sampled_from(["i", "q"]), given_nodes=st.booleans())
def test_coo_gives_the_edges_in_a_stable_order(case, bits, given_nodes):
    rows = range(len(case.indptr) - 1)
    dst = [v for v in rows for _ in range(case.indptr[v], case.indptr[v + 1])]
    src = case.indices
    order = case.edge_ids or list(range(len(src)))
    src, dst = [src[i] for i in order], [dst[i] for i in order]
    num_nodes = case.num_nodes if given_nodes else None
    graph = pgs.Graph.from_coo(array(bits, src), array(bits, dst), num_nodes=num_nodes)
    assert graph.num_nodes == (case.num_nodes if given_nodes else max([*src, *dst], default=-1) + 1)
    found = edges(graph)
    assert found == sorted(zip(src, dst, range(len(src)), strict=True), key=lambda e: (e[1], e[2]))
    assert graph.dtype == {"i": "int32", "q": "int64"}[bits]


def test_coo_copies_so_the_arrays_may_change():
    src, dst = np.array([0, 1, 2]), np.array([1, 2, 3])
    graph = pgs.Graph.from_coo(src, dst)
    src[:] = dst[:] = 99
    assert edges(graph) == [(0, 1, 0), (1, 2, 1), (2, 3, 2)]


def test_a_device_is_named_as_torch_names_it():
    graph = circulant(5, 2)
    for device in ("cpu", "cpu:0", torch.device("cpu")):
        assert graph.to(device) is graph
    for device in ("mps", torch.device("meta"), "cuda:x", "cuda:-1", "", -1):
        with pytest.raises(ValueError, match=r'device: expected "cpu", "cuda", .* got '):
            graph.to(device)
    for device in (None, True, 1.5, graph):
        with pytest.raises(TypeError, match=r'device: expected "cpu", "cuda", .* got '):
            graph.to(device)
    with pytest.raises(ValueError, match='device: expected a CUDA device, got "cpu"'):
        graph.pin("cpu")
    assert not graph.pinned


def test_a_closed_graph_lets_go_and_refuses():
    indices = torch.tensor(INDICES)
    alive = weakref.ref(indices)
    graph = pgs.Graph.from_csc(INDPTR, indices)
    batch = pgs.PGSampler([2], seed=0).sample(graph, [0])
    del indices
    graph.close()
    graph.close()
    gc.collect()
    assert alive() is None
    assert batch.num_edges == 2
    assert repr(graph) == "Graph(closed)"
    sampler = pgs.PGSampler([2], seed=0)
    for use in (
        lambda: graph.indices,
        lambda: graph.indptr,
        lambda: graph.edge_ids,
        lambda: graph.dtype,
        lambda: graph.num_edges,
        lambda: graph.to("cpu"),
        lambda: sampler.sample(graph, [0]),
        lambda: graph.__enter__(),
    ):
        with pytest.raises(pgs.errors.ClosedError, match="graph: expected an open graph, got one"):
            use()


def test_a_with_block_closes():
    with circulant(5, 2) as graph:
        assert pgs.PGSampler([2], seed=0).sample(graph, [0]).num_edges == 2
    with pytest.raises(pgs.errors.ClosedError):
        pgs.PGSampler([2], seed=0).sample(graph, [0])


def test_it_is_made_by_its_constructors_only():
    with pytest.raises(TypeError, match="Graph: use open, from_csc, from_coo, from_dgl"):
        pgs.Graph()


def test_a_tensor_that_torch_moves_is_found_again():
    indptr, indices = torch.tensor(INDPTR), torch.tensor(INDICES)
    graph = pgs.Graph.from_csc(indptr, indices)
    before = edges(graph)
    address = indices.data_ptr()
    indices.share_memory_()
    assert indices.data_ptr() != address
    assert edges(graph) == before
    assert graph.indices.torch().data_ptr() == indices.data_ptr()


def test_a_tensor_that_torch_resizes_is_checked_again():
    indptr, indices = torch.tensor(INDPTR), torch.tensor(INDICES)
    graph = pgs.Graph.from_csc(indptr, indices)
    sampler = pgs.PGSampler([2], seed=0)
    sampler.sample(graph, [0])
    indices.resize_(1 << 20)
    with pytest.raises(ValueError, match="indptr"):
        sampler.sample(graph, [0])
    indices.resize_(6)
    indices[:] = torch.tensor(INDICES)


# ---- DGL ----


@pytest.mark.parametrize("idtype", [torch.int32, torch.int64])
def test_a_dgl_graph_is_taken_by_its_own_csc(dgl, idtype):
    src, dst = torch.tensor([1, 0, 2, 0, 3, 0]), torch.tensor([0, 3, 0, 1, 3, 3])
    theirs = dgl.graph((src, dst), num_nodes=6, idtype=idtype)
    graph = pgs.Graph.from_dgl(theirs)
    assert (graph.num_nodes, graph.num_edges) == (6, 6)
    assert graph.dtype == str(idtype).removeprefix("torch.")
    found = {e: (u, v) for u, v, e in edges(graph)}
    assert found == {i: (int(u), int(v)) for i, (u, v) in enumerate(zip(src, dst, strict=True))}
    indptr, indices, _ = theirs.adj_tensors("csc")
    assert graph.indptr.torch().data_ptr() == indptr.data_ptr()
    assert graph.indices.torch().data_ptr() == indices.data_ptr()


def test_a_dgl_graph_made_of_a_csc_has_no_ids(dgl):
    parts = (torch.tensor(INDPTR), torch.tensor(INDICES), torch.tensor([], dtype=torch.int64))
    graph = pgs.Graph.from_dgl(dgl.graph(("csc", parts)))
    assert graph.edge_ids is None or graph.edge_ids.tolist() == list(range(6))
    assert pairs(graph) == EDGES


def test_the_graph_outlives_dgls(dgl):
    graph = pgs.Graph.from_dgl(dgl.graph((torch.tensor(INDICES), torch.tensor([0, 0, 1, 3, 3, 3]))))
    gc.collect()
    assert pairs(graph) == EDGES


def test_an_empty_dgl_graph(dgl):
    graph = pgs.Graph.from_dgl(dgl.graph(([], []), num_nodes=3))
    assert (graph.num_nodes, graph.num_edges) == (3, 0)
    assert edges(graph) == []


def test_other_dgl_graphs_are_refused(dgl):
    block = dgl.to_block(dgl.graph(([0, 1], [1, 2])))
    with pytest.raises(TypeError, match="g: expected a DGL graph, got a block"):
        pgs.Graph.from_dgl(block)
    with pytest.raises(TypeError, match=r"g: expected a dgl.DGLGraph of DGL 1.1 or later, got"):
        pgs.Graph.from_dgl(circulant(3, 1))
    with pytest.raises(ValueError, match="g: expected a graph that allows the csc format"):
        pgs.Graph.from_dgl(dgl.graph(([0, 1], [1, 2])).formats("coo"))


# ---- PyG ----

has_pyg = find_spec("torch_geometric") is not None
pyg = pytest.mark.skipif(not has_pyg, reason="this environment has no PyG")
beta = pytest.mark.filterwarnings("ignore:Sparse")


def test_edge_index_is_sources_over_targets():
    data = SimpleNamespace(edge_index=torch.tensor([[1, 0, 3], [0, 1, 3]]), num_nodes=5)
    graph = pgs.Graph.from_pyg(data)
    assert graph.num_nodes == 5
    assert edges(graph) == [(1, 0, 0), (0, 1, 1), (3, 3, 2)]


@beta
def test_a_transposed_adjacency_is_our_csc():
    class SparseTensor:
        def csr(self):
            return torch.tensor(INDPTR), torch.tensor(INDICES), None

    graph = pgs.Graph.from_pyg(SimpleNamespace(adj_t=SparseTensor(), num_nodes=4))
    assert pairs(graph) == EDGES
    rows = torch.sparse_csr_tensor(
        torch.tensor(INDPTR), torch.tensor(INDICES), torch.ones(6), size=(4, 4)
    )
    graph = pgs.Graph.from_pyg(SimpleNamespace(adj_t=rows, num_nodes=4))
    assert pairs(graph) == EDGES
    assert graph.edge_ids is None


@pyg
@beta
def test_a_pyg_graph(torch_geometric):
    from torch_geometric.data import Data
    from torch_geometric.transforms import ToSparseTensor

    edge_index = torch.tensor([[1, 0, 2, 0, 3], [0, 3, 0, 1, 3]])
    data = Data(edge_index=edge_index, num_nodes=6)
    graph = pgs.Graph.from_pyg(data)
    assert graph.num_nodes == 6
    found = {e: (u, v) for u, v, e in edges(graph)}
    assert found == {i: (int(u), int(v)) for i, (u, v) in enumerate(edge_index.t())}
    sparse = ToSparseTensor(layout=torch.sparse_csr)(data)
    assert pairs(pgs.Graph.from_pyg(sparse)) == pairs(graph)


@pyg
def test_an_edge_index_of_pygs_own_kind(torch_geometric):
    from torch_geometric import EdgeIndex
    from torch_geometric.data import Data

    edge_index = EdgeIndex([[1, 0, 2], [0, 1, 0]], sparse_size=(4, 4))
    graph = pgs.Graph.from_pyg(Data(edge_index=edge_index, num_nodes=4))
    assert pairs(graph) == [(0, 1), (1, 0), (2, 0)]


@pyg
def test_a_pyg_graph_without_edge_types_is_refused(torch_geometric):
    from torch_geometric.data import HeteroData

    with pytest.raises(ValueError, match="edges: expected at least one edge type, got none"):
        pgs.Graph.from_pyg(HeteroData())


def test_other_pyg_data_is_refused():
    with pytest.raises(TypeError, match="data: expected edge_index or adj_t, got"):
        pgs.Graph.from_pyg(SimpleNamespace(num_nodes=3))
    data = SimpleNamespace(edge_index=torch.zeros(3, 2, dtype=torch.int64), num_nodes=3)
    with pytest.raises(ValueError, match=r"data.edge_index: expected shape \(2, E\), got \(3, 2\)"):
        pgs.Graph.from_pyg(data)
    dense = SimpleNamespace(adj_t=torch.zeros(3, 3), num_nodes=3)
    with pytest.raises(TypeError, match=r"data.adj_t: expected a sparse CSR matrix, got torch."):
        pgs.Graph.from_pyg(dense)


# ---- SciPy ----


@pytest.mark.parametrize("container", [sp.coo_matrix, sp.coo_array])
@pytest.mark.parametrize("bipartite", [False, True])
@pytest.mark.parametrize("format", ["csc", "csr", "coo", "lil", "dok"])
def test_a_scipy_matrix_has_its_entries_as_edges(container, format, bipartite):
    src, dst = np.array([1, 2, 0, 0, 3]), np.array([0, 0, 1, 3, 3])
    weights = np.arange(100, 105)
    shape = (4, 6) if bipartite else (6, 6)
    matrix = container((weights, (src, dst)), shape=shape).asformat(format)
    if bipartite:
        with pytest.raises(ValueError, match=r"m: expected a square matrix, got shape \(4, 6\)"):
            pgs.Graph.from_scipy(matrix)
    graph = pgs.Graph.from_scipy(matrix, bipartite=bipartite)
    # The columns are numbered behind the rows.
    dst += 4 * bipartite
    assert graph.num_nodes == (10 if bipartite else 6)
    data = matrix.data if format in ("csc", "csr", "coo") else matrix.tocoo().data
    found = sorted((u, v, int(data[e])) for u, v, e in edges(graph))
    assert found == sorted(zip(src.tolist(), dst.tolist(), weights.tolist(), strict=True))


def test_a_csc_matrix_is_not_copied():
    matrix = sp.random(30, 30, density=0.2, format="csc", random_state=0)
    graph = pgs.Graph.from_scipy(matrix)
    assert graph.indices.numpy().ctypes.data == matrix.indices.ctypes.data
    assert graph.edge_ids is None


def test_repeated_entries_and_stored_zeros_are_edges():
    matrix = sp.coo_matrix(([0, 1, 2], ([0, 0, 0], [1, 1, 2])), shape=(3, 3))
    assert edges(pgs.Graph.from_scipy(matrix)) == [(0, 1, 0), (0, 1, 1), (0, 2, 2)]
    rows = sp.csr_matrix(([0, 1, 2], [1, 1, 2], [0, 3, 3, 3]), shape=(3, 3))
    assert edges(pgs.Graph.from_scipy(rows)) == [(0, 1, 0), (0, 1, 1), (0, 2, 2)]


def test_other_matrices_are_refused():
    with pytest.raises(TypeError, match=r"m: expected a scipy.sparse matrix or array, got ndarray"):
        pgs.Graph.from_scipy(np.eye(3))
