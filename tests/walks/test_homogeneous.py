"""Programs and walks along types on a GPU, through the CUDA engine on the emulator."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gpu import run_with_driver

pytestmark = pytest.mark.once

# Torch does not take the emulator for a GPU; its memory is the host's, and so are tensors.
CODE = """
import ctypes, sys
sys.path.append("tests/support")
import numpy as np, torch
import pygsampler as pgs
import torch_cpu
from pygsampler import samplers, walks
from pygsampler._arrays import devices, exchange
from pygsampler._engine import memory as memories
from assertions import content
from tests.programs.test_hetero import (
    CITES, EMPLOYS, NODES, SEEDS, WRITES, both, fastgcn, over, typed, writers,
)

exchange._TorchTable.address = 0
to_torch = pgs.Array.torch

def where_it_lies(array):
    if array._device < 0:
        return to_torch(array)
    there, array._device = array._device, devices.CPU
    try:
        return to_torch(array)
    finally:
        array._device = there

pgs.Array.torch = where_it_lies
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

def of_walks(found):
    made = found.cpu()
    assert made.node_types == found.node_types
    return [made.nodes.tolist(), made.lengths.tolist()] + (
        [made.edge_ids.tolist()] if "edge_ids" in made._arrays else [])

def of_visits(visits):
    return [{kind: ids.cpu().tolist() for kind, ids in of.items()}
            for of in (visits.nodes, visits.counts)]

def of_restarts(found):
    return of_visits(found)

graph = typed(EMPLOYS, WRITES, CITES)
written = ("paper", "written", "author")
back = pgs.Graph.from_coo(
    {WRITES: (np.arange(200) % 40, np.arange(200) % 60),
     written: (np.arange(200) % 60, np.arange(200) * 7 % 40)},
    num_nodes={"author": 40, "paper": 60})
seeds, authors = {"author": [0, 39], "paper": [7, 3, 7, 58]}, {"author": [3, 0, 3, 39]}
cases = [
    (both(K=2, seed=5, weight="w"), graph, seeds, content),
    (over(fastgcn, CITES), graph, {"paper": [7, 3]}, content),
    (pgs.program(lambda A, seeds: A[CITES].induce(seeds.unique()))(seed=1), graph,
     {"paper": list(range(0, 60, 2))}, content),
    (walks.MetaPathWalk([EMPLOYS, WRITES, CITES], edge_ids=True, seed=7), graph, [1, 2, 0],
     of_walks),
    (walks.MetaPathWalk([WRITES, written], 5, walks_per_seed=3, seed=7), back, authors, of_walks),
    (walks.PinSAGE(2, 0.5, 10, 3, metapath=[WRITES, written], seed=7), back, authors, of_visits),
    (walks.RestartNeighbors(None, {"author": 2, "paper": 3}, seed=7), back, seeds, of_restarts),
    # With walks that have to go on, for a type that fills slowly.
    (walks.RestartNeighbors(None, {"author": 2, "paper": 3}, caps={"author": 9, "paper": 2000},
                          collect=400, max_steps=3000, seed=7), back, seeds, of_restarts),
]
for sampler, on_cpu, given, of in cases:
    want = of(sampler.sample(on_cpu, given, epoch=1, batch=2))
    for there in (on_cpu.to("cuda"), on_cpu.pin("cuda")):
        batch = sampler.sample(there, given, epoch=1, batch=2)
        # Tensors that stand in for those on a GPU are on the CPU.
        tensors = getattr(batch, "form", "array") == "torch"
        assert tensors or getattr(batch, "device", "cuda:0") == "cuda:0", sampler
        assert of(batch) == want, sampler
        many = sampler.sample_many(there, [given] * 3, epoch=1, batch=0)
        assert of(many[2]) == want, sampler
        assert there._joint(*next(iter(there._joints))).graph.device == "cuda:0"
        there.close()
out = {CITES: list(range(0, 220, 2)), WRITES: list(range(100))}
sampler, ask = writers(K=2, seed=5, weight="w"), dict(epoch=1, batch=2, exclude=out)
there = graph.to("cuda")
found = [content(sampler.sample(where, seeds, **ask)) for where in (graph, there)]
assert found[0] == found[1]
there.close()

def of_typed(batch):
    made = batch.cpu()
    assert batch.device == "cuda:0" and made.device == "cpu"
    assert made.to("cuda").cpu()._source._words
    return whole(made)

def whole(batch):
    return [[each.tolist() for each in mapping.values()]
            for mapping in (batch.input_nodes, batch.output_nodes, batch.output_index)] + [
        [getattr(block, name).tolist() for name in ("indptr", "indices", "edge_ids", "edge_weights")
         if getattr(block, name) is not None] for hop in batch.blocks for block in hop.values()]

fanouts = [3, {WRITES: 2, EMPLOYS: 1, CITES: 4}]
for sampler in (pgs.LaborSampler(fanouts, prob="w", seed=3, edge_weights="ht"),
                pgs.LaborSampler([3, 2], exact=True, edge_weights=None, seed=3),
                pgs.samplers.HGTSampler([9, 4], seed=3)):
    without = {CITES: list(range(0, 200, 3))}
    for exclude in (None, without):
        want = whole(sampler.sample(graph, seeds, epoch=1, batch=2, exclude=exclude))
        for there in (graph.to("cuda"), graph.pin("cuda")):
            ask = dict(epoch=1, batch=2, exclude=exclude)
            batch = sampler.sample(there, seeds, **ask)
            assert of_typed(batch) == want
            assert of_typed(sampler.submit(there, seeds, **ask).result()) == want
            there.close()
            assert of_typed(batch) == want
try:
    walks.MetaPathWalk([WRITES]).sample(back.to("cuda"), [3, 40], batch=0)
except IndexError as error:
    print(error)
print(pgs.cuda.memory_stats(0)["flights"])
"""


def test_as_on_the_cpu(emulator: Path) -> None:
    found = run_with_driver(emulator, CODE)
    assert found == "seeds[1]: expected an id in [0, 40), got 40\n0\n"
