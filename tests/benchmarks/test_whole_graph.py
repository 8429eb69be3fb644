"""The benchmark of the whole graph runs, and refuses results that differ."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest
from partners import partner

partner("torch_geometric")
pytestmark = pytest.mark.once
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.setenv("PYGSAMPLER_CACHE", str(tmp_path))
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.whole_graph")


def test_it_times_three_ways(benchmark: Any, tmp_path: Path) -> None:
    assert benchmark.main(["--quick", "--models", "GCN", "GAT", "--out", str(tmp_path)]) == 0
    rows = json.loads((tmp_path / "whole_graph.json").read_text())["rows"]
    assert [row["what"] for row in rows] == ["GCN", "GAT"]
    names = [f"{way}, ms" for way in (benchmark.OURS, benchmark.LOADER, benchmark.FORWARD)]
    assert all(row[name] > 0 for row in rows for name in names)
    assert all(row["PyG inference / inference"] > 0 for row in rows)


def test_it_refuses_another_result(
    benchmark: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    inference = benchmark.pygsampler.inference
    monkeypatch.setattr(
        benchmark.pygsampler, "inference", lambda *args, **more: 2 * inference(*args, **more)
    )
    assert benchmark.main(["--quick", "--models", "GIN"]) == 1
    assert "refused: GIN: PyG inference gives other numbers" in capsys.readouterr().err
