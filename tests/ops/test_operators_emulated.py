"""Compiled models on the static batches of a loader, through the CUDA engine on the emulator.

Tensors on the host stand in for those on the device: what compiles here are the same shapes.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.gpu import run_with_driver
from tests.support.static_scripts import PRELUDE


@pytest.mark.skipif(
    not hasattr(torch.library, "register_autograd"), reason="needs torch 2.4 or newer"
)
def test_static_batches_are_one_graph_without_dynamic_shapes(emulator: Path) -> None:
    code = """
import warnings
# Torch finds the emulator's driver old, and goes on without.
warnings.filterwarnings("ignore", message="CUDA initialization")

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(3, 8), torch.nn.Linear(16, 5)

    def forward(self, blocks, x):
        z = self.first(x).unflatten(1, (2, 4))
        scores = z.sum(2)
        h = blocks[0].attention(z, scores, scores[:blocks[0].num_dst_nodes]).flatten(1)
        own, mean = blocks[1].self_and_reduce(h.relu())
        return self.second(torch.cat([own, mean], 1))

graph, x = make_graph(torch.int64).to("cuda"), torch.randn(1000, 3)
sampler = pgs.PGSampler([5, 3], seed=3)
loader = DataLoader(graph, SEEDS, sampler, static=True, batch_size=64, seed=3)
model = Model()
compiled = torch.compile(model, fullgraph=True, dynamic=False, backend="aot_eager")
batches = 0
for batch in loader:
    batch.create_tensors()
    used, rows = int(batch.node_mask.sum()), x[batch.input_nodes]
    results = []
    for one in (model, compiled):
        model.zero_grad()
        out = one(batch.blocks, rows)[:int(batch.seed_mask.sum())]
        out.square().sum().backward()
        results.append([out.detach(), *(p.grad.clone() for p in model.parameters())])
    for a, b in zip(*results):
        torch.testing.assert_close(a, b)
    batches += 1
assert batches > 2
stats = torch._dynamo.utils.counters["stats"]
assert stats["unique_graphs"] == 1, stats
assert not torch._dynamo.utils.counters["graph_break"]
"""
    run_with_driver(emulator, PRELUDE + code)
