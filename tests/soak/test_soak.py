"""A short slice of tools/soak.py, and that it tells what is flat from what grows."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "tools" / "soak.py"


def load() -> Any:
    spec = importlib.util.spec_from_file_location("soak", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


soak = load()


@pytest.mark.parametrize("loader", ["torch", "weights", "dgl"])
def test_what_a_loader_holds_is_flat(loader: str, tmp_path: Path) -> None:
    pytest.importorskip("torch" if loader == "weights" else loader)
    # Of weights that is four passes.
    batches = {"torch": 3000, "weights": 5000, "dgl": 500}[loader]
    options = ["--loader", loader, "--batches", str(batches), "--out", str(tmp_path), "--quiet"]
    done = subprocess.run(
        [sys.executable, str(PROGRAM), *options],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "flat after the warm-up" in done.stdout
    kept = json.loads((tmp_path / f"{loader}.json").read_text())
    assert kept["batches"] == batches
    assert len(kept["readings"]) == soak.READINGS
    assert (tmp_path / f"{loader}.png").stat().st_size > 10_000


def readings(count: int = 250, **grows: float) -> list[dict[str, float]]:
    """As a process reads that fills its pools for a while, and then is flat but for ``grows``."""
    found = []
    for i in range(count):
        warm = min(i, 20) / 20
        reading = {"resident": 3e8 + 1e8 * warm, "descriptors": 9, "threads": 12 + i % 3}
        reading |= {"live": i % 7, "live_bytes": 1e6 * (i % 5), "jobs": i % 4}
        found.append({name: value + grows.get(name, 0) * i for name, value in reading.items()})
    return found


def test_a_warm_up_and_a_little_noise_are_flat() -> None:
    assert soak.verdict(readings()) == []


@pytest.mark.parametrize(
    ("name", "by_reading"),
    # 250 readings: 100 bytes a batch of 800, a file at every tenth, two memories at each.
    [("resident", 80_000), ("descriptors", 0.1), ("threads", 0.1), ("live", 2), ("jobs", 0.5)],
)
def test_what_grows_is_named(name: str, by_reading: float) -> None:
    faults = soak.verdict(readings(**{name: by_reading}))
    assert len(faults) == 1
    assert faults[0].startswith(f"{name} grows")


def test_too_few_readings_are_no_proof() -> None:
    assert soak.verdict(readings(8)) == ["too few readings to say anything"]
