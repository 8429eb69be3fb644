"""The benchmark of PyG's layers runs, and refuses layers that give something else."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from partners import partner

partner("torch_geometric")
pytestmark = pytest.mark.once
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def layers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.setenv("PYGSAMPLER_CACHE", str(tmp_path))
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.pyg_layers")


def test_it_times_loader_and_layers(layers: Any, tmp_path: Path) -> None:
    chosen = ["GATConv", "GraphConv", "GraphSAGE", "GAT"]
    assert layers.main(["--quick", "--layers", *chosen, "--out", str(tmp_path)]) == 0
    rows = json.loads((tmp_path / "pyg_layers.json").read_text())["rows"]
    assert [row["what"] for row in rows] == ["loader", *chosen] * 2
    assert {row["setting"] for row in rows} == {"4x(10,10)", "4x(15,10,5)"}
    assert all(value > 0 for row in rows for key, value in row.items() if "coo" in key)
    assert all(row["features=, ms"] > 0 for row in rows)


def test_it_refuses_another_result(
    layers: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Wrong(torch.nn.Linear):
        def forward(self, h: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
            return super().forward(h) * (1 + (type(edges) is not torch.Tensor))

    monkeypatch.setitem(
        layers.LAYERS, "GINConv", lambda inputs, outputs, heads: Wrong(inputs, outputs)
    )
    assert layers.main(["--quick", "--fanouts", "2,2", "--layers", "GINConv"]) == 1
    assert "refused: GINConv, edge_index: tensor 0 differs" in capsys.readouterr().err


def test_it_profiles(layers: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert layers.main(["--quick", "--fanouts", "2", "--profile", "loader"]) == 0
    # Functions by the time that they take: which of ours come first is the machine's.
    assert re.search(r"pygsampler/pyg/\w+\.py:\d+\(\w+\)", capsys.readouterr().out)
