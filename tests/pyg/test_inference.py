"""``inference`` of PyG's models with our loader; tests/cuda has the same on a GPU."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch
from pyg_reference import random_data
from torch_geometric.nn.models import GAT, GIN, EdgeCNN, GraphSAGE

from pygsampler.pyg import NeighborLoader
from pygsampler.pyg.node_ids import NodeIds, for_inference


def on_gpu(batch: Any, loader: Any) -> Any:
    """A batch as a GPU makes it; ids on the CPU stand for those on the GPU."""
    for_inference(batch, loader)
    return batch


@pytest.mark.parametrize("cache", [False, True])
@pytest.mark.parametrize("kind", [EdgeCNN, GAT, GIN, GraphSAGE])
def test_inference_of_every_model_equals_the_whole_graph(kind: Any, cache: bool) -> None:
    data = random_data()
    model = kind(1, 8, 2, 3).eval()
    loader = NeighborLoader(data, [-1], batch_size=16)
    loader.transform = lambda batch: on_gpu(batch, loader)
    with torch.no_grad():
        found, expected = model.inference(loader, cache=cache), model(data.x, data.edge_index)
    torch.testing.assert_close(found, expected)


def test_node_ids_go_to_the_tensor_whose_rows_they_take() -> None:
    """The device "meta" stands for one that torch takes no index of."""
    rows = torch.arange(10)
    ids = torch.tensor([3, 1]).as_subclass(NodeIds)
    assert rows[ids].tolist() == rows[ids, ...].tolist() == [3, 1]
    far = torch.tensor([3, 1], device="meta").as_subclass(NodeIds)
    with pytest.raises(NotImplementedError, match="copy out of meta"):
        rows[far]
    rows[ids] = torch.tensor([30, 10])
    assert rows.tolist() == [0, 10, 2, 30, 4, 5, 6, 7, 8, 9]


def test_node_ids_are_plain_tensors_otherwise() -> None:
    ids = torch.tensor([3, 1]).as_subclass(NodeIds)
    assert type(ids + 1) is type(ids[:1]) is type(ids.clone()) is type(ids.float()) is torch.Tensor
    assert type(ids.to("meta")) is type(ids.cpu()) is NodeIds
    for other in (pickle.loads(pickle.dumps(ids)), copy.deepcopy(ids)):
        assert type(other) is NodeIds
        assert other.tolist() == [3, 1]
        assert other.data_ptr() != ids.data_ptr()


def test_only_loaders_that_inference_takes_have_node_ids() -> None:
    data = random_data()
    for hops, seeds, expected in (
        ([-1], None, NodeIds),
        ([-1, -1], None, torch.Tensor),
        ([-1], torch.arange(5), torch.Tensor),
    ):
        loader = NeighborLoader(data, hops, seeds, batch_size=5)
        assert type(on_gpu(next(iter(loader)), loader).n_id) is expected


@pytest.mark.parametrize("labor", [None, "poisson"])
def test_samplers_without_a_list_of_neighbors_pass_where_cuda_is_in_use(
    monkeypatch: pytest.MonkeyPatch, labor: str | None
) -> None:
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    (batch, *_) = NeighborLoader(random_data(), [2], batch_size=16, labor=labor)
    assert isinstance(batch.n_id, NodeIds) == (labor is None)
