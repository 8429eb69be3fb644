"""``KHop`` and ``LayerSample``: the rules slot by slot, views, loaders, and bad input."""

from __future__ import annotations

import collections
import copy
import itertools
import pickle
from typing import Any

import numpy as np
import pytest

import pygsampler as pgs
from tests.support.parity import awkward, of_rows, with_degrees
from tests.support.reference_steps import khop, layers, unique_law
from tests.support.sampler_laws import plausible

AT = {"epoch": 2, "batch": 5}
# 0-1, 0-2, 1-2, 2-3 and 3-4, in both directions; 5 has no edges.
INDPTR = [0, 2, 4, 7, 9, 10, 10]
INDICES = [1, 2, 0, 2, 0, 1, 3, 2, 4, 3]


def tree(**options: Any) -> pgs.Graph:
    return pgs.Graph.from_csc(np.array(INDPTR), np.array(INDICES), **options)


def parents(samples: Any, step: int, fanout: int) -> Any:
    """Of each vertex of a step the one that drew it."""
    before = samples.seeds[:, None] if step == 0 else samples.steps[step - 1]
    return np.repeat(before, fanout, axis=1)


@pytest.mark.parametrize("unique", [False, True, "transit"])
def test_slots_have_the_edges_of_their_transits(unique: Any) -> None:
    ids = np.arange(10)[::-1].copy()
    fanouts = [3, 2, 4]
    sampler = pgs.research.KHop(fanouts, unique=unique, edge_ids=True, seed=3)
    samples = sampler.sample(tree(edge_ids=ids), [0, 5, 2, 2, 4], **AT).numpy()
    assert samples.widths == (3, 6, 24) and len(samples) == 5
    targets = np.repeat(np.arange(6), np.diff(INDPTR))
    for step, fanout in enumerate(fanouts):
        drew, got, edges = (
            parents(samples, step, fanout),
            samples.steps[step],
            samples.edge_ids[step],
        )
        there = got >= 0
        assert (there == (edges >= 0)).all()
        places = 9 - edges[there]
        assert (targets[places] == drew[there]).all()
        assert (np.array(INDICES)[places] == got[there]).all()
        degrees = np.where(drew >= 0, np.diff(INDPTR)[drew], 0)
        slot = np.arange(got.shape[1]) % fanout
        if unique is True:
            for row, transits in zip(got, drew, strict=True):
                nodes = row[row >= 0].tolist()
                assert len(set(nodes)) == len(nodes)
                # A place is empty only where nothing was left for it.
                for v in transits[(row < 0) & (transits >= 0)]:
                    assert set(INDICES[INDPTR[v] : INDPTR[v + 1]]) <= set(nodes)
            continue
        assert (there == (slot < degrees if unique else degrees > 0)).all()
        if unique:
            for row in edges.reshape(-1, fanout):
                assert len(set(row[row >= 0])) == (row >= 0).sum()
    # Two samples on one vertex.
    assert not np.array_equal(samples.steps[2][2], samples.steps[2][3])


def test_unique_steps_have_no_node_twice_over_all_transits() -> None:
    # 2 draws 0 and 1, which both have the neighbors 3, 4 and 5.
    graph = pgs.Graph.from_coo([0, 1, 3, 4, 5, 3, 4, 5], [2, 2, 0, 0, 0, 1, 1, 1])
    seeds = np.full(2000, 2)
    steps = pgs.research.KHop([2, 2], unique=True, seed=0).sample(graph, seeds, **AT).numpy().steps
    assert (np.sort(steps[0]) == [0, 1]).all()
    assert (np.sort(steps[1]) == [-1, 3, 4, 5]).all()
    own = (
        pgs.research.KHop([2, 2], unique="transit", seed=0).sample(graph, seeds, **AT).numpy().steps
    )
    assert (own[1] >= 0).all()


