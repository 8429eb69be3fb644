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
import pygsampler.torch as loaders
from pygsampler._loading import given
import torch_on_host
from pygsampler._core import memories
from pygsampler._loading import static
from pygsampler._sampling import standing
from pygsampler.features import Features
from pygsampler.torch import DataLoader

class Side:
    def __init__(self, device): pass
    def launch(self, work): work()
    def join(self): pass

static.Side = Side
standing.place_of = lambda device: torch.device("cpu")
given._check = lambda index: None

def copied(order, index):
    # The engine looks whether the device can read the seeds.
    size = order.numel() * order.element_size()
    memory = memories.new("DeviceUpload", index, order.data_ptr(), size, 0)
    KEPT.append(memory)
    there = (ctypes.c_byte * size).from_address(memory.data)
    return torch.frombuffer(there, dtype=order.dtype)

KEPT = []
loaders._copied = copied

def make_graph(dtype=torch.int64, ids=False, nodes=1000):
    random = torch.Generator().manual_seed(7)
    indptr = torch.zeros(nodes + 1, dtype=dtype)
    indptr[1:] = torch.randint(0, 30, (nodes,), generator=random).cumsum(0)
    edges = int(indptr[-1])
    indices = torch.randint(0, nodes, (edges,), generator=random).to(dtype)
    edge_ids = torch.randperm(edges, generator=random) if ids else None
    weights = torch.rand(edges, generator=random)
    graph = pgs.Graph.from_csc(indptr, indices, edge_ids=edge_ids, edge_data={"w": weights})
    return graph

def content(batch):
    return (
        batch.input_nodes.tolist(), batch.output_nodes.tolist(), batch.output_index.tolist(),
        [(b.indptr.tolist(), b.indices.tolist(), b.edge_ids.tolist(), b.src_nodes.tolist(),
          b.dst_nodes.tolist()) for b in batch.blocks],
        batch.epoch, batch.batch,
    )

SEEDS = torch.cat([torch.arange(300), torch.tensor([5, 5, 7])])
"""
