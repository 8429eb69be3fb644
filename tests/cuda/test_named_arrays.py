"""Named arrays of a graph on the device: they stay on the host."""

from __future__ import annotations

import pickle

import pytest

import pygsampler as pgs
from tests.support.assertions import assert_equal
from tests.support.parity import random_graph


@pytest.mark.parametrize("how", ["to", "pin"])
def test_the_arrays_stay_on_the_host(how: str) -> None:
    bare = random_graph(300, seed=62).graph()
    graph = bare.with_data({"w": range(bare.num_edges)}, {"x": bytes(300)})
    sampler = pgs.PGSampler([4, 3], seed=1)
    want = sampler.sample(graph, range(50), batch=0)
    there = graph.to("cuda") if how == "to" else graph.pin("cuda")
    assert (there.edata, there.ndata) == (graph.edata, graph.ndata)
    assert there.edata["w"].device == "cpu"
    assert there.to("cpu") is graph
    more = there.with_data(node_data={"y": range(300)})
    assert (more.device, more.pinned) == (there.device, there.pinned)
    assert list(more.ndata) == ["x", "y"]
    for other in (more, pickle.loads(pickle.dumps(more))):
        assert other.edata["w"].tolist() == list(range(bare.num_edges))
        assert_equal(sampler.sample(other, range(50), batch=0), want)
    there.close()
    assert graph.ndata["x"].dtype == "uint8"


def test_a_graph_of_arrays_on_the_device(tmp_path) -> None:
    host = random_graph(300, seed=63).graph()
    there = host.to("cuda")
    ids = {"edge_ids": there.edge_ids, "edge_data": {"w": range(host.num_edges)}}
    graph = pgs.Graph.from_csc(there.indptr, there.indices, num_nodes=300, **ids)
    more = graph.with_data(node_data={"x": bytes(300)})
    # On the same arrays there.
    assert more.indices._address == there.indices._address
    sampler = pgs.PGSampler([4, 3], seed=1)
    want = sampler.sample(host, range(50), batch=0)
    assert_equal(sampler.sample(more, range(50), batch=0), want)
    assert more.to("cpu").edata["w"] is more.edata["w"]
    more.save(tmp_path / "graph")
    opened = pgs.Graph.open(tmp_path / "graph")
    assert opened.edata["w"].tolist() == list(range(host.num_edges))
    assert (list(opened.ndata), opened.to("cuda").ndata["x"].shape) == (["x"], (300,))
