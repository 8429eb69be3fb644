"""Programs over relations, and walks along them, on a GPU: the CPU's, as tensors there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pygsampler as pgs
from tests.support.assertions import content
from tests.support.relation_programs import cited_and_written, make_graph

torch = pytest.importorskip("torch", reason="needs torch")

pytestmark = pytest.mark.usefixtures("gpu")
WRITES, WRITTEN = ("author", "writes", "paper"), ("paper", "written", "author")
SEEDS = {"author": [0, 39, 3], "paper": [7, 3, 7, 58]}
NUMBERS = {"epoch": 1, "batch": 2}


@pytest.fixture
def graph() -> pgs.Graph:
    edges = np.arange(200)
    ends = {WRITES: (edges % 40, edges % 60), WRITTEN: (edges % 60, edges * 7 % 40)}
    weights = {kind: {"w": edges % 5 + 0.5} for kind in ends}
    return pgs.Graph.from_coo(ends, num_nodes={"author": 40, "paper": 60}, edge_data=weights)


@pgs.program
def both(A: Any, seeds: Any, K: int) -> Any:
    writers = A[WRITES][:, seeds["paper"]].collective_sample(K)
    wrote = A[WRITTEN][:, writers.row() | seeds["author"]].individual_sample(2)
    return [wrote, writers], {"all": wrote.sum(axis=0), "reached": wrote.row()}


@pytest.mark.parametrize("put", ["to", "pin"])
def test_programs(graph: pgs.Graph, put: str) -> None:
    there = getattr(graph, put)("cuda")
    sampler = both(K=9, seed=5, weight="w")
    want, got = (sampler.sample(of, SEEDS, **NUMBERS) for of in (graph, there))
    assert got.form == "array" and got.device == "cuda:0"
    assert content(got) == content(want) == content(got.torch()) == content(got.cpu())
    for kind in want.input_nodes:
        assert got.torch().input_nodes[kind].device.type == "cuda"
    on_gpu = {kind: torch.tensor(ids, device="cuda") for kind, ids in SEEDS.items()}
    assert content(sampler.sample(there, on_gpu, **NUMBERS)) == content(want)


@pytest.mark.parametrize("prefetch", [0, 3])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_loader_of_a_program_over_relations(dtype: str, prefetch: int) -> None:
    from pygsampler.torch import DataLoader

    graph = make_graph(dtype)
    x = {kind: torch.arange(4.0 * count).view(count, 4) for kind, count in graph.num_nodes.items()}
    labels = {"paper": torch.arange(60)}
    batches = [
        list(
            DataLoader(
                of,
                {"paper": torch.arange(0, 60, 2), "author": torch.arange(9)},
                cited_and_written(K=2, seed=5, weight="w"),
                batch_size=8,
                shuffle=True,
                prefetch=prefetch,
                features={"x": rows},
                labels=labels,
            )
        )
        for of, rows in (
            (graph, x),
            (graph.to("cuda"), {kind: each.cuda() for kind, each in x.items()}),
        )
    ]
    for want, got in zip(*batches, strict=True):
        assert got.device.type == "cuda" and content(got) == content(want)
        for kind in want.x:
            assert got.x[kind].is_cuda and torch.equal(got.x[kind].cpu(), want.x[kind])
        assert torch.equal(got.y["paper"].cpu(), want.y["paper"])
        for hop in got.blocks:
            for block in hop.values():
                sources, destinations = block.coo()
                assert len(sources) == len(destinations) == block.num_edges
                assert len(block.mean(got.x[block.edge_type[0]][: block.num_src_nodes])) == (
                    block.num_dst_nodes
                )


@pytest.mark.parametrize("put", ["to", "pin"])
def test_walks(graph: pgs.Graph, put: str) -> None:
    there, authors = getattr(graph, put)("cuda"), {"author": SEEDS["author"]}
    walk = pgs.walks.MetaPathWalk([WRITES, WRITTEN], 5, walks_per_seed=3, edge_ids=True, seed=7)
    want, got = (walk.sample(of, authors, **NUMBERS) for of in (graph, there))
    assert got.device == "cuda:0" and got.node_types == want.node_types
    for made in (got.cpu(), walk.sample_many(there, [authors] * 3, epoch=1, batch=0)[2].cpu()):
        assert made.nodes.tolist() == want.nodes.tolist()
        assert made.edge_ids.tolist() == want.edge_ids.tolist()
    pinsage = pgs.walks.PinSAGE(2, 0.5, 10, 3, metapath=[WRITES, WRITTEN], seed=7)
    found = [pinsage.sample(of, authors, **NUMBERS).nodes["author"] for of in (graph, there)]
    assert found[0].tolist() == found[1].cpu().tolist()
    restarts = pgs.walks.RestartNeighbors(None, {"author": 2, "paper": 3}, seed=7)
    met = [restarts.sample(of, SEEDS, **NUMBERS).nodes for of in (graph, there)]
    assert all(met[0][kind].tolist() == met[1][kind].cpu().tolist() for kind in met[0])


@pytest.mark.parametrize("put", ["to", "pin"])
def test_labor_and_hgt(graph: pgs.Graph, put: str) -> None:
    there = getattr(graph, put)("cuda")
    on_gpu = {kind: torch.tensor(ids, device="cuda") for kind, ids in SEEDS.items()}
    for sampler in [pgs.LaborSampler([3, 2], prob="w", seed=3, edge_weights="ht")]:
        want = sampler.sample(graph, SEEDS, **NUMBERS)
        for got in (sampler.sample(there, on_gpu, **NUMBERS), want.to("cuda")):
            tensors = got.torch()
            for kind, ids in want.input_nodes.items():
                assert tensors.input_nodes[kind].device.type == "cuda"
                assert tensors.input_nodes[kind].tolist() == ids.tolist()
            for mine, other in zip(tensors.blocks, want.blocks, strict=True):
                for kind, block in other.items():
                    assert mine[kind].indices.tolist() == block.indices.tolist()
                    assert mine[kind].edge_ids.tolist() == block.edge_ids.tolist()
