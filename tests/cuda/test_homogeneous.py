"""Programs over relations, walks along them, LABOR and HGT on a device: those of the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pygsampler as pgs
from tests.programs.test_hetero import CITES, EMPLOYS, WRITES, typed
from tests.support.assertions import content
from tests.support.relation_programs import cited_and_written, make_graph

torch = pytest.importorskip("torch", reason="needs torch")

on_gpu = pytest.mark.usefixtures("gpu")
WRITTEN = ("paper", "written", "author")
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


@on_gpu
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


@on_gpu
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


def of_walks(found: Any) -> list[Any]:
    made = found.cpu()
    assert made.node_types == found.node_types
    parts = [made.nodes, made.lengths, *([made.edge_ids] if "edge_ids" in made._arrays else [])]
    return [part.tolist() for part in parts]


def of_visits(found: Any) -> list[Any]:
    return [
        {kind: ids.cpu().tolist() for kind, ids in values.items()}
        for values in (found.nodes, found.counts)
    ]


AUTHORS = {"author": [3, 0, 3, 39]}
WALKS: dict[str, tuple[Any, Any, Any]] = {
    "three relations": (
        pgs.walks.MetaPathWalk([EMPLOYS, WRITES, CITES], edge_ids=True, seed=7),
        [1, 2, 0],
        of_walks,
    ),
    "two relations": (
        pgs.walks.MetaPathWalk([WRITES, WRITTEN], 5, walks_per_seed=3, edge_ids=True, seed=7),
        AUTHORS,
        of_walks,
    ),
    "PinSAGE": (
        pgs.walks.PinSAGE(2, 0.5, 10, 3, metapath=[WRITES, WRITTEN], seed=7),
        AUTHORS,
        of_visits,
    ),
    "restarts": (
        pgs.walks.RestartNeighbors(None, {"author": 2, "paper": 3}, seed=7),
        SEEDS,
        of_visits,
    ),
    # With walks that have to go on, for a type that fills slowly.
    "restarts, capped": (
        pgs.walks.RestartNeighbors(
            None,
            {"author": 2, "paper": 3},
            caps={"author": 9, "paper": 2000},
            collect=400,
            max_steps=3000,
            seed=7,
        ),
        SEEDS,
        of_visits,
    ),
}


@pytest.mark.usefixtures("host_tensors")
@pytest.mark.parametrize("put", ["to", "pin"])
@pytest.mark.parametrize("name", list(WALKS))
def test_walks(graph: pgs.Graph, put: str, name: str) -> None:
    walks, seeds, values = WALKS[name]
    on_cpu = typed(EMPLOYS, WRITES, CITES) if name == "three relations" else graph
    there = getattr(on_cpu, put)("cuda")
    want = values(walks.sample(on_cpu, seeds, **NUMBERS))
    found = walks.sample(there, seeds, **NUMBERS)
    assert str(getattr(found, "device", "cuda:0")) == "cuda:0" or found.form == "torch"
    assert values(found) == want
    assert values(walks.sample_many(there, [seeds] * 3, epoch=1, batch=0)[2]) == want
    assert there._joint(*next(iter(there._joints))).graph.device == "cuda:0"
    there.close()


@pytest.mark.usefixtures("host_tensors")
def test_seeds_of_walks_that_are_none(graph: pgs.Graph) -> None:
    there, text = graph.to("cuda"), r"seeds\[1\]: expected an id in \[0, 40\), got 40"
    with pytest.raises(IndexError, match=text):
        pgs.walks.MetaPathWalk([WRITES]).sample(there, [3, 40], batch=0)
    assert pgs.cuda.memory_stats(0)["flights"] == 0


def arrays(batch: Any) -> list[Any]:
    """All that a batch has, on the CPU, where it is moved back and forth."""
    made = batch.cpu()
    assert made.device == "cpu"
    if batch is not made:
        assert batch.device == "cuda:0" and made.to("cuda").cpu()._source._words
    mappings = made.input_nodes, made.output_nodes, made.output_index
    return [[ids.tolist() for ids in mapping.values()] for mapping in mappings] + [
        [
            getattr(block, name).tolist()
            for name in ("indptr", "indices", "edge_ids", "edge_weights")
            if getattr(block, name) is not None
        ]
        for hop in made.blocks
        for block in hop.values()
    ]


FANOUTS = [3, {WRITES: 2, EMPLOYS: 1, CITES: 4}]


@pytest.mark.parametrize("put", ["to", "pin"])
@pytest.mark.parametrize(
    "sampler",
    [
        pgs.LaborSampler(FANOUTS, prob="w", seed=3, edge_weights="ht"),
        pgs.LaborSampler([3, 2], exact=True, edge_weights=None, seed=3),
        pgs.samplers.HGTSampler([9, 4], seed=3),
    ],
    ids=["weighted", "exact", "hgt"],
)
def test_labor_and_hgt(sampler: Any, put: str) -> None:
    cpu = typed(EMPLOYS, WRITES, CITES)
    for exclude in (None, {CITES: list(range(0, 200, 3))}):
        options = {**NUMBERS, "exclude": exclude}
        want = arrays(sampler.sample(cpu, SEEDS, **options))
        there = getattr(cpu, put)("cuda")
        batch = sampler.sample(there, SEEDS, **options)
        assert arrays(batch) == want
        assert arrays(sampler.submit(there, SEEDS, **options).result()) == want
        there.close()
        assert arrays(batch) == want


@on_gpu
@pytest.mark.parametrize("put", ["to", "pin"])
def test_labor_in_torch(graph: pgs.Graph, put: str) -> None:
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
