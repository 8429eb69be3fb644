"""DataLoader over graphs with types, and its batches in torch's tensors."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import torch

import pygsampler as pgs
from pygsampler._batch.minibatch import MiniBatch
from pygsampler.torch import DataLoader
from tests.support.assertions import assert_equal
from tests.support.hetero_graphs import random_edges

WRITES = ("author", "writes", "paper")
CITES = ("paper", "cites", "paper")
WRITTEN = ("paper", "written", "author")
NODES = {"author": 50, "paper": 120}


@pytest.fixture(scope="module")
def graph() -> pgs.Graph:
    edges = random_edges(NODES, {WRITES: 400, CITES: 900, WRITTEN: 300}, 3)
    return pgs.Graph.from_coo(edges, num_nodes=NODES)


@pytest.fixture(scope="module")
def x() -> dict[str, torch.Tensor]:
    random = torch.Generator().manual_seed(1)
    return {kind: torch.randn(count, 4, generator=random) for kind, count in NODES.items()}


@pytest.mark.parametrize("prefetch", [0, 1, 4])
@pytest.mark.parametrize("frontier", ["all", "new"])
def test_batches_are_those_of_the_sampler(graph: pgs.Graph, prefetch: int, frontier: str) -> None:
    sampler = pgs.PGSampler([4, {WRITES: 2, CITES: 3, WRITTEN: 0}], frontier=frontier, seed=5)
    seeds = {"paper": torch.arange(0, 120, 2)}
    loader = DataLoader(graph, seeds, sampler, batch_size=16, prefetch=prefetch)
    batches = list(loader)
    assert len(batches) == len(loader) == 4
    for number, batch in enumerate(batches):
        part = {"paper": seeds["paper"][16 * number : 16 * number + 16]}
        alone: Any = sampler.sample(graph, part, epoch=0, batch=number)
        assert isinstance(batch, MiniBatch)
        assert_equal(batch, alone.torch())
        assert batch.num_sampled_nodes == alone.num_sampled_nodes
        assert batch.num_sampled_edges == alone.num_sampled_edges


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_seeds_of_several_types_are_dealt_out_once(graph: pgs.Graph, dtype: torch.dtype) -> None:
    seeds = {"paper": torch.arange(120, dtype=dtype), "author": torch.arange(50, dtype=dtype)}
    options: dict[str, Any] = {"batch_size": 16, "shuffle": True, "seed": 3}
    found: dict[str, list[int]] = {"paper": [], "author": []}
    mixed = 0
    for rank in range(2):
        loader = DataLoader(graph, seeds, [2, 2], rank=rank, world_size=2, **options)
        for batch in loader:
            sizes = {kind: len(ids) for kind, ids in batch.output_nodes.items()}
            assert sum(sizes.values()) <= 16
            mixed += min(sizes.values()) > 0
            for kind, ids in batch.output_nodes.items():
                found[kind] += ids.tolist()
    assert {kind: sorted(ids) for kind, ids in found.items()} == {
        kind: list(range(count)) for kind, count in NODES.items()
    }
    assert found["paper"] != sorted(found["paper"])
    assert mixed > 5


def test_one_type_is_as_a_graph_without_types() -> None:
    random = np.random.default_rng(4)
    src, dst = random.integers(0, 100, 700), random.integers(0, 100, 700)
    plain = pgs.Graph.from_coo(src, dst, num_nodes=100)
    typed = pgs.HeteroGraph({("v", "to", "v"): plain})
    options: dict[str, Any] = {"batch_size": 16, "shuffle": True, "seed": 3}
    pairs = zip(
        DataLoader(typed, range(100), [3, 4], **options),
        DataLoader(plain, range(100), [3, 4], **options),
        strict=True,
    )
    for batch, alike in pairs:
        assert torch.equal(batch.input_nodes["v"], alike.input_nodes)
        for hop, block in zip(batch.blocks, alike.blocks, strict=True):
            assert torch.equal(hop["v", "to", "v"].edge_ids, block.edge_ids)
            assert torch.equal(hop["v", "to", "v"].edge_index, block.edge_index)


@pytest.mark.parametrize("prefetch", [0, 4])
def test_rows_by_type(graph: pgs.Graph, x: dict[str, torch.Tensor], prefetch: int) -> None:
    y, e = torch.arange(120) * 2, torch.arange(900).float()
    loader = DataLoader(
        graph,
        {"paper": range(120)},
        [4, 4],
        batch_size=50,
        shuffle=True,
        seed=1,
        prefetch=prefetch,
        features={"x": x, "z": {"author": x["author"]}},
        labels={"paper": y},
        edge_features={"e": {CITES: e}},
    )
    for batch in loader:
        assert set(batch.x) == {"paper", "author"}
        assert set(batch.features) == {"x", "y", "z"}
        for kind, rows in batch.x.items():
            assert torch.equal(rows, x[kind][batch.input_nodes[kind]])
        assert torch.equal(batch.z["author"], batch.x["author"])
        assert torch.equal(batch.y["paper"], 2 * batch.output_nodes["paper"])
        for hop in batch.blocks:
            assert torch.equal(hop[CITES].e, hop[CITES].edge_ids.float())
            assert not hop[WRITES].features
    assert loader.stats()["features"]["x['paper']"]["rows"] > 0


def test_a_batch_can_be_pickled_and_moved(graph: pgs.Graph, x: dict[str, torch.Tensor]) -> None:
    sampler = pgs.PGSampler([4, 4], disjoint=True, edge_weights="ht", seed=2)
    seeds = {"paper": range(20), "author": range(5)}
    loader = DataLoader(graph, seeds, sampler, batch_size=25, features={"x": x})
    (batch,) = loader
    for other in (pickle.loads(pickle.dumps(batch)), batch.to("cpu"), batch.to("meta").input_nodes):
        if isinstance(other, MiniBatch):
            assert_equal(batch, other)
            assert batch.subgraph_ids is not None
            assert other.subgraph_ids is not None
            assert torch.equal(other.x["author"], batch.x["author"])
            assert torch.equal(other.subgraph_ids["paper"], batch.subgraph_ids["paper"])
            block, alike = batch.blocks[0][CITES], other.blocks[0][CITES]
            assert torch.equal(alike.edge_weights, block.edge_weights)
            assert alike.edge_type == CITES
        else:
            assert other["paper"].device.type == "meta"


def test_reductions_are_between_types(graph: pgs.Graph, x: dict[str, torch.Tensor]) -> None:
    loader = DataLoader(graph, {"paper": range(120)}, [3], batch_size=40, features={"x": x})
    for batch in loader:
        block = batch.blocks[0][WRITES]
        src, dst = block.coo()
        rows = batch.x["author"].clone().requires_grad_()
        made = block.sum(rows)
        assert made.shape == (block.num_dst_nodes, 4)
        expected = torch.zeros(block.num_dst_nodes, 4).index_add(0, dst.long(), rows[src.long()])
        torch.testing.assert_close(made, expected)
        made.sum().backward()
        assert rows.grad is not None
        own, found = block.self_and_reduce((batch.x["author"], batch.x["paper"]), "sum")
        torch.testing.assert_close(found, made)
        assert torch.equal(own, batch.x["paper"][: block.num_dst_nodes])
        with pytest.raises(
            TypeError, match=r"x: expected \(x_src, x_dst\) for edges from 'author'"
        ):
            block.self_and_reduce(batch.x["author"])
        own, found = batch.blocks[0][CITES].self_and_reduce(batch.x["paper"])
        assert len(own) == len(found) == batch.blocks[0][CITES].num_dst_nodes


def test_edge_index_has_each_edge_once(graph: pgs.Graph) -> None:
    sampler = pgs.PGSampler([-1, -1], frontier="new", seed=2)
    (batch,) = DataLoader(graph, {"paper": [3, 5]}, sampler, batch_size=2)
    for kind, index in batch.edge_index_dict.items():
        assert index.shape == (2, sum(batch.num_sampled_edges[kind]))
        relation = graph[kind]
        src, dst = (batch.input_nodes[kind[end]][index[i]] for i, end in enumerate((0, 2)))
        ids = torch.cat([hop[kind].edge_ids for hop in reversed(batch.blocks)])
        assert len(ids.unique()) == len(ids)
        position = {int(e): i for i, e in enumerate(relation.edge_ids.torch())}
        rows = relation.indptr.torch()
        for s, d, e in zip(src.tolist(), dst.tolist(), ids.tolist(), strict=True):
            place = position[e]
            assert rows[d] <= place < rows[d + 1]
            assert int(relation.indices.torch()[place]) == s


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"seeds": range(10)}, TypeError, "seeds: expected a mapping of types to ids, got range"),
        ({"seeds": {"venue": [1]}}, ValueError, "seeds: expected types of the graph, got 'venue'"),
        ({"seeds": {"paper": [120]}}, IndexError, r"seeds\['paper'\]\[0\]: .*120"),
        ({"seeds": {"paper": [0.5]}}, TypeError, r"seeds\['paper'\]: expected int32 or int64"),
        (
            {"features": {"x": torch.rand(120, 2)}},
            TypeError,
            r"features\['x'\]: expected a mapping",
        ),
        ({"features": torch.rand(120, 2)}, TypeError, "features: expected a mapping of names"),
        (
            {"features": {"x": {"paper": torch.rand(5, 2)}}},
            ValueError,
            r"\['x'\]\['paper'\]: .*120",
        ),
        ({"features": {"input_nodes": {}}}, ValueError, "names that batches do not have"),
        ({"labels": {"venue": [1]}}, ValueError, "labels: expected types of the graph"),
        (
            {"labels": {}, "features": {"y": {}}},
            ValueError,
            "another name, since labels= uses it, got 'y'",
        ),
        ({"edge_features": {"indices": {}}}, ValueError, "names that batches do not have"),
        ({"static": True}, ValueError, "static: expected a graph on a CUDA device"),
        (
            {"sampler": pgs.RandomWalk(3)},
            TypeError,
            "graph: expected a pygsampler.Graph",
        ),
    ],
)
def test_wrong_arguments(
    graph: pgs.Graph, change: dict[str, Any], error: type[Exception], text: str
) -> None:
    options: dict[str, Any] = {"seeds": {"paper": range(10)}, "sampler": [2]}
    with pytest.raises(error, match=text):
        DataLoader(graph, **{**options, **change}, batch_size=4)


def test_no_seeds_and_an_epoch_of_its_own(graph: pgs.Graph) -> None:
    assert list(DataLoader(graph, {}, [2], batch_size=4)) == []
    loader = DataLoader(graph, {"paper": range(40)}, [2], batch_size=40, shuffle=True, seed=1)
    first, second = next(iter(loader)), next(iter(loader))
    assert (first.epoch, second.epoch) == (0, 1)
    assert not torch.equal(first.output_nodes["paper"], second.output_nodes["paper"])
    loader.set_epoch(0)
    assert_equal(next(iter(loader)), first)
    assert_equal(next(iter(pickle.loads(pickle.dumps(loader)))), second)
