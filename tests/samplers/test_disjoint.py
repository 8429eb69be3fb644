"""ShaDow with a subgraph for each root: its law, its edges, and PageRank's vertices."""

from __future__ import annotations

import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from partners import partner
from sampler_laws import BOTH, DEGREES, of, plausible

import pygsampler as pgs
from pygsampler import samplers
from tests.gpu import run_with_driver

torch = pytest.importorskip("torch", reason="needs torch")


def trees_of(batch: Any) -> list[tuple[set[int], set[tuple[int, int]]]]:
    """The vertices and the edges, in ids of the graph, of each root's subgraph."""
    src, dst = batch.coo()
    assert batch.subgraph_ids[src.long()].equal(batch.subgraph_ids[dst.long()])
    found = []
    for root in range(len(batch.output_nodes)):
        inside = batch.subgraph_ids[dst.long()] == root
        ends = (batch.nodes[end.long()[inside]].tolist() for end in (src, dst))
        nodes = batch.nodes[batch.subgraph_ids == root].tolist()
        assert len(nodes) == len(set(nodes)) and nodes[0] == batch.output_nodes[root]
        found.append((set(nodes), set(zip(*ends, strict=True))))
    return found


def among(vertices: set[int]) -> set[tuple[int, int]]:
    return {(u, v) for u, v in BOTH if {u, v} <= vertices}


def test_each_root_has_its_own() -> None:
    """From 0 twice, 1 and 2 with chances of a half, each time by itself; and all edges there."""
    graph, sampler = of(BOTH), samplers.shadow_disjoint(fanouts=[1], seed=4)
    counts: Counter[tuple[int, ...]] = Counter()
    for number in range(2000):
        one, other, last = trees_of(sampler.sample(graph, [0, 0, 4], epoch=0, batch=number))
        assert last == ({3, 4}, {(3, 4), (4, 3)})
        for nodes, edges in (one, other):
            assert edges == among(nodes)
        counts[tuple(sorted(one[0]) + sorted(other[0]))] += 1
    law = {(0, u, 0, v): 1 / 4 for u in (1, 2) for v in (1, 2)}
    plausible(counts, law)


def test_hops_are_those_of_the_level_before() -> None:
    """All neighbours of all of two hops: of 4 these are 3 and 2."""
    sampler = samplers.shadow_disjoint(fanouts=[-1, -1], seed=1)
    (found,) = trees_of(sampler.sample(of(BOTH), [4]))
    assert found == ({2, 3, 4}, among({2, 3, 4}))


def test_weights_draw_and_edges_stay() -> None:
    """0 -> 1 is never drawn, and is an edge of the subgraph of 1 that met 0 by 2."""
    weights = np.array([0.0 if edge == (0, 1) else 1.0 for edge in BOTH])
    graph = of(BOTH, edge_data={"w": weights})
    sampler = samplers.shadow_disjoint(fanouts=[2, 2], prob="w", seed=1)
    (found,) = trees_of(sampler.sample(graph, [1]))
    assert 0 in found[0] and (0, 1) in found[1]


def test_a_share_of_a_gpu_changes_no_batch() -> None:
    sampler = samplers.shadow_disjoint(fanouts=[2, 2], seed=1)
    part = sampler.with_gpu_share(0.5)
    assert part.plan == sampler.plan and part.seed == 1
    one, other = (s.sample(of(BOTH), range(5), batch=3) for s in (sampler, part))
    assert one.edge_ids.equal(other.edge_ids) and one.nodes.equal(other.nodes)


def path() -> pgs.Graph:
    return pgs.Graph.from_coo([0, 1, 1, 2], [1, 0, 2, 1], num_nodes=3)


