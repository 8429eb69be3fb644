"""PGSampler and walks with graphs of ours on a GPU, through the CUDA engine on the emulator.

DGL from PyPI has no GPU and torch does not take the emulator for one: DGL's graphs, the seeds and
the blocks are on the host. The graph that is sampled is on the emulator.
"""

from __future__ import annotations

from pathlib import Path

from tests.gpu import run_with_driver

CODE = """
import warnings
warnings.simplefilter("ignore")
import sys
sys.path.append("tests/support")
import dgl, torch
import pygsampler as pgs
from tests.dgl.graphs import check_blocks, content, random_graph
import torch_cpu
from pygsampler.dgl import graph as dgl_graph
from pygsampler.dgl import sampler as adapter

to_torch = pgs.MiniBatch.torch
pgs.MiniBatch.torch = lambda batch: to_torch(batch.cpu())
on_cpu = dgl_graph.graph_of
CPU = torch.device("cpu")

def places_on_gpu(g, graph):
    made = dgl_graph._make_places(g)
    return made._replace(graph=made.graph.to("cuda"))

for dtype in (torch.int32, torch.int64):
    g = random_graph(dtype=dtype)
    sampler = adapter.PGSampler([5, 4], seed=3)
    sampler.set_epoch(2)
    twice = torch.tensor([7, 7, 3, 7, 499, 3], dtype=dtype)
    parts = [*torch.arange(400, dtype=dtype).split(64), twice]
    excluded = torch.arange(0, 4000, 3, dtype=dtype)
    adapter.graph_of, adapter.edge_places = on_cpu, dgl_graph.edge_places
    expected = [content(sampler.sample(g, part)) for part in parts]
    around = content(sampler.sample(g, parts[0], excluded))
    g.edata["w"] = (g.edata["weight"] - 0.3).clamp(min=0)
    drawing = [adapter.PGSampler([5, 4], seed=3, **by) for by in (dict(prob="w"), dict(mask="w"))]
    for each in drawing:
        each.set_epoch(2)
    by_weight = [content(each.sample(g, parts[0], e)) for each in drawing for e in (None, excluded)]
    own = on_cpu(g, CPU)
    for there in (own.to("cuda"), own.pin("cuda")):
        assert there.device == "cuda:0"
        adapter.graph_of = lambda g, device: there
        for part, other in zip(parts, expected):
            got = sampler.sample(g, part)
            assert content(got) == other
            if part is not twice:
                check_blocks(g, [5, 4], part, got)
        # The host's ids are known to the engine, or there is a table of ours.
        for places in (dgl_graph.edge_places, places_on_gpu):
            adapter.edge_places = places
            got = sampler.sample(g, parts[0], excluded)
            assert content(got) == around
            check_blocks(g, [5, 4], parts[0], got, excluded=excluded)
        found = [content(each.sample(g, parts[0], e)) for each in drawing for e in (None, excluded)]
        assert found == by_weight
        there.close()
print(pgs.cuda.memory_stats(0)["flights"])
"""


def test_batches_of_the_cpu(emulator: Path) -> None:
    assert run_with_driver(emulator, CODE) == "0\n"


