"""PGSampler with a graph on a GPU, through the CUDA engine on the emulator of tests/emulator.

Torch does not take the emulator for a GPU. Its memory is the host's, so tensors on the host stand
in for those that torch would allocate on the device.
"""

from __future__ import annotations

from pathlib import Path

from pyg_reference import NODES

from tests.gpu import run_with_driver

CODE = """
import sys, warnings
sys.path += ["tests/support", "tests/pyg"]
warnings.simplefilter("ignore")
import torch
import pygsampler as pgs
import torch_cpu
from pygsampler._arrays import exchange
from pyg_reference import check_edges, content, random_data
from pygsampler.pyg import graph as pyg_graph
from pygsampler.pyg import LinkNeighborLoader, NeighborLoader, PGSampler

# What reads arrays of the graph itself gets those of the host.
to_torch = pgs.Array.torch
pgs.Array.torch = lambda array: to_torch(array.cpu())
exchange._TorchTable.address = 0

def compare(make, data, options, **where):
    loaders = [make(data, [4, 3], seed=3, **options, **place) for place in ({}, where)]
    for each in loaders:
        each.set_epoch(2)
    expected, found = ([content(batch) for batch in each] for each in loaders)
    assert found == expected, options
    sampler = getattr(loaders[1], "node_sampler", None) or loaders[1].link_sampler
    assert sampler.device == "cuda:0"

for dtype in (torch.int64, torch.int32):
    data = random_data(dtype=dtype)
    seeds = torch.cat([torch.arange(60), torch.tensor([7, 7, 3, 7])])
    for options in CASES if dtype == torch.int64 else CASES[:1]:
        compare(NeighborLoader, data, dict(input_nodes=seeds, batch_size=32, **options),
                device="cuda")
    compare(LinkNeighborLoader, data, dict(neg_sampling="binary", batch_size=100), device="cuda")
    for options in (dict(labor="exact"), dict(labor="poisson", subgraph_type="induced")):
        compare(NeighborLoader, data, dict(input_nodes=seeds, batch_size=32, **options),
                device="cuda")
data.edge_time = torch.arange(data.num_edges) % 50
for strategy in ("uniform", "last"):
    times = dict(time_attr="edge_time", input_time=seeds % 45, temporal_strategy=strategy)
    compare(NeighborLoader, data, dict(input_nodes=seeds, batch_size=32, **times), device="cuda")
graph = pgs.Graph.from_pyg(data)
with graph.pin("cuda") as pinned:
    for kind in ("directional", "induced"):
        samplers = [PGSampler(g, [3], seed=1, subgraph_type=kind) for g in (graph, pinned)]
        for each in samplers:
            each.set_epoch(0)
        one, other = (content(NeighborLoader(data, [3], neighbor_sampler=s)([1, 2, 2]))
                      for s in samplers)
        assert one == other
print(pgs.cuda.memory_stats(0)["flights"])
"""

PROGRAMS = """
import sys, warnings
sys.path += ["tests/support", "tests/pyg"]
warnings.simplefilter("ignore")
import torch
import pygsampler as pgs
import torch_cpu
from pygsampler._arrays import exchange
from pyg_reference import random_data
from pygsampler.pyg import Sampler
from torch_geometric.sampler import NodeSamplerInput

def around(A, seeds):
    V = A[:, seeds].row() | seeds
    return V, A[V, V].edata["t"]

def beside(A, seeds):
    B = A[:, A[:, seeds].row()].individual_sample(3)
    return [A[:, B.row()].individual_sample(2).edata["t"], B.edata["t"]]

data = random_data()
data.t = torch.arange(data.num_edges) % 3 + 1.0
for function in (around, beside):
    made = pgs.program(function)(seed=0)
    for seeds in ([7, 3, 9], [7, 3, 7, 7], [5, 5]):
        found = []
        for where in ({}, {"device": "cuda"}):
            sampler = Sampler(data, made, **where)
            sampler.set_epoch(1)
            found.append(sampler.sample_from_nodes(NodeSamplerInput(None, torch.tensor(seeds))))
        for name in ("node", "row", "col", "edge", "edge_weights"):
            assert torch.equal(*(getattr(out, name) for out in found)), (function, seeds, name)
        assert sampler.device == "cuda:0" and len(found[0].edge)
print("as on the CPU")
"""

