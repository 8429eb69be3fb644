"""Whether two batches of graphs with types are one; without pytest, for short programs."""

from __future__ import annotations

import numpy as np

import pygsampler as pgs


def same(got: pgs.HeteroBatch, want: pgs.HeteroBatch, what: object) -> None:
    """All arrays, and all numbers that describe them."""
    assert got.device == "cuda:0"
    there = got.cpu()
    assert there.device == want.device == "cpu"
    # One type of either kind is sampled as a graph without types, whose arrays lie elsewhere.
    if len(want.nodes) > 1 or len(want.blocks[0]) > 1:
        assert there._words == want._words, what
    for kind, ids in want.nodes.items():
        for mine, other in (
            (there.nodes[kind], ids),
            (there.output_nodes[kind], want.output_nodes[kind]),
            (there.output_index[kind], want.output_index[kind]),
        ):
            assert mine.dtype == other.dtype
            np.testing.assert_array_equal(mine.numpy(), other.numpy(), err_msg=str(what))
    for hop, others in zip(there.blocks, want.blocks, strict=True):
        assert list(hop) == list(others)
        for kind, block in hop.items():
            assert (block.edge_weights is None) == (others[kind].edge_weights is None), what
            names = "indptr", "indices", "edge_ids", "edge_weights"
            for name in names[: 3 if block.edge_weights is None else 4]:
                mine, other = getattr(block, name), getattr(others[kind], name)
                assert mine.dtype == other.dtype
                np.testing.assert_array_equal(mine.numpy(), other.numpy(), err_msg=str(what))
