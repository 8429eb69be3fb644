"""Programs over relations of a graph with types."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import pygsampler as pgs
from pygsampler import samplers

WRITES = ("author", "writes", "paper")
CITES = ("paper", "cites", "paper")
EMPLOYS = ("place", "employs", "author")
NODES = {"place": 5, "author": 40, "paper": 60}
SEEDS = {"paper": [7, 3, 7, 58], "author": [0, 39]}


def lists(kinds: tuple[Any, ...]) -> dict[Any, Any]:
    """The edges of each relation, whatever others there are."""
    made = {}
    for kind in kinds:
        random = np.random.default_rng(sum(map(len, kind)))
        made[kind] = tuple(random.integers(0, NODES[kind[end]], 220) for end in (0, 2))
    return made


def typed(*kinds: Any) -> pgs.Graph:
    weights = {kind: {"w": np.arange(220) % 5 + 0.5} for kind in kinds}
    nodes = {kind: NODES[kind] for kind in dict.fromkeys(e for k in kinds for e in (k[0], k[2]))}
    scores = {kind: {"score": np.arange(count) + 1.0} for kind, count in nodes.items()}
    return pgs.Graph.from_coo(lists(kinds), num_nodes=nodes, edge_data=weights, node_data=scores)


@pytest.fixture(scope="module")
def graph() -> pgs.Graph:
    return typed(EMPLOYS, WRITES, CITES)


def over(function: Any, relation: Any) -> Any:
    """A program of the package, over a relation in the place of the graph."""

    def run(A: Any, seeds: Any) -> Any:
        return function(A[relation] if relation else A, seeds)

    return pgs.program(run)(seed=3, weight="w")


def ladies(A: Any, seeds: Any) -> Any:
    return samplers.ladies._function(A, seeds, nodes=[9, 6])


def fastgcn(A: Any, seeds: Any) -> Any:
    return samplers.fastgcn._function(A, seeds, nodes=[9, 6])


def sage(A: Any, seeds: Any) -> Any:
    outer = A[:, seeds].individual_sample(3)
    return [A[:, seeds | outer.row()].individual_sample(2), outer]


@pytest.mark.parametrize("function", [ladies, fastgcn, sage])
def test_a_relation_is_sampled_as_the_graph_that_it_is(graph: pgs.Graph, function: Any) -> None:
    seeds = SEEDS["paper"]
    ours = over(function, CITES).sample(graph, {"paper": seeds}, epoch=1, batch=2)
    alone = over(function, None).sample(typed(CITES)[CITES], seeds, epoch=1, batch=2)
    assert ours.input_nodes["paper"].tolist() == np.asarray(alone.input_nodes).tolist()
    assert ours.output_nodes["paper"].tolist() == seeds
    assert ours.output_index["paper"].tolist() == np.asarray(alone.output_index).tolist()
    for hop, expected in zip(ours.blocks, alone.blocks, strict=True):
        block = hop[CITES]
        for name in ("indptr", "indices", "edge_ids", "src_nodes", "dst_nodes"):
            assert getattr(block, name).tolist() == getattr(expected, name).tolist()
        weights = np.asarray(block.edge_data["w"])
        assert weights.tobytes() == np.asarray(expected.edge_data["w"]).tobytes()
        assert block.num_edges and block.dst_offset == 0


@pgs.program
def both(A: Any, seeds: Any, K: int) -> Any:
    papers = seeds["paper"]
    cited = A[CITES][:, papers].individual_sample(K)
    writers = A[WRITES][:, papers | cited.row()]
    by = writers.spread(A.ndata["score"], axis=1)
    some = writers.individual_sample(K, by)
    return [some, cited], {
        "writers": some.row(),
        "written": A[WRITES].degree()[some.row() | papers],
        "all": writers.sum(axis=0),
        "scored": by.sum(axis=0),
    }


def test_a_program_of_several_relations(graph: pgs.Graph) -> None:
    sampler = both(K=2, seed=5, weight="w")
    batch = sampler.sample(graph, SEEDS, batch=4).numpy()
    assert sampler.relations == (CITES, WRITES)
    assert tuple(batch.input_nodes) == graph.node_types and not len(batch.input_nodes["place"])
    assert all(
        tuple(hop) == graph.edge_types and not hop[EMPLOYS].num_edges for hop in batch.blocks
    )
    edges = lists((WRITES, CITES))
    outer, inner = batch.blocks
    assert outer[WRITES].num_edges and not outer[CITES].num_edges
    assert inner[CITES].num_edges and not inner[WRITES].num_edges
    for kind, found in ((WRITES, outer[WRITES]), (CITES, inner[CITES])):
        src, dst = edges[kind]
        rows, columns = found.coo()
        assert (src[found.edge_ids] == batch.input_nodes[kind[0]][rows]).all()
        assert (dst[found.edge_ids] == batch.input_nodes[kind[2]][columns]).all()
        assert (found.edge_weights == found.edge_ids % 5 + 0.5).all()
        degrees = np.diff(found.indptr)
        assert degrees.max() <= 2
        assert (degrees <= np.bincount(dst, minlength=60)[found.dst_nodes]).all()
    for kind, seeds in SEEDS.items():
        assert batch.output_nodes[kind].tolist() == seeds
        assert batch.input_nodes[kind][batch.output_index[kind]].tolist() == seeds
    listed = batch.extra["writers"]
    assert set(batch.extra["writers_type"].tolist()) == {graph.node_types.index("author")}
    assert set(listed.tolist()) == set(batch.input_nodes["author"][outer[WRITES].indices].tolist())
    src, dst = edges[WRITES]
    papers = [7, 3, 58]
    degrees = [0] * len(listed) + [int((dst == v).sum()) for v in papers]
    assert sorted(batch.extra["written"].tolist()) == sorted(degrees)
    weights = [float((np.flatnonzero(dst == v) % 5 + 0.5).sum()) for v in papers]
    assert batch.extra["all"][:3].tolist() == weights
    scores = [float((src[dst == v] + 1).sum()) for v in papers]
    assert batch.extra["scored"][:3].tolist() == scores


def arrays(batch: Any) -> list[Any]:
    """The arrays of the types that the programs name."""
    blocks = [hop[kind] for hop in batch.blocks for kind in (WRITES, CITES)]
    return [
        *(array.tolist() for b in blocks for array in (b.indptr, b.indices, b.edge_ids)),
        *({name: array.tolist() for name, array in b.edge_data.items()} for b in blocks),
        *({k: nodes[k].tolist() for k in ("paper", "author")} for nodes in
          (batch.input_nodes, batch.output_nodes, batch.output_index)),
        {name: array.tolist() for name, array in batch.extra.items() if name != "writers_type"},
    ]  # fmt: skip


def same(a: Any, b: Any) -> None:
    assert arrays(a) == arrays(b)


def test_other_relations_and_their_order_change_nothing(graph: pgs.Graph) -> None:
    sampler = both(K=2, seed=5)
    batch = sampler.sample(graph, SEEDS, batch=1)
    same(batch, sampler.sample(typed(CITES, WRITES), SEEDS, batch=1))
    same(batch, pickle.loads(pickle.dumps(sampler)).sample(graph, SEEDS, batch=1))
    same(batch, sampler.submit(graph, SEEDS, batch=1).result())
    same(batch, sampler.sample_many(graph, [SEEDS, SEEDS], batch=0)[1])
    same(batch, both(K=2, seed=5, passes=["cse", "dce"]).sample(graph, SEEDS, batch=1))
    other = sampler.with_seed(6).sample(graph, SEEDS, batch=1)
    assert arrays(batch) != arrays(other)


@pgs.program
def writers(A: Any, seeds: Any, K: int) -> Any:
    papers = seeds["paper"]
    cited = A[CITES][:, papers].individual_sample(K)
    return [A[WRITES][:, papers].individual_sample(K), cited]


@pgs.program
def drawn_from_relations(A: Any, seeds: Any) -> Any:
    """One edge of each column of a whole relation, by values that are made of it alone."""
    R = A[WRITES]
    B = R.individual_sample(1, R.mul(R.degree(), axis=0))
    return B, {"degrees": R.degree()[seeds["paper"]], "cited": A[CITES][:, seeds["paper"]].row()}


def test_edges_are_left_out_by_relation(graph: pgs.Graph) -> None:
    """Where all but some are out, those are what there is."""
    _, dst = lists((WRITES,))[WRITES]
    out = np.flatnonzero(np.arange(220) % 4 > 0)
    sampler = writers(K=300, seed=5)
    batch = sampler.sample(graph, SEEDS, exclude={WRITES: out, CITES: np.arange(220)})
    assert not batch.blocks[1][CITES].num_edges
    wanted = [e for e in range(0, 220, 4) if dst[e] in SEEDS["paper"]]
    assert sorted(batch.blocks[0][WRITES].edge_ids.tolist()) == wanted and wanted
    whole = sampler.sample(graph, SEEDS)
    same(whole, sampler.sample(graph, SEEDS, exclude={}))
    assert whole.blocks[1][CITES].num_edges
    # What is made of a relation alone is as without them, and draws from it are not.
    plain = both(K=300, seed=5).sample(graph, SEEDS).numpy()
    fewer = both(K=300, seed=5).sample(graph, SEEDS, exclude={WRITES: out}).numpy()
    assert not set(fewer.blocks[0][WRITES].edge_ids.tolist()) & set(out.tolist())
    papers = len(SEEDS["paper"])
    assert (fewer.extra["written"][-papers:] == plain.extra["written"][-papers:]).all()
    drawn = drawn_from_relations(seed=5)
    for left in (out, np.arange(0, 220, 2)):
        batch = drawn.sample(graph, SEEDS, exclude={WRITES: left}).numpy()
        edges = batch.blocks[0][WRITES].edge_ids
        assert len(edges) and not set(edges.tolist()) & set(left.tolist())
        assert not batch.blocks[0][CITES].num_edges
    degrees = batch.extra["degrees"]
    assert (degrees == drawn.sample(graph, SEEDS).numpy().extra["degrees"]).all()


def test_a_subgraph_of_a_relation(graph: pgs.Graph) -> None:
    @pgs.program
    def around(A: Any, seeds: Any) -> Any:
        return A[CITES].induce(seeds.unique() | A[CITES][:, seeds].row())

    sampler = around(seed=1)
    assert sampler.result_kind == "blocks"
    batch = sampler.sample(graph, {"paper": [3, 7]}).numpy()
    src, dst = lists((CITES,))[CITES]
    inside = np.isin(src, batch.input_nodes["paper"]) & np.isin(dst, batch.input_nodes["paper"])
    found = batch.blocks[0][CITES]
    assert sorted(found.edge_ids.tolist()) == np.flatnonzero(inside).tolist()
    assert found.edge_weights is None
    assert found.num_src_nodes == found.num_dst_nodes == len(batch.input_nodes["paper"])
    assert batch.output_index["paper"].tolist() == [0, 1]


def test_slices_of_a_relation(graph: pgs.Graph) -> None:
    """Those of what was made of a relation are the relation's; of other vertices there is none."""

    @pgs.program
    def sliced(A: Any, seeds: Any) -> Any:
        papers = seeds["paper"]
        C = A[WRITES][:, papers | A[CITES][:, papers].row()] * 2
        return [C[seeds, papers], A[WRITES][seeds["author"].unique(), papers.unique()] * 2], {
            "none": C[:, seeds["author"]].count(axis=0),
            "in": seeds.isin(papers),
        }

    seeds = {"paper": [7, 3, 7, 58], "author": range(30)}
    batch = sliced(seed=1, weight="w").sample(graph, seeds).numpy()
    found, want = (block[WRITES] for block in batch.blocks)
    for of in (found, want):
        assert (of.edge_weights == 2 * (of.edge_ids % 5 + 0.5)).all()
    assert sorted(found.edge_ids) == sorted(want.edge_ids) and len(found.edge_ids)
    src, dst = lists((WRITES,))[WRITES]
    inside = np.isin(src, np.arange(30)) & np.isin(dst, [7, 3, 58])
    assert sorted(found.edge_ids) == np.flatnonzero(inside).tolist()
    assert not batch.extra["none"].any() and batch.extra["in"].sum() == 4


