from __future__ import annotations

import copy
import multiprocessing
import pickle
from array import array

import numpy as np
import pyarrow as pa
import pytest
import torch
from graphs import as_lists, circulant

import pygsampler as pgs
from pygsampler._arrays.array import Array
from pygsampler._arrays.ids import as_ids
from tests.support.research import of_research

PROTOCOLS = range(2, pickle.HIGHEST_PROTOCOL + 1)


def of(source) -> Array:
    return Array._of_view(as_ids(source, "x"))


@pytest.mark.parametrize("mode", ["persistent", *of_research("queue")])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_sampler_keeps_options_seed_epoch_and_count(protocol, mode):
    graph = circulant(100, 9)
    sampler = pgs.PGSampler([3, -1], replace=True, seed=5, mode=mode, map_bytes=10**6)
    sampler.set_epoch(4)
    sampler.sample(graph, range(10))
    again = pickle.loads(pickle.dumps(sampler, protocol))
    assert repr(again) == repr(sampler)
    assert again.epoch == 4
    first, second = sampler.sample(graph, range(10)), again.sample(graph, range(10))
    assert (first.epoch, first.batch) == (second.epoch, second.batch) == (4, 1)
    assert as_lists(first) == as_lists(second)


def test_copies_of_a_sampler_count_for_themselves():
    graph, sampler = circulant(100, 9), pgs.PGSampler([3], seed=5)
    other = copy.deepcopy(sampler)
    assert sampler.sample(graph, [0]).batch == 0
    assert other.sample(graph, [0]).batch == 0


def sources(dtype: str) -> dict[str, list]:
    indptr, indices, ids = [0, 2, 2, 3], [1, 2, 0], [7, 8, 9]
    code = {"int32": "i", "int64": "q"}[dtype]
    return {
        "lists": [indptr, indices, ids],
        "numpy": [np.array(part, dtype) for part in (indptr, indices, ids)],
        "torch": [
            torch.tensor(part, dtype=getattr(torch, dtype)) for part in (indptr, indices, ids)
        ],
        "arrow": [pa.array(part, dtype) for part in (indptr, indices, ids)],
        "array": [array(code, part) for part in (indptr, indices, ids)],
        "memoryview": [memoryview(array(code, part)) for part in (indptr, indices, ids)],
    }


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("kind", ["lists", "numpy", "torch", "arrow", "array", "memoryview"])
def test_a_graph_keeps_its_arrays(kind, dtype, protocol):
    indptr, indices, ids = sources(dtype)[kind]
    graph = pgs.Graph.from_csc(indptr, indices, edge_ids=ids, num_nodes=5)
    again = pickle.loads(pickle.dumps(graph, protocol))
    assert repr(again) == repr(graph)
    for part in ("indptr", "indices", "edge_ids"):
        assert getattr(again, part).tolist() == getattr(graph, part).tolist()
        assert getattr(again, part).dtype == getattr(graph, part).dtype
        assert getattr(again, part)._address != getattr(graph, part)._address
    sampler = pgs.PGSampler([2, 2], seed=0)
    expected = as_lists(sampler.sample(graph, range(5), batch=0))
    assert as_lists(sampler.sample(again, range(5), batch=0)) == expected
    # And once more, from what the first copy holds.
    twice = pickle.loads(pickle.dumps(again, protocol))
    assert as_lists(sampler.sample(twice, range(5), batch=0)) == expected


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_graph_in_the_engines_memory(protocol):
    graph = pgs.Graph.from_coo([0, 1, 2, 0], [1, 2, 0, 2], num_nodes=4)
    again = pickle.loads(pickle.dumps(graph, protocol))
    assert repr(again) == repr(graph)
    assert again.edge_ids.tolist() == graph.edge_ids.tolist()


def test_a_pickle_holds_the_bytes():
    graph = circulant(10_000, 5)
    assert len(pickle.dumps(graph)) > 8 * (10_001 + 50_000)


def test_a_forged_pickle_is_checked():
    graph = circulant(10, 2)
    make, (indptr, _, ids, nodes) = graph._source.__reduce__()
    with pytest.raises(ValueError, match=r"indices\[0\]"):
        make(indptr, of(np.full(20, 99)), ids, nodes)


