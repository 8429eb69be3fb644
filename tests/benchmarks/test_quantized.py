"""The benchmark of quantized features runs, and refuses rows that differ from torch's."""

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
def quantized(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.quantized")


def test_it_reads_and_trains(
    quantized: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    small = quantized.planted(2000)
    monkeypatch.setattr(quantized, "words_of_debian", lambda: small)
    assert quantized.main(["--quick", "--out", str(tmp_path)]) == 0
    found = json.loads((tmp_path / "quantized.json").read_text())
    assert [row["way"] for row in found["read"]] == [
        "torch.index_select",
        "float32",
        *quantized.KINDS,
    ]
    assert all(row["ms"] > 0 for row in found["read"])
    assert len(found["train"]) == 2 * 7
    assert all(0 <= row["accuracy"][0] <= 1 for row in found["train"])


def test_it_refuses_other_rows(
    quantized: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(quantized.LIMITS, "int8", 128.0)
    assert quantized.main(["--quick", "--parts", "read"]) == 1
    assert "refused: rows of int8 differ from torch's" in capsys.readouterr().err
