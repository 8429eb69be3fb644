"""Graphs with types, against a slow reference of what a batch is, given its draws."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hetero_graphs import random_types

import pygsampler as pgs
from pygsampler._sampling.hetero_inputs import flatten_by_type
from tests.support.hetero_graphs import random_edges


def check(batch: Any, edges: Any, seeds: Any, fanouts: list[int], new: bool, replace: bool) -> None:
    """Every number of a batch, but for which edges a row has drawn."""
    found: dict[str, list[int]] = {kind: [] for kind in batch.input_nodes}
    for kind, ids in seeds.items():
        found[kind] = list(dict.fromkeys(ids))
        assert batch.output_nodes[kind].tolist() == ids
        assert batch.output_index[kind].tolist() == [found[kind].index(v) for v in ids]
    counts = {kind: [len(ids)] for kind, ids in found.items()}
    before = dict.fromkeys(found, 0)
    for hop, blocks in enumerate(reversed(batch.blocks)):
        fanout = fanouts[len(fanouts) - 1 - hop]
        rows = {kind: ids[before[kind] if new else 0 :] for kind, ids in found.items()}
        first = {kind: before[kind] if new else 0 for kind in found}
        before = {kind: len(ids) for kind, ids in found.items()}
        assert list(blocks) == list(edges)
        for (src, relation, dst), block in blocks.items():
            sources, targets = (ends.tolist() for ends in edges[src, relation, dst])
            assert block.dst_nodes.tolist() == rows[dst]
            assert block.dst_offset == first[dst]
            indptr, ids = block.indptr.tolist(), block.edge_ids.tolist()
            local = []
            for row, v in enumerate(rows[dst]):
                drawn = ids[indptr[row] : indptr[row + 1]]
                all_of_row = [e for e, target in enumerate(targets) if target == v]
                if fanout < 0 or (not replace and len(all_of_row) <= fanout):
                    assert drawn == all_of_row
                elif replace:
                    assert len(drawn) == (fanout if all_of_row else 0)
                    assert set(drawn) <= set(all_of_row)
                else:
                    assert len(drawn) == len(set(drawn)) == fanout
                    assert set(drawn) <= set(all_of_row)
                for e in drawn:
                    if sources[e] not in found[src]:
                        found[src].append(sources[e])
                    local.append(found[src].index(sources[e]))
            assert block.indices.tolist() == local
        for (src, _, _), block in blocks.items():
            assert block.src_nodes.tolist() == found[src]
        for kind, ids in found.items():
            counts[kind].append(len(ids) - before[kind])
    assert {kind: ids.tolist() for kind, ids in batch.input_nodes.items()} == found
    assert batch.num_sampled_nodes == counts


@pytest.mark.parametrize("seed", range(24))
def test_random_schemas(seed: int) -> None:
    """1 to 40 types, bipartite and self relations, types without edges, every kind of fanout."""
    random = np.random.default_rng(seed + 100)
    relations = int(random.integers(1, 41))
    dtype = ["int64", "int32"][seed % 2]
    nodes, edges, graph = random_types(seed, int(random.integers(1, 9)), relations, dtype, 40, 150)
    fanouts = [int(n) for n in random.choice([-1, 0, 1, 3, 7], 3)]
    new, replace = bool(seed & 2), bool(seed & 4)
    seeds = {
        kind: random.integers(0, count, int(random.integers(0, 6))).tolist()
        for kind, count in nodes.items()
    }
    sampler = pgs.PGSampler(fanouts, frontier="new" if new else "all", replace=replace, seed=seed)
    batch = sampler.sample(graph, seeds, batch=0)
    assert graph.dtype == dtype
    assert {ids.dtype for ids in batch.input_nodes.values()} == {dtype}
    check(batch, edges, seeds, fanouts, new, replace)
    again = pickle.loads(pickle.dumps(sampler)).sample(
        pickle.loads(pickle.dumps(graph)), seeds, batch=0
    )
    check(pickle.loads(pickle.dumps(again)), edges, seeds, fanouts, new, replace)


@pytest.mark.parametrize(
    "options", [{}, {"frontier": "new"}, {"disjoint": True}, {"replace": True}, {"prob": "w"}]
)
def test_one_type_is_a_graph_without_types(options: Any) -> None:
    random = np.random.default_rng(3)
    src, dst = random.integers(0, 300, (2, 6000))
    weights = {"w": random.random(6000)}
    plain = pgs.Graph.from_coo(src, dst, num_nodes=300, edge_data=weights)
    kind = ("v", "e", "v")
    typed = pgs.Graph.from_coo({kind: (src, dst)}, num_nodes={"v": 300}, edge_data={kind: weights})
    sampler = pgs.PGSampler([4, -1, 3], seed=9, **options)
    for batch in range(3):
        want = sampler.sample(plain, [5, 9, 9, 200], batch=batch, exclude=range(50))
        got = sampler.sample(typed, {"v": [5, 9, 9, 200]}, batch=batch, exclude={kind: range(50)})
        assert got.input_nodes["v"].tolist() == want.input_nodes.tolist()
        assert got.output_index["v"].tolist() == want.output_index.tolist()
        if want.subgraph_ids is None:
            assert got.subgraph_ids is None
        else:
            assert got.subgraph_ids is not None
            assert got.subgraph_ids["v"].tolist() == want.subgraph_ids.tolist()
        for ours, theirs in zip(got.blocks, want.blocks, strict=True):
            for name in ("indptr", "indices", "edge_ids", "src_nodes", "dst_nodes"):
                assert getattr(ours[kind], name).tolist() == getattr(theirs, name).tolist()


def test_other_types_change_no_draws() -> None:
    """One more relation, and another order, leave what the others draw as it is."""
    _, edges, _ = random_types(1, 1, 4, "int64", 40, 150)
    nodes = {"t0": 40}
    sampler, seeds = pgs.PGSampler([3], seed=4), {"t0": list(range(20))}
    kinds = list(edges)
    three = {kind: edges[kind] for kind in kinds[:3]}
    turned = {kind: edges[kind] for kind in reversed(kinds)}
    batches = [
        sampler.sample(pgs.Graph.from_coo(given, num_nodes=nodes), seeds, batch=0)
        for given in (three, edges, turned)
    ]
    for kind in three:
        drawn = [batch.blocks[0][kind].edge_ids.tolist() for batch in batches]
        assert drawn[0] == drawn[1] == drawn[2]
    equal = [batches[1].blocks[0][kind].edge_ids.tolist() for kind in kinds]
    assert equal[0] != equal[1]


def test_draws_of_relations_are_independent() -> None:
    """Pairs of draws of the same row in two relations are uniform, by chi-square."""
    src, dst = np.arange(4), np.zeros(4, dtype=np.int64)
    kinds = [("a", "x", "b"), ("a", "y", "b")]
    graph = pgs.Graph.from_coo(dict.fromkeys(kinds, (src, dst)), num_nodes={"a": 4, "b": 1})
    sampler = pgs.PGSampler([1], seed=8)
    table = np.zeros((4, 4))
    for number in range(4000):
        block = sampler.sample(graph, {"b": [0]}, batch=number).blocks[0]
        table[tuple(block[kind].edge_ids.tolist()[0] for kind in kinds)] += 1
    # 15 degrees of freedom: above 44.3 once in 10^4.
    assert float(((table - 250) ** 2 / 250).sum()) < 44.3


def test_fanouts_by_type_and_exclusions() -> None:
    nodes, edges, graph = random_types(5, 3, 6, "int64", 40, 150)
    some, *others = edges
    seeds = {kind: list(range(count)) for kind, count in nodes.items()}
    sampler = pgs.PGSampler([{some: -1}], default_fanout=0, seed=1)
    without = list(range(0, len(edges[some][0]), 2))
    block = sampler.sample(graph, seeds, exclude={some: without}).blocks[0]
    assert sorted(block[some].edge_ids.tolist()) == list(range(1, len(edges[some][0]), 2))
    assert [block[kind].num_edges for kind in others] == [0] * len(others)
    with pytest.raises(ValueError, match=r"fanouts\[0\]: expected a number for each edge type"):
        pgs.PGSampler([{some: 1}]).sample(graph, seeds)
    with pytest.raises(ValueError, match=r"fanouts\[1\]: expected a number for each edge type"):
        pgs.PGSampler([2, {}])
    with pytest.raises(ValueError, match=r"expected edge types of the graph, got \"no\""):
        pgs.PGSampler([{"no": 1}], default_fanout=2).sample(graph, seeds)


def test_trees_of_several_types() -> None:
    """Each tree is what its seed alone reaches, and vertices of two trees are apart."""
    _, _, graph = random_types(6, 3, 6, "int64", 40, 150)
    seeds = {"t0": [0, 0], "t1": [0]}
    batch = pgs.PGSampler([-1, -1], disjoint=True, seed=1).sample(graph, seeds)
    alone = pgs.PGSampler([-1, -1], seed=1)
    assert batch.subgraph_ids is not None
    for tree, (kind, v) in enumerate([("t0", 0), ("t0", 0), ("t1", 0)]):
        want = alone.sample(graph, {kind: [v]})
        for of, ids in batch.input_nodes.items():
            mine = [
                v
                for v, t in zip(ids.tolist(), batch.subgraph_ids[of].tolist(), strict=True)
                if t == tree
            ]
            assert sorted(mine) == sorted(want.input_nodes[of].tolist())


def test_masks_by_type() -> None:
    """A type without the array is sampled whole."""
    src, dst = np.array([0, 1, 2]), np.array([0, 0, 0])
    kinds = [("a", "x", "b"), ("a", "y", "b")]
    graph = pgs.Graph.from_coo(
        dict.fromkeys(kinds, (src, dst)),
        num_nodes={"a": 3, "b": 1},
        edge_data={kinds[0]: {"m": np.array([True, False, True])}},
        node_data={"a": {"x": np.arange(3.0)}},
    )
    block = pgs.PGSampler([-1], mask="m").sample(graph, {"b": [0]}).blocks[0]
    assert [block[kind].edge_ids.tolist() for kind in kinds] == [[0, 2], [0, 1, 2]]
    assert graph.ndata["a"]["x"].tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="mask: expected the name of an edge array"):
        pgs.PGSampler([1], mask="no").sample(graph, {"b": [0]})


def test_wrong_arguments() -> None:
    two = {("a", "x", "b"): ([0, 1], [0])}
    with pytest.raises(ValueError, match="num_nodes: expected a number for 'a'"):
        pgs.HeteroGraph(two)
    graph = pgs.HeteroGraph(two, {"a": 1})
    with pytest.raises(IndexError, match=r"seeds\[\"b\"\]\[1\]: expected an id in \[0, 1\), got 1"):
        pgs.PGSampler([1]).sample(graph, {"b": [0, 1]})
    with pytest.raises(ValueError, match="seeds: expected types of the graph, got 'c'"):
        pgs.PGSampler([1]).sample(graph, {"c": [0]})
    with pytest.raises(TypeError, match="seeds: expected a mapping of types to ids"):
        pgs.PGSampler([1]).sample(graph, [0])
    with pytest.raises(TypeError, match=r"graph: expected a pygsampler\.Graph"):
        pgs.RandomWalk(2).sample(graph, [0])
    with pytest.raises(ValueError, match="mode: expected one of"):
        pgs.PGSampler([1], mode="queue").sample(graph, {"b": [0]})
    assert graph.to("cpu") is graph
    with pytest.raises(ValueError, match='device: expected "cpu", "cuda"'):
        graph.to("tpu")
    # A neighbour that only the larger type has.
    with pytest.raises((ValueError, IndexError), match=r"a x b.*\[0, 1\), got 2"):
        pgs.HeteroGraph({("a", "x", "b"): ([0, 1, 1, 1], [2])}, {"a": 1})
    assert flatten_by_type({"b": [1]}, ("a", "b"), "seeds")[1] == [0, 1]
    graph.close()
    with pytest.raises(pgs.errors.ClosedError):
        pgs.PGSampler([1]).sample(graph, {"b": [0]})


WRITES, CITES = ("author", "writes", "paper"), ("paper", "cites", "author")


@pytest.mark.parametrize(
    ("edges", "error", "text"),
    [
        (
            {WRITES: ([1, 5], [0, 0])},
            ValueError,
            r"edges\[.*writes.*\]: src\[1\]: .* \[0, 5\), got 5",
        ),
        ({WRITES: ([1], [9])}, ValueError, r"edges\[.*writes.*\]: dst\[0\]: .* \[0, 9\), got 9"),
        ({CITES: ([0, 1], [4, 6])}, ValueError, r"dst\[1\]: expected an id in \[0, 5\), got 6"),
        ({CITES: ([0, -1], [4, 4])}, ValueError, r"src\[1\]: expected an id in \[0, 9\), got -1"),
        ({WRITES: ([1], [2], [3])}, TypeError, r"edges\[.*\]: expected \(src, dst\), got tuple"),
        ({WRITES: None}, TypeError, r"edges\[.*\]: expected \(src, dst\), got NoneType"),
    ],
)
def test_wrong_lists_of_edges(edges: Any, error: Any, text: str) -> None:
    """Errors name the user's places, not those of what was sorted."""
    with pytest.raises(error, match=text):
        pgs.Graph.from_coo(edges, num_nodes={"author": 5, "paper": 9})
    with pytest.raises(TypeError, match="num_nodes: expected a mapping of types to int, got"):
        pgs.Graph.from_coo(edges, num_nodes=None)  # type: ignore[arg-type]
    for rows in (None, 3, (), ([0, 1],)):
        with pytest.raises(TypeError, match=r"edges\[.*\]: expected \(indptr, indices\)"):
            pgs.HeteroGraph({WRITES: rows}, {"author": 5, "paper": 9})


