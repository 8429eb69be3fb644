"""The benchmark of what a batch of PyG's loader is made of runs, and its parts add up."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest
from partners import partner

partner("torch_geometric")
ROOT = Path(__file__).resolve().parents[2]


def test_parts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    share: Any = importlib.import_module("benchmarks.pyg_share")
    small = ["--scale", "200", "--repeat", "1", "--batches", "2", "--wait", "0"]
    assert share.main([*small, "--out", str(tmp_path)]) == 0
    rows = json.loads((tmp_path / "pyg_share.json").read_text())["rows"]
    for prefetch, parts in ((0, {"sampling", "conversion"}), (2, {"waiting"})):
        found = {r["part"]: r["milliseconds"]["median"] for r in rows if r["prefetch"] == prefetch}
        whole, ours = found.pop("whole"), found.pop("ours")
        assert set(found) == parts | {"features", "building"}
        assert sum(found.values()) == pytest.approx(whole)
        assert whole - found["features"] == pytest.approx(ours)
        assert min(found.values()) > 0
