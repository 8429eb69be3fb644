"""Every bad input gets an error that says expected, got and where, and harms nothing."""

from __future__ import annotations

import contextlib
import os
import pickle
from array import array

import numpy as np
import pytest
import torch
from graphs import as_lists, circulant

import pygsampler as pgs
from tests.support.research import of_research

NODES = 20


@pytest.fixture
def graph() -> pgs.Graph:
    return circulant(NODES, 4)


@pytest.fixture
def sampler() -> pgs.PGSampler:
    return pgs.PGSampler([2, 2], seed=0)


@pytest.fixture(autouse=True)
def objects_stay_usable(graph, sampler):
    before = as_lists(sampler.sample(graph, [1, 2], batch=0))
    yield
    assert as_lists(sampler.sample(graph, [1, 2], batch=0)) == before


# ---- the graph ----


@pytest.mark.parametrize(
    ("indptr", "indices", "error", "message"),
    [
        ([0, 2, 1], [0, 0], ValueError, r"indptr\[2\]: .* got 1"),
        ([0, 2, 1, 2], [0, 0], ValueError, r"indptr\[2\]: .* got 1"),
        ([1, 2], [0, 0], ValueError, r"indptr\[0\]: expected 0, got 1"),
        ([-1, 2], [0, 0], ValueError, r"indptr\[0\]: expected 0, got -1"),
        ([0, 3], [0, 0], ValueError, r"indptr\[1\]: .* got 3"),
        ([0, 1], [0, 0], ValueError, r"indptr\[1\]: .* got 1"),
        ([0, 2**62], [0, 0], ValueError, r"indptr\[1\]: .* got 4611686018427387904"),
        ([], [], ValueError, r"indptr: expected at least one value \(0\), got an empty array"),
        ([0, 2], [0, 1], ValueError, r"indices\[1\]: .* got 1"),
        ([0, 2], [0, -1], ValueError, r"indices\[1\]: .* got -1"),
        ([0, 2], [2**62, 0], ValueError, r"indices\[0\]: .* got 4611686018427387904"),
        ([0, 1.0], [0], TypeError, r"indptr\[1\]: expected an integer, got float 1.0"),
        ([0, 1], [None], TypeError, r"indices\[0\]: expected an integer, got NoneType None"),
        (np.array([0.0, 1.0]), [0], TypeError, "indptr: expected .* got float64"),
        ([0, 1], np.array([0], "uint32"), TypeError, "indices: expected .* got uint32"),
        ([0, 1], torch.tensor([0.5]), TypeError, "indices: expected .* got torch.float32"),
        (np.array([[0], [1]]), [0], ValueError, r"indptr: expected .* got shape \(2, 1\)"),
        (None, [0], TypeError, "indptr: expected .* got NoneType None"),
        ([0, 1], "0", TypeError, "indices: expected .* got str '0'"),
    ],
)
def test_wrong_csc(indptr, indices, error, message):
    with pytest.raises(error, match=message):
        pgs.Graph.from_csc(indptr, indices)


