"""``Graph.from_dgl``."""

from __future__ import annotations

import dgl

import pygsampler as pgs


def test_from_heterograph() -> None:
    kinds = {("a", "x", "b"): ([4, 1, 0], [2, 2, 0]), ("b", "y", "a"): ([0, 1], [3, 3])}
    given = dgl.heterograph(kinds, num_nodes_dict={"a": 5, "b": 3})
    graph = pgs.Graph.from_dgl(given)
    assert dict(graph.num_nodes) == {"a": 5, "b": 3}
    assert graph.edge_types == tuple(given.canonical_etypes)
    block = pgs.PGSampler([-1]).sample(graph, {"b": [2]}).blocks[0]["a", "x", "b"]
    ids = block.edge_ids.tolist()
    assert sorted(ids) == [0, 1]
    sources = given.edges(etype=("a", "x", "b"))[0].tolist()
    assert block.src_nodes.tolist() == [sources[edge] for edge in ids]
