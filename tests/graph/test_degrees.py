from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from partners import partner

import pygsampler as pgs

RNG = np.random.default_rng(7)
SRC, DST = RNG.integers(0, 9, 40), RNG.integers(0, 7, 40)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_degrees_are_counts_of_edges(dtype: str) -> None:
    graph = pgs.Graph.from_coo(SRC.astype(dtype), DST.astype(dtype), num_nodes=12)
    for degrees, ends in ((graph.in_degrees, DST), (graph.out_degrees, SRC)):
        expected = np.bincount(ends, minlength=12)
        found: Any = degrees()
        assert (found.dtype, found.shape, found.device) == ("int64", (12,), "cpu")
        assert found.tolist() == expected.tolist()
        for nodes in (
            [3, 11, 3],
            np.array([3, 11, 3]),
            torch.tensor([3, 11, 3], dtype=torch.int32),
        ):
            assert degrees(nodes).tolist() == expected[[3, 11, 3]].tolist()
        assert degrees([]).tolist() == []
        assert degrees(3) == degrees(np.int64(3)) == expected[3]
        assert isinstance(degrees(3), int)
        for bad in (12, -1):
            with pytest.raises(
                IndexError, match=rf"nodes\[1\]: expected an id in \[0, 12\), got {bad}"
            ):
                degrees([0, bad])
            with pytest.raises(IndexError, match=rf"nodes: expected an id in \[0, 12\), got {bad}"):
                degrees(bad)
        with pytest.raises(TypeError, match="nodes: expected"):
            degrees(np.zeros(3))


def test_nodes_past_the_last_row_have_no_in_edges() -> None:
    graph = pgs.Graph.from_csc([0, 2], [0, 2], num_nodes=3)
    assert graph.in_degrees().tolist() == [2, 0, 0]
    assert graph.in_degrees([2, 0, 1]).tolist() == [0, 2, 0]
    assert graph.out_degrees().tolist() == [1, 0, 1]


def test_degrees_are_those_of_dgl() -> None:
    dgl = partner("dgl")
    theirs = dgl.graph((torch.from_numpy(SRC), torch.from_numpy(DST)), num_nodes=12)
    graph = pgs.Graph.from_dgl(theirs)
    assert graph.in_degrees().tolist() == theirs.in_degrees().tolist()
    assert graph.out_degrees([1, 4]).tolist() == theirs.out_degrees([1, 4]).tolist()


def test_degrees_of_a_relation() -> None:
    buys, knows = ("u", "buys", "i"), ("u", "knows", "u")
    graph = pgs.Graph.from_coo(
        {buys: (SRC, DST), knows: ([0, 1], [2, 2])}, num_nodes={"u": 9, "i": 7}
    )
    assert graph.in_degrees(edge_type=buys).tolist() == np.bincount(DST, minlength=7).tolist()
    assert graph.out_degrees(edge_type=buys).tolist() == np.bincount(SRC, minlength=9).tolist()
    assert graph.in_degrees([2, 0], knows).tolist() == [2, 0]
    assert graph.out_degrees(1, knows) == 1
    with pytest.raises(IndexError, match=r"nodes\[0\]: expected an id in \[0, 7\), got 8"):
        graph.in_degrees([8], buys)
    with pytest.raises(ValueError, match=r"edge_type: expected one of \('u', 'buys', 'i'\), \('u'"):
        graph.in_degrees()
    with pytest.raises(ValueError, match="edge_type: expected types of the graph"):
        graph.in_degrees(edge_type=("x", "y", "z"))
    one = pgs.Graph.from_coo({buys: (SRC, DST)}, num_nodes={"u": 9, "i": 7})
    assert one.in_degrees().tolist() == graph.in_degrees(edge_type=buys).tolist()
