"""The benchmark of accuracy by epochs runs, and refuses samplers that train differently."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest
from partners import partner

partner("dgl")
pytestmark = pytest.mark.once
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def convergence(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.research.convergence")


@pytest.mark.slow
def test_it_draws_the_curves_of_both_samplers(convergence: Any, tmp_path: Path) -> None:
    assert convergence.main(["--quick", "--out", str(tmp_path)]) == 0
    rows = json.loads((tmp_path / "convergence.json").read_text())["rows"]
    assert {(row["layers"], row["sampler"], row["seed"]) for row in rows} == {
        (layers, sampler, seed)
        for layers in (2, 3)
        for sampler in ("dgl", "pgsampler")
        for seed in (0, 1)
    }
    assert all(len(row["accuracy"]) == 2 for row in rows)
    assert (tmp_path / "convergence.png").stat().st_size > 1000


def test_without_dgl_the_batches_are_those_of_our_loader(
    convergence: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "dgl" else find(name)
    )
    assert convergence.main(["--quick", "--out", str(tmp_path)]) == 0
    rows = json.loads((tmp_path / "convergence.json").read_text())["rows"]
    assert {row["sampler"] for row in rows} == {"pgsampler"}


def test_a_sampler_that_trains_to_another_accuracy_is_refused(
    convergence: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def curve(way: str, task: Any, depth: int, seed: int, options: Any) -> list[float]:
        return [0.5, 0.9 + 0.001 * seed - 0.02 * (way == "pgsampler")]

    monkeypatch.setattr(convergence, "curve", curve)
    assert convergence.main(["--quick"]) == 1
    assert "far from each other as is allowed" in capsys.readouterr().err
