"""The benchmark of TurboGNN's kernels goes through all of it on the emulator.

Its times mean nothing there, and the profiler sees no kernels. Torch's memory is the host's.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.gpu import run_with_driver
from tests.support.gpu_part import PRELUDE

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[3]

CODE = (
    PRELUDE
    + """
from benchmarks.research import turbo

def kernels(direct, batches):
    if direct.sampler.mode == "persistent" or not {seen}:
        return {{}}
    found = {{"reservoir_count32": 1.0, "reservoir_draw32": 3.0}}
    options = direct.sampler.mode_options or {{}}
    # What the sweep is to find.
    good = (options.get("degree_threshold") == 64) + (options.get("block_threshold") == 512)
    return found | {{"reservoir_order": 2.0 - 0.5 * good}}

with on_emulator(turbo, drawing=kernels, FANOUTS=(10,), SWEPT_FANOUTS=(15,),
                 DEGREES=(0, 64, 1 << 40), BLOCKS=(None, 64, 512), _COUNT=4, _WARM=2):
    kept = record.Record("turbo", Path({out!r}), ["turbo", "--trial"], "0" * 40)
    turbo.run(kept, record.Budget(600), True)
    kept.write()
print("\\n".join(summary.lines(Path({out!r}))))
"""
)


@pytest.mark.parametrize("seen", [True, False])
def test_on_the_emulator(emulator: Path, tmp_path: Path, seen: bool) -> None:
    pytest.importorskip("torch", reason="needs torch")
    text = run_with_driver(emulator, CODE.format(root=str(ROOT), out=str(tmp_path), seen=seen))
    content = json.loads((tmp_path / "turbo.json").read_text())
    kinds = [row["kind"] for row in content["rows"]]
    assert (kinds.count("kernel"), kinds.count("hops")) == (2, 1)
    assert kinds.count("sweep") == 6
    assert not content["left_out"]
    for row in content["rows"]:
        if row["kind"] != "sweep":
            assert set(row["call_us"]) >= {"off", "B", "B+S", "B+S+A", "streams", "bsp"}
            assert row["edges"] > 0
    if seen:
        assert content["note"] is None
        assert content["thresholds"] == {"degree_threshold": 64, "block_threshold": 512}
        assert all(row["bytes"] > 0 for row in content["rows"] if row["kind"] == "kernel")
        assert all("of_copy" in row for row in content["rows"] if row["kind"] == "kernel")
        assert "ms to draw every row" in text
    else:
        assert "the profiler saw no kernels" in content["note"]
