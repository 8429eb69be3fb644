"""``inference`` by several processes, each of which computes a range of the nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from inference_cases import SAGEConv, random_graph, random_rows
from local_exchange import Here
from ranks import run_ranks

import pygsampler as pgs
from pygsampler import distributed
from pygsampler._inference.process_share import ProcessShare
from tests.support.interpreter import PYG


def run_all(world: int, name: str, *arguments: str, **options: Any) -> None:
    found = run_ranks(world, name, *arguments, module="inference_ranks", **options)
    for code, out, errors in found:
        assert code == 0, errors
        assert out.endswith("done\n")


@pytest.mark.parametrize("world", [2, 3])
def test_rows_are_those_of_one_process(world: int) -> None:
    run_all(world, "same_rows", fresh=world == 2)


def test_models_of_pyg() -> None:
    pytest.importorskip("torch_geometric", reason="needs PyG")
    run_all(2, "same_rows_of_pyg", imported=PYG)


def test_a_run_is_resumed_after_the_last_layer_that_all_have(tmp_path: Path) -> None:
    run_all(2, "resumed", str(tmp_path))


def test_a_process_that_fails_ends_the_others() -> None:
    run_all(2, "failing")


@pytest.mark.parametrize("world", [2, 3])
def test_a_process_that_fails_outside_of_a_layer_ends_the_others(
    tmp_path: Path, world: int
) -> None:
    run_all(world, "failing_anywhere", str(tmp_path))


def test_processes_with_other_arguments_are_refused() -> None:
    run_all(2, "differing")


def test_a_group_is_needed() -> None:
    with pytest.raises(ValueError, match=r"expected torch\.distributed\.init_process_group"):
        pgs.inference([SAGEConv(5, 2)], random_graph(), random_rows(), group=True)


def test_a_graph_of_which_a_process_has_a_part_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    distributed.partition(random_graph(), folder, 2)
    with (
        distributed.open_graph(folder, Here(folder, 2)) as graph,
        pytest.raises(TypeError, match="got a DistributedGraph; open the file that it was"),
    ):
        pgs.inference([SAGEConv(5, 2)], graph, random_rows(), progress=False)


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_processes_get_as_much_as_others(size: int) -> None:
    share = object.__new__(ProcessShare)
    share.size = size
    # A hub is one process's; costs are those of all nodes before.
    costs = [0, 1, 2, 3, 103, 104, 105, 106, 107, 108, 109]
    bounds = share.bounds(10, costs.__getitem__)
    assert bounds[0] == 0 and bounds[-1] == 10 and bounds == sorted(bounds)
    assert len(bounds) == size + 1
    even = share.bounds(9, lambda node: node)
    assert max(even[i + 1] - even[i] for i in range(size)) <= -(-9 // size) + 1
