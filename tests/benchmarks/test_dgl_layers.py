"""The benchmark of DGL's layers runs, and refuses layers that give something else."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from partners import partner

partner("dgl")
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def layers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.setenv("PYGSAMPLER_CACHE", str(tmp_path))
    monkeypatch.syspath_prepend(str(ROOT))
    module = importlib.import_module("benchmarks.dgl_layers")
    monkeypatch.setattr(module, "WIDTHS", ((8, 4),))
    return module


def test_every_layer_is_timed(layers: Any, tmp_path: Path) -> None:
    assert layers.main(["--quick", "--out", str(tmp_path)]) == 0
    rows = json.loads((tmp_path / "dgl_layers.json").read_text())["rows"]
    assert [row["layer"] for row in rows] == list(layers.LAYERS)
    assert all(row["ours, ms"] > 0 < row["dgl, ms"] for row in rows)


def test_other_results_are_refused(
    layers: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Wrong(torch.nn.Linear):
        def forward(self, block: Any, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x) * (1 + (type(block) is layers.DGLBlock))

    monkeypatch.setattr(layers, "LAYERS", {"GraphConv": Wrong})
    assert layers.main(["--quick"]) == 1
    assert "refused: GraphConv: expected DGL's result" in capsys.readouterr().err
