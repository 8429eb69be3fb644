"""Loaders of programs over relations: the sampler's batches, with features of several types."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import torch
from relation_programs import CITES, EDGES, NODES, WRITES, cited_and_written, make_graph

import pygsampler as pgs
from pygsampler.torch import DataLoader, LinkLoader
from tests.support.assertions import content, fields

SEEDS = {"paper": np.arange(0, 60, 2), "author": [3, 0, 39]}


@pytest.fixture(scope="module")
def graph() -> pgs.Graph:
    return make_graph()


def sampler() -> Any:
    return cited_and_written(K=2, seed=5, weight="w")


@pytest.mark.parametrize("prefetch", [0, 4])
def test_loader_attaches_features_of_types(graph: pgs.Graph, prefetch: int) -> None:
    x = {kind: torch.arange(4.0 * count).view(count, 4) for kind, count in NODES.items()}
    rows = {CITES: torch.arange(1.0 * EDGES), WRITES: torch.arange(2.0 * EDGES).view(EDGES, 2)}
    loader = DataLoader(
        graph,
        SEEDS,
        sampler(),
        batch_size=8,
        prefetch=prefetch,
        features={"x": x},
        labels={"paper": torch.arange(60)},
        edge_features={"f": rows},
    )
    batches = list(loader)
    assert len(batches) == len(loader) == 5
    for number, batch in enumerate(batches):
        seeds = {kind: ids for kind, ids in batch.output_nodes.items() if len(ids)}
        direct = sampler().sample(graph, seeds, epoch=0, batch=number)
        assert content(direct).items() <= content(batch).items()
        assert set(batch.x) == set(NODES)
        for kind, ids in batch.input_nodes.items():
            assert torch.equal(batch.x[kind], x[kind][ids])
        assert torch.equal(batch.y["paper"], batch.output_nodes["paper"])
        for hop in batch.blocks:
            for kind, of_edges in rows.items():
                assert torch.equal(hop[kind].f, of_edges[hop[kind].edge_ids])
    seen = torch.cat([batch.output_nodes["paper"] for batch in batches])
    assert seen.tolist() == SEEDS["paper"].tolist()


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("seeds", [SEEDS, {"paper": np.arange(60, dtype=np.int32)}, None])
def test_stream_yields_the_batches_of_the_loader(
    graph: pgs.Graph, seeds: Any, shuffle: bool
) -> None:
    sampler = pgs.PGSampler([2, 2], seed=5) if seeds is None else cited_and_written(K=2, seed=5)
    options: dict[str, Any] = {"batch_size": 8, "shuffle": shuffle}
    given = seeds or {kind: np.arange(count) for kind, count in NODES.items()}
    expected = [content(batch) for batch in DataLoader(graph, given, sampler, **options)]
    for prefetch in (0, 4):
        batches = pgs.stream(graph, sampler, seeds, epoch=0, prefetch=prefetch, **options)
        assert [content(batch) for batch in batches] == expected


def test_stream_names_the_type_of_a_wrong_seed(graph: pgs.Graph) -> None:
    for seeds, error, text in (
        ({"paper": [0, 60]}, IndexError, r"seeds\['paper'\]\[1\]: expected .* got 60"),
        ({"papers": [0]}, ValueError, "seeds: expected types of the graph, got 'papers'"),
        ([0], TypeError, "seeds: expected a mapping of types"),
    ):
        with pytest.raises(error, match=text):
            pgs.stream(graph, sampler(), seeds)


def test_layers_run_on_the_batches(graph: pgs.Graph) -> None:
    x = {kind: torch.ones(count, 3) for kind, count in NODES.items()}
    for batch in DataLoader(graph, SEEDS, sampler(), batch_size=16, features={"x": x}):
        h: Any = batch.x["author"].requires_grad_()
        block = batch.blocks[0][WRITES]
        out = block.weighted_sum(h, block.edge_weights)
        out.sum().backward()
        assert torch.equal(out[:, 0] > 0, block.in_degrees() > 0)
        assert h.grad is not None and len(out) == block.num_dst_nodes


def test_link_loader_takes_a_program_over_relations(graph: pgs.Graph) -> None:
    loader = LinkLoader(graph, {CITES: np.arange(40)}, sampler(), batch_size=16)
    batches = list(loader)
    assert len(batches) == 3
    for batch in batches:
        # The edges to predict are excluded.
        excluded = set(batch.input_id[CITES].tolist())
        for hop in batch.minibatch.blocks:
            assert not excluded & set(hop[CITES].edge_ids.tolist())


@pytest.mark.parametrize("edge_ids", [None, "int32", "int64"])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_arrays_have_the_dtypes_of_the_graph(dtype: str, edge_ids: str | None) -> None:
    graph = make_graph(dtype, edge_ids)
    batch = sampler().sample(graph, SEEDS, batch=0)
    for kind in NODES:
        assert batch.input_nodes[kind].dtype == batch.output_index[kind].dtype == dtype
    for hop in batch.blocks:
        for block in hop.values():
            assert block.indptr.dtype == block.indices.dtype == dtype
            assert block.edge_ids.dtype == (edge_ids or dtype)
    expected = content(batch)
    if edge_ids is None:
        wide = sampler().sample(make_graph(), SEEDS, batch=0)
        mine, theirs = (
            {name: np.asarray(value).tolist() for name, value in fields(each)}
            for each in (batch, wide)
        )
        assert mine == theirs
    copy = pickle.loads(pickle.dumps(batch))
    for other in (copy, batch.torch(), batch.numpy(), pickle.loads(pickle.dumps(batch.torch()))):
        assert content(other) == expected
        assert other.blocks[0][WRITES].edge_data["halved"].tolist() == [
            w / 2 for w in batch.blocks[0][WRITES].edge_weights.tolist()
        ]
    arrow = batch.arrow()
    assert arrow.blocks[0][WRITES].edge_ids.to_pylist() == batch.blocks[0][WRITES].edge_ids.tolist()
