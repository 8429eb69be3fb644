"""Helpers that several tests of the packaging share."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]


def tool(name: str) -> ModuleType:
    """Loads a script of tools/ as a module, a new one for each call."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(name, module)  # where dataclasses look for their module
    spec.loader.exec_module(module)
    return module


def check_kernels(extension: bytes, target: str, least: Sequence[str]) -> None:
    """Asserts that an extension has the kernels of some architectures, of all if none is named."""
    wheels = tool("wheels")
    found, every = wheels.images(extension), wheels.architectures(target)
    assert found == [name for name in every if name in found]
    assert set(found) >= set(least or every)


def script(file: Path, body: str) -> None:
    """Writes a shell script that can be run."""
    file.write_text(f"#!/bin/sh\n{body}\n")
    file.chmod(0o755)


def one_line(done: subprocess.CompletedProcess[str]) -> str:
    """Returns the one line that a command failed with."""
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    return line
