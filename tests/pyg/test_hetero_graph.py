"""``Graph.from_pyg``."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from pyg_reference import random_data
from torch_geometric.data import Data, HeteroData
from torch_geometric.loader import utils
from torch_geometric.sampler import NodeSamplerInput
from torch_geometric.utils import coalesce

import pygsampler as pgs
from pygsampler.pyg import HGTLoader, NeighborLoader, PGSampler

WRITES, CITES = ("author", "writes", "paper"), ("paper", "cites", "paper")
COUNTS = {"author": 20, "paper": 30}


def test_from_hetero_data() -> None:
    data = HeteroData()
    data["a"].x = torch.randn(5, 2)
    data["b"].num_nodes = 3
    data["a", "x", "b"].edge_index = torch.tensor([[0, 1, 4], [0, 2, 2]])
    data["a", "x", "b"].w = torch.rand(3)
    graph = pgs.Graph.from_pyg(data)
    assert dict(graph.num_nodes) == {"a": 5, "b": 3}
    assert torch.equal(graph.ndata["a"]["x"].torch(), data["a"].x)
    assert list(graph.edata["a", "x", "b"]) == ["w"]
    batch = pgs.PGSampler([-1]).sample(graph, {"b": [2]})
    assert batch.input_nodes["a"].tolist() == [1, 4]
    assert batch.blocks[0]["a", "x", "b"].edge_ids.tolist() == [1, 2]
    assert pgs.Graph.from_pyg(random_data()).is_homogeneous


class SparseTensor:
    """What torch-sparse has, as far as it is asked for."""

    def __init__(self, matrix: Any) -> None:
        self._matrix = matrix.to_sparse_csr()

    def csr(self) -> tuple[Any, Any, Any]:
        of = self._matrix
        return of.crow_indices(), of.col_indices(), of.values()

    def sparse_sizes(self) -> tuple[int, ...]:
        return tuple(self._matrix.shape)

    def device(self) -> torch.device:
        return self._matrix.device

    @property
    def storage(self) -> Any:
        return SimpleNamespace(value=self._matrix.values)


FORMS = {
    "csr": lambda matrix: matrix.to_sparse_csr(),
    "csc": lambda matrix: matrix.to_sparse_csc(),
    "SparseTensor": SparseTensor,
}


def typed() -> tuple[HeteroData, dict[Any, Any]]:
    """Two relations by their lists, in the order of targets, and the same as matrices."""
    random = torch.Generator().manual_seed(0)
    data, matrices = HeteroData(), {}
    for kind, count in COUNTS.items():
        data[kind].x = torch.arange(count)
    for kind in (WRITES, CITES):
        size = COUNTS[kind[2]], COUNTS[kind[0]]
        ends = [torch.randint(0, COUNTS[kind[end]] - 3, (150,), generator=random) for end in (0, 2)]
        data[kind].edge_index = coalesce(torch.stack(ends), sort_by_row=False)
        data[kind].edge_weight = torch.rand(data[kind].num_edges, generator=random)
        at = data[kind].edge_index.flip(0)
        matrices[kind] = torch.sparse_coo_tensor(at, data[kind].edge_weight, size).coalesce()
    return data, matrices


@pytest.mark.filterwarnings("ignore:Sparse CS. tensor support is in beta")
@pytest.mark.filterwarnings("ignore:Sparse invariant checks are implicitly disabled")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kinds", [(WRITES, CITES), (CITES,), (WRITES,)])
def test_edges_in_matrices(form: str, kinds: Any) -> None:
    """A sample, ids of edges and weights are those of the edges that the matrices are of."""
    data, matrices = typed()
    want = pgs.Graph.from_pyg(data)
    given = data.clone()
    for kind in kinds:
        del given[kind].edge_index
        del given[kind].edge_weight
        given[kind].adj_t = FORMS[form](matrices[kind])
        # It may be in another order.
        given[kind].rank = torch.arange(matrices[kind]._nnz())
    del given["author"].x
    if WRITES not in kinds:
        given["author"].num_nodes = 20
    graph = pgs.Graph.from_pyg(given)
    assert graph.edge_types == want.edge_types
    assert dict(graph.num_nodes) == dict(want.num_nodes) == COUNTS
    for kind in (WRITES, CITES):
        assert list(graph.edata[kind]) == ["edge_weight"]
        weights = graph.edata[kind]["edge_weight"].torch()
        assert weights.equal(data[kind].edge_weight)
    sampler = pgs.PGSampler([3, 3], prob="edge_weight", seed=1)
    batches = [sampler.sample(of, {"paper": [1, 2, 3]}, epoch=0, batch=0) for of in (want, graph)]
    found = [
        [
            (b[kind].indices.tolist(), b[kind].indptr.tolist(), b[kind].edge_ids.tolist())
            for b in batch.blocks
            for kind in (WRITES, CITES)
        ]
        for batch in batches
    ]
    assert found[0] == found[1]
    seeds = NodeSamplerInput(None, torch.tensor([1, 2, 3]), input_type="paper")
    given["author"].num_nodes = 20
    outs = []
    for each in (data, given):
        of = PGSampler(each, [3, 3], seed=1)
        of.set_epoch(0)
        outs.append(of.sample_from_nodes(seeds))
    for kind in (WRITES, CITES):
        assert outs[0].row[kind].equal(outs[1].row[kind])
        assert outs[0].edge[kind].equal(outs[1].edge[kind])
    assert sum(map(len, outs[0].edge.values()))


@pytest.mark.filterwarnings("ignore:Sparse CS. tensor support is in beta")
@pytest.mark.filterwarnings("ignore:Sparse invariant checks are implicitly disabled")
@pytest.mark.parametrize("make", [NeighborLoader, HGTLoader])
def test_batches_of_torch_sparse(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyG makes such matrices of ours, of the batch's edges and with their values."""
    data, matrices = typed()
    given = data.clone()
    for kind in matrices:
        del given[kind].edge_index, given[kind].edge_weight
        given[kind].adj_t = SparseTensor(matrices[kind])
    monkeypatch.setattr(utils, "SparseTensor", lambda **of: SimpleNamespace(**of))
    found = []
    for each in (data, given):
        loader = make(each, [4, 3], "paper", batch_size=10, seed=3)
        loader.set_epoch(0)
        found.append(list(loader))
    assert len(found[0]) == 3
    for plain, sparse in zip(*found, strict=True):
        for kind in matrices:
            matrix = sparse[kind].adj_t
            assert "edge_index" not in sparse[kind]
            assert plain[kind].edge_index.equal(torch.stack([matrix.col, matrix.row]))
            assert plain[kind].edge_weight.equal(matrix.value)
    if make is HGTLoader:
        return
    with pytest.raises(ValueError, match="edge_index: expected 'coo' with an adj_t of torch-spars"):
        make(given, [4, 3], "paper", batch_size=10, edge_index="edge_index")


def test_matrices_that_are_not_taken() -> None:
    """As ``Graph.from_pyg`` says it, and what to do."""
    data, matrices = typed()
    data[CITES].adj_t = matrices[CITES]
    text = (
        r"data.*cites.*adj_t: expected a sparse CSR matrix, got torch.sparse_coo; .*to_sparse_csr"
    )
    with pytest.raises(TypeError, match=text):
        pgs.Graph.from_pyg(data)
    plain = Data(adj_t=matrices[CITES], num_nodes=30)
    with pytest.raises(TypeError, match=r"data.adj_t: expected a sparse CSR .*to_sparse_csr"):
        pgs.Graph.from_pyg(plain)
    data[CITES].adj_t = "a matrix"
    with pytest.raises(TypeError, match=r"adj_t: expected a sparse CSR matrix, got str$"):
        pgs.Graph.from_pyg(data)
    del data[CITES].adj_t, data[CITES].edge_index
    with pytest.raises(ValueError, match=r"cites.*: expected edge_index or adj_t, got"):
        pgs.Graph.from_pyg(data)
