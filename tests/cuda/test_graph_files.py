"""Graphs of a file on the device: copied, page-locked, validated there, sent to a process."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

import pygsampler as pgs
from tests.support.assertions import assert_equal
from tests.support.parity import random_graph


@pytest.fixture
def opened(tmp_path: Path) -> pgs.Graph:
    path = tmp_path / "graph"
    random_graph(300, seed=61).graph().save(path, arrays={"x": range(9)})
    return pgs.Graph.open(path)


@pytest.mark.parametrize("how", ["to", "pin"])
def test_a_graph_of_a_file_is_sampled_there(opened: pgs.Graph, how: str) -> None:
    sampler = pgs.PGSampler([4, 3], seed=1)
    want = sampler.sample(opened, range(50), batch=0)
    there = opened.to("cuda") if how == "to" else opened.pin("cuda")
    assert_equal(sampler.sample(there, range(50), batch=0), want)
    assert there.path == opened.path
    assert there.file_arrays["x"].tolist() == list(range(9))
    sent = pickle.dumps(there)
    assert len(sent) < 600
    again = pickle.loads(sent)
    assert_equal(sampler.sample(again, range(50), batch=0), want)
    assert again.device == there.device
    assert again.pinned == there.pinned


@pytest.mark.parametrize("how", ["to", "pin"])
def test_a_damaged_file_is_found_before_a_kernel_reads_it(opened: pgs.Graph, how: str) -> None:
    path = opened.path
    assert path is not None
    place, size = opened.indices._address - opened.indptr._address, opened.num_edges
    data = bytearray(path.read_bytes())
    start = data.index(bytes(memoryview(opened.indptr.numpy()).cast("B")))
    at = start + place + (size // 2) * (opened.indices.nbytes // size)
    data[at : at + 4] = b"\xff\xff\xff\x7f"
    opened.close()
    path.write_bytes(data)
    damaged = pgs.Graph.open(path)
    with pytest.raises(ValueError, match=r"indices\[\d+\]: expected an id in"):
        damaged.to("cuda") if how == "to" else damaged.pin("cuda")


def test_a_graph_of_the_device_is_saved(opened: pgs.Graph, tmp_path: Path) -> None:
    there = opened.to("cuda")
    alone = pgs.Graph.from_csc(there.indptr, there.indices, num_nodes=there.num_nodes)
    assert alone.device == "cuda:0"
    sampler = pgs.PGSampler([4, 3], seed=1)
    for graph in (there, alone):
        graph.save(tmp_path / "copy")
        copy = pgs.Graph.open(tmp_path / "copy", verify=True)
        assert copy.indices.tolist() == opened.indices.tolist()
        assert set(copy.file_arrays) == ({"x"} if graph is there else set())
        assert_equal(
            sampler.sample(graph, range(50), batch=0),
            sampler.sample(copy, range(50), batch=0),
        )
