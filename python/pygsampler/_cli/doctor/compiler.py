"""The part of a report on NVRTC, which compiles kernels at run time, and the folder of its code."""

from __future__ import annotations

import json
import os
from typing import Any

from pygsampler._cli.doctor.report import Problem, Section
from pygsampler._engine import library

_KERNELS = ("", "embedded", "compile")


def compiler() -> Section:
    """A missing NVRTC is a problem only if it is needed: the build has the kernels."""
    facts: dict[str, Any] = json.loads(library.call("CompilerReport"))
    source = os.environ.get("PYGSAMPLER_KERNELS", "")
    facts["kernels"] = source or "embedded"
    lines = [("cache", facts["cache"] or "none: neither HOME nor PYGSAMPLER_CACHE names a folder")]
    problems: list[Problem] = []
    notes: list[str] = []
    if source not in _KERNELS:
        what = f"PYGSAMPLER_KERNELS: expected embedded or compile, got {source!r}"
        problems.append(Problem(what, "unset it"))
    if facts["error"]:
        if source == "compile":
            what = f"PYGSAMPLER_KERNELS is compile: {facts['error']}"
            problems.append(Problem(what, "pip install nvidia-cuda-nvrtc-cu12, or unset it"))
        else:
            notes.append(f"nothing needs it so far: {facts['error']}")
    else:
        lines.insert(0, ("NVRTC", f"{facts['version']}, {facts['nvrtc']}"))
    if source == "compile":
        lines.append(("kernels", "compiled at run time, as PYGSAMPLER_KERNELS says"))
    return Section("compiler", facts, tuple(lines), tuple(problems), tuple(notes))
