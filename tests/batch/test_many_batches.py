"""Several batches at once, and the options of a GPU, on the CPU."""

from __future__ import annotations

import pytest
from graphs import circulant

import pygsampler as pgs
from tests.support.research import of_research


def test_many_batches_on_the_cpu():
    graph = circulant(40, 6)
    sampler = pgs.PGSampler([3, 2], seed=1)
    many = sampler.sample_many(graph, ([i, i + 1] for i in range(12)), epoch=3, batch=7)
    for i, batch in enumerate(many):
        alone = sampler.sample(graph, [i, i + 1], epoch=3, batch=7 + i)
        assert (batch.epoch, batch.batch) == (3, 7 + i)
        assert batch.input_nodes.tolist() == alone.input_nodes.tolist()
    assert [batch.batch for batch in sampler.sample_many(graph, [[0], [1]])] == [0, 1]
    assert sampler.sample(graph, [0]).batch == 2
    assert sampler.sample_many(graph, []) == []
    with pytest.raises(IndexError, match="seeds"):
        sampler.sample_many(graph, [[0], [40], [1]])
    with pytest.raises(TypeError, match="seeds: expected several arrays of ids, got int 3"):
        sampler.sample_many(graph, 3)
    with pytest.raises(TypeError, match=r"graph: expected a pygsampler\.Graph"):
        sampler.sample_many([0], [[0]])
    with pytest.raises(ValueError, match="batch: expected an integer from 0 to"):
        sampler.sample_many(graph, [[0], [1]], batch=(1 << 40) - 1)


@pytest.mark.parametrize(
    ("mode", "options"),
    [
        *(("auto", None), ("persistent", None)),
        *of_research(
            *(("fused", None), ("bsp", None), ("queue", None), ("queue", {"ordered": False}))
        ),
    ],
)
def test_modes_and_order_change_nothing_on_the_cpu(mode, options):
    graph = circulant(300, 9)
    want = pgs.PGSampler([4, 3], seed=1).sample(graph, range(0, 300, 7), batch=0)
    sampler = pgs.PGSampler([4, 3], seed=1, mode=mode, mode_options=options)
    got = sampler.sample(graph, range(0, 300, 7), batch=0)
    assert (sampler.mode, sampler.mode_options) == (mode, options)
    assert got.input_nodes.tolist() == want.input_nodes.tolist()
    for mine, theirs in zip(got.blocks, want.blocks, strict=True):
        assert mine.indptr.tolist() == theirs.indptr.tolist()
        assert mine.indices.tolist() == theirs.indices.tolist()
        assert mine.edge_ids.tolist() == theirs.edge_ids.tolist()


def test_counters_of_the_host():
    graph = circulant(40, 6)
    batch = pgs.PGSampler([3], seed=1).sample(graph, [1, 2])
    stats = pgs.engine.memory_stats()
    assert stats["live"] >= 1
    assert set(stats) == {"live", "live_bytes", "pooled", "pooled_bytes", "jobs"}
    del batch
    pgs.engine.trim()
    assert pgs.engine.memory_stats()["pooled"] == 0