def test_what_does_not_fit_is_refused(graph: pgs.Graph) -> None:
    sampler = both(K=2, seed=5)
    with pytest.raises(TypeError, match="seeds: expected a mapping of types"):
        sampler.sample(graph, [1])
    with pytest.raises(ValueError, match="types among 'paper', 'author', got 'place'"):
        sampler.sample(graph, {"place": [1]})
    for wrong in (60, -1):
        with pytest.raises(IndexError, match=f"from 0 to 59, got {wrong}"):
            sampler.sample(graph, {"paper": [wrong]})
    with pytest.raises(TypeError, match="expected a heterogeneous graph"):
        sampler.sample(graph[CITES], SEEDS)
    with pytest.raises(ValueError, match=r"expected relations among .*employs.*, got .*cites"):
        sampler.sample(typed(EMPLOYS), SEEDS)
    with pytest.raises(TypeError, match=r"graph: expected a pygsampler\.Graph"):
        samplers.graphsage(fanouts=[2]).sample(graph, [1])
    with pytest.raises(TypeError, match="exclude: expected a mapping of edge types"):
        sampler.sample(graph, SEEDS, exclude=[1])
    text = r"exclude: expected types of the program, got .*employs.*; there are .*cites"
    with pytest.raises(ValueError, match=text):
        sampler.sample(graph, SEEDS, exclude={EMPLOYS: [1]})
    with pytest.raises(
        IndexError, match=r"exclude\[.*cites.*: expected ids from 0 to 219, got 220"
    ):
        sampler.sample(graph, SEEDS, exclude={CITES: [220]})
    for body, words in (
        (lambda A, seeds: A[CITES].roots(3), "roots of a relation's matrix"),
        (lambda A, seeds: A[CITES].walk(seeds, 3), "walk of a relation's matrix"),
        (lambda A, seeds: A[CITES][CITES], "as an index of a relation's matrix"),
        (lambda A, seeds: A[CITES][:, seeds["place"]], "'place': expected a type"),
        (
            lambda A, seeds: [A[CITES][:, seeds], A[WRITES][:, seeds["author"]]],
            "'author' as the columns of a relation's matrix: expected nodes of type 'paper'",
        ),
        (
            lambda A, seeds: [A[CITES][:, seeds], A[WRITES][seeds["paper"], seeds]],
            "'paper' as the rows of a relation's matrix: expected nodes of type 'author'",
        ),
        (lambda A, seeds: A["cites"], "A.source, relation, destination"),
    ):
        with pytest.raises(TypeError, match=words):
            pgs.program(body)()