def test_pagerank_of_a_path() -> None:
    sampler = samplers.ppr_shadow(k=3, alpha=0.5, epsilon=1e-9, threshold=0)
    batch = sampler.sample(path(), [0, 2])
    assert batch.nodes.tolist() == [0, 2, 1, 2, 1, 0] and batch.subgraph_ids.tolist() == [
        0,
        1,
        0,
        0,
        1,
        1,
    ]
    want = torch.tensor([7, 7, 4, 1, 4, 1]) / 12
    assert torch.allclose(batch.extra["score"], want, atol=1e-6)
    assert batch.root_index.tolist() == [0, 1]
    two = samplers.ppr_shadow(k=2, alpha=0.5)
    assert trees_of(two.sample(path(), [0, 0])) == [({0, 1}, {(0, 1), (1, 0)})] * 2
    merged = samplers.ppr_shadow(k=2, alpha=0.5, disjoint=False).sample(path(), [2, 0, 2])
    assert merged.subgraph_ids is None and merged.nodes.tolist() == [2, 0, 1]
    assert merged.root_index.tolist() == [0, 1, 0] and merged.num_edges == 4


def test_pagerank_by_linear_equations() -> None:
    """Scores of a symmetric graph are alpha (I - (1 - alpha) P^T)^-1, P^T by columns."""
    step = np.zeros((5, 5))
    for u, v in BOTH:
        step[u, v] = 1 / DEGREES[v]
    exact = 0.3 * np.linalg.inv(np.eye(5) - 0.7 * step)
    sampler = samplers.ppr_shadow(k=5, alpha=0.3, epsilon=1e-9, threshold=0)
    batch = sampler.sample(of(BOTH), range(5))
    got = np.zeros((5, 5))
    got[batch.nodes.numpy(), batch.subgraph_ids.numpy()] = batch.extra["score"].numpy()
    assert np.allclose(got, exact, atol=1e-6)
    # By the threshold some of them go, and what is kept is the best.
    few = samplers.ppr_shadow(k=5, alpha=0.3, epsilon=1e-9, threshold=0.6).sample(of(BOTH), [4])
    others = exact[:4, 4]
    assert set(few.nodes.tolist()) == {4, *np.flatnonzero(others >= 0.6 * others.max()).tolist()}


@pytest.mark.parametrize(
    "sampler",
    [samplers.shadow_disjoint(fanouts=[2, 3], seed=5), samplers.ppr_shadow(k=4, seed=5)],
    ids=["hops", "PageRank"],
)
def test_loaders(sampler: Any) -> None:
    partner("torch_geometric")
    from torch_geometric.data import Data
    from torch_geometric.loader import NodeLoader

    from pygsampler import pyg
    from pygsampler.torch import DataLoader

    rng = np.random.default_rng(0)
    src, dst = rng.integers(0, 60, (2, 300))
    graph = pgs.Graph.from_coo(src, dst, num_nodes=60)
    x = torch.arange(60.0)
    loaders = [
        DataLoader(
            graph, range(60), each, batch_size=16, shuffle=True, features={"x": x}, prefetch=ahead
        )
        for each, ahead in ((sampler, 0), (pickle.loads(pickle.dumps(sampler)), 4))
    ]
    for one, other in zip(*loaders, strict=True):
        assert one.x.equal(x[one.nodes.long()]) and trees_of(one)
        for name in ("nodes", "subgraph_ids", "edge_ids", "indices", "indptr", "root_index"):
            assert getattr(one, name).equal(getattr(other, name))
    edges = torch.from_numpy(np.stack([src, dst]))
    data = Data(edge_index=edges, num_nodes=60)
    theirs = pyg.Sampler(data, sampler)
    theirs.set_epoch(0)
    for batch in NodeLoader(data, theirs, input_nodes=torch.arange(60), batch_size=20):
        assert batch.n_id[: batch.batch_size].equal(batch.input_id)
        assert batch.n_id[batch.edge_index].equal(edges[:, batch.e_id])
        assert batch.batch[batch.edge_index[0]].equal(batch.batch[batch.edge_index[1]])
        assert batch.batch[:20].tolist() == list(range(20))


