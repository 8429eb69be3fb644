"""Memory is there as long as anything shows it, and goes when nothing does."""

from __future__ import annotations

import gc
import itertools
import json
import weakref
from array import array

import numpy as np
import pyarrow as pa
import pytest
import torch
from graphs import circulant

import pygsampler as pgs
from pygsampler._engine import library


def in_use() -> tuple[int, int]:
    """How many memories the engine has given out, and their bytes."""
    gc.collect()
    stats = json.loads(library.call("MemoryStats"))
    return stats["live"], stats["live_bytes"]


def churn() -> None:
    """Uses freed memory again, if there is any."""
    graph = circulant(60, 7)
    sampler = pgs.PGSampler([4, 3], seed=99)
    kept = [sampler.sample(graph, range(30)) for _ in range(8)]
    for batch in kept:
        batch.torch().input_nodes.fill_(-7)


EXPORTS = {
    "array": lambda values: values,
    "slice": lambda values: values[1:],
    "numpy": lambda values: values.numpy(),
    "torch": lambda values: values.torch(),
    "arrow": lambda values: pa.array(values),
    "dlpack to numpy": lambda values: np.from_dlpack(values),
    "dlpack to torch": lambda values: torch.from_dlpack(values),
    "capsule": lambda values: torch.utils.dlpack.from_dlpack(values.__dlpack__()),
    "memory of memory": lambda values: torch.from_numpy(np.asarray(values)),
}


@pytest.mark.parametrize("export", EXPORTS.values(), ids=EXPORTS)
def test_an_export_outlives_everything_in_every_order(export):
    for order in itertools.permutations(range(4)):
        objects = [circulant(60, 7), pgs.PGSampler([4, 3], seed=0)]
        objects.append(objects[1].sample(objects[0], range(30)))
        objects.append(objects[2].blocks[0])
        view = export(objects[3].indices)
        expected = view.tolist()
        for i in order:
            objects[i] = None
            churn()
            assert view.tolist() == expected
    del objects, view
    gc.collect()


@pytest.mark.parametrize("export", EXPORTS.values(), ids=EXPORTS)
def test_an_export_of_a_callers_array_outlives_the_graph(export):
    indices = np.arange(20) % 5
    alive = weakref.ref(indices)
    graph = pgs.Graph.from_csc(np.arange(0, 21, 4), indices)
    view = export(graph.indices)
    expected = view.tolist()
    graph.close()
    del graph, indices
    gc.collect()
    assert alive() is not None
    assert view.tolist() == expected
    del view
    gc.collect()
    assert alive() is None


def test_a_graph_keeps_its_arrays_and_no_longer(recwarn):
    sources = [np.arange(20) % 5, torch.arange(20) % 5, array("q", [0] * 20)]
    while sources:
        source = sources.pop()
        alive = weakref.ref(source)
        graph = pgs.Graph.from_csc([0, 4, 8, 12, 16, 20], source)
        del source
        gc.collect()
        assert alive() is not None
        assert pgs.PGSampler([2], seed=0).sample(graph, range(5)).num_edges == 10
        del graph
        gc.collect()
        assert alive() is None
    assert not recwarn.list


def test_a_buffer_cannot_change_size_under_a_graph():
    indices = array("q", [0, 0])
    graph = pgs.Graph.from_csc([0, 2], indices)
    with pytest.raises(BufferError):
        indices.extend([1] * 1000)
    del graph
    gc.collect()
    indices.extend([1] * 1000)


def test_capsules_that_nobody_takes_are_freed():
    batch = pgs.PGSampler([2], seed=0).sample(circulant(9, 3), [0, 1])
    values = batch.blocks[0].indices
    before = in_use()
    for _ in range(100):
        values.__dlpack__()
        values.__dlpack__(max_version=(1, 0))
        values.__arrow_c_array__()
    assert in_use() == before
    memory = weakref.ref(batch._memory)
    del batch, values
    gc.collect()
    assert memory() is None
    assert in_use() < before


def test_nothing_leaks_over_many_batches():
    graph, sampler = circulant(500, 9), pgs.PGSampler([5, 5], seed=0)
    sampler.sample(graph, range(200)).torch()
    before = in_use()
    for _ in range(300):
        batch = sampler.sample(graph, range(200))
        batch.torch()
        batch.numpy()
        batch.arrow()
        batch.blocks[0].coo()
        sampler.submit(graph, range(200)).cancel()
        sampler.submit(graph, range(200))
        with pytest.raises(IndexError):
            sampler.sample(graph, [10**6])
    del batch
    assert in_use() == before


def test_views_can_be_read_after_the_engines_end(run_python):
    script = """
        import atexit
        atexit.register(lambda: late())
        import numpy, torch
        import pygsampler as pgs
        graph = pgs.Graph.from_coo([0, 1, 2], [1, 2, 0])
        batch = pgs.PGSampler([2], seed=0).sample(graph, [0])
        views = [batch.input_nodes, batch.input_nodes.numpy(), batch.input_nodes.torch()]
        del batch
        def late():
            print([view.tolist() for view in views])
            print(numpy.from_dlpack(views[0]).tolist(), graph.indices.torch().tolist())
            views.clear()
    """
    assert run_python(script) == "[[0, 2], [0, 2], [0, 2]]\n[0, 2] [2, 0, 1]\n"


def test_globals_may_be_left_to_the_interpreter(run_python):
    script = """
        import numpy, torch, pyarrow
        import pygsampler as pgs
        graph = pgs.Graph.from_csc(numpy.arange(11), torch.zeros(10, dtype=torch.int64))
        sampler = pgs.PGSampler([2], seed=0)
        batch = sampler.sample(graph, [0, 1])
        kept = [batch.torch(), batch.numpy(), batch.arrow(), graph.indices.torch()]
        kept += [batch.input_nodes.__dlpack__(), graph.indptr.__arrow_c_array__()]
        cycle = [kept]; cycle.append(cycle)
        job = sampler.submit(graph, [3])
        # Modules of the standard library are emptied after ours.
        import decimal
        decimal.kept = [graph, sampler, batch, job, pgs.Graph.from_coo([0], [1]), kept]
        del graph, sampler, batch, job, kept
        print("end")
    """
    assert run_python(script) == "end\n"