def test_arrays_that_are_wrong_name_their_type() -> None:
    arrays = {"w": [-1.0], "m": np.ones((1, 2)), "t": [np.nan]}
    graph = pgs.Graph.from_coo(
        {WRITES: ([1], [2]), CITES: ([2], [1])},
        num_nodes={"author": 5, "paper": 9},
        edge_data={WRITES: {name: np.asarray(of) for name, of in arrays.items()}},
        node_data={"paper": {"born": np.full(9, np.nan)}},
    )
    for options, text in (
        ({"prob": "w"}, r"author__writes__paper: edata\['w'\]\[0\]: .* got -1"),
        ({"mask": "m"}, r"author__writes__paper: mask: expected a value for each edge"),
        ({"temporal": "t"}, r"author__writes__paper: edata\['t'\]\[0\]: expected a time, got nan"),
        ({"temporal": "born"}, r"paper: ndata\['born'\]\[0\]: expected a time, got nan"),
    ):
        seed_time = {"seed_time": 1.0} if "temporal" in options else {}
        with pytest.raises(ValueError, match=text):
            pgs.PGSampler([1], **options).sample(graph, {"paper": [1]}, **seed_time)


@pytest.mark.parametrize("disjoint", [False, True])
def test_threads_and_tables_change_nothing(disjoint: bool) -> None:
    """One thread or several, a map of all vertices or a table: the same bytes."""
    nodes = {"a": 4000, "b": 2500}
    kinds = [("a", "x", "b"), ("b", "y", "a"), ("a", "s", "a")]
    edges = random_edges(nodes, dict.fromkeys(kinds, 40000), 2)
    graph = pgs.Graph.from_coo(edges, num_nodes=nodes)
    seeds = {"a": list(range(0, 4000, 7)), "b": list(range(0, 2500, 9))}
    batches = [
        pgs.PGSampler([4, 5, 6], seed=3, disjoint=disjoint, map_bytes=limit).sample(
            graph, seeds, batch=0, threads=threads
        )
        for limit in (None, 1)
        for threads in (1, 0, 2)
    ]
    first = batches[0]
    assert first.num_edges > 8192
    for other in batches[1:]:
        assert other.num_sampled_nodes == first.num_sampled_nodes
        for kind, ids in first.input_nodes.items():
            assert other.input_nodes[kind].tolist() == ids.tolist()
        for ours, theirs in zip(other.blocks, first.blocks, strict=True):
            for of, block in theirs.items():
                assert ours[of].indices.tolist() == block.indices.tolist()
                assert ours[of].edge_ids.tolist() == block.edge_ids.tolist()


def test_a_batch_out_of_bytes_that_nobody_may_write() -> None:
    """It has memory of its own: a batch may be written to."""
    _, _, graph = random_types(6, 3, 6, "int64", 40, 150)
    kind = graph.node_types[0]
    batch = pgs.PGSampler([3], seed=1).sample(graph, {kind: [0]})
    kept: list[pickle.PickleBuffer] = []
    data = pickle.dumps(batch, 5, buffer_callback=kept.append)
    given = [bytes(buffer.raw()) for buffer in kept]
    pickle.loads(data, buffers=given).input_nodes[kind].numpy()[:] = 7
    again = pickle.loads(data, buffers=given)
    assert again.input_nodes[kind].tolist() == batch.input_nodes[kind].tolist() != [7]
