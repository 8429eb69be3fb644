"""Ranges of nodes: how the sources of their edges are numbered, and where ranges end."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import pytest
from inference_cases import NODES, random_graph, torch

from pygsampler._inference import ranges


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("nodes", [1, 5, 50])
def test_sources_have_the_same_numbers_by_sorting(nodes: int, dtype: Any, parts: int) -> None:
    csc: Any = SimpleNamespace(num_src=nodes)
    torch.manual_seed(0)
    for first, last in ((0, 0), (0, 1), (0, nodes), (nodes // 3, nodes // 2), (nodes - 1, nodes)):
        for edges in (0, 1, 7, 60):
            ids = [torch.randint(nodes, (edges,), dtype=dtype) for _ in range(parts)]
            marked, by_marks = ranges._number_by_marks(ids, first, last, csc)
            found, by_sorting = ranges._number_by_sorting(ids, first, last)
            assert torch.equal(found, marked)
            rows = torch.cat([torch.arange(first, last), found])
            for each, one, other in zip(ids, by_sorting, by_marks, strict=True):
                assert one.dtype == dtype and torch.equal(one, other)
                assert torch.equal(rows[one.long()].to(dtype), each)


def test_ranges_have_the_nodes_of_a_share() -> None:
    graph = random_graph()
    arrays = graph.indptr, graph.indices, graph.edge_ids
    csc = ranges.InEdges(arrays, NODES, NODES, torch.device("cpu"))
    for own in (None, (0, NODES), (10, 60), (NODES - 1, NODES), (40, 40)):
        first, last = own or (0, NODES)
        for batch_size, room in ((None, 1), (None, 500), (None, 1 << 30), (7, 1), (1000, 1)):
            cuts = csc.ranges(batch_size, 8, 16, room, own)
            assert cuts[0] == first and cuts[-1] == last and cuts == sorted(set(cuts))
            sizes = [csc.range(a, b).num_edges for a, b in itertools.pairwise(cuts)]
            assert sum(sizes) == csc.offset(last) - csc.offset(first)
    assert torch.equal(
        csc.out_degrees().long(), torch.bincount(csc.indices.long(), minlength=NODES)
    )
