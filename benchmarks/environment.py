"""The machine, versions and command of a benchmark, by which its figures can be repeated."""

from __future__ import annotations

import shlex
import subprocess
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pygsampler._cli.bench.machine import OtherLoad, hardware, huge_page_share, summary, versions

__all__ = ["OtherLoad", "describe", "hardware", "huge_page_share", "summary", "versions"]

_ROOT = Path(__file__).resolve().parent.parent


def describe(
    arguments: list[str], module: str = "benchmarks", *, note: str | None = None
) -> dict[str, Any]:
    """Date, command, commit, hardware and versions; values that the system hides are None."""
    return {
        "note": note,
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "command": shlex.join(["python", "-m", module, *arguments]),
        "commit": _git("rev-parse", "HEAD"),
        "changed_files": len((_git("status", "--porcelain") or "").splitlines()),
        "hardware": hardware(),
        "versions": versions(),
    }


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(_ROOT), *arguments], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