@pytest.mark.parametrize("bits", ["i", "q"])
def test_mistakes_far_into_large_arrays_are_found(bits):
    n = 300_000
    indptr, indices = array("q", range(n + 1)), array(bits, [0]) * n
    indices[n - 2] = n
    with pytest.raises(ValueError, match=rf"indices\[{n - 2}\]: .* got {n}"):
        pgs.Graph.from_csc(indptr, indices)
    indices[n - 2] = 0
    indptr[n - 3] = 0
    with pytest.raises(ValueError, match=rf"indptr\[{n - 3}\]: .* got 0"):
        pgs.Graph.from_csc(indptr, indices)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"num_nodes": 1}, ValueError, "num_nodes: expected an integer from 2 to .*, got 1"),
        ({"num_nodes": -1}, ValueError, "num_nodes: expected an integer from 2 to .*, got -1"),
        ({"num_nodes": 1 << 49}, ValueError, "num_nodes: expected an integer from 2 to .*, got 56"),
        ({"num_nodes": 2.0}, TypeError, "num_nodes: expected an integer .*, got float 2.0"),
        ({"num_nodes": True}, TypeError, "num_nodes: expected an integer .*, got bool True"),
        ({"num_nodes": "2"}, TypeError, "num_nodes: expected an integer .*, got str '2'"),
        ({"edge_ids": [1]}, ValueError, "edge_ids: expected one for each of 2 edges, got 1"),
        ({"edge_ids": [1, 2, 3]}, ValueError, "edge_ids: expected one for each of 2 edges, got 3"),
        ({"edge_ids": [1, 2.5]}, TypeError, r"edge_ids\[1\]: expected an integer, got float 2.5"),
        ({"edge_ids": np.zeros(2)}, TypeError, "edge_ids: expected .* got float64"),
    ],
)
def test_wrong_options_of_a_graph(options, error, message):
    with pytest.raises(error, match=message):
        pgs.Graph.from_csc([0, 1, 2], [1, 0], **options)


def test_too_many_vertices_for_32_bits():
    with pytest.raises(ValueError, match=r"num_nodes: expected .* to 2147483648, got"):
        pgs.Graph.from_csc([0, 1], array("i", [0]), num_nodes=2**31 + 1)
    assert pgs.Graph.from_csc([0, 1], array("i", [0]), num_nodes=2**31).num_nodes == 2**31


@pytest.mark.parametrize(
    ("src", "dst", "options", "error", "message"),
    [
        ([0, 1], [1], {}, ValueError, r"dst: expected as many values as src has \(2\), got 1"),
        ([0, -1], [0, 0], {}, ValueError, r"src\[1\]: .* got -1"),
        ([0, 0], [0, -1], {}, ValueError, r"dst\[1\]: .* got -1"),
        ([0, 5], [0, 0], {"num_nodes": 5}, ValueError, r"src\[1\]: .* got 5"),
        ([0, 0], [0, 5], {"num_nodes": 5}, ValueError, r"dst\[1\]: .* got 5"),
        (
            [0],
            [0],
            {"num_nodes": -1},
            ValueError,
            "num_nodes: expected .* got -1",
        ),
        (
            [0],
            [0],
            {"num_nodes": 1.0},
            TypeError,
            "num_nodes: expected an integer .* got float 1.0",
        ),
        ([0.0], [0], {}, TypeError, r"src\[0\]: expected an integer, got float 0.0"),
        ([0], np.zeros((1, 1), int), {}, ValueError, r"dst: expected .* got shape \(1, 1\)"),
    ],
)
def test_wrong_coo(src, dst, options, error, message):
    with pytest.raises(error, match=message):
        pgs.Graph.from_coo(src, dst, **options)


# ---- the sampler ----


@pytest.mark.parametrize(
    ("fanouts", "error", "message"),
    [
        ([], ValueError, "fanouts: expected 1 to 256 hops, got 0"),
        ([1] * 257, ValueError, "fanouts: expected 1 to 256 hops, got 257"),
        ([1, -3], ValueError, r"fanouts\[1\]: expected an integer >= -1, got -3"),
        ([1.5], TypeError, r"fanouts\[0\]: expected an integer >= -1, got float 1.5"),
        ([float("nan")], TypeError, r"fanouts\[0\]: expected an integer >= -1, got float nan"),
        ([True], TypeError, r"fanouts\[0\]: expected an integer >= -1, got bool True"),
        (["10"], TypeError, r"fanouts\[0\]: expected an integer >= -1, got str '10'"),
        ([None], TypeError, r"fanouts\[0\]: expected an integer >= -1, got NoneType None"),
        ([[10, 10]], TypeError, r"fanouts\[0\]: expected an integer >= -1, got list \[10, 10\]"),
        ([2**31], ValueError, r"fanouts\[0\]: expected at most 2147483647 .*, got 2147483648"),
        (10, TypeError, "fanouts: expected a sequence of int, outermost hop first, got int 10"),
        ("10", TypeError, "fanouts: expected a sequence of int, .* got str '10'"),
        (None, TypeError, "fanouts: expected a sequence of int, .* got NoneType None"),
        ({10: 10}, TypeError, "fanouts: expected a sequence of int, .* got dict"),
        ({10}, TypeError, "fanouts: expected a sequence of int, .* got set"),
        ((f for f in [1]), TypeError, "fanouts: expected a sequence of int, .* got generator"),
    ],
)
def test_wrong_fanouts(fanouts, error, message):
    with pytest.raises(error, match=message):
        pgs.PGSampler(fanouts)


