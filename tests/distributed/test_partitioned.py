"""Batches of a graph in parts are those of the whole graph, byte for byte."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import flight_graphs
import numpy as np
import partitioned_graphs
import pytest
from local_exchange import Here
from partitioned_ranks import COLUMNS, TOGETHER, WALKS, along
from partners import partner
from ranks import check_ranks, run_ranks

import pygsampler as pgs
from pygsampler import distributed
from pygsampler.distributed import partition
from pygsampler.samplers import Temporal
from tests.support.assertions import assert_equal, content

partner("torch")

KINDS = ("plain", "ids", "plain 32", "ids 32")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Graphs of each kind, in 1, 2, 3 and 5 parts."""
    folder = tmp_path_factory.mktemp("parts")
    for world in (1, 2, 3, 5):
        for kind in KINDS:
            target = folder / f"{kind} {world}"
            graph = partitioned_graphs.of(kind)
            made = partition(graph, target, world, out_edges=True, times=["born"])
            assert dict(made.times) == {"born": {"dtype": "float32", "shape": []}}
            assert made.out is not None and made.out.num_parts == world
    assert partition(partitioned_graphs.of("ids"), folder / "in 2", 2).out is None
    return folder


@pytest.mark.parametrize(
    "world", [1, 2, *(pytest.param(world, marks=pytest.mark.slow) for world in (3, 5))]
)
def test_batches_of_the_whole_graph(folders: Path, world: int) -> None:
    check_ranks(
        world,
        "samples",
        str(folders),
        *(KINDS if world == 2 else KINDS[:2] if world < 5 else KINDS[1:2]),
        fresh=world == 2,
    )


@pytest.mark.parametrize("world", [1, 2, 3])
def test_graphs_with_types(tmp_path: Path, world: int) -> None:
    target = tmp_path / f"typed {world}"
    made = partition(flight_graphs.typed(), target, world, out_edges=True, times=["born"])
    assert (made.num_parts, len(made.relations), list(made.nodes)) == (world, 3, ["paper"])
    check_ranks(world, "typed", str(tmp_path), fresh=world == 2)


def test_groups_end() -> None:
    check_ranks(2, "groups")


@pytest.mark.parametrize("kind", KINDS)
def test_walks_in_one_process(folders: Path, kind: str) -> None:
    whole, rng = partitioned_graphs.of(kind), np.random.default_rng(1)
    folder = folders / f"{kind} 3"
    with distributed.open_graph(folder, Here(folder, 3)) as graph:
        for direction in ("in", "out"):
            for walk in WALKS:
                sampler = along(walk, direction)
                seeds = rng.integers(0, partitioned_graphs.NODES, 40).astype(whole.dtype)
                made, want = (sampler.sample(g, seeds, epoch=1, batch=6) for g in (graph, whole))
                assert_equal(made, want, sampler)


@pytest.mark.parametrize("kind", KINDS)
def test_programs_in_one_process(folders: Path, kind: str) -> None:
    """A hop is one round: the whole rows that no hop before it has asked for."""
    whole, rng = partitioned_graphs.of(kind), np.random.default_rng(2)
    for size in (1, 2, 3, 5):
        exchange = Here(folders / f"{kind} {size}", size)
        with distributed.open_graph(folders / f"{kind} {size}", exchange) as graph:
            for sampler in COLUMNS:
                seeds = rng.integers(0, partitioned_graphs.NODES, 40).astype(whole.dtype)
                for about in ({}, {"exclude": rng.integers(0, partitioned_graphs.EDGES, 600)}):
                    before = exchange.rounds
                    made, want = (
                        sampler.sample(g, seeds, epoch=1, batch=6, **about) for g in (graph, whole)
                    )
                    assert_equal(made, want, sampler)
                    hops = 3 if sampler is COLUMNS[0] or sampler.name == "shadow" else 2
                    assert exchange.rounds - before <= hops + (sampler is COLUMNS[1]), sampler
            empty = seeds[:0]
            made, want = (sampler.sample(g, empty, epoch=0, batch=0) for g in (graph, whole))
            assert_equal(made, want)


