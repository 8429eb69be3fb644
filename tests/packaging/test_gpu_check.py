"""tools/gpu_check.sh: its tests, and that tools/gpu_check_small.py runs all kernels and fails."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.emulator.build import ROOT, compilers, kernel_files, unit_of

pytestmark = pytest.mark.once

TOOL = ROOT / "tools" / "gpu_check_small.py"
spec = importlib.util.spec_from_file_location("gpu_check_small", TOOL)
assert spec is not None and spec.loader is not None
gpu_check_small = importlib.util.module_from_spec(spec)
spec.loader.exec_module(gpu_check_small)

# Files whose kernels take tensors of torch on a GPU, which the emulator has none of.
TENSORS = ("segment", "segment_half", "attention", "attention_half", "softmax", "gather", "cache")
TENSORS += ("static", "static_hetero", "negatives", "transpose", "dequantize")


def test_kernels_are_those_of_the_sources() -> None:
    found = compilers()
    if found is None:
        pytest.skip("needs g++")
    sources = {
        file.stem: {
            line.split("{")[0].split("kernel_")[1].rstrip(" =")
            for line in unit_of(file, found[1]).splitlines()
            if line.startswith("Kernel kernel_")
        }
        for file in kernel_files(ROOT / "kernels")
    }
    assert gpu_check_small.kernels() == sources


def test_a_kernel_that_no_case_runs_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    every = set().union(*gpu_check_small.kernels().values(), {gpu_check_small.GENERATED})
    gpu_check_small.check_launched(every | {"others"})
    assert capsys.readouterr().out == f"all {len(every)} kernels ran\n"
    with pytest.raises(SystemExit, match=r"1 of \d+ kernels were not run: .'hgt64'.$"):
        gpu_check_small.check_launched(every - {"hgt64"})


def test_tests_are_those_of_a_gpu() -> None:
    """Without the emulator, and without the plugins of the other tests."""
    script = (ROOT / "tools" / "gpu_check.sh").read_text()
    (command,) = re.findall(r"(?ms)^pytest=\(.*?\)$", script)
    (chosen,) = re.findall(r"(?ms)^read -ra chosen.*?\"$", script)
    collect = f'{command}\n{chosen}\n"${{pytest[@]}}" -qq --collect-only "${{chosen[@]}}"'
    done = subprocess.run(
        ["bash", "-uc", collect],
        cwd=ROOT,
        env={**os.environ, "python": sys.executable, "root": str(ROOT), "TESTS": ""},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    names = re.findall(r"(?m)^tests/\S+::test_\w+\[\w+", done.stdout)
    assert {name.rpartition("[")[2] for name in names} == {"cuda"}
    assert "tests/cuda/test_walks.py::test_visits[cuda" in names
    assert "tests/graph/test_node_names.py::test_batches_convert[cuda" in names


def run(emulator: Path, *parts: str, code: str = "", **variables: str) -> tuple[int, str]:
    program = ["tools/gpu_check_small.py", *parts]
    if code:
        program = ["-c", code]
    done = subprocess.run(
        [sys.executable, *program],
        cwd=ROOT,
        env={
            **os.environ,
            "LD_LIBRARY_PATH": str(emulator),
            "PYGSAMPLER_NVRTC": str(emulator / "libnvrtc.so.12"),
            **variables,
        },
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout + done.stderr


def test_cases_run_every_kernel(emulator: Path, tmp_path: Path) -> None:
    """On the emulator, but for those that need tensors on a GPU."""
    log = tmp_path / "launches"
    parts = "batches", "types", "times", "programs", "contexts", "walks"
    status, text = run(emulator, *parts, EMULATOR_LAUNCHES=str(log))
    assert status == 0, text[-3000:]
    want = {gpu_check_small.GENERATED}
    for file, names in gpu_check_small.kernels().items():
        if file not in TENSORS:
            # The part "large" has those with bins: its map takes 256 MiB, which is slow here.
            want |= {name for name in names if not name.endswith("_bins")}
    assert want <= set(log.read_text().split())


def test_the_status_says_that_something_differs(emulator: Path) -> None:
    status, text = run(emulator, "none")
    assert status == 1 and "parts: expected some of ['batches'" in text
    code = """
import sys
sys.path.insert(0, "tools")
import gpu_check_small as small

def differing(*_):
    assert False, "an array differs"

small.hetero_parity.assert_equal_batches = differing
sys.argv[1:] = ["types"]
small.main()
"""
    status, text = run(emulator, code=code)
    assert status == 1 and "AssertionError: an array differs" in text
