"""The benchmark of gathers runs, and refuses rows that differ from torch's."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest
from partners import partner

torch = partner("torch")
pytestmark = pytest.mark.once
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def gathers(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.gathers")


def test_it_times_each_way_and_restores_the_threads(gathers: Any, tmp_path: Path) -> None:
    before = gathers.pgs.get_num_threads(), torch.get_num_threads()
    assert gathers.main(["--quick", "--threads", "1", "2", "--out", str(tmp_path)]) == 0
    assert (gathers.pgs.get_num_threads(), torch.get_num_threads()) == before
    rows = json.loads((tmp_path / "gathers.json").read_text())["rows"]
    assert [row["threads"] for row in rows] == [1] * 5 + [2] * 5
    assert all(row["ms"] > 0 and row["GB/s"] > 0 for row in rows)
    assert all(row["of copy"] == 1 for row in rows if row["way"] == gathers.COPY)


def test_it_measures_up_to_all_threads(gathers: Any) -> None:
    assert [gathers.thread_counts(n) for n in (1, 2, 6, 16)] == [
        [1],
        [1, 2],
        [1, 2, 4, 6],
        [1, 2, 4, 8, 16],
    ]


def test_it_refuses_other_rows(
    gathers: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    read = gathers.pgs.Features.read
    monkeypatch.setattr(
        gathers.pgs.Features, "read", lambda self, ids, out=None: read(self, ids.flip(0), out)
    )
    assert gathers.main(["--quick"]) == 1
    assert "refused: rows differ from torch's: Features.read, out=" in capsys.readouterr().err


def test_it_refuses_more_rows_than_the_table_has(gathers: Any) -> None:
    with pytest.raises(SystemExit):
        gathers.main(["--nodes", "10", "--rows", "11"])
