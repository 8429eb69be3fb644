"""A DistGraph, in the one process that it can be in: sampled by DGL, or refused in one sentence."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import os
import sys

os.environ["DGL_DIST_MODE"] = "standalone"

import dgl
import torch

import pygsampler as pgs
from pygsampler._sampling.extensions import MODES
from pygsampler.dgl import *

torch.manual_seed(0)
folder = sys.argv[1]
graphs = {
    "one": dgl.graph((torch.randint(90, (900,)), torch.randint(90, (900,)))),
    "many": dgl.heterograph({
        ("a", "to", "b"): (torch.randint(20, (200,)), torch.randint(50, (200,))),
        ("b", "back", "a"): (torch.randint(50, (200,)), torch.randint(20, (200,))),
    }),
}
for name, graph in graphs.items():
    dgl.distributed.partition_graph(graph, name, 1, folder)
dgl.distributed.initialize("")
g, h = (dgl.distributed.DistGraph(name, part_config=f"{folder}/{name}.json") for name in graphs)
half = lambda shape, dtype: torch.arange(*shape) % 2 == 0
policy = g.get_edge_partition_policy(g.canonical_etypes[0])
g.edata["m"] = dgl.distributed.DistTensor(
    (900,), torch.bool, "m", init_func=half, part_policy=policy
)

ids = torch.arange(6)
nodes, seeds, blocks = NeighborSampler([3, 2]).sample(g, ids)
assert [int(block.in_degrees().max()) for block in blocks] == [3, 2] and seeds is ids
assert blocks[0].srcdata[dgl.NID].equal(nodes)
edges = NeighborSampler([4], mask="m").sample(g, ids)[2][0].edata[dgl.EID]
assert len(edges) and bool(g.edata["m"][edges].all())
nodes, seeds, blocks = MultiLayerFullNeighborSampler(1).sample(h, {"b": ids})
assert blocks[0].num_edges("to") == int(graphs["many"].in_degrees(ids, etype="to").sum())
collator = dgl.dataloading.dist_dataloader.EdgeCollator(g, ids, NeighborSampler([2]))
_, pairs, _ = collator.collate([*range(6)])
assert pairs.num_edges() == 6

two = {"a": ids, "b": ids}
calls = {
    "labor": lambda: LaborSampler([2]).sample(h, two),
    "shadow": lambda: ShaDowKHopSampler([2]).sample(g, ids),
    "shadow of types": lambda: ShaDowKHopSampler([2]).sample(h, two),
    "saint": lambda: SAINTSampler("node", 3).sample(g, ids),
    "saint's vertices": lambda: SAINTSampler("node", 3).sampler(g),
    "program": lambda: Sampler(pgs.samplers.shadow(fanouts=[2])).sample(h, two),
    "clusters": lambda: ClusterGCNSampler(g, 2, None),
    "pinsage": lambda: PinSAGESampler(h, "a", "b", 1, 0.5, 1, 1),
    "walk neighbours": lambda: RandomWalkNeighborSampler(g, 1, 0.5, 1, 1),
    "walk": lambda: random_walk(g, [0], length=2),
    "walk of types": lambda: random_walk(h, [0], metapath=["to"]),
    "node2vec": lambda: node2vec_random_walk(g, [0], 1, 1, 2),
    "graph": lambda: pgs.Graph.from_dgl(g),
    "graph of types": lambda: pgs.Graph.from_dgl(h),
}
for name, call in calls.items():
    try:
        call()
    except TypeError as error:
        text = str(error)
        assert text[:2] in ("g:", "G:") and "expected a dgl.DGLGraph, got a DistGraph" in text, text
        assert "pygsampler.dgl.NeighborSampler has DGL's own sampling for it" in text, text
    else:
        raise AssertionError(f"{name}: no error")
for options in ({"edge_weights": "ht"}, *({"mode": mode} for mode in ("persistent", *MODES))):
    try:
        NeighborSampler([2], **options).sample(g, ids)
    except NotImplementedError as error:
        assert "for a DistGraph, which DGL's own method samples, got" in str(error), error
    else:
        raise AssertionError(f"{options}: no error")
print("done")
"""


def test_a_distributed_graph(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0 and "done" in ran.stdout, ran.stdout + ran.stderr
