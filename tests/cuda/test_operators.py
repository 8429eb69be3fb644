"""Compiled models on blocks of a GPU: one graph for all batches, dynamic and static."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pygsampler as pgs
from tests.cuda.conftest import NODES
from tests.support.parity import random_graph


@pytest.fixture
def dynamo(torch: Any) -> Any:
    if not hasattr(torch.library, "register_autograd"):
        pytest.skip("needs torch 2.4 or newer")
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    yield torch._dynamo
    torch._dynamo.reset()


def model_of(torch: Any) -> Any:
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = torch.nn.Linear(8, 16), torch.nn.Linear(32, 5)
            self.att = torch.nn.Parameter(torch.randn(2, 8))

        def forward(self, blocks: Any, x: Any) -> Any:
            z = self.first(x).unflatten(1, (2, 8))
            h = blocks[0].attention_v2(z, z[: blocks[0].num_dst_nodes], self.att).flatten(1)
            own, mean = blocks[1].self_and_reduce(h.relu())
            return self.second(torch.cat([own, mean], 1))

    return Model().cuda()


def compare(torch: Any, model: Any, compiled: Any, blocks: Any, x: Any) -> None:
    found = []
    for one in (model, compiled):
        model.zero_grad()
        made = one(blocks, x)
        made.square().sum().backward()
        found.append([made.detach(), *(p.grad.clone() for p in model.parameters())])
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-2)


def test_dynamic_blocks_are_one_graph(torch: Any, dynamo: Any) -> None:
    graph = random_graph(NODES, seed=5).graph(32).to("cuda")
    sampler, model = pgs.PGSampler([5, 4], seed=3), model_of(torch)
    compiled = torch.compile(model, fullgraph=True, dynamic=True, backend="aot_eager")
    for i in range(4):
        batch = sampler.sample(graph, np.arange(50 + 9 * i), batch=i).torch().create_tensors()
        x = torch.randn(len(batch.input_nodes), 8, device="cuda")
        compare(torch, model, compiled, batch.blocks, x)
    assert dynamo.utils.counters["stats"]["unique_graphs"] == 1


def test_static_blocks_are_one_graph(torch: Any, dynamo: Any) -> None:
    from pygsampler.torch import DataLoader

    graph = random_graph(NODES, seed=5).graph(32).to("cuda")
    x = torch.randn(NODES, 8, device="cuda")
    loader = DataLoader(
        graph, torch.arange(2000), [5, 4], batch_size=256, static=True, features={"x": x}, seed=1
    )
    model = model_of(torch)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    for batch in loader:
        compare(torch, model, compiled, batch.create_tensors().blocks, batch.x)
    # A loader has a few buffers, which take turns.
    assert dynamo.utils.counters["stats"]["unique_graphs"] <= 2