def test_explain_names_the_relations(graph: pgs.Graph) -> None:
    text = both(K=2, seed=5).explain(graph)
    assert text.startswith(f"one graph, put together of {CITES}, {WRITES}\n")
    assert "individual" in text


def test_tensors_of_a_program_over_relations(graph: pgs.Graph) -> None:
    """They may change, and what a plan costs is told, as of programs without types."""

    @pgs.program
    def attended(A: Any, seeds: Any, K: int, W: Any) -> Any:
        C = A[CITES][:, seeds]
        return [{"w": C.spread(A.ndata["score"], axis=1) * W[0]}]

    sampler = attended(K=3, W=np.array([2.0], np.float32), seed=1)
    seeds = {"paper": SEEDS["paper"]}
    before = sampler.sample(graph, seeds, epoch=0, batch=0).blocks[0][CITES]
    assert sampler.update(W=np.array([3.0], np.float32)) == 1 == sampler.version
    assert sampler.inputs["W"].tolist() == [3.0]
    after = sampler.sample(graph, seeds, epoch=0, batch=0).blocks[0][CITES].edge_weights
    np.testing.assert_allclose(after, before.edge_weights.numpy() * 1.5)
    with pytest.raises(TypeError, match=r"attended.update: V: expected one of its inputs \(W\)"):
        sampler.update(V=np.ones(1))
    for other in (
        sampler.with_seed(1),
        sampler.with_gpu_share(0.5),
        sampler.tuned(graph, seeds, batches=1),
    ):
        again = other.sample(graph, seeds, epoch=0, batch=0).blocks[0][CITES].edge_weights
        assert again.tolist() == after.tolist()
    assert "measured, the median of 1 batches" in sampler.explain(graph, 8, batches=1)
    profile = sampler.profile(graph, seeds, batches=1)
    assert "in all" in profile and profile.microseconds
    with pytest.raises(ValueError, match="seeds: expected types among 'paper', got 'author'"):
        sampler.profile(graph, {"author": [1]})


