"""``KHop`` and ``LayerSample``: the rules slot by slot, views, loaders, and bad input."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import pygsampler as pgs

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


@pytest.mark.parametrize("unique", [False, True])
def test_slots_have_the_edges_of_their_transits(unique: bool) -> None:
    ids = np.arange(10)[::-1].copy()
    fanouts = [3, 2, 4]
    sampler = pgs.KHop(fanouts, unique=unique, edge_ids=True, seed=3)
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
        assert (there == (slot < degrees if unique else degrees > 0)).all()
        if unique:
            for row in edges.reshape(-1, fanout):
                assert len(set(row[row >= 0])) == (row >= 0).sum()
    # Two samples on one vertex.
    assert not np.array_equal(samples.steps[2][2], samples.steps[2][3])


def test_layers_draw_from_the_edges_of_the_step_before() -> None:
    samples = (
        pgs.LayerSample([4, 30, 2], edge_ids=True, seed=3).sample(tree(), [2, 5], **AT).numpy()
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
    samples = pgs.KHop([2, 3], edge_ids=True, seed=1).sample(graph, seeds, **AT)
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
    without = pgs.KHop([2], seed=1).sample(graph, seeds)
    for view in (without, without.numpy(), without.torch()):
        with pytest.raises(ValueError, match="edge_ids=True, got one without"):
            _ = view.edge_ids
    with pytest.raises(TypeError, match="made by"):
        pgs.StepSamples()
    assert [s.shape for s in pgs.KHop([2, 2]).sample(graph, []).steps] == [(0, 2), (0, 4)]


def test_samplers_are_samplers() -> None:
    graph = tree()
    for sampler in (pgs.KHop([3, 2], unique=True, seed=7), pgs.LayerSample([3, 2], seed=7)):
        want = sampler.sample(graph, [0, 1, 2], **AT).steps[1].tolist()
        assert sampler.result == "steps"
        for other in (
            copy.copy(sampler),
            pickle.loads(pickle.dumps(sampler)),
            sampler.with_seed(7),
            sampler.within(0.5),
            eval(repr(sampler), vars(pgs)),
        ):
            assert other.plan == sampler.plan
            assert other.sample(graph, [0, 1, 2], **AT).steps[1].tolist() == want
        assert sampler.with_seed(8).sample(graph, [0, 1, 2], **AT).steps[1].tolist() != want
        job = sampler.submit(graph, [0, 1, 2], **AT)
        many = sampler.sample_many(graph, [[3], [0, 1, 2]], epoch=2, batch=4)
        assert job.result().steps[1].tolist() == many[1].steps[1].tolist() == want
    by_transit = pgs.KHop([3, 2], execution="transit", seed=7).sample(graph, [0, 1], **AT)
    assert (
        by_transit.steps[1].tolist()
        == pgs.KHop([3, 2], seed=7).sample(graph, [0, 1], **AT).steps[1].tolist()
    )


def test_many_threads_change_nothing() -> None:
    random = np.random.default_rng(5)
    degrees = random.integers(0, 9, 3000)
    graph = pgs.Graph.from_csc(
        np.concatenate([[0], np.cumsum(degrees)]), random.integers(0, 3000, degrees.sum())
    )
    seeds = random.integers(0, 3000, 2000)
    for sampler in (pgs.KHop([6, 5], seed=1), pgs.LayerSample([40, 30], seed=1)):
        one = sampler.sample(graph, seeds, **AT, threads=1).numpy()
        all_ = sampler.sample(graph, seeds, **AT).numpy()
        for mine, theirs in zip(one.steps, all_.steps, strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_loaders_yield_them() -> None:
    from pygsampler.torch import DataLoader

    graph = tree()
    for sampler in (pgs.KHop([2, 2], seed=4), pgs.LayerSample([5], seed=4)):
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
        ([1 << 20, 1 << 12], "fanouts: expected at most 2147483647 vertices of a sample"),
    ):
        with pytest.raises(ValueError, match=text):
            pgs.KHop(fanouts)
    for wrong in (None, 3, "ab", [2.5]):
        with pytest.raises(TypeError, match="fanouts"):
            pgs.KHop(wrong)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="sizes"):
            pgs.LayerSample(wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="execution: expected"):
        pgs.KHop([2], execution="fast")
    with pytest.raises(TypeError, match="unique: expected"):
        pgs.KHop([2], unique=2)  # type: ignore[arg-type]
    with pytest.raises(IndexError, match=r"seeds\[1\]: expected an id in \[0, 6\), got 6"):
        pgs.KHop([2]).sample(tree(), [0, 6])
    with pytest.raises(NotImplementedError, match="exclude"):
        pgs.KHop([2]).sample(tree(), [0], exclude=[1])
