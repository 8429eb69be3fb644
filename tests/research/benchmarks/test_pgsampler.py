"""The benchmark of the paper's modes goes through all of it on the emulator.

Its times mean nothing there, and the profiler sees no kernels.
"""

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
from benchmarks.research import pgsampler

def kernels(direct, batches):
    if not {seen}:
        return []
    if direct.sampler.mode != "bsp":
        return [pgsampler.Kernel("a", 0.0, 50.0)]
    batch = ["bsp_seeds32"] + 3 * ["bsp_count32", "bsp_draw32", "bsp_gather32", "bsp_number32"]
    # Each kernel runs for 2 us, and 3 later the next.
    names = batch * len(batches)
    return [pgsampler.Kernel(name, 5.0 * i, 5.0 * i + 2) for i, name in enumerate(names)]

with on_emulator(pgsampler, kernels=kernels, PAPER_FANOUTS=(3,), FETCH_SIZES=(None, 5),
                 _COUNT=2, _WARM=1):
    kept = record.Record("pgsampler", Path({out!r}), ["pgsampler", "--trial"], "0" * 40)
    pgsampler.run(kept, record.Budget(600), True)
    kept.write()
"""
)


@pytest.mark.parametrize("seen", [True, False])
def test_on_the_emulator(
    emulator: Path, tmp_path: Path, seen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch", reason="needs torch")
    run_with_driver(emulator, CODE.format(root=str(ROOT), out=str(tmp_path), seen=seen))
    content = json.loads((tmp_path / "pgsampler.json").read_text())
    rows = {
        kind: [row for row in content["rows"] if row["kind"] == kind]
        for kind in ("kernel", "hop", "fetch")
    }
    assert {kind: len(of) for kind, of in rows.items()} == {"kernel": 2, "hop": 3, "fetch": 4}
    assert not content["left_out"]
    assert [row["hop"] for row in rows["hop"]] == [1, 2, 3]
    assert rows["hop"][0]["rows"] == 64 < rows["hop"][1]["rows"] < rows["hop"][2]["rows"]
    assert {row["fetch_size"] for row in rows["fetch"]} == {None, 5}
    assert all(row["us"]["median"] > 0 for row in rows["fetch"])
    assert (content.get("note") is None) is seen
    assert (tmp_path / "pgsampler_kernels.png").exists() is seen
    if seen:
        # Before each of its four kernels the device waits for 3 us.
        assert {(row["pre_us"], row["kernel_us"]) for row in rows["hop"]} == {(12.0, 8.0)}
        assert all(row["of_copy"] > 0 for row in rows["hop"])
        assert set(rows["kernel"][0]["us"]) == {"bsp", "fused", "persistent", "queue"}
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    record: Any = importlib.import_module("figure_tables.record")
    importlib.import_module("figure_tables")
    (tmp_path / "gpu").mkdir()
    (tmp_path / "pgsampler.json").rename(tmp_path / "gpu" / "pgsampler.json")
    monkeypatch.setattr(record, "RESULTS", tmp_path)
    for name in ("kernels", "hops", "fetch_sizes"):
        assert record.FIGURES[f"gpu_pgsampler_{name}"]().count("\n") >= 3


def test_kernels_of_another_number_of_hops_are_refused() -> None:
    pytest.importorskip("torch", reason="needs torch")
    pgsampler = importlib.import_module("benchmarks.research.pgsampler")
    names = ["bsp_seeds32", "bsp_count32", "bsp_draw32"]
    found = [pgsampler.Kernel(name, float(i), i + 0.5) for i, name in enumerate(names)]
    assert pgsampler.hop_times(found, 1) == [[(1.0, 1.0)]]
    with pytest.raises(pgsampler.CheckError, match="expected kernels of 2 hops, got those of 1"):
        pgsampler.hop_times(found, 2)
