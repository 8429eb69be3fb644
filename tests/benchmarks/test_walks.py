"""The benchmark of walks runs, and refuses times of walks that are none."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("dgl")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def bench(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("PYGSAMPLER_CACHE", str(cache))
    return importlib.import_module("benchmarks.walks")


class Spoilt:
    """Walks of ours, changed."""

    label = name = "spoilt"

    def __init__(self, walker: Any, change: Any) -> None:
        self.walker, self.change = walker, change

    def __call__(self, at: Any, seeds: torch.Tensor, edges: bool) -> Any:
        nodes, ids = (part.clone() for part in self.walker(at, seeds, edges))
        self.change(nodes, ids)
        return nodes, ids


def wrong_edge(nodes: torch.Tensor, ids: torch.Tensor) -> None:
    ids[5, 2] = (ids[5, 2] + 1) % 100_000


def wrong_vertex(nodes: torch.Tensor, ids: torch.Tensor) -> None:
    nodes[7, 3] = (nodes[7, 3] + 1) % 5000


def too_short(nodes: torch.Tensor, ids: torch.Tensor) -> None:
    nodes[9, 4:], ids[9, 3:] = -1, -1


def half_ended(nodes: torch.Tensor, ids: torch.Tensor) -> None:
    nodes[9, 4:] = -1


def other_seeds(nodes: torch.Tensor, ids: torch.Tensor) -> None:
    nodes[0, 0] += 1


def test_walks_that_are_none_are_refused(bench: Any) -> None:
    graph = bench.graphs.load("quick")
    weights = bench.weights_of(graph, "[1, 5)")
    walker = bench.Ours(graph, weights)
    at = next(each for each in bench.SETTINGS if each.name == "uniform")
    seeds = torch.arange(200)
    bench.check(graph, weights, at, walker, seeds)
    for change, text in (
        (wrong_edge, "are no edges"),
        (wrong_vertex, "are no edges"),
        (too_short, "ends where there are edges"),
        (half_ended, "end at other steps"),
        (other_seeds, "expected walks from the seeds"),
    ):
        with pytest.raises(bench.CheckError, match=text):
            bench.check(graph, weights, at, Spoilt(walker, change), seeds)


def test_walks_by_another_law_are_refused(bench: Any) -> None:
    class Other(bench.Ours):  # type: ignore[misc, name-defined]
        label = "other"
        plain: dict[str, bool]

        def __call__(self, at: Any, seeds: torch.Tensor, edges: bool) -> Any:
            return super().__call__(at._replace(**self.plain), seeds, edges)

    bench.check_law(lambda graph, weights: [bench.Ours(graph, weights)])
    for name, where in (("weighted", "by weight"), ("second", "node2vec")):
        Other.plain = {name: False}
        with pytest.raises(bench.CheckError, match=f"other, {where}: from 0 over 2 to"):
            bench.check_law(lambda graph, weights: [Other(graph, weights)])


def test_it_runs(bench: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(["--quick", "--repeat", "2", "--out", str(tmp_path)]) == 0
    record = json.loads((tmp_path / "walks.json").read_text())
    found = {(row["setting"]["name"], row["contender"]) for row in record["rows"]}
    for at in bench.SETTINGS:
        for label in ("DGL", "RandomWalk.sample", "pygsampler.dgl"):
            assert (at.name, label) in found
    assert all(row["msteps_per_second"] > 0 and row["ratio"] > 0 for row in record["rows"])
    assert "x DGL" in capsys.readouterr().out
