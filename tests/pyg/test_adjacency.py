"""Data whose edges are a matrix of torch.sparse, as PyG makes without torch-sparse."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from pyg_reference import EDGES, check_edges, content, random_data
from torch_geometric.data import Data, HeteroData
from torch_geometric.transforms import ToSparseTensor
from torch_geometric.utils import coalesce

from pygsampler.pyg import HGTLoader, LinkNeighborLoader, NeighborLoader, PGSampler

pytestmark = [
    # Torch's words on making such a matrix, which PyG does.
    pytest.mark.filterwarnings("ignore:Sparse CS. tensor support is in beta"),
    pytest.mark.filterwarnings("ignore:Sparse invariant checks are implicitly disabled"),
]

LAYOUTS = [None, torch.sparse_csr, torch.sparse_coo]


def simple(**values: Any) -> Any:
    """A graph without parallel edges, its edges in the order of their targets."""
    data = random_data()
    edge_index = coalesce(data.edge_index, sort_by_row=False)
    return Data(x=data.x, y=data.y, edge_index=edge_index, **values)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("make", [NeighborLoader, LinkNeighborLoader])
def test_batches_are_those_of_the_edges(make: Any, layout: Any) -> None:
    """Values are the batch's edge_weight, beside the attributes that the transform leaves."""
    data = simple()
    data.edge_attr = torch.arange(data.num_edges)
    data.edge_weight = torch.rand(data.num_edges)
    transformed = ToSparseTensor(layout=layout)(data.clone())
    drawn = []
    for each in (data, transformed):
        loader = make(each, [4, 3], batch_size=50, seed=3)
        loader.set_epoch(0)
        batches = list(loader)
        for batch in batches:
            check_edges(data, batch)
            assert batch.edge_weight.equal(data.edge_weight[batch.e_id])
            assert "adj_t" not in batch
            batch.num_nodes = len(batch.n_id)
        drawn.append([content(batch) for batch in batches])
    assert drawn[0] == drawn[1]
    assert "adj_t" in transformed
    assert "edge_index" not in transformed


@pytest.mark.parametrize("layout", LAYOUTS)
def test_matrices_of_types(layout: Any) -> None:
    """Batches are those of the edges; the numbers of nodes are the matrices'."""
    random, counts = torch.Generator().manual_seed(0), {"paper": 30, "author": 20}
    data = HeteroData()
    data["paper"].x = torch.arange(30)
    data["author"].num_nodes = 20
    for kind in (("author", "writes", "paper"), ("paper", "cites", "paper")):
        ends = [torch.randint(0, counts[kind[end]] - 3, (150,), generator=random) for end in (0, 2)]
        data[kind].edge_index = coalesce(torch.stack(ends), sort_by_row=False)
        data[kind].edge_weight = torch.rand(data[kind].num_edges, generator=random)
    matrix = ToSparseTensor(layout=layout)(data.clone())
    del matrix["author"].num_nodes
    link = "author", "writes", "paper"
    for make, about in (
        (NeighborLoader, ([4, 3], "paper")),
        (LinkNeighborLoader, ([4, 3], link)),
        (HGTLoader, ([8, 8], "paper")),
    ):
        drawn = []
        for each in (data, matrix):
            loader = make(each, *about, batch_size=10, seed=3)
            loader.set_epoch(0)
            batches = list(loader)
            for batch in batches:
                for kind in data.edge_types:
                    assert "adj_t" not in batch[kind]
                    weights = data[kind].edge_weight[batch[kind].e_id]
                    assert batch[kind].edge_weight.equal(weights)
            drawn.append([(b["author"].num_nodes, b[link].edge_index.tolist()) for b in batches])
        assert drawn[0] == drawn[1]
    sampler = PGSampler(matrix, [2], weight_attr="edge_weight")
    assert dict(sampler.num_nodes) == counts
    assert "adj_t" in matrix[link]
    matrix["author"].num_nodes, matrix[link].adj_t = 20, "a matrix"
    with pytest.raises(ValueError, match=r"data.*writes.*: expected edge_index .* or an adj_t of"):
        PGSampler(matrix, [2])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_without_weights_all_are_one(layout: Any) -> None:
    data = simple()
    loader = NeighborLoader(ToSparseTensor(layout=layout)(data.clone()), [5], batch_size=50)
    for batch in loader:
        assert batch.n_id[batch.edge_index].equal(data.edge_index[:, batch.e_id])
        assert batch.edge_weight.equal(torch.ones(len(batch.e_id)))


def test_rows_of_values_are_edge_attr() -> None:
    data = simple()
    data.edge_attr = torch.rand(data.num_edges, 3)
    loader = NeighborLoader(ToSparseTensor(attr="edge_attr")(data.clone()), [5], batch_size=50)
    for batch in loader:
        assert batch.edge_attr.equal(data.edge_attr[batch.e_id])


def test_entries_in_any_order() -> None:
    """A matrix that is not coalesced has parallel edges too."""
    data = random_data()
    source, target = data.edge_index
    size = (data.num_nodes, data.num_nodes)
    weight = torch.arange(float(data.num_edges))
    matrix = torch.sparse_coo_tensor(torch.stack([target, source]), weight, size)
    bare = Data(adj_t=matrix, num_nodes=data.num_nodes)
    assert PGSampler(bare, [5]).num_nodes == data.num_nodes
    for batch in NeighborLoader(bare, [5], batch_size=50):
        assert batch.n_id[batch.edge_index].equal(data.edge_index[:, batch.e_id])
        assert batch.edge_weight.equal(weight[batch.e_id])
        assert batch.num_nodes == len(batch.n_id)
    columns = Data(adj_t=matrix.coalesce().to_sparse_csc(), num_nodes=data.num_nodes)
    loader = NeighborLoader(columns, [-1], batch_size=50)
    for batch in loader:
        dense = loader.data.edge_index[:, batch.e_id]
        assert batch.n_id[batch.edge_index].equal(dense)
        assert batch.edge_weight.equal(matrix.to_dense()[dense[1], dense[0]])


def test_attributes_of_edges_that_were_merged() -> None:
    """ToSparseTensor keeps an edge_attr for each of the parallel edges that it merges."""
    data = ToSparseTensor()(random_data())
    with pytest.raises(ValueError, match=r"data.edge_attr: expected one for each of \d+ edges"):
        NeighborLoader(data, [5])


def test_a_sampler_of_another_matrix() -> None:
    data = ToSparseTensor()(simple())
    sampler = PGSampler(random_data(), [5])
    with pytest.raises(ValueError, match=f"data: expected {EDGES} edges"):
        NeighborLoader(data, [5], neighbor_sampler=sampler)


def test_a_layout_that_is_not_taken() -> None:
    data = Data(adj_t=torch.ones(4, 4).to_sparse_bsr((2, 2)), num_nodes=4)
    with pytest.raises(TypeError, match=r"data.adj_t: expected a sparse CSR matrix, got .*bsr"):
        NeighborLoader(data, [5])
