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
from pygsampler._loader import arguments, node_seeds
import torch_cpu
from assertions import content, contents
from torch_graphs import csc
from pygsampler.torch import DataLoader

arguments._check = lambda index: None
node_seeds.to_device = lambda order, index: order.clone()

def make_graph(dtype=torch.int64, ids=False):
    random = torch.Generator().manual_seed(7)
    indptr, indices = csc(1000, 29, random, dtype)
    edge_ids = torch.randperm(len(indices), generator=random) if ids else None
    return pgs.Graph.from_csc(indptr, indices, edge_ids=edge_ids)

SEEDS = torch.cat([torch.arange(300), torch.tensor([5, 5, 7])])
"""


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_walks_of_the_cpu(emulator: Path, dtype: str) -> None:
    code = f"""
from pygsampler._sampling.torch_group import TorchGroup

def tensors(batch):
    if isinstance(batch, pgs.Walks):
        found = [batch.nodes, batch.lengths, batch.edge_ids, batch.slots]
    elif isinstance(batch, pgs.research.StepSamples):
        found = batch.steps
    else:
        found = [batch.nodes, batch.counts, batch.importance, batch.output_nodes]
        found += [batch.input_nodes, batch.neighbor_index]
    return [each.tolist() for each in found if each is not None], batch.epoch, batch.batch

graph = make_graph(torch.{dtype})
weights = torch.rand(graph.num_edges, generator=torch.Generator().manual_seed(1))
graph = graph.with_data(edge_data={{"w": weights}})
samplers = [
    pgs.RandomWalk(6, edge_ids=True, seed=3),
    pgs.walks.Node2Vec(6, p=0.25, q=4.0, walks_per_seed=2, seed=3),
    pgs.RandomWalk(9, prob="w", stop=0.2, restart=0.1, mode_options={{"layout": "csr"}}, seed=3),
    pgs.RandomWalk(5, mode_options={{"execution": "transit", "layout": "csr"}}, seed=3),
    pgs.walks.PinSAGE(2, 0.5, 4, 3, seed=3),
    pgs.walks.MultiRW(3, 7, edge_ids=True, seed=3),
    pgs.research.KHop([3, 2], seed=3),
    pgs.research.LayerSample([4, 3], seed=3),
]
groups = []
made = TorchGroup.__init__
def counted(self, graph, sampler, views, *about):
    groups.append(len(views))
    made(self, graph, sampler, views, *about)
TorchGroup.__init__ = counted
on_gpu = graph.to("cuda")
for sampler in samplers:
    for prefetch in (1, 4):
        options = dict(batch_size=60, shuffle=True, prefetch=prefetch)
        seeds = SEEDS[:300]
        cpu = DataLoader(graph, seeds, sampler, device="cpu", **options)
        expected = [tensors(batch) for _ in range(2) for batch in cpu]
        groups.clear()
        gpu = DataLoader(on_gpu, seeds, sampler, **options)
        # Edges that were not asked for are made when all batches are there.
        found = [tensors(batch) for _ in range(2) for batch in list(gpu)]
        assert found == expected and len(found) == 10, sampler
        assert groups == ([2, 2, 1] * 2 if prefetch == 4 else []), (sampler, groups)
# Writes to the one of two that share memory leave gradients by the other good.
pair = list(DataLoader(on_gpu, SEEDS[:4], samplers[0], batch_size=2))
first, second = (walks.nodes for walks in pair)
assert first.untyped_storage().data_ptr() == second.untyped_storage().data_ptr()
version = second._version
first += 1
assert second._version == version

class Own(pgs.RandomWalk):
    def launch(self, *given, **how):
        return super().launch(*given, **how)

assert Own(3).group_launcher(on_gpu, epoch=0, form="torch") is None
assert samplers[0].group_launcher(on_gpu, epoch=0) is None
assert samplers[0].group_launcher(graph, epoch=0, form="torch") is None
print(pgs.cuda.memory_stats(0)["flights"])
"""
    assert run_with_driver(emulator, PRELUDE + code) == "0\n"


def test_programs_of_the_cpu(emulator: Path) -> None:
    code = """
from pygsampler import samplers
from pygsampler._sampling.torch_group import TorchGroup

def tensors(batch):
    found = [batch.output_nodes, *batch.extra.values()]
    blocks = batch.blocks if hasattr(batch, "blocks") else [batch]
    for block in blocks:
        found += [block.indptr, block.indices, block.edge_ids, *block.edge_data.values()]
    found.append(batch.input_nodes if hasattr(batch, "blocks") else batch.nodes)
    return [each.tolist() for each in found], batch.epoch, batch.batch

