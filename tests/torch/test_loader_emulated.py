"""DataLoader through the CUDA engine and its kernels, on the emulator of tests/emulator.

Torch does not take the emulator for a GPU. Its memory is the host's, so tensors on the host stand
in for those that torch would allocate on the device.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gpu import run_with_driver

PRELUDE = """
import sys
sys.path.append("tests/support")
import torch
import pygsampler as pgs
import pygsampler.torch as loaders
import torch_on_host
from pygsampler.torch import DataLoader

loaders._check = lambda index: None
loaders._copied = lambda order, index: order.clone()

def make_graph(dtype=torch.int64, ids=False):
    random = torch.Generator().manual_seed(7)
    indptr = torch.zeros(1001, dtype=dtype)
    indptr[1:] = torch.randint(0, 30, (1000,), generator=random).cumsum(0)
    edges = int(indptr[-1])
    indices = torch.randint(0, 1000, (edges,), generator=random).to(dtype)
    edge_ids = torch.randperm(edges, generator=random) if ids else None
    return pgs.Graph.from_csc(indptr, indices, edge_ids=edge_ids)

def content(batch):
    return (
        batch.input_nodes.tolist(), batch.output_nodes.tolist(), batch.output_index.tolist(),
        [(b.indptr.tolist(), b.indices.tolist(), b.edge_ids.tolist(), b.src_nodes.tolist())
         for b in batch.blocks],
        batch.epoch, batch.batch,
    )

SEEDS = torch.cat([torch.arange(300), torch.tensor([5, 5, 7])])
"""


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_batches_of_the_cpu(emulator: Path, dtype: str) -> None:
    code = f"""
def compare(graph, on_gpu, **where):
    for prefetch in (0, 1, 3, 8):
        sampler = pgs.PGSampler([5, 3], seed=3)
        options = dict(batch_size=64, shuffle=True, prefetch=prefetch)
        cpu = DataLoader(graph, SEEDS, sampler, **options)
        gpu = DataLoader(on_gpu, SEEDS, sampler, **options, **where)
        assert gpu.device == "cuda:0"
        expected = [content(b) for _ in range(2) for b in cpu]
        assert [content(b) for _ in range(2) for b in gpu] == expected

for ids in (False, True):
    graph = make_graph(torch.{dtype}, ids)
    compare(graph, graph, device="cuda")
    compare(graph, graph.to("cuda"))
    with graph.pin("cuda") as pinned:
        compare(graph, pinned, device="cuda:0")
        assert DataLoader(pinned, SEEDS, [2], batch_size=8, device="cuda").graph is pinned
print(pgs.cuda.memory_stats(0)["flights"])
"""
    assert run_with_driver(emulator, PRELUDE + code) == "0\n"


def test_factors_of_edges(emulator: Path) -> None:
    code = """
for dtype in (torch.int32, torch.int64):
    graph = make_graph(dtype)
    weights = torch.rand(graph.num_edges, generator=torch.Generator().manual_seed(1))
    graph = graph.with_data(edge_data={"w": weights})
    sampler = pgs.PGSampler([5, 3], seed=3, prob="w", edge_weights="ht")
    found = []
    for device in ("cpu", "cuda"):
        loader = DataLoader(graph, SEEDS, sampler, batch_size=64, device=device)
        loader.set_epoch(0)
        batches = list(loader)
        # As a copy too.
        moved = [batch._map(torch.clone) for batch in batches]
        for some in (batches, moved):
            assert some[0].blocks[0].edge_weights.dtype == torch.float32
            found.append([
                (content(b), [block.edge_weights.tolist() for block in b.blocks]) for b in some
            ])
    assert all(each == found[0] for each in found)
print(pgs.cuda.memory_stats(0)["flights"])
"""
    assert run_with_driver(emulator, PRELUDE + code) == "0\n"


def test_every_end(emulator: Path) -> None:
    code = """
graph = make_graph()
loader = DataLoader(graph, SEEDS, [5, 3], batch_size=30, seed=1, prefetch=4, device="cuda")
for step, batch in enumerate(loader):
    if step == 2:
        break
print(pgs.cuda.memory_stats(0)["flights"])
try:
    for batch in loader:
        1 / 0
except ZeroDivisionError:
    print(pgs.cuda.memory_stats(0)["flights"])
batches = iter(loader)
kept = next(batches)
values = content(kept)
loader.graph.close()
try:
    print(sum(1 for _ in batches))
except pgs.ClosedError:
    print("closed")
assert content(kept) == values
# The end of the interpreter finds these in flight.
other = iter(DataLoader(graph, SEEDS, [5, 3], batch_size=30, prefetch=8, device="cuda:1"))
print(next(other).output_nodes.numel())
"""
    assert run_with_driver(emulator, PRELUDE + code) == "0\n0\nclosed\n30\n"


def test_a_forked_child_hears_why(emulator: Path) -> None:
    code = """
import os
loader = DataLoader(make_graph(), SEEDS, [5, 3], batch_size=30, seed=1, device="cuda")
batches = iter(loader)
next(batches)
child = os.fork()
if not child:
    try:
        next(iter(loader))
    except pgs.CudaError as error:
        on_cpu = DataLoader(loader.graph, SEEDS, [5, 3], batch_size=30, seed=1, device="cpu")
        print("forked" in str(error), sum(1 for _ in on_cpu), flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(sum(1 for _ in batches))
"""
    quiet = {"PYTHONWARNINGS": "ignore::DeprecationWarning"}
    assert run_with_driver(emulator, PRELUDE + code, **quiet) == "True 11\n10\n"