@pytest.mark.parametrize("kind", ["memory", "file", "typed", "typed file"])
def test_a_copy_of_a_graph_is_closed_on_its_own(kind: str, tmp_path):
    weights = np.arange(1, 5.0)
    graph = pgs.Graph.from_csc([0, 2, 2, 4], [1, 2, 0, 1], edge_data={"w": weights})
    if kind.startswith("typed"):
        rows = {("a", "to", "a"): ([0, 2, 2, 4], [1, 2, 0, 1])}
        names = {("a", "to", "a"): {"w": weights}}
        graph = pgs.HeteroGraph(rows, edge_data=names, node_data={"a": {"x": np.arange(3)}})
    if kind.endswith("file"):
        graph.save(tmp_path / "g.pgs")
        graph = pgs.Graph.open(tmp_path / "g.pgs")
        (tmp_path / "g.pgs").unlink()
    sampler = pgs.PGSampler([2], prob="w", seed=0)
    seeds = {"a": [2, 0]} if kind.startswith("typed") else [2, 0]
    wanted = repr(sampler.sample(graph, seeds, batch=0))
    path = graph.path
    first, second = copy.copy(graph), copy.copy(graph)
    first.close()
    assert repr(graph) == repr(second)
    assert second.path == path
    graph.close()
    assert repr(sampler.sample(second, seeds, batch=0)) == wanted
    assert len(second.edata) == 1
    assert len(second.ndata) == kind.startswith("typed")
    with pytest.raises(pgs.errors.ClosedError, match="got one that was closed"):
        copy.copy(graph)
    with pytest.raises(pgs.errors.ClosedError, match="got one that was closed"):
        graph.save(tmp_path / "g.pgs", tables=None if kind.startswith("typed") else ["w"])


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_array_keeps_its_values(protocol):
    batch = pgs.PGSampler([2], seed=0).sample(circulant(9, 3, 32), [4, 2])
    frozen = np.arange(5)
    frozen.flags.writeable = False
    for values in (batch.input_nodes, batch.input_nodes[1:], of(np.arange(5)), of(frozen), of([])):
        again = pickle.loads(pickle.dumps(values, protocol))
        assert again.tolist() == values.tolist()
        assert again.dtype == values.dtype
        assert copy.deepcopy(values).tolist() == values.tolist()


def test_buffers_out_of_band_outlive_the_array():
    values = pgs.PGSampler([2], seed=0).sample(circulant(9, 3), [4, 2]).input_nodes
    expected = values.tolist()
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(values, 5, buffer_callback=buffers.append)
    del values
    for _ in range(20):
        pgs.PGSampler([2], seed=0).sample(circulant(9, 3), [0, 1]).torch().input_nodes.fill_(-1)
    assert pickle.loads(data, buffers=buffers).tolist() == expected


def where(graph: pgs.Graph, results) -> None:
    edges = pgs.PGSampler([2], seed=0).sample(graph, range(100), batch=0)
    results.put((graph.indices._owner.is_shared(), edges.blocks[0].edge_ids.tolist()))


def test_torch_tensors_travel_through_shared_memory():
    """The caller's tensors stay where they are, since the engine may be reading them."""
    indptr = torch.arange(0, 1001, 10)
    indices = torch.arange(1000) % 100
    graph = pgs.Graph.from_csc(indptr, indices)
    expected = pgs.PGSampler([2], seed=0).sample(graph, range(100), batch=0)
    address = indices.data_ptr()
    context = torch.multiprocessing.get_context("spawn")
    results = context.SimpleQueue()
    workers = [context.Process(target=where, args=(graph, results)) for _ in range(2)]
    for worker in workers:
        worker.start()
    found = [results.get() for _ in workers]
    for worker in workers:
        worker.join()
    assert found == [(True, expected.blocks[0].edge_ids.tolist())] * 2
    assert indices.data_ptr() == address
    assert not indices.is_shared()


def test_a_tensor_that_went_elsewhere_is_pickled_as_it_is_now():
    indptr, indices = torch.tensor([0, 2]), torch.zeros(2, dtype=torch.int64)
    graph = pgs.Graph.from_csc(indptr, indices)
    indices.resize_(1 << 20).zero_()
    with pytest.raises(ValueError, match=r"indptr\[1\]: .* got 2"):
        pickle.loads(pickle.dumps(graph))
    indices.resize_(2)
    assert pickle.loads(pickle.dumps(graph)).indices.tolist() == [0, 0]


def test_handles_do_not_travel():
    graph, sampler = circulant(9, 3), pgs.PGSampler([2], seed=0)
    job = sampler.submit(graph, [0])
    for thing, text in (
        (job, "Job: expected something to pickle"),
        (job.result().blocks[0], "Block: expected something to pickle"),
    ):
        with pytest.raises(TypeError, match=text):
            pickle.dumps(thing)
        with pytest.raises(TypeError, match=text):
            copy.copy(thing)
    assert multiprocessing.reduction.ForkingPickler.dumps(graph).nbytes > 0


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("seeds", [[5, 3, 9], [5, 3, 5]])
def test_a_batch_is_pickled_without_its_reserve(protocol: int, seeds: list[int]):
    count = 100_000
    graph = pgs.Graph.from_csc(range(count + 1), [(v * 7 + 1) % count for v in range(count)])
    batch = pgs.PGSampler([-1, -1], seed=0).sample(graph, seeds)
    data = pickle.dumps(batch, protocol)
    assert len(data) < 8_000
    again = pickle.loads(data)
    assert again.input_nodes.tolist() == batch.input_nodes.tolist()
    assert again.output_nodes.tolist() == seeds
    assert again.output_index.tolist() == batch.output_index.tolist()
    for one, other in zip(again.blocks, batch.blocks, strict=True):
        assert one.indptr.tolist() == other.indptr.tolist()
        assert one.indices.tolist() == other.indices.tolist()
        assert one.edge_ids.tolist() == other.edge_ids.tolist()
        assert one.src_nodes.tolist() == other.src_nodes.tolist()
    assert len(pickle.dumps(again, protocol)) == len(data)