TYPES = """
import sys, warnings
sys.path += ["tests/support", "tests/pyg"]
warnings.simplefilter("ignore")
import torch
import pygsampler as pgs
from pygsampler._arrays import exchange
from pygsampler.pyg import HGTLoader, LinkNeighborLoader, NeighborLoader
from pyg_reference import content, random_data
from test_hetero import CITES, WRITES, WRITTEN, typed_data

to_torch = pgs.Array.torch
pgs.Array.torch = lambda array: to_torch(array.cpu())
exchange._TorchTable.address = 0

def typed(batch):
    return {
        kind: {name: torch.as_tensor(value).tolist() for name, value in batch[kind].items()
               if value is not None}
        for kind in (*batch.node_types, *batch.edge_types)
    }

def compare(make, data, options):
    loaders = [make(data, seed=3, **options, **where) for where in ({}, {"device": "cuda"})]
    for each in loaders:
        each.set_epoch(2)
    expected, found = ([typed(batch) for batch in each] for each in loaders)
    assert found == expected and len(found) > 1, options
    sampler = getattr(loaders[1], "node_sampler", None) or loaders[1].link_sampler
    assert sampler.device == "cuda:0"

for dtype in (torch.int64, torch.int32):
    data = typed_data(dtype)
    seeds = "paper", torch.cat([torch.arange(40), torch.tensor([7, 7, 3, 7])])
    fanouts = {kind: [3, n] for n, kind in enumerate(data.edge_types, 1)}
    for options in ({}, {"replace": True}, {"num_neighbors": fanouts},
                    {"disjoint": True}, {"weight_attr": "w"}, {"edge_weights": "ht"},
                    {"subgraph_type": "induced", "weight_attr": "w"},
                    {"subgraph_type": "induced", "disjoint": True},
                    {"labor": "exact", "edge_weights": "ht"}, {"labor": "poisson"}):
        options = {"num_neighbors": [4, 3], "input_nodes": seeds, "batch_size": 16, **options}
        compare(NeighborLoader, data, options)
        options["input_nodes"] = "author"
        compare(NeighborLoader, data, options)
    compare(LinkNeighborLoader, data, {"num_neighbors": [4, 3], "batch_size": 40,
            "edge_label_index": WRITES, "neg_sampling": "binary"})
data = typed_data()
data = data.edge_type_subgraph([CITES, WRITES, WRITTEN])
compare(NeighborLoader, data, {"num_neighbors": [4, 3], "input_nodes": "paper", "batch_size": 16,
        "subgraph_type": "bidirectional"})
for labor in ("exact", "poisson"):
    for options in ({"edge_weights": "ht"}, {"subgraph_type": "induced"}, {"weight_attr": "w"}):
        compare(NeighborLoader, data, {"num_neighbors": [4, 3], "input_nodes": "paper",
                "batch_size": 16, "labor": labor, **options})
plain = random_data()
for labor in ("exact", "poisson"):
    loaders = [LinkNeighborLoader(plain, [3, 2], labor=labor, edge_weights="ht", batch_size=200,
               seed=3, device=device) for device in ("cpu", "cuda")]
    for each in loaders:
        each.set_epoch(2)
    assert loaders[1].link_sampler.device == "cuda:0"
    assert [content(batch) for batch in loaders[0]] == [content(batch) for batch in loaders[1]]
loaders = [HGTLoader(data, [8, 4], "paper", batch_size=20, seed=3, device=device)
           for device in ("cpu", "cuda")]
for each in loaders:
    each.set_epoch(2)
assert loaders[1].node_sampler.device == "cuda:0"
assert [typed(batch) for batch in loaders[0]] == [typed(batch) for batch in loaders[1]]
print(pgs.cuda.memory_stats(0)["flights"])
"""

CASES = [
    {},
    {"replace": True},
    {"disjoint": True},
    {"subgraph_type": "bidirectional"},
    {"subgraph_type": "induced"},
    {"weight_attr": "edge_attr"},
    {"weight_attr": "edge_attr", "edge_weights": "ht"},
    {"disjoint": True, "edge_weights": "ht"},
    {"weight_attr": "edge_attr", "subgraph_type": "induced"},
]


def test_batches_of_the_cpu(emulator: Path) -> None:
    assert NODES == 100
    code = f"CASES = {CASES}\n{CODE}"
    assert run_with_driver(emulator, code) == "0\n"


def test_types_as_on_the_cpu(emulator: Path) -> None:
    assert run_with_driver(emulator, TYPES) == "0\n"


def test_programs_of_the_cpu(emulator: Path) -> None:
    assert run_with_driver(emulator, PROGRAMS) == "as on the CPU\n"