@pgs.program
def mixed(A: Any, seeds: Any, K: int) -> Any:
    """Edges of all relations in one block, then edges of one relation."""
    names = [A[kind] for kind in (EMPLOYS, WRITES, CITES)]
    outer = A[:, seeds | names[2][:, seeds["paper"]].row()].individual_sample(K)
    return [{"w": outer, "doubled": outer * 2}, names[2][:, seeds["paper"]]], {"rows": outer.row()}


@pytest.mark.parametrize("seeds", [SEEDS, {"place": [1]}, {"paper": []}, {"author": [5, 5]}])
def test_blocks_of_several_relations_have_the_edges_of_each(
    graph: pgs.Graph, seeds: dict[str, list[int]]
) -> None:
    batch = mixed(K=4, seed=2, weight="w").sample(graph, seeds, batch=0).numpy()
    edges = lists((EMPLOYS, WRITES, CITES))
    for hop in batch.blocks:
        for kind, block in hop.items():
            src, dst = edges[kind]
            sources, destinations = block.coo()
            assert (block.src_nodes[sources] == src[block.edge_ids]).all()
            assert (block.dst_nodes[destinations] == dst[block.edge_ids]).all()
            assert block.indptr[0] == 0 and block.indptr[-1] == block.num_edges
            for end, nodes in ((kind[0], block.src_nodes), (kind[2], block.dst_nodes)):
                assert (nodes == batch.input_nodes[end][: len(nodes)]).all()
    outer = batch.blocks[0]
    for block in outer.values():
        assert (block.edge_data["doubled"] == 2 * block.edge_weights).all()
        assert (block.edge_weights == block.edge_ids % 5 + 0.5).all()
        assert np.diff(block.indptr).max(initial=0) <= 4
    types = [graph.node_types[place] for place in batch.extra["rows_type"]]
    rows = set(zip(types, batch.extra["rows"].tolist(), strict=True))
    assert rows == {
        (kind[0], node)
        for kind, block in outer.items()
        for node in block.src_nodes[block.indices].tolist()
    }
    for kind, ids in seeds.items():
        assert batch.output_nodes[kind].tolist() == ids
        assert batch.input_nodes[kind][batch.output_index[kind]].tolist() == ids
        assert batch.num_sampled_nodes[kind][0] == len(set(ids))


