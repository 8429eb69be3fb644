"""``calibrate``: what is measured is kept, and later processes tell times by it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

EXPLAIN = """
import pygsampler as pgs
graph = pgs.Graph.from_coo([0, 1, 2], [1, 2, 0])
print(pgs.samplers.graphsage(fanouts=[2], seed=1).explain(graph, 3))
"""


def test_costs_are_kept_and_found(tmp_path: Path) -> None:
    folder = tmp_path / "cache"

    def python(*arguments: str) -> str:
        environment = {**os.environ, "PYGSAMPLER_CACHE": str(folder)}
        command = [sys.executable, *arguments]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True
        ).stdout

    assert "times by the costs of another machine" in python("-c", EXPLAIN)
    shown = python("-m", "pygsampler", "calibrate")
    assert f"kept in {folder / 'costs.json'}" in shown.replace("\n", "")
    kept = json.loads((folder / "costs.json").read_text())
    assert set(kept) == {"map", "exp", "store", "column", "row", "draw", "race", "write"}
    assert min(kept.values()) > 0
    told = python("-c", EXPLAIN)
    assert "another machine" not in told and " us of one core of the CPU" in told
    # It is measured anew each time.
    found = json.loads(python("-m", "pygsampler", "calibrate", "--json"))
    assert found["nanoseconds"] == json.loads((folder / "costs.json").read_text())
    assert found["path"] == str(folder / "costs.json") and found["operations"] >= 1
