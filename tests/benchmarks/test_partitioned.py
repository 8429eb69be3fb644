"""The benchmark of graphs in parts runs, and the model of many machines adds up."""

from __future__ import annotations

import importlib
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from partners import partner
from ranks import free_port

partner("torch")
pytestmark = pytest.mark.once
ROOT = Path(__file__).resolve().parents[2]


def test_processes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    monkeypatch.chdir(ROOT)
    parts: Any = importlib.import_module("benchmarks.partitioned")
    assert parts.main(["--quick", "--port", str(free_port()), "--out", str(tmp_path)]) == 0
    record = json.loads((tmp_path / "parts.json").read_text())
    assert [row["processes"] for row in record["rows"]] == [0, 1, 2]
    assert all(row[way]["median"] > 0 for row in record["rows"] for way in ("alone", "ahead"))
    assert [hop["rows"] for hop in record["hops"]] == sorted(hop["rows"] for hop in record["hops"])
    model: Any = importlib.import_module("partition_model")
    rows = model.modelled(record)
    assert [row["machines"] for row in rows] == [2**power for power in range(1, 11)]
    for row, after in itertools.pairwise(rows):
        assert row["bytes"] < after["bytes"]
        assert row["seconds"] == pytest.approx(row["sampling"] + row["rounds"] + row["network"])
    # Everything but its own rows, and a few words for each message.
    whole = sum(4 * (2 * hop["rows"] + 1 + 2 * hop["edges"]) for hop in record["hops"])
    assert 0.5 * whole < rows[0]["bytes"] < 0.51 * whole + 10_000
