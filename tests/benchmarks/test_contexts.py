"""The benchmark of contexts runs, and refuses contexts that differ from the rule in NumPy."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest
from partners import partner

partner("torch")
pytestmark = pytest.mark.once
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def contexts(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.contexts")


def test_it_times_each_way(contexts: Any, tmp_path: Path) -> None:
    assert contexts.main(["--quick", "--out", str(tmp_path)]) == 0
    rows = json.loads((tmp_path / "contexts.json").read_text())["rows"]
    assert len(rows) == 4 * len(contexts.SETTINGS)
    assert all(row["contexts a second"] > 0 and row["rows"] > 100 for row in rows)


def test_it_refuses_other_contexts(
    contexts: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    context = contexts.context
    monkeypatch.setattr(contexts, "context", lambda **options: context(**{**options, "width": 3}))
    assert contexts.main(["--quick"]) == 1
    assert "differ from the rule in NumPy" in capsys.readouterr().err