def test_fanouts_of_other_kinds():
    assert pgs.PGSampler((1, 2)).fanouts == (1, 2)
    assert pgs.PGSampler(np.array([3, -1])).fanouts == (3, -1)
    assert pgs.PGSampler(torch.tensor([4])).fanouts == (4,)
    assert pgs.PGSampler(range(1, 3)).fanouts == (1, 2)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"replace": 1}, TypeError, "replace: expected True or False, got int 1"),
        *of_research(
            (
                {"mode": "queue", "mode_options": {"ordered": None}},
                TypeError,
                "ordered: expected True or False, got NoneType None",
            ),
            (
                {"mode": "queue", "mode_options": {"fetch_size": 257}},
                ValueError,
                "fetch_size: expected an integer from 1 to 256, got 257",
            ),
            (
                {"mode": "fused", "mode_options": {"fetch_size": 5}},
                ValueError,
                "mode_options: expected none in mode 'fused', got str 'fetch_size'",
            ),
            (
                {"fanouts": [{"cites": 2}], "mode": "queue"},
                ValueError,
                "mode: expected one of .* with fanouts by edge type, got 'queue'",
            ),
            (
                {"mode": "queue", "frontier": "new"},
                ValueError,
                r"mode: expected 'auto' or 'persistent' with frontier='new', got 'queue'",
            ),
        ),
        (
            {"temporal": "t", "mode_options": {"fetch_size": 5}},
            ValueError,
            "mode_options: expected none in mode 'auto', got str 'fetch_size'",
        ),
        ({"seed": 1.0}, TypeError, "seed: expected an integer .* got float 1.0"),
        ({"seed": "0"}, TypeError, "seed: expected an integer .* got str '0'"),
        ({"seed": 2**64}, ValueError, f"seed: expected an integer .* got {2**64}"),
        (
            {"seed": -(2**63) - 1},
            ValueError,
            "seed: expected .* got -9223372036854775809",
        ),
        (
            {"mode": "fast"},
            ValueError,
            r"mode: expected one of \('auto', .*, got str 'fast'",
        ),
        (
            {"mode": None},
            ValueError,
            r"mode: expected one of \('auto', .*, got NoneType None",
        ),
        (
            {"frontier": "some"},
            ValueError,
            r"frontier: expected one of \('all', 'new'\), got str 'some'",
        ),
        (
            {"disjoint": 1},
            TypeError,
            r"disjoint: expected True or False, got int 1",
        ),
        ({"map_bytes": 0}, ValueError, "map_bytes: expected an integer from 1 to .* got 0"),
        ({"map_bytes": 1e6}, TypeError, "map_bytes: expected an integer .* got float 1000000.0"),
    ],
)
def test_wrong_options_of_a_sampler(options, error, message):
    with pytest.raises(error, match=message):
        pgs.PGSampler(**{"fanouts": [2], **options})


def test_options_have_to_be_named():
    with pytest.raises(TypeError):
        pgs.PGSampler([2], True)  # type: ignore[misc]
    with pytest.raises(TypeError):
        pgs.Graph.from_csc([0], [], None)  # type: ignore[misc]


# ---- a call ----


