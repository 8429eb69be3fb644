from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given
from partners import partner

import pygsampler as pgs
import pygsampler.torch as pgt
from pygsampler import datasets

if TYPE_CHECKING:
    from pathlib import Path

EDGES = [(0, 1), (1, 1), (2, 1), (0, 1), (2, 2)]


def ends(graph: pgs.Graph) -> list[tuple[int, int]]:
    """(source, destination) by edge id."""
    indptr, indices = graph.indptr.numpy(), graph.indices.numpy()
    ids = np.arange(graph.num_edges) if graph.edge_ids is None else graph.edge_ids.numpy()
    dst = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    found = dict(zip(ids.tolist(), zip(indices.tolist(), dst.tolist(), strict=True), strict=True))
    return [found[edge] for edge in range(graph.num_edges)]


def check(graph: pgs.Graph) -> list[int]:
    """The reverses, which lead back, and are each other's."""
    found = graph.reverse_edge_ids()
    assert (found.dtype, found.device) == ("int64", "cpu")
    reverses: list[int] = found.tolist()
    by_id = ends(graph)
    assert [by_id[edge] for edge in reverses] == [(v, u) for u, v in by_id]
    assert [reverses[edge] for edge in reverses] == list(range(len(by_id)))
    assert all(edge == reverses[edge] for edge, (u, v) in enumerate(by_id) if u == v)
    return reverses


@pytest.mark.parametrize("source", ["csv", "npz", "networkx"])
def test_a_graph_without_directions_has_dense_ids(tmp_path: Path, source: str) -> None:
    if source == "networkx":
        graph = pgs.Graph.from_networkx(partner("networkx").MultiGraph(EDGES))
    else:
        path = tmp_path / f"e.{source}"
        if source == "csv":
            path.write_text("".join(f"{u},{v}\n" for u, v in EDGES))
        else:
            np.savez(path, src=[u for u, _ in EDGES], dst=[v for _, v in EDGES])
        graph = datasets.read(path, undirected=True)
    assert graph.num_edges == 8
    assert sorted(graph.edge_ids.tolist()) == list(range(8))
    # Copies belong together, not just any edges between the same nodes.
    order = ends(graph)[:5]
    expected, behind = [], 5
    for u, v in order:
        expected.append(len(expected) if u == v else behind)
        behind += u != v
    assert check(graph)[:5] == expected
    graph.save(tmp_path / "graph.pgs")
    for each in (pgs.Graph.open(tmp_path / "graph.pgs"), pickle.loads(pickle.dumps(graph))):
        assert check(each) == check(graph)
    # What docs/get-started/torch.md does with the ids of edges.
    block = pgs.PGSampler([-1]).sample(graph, range(3)).torch().blocks[0]
    assert torch.rand(graph.num_edges)[block.edge_ids].shape == (8,)
    loader = pgt.LinkLoader(graph, torch.arange(graph.num_edges), [2], batch_size=8)
    assert [len(batch.input_id) for batch in loader] == [8]
    reverses = graph.reverse_edge_ids()
    loader = pgt.LinkLoader(
        graph,
        torch.arange(8),
        [-1],
        batch_size=1,
        exclude="reverse_id",
        reverse_eids=reverses.torch(),
    )
    for edge, batch in enumerate(loader):
        sampled = batch.minibatch.blocks[0].edge_ids.tolist()
        assert not {edge, reverses[edge]} & set(sampled)


@given(
    edges=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=8),
    order=st.randoms(use_true_random=False),
)
def test_every_symmetric_graph_has_reverses(edges: list[tuple[int, int]], order: Any) -> None:
    both = [*edges, *((v, u) for u, v in edges if u != v)]
    src, dst = ([edge[end] for edge in both] for end in (0, 1))
    reverses = check(pgs.Graph.from_coo(src, dst, num_nodes=4))
    forward = [place for place, (u, v) in enumerate(edges) if u != v]
    assert [reverses[place] for place in forward] == list(range(len(edges), len(both)))
    order.shuffle(both)
    src, dst = ([edge[end] for edge in both] for end in (0, 1))
    check(pgs.Graph.from_coo(src, dst, num_nodes=4))


def test_the_ids_of_a_csc_without_ids_are_places() -> None:
    assert check(pgs.Graph.from_csc([0, 1, 2], [1, 0])) == [1, 0]


def test_edges_without_a_reverse_are_named() -> None:
    with pytest.raises(ValueError, match=r"got none of edge 1 \(1 -> 2\)"):
        pgs.Graph.from_coo([0, 1, 1], [1, 2, 0]).reverse_edge_ids()
    with pytest.raises(ValueError, match=r"got none of edge 2 \(0 -> 1\)"):
        pgs.Graph.from_coo([0, 1, 0, 2], [1, 0, 1, 2]).reverse_edge_ids()
    sparse = pgs.Graph.from_csc([0, 1, 2], [1, 0], edge_ids=[3, 9])
    with pytest.raises(ValueError, match="expected edge ids that number the 2 edges from 0"):
        sparse.reverse_edge_ids()
    twice = pgs.Graph.from_csc([0, 1, 2], [1, 0], edge_ids=[1, 1])
    with pytest.raises(ValueError, match="expected edge ids that number the 2 edges from 0"):
        twice.reverse_edge_ids()


def test_reverses_of_another_relation() -> None:
    src, dst = [0, 1, 1, 2, 1], [3, 0, 0, 1, 3]
    buys, bought, mixed = ("u", "buys", "i"), ("i", "bought", "u"), ("i", "mixed", "u")
    order = [4, 2, 0, 1, 3]
    graph = pgs.HeteroGraph.from_coo(
        {
            buys: (src, dst),
            bought: (dst, src),
            mixed: ([dst[e] for e in order], [src[e] for e in order]),
            ("u", "knows", "u"): ([0, 1], [1, 0]),
            ("i", "few", "u"): ([3], [0]),
        },
        {"u": 3, "i": 4},
    )
    assert graph.reverse_edge_ids(buys, bought).tolist() == [0, 1, 2, 3, 4]
    # Of the parallel edges 1 and 2 the first is the first's.
    assert graph.reverse_edge_ids(buys, mixed).tolist() == [2, 1, 3, 4, 0]
    assert graph.reverse_edge_ids(("u", "knows", "u")).tolist() == [1, 0]
    with pytest.raises(ValueError, match=r"reverse_type: expected a type from 'i' to 'u', got N"):
        graph.reverse_edge_ids(buys)
    with pytest.raises(ValueError, match=r"expected i__few__u to have the reverse of each edge of"):
        graph.reverse_edge_ids(buys, ("i", "few", "u"))
    with pytest.raises(ValueError, match="expected u__buys__i to have the reverses of 1 edges"):
        graph.reverse_edge_ids(("i", "few", "u"), buys)
    with pytest.raises(ValueError, match="reverse_type: expected types of the graph"):
        graph.reverse_edge_ids(buys, ("x", "y", "z"))