@pytest.mark.parametrize(
    ("lists", "fanout"),
    [
        # The second transit finds one of three left; fewer tries than that takes, too.
        ([[3, 4, 5], [3, 4, 5]], 2),
        ([[3, 4], [3, 4, 5], [5, 4]], 1),
        # Parallel edges have their chance each, and go together.
        ([[3, 3, 4], [3, 4, 4, 5]], 2),
        ([[3, 4, 5, 6], [], [6, 6]], 3),
        # Most tries are in vain: the look at all edges decides.
        ([[3, 4], [3, 4, 4, 4, 3, 5]], 3),
    ],
)
def test_unique_steps_have_their_exact_law(lists: list[list[int]], fanout: int) -> None:
    # One step from fixed transits: the roots' only neighbors are these, in their order.
    samples, transits = 6000, len(lists)
    rows = [[], *lists, *[[]] * 8]
    indptr = np.cumsum([0, *map(len, rows)])
    graph = pgs.Graph.from_csc(indptr, np.array([3 + v for r in lists for v in r]), num_nodes=12)
    chain = pgs.Graph.from_csc(
        np.array([0, transits, *[transits] * 11]), np.arange(1, transits + 1), num_nodes=12
    )
    first = pgs.research.KHop([transits], unique=True, seed=5).sample(
        chain, np.zeros(samples, int), **AT
    )
    # Transits come in any order, so that of a sample says which law is its own.
    both = pgs.Graph.from_csc(
        np.concatenate([[0], transits + indptr[1:]]),
        np.concatenate([chain.indices.numpy(), graph.indices.numpy()]),
        num_nodes=12,
    )
    drawn = pgs.research.KHop([transits, fanout], unique=True, seed=5).sample(
        both, np.zeros(samples, int), **AT
    )
    before, got = drawn.numpy().steps
    np.testing.assert_array_equal(before, first.numpy().steps[0])
    law: dict[Any, float] = {}
    orders = list(itertools.permutations(range(1, transits + 1)))
    for order in orders:
        for nodes, chance in unique_law([lists[v - 1] for v in order], fanout).items():
            law[(order, nodes)] = chance / len(orders)
    pairs = zip(before.tolist(), np.where(got < 0, -1, got - 3).tolist(), strict=True)
    plausible(collections.Counter((tuple(a), tuple(b)) for a, b in pairs), law)


@pytest.mark.parametrize("name", [*sorted(awkward()), "every degree", "hub"])
@pytest.mark.parametrize("unique", [False, True, "transit"])
def test_samples_are_the_reference(name: str, unique: Any) -> None:
    if name == "every degree":
        csc = with_degrees(range(71), 71)
    elif name == "hub":
        # More than 32 neighbors, all of which are taken in the end.
        csc = of_rows([range(1, 4), *[range(4, 50)] * 3], 50)
    else:
        csc = awkward()[name]
    indptr, indices = csc.indptr.tolist(), csc.indices.tolist()
    indptr += [indptr[-1]] * (csc.num_nodes + 1 - len(indptr))
    for bits in (32, 64):
        graph, seeds = csc.graph(bits, bits, 0), list(range(min(csc.num_nodes, 71)))
        for fanouts in ([1], [2, 3], [6, 1, 2], [40]):
            sampler = pgs.research.KHop(fanouts, unique=unique, edge_ids=True, seed=11)
            got = sampler.sample(graph, seeds, **AT).numpy()
            want = khop(indptr, indices, seeds, fanouts, unique, 11, AT["epoch"], AT["batch"])
            for step in range(len(fanouts)):
                assert got.steps[step].tolist() == want.nodes[step]
                assert got.edge_ids[step].tolist() == want.places[step]


@pytest.mark.parametrize("name", [*sorted(awkward()), "hub"])
@pytest.mark.parametrize("unique", [False, True])
def test_layers_are_the_reference(name: str, unique: bool) -> None:
    # More than 32 neighbors, all of which are taken in the end.
    hub = of_rows([range(1, 4), *[range(4, 50)] * 3], 50)
    csc = hub if name == "hub" else awkward()[name]
    indptr, indices = csc.indptr.tolist(), csc.indices.tolist()
    indptr += [indptr[-1]] * (csc.num_nodes + 1 - len(indptr))
    for bits in (32, 64):
        graph, seeds = csc.graph(bits, bits, 0), list(range(min(csc.num_nodes, 40)))
        for sizes in ([1, 1], [7, 60, 3], [50]):
            sampler = pgs.research.LayerSample(sizes, unique=unique, edge_ids=True, seed=11)
            got = sampler.sample(graph, seeds, **AT).numpy()
            want = layers(indptr, indices, seeds, sizes, unique, 11, AT["epoch"], AT["batch"])
            for step in range(len(sizes)):
                assert got.steps[step].tolist() == want.nodes[step]
                assert got.edge_ids[step].tolist() == want.places[step]


