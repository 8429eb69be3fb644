"""PGSampler by weights and masks: contracts, and laws that are known exactly."""

from __future__ import annotations

import pickle
import threading
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from forks import in_child
from weighted_graphs import LEVEL, alike, inclusion, p_of_draws, p_of_sets, successive

import pygsampler as pgs
from pygsampler._engine import library
from tests.support.assertions import content

RANDOM = np.random.default_rng(5)
NODES, EDGES = 200, 3000
SRC = RANDOM.integers(0, NODES, EDGES)
DST = (RANDOM.random(EDGES) ** 2 * NODES * 0.9).astype("int64")
# A third of the edges is never drawn, and rows 0 to 9 have no other.
WEIGHTS = RANDOM.exponential(size=EDGES) * (RANDOM.random(EDGES) > 0.3) * (DST > 9)
SEEDS = np.arange(NODES)

F = Fraction


def graph_of(**arrays: Any) -> pgs.Graph:
    return pgs.Graph.from_coo(SRC, DST, num_nodes=NODES, edge_data=arrays)


def weighted() -> pgs.Graph:
    return graph_of(w=WEIGHTS, m=WEIGHTS > 0)


def drawn(batch: pgs.MiniBatch) -> list[int]:
    return [edge for block in batch.blocks for edge in block.edge_ids.tolist()]


def rows(block: pgs.Block) -> dict[int, list[int]]:
    """The edges that each destination got."""
    indptr, edges = block.indptr.tolist(), block.edge_ids.tolist()
    return {v: edges[indptr[i] : indptr[i + 1]] for i, v in enumerate(block.dst_nodes.tolist())}


def in_csc_order(edges: Any) -> dict[int, list[int]]:
    kept = np.asarray(edges)
    return {v: kept[DST[kept] == v].tolist() for v in range(NODES)}


# ---- contracts -------------------------------------------------------------------------------

KINDS = [{"prob": "w"}, {"mask": "m"}]
WAYS: list[dict[str, Any]] = [
    {},
    {"replace": True},
    {"frontier": "new"},
    {"disjoint": True},
    {"frontier": "new", "disjoint": True, "replace": True},
]


@pytest.mark.parametrize("how", WAYS, ids=str)
@pytest.mark.parametrize("by", KINDS, ids=str)
def test_only_edges_of_positive_weight(by: dict[str, str], how: dict[str, Any]) -> None:
    graph = weighted()
    batch = pgs.PGSampler([5, -1, 4], seed=1, **by, **how).sample(graph, SEEDS[:50])
    edges = np.array(drawn(batch))
    assert len(edges) and (WEIGHTS[edges] > 0).all()
    for block in batch.blocks:
        sources, local = block.src_nodes.numpy(), block.coo()
        ids = block.edge_ids.numpy()
        assert (SRC[ids] == sources[local[0]]).all(), "ids are those of the graph"
        assert (DST[ids] == sources[local[1]]).all()


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("by", KINDS, ids=str)
def test_all_of_them(by: dict[str, str], replace: bool) -> None:
    """-1, and without replacement a fanout as large as a row, take the positive in their order."""
    expected = in_csc_order(np.flatnonzero(WEIGHTS > 0))
    for fanout in [-1] if replace else [-1, EDGES]:
        sampler = pgs.PGSampler([fanout], seed=1, replace=replace, **by)
        assert rows(sampler.sample(weighted(), SEEDS).blocks[0]) == expected
    assert not any(expected[v] for v in range(10))


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("by", KINDS, ids=str)
def test_as_many_as_there_are(by: dict[str, str], replace: bool) -> None:
    left = {v: len(edges) for v, edges in in_csc_order(np.flatnonzero(WEIGHTS > 0)).items()}
    sampler = pgs.PGSampler([4], seed=1, replace=replace, **by)
    for v, edges in rows(sampler.sample(weighted(), SEEDS).blocks[0]).items():
        assert len(edges) == (4 * bool(left[v]) if replace else min(4, left[v]))
        assert replace or len(set(edges)) == len(edges)


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint8", "int32", "uint32", "int64", "uint64", "float32", "float64"]
)
def test_dtypes(dtype: str) -> None:
    values = (WEIGHTS > 0).astype(dtype) if dtype == "bool" else np.ceil(WEIGHTS).astype(dtype)
    exact = np.ceil(WEIGHTS) if dtype != "bool" else (WEIGHTS > 0) * 1.0
    one, other = graph_of(w=values), graph_of(w=exact)
    for by in ({"prob": "w"}, {"mask": "w"}):
        sampler = pgs.PGSampler([3, 3], seed=2, **by)
        found = [content(sampler.sample(g, SEEDS, epoch=0, batch=1)) for g in (one, other)]
        assert found[0] == found[1]


