"""PGSampler in PyG's loaders with a GPU: the CPU's batches, wherever edges and features are."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("torch_geometric", reason="needs PyG")

from torch_geometric.data import Data  # noqa: E402
from torch_geometric.loader import NodeLoader  # noqa: E402

import pygsampler as pgs  # noqa: E402
from pygsampler.pyg import LinkNeighborLoader, NeighborLoader, PGSampler  # noqa: E402

# PyG and torch warn of each other, and Python of the forks of torch's loader.
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("gpu")]
NODES, EDGES = 500, 4000
OPTIONS: list[dict[str, Any]] = [
    {},
    {"replace": True},
    {"disjoint": True},
    {"subgraph_type": "bidirectional"},
    {"subgraph_type": "induced"},
]


def make_data(edges_on: str = "cpu", features_on: str = "cpu") -> Any:
    random = torch.Generator().manual_seed(0)
    src = torch.randint(0, NODES, (EDGES,), generator=random)
    dst = (torch.rand(EDGES, generator=random) ** 3 * NODES * 0.9).long()
    return Data(
        x=torch.randn(NODES, 4, generator=random).to(features_on),
        edge_attr=torch.arange(EDGES).to(features_on),
        edge_index=torch.stack([src, dst]).to(edges_on),
    )


def content(batch: Any) -> dict[str, Any]:
    """A batch as something to compare: of the reverse of an edge PyG keeps any id."""
    return {k: v.tolist() if hasattr(v, "tolist") else v for k, v in batch.to_dict().items()}


@pytest.mark.parametrize("features_on", ["cpu", "cuda"])
@pytest.mark.parametrize("edges_on", ["cpu", "cuda"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_batches_of_the_cpu(options: dict[str, Any], edges_on: str, features_on: str) -> None:
    seeds = torch.cat([torch.arange(300), torch.tensor([7, 7, 3, 7])])
    common = {"input_nodes": seeds, "batch_size": 76, "seed": 3, **options}
    on_cpu = NeighborLoader(make_data(), [5, 4], **common)
    on_gpu = NeighborLoader(make_data(edges_on, features_on), [5, 4], device="cuda", **common)
    for loader in (on_cpu, on_gpu):
        loader.set_epoch(1)
    for expected, found in zip(on_cpu, on_gpu, strict=True):
        assert found.n_id.is_cuda
        assert found.e_id.is_cuda
        assert found.x.device.type == found.edge_attr.device.type == features_on
        assert found.edge_index.device.type == edges_on
        if options.get("subgraph_type") == "bidirectional":
            assert found.n_id.cpu().equal(expected.n_id)
            assert found.edge_index.cpu().equal(expected.edge_index)
        else:
            assert content(found) == content(expected)


@pytest.mark.parametrize("mode", ["binary", "triplet"])
@pytest.mark.parametrize("disjoint", [False, True])
def test_links(disjoint: bool, mode: str) -> None:
    common = {"neg_sampling": mode, "batch_size": 500, "seed": 3, "disjoint": disjoint}
    on_cpu = LinkNeighborLoader(make_data(), [4, 3], **common)
    on_gpu = LinkNeighborLoader(make_data("cuda", "cuda"), [4, 3], **common)
    for loader in (on_cpu, on_gpu):
        loader.set_epoch(1)
    for expected, found in zip(on_cpu, on_gpu, strict=True):
        assert content(found) == content(expected)
        names = ("edge_label_index", "edge_label") if mode == "binary" else ("dst_neg_index",)
        assert all(found[name].is_cuda for name in names)


def test_data_on_a_gpu_is_sampled_there() -> None:
    data = make_data("cuda", "cuda")
    assert PGSampler(data, [2]).device == "cuda:0"
    assert PGSampler(data, [2], device="cpu").device == "cpu"


def test_workers_sample_on_the_cpu() -> None:
    data = make_data("cuda", "cuda")
    loader = NeighborLoader(data, [5, 4], batch_size=100, num_workers=2)
    assert loader.node_sampler.device == "cpu"
    for batch in loader:
        assert batch.x.is_cuda
        assert batch.x.equal(data.x[batch.n_id])


def test_a_pinned_graph() -> None:
    data = make_data()
    graph = pgs.Graph.from_pyg(data)
    with graph.pin() as pinned:
        for kind in ("directional", "induced"):
            drawn = []
            for each in (graph, pinned):
                sampler = PGSampler(each, [5, 4], seed=1, subgraph_type=kind)
                sampler.set_epoch(0)
                drawn.append([content(batch) for batch in NodeLoader(data, sampler, batch_size=99)])
            assert drawn[0] == drawn[1]


def test_training_on_the_gpu() -> None:
    """A step reads what a batch is while the next one is sampled."""
    data = make_data("cuda", "cuda")
    weight = torch.zeros(4, 1, device="cuda", requires_grad=True)
    for batch in NeighborLoader(data, [5, 4], batch_size=50, shuffle=True):
        src, dst = batch.edge_index
        mean = torch.zeros_like(batch.x).index_add_(0, dst, batch.x[src])
        (mean[: batch.batch_size] @ weight).sum().backward()
    assert bool(weight.grad.isfinite().all())
