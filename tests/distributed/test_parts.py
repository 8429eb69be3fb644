"""Batches of a graph in parts are those of the whole graph, byte for byte."""

from __future__ import annotations

import time
from pathlib import Path

import flight_graphs
import parts_graphs
import pytest
from partners import partner
from ranks import check_ranks, run_ranks

from pygsampler.distributed import partition, partition_types

partner("torch")

KINDS = ("plain", "ids", "plain 32", "ids 32")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Graphs of each kind, in 1, 2, 3 and 5 parts."""
    folder = tmp_path_factory.mktemp("parts")
    for world in (1, 2, 3, 5):
        for kind in KINDS:
            target = folder / f"{kind} {world}"
            graph = parts_graphs.of(kind)
            made = partition(graph, target, world, out_edges=True, times=["born"])
            assert dict(made.times) == {"born": {"dtype": "float32", "shape": []}}
            assert made.out is not None and made.out.num_parts == world
    assert partition(parts_graphs.of("ids"), folder / "in 2", 2).out is None
    return folder


@pytest.mark.parametrize("world", [1, 2, 3, 5])
def test_batches_of_the_whole_graph(folders: Path, world: int) -> None:
    check_ranks(
        world,
        "samples",
        str(folders),
        *(KINDS if world == 2 else KINDS[:2] if world < 5 else KINDS[1:2]),
    )


@pytest.mark.parametrize("world", [1, 2, 3])
def test_graphs_with_types(tmp_path: Path, world: int) -> None:
    target = tmp_path / f"typed {world}"
    made = partition_types(flight_graphs.typed(), target, world, out_edges=True, times=["born"])
    assert (made.num_parts, len(made.relations), list(made.nodes)) == (world, 3, ["paper"])
    check_ranks(world, "typed", str(tmp_path))


def test_groups_end() -> None:
    check_ranks(2, "groups")


def test_loaders_and_features(folders: Path) -> None:
    check_ranks(2, "loaders", str(folders))


def test_what_is_refused(folders: Path) -> None:
    check_ranks(2, "refused", str(folders))


def test_without_a_group(folders: Path) -> None:
    import pygsampler.distributed as distributed

    with pytest.raises(RuntimeError, match=r"expected an initialised torch\.distributed"):
        distributed.open(folders / "ids 1")


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
