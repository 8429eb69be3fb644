"""The benchmark of TurboGNN's experiments end to end goes through all of it, on the CPU."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from partners import partner

torch = partner("torch")
pytestmark = pytest.mark.once
ROOT = Path(__file__).resolve().parents[3]


class Kept:
    """A record in memory."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.content = {"rows": self.rows}

    def add(self, row: dict[str, Any]) -> None:
        self.rows.append(row)

    def skip(self, what: object) -> None:
        raise AssertionError(what)


@pytest.fixture
def training(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT))
    module = importlib.import_module("benchmarks.research.turbo_training")
    make = module.make
    monkeypatch.setattr(module, "make", lambda name: make(name, device="cpu"))
    monkeypatch.setattr(module, "stepping", stepping)
    monkeypatch.setattr(module, "busy_share", lambda run: None)
    for name in ("synchronize", "empty_cache"):
        monkeypatch.setattr(torch.cuda, name, lambda: None)
    for name in ("SHAPES", "BATCHES", "_STEPS", "_EPOCHS", "_PROFILED"):
        monkeypatch.setattr(module, name, getattr(module, name))
    few = {model: (3,) * len(fanouts) for model, fanouts in module.FANOUTS.items()}
    monkeypatch.setattr(module, "FANOUTS", few)
    return module


def stepping(model: Any) -> Any:
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step(batch: Any) -> Any:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(batch), batch.y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def test_every_model_and_way_is_measured(training: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Kept()
    training.run(kept, SimpleNamespace(left=lambda: 600.0), True)
    stages, *epochs = kept.rows
    assert stages["kind"] == "stages"
    assert stages["nodes"][0] == 64 and stages["nodes"] == sorted(stages["nodes"])
    assert set(stages["ms"]) == {
        *("sample", "read", "layer 1", "layer 2", "layer 3", "backward", "update")
    }
    assert {row["model"] for row in epochs} == {"GCN", "SAGE", "GAT"}
    for row in epochs:
        assert set(row["epoch_ms"]) == set(training.WAYS)
        assert all(ms > 0 for ms in row["epoch_ms"].values())
        assert "neither" in training.line(row)
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    record: Any = importlib.import_module("figure_tables.record")
    importlib.import_module("figure_tables")
    monkeypatch.setattr(record, "kept", lambda name: {**kept.content, **ABOUT})
    for name in ("epochs", "busy", "stages"):
        assert record.FIGURES[f"gpu_turbo_{name}"]().count("\n") >= 3


ABOUT = {
    "gpu": {"name": "a GPU", "memory_gb": 1, "driver": "1"},
    "versions": {"python": "3", "torch": "2"},
    "date": "2026-01-01T00:00:00",
    "commit": "0" * 40,
    "command": "python",
}


def test_ways_that_train_differently_are_refused(
    training: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for values in ([1.0, 2.0], [1.0, float("nan")]):
        losses = iter(values)
        monkeypatch.setattr(training, "losses", lambda *arguments, of=losses: [next(of)])
        with pytest.raises(training.CheckError, match="loss"):
            training.run(Kept(), SimpleNamespace(left=lambda: 600.0), True)
    monkeypatch.setattr(training, "losses", lambda step, loader: [1.0])
    make = training.pgs.PGSampler

    def other(fanouts: Any, *, seed: int, mode: str, mode_options: Any) -> Any:
        seed += mode == "bsp"
        return make(fanouts, seed=seed, mode=mode, mode_options=mode_options)

    monkeypatch.setattr(training.pgs, "PGSampler", other)
    with pytest.raises(training.CheckError, match="other edges"):
        training.run(Kept(), SimpleNamespace(left=lambda: 600.0), True)


def test_time_in_which_kernels_overlap_is_counted_once(training: Any) -> None:
    kernels = [training.Kernel("a", 0.0, 4.0), training.Kernel("b", 1.0, 2.0)]
    assert training.union([*kernels, training.Kernel("c", 3.0, 6.0)]) == 6.0
    assert training.union([training.Kernel("a", 5.0, 6.0), *kernels]) == 5.0
