"""The benchmark of small calls runs, and refuses times of calls that give something else."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("dgl")


@pytest.fixture
def bench() -> Any:
    return importlib.import_module("benchmarks.small_calls")


def test_every_case_is_measured(bench: Any, tmp_path: Path) -> None:
    assert bench.main(["--quick", "--out", str(tmp_path)]) == 0
    rows = json.loads((tmp_path / "small_calls.json").read_text())["rows"]
    cases = {row["case"] for row in rows}
    assert cases >= {"pack_traces, 100 walks", "20 walks", "sample + tensors"}
    assert all(row["ours_us"] > 0 and row["ratio"] > 0 for row in rows)


def test_other_results_are_refused(bench: Any) -> None:
    def one() -> Any:
        return [torch.arange(3)]

    case = bench.Case("a call", "DGL", one, one, one, lambda: [torch.arange(1, 4)])
    with pytest.raises(bench.CheckError, match="a call: ours gives something else than DGL"):
        bench.measure(case, 1)
    assert bench.measure(case._replace(theirs_exactly=one), 2)["case"] == "a call"