def test_a_column_is_as_good() -> None:
    sampler = pgs.PGSampler([3, 3], seed=2, prob="w")
    found = [
        content(sampler.sample(graph_of(w=w), SEEDS, epoch=0, batch=1))
        for w in (WEIGHTS, WEIGHTS.reshape(-1, 1))
    ]
    assert found[0] == found[1]


def test_a_mask_that_leaves_all_is_none() -> None:
    graph = graph_of(m=np.ones(EDGES, "bool"))
    found = [
        content(pgs.PGSampler([3, 3], seed=2, mask=mask).sample(graph, SEEDS, epoch=0, batch=0))
        for mask in ("m", None)
    ]
    assert found[0] == found[1]


def test_a_mask_is_the_graph_without_those_edges() -> None:
    kept = np.flatnonzero(WEIGHTS > 0)
    without = pgs.Graph.from_coo(SRC[kept], DST[kept], num_nodes=NODES)
    one = pgs.PGSampler([3, 3], seed=2).sample(without, SEEDS, epoch=0, batch=0)
    other = pgs.PGSampler([3, 3], seed=2, mask="m").sample(weighted(), SEEDS, epoch=0, batch=0)
    assert one.input_nodes.tolist() == other.input_nodes.tolist()
    for mine, theirs in zip(one.blocks, other.blocks, strict=True):
        assert mine.indices.tolist() == theirs.indices.tolist()
        assert kept[mine.edge_ids.numpy()].tolist() == theirs.edge_ids.tolist()


def test_given_ids_are_those_of_the_weights() -> None:
    """Row i of the array is of the edge with id i, wherever it is in the CSC."""
    ids = [4, 0, 2, 1]
    weights = [1.0, 0.0, 1.0, 9.0, 0.0]
    graph = pgs.Graph.from_csc(
        [0, 4, 4, 4, 4], [0, 1, 2, 3], edge_ids=ids, edge_data={"w": weights}
    )
    block = pgs.PGSampler([-1], prob="w", seed=0).sample(graph, [0]).blocks[0]
    assert block.edge_ids.tolist() == [0, 2]


@pytest.mark.parametrize("by", KINDS, ids=str)
def test_excluded_edges_are_sampled_around(by: dict[str, str]) -> None:
    graph = weighted()
    gone = np.arange(0, EDGES, 2)
    assert (WEIGHTS[gone] == 0).any() and (WEIGHTS[gone] > 0).any()
    left = np.setdiff1d(np.flatnonzero(WEIGHTS > 0), gone)
    found = pgs.PGSampler([-1], seed=1, **by).sample(graph, SEEDS, exclude=gone)
    assert rows(found.blocks[0]) == in_csc_order(left)
    for v, edges in rows(
        pgs.PGSampler([3], seed=1, **by).sample(graph, SEEDS, exclude=gone).blocks[0]
    ).items():
        assert set(edges) <= set(left.tolist())
        assert len(edges) == min(3, (DST[left] == v).sum())
    with pytest.raises(ValueError, match=rf"exclude\[0\]: expected the id of .*, got {EDGES}"):
        pgs.PGSampler([3], seed=1, **by).sample(graph, SEEDS, exclude=[EDGES])


