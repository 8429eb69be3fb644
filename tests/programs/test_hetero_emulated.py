"""Programs over relations on a GPU, through the CUDA engine on the emulator."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gpu import run_with_driver

pytestmark = pytest.mark.once

# Torch does not take the emulator for a GPU; its memory is the host's, and so are tensors.
CODE = """
import ctypes, sys
sys.path.append("tests/support")
import torch
import pygsampler as pgs
import host_tensors, torch_cpu
from pygsampler._arrays import exchange
from pygsampler._engine import memory as memories
from assertions import content
from tests.programs.test_hetero import (
    CITES, EMPLOYS, SEEDS, WRITES, both, fastgcn, over, typed, writers,
)

exchange._TorchTable.address = 0
pgs.Array.torch = host_tensors.torch_of_host
tensor = torch.tensor
torch.tensor = lambda values, device=None, **how: tensor(values, **how)

# The memory of batches that torch writes is the device's.
empty, kept = torch.empty, []

def on_device(*size, **how):
    values = empty(*size, **how)
    count = values.numel() * values.element_size()
    kept.append(memories.new("DeviceUpload", 0, values.data_ptr(), count, 0))
    there = (ctypes.c_byte * count).from_address(kept[-1].data)
    return torch.frombuffer(there, dtype=values.dtype)

torch.empty = on_device

graph = typed(EMPLOYS, WRITES, CITES)
cases = [
    (both(K=2, seed=5, weight="w"), SEEDS),
    (over(fastgcn, CITES), {"paper": [7, 3]}),
    (pgs.program(lambda A, seeds: A[CITES].induce(seeds.unique()))(seed=1),
     {"paper": list(range(0, 60, 2))}),
]
for sampler, seeds in cases:
    want = content(sampler.sample(graph, seeds, epoch=1, batch=2))
    for there in (graph.to("cuda"), graph.pin("cuda")):
        batch = sampler.sample(there, seeds, epoch=1, batch=2)
        # Tensors that stand in for those on a GPU are on the CPU.
        tensors = getattr(batch, "form", "array") == "torch"
        assert tensors or getattr(batch, "device", "cuda:0") == "cuda:0", sampler
        assert content(batch) == want, sampler
        many = sampler.sample_many(there, [seeds] * 3, epoch=1, batch=0)
        assert content(many[2]) == want, sampler
        assert there._joint(*next(iter(there._joints))).graph.device == "cuda:0"
        there.close()
out = {CITES: list(range(0, 220, 2)), WRITES: list(range(100))}
sampler, ask = writers(K=2, seed=5, weight="w"), dict(epoch=1, batch=2, exclude=out)
there = graph.to("cuda")
found = [content(sampler.sample(where, SEEDS, **ask)) for where in (graph, there)]
assert found[0] == found[1]
there.close()
print(pgs.cuda.memory_stats(0)["flights"])
"""


def test_as_on_the_cpu(emulator: Path) -> None:
    assert run_with_driver(emulator, CODE) == "0\n"
