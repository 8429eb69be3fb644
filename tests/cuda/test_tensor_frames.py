"""Frames of PyTorch Frame with a GPU: the rows that the CPU's batches have, wherever frames are."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch_frame = pytest.importorskip("torch_frame", reason="needs pytorch-frame")
    pytest.importorskip("torch_geometric", reason="needs PyG")

from torch_frame.data import MultiEmbeddingTensor  # noqa: E402
from torch_geometric.data import Data  # noqa: E402

import pygsampler as pgs  # noqa: E402
from pygsampler.pyg import NeighborLoader  # noqa: E402
from pygsampler.torch import DataLoader  # noqa: E402

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("gpu")]
NODES, EDGES = 400, 5000
OPTIONS: dict[str, Any] = {"batch_size": 64, "seed": 1}


def make_frame() -> Any:
    kinds = torch_frame.numerical, torch_frame.categorical, torch_frame.embedding
    parts = [torch.randn(NODES, 2), torch.randn(NODES, 5)]
    return torch_frame.TensorFrame(
        {
            kinds[0]: torch.randn(NODES, 3),
            kinds[1]: torch.randint(-1, 5, (NODES, 1)),
            kinds[2]: MultiEmbeddingTensor.from_tensor_list(parts),
        },
        {kinds[0]: ["a", "b", "c"], kinds[1]: ["d"], kinds[2]: ["e", "f"]},
        y=torch.arange(NODES),
    )


def edges() -> Any:
    return torch.randint(0, NODES, (2, EDGES), generator=torch.Generator().manual_seed(0))


def check(found: Any, ids: Any, frame: Any) -> None:
    """The rows of a frame on the CPU, all of whose tensors are on the GPU."""
    embeddings = found.feat_dict[torch_frame.embedding]
    assert found.y.is_cuda and embeddings.values.is_cuda and embeddings.offset.is_cuda
    assert all(of.device.type == "cuda" for of in found.feat_dict.values())
    assert found.cpu() == frame[ids.cpu().long()]


@pytest.mark.parametrize("frames_on", ["cpu", "cuda"])
@pytest.mark.parametrize("static", [False, True])
def test_batches_of_the_loader(frames_on: str, static: bool) -> None:
    frame, ends = make_frame(), edges()
    graph = pgs.Graph.from_coo(*ends, num_nodes=NODES)
    there = frame.to(frames_on)
    given = graph, torch.arange(NODES), [4, 3]
    loader = DataLoader(
        *given, device="cuda", features={"tf": there}, static=static, shuffle=True, **OPTIONS
    )
    for batch in loader:
        check(batch.tf, batch.input_nodes, frame)
        if static:
            real = batch.trimmed()
            check(real.tf, real.input_nodes, frame)


@pytest.mark.parametrize("frames_on", ["cpu", "cuda"])
def test_batches_of_pygs_loader(frames_on: str) -> None:
    frame, data = make_frame(), Data(edge_index=edges(), num_nodes=NODES)
    loader = NeighborLoader(
        data, [4, 3], device="cuda", features={"tf": frame.to(frames_on)}, **OPTIONS
    )
    for batch in loader:
        check(batch.tf, batch.n_id, frame)


def test_frames_of_data_on_a_gpu() -> None:
    frame = make_frame()
    data = Data(tf=frame.to("cuda"), edge_index=edges())
    for batch in NeighborLoader(data, [4, 3], device="cuda", **OPTIONS):
        check(batch.tf, batch.n_id, frame)