WALKS = """
import warnings
warnings.simplefilter("ignore")
import sys
sys.path.append("tests/support")
import dgl, torch
import pygsampler as pgs
from tests.dgl.graphs import random_graph
import torch_cpu
from pygsampler import dgl as face
from pygsampler.dgl import graph as dgl_graph

made, on_cpu = pgs.RandomWalk.launch, dgl_graph.graph_of
CPU, devices = torch.device("cpu"), []

def noted(self, graph, *values, **options):
    devices.append(graph.device)
    return made(self, graph, *values, **options)

pgs.RandomWalk.launch = noted
for dtype in (torch.int32, torch.int64):
    g = random_graph(dtype=dtype)
    g.edata["w"] = (g.edata["weight"] - 0.3).clamp(min=0)
    users, items = torch.arange(40).repeat(3) % 37, torch.arange(120) % 23
    typed = dgl.heterograph(
        {("user", "buys", "item"): (users, items), ("item", "of", "user"): (items, users)},
        idtype=dtype,
    )
    typed.edges["of"].data["w"] = torch.rand(120) + 0.1
    nodes = torch.arange(0, 500, 7, dtype=dtype)
    few = torch.arange(20, dtype=dtype)
    path = ["buys", "of"] * 3
    chances = torch.tensor([0, 0.2, 0, 0.4, 0, 0])

    def all_of_them():
        seeded = dict(return_eids=True, seed=5)
        walks = [
            *face.random_walk(g, nodes, length=6, restart_prob=0.1, **seeded),
            *face.random_walk(g, nodes, length=6, prob="w", **seeded),
            *face.node2vec_random_walk(g, nodes, 0.5, 2, 6, **seeded),
            *face.node2vec_random_walk(g, nodes, 0.5, 2, 6, "w", **seeded),
            *face.random_walk(typed, few, metapath=path, restart_prob=chances, **seeded),
            *face.random_walk(typed, few, metapath=path, prob="w", **seeded),
        ]
        for sampler in (
            face.PinSAGESampler(typed, "user", "item", 3, 0.5, 10, 3, seed=5),
            face.RandomWalkNeighborSampler(g, 3, 0.5, 10, 3, seed=5),
        ):
            found = sampler(few)
            walks += [*found.edges(order="eid"), found.edata["weights"]]
        return walks

    dgl_graph.graph_of = on_cpu
    face.pinsage.graph_of = on_cpu
    expected = all_of_them()
    for put in ("to", "pin"):
        there = {}
        def on_gpu(g, device, types=()):
            own = on_cpu(g, CPU, types)
            return there.setdefault(own, getattr(own, put)("cuda"))
        dgl_graph.graph_of = face.pinsage.graph_of = on_gpu
        devices.clear()
        found = all_of_them()
        assert devices == ["cuda:0"] * 8
        assert all(mine.equal(other) for mine, other in zip(found, expected, strict=True))
print("the same")
"""


def test_walks_of_the_cpu(emulator: Path) -> None:
    assert run_with_driver(emulator, WALKS) == "the same\n"


TYPES = """
import warnings
warnings.simplefilter("ignore")
import sys
sys.path.append("tests/support")
import dgl, torch
import pygsampler as pgs
from tests.dgl.graphs import WRITES, heterograph
from pygsampler import dgl as face
from pygsampler.dgl import hetero

on_cpu, blocks_of, devices = hetero.graph_of_types, hetero._blocks, []
place_of = hetero.place_of

def blocks_on_host(g, batch, *about):
    devices.append(batch.device)
    return blocks_of(g, batch.cpu(), *about)

hetero._blocks = blocks_on_host

def content(found):
    nodes, _, blocks = found
    return [
        {kind: ids.tolist() for kind, ids in nodes.items()},
        [
            {
                kind: [
                    block.edges[kind].data[name].tolist()
                    for name in (dgl.EID, "edge_weights") if name in block.edges[kind].data
                ] + [ends.tolist() for ends in block.edges(etype=kind)]
                for kind in block.canonical_etypes
            }
            for block in blocks
        ],
    ]

for dtype in (torch.int64, torch.int32):
    g = heterograph(dtype)
    seeds = {
        "paper": torch.cat([torch.arange(30), torch.tensor([7, 7])]).to(dtype),
        "topic": torch.tensor([1], dtype=dtype),
    }
    without = {WRITES: torch.arange(0, 300, 3), "cites": torch.tensor([1, 2, -1, 10**6])}
    samplers = [
        face.PGSampler([3, {"writes": 2, "cites": 4, "has": 1, "never": 1}], seed=1),
        face.PGSampler([3, 3], prob="w", seed=1),
        face.PGSampler([3, 3], mask="w", replace=True, edge_weights="ht", seed=1),
        face.PGSampler([3, -1], edge_dir="out", seed=1),
        face.LaborSampler([3, {"writes": 2, "cites": 4, "has": 1, "never": 1}], seed=1),
        face.LaborSampler([3, 3], prob="w", importance_sampling=1, seed=1),
    ]
    for each in samplers:
        each.set_epoch(1)
    def batches():
        return [content(each.sample_blocks(g, seeds, out))
                for each in samplers for out in (None, without)]
    hetero.graph_of_types = on_cpu
    expected = batches()
    for pinned in (False, True):
        devices.clear()
        def there(g, drawn_by, place):
            own = on_cpu(g, drawn_by)
            return own.pin("cuda") if pinned else own.to("cuda")
        hetero.graph_of_types, hetero.place_of = there, lambda g, seeds: "cuda"
        assert batches() == expected
        assert devices == ["cuda:0"] * 12
    hetero.place_of = place_of
print(pgs.cuda.memory_stats(0)["flights"])
"""


def test_types_as_on_the_cpu(emulator: Path) -> None:
    assert run_with_driver(emulator, TYPES) == "0\n"