@pytest.mark.filterwarnings("ignore")
def test_dgl() -> None:
    dgl = partner("dgl")
    from pygsampler.dgl import Sampler

    src, dst = np.random.default_rng(0).integers(0, 60, (2, 300))
    g = dgl.graph((src, dst), num_nodes=60)
    sampler = Sampler(samplers.shadow_disjoint(fanouts=[2, 3], seed=5))
    nodes, seeds, subgraph = sampler.sample(g, torch.tensor([5, 9, 5]))
    subgraph_ids = subgraph.ndata["subgraph_ids"]
    assert seeds.tolist() == [5, 9, 5] == nodes[:3].tolist() and subgraph_ids[:3].tolist() == [
        0,
        1,
        2,
    ]
    u, v = subgraph.edges()
    assert len(u) and subgraph_ids[u].equal(subgraph_ids[v])
    ends = torch.stack(g.find_edges(subgraph.edata[dgl.EID]))
    assert torch.stack([nodes[u], nodes[v]]).equal(ends)
    g.ndata["subgraph_ids"] = torch.zeros(60)
    with pytest.raises(ValueError, match="subgraph_ids: expected a graph without"):
        sampler.sample(g, torch.tensor([5]))


def test_what_is_wrong() -> None:
    graph = path()
    for options, error in (
        ({"k": 0}, ValueError), ({"alpha": 0}, ValueError), ({"alpha": "x"}, TypeError),
        ({"epsilon": float("nan")}, ValueError), ({"threshold": 2}, ValueError),
    ):  # fmt: skip
        with pytest.raises(error, match=f"{next(iter(options))}: expected"):
            samplers.ppr_shadow(**options)  # type: ignore[arg-type]
    for sampler in (samplers.ppr_shadow(), samplers.shadow_disjoint(fanouts=[1])):
        with pytest.raises(IndexError, match="seeds"):
            sampler.sample(graph, [0, 3])
        with pytest.raises(NotImplementedError, match="exclude"):
            sampler.sample(graph, [0], exclude=[0])
        with pytest.raises(TypeError, match="seeds"):
            sampler.sample(graph, [0.5])
        assert sampler.sample(graph, []).num_nodes == 0
    with pytest.raises(ValueError, match="prob: expected the name of an edge array"):
        samplers.shadow_disjoint(fanouts=[1], prob="none").sample(graph, [0])


ON_A_GPU = """
import sys, warnings
warnings.simplefilter("ignore")
sys.path += ["tests/support"]
import numpy as np, torch, torch_cpu
import pygsampler as pgs
from pygsampler import samplers
from importlib import import_module
disjoint = import_module("pygsampler.samplers.shadow")

# What reads arrays of the graph itself gets those of the host.
to_torch = pgs.Array.torch
pgs.Array.torch = lambda array: to_torch(array.cpu())
batches = pgs.MiniBatch.torch
pgs.MiniBatch.torch = lambda batch: batches(batch.cpu())
disjoint._device_of = lambda graph: torch.device("cpu")
rng = np.random.default_rng(0)
graph = pgs.Graph.from_coo(*rng.integers(0, 300, (2, 2000)), num_nodes=300)
there = graph.to("cuda")
for sampler in (samplers.shadow_disjoint(fanouts=[3, 4], seed=2), samplers.ppr_shadow(k=9)):
    for seeds in (list(range(40)), [5, 5, 2]):
        one, other = (sampler.sample(g, seeds, epoch=0, batch=1) for g in (graph, there))
        for name in ("nodes", "subgraph_ids", "edge_ids", "indices", "indptr", "root_index"):
            assert getattr(one, name).tolist() == getattr(other, name).tolist(), name
print("same", one.num_edges > 0)
"""


def test_batches_of_the_cpu(emulator: Path) -> None:
    assert run_with_driver(emulator, ON_A_GPU) == "same True\n"
