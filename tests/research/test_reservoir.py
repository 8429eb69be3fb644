"""Mode "reservoir": the reference, the law, what it refuses, and the loaders that take it."""

from __future__ import annotations

import itertools
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import reference
from weighted_graphs import LEVEL, edges_of

import pygsampler as pgs
from tests.statistics import laws

DRAW = np.random.default_rng(8)
# Every degree from 0 to 70; sources begin with the destinations.
INDPTR = np.concatenate([[0], np.cumsum(np.arange(71))]).tolist()
INDICES = DRAW.integers(0, 90, INDPTR[-1]).tolist()
SWITCHES: list[dict[str, Any]] = [
    {},
    {"degree_threshold": 7, "block_threshold": 2, "memory": "adaptive", "streams": 2},
    {"degree_threshold": "auto"},
    {"memory": "shared", "schedule": False},
    {"memory": "global"},
]


def content(batch: pgs.MiniBatch) -> reference.Batch:
    return reference.Batch.of(batch)


@pytest.mark.parametrize("with_ids", [False, True])
def test_equal_to_the_reference(with_ids: bool) -> None:
    ids = DRAW.permutation(len(INDICES)).tolist() if with_ids else None
    graph = pgs.Graph.from_csc(INDPTR, INDICES, edge_ids=ids, num_nodes=90)
    seeds = [*range(71), 80, 3, 3]
    exclude = DRAW.choice(len(INDICES), len(INDICES) // 4, replace=False).tolist()
    for fanouts in (*([fanout] for fanout in range(1, 41)), [4, 3], [-1, 2], [0, 5], [2, 0, 3]):
        for without in (None, exclude)[: 2 if len(fanouts) > 1 or fanouts[0] % 7 == 0 else 1]:
            sampler = pgs.PGSampler(fanouts, seed=9, mode="reservoir")
            got = sampler.sample(graph, seeds, epoch=2, batch=7, exclude=without)
            want = reference.sample(
                INDPTR, INDICES, seeds, fanouts, edge_ids=ids, seed=9, epoch=2, batch=7,
                exclude=without, mode="reservoir",
            )  # fmt: skip
            assert content(got) == want, (fanouts, without is not None)


def test_only_its_own_stream_is_drawn() -> None:
    """Whole rows are everybody's; where rows draw, the other modes' batches are other ones."""
    graph = pgs.Graph.from_csc(INDPTR, INDICES, num_nodes=90)

    def of(mode: str, fanouts: list[int]) -> reference.Batch:
        sampler = pgs.PGSampler(fanouts, seed=9, mode=mode)
        return content(sampler.sample(graph, range(71), epoch=0, batch=0))

    assert of("reservoir", [-1]) == of("auto", [-1])
    assert of("reservoir", [70]) == of("auto", [70])
    assert of("reservoir", [3]) != of("auto", [3])


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_and_switches_change_nothing(threads: int) -> None:
    graph = pgs.Graph.from_csc(INDPTR, INDICES, num_nodes=90)
    want = pgs.PGSampler([5, 4], seed=1, mode="reservoir").sample(graph, range(71), batch=3)
    for options in SWITCHES:
        sampler = pgs.PGSampler([5, 4], seed=1, mode="reservoir", mode_options=options)
        got = sampler.sample(graph, range(71), batch=3, threads=threads)
        assert content(got) == content(want)


def law(degree: int, fanout: int) -> dict[tuple[int, ...], Fraction]:
    """The chance of each reservoir, slots in order, over all draws."""
    found = {tuple(range(fanout)): Fraction(1)}
    for position in range(fanout, degree):
        chances: dict[tuple[int, ...], Fraction] = {}
        for row, chance in found.items():
            for slot in range(position + 1):
                taken = (*row[:slot], position, *row[slot + 1 :]) if slot < fanout else row
                chances[taken] = chances.get(taken, Fraction(0)) + chance / (position + 1)
        found = chances
    return found


@pytest.mark.parametrize(("degree", "fanout"), [(2, 1), (4, 2), (5, 3), (7, 2), (6, 5)])
def test_rows_follow_the_exact_law(degree: int, fanout: int) -> None:
    chances = law(degree, fanout)
    assert sum(chances.values()) == 1
    # Whatever the order of the slots, every subset is equally likely.
    for subset in itertools.combinations(range(degree), fanout):
        of_subset = [p for row, p in chances.items() if tuple(sorted(row)) == subset]
        each = Fraction(1)
        for i in range(fanout):
            each = each * (i + 1) / (degree - i)
        assert sum(of_subset) == each
    rows = 400 * len(chances)
    src, dst = edges_of(rows, degree)
    graph = pgs.Graph.from_coo(src, dst, num_nodes=max(rows, degree))
    block = pgs.PGSampler([fanout], seed=3, mode="reservoir").sample(graph, range(rows)).blocks[0]
    drawn = np.asarray(block.edge_ids.numpy()).reshape(rows, fanout) % degree
    number = {row: i for i, row in enumerate(chances)}
    found = np.array([number[tuple(row)] for row in drawn.tolist()])
    assert laws.classes(found, np.array([float(p) for p in chances.values()])) > LEVEL


@pytest.mark.parametrize(
    ("given", "kind", "text"),
    [
        ({"replace": True}, ValueError, "^replace: expected False in mode 'reservoir', got True"),
        ({"frontier": "new"}, ValueError, "^mode: expected .* with frontier='new', got 'res"),
        ({"disjoint": True}, ValueError, "^mode: expected .* with disjoint=True, got 'reservoir'"),
        ({"prob": "w"}, ValueError, "^mode: expected .* with prob, got 'reservoir'"),
        ({"mask": "w"}, ValueError, "^mode: expected .* with mask, got 'reservoir'"),
        ({"edge_weights": "ht"}, ValueError, "^mode: expected .* with edge_weights='ht', got 'res"),
        ({"mode_options": 3}, TypeError, "^mode_options: expected a mapping, got int 3"),
        ({"mode_options": {"fast": 1}}, ValueError, r"^mode_options: expected options of \('degr"),
        (
            {"mode_options": {"degree_threshold": -1}},
            ValueError,
            r"^degree_threshold: expected an integer from 0 to 922.* or 'auto', got -1",
        ),
        (
            {"mode_options": {"degree_threshold": "auto", "schedule": False}},
            ValueError,
            "^degree_threshold: expected an integer with schedule=False, got 'auto'",
        ),
        (
            {"mode_options": {"degree_threshold": 2.5}},
            TypeError,
            "^degree_threshold: expected an int",
        ),
        (
            {"mode_options": {"block_threshold": 1 << 31}},
            ValueError,
            "^block_threshold: expected an integer from 0 to 2147483647, got 2147483648",
        ),
        (
            {"mode_options": {"memory": "l2"}},
            ValueError,
            "^memory: expected one of .'adaptive', 'sh",
        ),
        (
            {"mode_options": {"schedule": 1}},
            TypeError,
            "^schedule: expected True or False, got int 1",
        ),
        ({"mode_options": {"streams": 3}}, ValueError, "^streams: expected an integer from 1 to 2"),
    ],
)
def test_what_is_refused(given: dict[str, Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        pgs.PGSampler([3], mode="reservoir", **given)


def test_weights_of_a_graph_are_refused() -> None:
    graph = pgs.Graph.from_coo([0, 1], [1, 0], edge_data={"w": [1.0, 2.0]})
    drawn = pgs.Graph._wrap(pgs.PGSampler([1], prob="w").sampled_graph(graph)._source)
    with pytest.raises(ValueError, match=r"^mode: expected 'auto' or 'persistent' with prob"):
        pgs.PGSampler([1], mode="reservoir").sample(drawn, [0])


def test_options_are_kept() -> None:
    sampler = pgs.PGSampler([3], mode="reservoir", seed=1)
    assert (sampler.mode, sampler.mode_options) == ("reservoir", None)
    assert repr(sampler) == "PGSampler([3], mode='reservoir', seed=1)"
    for options in SWITCHES[1:]:
        sampler = pgs.PGSampler([3], mode="reservoir", seed=1, mode_options=options)
        usual = {"memory": "adaptive", "schedule": True}
        changed = {name: value for name, value in options.items() if usual.get(name) != value}
        assert sampler.mode_options == changed
        again = pickle.loads(pickle.dumps(sampler))
        assert again.plan == sampler.plan == eval(repr(sampler), {"PGSampler": pgs.PGSampler}).plan
        assert sampler.with_seed(4).mode_options == sampler.mode_options
    assert pgs.PGSampler([3]).mode_options is None


def test_many_batches_and_jobs() -> None:
    graph = pgs.Graph.from_csc(INDPTR, INDICES, num_nodes=90)
    sampler = pgs.PGSampler([6, 5], seed=1, mode="reservoir")
    lists = [list(range(i, 71, 7)) for i in range(5)]
    want = [content(sampler.sample(graph, part, batch=i)) for i, part in enumerate(lists)]
    assert [content(b) for b in sampler.sample_many(graph, lists, batch=0)] == want
    jobs = [sampler.submit(graph, part, batch=i) for i, part in enumerate(lists)]
    assert [content(job.result()) for job in jobs] == want


def test_the_loader_of_torch() -> None:
    torch = pytest.importorskip("torch")
    from pygsampler.torch import DataLoader

    graph = pgs.Graph.from_csc(torch.tensor(INDPTR), torch.tensor(INDICES), num_nodes=90)
    sampler = pgs.PGSampler([4, 3], seed=5, mode="reservoir")
    loader = DataLoader(graph, torch.arange(71), sampler, batch_size=20)
    for number, batch in enumerate(loader):
        seeds = list(range(71))[20 * number : 20 * number + 20]
        want = sampler.sample(graph, seeds, epoch=0, batch=number)
        assert [b.edge_ids.tolist() for b in batch.blocks] == [
            b.edge_ids.tolist() for b in want.blocks
        ]
    assert number == 3
