"""``calibrate``: what is measured is kept, and later processes tell times by it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.partners import partner

EXPLAIN = """
import pygsampler as pgs
graph = pgs.Graph.from_coo([0, 1, 2], [1, 2, 0])
explain = pgs.samplers.graphsage(fanouts=[2], seed=1).explain
print(explain(graph, 3))
"""
FIRST = """
from pygsampler.__main__ import main
print("calibrated")
main(["calibrate"])
"""


def test_costs_are_kept_and_found(tmp_path: Path) -> None:
    folder = tmp_path / "cache"

    def python(code: str) -> str:
        environment = {**os.environ, "PYGSAMPLER_CACHE": str(folder)}
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    before, shown = python(EXPLAIN + FIRST).split("calibrated")
    assert "times by the costs of another machine" in before
    assert f"stored in {folder / 'costs.json'}" in shown.replace("\n", "")
    from pygsampler._cli.commands.calibrate import _WORK

    kept = json.loads((folder / "costs.json").read_text())
    names = "map exp store column row draw race write random gather"
    names += " wide every look out turn"
    assert set(kept) == set(names.split())
    # Each has a plain name, and stands in the table.
    assert set(kept) <= set(_WORK)
    assert all(_WORK[name] in shown for name in kept)
    assert min(kept.values()) > 0
    told = python(EXPLAIN)
    assert "another machine" not in told and " us of one core of the CPU" in told


def test_of_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    partner("click")
    partner("rich")
    from click.testing import CliRunner

    from pygsampler.__main__ import main
    from pygsampler._arrays import devices
    from pygsampler._engine import library

    asked = []

    def answered(name: str, *arguments: int) -> str:
        asked.append((name, *arguments))
        return '{"path": "there", "nanoseconds": {"in": 0.0123456, "more": 5000}}'

    monkeypatch.setattr(library, "call", answered)
    monkeypatch.setattr(devices, "require", lambda index: asked.append(index))
    result = CliRunner().invoke(main, ["calibrate", "--device", "cuda:1"])
    assert result.exit_code == 0, (result.output, result.exception)
    assert asked == [1, ("ProgramCalibrate", 1)]
    for told in ("costs of cuda:1", "0.01235", "5000", "stored in there", "nanoseconds"):
        assert told in result.output
    lines = [line.split() for line in result.output.splitlines()]
    assert ["looking", "at", "an", "in-edge", "0.01235"] in lines
    assert ["a", "batch", "that", "takes", "out-edges", "5000"] in lines
