"""Ctrl-C at every moment of a call, one after the other: it arrives, and nothing is kept."""

from __future__ import annotations

import gc
import os
from array import array
from collections.abc import Callable
from pathlib import Path

import pytest

import pygsampler as pgs
from pygsampler import datasets
from pygsampler._graph import degrees
from tests.support.engine_usage import held_now
from tests.support.interrupts import at_every_moment

pytestmark = pytest.mark.once

NODES = 300


def graph() -> pgs.Graph:
    indptr = array("q", range(0, 3 * NODES + 1, 3))
    return pgs.Graph.from_csc(indptr, array("q", (i * 7 % NODES for i in range(3 * NODES))))


def kept(before: tuple[int, int]) -> bool:
    """Whether more is held than before, also after a collection, which takes long."""
    if held_now() == before:
        return False
    gc.collect()
    return held_now() != before


GRAPH, SAMPLER = graph(), pgs.PGSampler([3, 3], seed=0)
SEEDS = array("q", range(50))


def open_and_sample() -> None:
    with graph() as made:
        pgs.PGSampler([2]).sample(made, SEEDS)


WORK: dict[str, Callable[[], object]] = {
    "sample": lambda: SAMPLER.sample(GRAPH, SEEDS).blocks[0].coo(),
    "submit": lambda: SAMPLER.submit(GRAPH, SEEDS).result(),
    "drop": lambda: SAMPLER.submit(GRAPH, SEEDS),
    "sample_many": lambda: SAMPLER.sample_many(GRAPH, [SEEDS] * 2),
    "handles": open_and_sample,
    "from_coo": lambda: pgs.Graph.from_coo(SEEDS, SEEDS),
    "degrees": lambda: degrees.profile(GRAPH._source),
}


@pytest.mark.parametrize("name", WORK)
def test_nothing_is_kept(name: str) -> None:
    work = WORK[name]
    work()
    before = held_now()
    for moment in at_every_moment(work):
        assert not kept(before), moment
    assert moment > 5


def test_a_file_is_written_or_not(tmp_path: Path) -> None:
    path = tmp_path / "graph"
    GRAPH.save(path)
    for moment in at_every_moment(lambda: GRAPH.save(path)):
        if os.listdir(tmp_path) != ["graph"]:
            # The frames of the exception may have had the writer.
            gc.collect()
        assert os.listdir(tmp_path) == ["graph"], moment
    assert pgs.Graph.open(path, verify=True).num_edges == GRAPH.num_edges


# Of Python's own: Ctrl-C between open() and the first line of its block.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_file_of_edges_is_read_or_not(tmp_path: Path) -> None:
    source, target = tmp_path / "e.csv", tmp_path / "graph"
    source.write_text("".join(f"{i},{i * 7 % 100}\n" for i in range(100)))
    for work in (lambda: datasets.read(source), lambda: datasets.convert(source, target)):
        work()
        before = held_now()
        for moment in at_every_moment(work):
            assert not kept(before), moment
            assert sorted(os.listdir(tmp_path)) in (["e.csv"], ["e.csv", "graph"]), moment