@pytest.mark.parametrize(
    ("sets", "error", "message"),
    [
        ([[0], [1, NODES]], IndexError, rf"^seeds\[1\]\[1\]: .* got {NODES}"),
        ([[0], [1], [-1]], IndexError, r"^seeds\[2\]\[0\]: .* got -1"),
        ([[0], [0.5]], TypeError, r"^seeds\[1\]\[0\]: expected an integer, got float 0.5"),
        ([[0], 3], TypeError, r"^seeds\[1\]: expected .* got int 3"),
        ([[0], np.zeros((1, 1), int)], ValueError, r"^seeds\[1\]: expected .* got shape \(1, 1\)"),
        (3, TypeError, r"^seeds: expected several arrays of ids, got int 3"),
    ],
)
def test_wrong_seeds_of_several_sets(graph, sampler, sets, error, message):
    with pytest.raises(error, match=message):
        sampler.sample_many(graph, sets)


@pytest.mark.parametrize(
    ("seeds", "error", "message"),
    [
        ([3, NODES], IndexError, rf"seeds\[1\]: .* got {NODES}"),
        ([-1], IndexError, r"seeds\[0\]: .* got -1"),
        ([0] * 5000 + [NODES], IndexError, rf"seeds\[5000\]: .* got {NODES}"),
        (np.array([2**40]), IndexError, rf"seeds\[0\]: .* got {2**40}"),
        ([2**70], IndexError, r"seeds\[0\]: expected an integer of 64 bits"),
        ([1.0], TypeError, r"seeds\[0\]: expected an integer, got float 1.0"),
        ([float("nan")], TypeError, r"seeds\[0\]: expected an integer, got float nan"),
        (np.array([1.0, np.nan]), TypeError, "seeds: expected .* got float64"),
        (torch.zeros(20, dtype=torch.bool), TypeError, r"got torch.bool; mask.nonzero\(\)"),
        (np.zeros(20, bool), TypeError, r"got bool; mask.nonzero\(\)\[0\]"),
        (torch.zeros(3, dtype=torch.int16), TypeError, r"got torch.int16; .long\(\)"),
        (np.zeros(3, "uint8"), TypeError, "seeds: expected .* got uint8; .astype"),
        (np.zeros((2, 2), int), ValueError, r"seeds: expected .* got shape \(2, 2\)"),
        (3, TypeError, "seeds: expected .* got int 3"),
        (None, TypeError, "seeds: expected .* got NoneType None"),
        ("12", TypeError, "seeds: expected .* got str '12'"),
        (torch.zeros(2, dtype=torch.int64, device="meta"), ValueError, "seeds: .* got one on meta"),
    ],
)
def test_wrong_seeds(graph, sampler, seeds, error, message):
    with pytest.raises(error, match=message):
        sampler.sample(graph, seeds)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("bits", [32, 64])
def test_seeds_of_either_width_fit_every_graph(dtype, bits):
    sampler = pgs.PGSampler([2], seed=0)
    batch = sampler.sample(circulant(10, 3, bits), np.array([1, 9], dtype), batch=0)
    assert batch.output_nodes.tolist() == [1, 9]
    assert batch.output_nodes.dtype == f"int{bits}"


def test_seeds_beyond_32_bits_do_not_wrap_around():
    with pytest.raises(IndexError, match=rf"seeds\[0\]: .* got {2**32 + 1}"):
        pgs.PGSampler([2], seed=0).sample(circulant(10, 3, 32), [2**32 + 1])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"epoch": -1}, ValueError, "epoch: expected an integer from 0 to 16777215, got -1"),
        ({"epoch": 2**24}, ValueError, "epoch: expected an integer .* got 16777216"),
        ({"epoch": 1.0}, TypeError, "epoch: expected an integer .* got float 1.0"),
        ({"batch": -1}, ValueError, "batch: expected an integer from 0 to 1099511627775, got -1"),
        ({"batch": 2**40}, ValueError, "batch: expected an integer .* got 1099511627776"),
        ({"batch": "1"}, TypeError, "batch: expected an integer .* got str '1'"),
        ({"threads": -1}, ValueError, "threads: expected an integer .* got -1"),
        ({"threads": 1.5}, TypeError, "threads: expected an integer .* got float 1.5"),
        ({"exclude": [80]}, ValueError, r"exclude\[0\]: .* got 80"),
        ({"exclude": [0, -1]}, ValueError, r"exclude\[1\]: .* got -1"),
        ({"exclude": [0.5]}, TypeError, r"exclude\[0\]: expected an integer, got float 0.5"),
        ({"exclude": np.zeros(3)}, TypeError, "exclude: expected .* got float64"),
        ({"exclude": 3}, TypeError, "exclude: expected .* got int 3"),
    ],
)
def test_wrong_options_of_a_call(graph, sampler, options, error, message):
    with pytest.raises(error, match=message):
        sampler.sample(graph, [0], **options)


