"""Kernels that are compiled at run time, on the emulator: the batches of the embedded ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pygsampler._engine import nvrtc

pytestmark = pytest.mark.once

# Prints what a process sampled, what it logged, and whether it has NVRTC open.
SAMPLE = """
import hashlib, json, logging, sys
import numpy as np
import pygsampler as pgs

logged = []
class Keep(logging.Handler):
    def emit(self, record):
        logged.append((record.name, record.levelname, record.getMessage()))
logging.getLogger("pygsampler").addHandler(Keep())

random = np.random.default_rng(1)
digests = []
for dtype, options in (
    ("int32", {"fanouts": [5, 5]}),
    ("int64", {"fanouts": [10, 3, 2]}),
    ("int64", {"fanouts": [4, -1]}),
    ("int32", {"fanouts": [40, 2], "replace": True}),
):
    degrees = random.integers(0, 30, 500)
    indptr = np.concatenate([[0], degrees.cumsum()]).astype(dtype)
    indices = random.integers(0, 500, indptr[-1]).astype(dtype)
    graph = pgs.Graph.from_csc(indptr, indices).to("cuda")
    seeds = random.permutation(500)[:70].astype(dtype)
    digest = hashlib.sha256()
    batch = pgs.PGSampler(**options, seed=3).sample(graph, seeds).cpu()
    digest.update(np.from_dlpack(batch.input_nodes).tobytes())
    for block in batch.blocks:
        for array in (block.indptr, block.indices, block.edge_ids):
            digest.update(np.from_dlpack(array).tobytes())
    digests.append([digest.hexdigest(), sum(len(b.indices) for b in batch.blocks)])
maps = open("/proc/self/maps").read()
print(json.dumps({"digests": digests, "logged": logged, "nvrtc": "libnvrtc" in maps}))
"""


class Machine:
    """Processes with the emulator, and a cache that they share."""

    def __init__(self, emulator: Path, folder: Path) -> None:
        self.emulator, self.folder = emulator, folder
        self.cache = folder / "cache"
        self.log = folder / "compiled"

    def start(self, **variables: str) -> subprocess.Popen[str]:
        environment = {
            **os.environ,
            "LD_LIBRARY_PATH": str(self.emulator),
            "FAKE_CUDA_DEVICES": "1",
            "FAKE_NVRTC_LOG": str(self.log),
            "PYGSAMPLER_NVRTC": str(self.emulator / "libnvrtc.so.12"),
            "PYGSAMPLER_CACHE": str(self.cache),
            "PYGSAMPLER_KERNELS": "compile",
            **variables,
        }
        pipe = subprocess.PIPE
        return subprocess.Popen(
            [sys.executable, "-c", SAMPLE], env=environment, stdout=pipe, stderr=pipe, text=True
        )

    def end(self, process: subprocess.Popen[str]) -> Any:
        """What a process printed, when it ends well and has said nothing else."""
        printed, said = process.communicate(timeout=240)
        assert (process.returncode, said) == (0, "")
        return json.loads(printed)

    def run(self, **variables: str) -> Any:
        return self.end(self.start(**variables))

    def compiled(self) -> list[str]:
        """What was compiled since the last call."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        self.log.unlink(missing_ok=True)
        return sorted(line.split(".")[0] for line in lines)

    def files(self) -> dict[str, int]:
        return {file.name.split(".")[0]: file.stat().st_size for file in self.cache.iterdir()}


@pytest.fixture
def machine(emulator: Path, tmp_path: Path) -> Machine:
    return Machine(emulator, tmp_path)


