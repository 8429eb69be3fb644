from __future__ import annotations

import pickle

import pytest
from graphs import cases, circulant
from hypothesis import given

import pygsampler as pgs


@given(case=cases())
def test_coo_says_the_same_as_the_csc(case):
    graph = case.graph(32)
    for block in pgs.PGSampler([3, -1], seed=0).sample(graph, range(case.num_nodes)).blocks:
        src, dst = block.coo()
        indptr = block.indptr.tolist()
        rows = [v for v in range(block.num_dst_nodes) for _ in range(indptr[v], indptr[v + 1])]
        assert dst.tolist() == rows
        assert src.tolist() == block.indices.tolist()
        assert dst.dtype == src.dtype == "int32"


def test_arrays_are_made_once_and_share_one_memory():
    block = pgs.PGSampler([2], seed=0).sample(circulant(9, 3), [0, 1]).blocks[0]
    assert block.indices is block.indices
    assert block.indptr is block.indptr
    assert block.coo()[1] is block.coo()[1]
    assert block.indices._owner is block.edge_ids._owner is block.src_nodes._owner
    assert block.dst_nodes._address == block.src_nodes._address


def test_repr_and_refusals():
    block = pgs.PGSampler([2], seed=0).sample(circulant(9, 3), [0]).blocks[0]
    assert repr(block) == "Block(num_src_nodes=3, num_dst_nodes=1, num_edges=2)"
    with pytest.raises(TypeError, match="Block: created by"):
        pgs.Block()
    with pytest.raises(TypeError, match="pickle its MiniBatch"):
        pickle.dumps(block)
