"""``inference`` of PyG's models with our loader, wherever data, graph, model and embeddings are."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("torch_geometric", reason="needs PyG")

from torch_geometric.data import Data  # noqa: E402
from torch_geometric.nn.models import GAT, GCN, GIN, PNA, EdgeCNN, GraphSAGE  # noqa: E402

from pygsampler.pyg import NeighborLoader  # noqa: E402

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("gpu")]
NODES, EDGES = 300, 2400


def make_data(place: str) -> Any:
    random = torch.Generator().manual_seed(0)
    edges = torch.randint(NODES, (2, EDGES), generator=random)
    return Data(torch.randn(NODES, 4, generator=random), edges).to(place)


def make_model(kind: Any) -> Any:
    torch.manual_seed(1)
    options: dict[str, Any] = {}
    if kind is PNA:
        options = {"aggregators": ["mean", "max"], "scalers": ["identity"], "deg": torch.ones(20)}
    return kind(4, 8, 3, 2, **options).eval()


@pytest.mark.parametrize("cache", [False, True])
@pytest.mark.parametrize("embeddings_on", ["cpu", "cuda"])
@pytest.mark.parametrize("sampled_on", [None, "cpu", "cuda"])
@pytest.mark.parametrize("data_on", ["cpu", "cuda"])
def test_inference_equals_the_whole_graph(
    data_on: str, sampled_on: str | None, embeddings_on: str, cache: bool
) -> None:
    data = make_data(data_on)
    model = make_model(GraphSAGE).cuda()
    with torch.no_grad():
        expected = model(data.x.cuda(), data.edge_index.cuda())
    loader = NeighborLoader(data, [-1], batch_size=64, device=sampled_on)
    found = model.inference(loader, device="cuda", embedding_device=embeddings_on, cache=cache)
    assert found.device.type == embeddings_on
    torch.testing.assert_close(found.cuda(), expected)


@pytest.mark.parametrize("kind", [GCN, GraphSAGE, GAT, GIN, PNA, EdgeCNN])
def test_inference_of_every_model(kind: Any) -> None:
    data = make_data("cuda")
    model = make_model(kind).cuda()
    found = model.inference(NeighborLoader(data, [-1], batch_size=64), device="cuda")
    assert found.device.type == "cpu"
    if kind is not GCN:
        # GCN counts degrees within a batch, with PyG's loader too.
        torch.testing.assert_close(found, model(data.x, data.edge_index).detach().cpu())


def test_inference_on_the_cpu_of_a_graph_on_the_gpu() -> None:
    data = make_data("cpu")
    model = make_model(GraphSAGE)
    found = model.inference(NeighborLoader(data, [-1], batch_size=64, device="cuda"))
    torch.testing.assert_close(found, model(data.x, data.edge_index).detach())


def test_rows_of_a_tensor_on_the_cpu_by_ids_on_the_gpu() -> None:
    data = make_data("cuda")
    batch = next(iter(NeighborLoader(data, [-1], batch_size=64)))
    rows = torch.arange(NODES)
    assert batch.n_id.is_cuda
    assert rows[batch.n_id].tolist() == batch.n_id.tolist()
    rows[batch.n_id] = torch.full((len(batch.n_id),), -1)
    assert int((rows == -1).sum()) == len(batch.n_id)
    # The ids of a loader for training are a plain tensor.
    batch = next(iter(NeighborLoader(data, [3, 2], batch_size=64)))
    assert type(batch.n_id) is torch.Tensor
