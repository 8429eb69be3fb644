"""The benchmark of programs on large graphs goes through all of it on the emulator."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.gpu import run_with_driver
from tests.support.gpu_part import PRELUDE

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[3]

CODE = (
    PRELUDE
    + """
from benchmarks import programs as settings
from benchmarks.gpu import programs
from benchmarks.research import large_programs

def ours(sampler, graph, sets):
    batches = [sampler.sample(graph, seeds, epoch=0, batch=0) for seeds in sets[:2]]
    assert len(batches) == 2 and graph.device == "cuda:0"
    spread = {{"median": 3.0, "quartiles": [1.0, 4.0]}}
    return {{"us": spread, "engine_us": spread, "many_us": 2.0}}

def busy(run):
    # The profiler of a GPU is no part of the emulator.
    assert len(list(run())) > 1
    return 0.5

with on_emulator(large_programs, ours=ours, busy_share=busy, _SETS=3, _CALLS=2), mock.patch.object(
    settings, "SETTINGS", settings.SETTINGS[:2]
):
    kept = record.Record("large_programs", Path({out!r}), ["--trial"], "0" * 40)
    large_programs.run(kept, record.Budget(600), True)
    kept.write()
"""
)


def test_on_the_emulator(emulator: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="needs torch")
    (tmp_path / "gpu").mkdir()
    run_with_driver(emulator, CODE.format(root=str(ROOT), out=str(tmp_path / "gpu")))
    rows = json.loads((tmp_path / "gpu" / "large_programs.json").read_text())["rows"]
    assert [row["place"] for row in rows] == ["device", "device", "pinned", "pinned"]
    assert len({row["setting"] for row in rows}) == 2
    assert all(row["memory_mb"] > 0 and row["busy"] == {"one": 0.5, "many": 0.5} for row in rows)
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    record: Any = importlib.import_module("figure_tables.record")
    importlib.import_module("figure_tables")
    monkeypatch.setattr(record, "RESULTS", tmp_path)
    assert record.FIGURES["gpu_large_programs"]().count("| tiny |") == 4
