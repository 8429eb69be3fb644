"""The benchmark of reductions runs, and refuses sums that differ."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest
from partners import partner

partner("torch")
pytestmark = pytest.mark.once
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.setenv("PYGSAMPLER_CACHE", str(tmp_path))
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.reductions")


def test_it_times_sums_and_gradients(benchmark: Any, tmp_path: Path) -> None:
    assert benchmark.main(["--quick", "--out", str(tmp_path)]) == 0
    rows = json.loads((tmp_path / "reductions.json").read_text())["rows"]
    kinds = [
        f"quick, 8 of {name}, {what}" for name in benchmark.DTYPES for what in ("sum", "gradient")
    ]
    assert [row["what"] for row in rows] == kinds
    assert all(row["embedding_bag / engine"] > 0 for row in rows)
    assert all(row["sparse product / engine"] > 0 for row in rows if "float32" in row["what"])


def test_it_refuses_other_sums(
    benchmark: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    own = benchmark.functional.embedding_bag
    monkeypatch.setattr(
        benchmark.functional, "embedding_bag", lambda *args, **more: 2 * own(*args, **more)
    )
    assert benchmark.main(["--quick", "--dtypes", "float32"]) == 1
    assert "embedding_bag gives other sums" in capsys.readouterr().err