graph = make_graph(torch.int64)
groups = []
made = TorchGroup.__init__
def counted(self, graph, sampler, views, *about):
    groups.append(len(views))
    made(self, graph, sampler, views, *about)
TorchGroup.__init__ = counted
on_gpu = graph.to("cuda")
for sampler in (
    samplers.ladies(nodes=[20, 10], seed=3),
    samplers.shadow(fanouts=[3], seed=3),
    samplers.saint_node(budget=30, seed=3),
):
    options = dict(batch_size=60, shuffle=True, prefetch=4)
    cpu = DataLoader(graph, SEEDS[:300], sampler, device="cpu", **options)
    expected = [tensors(batch) for batch in cpu]
    groups.clear()
    gpu = DataLoader(on_gpu, SEEDS[:300], sampler, **options)
    assert [tensors(batch) for batch in list(gpu)] == expected and len(expected) == 5, sampler
    assert groups == [2, 2, 1]
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
except pgs.errors.ClosedError:
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
    except pgs.errors.CudaError as error:
        on_cpu = DataLoader(loader.graph, SEEDS, [5, 3], batch_size=30, seed=1, device="cpu")
        print("forked" in str(error), sum(1 for _ in on_cpu), flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(sum(1 for _ in batches))
"""
    quiet = {"PYTHONWARNINGS": "ignore::DeprecationWarning"}
    assert run_with_driver(emulator, PRELUDE + code, **quiet) == "True 11\n10\n"


def test_groups_share_a_tensor_and_nothing_else(emulator: Path) -> None:
    code = """
graph = make_graph(torch.int32)
options = dict(batch_size=32, prefetch=8, seed=1)
gpu = list(DataLoader(graph, SEEDS, [5, 3], device="cuda", **options))
storages = [batch.input_nodes.untyped_storage().data_ptr() for batch in gpu]
groups = [storages.count(one) for one in dict.fromkeys(storages)]
print(groups)
def edges(batch):
    return [(b.edge_index.tolist(), [t.tolist() for t in b.coo()]) for b in batch.blocks]
for ours, theirs in zip(gpu, DataLoader(graph, SEEDS, [5, 3], **options), strict=True):
    moved = ours.to("cpu")
    assert content(ours) == content(moved) == content(theirs)
    assert edges(ours) == edges(theirs) == edges(moved)
# Writing to one batch leaves the others as they are.
kept, versions = content(gpu[1]), [gpu[1].input_nodes._version, gpu[1].blocks[0].indptr._version]
for tensor in (gpu[0].input_nodes, *(b.edge_ids for b in gpu[0].blocks)):
    tensor.fill_(-1)
print(content(gpu[1]) == kept)
assert versions == [gpu[1].input_nodes._version, gpu[1].blocks[0].indptr._version]
"""
    assert run_with_driver(emulator, PRELUDE + code) == "[4, 4, 2]\nTrue\n"


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_edges_of_a_group_are_made_together(emulator: Path, dtype: str) -> None:
    """Once a loop has asked twice, by one launch a group; in each stream anew."""
    code = f"""
from pygsampler._batch import coo_expansion as edges
graph = make_graph(torch.{dtype})
there = graph.to("cuda")
options = dict(batch_size=32, seed=1)
launches, stream = [], 0
def call(name, *args):
    launches.append(args[1])
    assert args[3] == stream
    return real(name, *args)
real, edges.call = edges.call, call
edges.devices.current_stream = lambda index: stream

def lists(batch, kinds):
    got = []
    for block in batch.blocks:
        if "coo" in kinds:
            got += [part.tolist() for part in block.coo()]
        if "pair" in kinds:
            pair = block.edge_index
            assert pair.dtype == torch.int64 and pair.shape == (2, block.num_edges)
            got += pair.tolist()
    return got

def counts(kinds=("coo", "pair")):
    launches.clear()
    loader = DataLoader(there, SEEDS, [5, 3], prefetch=8, **options)
    for ours, theirs in zip(loader, DataLoader(graph, SEEDS, [5, 3], **options), strict=True):
        assert lists(ours, kinds) == lists(theirs, kinds)
    return list(launches)

print(counts(), counts(["coo"]), counts(["pair"]))
edges._MOST_AHEAD = 0
print(sum(counts()))
edges._MOST_AHEAD = 1 << 20
launches.clear()
for batch in DataLoader(there, SEEDS[:128], [5, 3], prefetch=8, **options):
    # Those that were made ahead are in another stream.
    lists(batch, ["coo"])
    stream = (stream + 1) % 3
print(launches)
"""
    alone, rest, whole = ("1, 1", "6", "8, 4") if dtype == "int32" else ("1, 1", "3", "4, 2")
    each = 20 if dtype == "int32" else 11
    expected = f"[{alone}, {rest}, {whole}] [1, 3, 4, 2] [1, 3, 4, 2]\n{each}\n[1, 3, 1, 1]\n"
    assert run_with_driver(emulator, PRELUDE + code) == expected


def test_batches_of_a_group_that_do_not_fit(emulator: Path) -> None:
    """They are sampled again, alone; the others of the group are as they were."""
    code = """
from pygsampler._engine import library
graph = make_graph()
there = graph.to("cuda")
expected = contents(DataLoader(graph, SEEDS, [5, 3], batch_size=32, seed=1))
import ctypes
asked, small = [], set()
def call(name, *args, **how):
    asked.append(name)
    if name == "SubmitMany" and asked.count(name) == 1:
        # Eight words a batch; the last is for how many bytes there is room.
        words = (ctypes.c_int64 * (8 * args[3])).from_address(args[2])
        for place in small:
            words[8 * place + 7] = 640
    return real(name, *args, **how)
real, library.call = library.call, call
for small in (set(), {1}, {0, 2}, {0, 1, 2, 3}):
    asked.clear()
    loader = DataLoader(there, SEEDS, [5, 3], batch_size=32, seed=1, prefetch=8)
    assert contents(loader) == expected, small
    print(asked.count("SubmitMany"), asked.count("Submit"))
print(pgs.cuda.memory_stats(0)["flights"])
"""
    assert run_with_driver(emulator, PRELUDE + code) == "3 0\n3 1\n3 2\n3 4\n0\n"


def test_an_error_in_a_group(emulator: Path) -> None:
    """Those before it are handed over; the text names the seed."""
    code = """
there = make_graph().to("cuda")
live = pgs.engine.memory_stats()["live"]
for place in (0, 1, 3, 4, 6, 9):
    loader = DataLoader(there, SEEDS, [5, 3], batch_size=30, seed=1, prefetch=8)
    seen = []
    loader._source._seeds[30 * place + 7] = 1234
    try:
        for batch in loader:
            seen.append(batch.batch)
    except IndexError as error:
        print(seen == list(range(place)), error)
    assert (pgs.cuda.memory_stats(0)["flights"], pgs.engine.memory_stats()["live"]) == (0, live)
"""
    text = "True seeds[7]: expected an id in [0, 1000), got 1234\n"
    assert run_with_driver(emulator, PRELUDE + code) == 6 * text


def test_ctrl_c_at_every_moment_of_a_loop(emulator: Path) -> None:
    code = """
import gc
from interrupts import at_every_moment
there = make_graph().to("cuda")
sampler = pgs.PGSampler([2], seed=1)
loader = DataLoader(there, SEEDS[:20], sampler, batch_size=4, prefetch=4)
expected = contents(loader)

def work():
    loader.set_epoch(0)
    for _ in loader:
        pass

def held():
    stats = pgs.cuda.memory_stats()
    return stats["flights"], stats["used"], pgs.engine.memory_stats()["live"]

work()
gc.collect()
before = held()
for moment in at_every_moment(work):
    if held() != before:
        gc.collect()
    assert held() == before, (moment, held(), before)
loader.set_epoch(0)
print(moment > 50, contents(loader) == expected)
"""
    assert run_with_driver(emulator, PRELUDE + code) == "True True\n"


def test_a_sampler_with_a_launch_of_its_own(emulator: Path) -> None:
    """It is asked for each batch, also where the class above it starts several by one call."""
    code = """
class Own(pgs.PGSampler):
    launched = 0
    def launch(self, *args, **how):
        Own.launched += 1
        return super().launch(*args, **how)

graph = make_graph()
options = dict(batch_size=32, prefetch=8)
got = contents(DataLoader(graph, SEEDS, Own([5, 3], seed=1), device="cuda", **options))
want = contents(DataLoader(graph, SEEDS, [5, 3], seed=1, **options))
print(got == want, Own.launched)
"""
    assert run_with_driver(emulator, PRELUDE + code) == "True 10\n"
