"""Compiled models on blocks of a device: one graph for all batches, dynamic and static."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pygsampler as pgs
from tests.cuda.conftest import NODES
from tests.support.parity import emulated, random_graph

torch = pytest.importorskip("torch", reason="needs torch")

from pygsampler.torch import DataLoader  # noqa: E402

# Torch finds the emulator's driver old, and goes on without.
pytestmark = pytest.mark.filterwarnings("ignore:CUDA initialization")


@pytest.fixture
def dynamo() -> Any:
    if not hasattr(torch.library, "register_autograd"):
        pytest.skip("needs torch 2.4 or newer")
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    yield torch._dynamo
    torch._dynamo.reset()


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(8, 16), torch.nn.Linear(32, 5)
        self.att = torch.nn.Parameter(torch.randn(2, 8))

    def forward(self, blocks: Any, x: Any) -> Any:
        z, rows = self.first(x).unflatten(1, (2, 8)), blocks[0].num_dst_nodes
        h = blocks[0].attention_v2(z, z[:rows], self.att)
        scores = z.sum(2)
        h = (h + blocks[0].attention(z, scores, scores[:rows])).flatten(1)
        own, mean = blocks[1].self_and_reduce(h.relu())
        return self.second(torch.cat([own, mean], 1))


def compare(model: Any, compiled: Any, blocks: Any, x: Any) -> None:
    results = []
    for one in (model, compiled):
        model.zero_grad()
        out = one(blocks, x)
        out.square().sum().backward()
        results.append([out.detach(), *(p.grad.clone() for p in model.parameters())])
    torch.testing.assert_close(*results, rtol=1e-3, atol=1e-2)


@pytest.mark.usefixtures("gpu")
def test_dynamic_blocks_are_one_graph(dynamo: Any) -> None:
    graph = random_graph(NODES, seed=5).graph(32).to("cuda")
    sampler, model = pgs.PGSampler([5, 4], seed=3), Model().cuda()
    compiled = torch.compile(model, fullgraph=True, dynamic=True, backend="aot_eager")
    for i in range(4):
        batch = sampler.sample(graph, np.arange(50 + 9 * i), batch=i).torch().create_tensors()
        x = torch.randn(len(batch.input_nodes), 8, device="cuda")
        compare(model, compiled, batch.blocks, x)
    assert dynamo.utils.counters["stats"]["unique_graphs"] == 1


def test_static_blocks_are_one_graph(host_tensors: None, dynamo: Any) -> None:
    graph = random_graph(2000, seed=5).graph(32).to("cuda")
    x, model = torch.randn(2000, 8), Model()
    if not emulated():
        x, model = x.cuda(), model.cuda()
    loader = DataLoader(
        graph, torch.arange(300), [5, 4], batch_size=64, static=True, features={"x": x}, seed=1
    )
    compiled = torch.compile(model, fullgraph=True, dynamic=False, backend="aot_eager")
    for batch in loader:
        compare(model, compiled, batch.create_tensors().blocks, batch.x)
    # A loader has a few buffers, which take turns.
    assert dynamo.utils.counters["stats"]["unique_graphs"] <= 2
    assert not dynamo.utils.counters["graph_break"]