@pytest.fixture(scope="module")
def embedded(emulator: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the kernels of the build give, which touch neither NVRTC nor the cache."""
    machine = Machine(emulator, tmp_path_factory.mktemp("embedded"))
    result = machine.run(PYGSAMPLER_KERNELS="")
    assert result["nvrtc"] is False
    assert result["logged"] == []
    assert not machine.compiled()
    assert not machine.cache.exists()
    assert all(edges > 100 for _, edges in result["digests"])
    return result["digests"]


def test_batches_of_the_embedded_kernels(machine: Machine, embedded: Any) -> None:
    """Twice: the second process finds in the cache what the first one put there."""
    first = machine.run()
    assert first == {"digests": embedded, "logged": [], "nvrtc": True}
    assert machine.compiled() == ["neighbor"]
    assert set(machine.files()) == {"neighbor-sm_90"}
    assert machine.run() == first
    assert machine.compiled() == []


def test_two_processes_at_once(machine: Machine, embedded: Any) -> None:
    both = [machine.start(), machine.start()]
    for process in both:
        assert machine.end(process)["digests"] == embedded
    assert machine.compiled() in (["neighbor"], ["neighbor"] * 2)
    assert set(machine.files()) == {"neighbor-sm_90"}
    assert machine.run()["digests"] == embedded
    assert machine.compiled() == []


def test_broken_file(machine: Machine, embedded: Any) -> None:
    machine.run()
    machine.compiled()
    before = machine.files()
    (file,) = machine.cache.iterdir()
    file.write_bytes(file.read_bytes()[:-1000])
    assert machine.run() == {"digests": embedded, "logged": [], "nvrtc": True}
    assert machine.compiled() == ["neighbor"]
    assert machine.files() == before


def test_folder_that_cannot_be_written(machine: Machine, embedded: Any) -> None:
    """Not even by root: it is below a file."""
    file = machine.folder / "file"
    file.touch()
    result = machine.run(PYGSAMPLER_CACHE=str(file / "below"))
    assert result["digests"] == embedded
    ((logger, level, text),) = result["logged"]
    assert (logger, level) == ("pygsampler", "WARNING")
    assert f"{file}/below: not a directory" in text
    assert "PYGSAMPLER_CACHE names another folder" in text
    assert machine.compiled() == ["neighbor"]


@pytest.mark.parametrize(
    ("variables", "text"),
    [
        (
            {"PYGSAMPLER_NVRTC": "/nowhere/libnvrtc.so.12"},
            "CudaError: pygsampler: kernel neighbor: expected NVRTC to compile it, found none that "
            "will do (PYGSAMPLER_NVRTC is /nowhere/libnvrtc.so.12); "
            "pip install nvidia-cuda-nvrtc-cu12 (nvidia-cuda-nvrtc-cu12) brings it",
        ),
        (
            {"PYGSAMPLER_KERNELS": "yes"},
            'CudaError: pygsampler: PYGSAMPLER_KERNELS: expected embedded or compile, got "yes"',
        ),
    ],
)
def test_errors(machine: Machine, variables: dict[str, str], text: str) -> None:
    process = machine.start(**variables)
    _, said = process.communicate(timeout=240)
    assert process.returncode == 1
    assert text in said
    assert machine.compiled() == []
    assert not machine.cache.exists()


def test_candidates(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Absolute paths, those in packages first and the older CUDA first, and nothing is opened."""
    monkeypatch.setattr(sys, "path", ["", "relative", "/one", "/two", "/one"])
    monkeypatch.setattr(sys, "prefix", "/environment")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    monkeypatch.setenv("CUDA_PATH", "relative")
    found = nvrtc.nvrtc_candidates()
    assert found[:3] == [
        "/one/nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
        "/two/nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
        "/one/nvidia/cu13/lib/libnvrtc.so.13",
    ]
    assert len(found) == len(set(found))
    assert all(map(os.path.isabs, found))
    assert "/environment/lib/libnvrtc.so.12" in found
    assert f"{tmp_path}/lib64/libnvrtc.so.13" in found


def test_variables_that_python_sets_are_heeded(tmp_path: Path) -> None:
    """Go on its own knows the environment that the process began with alone."""
    code = (
        "import json, os\n"
        f"os.environ['PYGSAMPLER_CACHE'] = {str(tmp_path)!r}\n"
        "os.environ.pop('PYGSAMPLER_NVRTC')\n"
        "from pygsampler._engine import library\n"
        "print(library.call('CompilerReport'))"
    )
    environment = {**os.environ, "PYGSAMPLER_NVRTC": "/nowhere", "PYGSAMPLER_CACHE": "/elsewhere"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    assert str(tmp_path) in done.stdout
    assert "/nowhere" not in json.dumps(report)
