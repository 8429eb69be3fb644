"""`import pygsampler` finds our package, and does nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

REPORT = """
import json, os, pathlib, sys
before = dict(os.environ)
import pygsampler
print(json.dumps({
    "file": pygsampler.__file__,
    "modules": sorted(sys.modules),
    "threads": len(os.listdir("/proc/self/task")),
    "environ": before == dict(os.environ),
    "maps": pathlib.Path("/proc/self/maps").read_text(),
}))
"""


def imported(cwd: Path) -> dict[str, object]:
    command = [sys.executable, "-W", "error", "-c", REPORT]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    report = json.loads(done.stdout)
    assert isinstance(report, dict)
    return report


def test_go_folder_does_not_win(root: Path) -> None:
    """The folder pygsampler/ at the top could be a namespace package, were ours not found."""
    assert (root / "pygsampler").is_dir()
    assert not (root / "pygsampler" / "__init__.py").exists()
    file = imported(root)["file"]
    assert isinstance(file, str)
    assert Path(file).name == "__init__.py"
    assert root / "pygsampler" not in Path(file).parents


def test_module_runs_from_the_repository_root(root: Path) -> None:
    command = [sys.executable, "-m", "pygsampler", "--help"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert "quickstart" in done.stdout


@pytest.mark.parametrize(
    "module",
    ["pygsampler._engine._bridge", "numpy", "torch", "dgl", "torch_geometric", "pyarrow", "scipy"],
)
def test_import_leaves_alone(module: str, tmp_path: Path) -> None:
    modules = imported(tmp_path)["modules"]
    assert isinstance(modules, list)
    assert "pygsampler" in modules
    assert module not in modules


def test_import_has_no_side_effect(tmp_path: Path) -> None:
    report = imported(tmp_path)
    assert report["threads"] == 1
    assert report["environ"] is True
    assert isinstance(report["maps"], str)
    assert "libc.so.6" in report["maps"]
    assert "_bridge" not in report["maps"]
    assert "libcuda" not in report["maps"]