# ---- the same samples ------------------------------------------------------------------------


@pytest.mark.parametrize("by", KINDS, ids=str)
def test_the_same_by_threads_pickles_and_many(by: dict[str, str]) -> None:
    graph, sampler = weighted(), pgs.PGSampler([4, 4], seed=3, **by)
    parts = np.array_split(SEEDS, 5)
    expected = [content(sampler.sample(graph, p, epoch=1, batch=i)) for i, p in enumerate(parts)]
    one = [sampler.sample(graph, p, epoch=1, batch=i, threads=1) for i, p in enumerate(parts)]
    assert list(map(content, one)) == expected
    other, twin = pickle.loads(pickle.dumps((sampler, graph)))
    assert (other.prob, other.mask) == (sampler.prob, sampler.mask)
    again = [other.sample(twin, p, epoch=1, batch=i) for i, p in enumerate(parts)]
    assert list(map(content, again)) == expected
    many = sampler.sample_many(graph, parts, epoch=1, batch=0)
    assert list(map(content, many)) == expected
    jobs = [sampler.submit(graph, p, epoch=1, batch=i) for i, p in enumerate(parts)]
    assert [content(job.result()) for job in jobs] == expected


@pytest.mark.parametrize("made_before", [False, True])
def test_in_threads_at_once_and_in_children(made_before: bool) -> None:
    graph, sampler = weighted(), pgs.PGSampler([4, 4], seed=3, prob="w")

    def sample() -> Any:
        return content(sampler.sample(graph, SEEDS, epoch=1, batch=7))

    expected = content(sampler.sample(weighted(), SEEDS, epoch=1, batch=7))
    if made_before:
        assert sample() == expected
    assert in_child(sample) == expected
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(sample())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4


def test_a_child_forked_while_tables_are_made() -> None:
    """Another thread has the lock for as long as that takes, and the child does not have it."""
    held, end = threading.Event(), threading.Event()

    def hold() -> None:
        with library.table_lock():
            held.set()
            end.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        assert held.wait(60)
        sampler = pgs.PGSampler([4], seed=3, prob="w")
        assert in_child(lambda: len(drawn(sampler.sample(weighted(), SEEDS)))) > 0
    finally:
        end.set()
        thread.join()


def test_a_closed_graph_has_no_tables() -> None:
    graph, sampler = weighted(), pgs.PGSampler([4], seed=3, prob="w")
    job = sampler.submit(graph, SEEDS)
    graph.close()
    assert drawn(job.result())
    with pytest.raises(pgs.errors.ClosedError):
        sampler.sample(graph, SEEDS)


