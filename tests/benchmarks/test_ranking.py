"""The benchmark of ranks runs, and refuses ranks that differ from plain torch's."""

from __future__ import annotations

import importlib
import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from partners import partner

torch = partner("torch")
pytestmark = pytest.mark.once
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def ranking(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.ranking")


def test_it_times_each_way(ranking: Any, tmp_path: Path) -> None:
    pyg = importlib.util.find_spec("torch_geometric") is not None
    options = ["--quick", "--out", str(tmp_path), *([] if pyg else ["--no-pyg"])]
    assert ranking.main(options) == 0
    rows = json.loads((tmp_path / "ranking.json").read_text())["rows"]
    assert len(rows) == 4 + pyg
    assert all(row["us a link"] > 0 for row in rows)


def test_it_refuses_other_ranks(
    ranking: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rank = ranking.rank
    monkeypatch.setattr(ranking, "rank", lambda x, links, **options: rank(x, links))
    assert ranking.main(["--quick", "--no-pyg"]) == 1
    assert "refused: ranks differ from plain torch, filtered" in capsys.readouterr().err
