"""Kernels that NVRTC compiles at run time give the CPU's batches, as those of the build do."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pygsampler._engine import library
from tests.support.parity import emulated

SCRIPT = """
    import json, sys, time
    import numpy as np
    from pygsampler._engine import library
    from tests.support.parity import compare, random_graph
    began = time.monotonic()
    cpu = random_graph(2000, 3).graph(32)
    there = cpu.to("cuda")
    compare(cpu, there, np.arange(0, 2000, 7), [10, 5])
    first = time.monotonic() - began
    compare(cpu, there, np.arange(0, 2000, 7), [40, 2], replace=True)
    codes = [kernel["code"] for kernel in json.loads(library.call("DeviceKernels", 0))["kernels"]]
    print(json.dumps({"codes": codes, "seconds": first, "notes": library.call("CompilerLog", 0)}))
"""

PROGRAMS = """
    import json, os
    import numpy as np
    from pygsampler import samplers
    from tests.support.parity import random_graph
    there = random_graph(2000, 3).graph(32).to("cuda")
    kept = []
    for made in (samplers.ladies(nodes=[8, 8], seed=1), samplers.shadow(fanouts=[2, 2], seed=1)):
        for count in (200, 200, 1, 0, 250):
            made.sample(there, np.arange(count))
            kept.append(len(os.listdir(os.environ["PYGSAMPLER_CACHE"])))
    print(json.dumps(kept))
"""


def compiling(tmp_path: Path) -> dict[str, str]:
    """Returns variables for a process to compile into a cache of its own; skips without NVRTC."""
    variables = {"PYGSAMPLER_CACHE": str(tmp_path)}
    if emulated():
        folder = os.environ["LD_LIBRARY_PATH"].split(os.pathsep)[0]
        variables["PYGSAMPLER_NVRTC"] = f"{folder}/libnvrtc.so.12"
    elif error := json.loads(library.call("CompilerReport"))["error"]:
        pytest.skip(f"needs NVRTC: {error}")
    return variables


def test_programs_are_compiled_by_their_first_batch_alone(
    run_script: Callable[..., Any], tmp_path: Path
) -> None:
    """Whatever sizes the later batches of an epoch have."""
    done = run_script(PROGRAMS, timeout=400, **compiling(tmp_path))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [1] * 5 + [2] * 5


def test_compiled_kernels(run_script: Callable[..., Any], tmp_path: Path) -> None:
    variables = {"PYGSAMPLER_KERNELS": "compile", **compiling(tmp_path)}
    images = []
    for _ in range(2):  # compiled, then of the cache
        done = run_script(SCRIPT, timeout=400, **variables)
        assert done.returncode == 0, done.stderr
        said = json.loads(done.stdout)
        assert said["notes"] == "[]"
        assert len(said["codes"]) >= 5
        assert all("from source by NVRTC" in code for code in said["codes"])
        print(f"{said['seconds']:.2f} s to the end of the first batches of all modes")
        images.append({file.name: file.stat().st_mtime_ns for file in tmp_path.iterdir()})
    assert images[0] == images[1]
    assert len(images[0]) == len(said["codes"])