def test_program_returns_arrays_alone(graph: pgs.Graph) -> None:
    @pgs.program
    def cited(A: Any, seeds: Any) -> Any:
        C = A[CITES][:, seeds["paper"]]
        return {"cited": C.row(), "degrees": C.count(axis=0)}

    sampler = cited(seed=1)
    assert sampler.result_kind == "vectors"
    batch = sampler.sample(graph, {"paper": SEEDS["paper"]})
    assert batch.blocks == () and batch.num_edges == 0
    src, dst = lists((CITES,))[CITES]
    assert set(batch.extra["cited"].tolist()) == set(src[np.isin(dst, [7, 3, 58])].tolist())
    copy = pickle.loads(pickle.dumps(batch))
    assert copy.extra["degrees"].tolist() == batch.extra["degrees"].tolist()


def test_subgraph_without_some_seeds_says_so(graph: pgs.Graph) -> None:
    @pgs.program
    def apart(A: Any, seeds: Any) -> Any:
        return A[WRITES].induce(A[WRITES][:, seeds["paper"]].row())

    batch = apart(seed=1).sample(graph, {"paper": [7, 3]})
    assert batch.output_index["paper"].tolist() == [-1, -1]
    assert not len(batch.input_nodes["paper"]) and len(batch.input_nodes["author"])


def test_names_of_types_of_lists_are_reserved() -> None:
    @pgs.program
    def doubled(A: Any, seeds: Any) -> Any:
        C = A[CITES][:, seeds]
        return [C], {"v": C.row(), "v_type": C.count(axis=0)}

    with pytest.raises(ValueError, match="doubled: expected another name than 'v_type'"):
        doubled(seed=1)
