"""The wheel under test: what make installed for the tests, or one built here for the session."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TESTED = os.environ.get("PYGSAMPLER_TESTED", "dist")
# What `make wheels` was asked for, nothing where that was all.
KERNELS = tuple(os.environ.get("PYGSAMPLER_TESTED_KERNELS", "").split())


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = list((ROOT / TESTED).glob("pygsampler-*.whl"))
    if not made:
        folder = tmp_path_factory.mktemp("wheel")
        command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), "."]
        subprocess.run(command, cwd=ROOT, check=True)
        made = list(folder.glob("*.whl"))
    assert len(made) == 1, f"expected one wheel, got {made}"
    return made[0]


@pytest.fixture(scope="session")
def least_architectures() -> tuple[str, ...]:
    """Architectures that the wheel has at least, none if it has all, as released wheels have."""
    return ("sm_90", "compute_75") if TESTED == "build/tested" else KERNELS


@pytest.fixture(scope="session")
def least_in_wheelhouse() -> tuple[str, ...]:
    """As ``least_architectures``, of the wheels that `make wheels` has made."""
    return KERNELS


@pytest.fixture(scope="session")
def extension(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The extension out of the wheel, in a folder of its own: it must not need its place."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".so"))
        return Path(archive.extract(name, tmp_path_factory.mktemp("extension")))