def test_unique_layers_have_their_exact_law() -> None:
    # 0 has the neighbors 1 and 2, in both orders; 1 has 3, 3, 4 and 2 has 4, 5.
    graph = pgs.Graph.from_csc(np.array([0, 2, 5, 7]), np.array([1, 2, 3, 3, 4, 4, 5]), num_nodes=6)
    for size in (2, 5):
        samples = pgs.research.LayerSample([2, size], unique=True, seed=5)
        steps = samples.sample(graph, np.zeros(6000, int), **AT).numpy().steps
        law = unique_law([[3, 3, 4, 4, 5]], size)
        assert (np.sort(steps[0]) == [1, 2]).all()
        plausible(collections.Counter(map(tuple, steps[1].tolist())), law)


def test_layers_draw_from_the_edges_of_the_step_before() -> None:
    samples = (
        pgs.research.LayerSample([4, 30, 2], edge_ids=True, seed=3)
        .sample(tree(), [2, 5], **AT)
        .numpy()
    )
    targets = np.repeat(np.arange(6), np.diff(INDPTR))
    before = samples.seeds[:1]
    for step, width in enumerate((4, 30, 2)):
        got, edges = samples.steps[step], samples.edge_ids[step]
        assert got.shape == edges.shape == (2, width)
        assert (got[1] == -1).all() and (edges[1] == -1).all()
        assert (np.array(INDICES)[edges[0]] == got[0]).all()
        assert np.isin(targets[edges[0]], before).all()
        if width == 30:
            of_these = np.isin(targets, before)
            assert set(got[0]) == set(np.array(INDICES)[of_these])
        before = got[0]


def test_views() -> None:
    graph, seeds = tree(), [2, 0, 5]
    samples = pgs.research.KHop([2, 3], edge_ids=True, seed=1).sample(graph, seeds, **AT)
    assert (len(samples), samples.num_edges, samples.device) == (3, 24, "cpu")
    assert samples.seeds.tolist() == seeds
    assert [step.shape for step in samples.steps] == [(3, 2), (3, 6)]
    numpy, torch = samples.numpy(), samples.torch()
    assert torch.torch() is torch and torch.num_edges == 24 and len(torch) == len(numpy) == 3
    for i in range(2):
        assert samples.per_step()[i].tolist() == numpy.steps[i].tolist() == torch.steps[i].tolist()
        assert samples.edge_ids[i].tolist() == torch.edge_ids[i].tolist()
        for w, own in enumerate(samples.per_sample()):
            assert (
                own[i].tolist() == numpy.per_sample()[w][i].tolist() == numpy.steps[i][w].tolist()
            )
    table = samples.arrow()
    assert table.column_names == ["seed", "step_1", "edges_1", "step_2", "edges_2"]
    assert table["step_2"].to_pylist() == numpy.steps[1].tolist()
    again = pickle.loads(pickle.dumps(samples))
    assert again.steps[1].tolist() == numpy.steps[1].tolist() and again.epoch == 2
    assert "widths=[2, 6]" in repr(samples) and samples.cpu() is samples
    without = pgs.research.KHop([2], seed=1).sample(graph, seeds)
    for view in (without, without.numpy(), without.torch()):
        with pytest.raises(ValueError, match="edge_ids=True, got one without"):
            _ = view.edge_ids
    with pytest.raises(TypeError, match="created by"):
        pgs.research.StepSamples()
    assert [s.shape for s in pgs.research.KHop([2, 2]).sample(graph, []).steps] == [(0, 2), (0, 4)]


