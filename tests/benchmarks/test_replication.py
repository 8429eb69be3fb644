"""The benchmark of copies counts what it says."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]


def test_more_copies_answer_more(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    copies: Any = importlib.import_module("benchmarks.replication")
    given = ["--batches", "3", "--edges", "400000", "--out", str(tmp_path)]
    assert copies.main(given) == 0
    rows = json.loads((tmp_path / "copies.json").read_text())["rows"]
    assert len(rows) == 3
    for row in rows:
        for of in ("pages", "rows"):
            found = [0.0, *(x[of] for x in row["answered"]), 1.0]
            assert found == sorted(found)
        # The hottest bytes are read more often than others.
        assert all(x["rows"] > x["share"] for x in row["answered"])
