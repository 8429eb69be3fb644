"""The benchmark of what a batch of PyG's loader is made of runs, and its parts add up."""

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


def test_parts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    share: Any = importlib.import_module("benchmarks.pyg_breakdown")
    small = ["--scale", "200", "--repeat", "1", "--batches", "2", "--wait", "0"]
    assert share.main([*small, "--out", str(tmp_path)]) == 0
    rows = json.loads((tmp_path / "pyg_share.json").read_text())["rows"]
    at_once = {"sampling", "conversion"}
    for graph in ("mag", "products", "arxiv"):
        for prefetch, parts in ((0, at_once), (None, at_once), (2, {"waiting"})):
            found = {
                row["part"]: row["milliseconds"]["median"]
                for row in rows
                if row["prefetch"] == prefetch and row["graph"] == graph
            }
            whole, sampler = found.pop("whole"), found.pop("sampler")
            assert set(found) == parts | {"features", "building"}
            assert sum(found.values()) == pytest.approx(whole)
            assert sum(found[part] for part in parts) == pytest.approx(sampler)
            assert min(found.values()) > 0
