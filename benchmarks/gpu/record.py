"""JSON of a part, written while it is being made: the machine may be taken away at any time."""

from __future__ import annotations

import json
import statistics
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

import pygsampler as pgs

from .. import environment

_WRITE_EVERY = 2.0


class Budget:
    """Seconds of the clock that a part may take."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    def over(self) -> bool:
        return time.monotonic() > self._end

    def left(self) -> float:
        return self._end - time.monotonic()


class Record:
    """A part's results: where and with what, rows, and what the budget left out."""

    def __init__(
        self,
        part: str,
        folder: Path,
        arguments: list[str],
        commit: str | None,
        module: str = "benchmarks.gpu",
    ) -> None:
        self.path = folder / f"{part}.json"
        self.content = environment.describe(arguments, module)
        if commit:
            # The package was built elsewhere: what git says here is not its state.
            self.content["commit"] = commit
            self.content["changed_files"] = None
        self.content["part"] = part
        self.content["gpu"] = gpu() if pgs.cuda.is_available() else None
        self.content["versions"].update(_versions())
        self.rows: list[dict[str, Any]] = []
        self.content["left_out"] = self.left_out = []
        self.content["rows"] = self.rows
        self._written = 0.0
        self.begun = time.monotonic()

    def add(self, row: dict[str, Any]) -> None:
        self.rows.append(row)
        if time.monotonic() - self._written > _WRITE_EVERY:
            self.write()

    def skip(self, what: object) -> None:
        """Notes what there was no time for."""
        self.left_out.append(str(what))

    def write(self) -> None:
        self._written = time.monotonic()
        self.content["seconds"] = round(self._written - self.begun, 1)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        half = self.path.with_suffix(".tmp")
        half.write_text(json.dumps(self.content, indent=1) + "\n")
        half.replace(self.path)


def gpu() -> dict[str, Any]:
    """The GPU and its driver."""
    about = torch.cuda.get_device_properties(0)
    ask = ["nvidia-smi", "--query-gpu=driver_version,clocks.max.sm,clocks.max.mem,power.limit"]
    try:
        text = subprocess.run(
            [*ask, "--format=csv,noheader", "-i", "0"], capture_output=True, text=True, timeout=20
        ).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        text = ""
    driver, *clocks = [part.strip() for part in text.split(",")]
    return {
        "name": pgs.cuda.device_name(0),
        "multiprocessors": about.multi_processor_count,
        "memory_gb": round(about.total_memory / 1e9, 1),
        "driver": driver or None,
        "driver_cuda": pgs.cuda.driver_version(),
        "clocks": ", ".join(clocks) or None,
    }


def _versions() -> dict[str, Any]:
    return {"torch": torch.__version__, "torch_cuda": torch.version.cuda}


def spread(values: Sequence[float], digits: int = 2) -> dict[str, float]:
    """Median, quartiles and the least."""
    low, middle, high = statistics.quantiles(values, n=4)
    return {
        "median": round(middle, digits),
        "q25": round(low, digits),
        "q75": round(high, digits),
        "best": round(min(values), digits),
    }


def geometric_mean(values: Sequence[float]) -> float:
    return statistics.geometric_mean(values) if values else 0.0
