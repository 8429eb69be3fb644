"""GNNSampler's experiment: what it measures is what it says."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pygsampler as pgs
from pygsampler import samplers

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def locality(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.research.locality")


def test_each_part_has_its_rows(locality: Any, tmp_path: Path) -> None:
    assert locality.main(["--quick", "--out", str(tmp_path)]) == 0
    made = json.loads((tmp_path / "locality.json").read_text())
    rows = made["neighbors"]
    assert {row["graph"] for row in rows} == {"quick", "quick, RCM"}
    assert len(rows) == 12 and len({(row["graph"], row["way"]) for row in rows}) == 12
    for row in rows:
        assert 0 < row["pages"] <= row["rows"] <= row["nodes"]
        assert 0.2 < row["accuracy"] <= 1 and 0 <= row["clustering"] <= 1
        assert row["epoch_s"] > 0 and row["edges"] > 0
        assert (row["scored"] == 1) == (row["way"] == "uniform") or row["way"].startswith("rep")
    (about,) = made["graphs"]
    assert about["nodes"] == 5000 and 0.9 < about["reusing_rate"] < 1
    assert about["average_neighbors"] == pytest.approx(about["edges"] / 5000)
    trained = {(row["model"], row["way"]): row for row in made["training"]}
    assert len(trained) == 11 and {m for m, _ in trained} == {"GraphSAGE", "FastGCN", "GraphSAINT"}
    assert all(row["accuracy"] > 0.6 and row["epoch_ratio"] > 0 for row in trained.values())
    assert {row["epoch_ratio"] for (_, way), row in trained.items() if way == "vanilla"} == {1}
    marked = {way: row["marked"] for (model, way), row in trained.items() if model == "GraphSAGE"}
    assert marked["as many at random"] == marked["published"] > 0
    swept = [(row["model"], row["n"], row["s"]) for row in made["sweep"]]
    assert len(set(swept)) == len(swept) == 18
    by_count = [row for row in made["subgraphs"] if row["way"] == "vanilla"]
    triads = [row["closed_triads"] for row in by_count]
    assert triads == sorted(triads) and triads[0] > 0
    (counts,) = made["cache"]
    assert ("reason" in counts) != ("vanilla" in counts)


def test_parts_are_chosen(locality: Any, tmp_path: Path) -> None:
    locality.main(["--quick", "--parts", "subgraphs", "--out", str(tmp_path)])
    made = json.loads((tmp_path / "locality.json").read_text())
    assert "subgraphs" in made and not {"neighbors", "training", "sweep", "cache"} & set(made)


def test_counters_that_a_machine_does_not_have_are_a_reason(locality: Any) -> None:
    assert locality.counted("12,,LLC-loads,9,100.00,,\n7,,LLC-load-misses,9,100.00,,") == (
        {"LLC-loads": 12, "LLC-load-misses": 7},
        "",
    )
    found = locality.counted("12,,LLC-loads,9,100.00,,\n<not supported>,,LLC-load-misses,0,100,,")
    assert found == ({}, "perf: LLC-load-misses <not supported>")
    assert locality.counted("no permission") == ({}, "perf: no permission")


def test_triads_of_a_batch(locality: Any) -> None:
    """A triangle with a tail: three closed triads, coefficients 1, 1, 1/3 and 0."""
    src, dst = np.array([0, 1, 2, 3, 0, 1]), np.array([1, 2, 0, 0, 1, 0])
    graph = pgs.Graph.from_coo(src, dst, num_nodes=4)
    batch = samplers.graphsage(fanouts=[-1, -1], seed=0).sample(graph, [0, 1, 2, 3])
    found = locality.shape_of(batch, locality.PAGE // 2)
    assert found["closed_triads"] == 3
    assert found["clustering"] == pytest.approx((1 + 1 + 1 / 3 + 0) / 4)
    assert (found["rows"], found["pages"]) == (4, 2)


def test_renumbered_is_the_same_graph(locality: Any) -> None:
    case = locality.CASES["quick"]()
    other = case.renumbered()
    place = np.empty(len(case.labels), np.int64)
    # Rows of features are all different, and say which node is which.
    place[np.lexsort(case.x.T)] = np.lexsort(other.x.T)
    assert (place[case.src] == other.src).all() and (place[case.dst] == other.dst).all()
    assert (other.labels[place] == case.labels).all()
    assert sorted(place[case.train]) == list(other.train)
    spread = np.abs(case.src - case.dst).mean()
    assert np.abs(other.src - other.dst).mean() < spread
