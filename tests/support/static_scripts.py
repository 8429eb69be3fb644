"""How scripts begin that make static batches on the emulator.

Torch does not take the emulator for a GPU, so tensors on the host stand in for those on the device,
and there are no streams.
"""

PRELUDE = """
import ctypes
import sys
sys.path.append("tests/support")
import pickle
import pytest
import torch
import pygsampler as pgs
from pygsampler._loader import arguments, node_seeds
import torch_cpu
from assertions import assert_equal, content
from torch_graphs import csc
from pygsampler._engine import memory as memories
from pygsampler._loader import static_epochs as static
from pygsampler._sampling import static_buffers as static_buffers
from pygsampler._features.features import Features
from pygsampler.samplers import Temporal
from pygsampler.torch import DataLoader

class Side:
    def __init__(self, device, priority=0): pass
    def launch(self, work): work()
    def join(self): pass

static.SideStream = Side
static_buffers.place_of = lambda device: torch.device("cpu")
arguments._check = lambda index: None

def copied(order, index):
    # The engine looks whether the device can read the seeds.
    size = order.numel() * order.element_size()
    memory = memories.new("DeviceUpload", index, order.data_ptr(), size, 0)
    KEPT.append(memory)
    there = (ctypes.c_byte * size).from_address(memory.data)
    return torch.frombuffer(there, dtype=order.dtype)

KEPT = []
node_seeds.to_device = copied

def make_graph(dtype=torch.int64, ids=False, nodes=1000):
    random = torch.Generator().manual_seed(7)
    indptr, indices = csc(nodes, 29, random, dtype)
    edge_ids = torch.randperm(len(indices), generator=random) if ids else None
    weights = torch.rand(len(indices), generator=random)
    return pgs.Graph.from_csc(indptr, indices, edge_ids=edge_ids, edge_data={"w": weights})

SEEDS = torch.cat([torch.arange(300), torch.tensor([5, 5, 7])])
"""

# And those of graphs with types.
TYPED = """
from pygsampler._arrays import exchange
from pygsampler._arrays.array import Array

# Batches of graphs with types are not in a tensor of torch's, but in memory of the engine's.
shown = Array.torch
Array.torch = lambda self: shown(self.cpu())
# Tensors by one call would be on a device that this torch does not have.
exchange._TorchTable.address = 0

COUNTS = {"a": 300, "b": 200, "none": 0, "alone": 40}

def typed_graph(dtype=torch.int64):
    random = torch.Generator().manual_seed(7)
    edges, data = {}, {}
    for src, rel, dst, m in (
        ("a", "r", "b", 2000), ("b", "s", "a", 1500), ("a", "t", "a", 900), ("b", "e", "alone", 0)
    ):
        of = src, rel, dst
        edges[of] = tuple(
            torch.randint(0, COUNTS[kind], (m,), generator=random).to(dtype) for kind in (src, dst)
        )
        data[of] = {
            "w": torch.rand(m, generator=random), "m": torch.rand(m, generator=random) < 0.7,
            "t": torch.randint(0, 50, (m,), generator=random),
            "f": torch.rand(m, generator=random, dtype=torch.float64) - 0.5,
        }
    return pgs.Graph.from_coo(edges, num_nodes=COUNTS, edge_data=data)
"""

# And those of loaders of links.
LINKS = """
from pygsampler._loader import edge_seeds, seed_edges

seed_edges.to_device = lambda values, index: values.clone()
# Seeds, for which rows may be taken here, go where the engine takes them for a GPU's.
edge_seeds.to_device = copied
"""

# And those that read rows of features, static batches or not.
ROWS = """
from pygsampler._features import features
from pygsampler._features.features import Features

def empty(self, count, place):
    return torch.zeros((count, *self.shape[1:]), dtype=getattr(torch, self.dtype))

Features._empty = empty
as_ids = features.as_ids
features.as_ids = lambda ids, name, place=-1: as_ids(ids, name)
"""

# What lets steps be captured: a replay is a call.
REPLAYS = """
import contextlib
from pygsampler._loader import capture

class Stream:
    cuda_stream = 1
    def wait_stream(self, other): pass

class Default(Stream):
    cuda_stream = 0

torch.cuda.Stream, torch.cuda.current_stream = Stream, Stream
torch.cuda.stream = contextlib.nullcontext

class Replays:
    # What a graph would do, by a call.
    def __init__(self, loop, passes):
        self.loop, self.passes = loop, passes

    def replay(self):
        self.loop._out = self.loop._run(self.passes, self.passes._begun, 0)

def replayed(self, passes, begun, step):
    self._graph = Replays(self, passes)

capture.CapturedLoop._capture = replayed
"""