def test_samplers_are_samplers() -> None:
    graph = tree()
    for sampler in (
        pgs.research.KHop([3, 2], unique="transit", seed=7),
        pgs.research.KHop([3, 2], unique=True, seed=7),
        pgs.research.LayerSample([3, 2], seed=7),
        pgs.research.LayerSample([3, 2], unique=True, seed=7),
    ):
        want = sampler.sample(graph, [0, 1, 2], **AT).steps[1].tolist()
        assert sampler.result_kind == "steps"
        for other in (
            copy.copy(sampler),
            pickle.loads(pickle.dumps(sampler)),
            sampler.with_seed(7),
            sampler.with_gpu_share(0.5),
            eval(repr(sampler), vars(pgs.research)),
        ):
            assert other.plan == sampler.plan
            assert other.sample(graph, [0, 1, 2], **AT).steps[1].tolist() == want
        assert sampler.with_seed(8).sample(graph, [0, 1, 2], **AT).steps[1].tolist() != want
        job = sampler.submit(graph, [0, 1, 2], **AT)
        many = sampler.sample_many(graph, [[3], [0, 1, 2]], epoch=2, batch=4)
        assert job.result().steps[1].tolist() == many[1].steps[1].tolist() == want
    by_transit = pgs.research.KHop([3, 2], execution="transit", seed=7).sample(graph, [0, 1], **AT)
    assert (
        by_transit.steps[1].tolist()
        == pgs.research.KHop([3, 2], seed=7).sample(graph, [0, 1], **AT).steps[1].tolist()
    )


def test_many_threads_change_nothing() -> None:
    random = np.random.default_rng(5)
    degrees = random.integers(0, 9, 3000)
    graph = pgs.Graph.from_csc(
        np.concatenate([[0], np.cumsum(degrees)]), random.integers(0, 3000, degrees.sum())
    )
    seeds = random.integers(0, 3000, 2000)
    for sampler in (
        pgs.research.KHop([6, 5], seed=1),
        pgs.research.KHop([6, 5], unique=True, seed=1),
        pgs.research.LayerSample([40, 30], seed=1),
        pgs.research.LayerSample([40, 30], unique=True, seed=1),
    ):
        one = sampler.sample(graph, seeds, **AT, threads=1).numpy()
        all_ = sampler.sample(graph, seeds, **AT).numpy()
        for mine, theirs in zip(one.steps, all_.steps, strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_loaders_yield_them() -> None:
    from pygsampler.torch import DataLoader

    graph = tree()
    for sampler in (pgs.research.KHop([2, 2], seed=4), pgs.research.LayerSample([5], seed=4)):
        loader = DataLoader(graph, list(range(6)), sampler, batch_size=4)
        batches = list(loader)
        assert [len(batch) for batch in batches] == [4, 2]
        want = sampler.sample(graph, [4, 5], epoch=0, batch=1)
        assert batches[1].torch().steps[0].tolist() == want.steps[0].tolist()


def test_bad_input() -> None:
    for fanouts, text in (
        ([], "fanouts: expected 1 to 16 integers, got 0"),
        ([1] * 17, "fanouts: expected 1 to 16 integers, got 17"),
        ([2, 0], r"fanouts\[1\]: expected"),
        ([-1], r"fanouts\[0\]: expected"),
        ([1 << 20, 1 << 12], "fanouts: expected at most 2147483647 nodes of a sample"),
    ):
        with pytest.raises(ValueError, match=text):
            pgs.research.KHop(fanouts)
    for wrong in (None, 3, "ab", [2.5]):
        with pytest.raises(TypeError, match="fanouts"):
            pgs.research.KHop(wrong)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="sizes"):
            pgs.research.LayerSample(wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="execution: expected"):
        pgs.research.KHop([2], execution="fast")
    for unique in (2, "sample", None):
        with pytest.raises(TypeError, match="unique: expected True, False or 'transit', got"):
            pgs.research.KHop([2], unique=unique)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="execution: expected 'auto' or 'sample' with unique=True"):
        pgs.research.KHop([2], unique=True, execution="transit")
    with pytest.raises(ValueError, match="unique: expected True or False with sizes"):
        pgs.research.LayerSample([2], unique="transit")  # type: ignore[arg-type]
    with pytest.raises(IndexError, match=r"seeds\[1\]: expected an id in \[0, 6\), got 6"):
        pgs.research.KHop([2]).sample(tree(), [0, 6])
    with pytest.raises(NotImplementedError, match="exclude"):
        pgs.research.KHop([2]).sample(tree(), [0], exclude=[1])
