"""Graphs with types on a GPU: the batches of the CPU, byte for byte."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pygsampler as pgs
from tests.support.hetero_parity import assert_equal_batches, half_of, make, seeds_of
from tests.support.parity import scaled

pytestmark = pytest.mark.once

NUMBERS = {"epoch": 3, "batch": 1 << 33}


@pytest.mark.parametrize("types", [1, 3, 40])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_random_schemas(types: int, dtype: str) -> None:
    random = np.random.default_rng(types)
    graph = make(types, types, 2 * types, dtype, scaled(4000, 40))
    there = graph.to("cuda")
    assert there.device == "cuda:0"
    assert there.to("cpu") is graph
    some = graph.edge_types[0]
    for place, fanouts in enumerate(([3, 2], [{some: 1}, 40], [-1, 2], [5, {some: 0}, 3])):
        for options in ({}, {"frontier": "new"}, {"replace": True}):
            if "replace" in options and -1 in fanouts:
                continue
            sampler = pgs.PGSampler(fanouts, seed=place, default_fanout=2, **options)
            seeds = seeds_of(graph, random)
            without = half_of(graph, random) if place % 2 else {}
            want = sampler.sample(graph, seeds, exclude=without, **NUMBERS)
            got = sampler.sample(there, seeds, exclude=without, **NUMBERS)
            assert_equal_batches(got, want, (fanouts, options))
            job = sampler.submit(there, seeds, exclude=without, **NUMBERS)
            assert_equal_batches(job.result(), want, (fanouts, options, "submitted"))


@pytest.mark.parametrize(
    "options",
    [{}, {"replace": True, "frontier": "new"}, {"disjoint": True, "prob": "w"}, {"mask": "odd"}],
)
@pytest.mark.parametrize("edge_weights", [None, "ht"])
def test_one_type_is_a_graph_without_types(
    options: dict[str, Any], edge_weights: str | None
) -> None:
    """The bytes of a graph of one relation are those of a graph without types, on a GPU as well."""
    random = np.random.default_rng(1)
    src, dst = random.integers(0, 200, (2, 3000))
    data = {"w": np.arange(3000) % 5 + 1.0, "odd": np.arange(3000) % 2 == 1}
    kind = ("v", "to", "v")
    typed = pgs.Graph.from_coo({kind: (src, dst)}, num_nodes={"v": 200}, edge_data={kind: data})
    plain = pgs.Graph.from_coo(src, dst, num_nodes=200, edge_data=data)
    sampler = pgs.PGSampler([4, 3], seed=2, edge_weights=edge_weights, **options)
    there = typed.to("cuda")
    for seeds in ([5, 9, 5], [7], []):
        made = sampler.sample(there, seeds, **NUMBERS)
        assert_equal_batches(made, sampler.sample(typed, seeds, **NUMBERS), options)
        got = pickle.loads(pickle.dumps(made.cpu()))
        want = sampler.sample(plain.to("cuda"), seeds, **NUMBERS).cpu()
        assert got.input_nodes["v"].tolist() == want.input_nodes.tolist()
        assert got.output_nodes["v"].tolist() == want.output_nodes.tolist()
        for mine, block in zip(got.blocks, want.blocks, strict=True):
            other = mine[kind]
            assert other.num_src_nodes == block.num_src_nodes
            assert other.edge_ids.tolist() == block.edge_ids.tolist()
            assert other.indices.tolist() == block.indices.tolist()
            if edge_weights is not None:
                assert other.edge_weights.tolist() == block.edge_weights.tolist()
        if "disjoint" in options:
            assert got.subgraph_ids["v"].tolist() == want.subgraph_ids.tolist()
    without = {kind: np.arange(0, 3000, 7)}
    assert_equal_batches(
        sampler.sample(there, [5, 9], exclude=without, **NUMBERS),
        sampler.sample(typed, [5, 9], exclude=without, **NUMBERS),
        (options, "excluded"),
    )
    with pytest.raises(IndexError, match=r'seeds\["v"\]\[1\]: expected an id in \[0, 200\), got'):
        sampler.sample(there, [0, 200])


def test_many_batches_and_a_share_of_the_device() -> None:
    graph = make(7, 3, 5, "int64")
    there = graph.to("cuda")
    sampler = pgs.PGSampler([4, 3], seed=1)
    sets = [{"t0": [0]}, {}, {"t1": [0, 0], "t2": [0]}]
    want = sampler.sample_many(graph, sets, epoch=2, batch=7)
    for one in (sampler, sampler.with_gpu_share(0.3)):
        for mine, other in zip(one.sample_many(there, sets, epoch=2, batch=7), want, strict=True):
            assert_equal_batches(mine, other, one)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_masks_weights_and_trees(dtype: str) -> None:
    graph = make(3, 3, 5, dtype)
    there = graph.to("cuda")
    random = np.random.default_rng(5)
    seeds = {kind: random.integers(0, n, 3).astype(dtype) for kind, n in graph.num_nodes.items()}
    for options in (
        {"mask": "odd"},
        {"prob": "w"},
        {"prob": "w", "replace": True},
        {"disjoint": True},
        {"disjoint": True, "prob": "w", "frontier": "new"},
        {"disjoint": True, "mask": "odd"},
        {"edge_weights": "ht"},
        {"edge_weights": "ht", "prob": "w", "disjoint": True},
        {"edge_weights": "ht", "prob": "w", "replace": True},
    ):
        sampler = pgs.PGSampler([3, 12], seed=1, **options)
        want = sampler.sample(graph, seeds, **NUMBERS)
        assert_equal_batches(sampler.sample(there, seeds, **NUMBERS), want, options)
        without = {kind: np.arange(0, n, 3) for kind, n in graph.num_edges.items()}
        want = sampler.sample(graph, seeds, exclude=without, **NUMBERS)
        assert_equal_batches(
            sampler.sample(there, seeds, exclude=without, **NUMBERS), want, (options, "excluded")
        )


def test_errors_name_the_type_and_harm_nothing() -> None:
    graph = make(4, 3, 5, "int32")
    there = graph.to("cuda")
    sampler = pgs.PGSampler([3, 3], seed=1)
    name, count = "t1", graph.num_nodes["t1"]
    for bad in (count, -1):
        text = rf'seeds\["t1"\]\[1\]: expected an id in \[0, {count}\), got {bad}'
        with pytest.raises(IndexError, match=text):
            sampler.sample(there, {"t0": [0], name: [0, bad]})
    kind = graph.edge_types[0]
    with pytest.raises(ValueError, match="exclude"):
        sampler.sample(there, {name: [0]}, exclude={kind: [10**9]})
    with pytest.raises(ValueError, match="types of the graph"):
        sampler.sample(there, {"none": [0]})
    assert_equal_batches(
        sampler.sample(there, {name: [0]}, **NUMBERS),
        sampler.sample(graph, {name: [0]}, **NUMBERS),
        "after errors",
    )


def test_relations_made_of_arrays_on_the_gpu_are_refused_with_the_way_out() -> None:
    relation = pgs.Graph.from_coo([0, 1, 1], [1, 0, 1], num_nodes=2).to("cuda")
    for there in (relation, (relation.indptr, relation.indices)):
        with pytest.raises(ValueError, match=r"^edges\[.*\]: .* on cuda:0; .*graph\.to"):
            pgs.Graph.from_csc({("a", "to", "a"): there}, num_nodes={"a": 2})


def test_graphs_are_closed_and_pickled() -> None:
    graph = make(5, 2, 3, "int64")
    there = graph.to("cuda")
    sampler = pgs.PGSampler([3, 3], seed=1)
    seeds = {"t0": [0], "t1": [0]}
    want = sampler.sample(graph, seeds, **NUMBERS)
    job = sampler.submit(there, seeds, **NUMBERS)
    batch = sampler.sample(there, seeds, **NUMBERS)
    other = pickle.loads(pickle.dumps(there))
    assert other.device == "cuda:0"
    assert_equal_batches(sampler.sample(other, seeds, **NUMBERS), want, "unpickled")
    there.close()
    with pytest.raises(pgs.errors.ClosedError):
        sampler.sample(there, seeds)
    # The submitted job and the earlier batch outlive the graph.
    assert_equal_batches(job.result(), want, "submitted before")
    assert_equal_batches(batch, want, "there before")
    with pytest.raises(TypeError, match="cpu\\(\\) copies it"):
        pickle.dumps(batch)
    assert len(pickle.loads(pickle.dumps(batch.cpu())).input_nodes["t0"]) == len(
        want.input_nodes["t0"]
    )
    # The graph on the CPU has arrays of its own.
    assert_equal_batches(sampler.sample(graph.to("cuda"), seeds, **NUMBERS), want, "brought again")


def test_destinations() -> None:
    graph = make(6, 2, 3, "int32")
    sampler = pgs.PGSampler([4, 3], seed=1, frontier="new")
    seeds = {"t0": [0], "t1": [0]}
    want = sampler.sample(graph, seeds, **NUMBERS)
    got = sampler.sample(graph.to("cuda"), seeds, **NUMBERS)
    for hop, others in zip(got.blocks, want.blocks, strict=True):
        for kind, block in hop.items():
            for mine, other in zip(block.coo(), others[kind].coo(), strict=True):
                assert mine.device == "cuda:0"
                assert mine.cpu().tolist() == other.tolist()


def test_files_and_page_locked_memory(tmp_path: Path) -> None:
    make(5, 4, 6, "int32").save(tmp_path / "typed.pgs")
    graph = pgs.Graph.open(tmp_path / "typed.pgs")
    seeds = seeds_of(graph, np.random.default_rng(5))
    sampler = pgs.PGSampler([4, 4], seed=9)
    want = sampler.sample(graph, seeds, **NUMBERS)
    pinned = graph.pin()
    assert pinned.pinned
    assert repr(pinned).endswith("device=cuda:0, pinned)")
    for there in (pinned, graph.to("cuda"), pickle.loads(pickle.dumps(pinned))):
        assert there.path == graph.path
        assert_equal_batches(sampler.sample(there, seeds, **NUMBERS), want, there)
    assert pinned.pin() is pinned
    assert not pinned.to("cuda").pinned
    assert pinned.to("cpu") is graph
    with pytest.raises(ValueError, match="expected a CUDA device"):
        graph.pin("cpu")