# ---- what is refused -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"), [(-1.0, "-1"), (float("nan"), "NaN"), (float("inf"), "Inf")]
)
@pytest.mark.parametrize("edge", [0, 1234, EDGES - 1])
def test_weights_that_are_none(value: float, text: str, edge: int) -> None:
    weights = WEIGHTS.copy()
    weights[edge] = value
    graph, sampler = graph_of(w=weights), pgs.PGSampler([3], prob="w")
    for _ in range(2):
        with pytest.raises(ValueError, match=rf"edata\['w'\]\[{edge}\]: expected .*>= 0, got .?"):
            sampler.sample(graph, SEEDS)
    # Nothing is left behind.
    assert pgs.PGSampler([3]).sample(graph, SEEDS).num_edges


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"prob": "w", "mask": "m"}, ValueError, "^prob, mask: expected at most one of them"),
        ({"prob": 3}, TypeError, "^prob: expected the name of an edge array, got int 3"),
        ({"mask": b"m"}, TypeError, "^mask: expected the name of an edge array, got bytes"),
    ],
)
def test_options(options: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        pgs.PGSampler([3], **options)


@pytest.mark.parametrize("kind", ["prob", "mask"])
@pytest.mark.parametrize(
    ("name", "error", "text"),
    [
        ("no", ValueError, r"^{kind}: expected the name of an edge array .*'w', .*got 'no'"),
        ("two", ValueError, r"^{kind}: expected a value for each edge, got .*two.* \(3000, 2\)"),
        ("half", TypeError, r"^edata\['half'\]: expected bool, integers, .* got float16"),
    ],
)
def test_arrays(kind: str, name: str, error: type[Exception], text: str) -> None:
    graph = graph_of(w=WEIGHTS, two=np.ones((EDGES, 2)), half=WEIGHTS.astype("float16"))
    with pytest.raises(error, match=text.format(kind=kind)):
        pgs.PGSampler([3], **{kind: name}).sample(graph, SEEDS)


# ---- laws ------------------------------------------------------------------------------------

ROWS = 20000


def test_the_law_itself() -> None:
    """As it is worked out by hand."""
    assert inclusion([1, 2, 3], 2) == [F(5, 12), F(11, 15), F(17, 20)]
    assert successive([1, 2, 3], 2) == {(0, 1): F(3, 20), (0, 2): F(4, 15), (1, 2): F(7, 12)}
    assert inclusion([1, 1, 2, 4], 2) == [F(13, 42), F(13, 42), F(4, 7), F(17, 21)]
    assert inclusion([1, 1, 2, 4], 3) == [F(503, 840), F(503, 840), F(71, 84), F(67, 70)]


@pytest.mark.parametrize(
    ("weights", "fanout"),
    [
        ([1, 2, 3], 1),
        ([1, 2, 3], 2),
        ([1, 1, 2, 4], 2),
        ([1, 1, 2, 4], 3),
        ([5, 0, 1, 0, 1, 1], 2),
        ([100, 1, 1, 1, 1], 3),
        ([1, 1, 1, 1, 1, 1], 3),
    ],
    ids=str,
)
@pytest.mark.parametrize("scale", [1.0, 1e6, 1e-6])
def test_sets(weights: list[float], fanout: int, scale: float) -> None:
    graph = alike([w * scale for w in weights], ROWS)
    sampler = pgs.PGSampler([fanout], seed=11, prob="w")
    block = sampler.sample(graph, np.arange(ROWS)).blocks[0]
    assert p_of_sets(block.edge_ids, weights, fanout) > LEVEL


@pytest.mark.parametrize("weights", [[0, 1, 2, 3, 0], [1, 1, 2, 4], [1000, 1]], ids=str)
@pytest.mark.parametrize("scale", [1.0, 1e6, 1e-6])
def test_draws(weights: list[float], scale: float) -> None:
    graph = alike([w * scale for w in weights], ROWS)
    sampler = pgs.PGSampler([3], seed=11, prob="w", replace=True)
    block = sampler.sample(graph, np.arange(ROWS)).blocks[0]
    assert len(block.edge_ids) == 3 * ROWS
    assert p_of_draws(block.edge_ids, weights) > LEVEL


def test_batches_draw_anew() -> None:
    """One row, in many batches."""
    graph, weights = alike([1, 2, 3], 1), [1.0, 2.0, 3.0]
    sampler = pgs.PGSampler([2], seed=4, prob="w")
    found = [b.blocks[0].edge_ids.tolist() for b in sampler.sample_many(graph, [[0]] * 4000)]
    assert p_of_sets(found, weights, 2) > LEVEL


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_powers_of_two_change_nothing(dtype: str, replace: bool) -> None:
    weights = WEIGHTS.astype(dtype)
    sampler = pgs.PGSampler([4, 3], seed=1, prob="w", replace=replace)
    found = [
        content(sampler.sample(graph_of(w=weights * dtype_of(2.0**k)), SEEDS, epoch=0, batch=0))
        for k, dtype_of in ((k, np.dtype(dtype).type) for k in (0, 1, -7, 40, -40))
    ]
    assert all(other == found[0] for other in found[1:])