def test_wrong_epochs(sampler):
    for epoch in (-1, 2**24):
        with pytest.raises(ValueError, match=f"epoch: expected an integer .* got {epoch}"):
            sampler.set_epoch(epoch)
    with pytest.raises(TypeError, match=r"epoch: expected an integer .* got float 0.5"):
        sampler.set_epoch(0.5)
    assert sampler.epoch == 0


@pytest.mark.parametrize("wrong", [None, 3, [0, 1], np.zeros(3), "graph", pgs.Graph])
def test_wrong_graphs(sampler, wrong):
    with pytest.raises(TypeError, match=r"graph: expected a pygsampler.Graph, got .*; Graph.from_"):
        sampler.sample(wrong, [0])


def test_a_dgl_graph_where_ours_belongs(dgl, sampler):
    with pytest.raises(TypeError, match=r"got DGLGraph; Graph.from_dgl .*pygsampler.dgl.PGSampler"):
        sampler.sample(dgl.graph(([0], [1])), [0])


def test_a_closed_graph(sampler):
    graph = circulant(5, 2)
    graph.close()
    with pytest.raises(pgs.errors.ClosedError, match="graph: expected an open graph"):
        sampler.sample(graph, [0])
    with pytest.raises(pgs.errors.ClosedError, match="graph: expected an open graph"):
        pickle.dumps(graph)


def test_a_job_of_another_process(graph, sampler):
    job = sampler.submit(graph, [0])
    with pytest.raises(TypeError, match="Job: expected something to pickle"):
        pickle.dumps(job)
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            job.result()
        except BaseException as error:
            os.write(write, f"{type(error).__name__}: {error}".encode())
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    text = os.read(read, 1000).decode()
    assert text.startswith("Error: job: expected a job of this process, got one submitted before")
    assert job.result().blocks[-1].num_edges == 2


# ---- what cannot be checked beforehand ----


@pytest.mark.parametrize("mode", ["auto", *of_research("queue")])
@pytest.mark.parametrize("value", [-1, -(2**62), NODES, 2**40, 2**62])
def test_values_changed_behind_our_back_do_not_crash(mode, value):
    indptr = np.arange(0, 4 * NODES + 1, 4)
    indices = np.arange(4 * NODES) % NODES
    graph = pgs.Graph.from_csc(indptr, indices)
    sampler = pgs.PGSampler([-1, 2, 3], seed=0, mode=mode)
    before = as_lists(sampler.sample(graph, range(NODES), batch=0))
    for changed in (indices, indptr):
        kept = changed.copy()
        changed[5:9] = value
        with contextlib.suppress(pgs.Error, ValueError, IndexError, MemoryError):
            sampler.sample(graph, range(NODES))
        changed[:] = kept
        assert as_lists(sampler.sample(graph, range(NODES), batch=0)) == before


def test_what_no_machine_can_hold_is_a_memory_error():
    with pytest.raises(MemoryError):
        pgs.Graph.from_coo([0], [2**46])
    ring = circulant(1000, 1)
    with pytest.raises(MemoryError):
        pgs.PGSampler([2**31 - 1] * 3, replace=True, seed=0).sample(ring, range(1000))
