"""The benchmark of steps of PyG's models runs, and refuses steps that give something else."""

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
def steps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.setenv("PYGSAMPLER_CACHE", str(tmp_path))
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.pyg_step")


def test_it_times_three_ways(steps: Any, tmp_path: Path) -> None:
    assert steps.main(["--quick", "--models", "GraphSAGE", "GAT", "--out", str(tmp_path)]) == 0
    rows = json.loads((tmp_path / "pyg_step.json").read_text())["rows"]
    assert [row["what"] for row in rows] == ["GraphSAGE", "GAT"] * 2
    assert {row["setting"] for row in rows} == {"4x(10,10)", "4x(15,10,5)"}
    names = ["as it is, ms", "trimmed, ms", "blockwise, ms"]
    names += ["as it is / blockwise", "trimmed / blockwise"]
    assert all(row[name] > 0 for row in rows for name in names)


def test_it_refuses_another_result(
    steps: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wrapped = steps.blockwise
    monkeypatch.setattr(steps, "blockwise", lambda model: lambda batch: 2 * wrapped(model)(batch))
    assert steps.main(["--quick", "--fanouts", "2,2", "--models", "GIN"]) == 1
    assert "refused: GIN: tensor 0 of a blockwise step differs" in capsys.readouterr().err


def test_captured_steps_need_a_gpu(steps: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        steps.main(["--quick", "--modes", "asis", "captured"])
    assert "captured: expected --device cuda, got cpu" in capsys.readouterr().err


def test_it_profiles(steps: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert steps.main(["--quick", "--fanouts", "2", "--profile", "GCN"]) == 0
    assert "Self CPU time total" in capsys.readouterr().out