def test_parts_that_fail(folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes wrong where rows lie ends the batch that asked, and no other."""

    def failing(question: Any) -> Any:
        raise MemoryError("no room")

    partition(flight_graphs.typed(), tmp_path / "types", 2)
    for folder, sampler, seeds in (
        (folders / "ids 2", COLUMNS[0], range(40)),
        (tmp_path / "types", TOGETHER[0], {"paper": range(40)}),
        (tmp_path / "types", TOGETHER[6], {"paper": range(40)}),
    ):
        exchange = Here(folder, 2)
        with distributed.open_graph(folder, exchange) as graph:
            want = content(sampler.sample(graph, seeds, epoch=0, batch=0))
            with monkeypatch.context() as patch:
                patch.setattr(exchange.actors[1]._owner, "_sample_rows", failing)
                with pytest.raises(pgs.Error, match="part 1: MemoryError: no room"):
                    sampler.sample(graph, seeds, epoch=0, batch=0)
            jobs = [sampler.submit(graph, seeds, epoch=0, batch=0) for _ in range(4)]
            jobs[0].cancel()
            del jobs[1]
            assert content(jobs[-1].result()) == want
        with pytest.raises(pgs.errors.ClosedError):
            sampler.sample(graph, seeds)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_types_together_in_one_process(tmp_path: Path, size: int) -> None:
    """All relations of a hop, or of an iteration, are one round."""
    whole, rng = flight_graphs.typed(), np.random.default_rng(3)
    partition(whole, tmp_path / "parts", size)
    exchange = Here(tmp_path / "parts", size)
    cites, _, by = whole.edge_types
    with distributed.open_graph(tmp_path / "parts", exchange) as graph:
        for sampler in TOGETHER:
            seeds = {"paper": rng.integers(0, 90, 12), "author": rng.integers(0, 40, 5)}
            without = {cites: rng.integers(0, 700, 200), by: rng.integers(0, 200, 50)}
            for about in ({}, {"exclude": without}):
                before = exchange.rounds
                made, want = (
                    sampler.sample(g, seeds, epoch=1, batch=6, **about) for g in (graph, whole)
                )
                assert_equal(made, want, sampler)
                rounds = len(sampler.plan.get("fanouts") or sampler.plan["num_samples"])
                # The edges of the vertices that were chosen last are asked for, too.
                rounds += isinstance(sampler, pgs.samplers.HGTSampler)
                assert exchange.rounds - before <= rounds, sampler


@pytest.mark.parametrize("with_ids", [False, True])
def test_narrow_ids_of_types(tmp_path: Path, with_ids: bool) -> None:
    """Walks along types have 64 bits for ids whatever the parts have; rows have theirs."""
    rng = np.random.default_rng(6)
    kinds = (("a", "to", "b"), ("b", "to", "a"), ("a", "in", "a"))
    sizes, edges, data = {"a": 70, "b": 30}, {}, {}
    for kind in kinds:
        rows = sizes[kind[2]]
        indptr = np.concatenate([[0], rng.integers(0, 9, rows).cumsum()])
        indices = rng.integers(0, sizes[kind[0]], indptr[-1]).astype(np.int32)
        ids = (rng.permutation(len(indices)).astype(np.int32),) if with_ids else ()
        edges[kind] = (indptr, indices, *ids)
        data[kind] = {"w": rng.integers(0, 3, len(indices)).astype(np.float32)}
    born = {"a": {"born": rng.random(70)}}
    whole = pgs.HeteroGraph(edges, sizes, edge_data=data, node_data=born)
    partition(whole, tmp_path / "parts", 3, out_edges=True, times=["born"])
    without = {kinds[0]: range(0, 100, 3), kinds[2]: range(0, 200, 2)}
    seeds = {"a": range(0, 70, 3), "b": range(0, 30, 2)}
    with distributed.open_graph(tmp_path / "parts", Here(tmp_path / "parts", 3)) as graph:
        for way in (
            pgs.walks.MetaPathWalk(kinds[:2], 5, seed=1, edge_ids=True),
            pgs.walks.MetaPathWalk(
                [kinds[2]], 3, prob="w", seed=1, walks_per_seed=2, edge_ids=True
            ),
            pgs.walks.MetaPathWalk(
                kinds[1::-1], 4, prob="w", direction="in", seed=1, edge_ids=True
            ),
        ):
            made, want = (way.sample(g, range(30), epoch=0, batch=5) for g in (graph, whole))
            assert_equal(made, want, way)
        for how in (
            {},
            {"temporal": Temporal("born", carry="edge")},
            {"prob": "w", "disjoint": True},
        ):
            sampler = pgs.PGSampler([3, 2], seed=1, **how)
            when = {"seed_time": 0.7} if "temporal" in how else {}
            made, want = (
                sampler.sample(g, seeds, epoch=0, batch=5, exclude=without, **when)
                for g in (graph, whole)
            )
            assert_equal(made, want, how)
        for sampler in (
            pgs.samplers.HGTSampler([4, 3], seed=1),
            pgs.LaborSampler([3, 2], prob="w", seed=1, edge_weights="ht"),
        ):
            made, want = (
                sampler.sample(g, seeds, epoch=0, batch=5, exclude=without) for g in (graph, whole)
            )
            assert_equal(made, want, sampler)


def test_loaders_and_features(folders: Path) -> None:
    check_ranks(2, "loaders", str(folders))


def test_what_is_refused(folders: Path) -> None:
    check_ranks(2, "refused", str(folders))


def test_without_a_group(folders: Path) -> None:
    with pytest.raises(RuntimeError, match=r"expected an initialised torch\.distributed"):
        distributed.open_graph(folders / "ids 1")


def test_a_process_that_does_not_come_to_open(folders: Path) -> None:
    """The others are told who is missing; one that comes late is waited for."""
    check_ranks(3, "misses", str(folders))


def test_processes_that_were_in_other_worlds(tmp_path: Path) -> None:
    """They meet in a new one, and are not thought to wait where they were interrupted."""
    check_ranks(2, "worlds", str(tmp_path))


@pytest.mark.parametrize("how", ["dies", "raises", "stops"])
def test_a_process_that_does_not_come(folders: Path, how: str) -> None:
    """The others end by an error, within the timeout of the exchange."""
    start = time.monotonic()
    found = run_ranks(3, "dies", str(folders), how, leaves=False)
    assert time.monotonic() - start < 80
    for rank in (0, 2):
        status, printed, said = found[rank]
        assert status == 0, said
        assert "failed after" in printed
    assert found[1][0] == {"dies": 7, "raises": 1, "stops": 0}[how], found[1][2]
