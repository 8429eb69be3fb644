"""The doctor: without a driver, with fake ones, with broken parts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pygsampler import cuda
from pygsampler._cli import doctor
from pygsampler._cli.doctor import environment, gpu
from pygsampler._cli.doctor.remedies import REPORT, UPDATE, remedy
from pygsampler._cli.doctor.report import Problem, Report, Section, size
from pygsampler._cli.doctor.self_test import CPU_MODES, DEVICE_MODES
from pygsampler._engine import library
from tests.gpu import fake_driver, need_cuda, no_driver, run_with_driver

ROOT = Path(__file__).parents[2]
WORK = ROOT / "gpu" / "shim" / "testdata" / "fake_work.c"
CUDA = """
import json
from pygsampler._cli.doctor.gpu import cuda
part = cuda()
print(json.dumps([part.facts, part.lines, part.problems, part.notes]))
"""


def run(driver: Path | None, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **variables}
    if driver is not None:
        environment["LD_LIBRARY_PATH"] = str(driver)
    return subprocess.run(
        [sys.executable, "-m", "pygsampler", "doctor", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
    )


def ask(driver: Path, code: str = CUDA, **variables: str) -> tuple[Any, Any, Any, Any]:
    """Facts, lines, problems and notes of the part on CUDA."""
    facts, lines, problems, notes = json.loads(run_with_driver(driver, code, **variables))
    return facts, lines, problems, notes


@pytest.fixture(scope="module")
def fake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A driver that has devices and cannot do anything with them."""
    return fake_driver(tmp_path_factory.mktemp("fake"))


@pytest.fixture(scope="module")
def working(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A driver that takes any image for machine code."""
    return fake_driver(tmp_path_factory.mktemp("working"), "-DWORKING", "-pthread", str(WORK))


# ---- the command -------------------------------------------------------------------------------


def test_no_gpu_is_well(tmp_path: Path) -> None:
    done = run(no_driver(tmp_path), "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["ok"] is True
    assert report["problems"] == []
    assert report["versions"]["python"] == sys.version.split()[0]
    assert report["extension"]["bytes"] == Path(report["extension"]["file"]).stat().st_size
    assert report["extension"]["abi"] == "abi3"
    assert report["extension"]["architecture"] == report["machine"]["architecture"]
    assert report["machine"]["usable_cores"] == len(os.sched_getaffinity(0))
    assert report["machine"]["emulated"] in (True, False, None)
    assert report["cuda"]["driver"] is None
    assert report["cuda"]["devices"] == []
    assert [(run["device"], run["mode"], run["ok"]) for run in report["self_test"]["runs"]] == [
        ("cpu", mode, True) for mode in CPU_MODES
    ]


def test_text_is_for_people(tmp_path: Path) -> None:
    done = run(no_driver(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert [line for line in lines if line and not line.startswith(" ")] == [
        *("versions", "extension", "machine", "cuda", "compiler", "self-test", "no problem found")
    ]
    wanted = "cpu " + ", ".join(f"{mode} ok" for mode in CPU_MODES)
    assert any(" ".join(line.split()) == wanted for line in lines)


def test_broken_driver_is_a_problem(fake: Path) -> None:
    done = run(fake, "--json", FAKE_CUDA_INIT="999")
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert report["ok"] is False
    (problem,) = report["problems"]
    assert problem["what"] == "gpu: cuInit: CUDA_ERROR_UNKNOWN (999): unknown error"
    assert "modprobe nvidia_uvm" in problem["remedy"]
    text = run(fake, FAKE_CUDA_INIT="999").stdout
    assert text.endswith(f"problem: {problem['what']}\n    what to do: {problem['remedy']}\n")


def test_emulated_gpus_are_well(emulator: Path) -> None:
    """Every mode of every kernel, on the CPU, gives what the CPU's engine gives."""
    done = run(emulator, "--json")
    report = json.loads(done.stdout)
    assert done.returncode == 0, report["problems"]
    devices = report["cuda"]["devices"]
    assert devices
    for device in devices:
        kernels = {kernel["name"] for kernel in device["kernels"]}
        assert kernels >= {
            "bsp",
            "expand_coo",
            "fused",
            "neighbor",
            "queue",
            "reservoir",
            "validate",
        }
    runs = {(run["device"], run["mode"]): run["ok"] for run in report["self_test"]["runs"]}
    wanted = {(f"cuda:{d['index']}", mode) for d in devices for mode in DEVICE_MODES}
    assert all(runs[unit] for unit in wanted)


def test_the_machine_s_own_gpus_are_well() -> None:
    need_cuda()
    done = run(None, "--json")
    report = json.loads(done.stdout)
    assert done.returncode == 0, report["problems"]
    devices = report["cuda"]["devices"]
    assert len(devices) == cuda.device_count()
    assert all(device["kernels"] for device in devices)
    tested = {(run["device"], run["mode"]) for run in report["self_test"]["runs"] if run["ok"]}
    assert tested >= {(f"cuda:{d['index']}", m) for d in devices for m in DEVICE_MODES}


def test_no_framework_is_imported(tmp_path: Path) -> None:
    code = """
import sys
from pygsampler._cli.doctor import examine
assert examine().ok
print(*sorted({"numpy", "torch", "dgl", "torch_geometric", "pyarrow"} & set(sys.modules)))
"""
    assert run_with_driver(no_driver(tmp_path), code).split() == []


# ---- CUDA --------------------------------------------------------------------------------------


def test_devices_and_their_kernels(working: Path) -> None:
    facts, lines, problems, notes = ask(working)
    assert facts["driver"] == "12.9"
    assert [(d["index"], d["name"], d["compute_capability"]) for d in facts["devices"]] == [
        (0, "Fake GPU 0", "9.0"),
        (1, "Fake GPU 1", "9.1"),
    ]
    for device in facts["devices"]:
        kernels = {kernel["name"]: kernel for kernel in device["kernels"]}
        assert kernels["neighbor"]["code"] == "sm_90 machine code"
        assert kernels["neighbor"]["bytes"] > 0
    assert ["", "kernel neighbor: sm_90 machine code"] in lines
    assert problems == []
    assert notes == []


def test_every_device_that_fails_is_a_problem(fake: Path) -> None:
    facts, _, problems, _ = ask(fake)
    assert [device["name"] for device in facts["devices"]] == [None, None]
    assert [what.split(":")[:2] for what, _ in problems] == [["cuda", "0"], ["cuda", "1"]]


def test_driver_without_devices_is_well(fake: Path) -> None:
    facts, _, problems, notes = ask(fake, FAKE_CUDA_DEVICES="0", CUDA_VISIBLE_DEVICES="7")
    assert facts["driver"] == "12.9"
    assert problems == []
    assert notes == [
        "the driver shows no device; CUDA_VISIBLE_DEVICES is '7'; sampling is on the CPU"
    ]


def test_module_of_the_kernel_without_a_library(tmp_path: Path) -> None:
    module = tmp_path / "version"
    module.write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.10  Thu Jan\n")
    change = "import pathlib, pygsampler._cli.doctor.gpu as g\n"
    change += f"g._MODULE = pathlib.Path({str(module)!r})"
    facts, _, problems, _ = ask(no_driver(tmp_path), change + CUDA)
    assert facts["driver_module"] == "570.86.10"
    ((what, to_do),) = problems
    assert "570.86.10" in what
    assert "--gpus all" in to_do


def test_old_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "driver_version", lambda: 11080)
    monkeypatch.setattr(cuda, "device_count", lambda: 1)
    monkeypatch.setattr(library, "call", lambda *_: json.dumps(DEVICE))
    part = gpu.cuda()
    assert part.problems == (Problem("the driver is of CUDA 11.8, too old", UPDATE),)


KERNEL = {
    "name": "k",
    "code": "sm_90 machine code",
    "ptx": False,
    "bytes": 9,
    "log": "",
    "error": "",
}
DEVICE: dict[str, Any] = {
    "index": 0,
    "name": "GPU",
    "compute_capability": "9.0",
    "multiprocessors": 1,
    "memory_bytes": 1,
    "free_bytes": 1,
    "cooperative_launch": True,
    "error": "",
    "kernels": [KERNEL],
}


@pytest.mark.parametrize(
    ("change", "what", "to_do"),
    [
        ({"kernels": []}, "no kernels", "make kernels"),
        ({"cooperative_launch": False}, "cooperatively", "on the CPU"),
        ({"error": "gpu: cuX: OUT (2): full"}, "cuda:0: gpu: cuX: OUT (2): full", "nvidia-smi"),
        (
            {"kernels": [{**KERNEL, "error": "expected sm_75, got compute capability 6.1"}]},
            "6.1",
            "the device is older",
        ),
        (
            {"kernels": [{**KERNEL, "error": "gpu: cuModuleLoadDataEx: A (300): b"}]},
            "(300)",
            UPDATE,
        ),
    ],
)
def test_problems_of_a_device(change: dict[str, Any], what: str, to_do: str) -> None:
    assert gpu._device_problems(DEVICE) == []
    (problem,) = gpu._device_problems({**DEVICE, **change})
    assert what in problem.what
    assert to_do in problem.remedy


def test_what_the_driver_s_compiler_says_is_shown() -> None:
    kernel = {**KERNEL, "code": "PTX for compute_75", "ptx": True, "log": "one\ntwo"}
    texts = [text for _, text in gpu._device_lines({**DEVICE, "kernels": [kernel]})]
    assert texts[1:] == ["kernel k: PTX for compute_75", "    one", "    two"]


@pytest.mark.parametrize(
    ("error", "part"),
    [
        ("gpu: cuInit: CUDA_ERROR_NOT_INITIALIZED (3): forked", "spawn"),
        ("CudaError: gpu: cuInit: CUDA_ERROR_SYSTEM_NOT_READY (802)", "fabricmanager"),
        ("gpu: cuInit: CUDA_ERROR_SOMETHING (12345): what", REPORT),
        ("no error of the driver", REPORT),
    ],
)
def test_remedies(error: str, part: str) -> None:
    assert part in remedy(error)


# ---- the other parts ---------------------------------------------------------------------------


def test_missing_extension_ends_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> Path:
        raise ImportError("pygsampler: expected a file, found none; a wheel brings it")

    monkeypatch.setattr(library, "extension_path", missing)
    monkeypatch.setattr(library, "get_num_threads", missing)
    report = doctor.examine()
    assert [section.name for section in report.sections] == ["versions", "extension", "machine"]
    problem = Problem("pygsampler: expected a file, found none", "a wheel brings it")
    assert report.problems == (problem,)
    assert report.json()["machine"]["threads"] is None


def test_extension_that_does_not_load(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "_bridge.so"
    file.write_bytes(b"no library")

    def refuse() -> None:
        raise ImportError("invalid ELF header")

    monkeypatch.setattr(library, "extension_path", lambda: file)
    monkeypatch.setattr(library, "engine", refuse)
    part = environment.extension()
    assert part.facts["bytes"] == 10
    assert part.facts["architecture"] is None
    assert [problem.what for problem in part.problems] == ["_bridge.so: invalid ELF header"]


def test_part_that_raises_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Section:
        raise OSError("gone")

    monkeypatch.setattr(doctor, "_ALWAYS", (broken,))
    monkeypatch.setattr(doctor, "_WITH_EXTENSION", ())
    report = doctor.examine()
    assert not report.ok
    assert report.problems == (Problem("OSError: gone", REPORT),)
    assert report.json()["broken"] == {}


def test_partner_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "_PARTNERS", (("none", "None", "no-such-distribution"),))
    part = environment.versions()
    assert part.facts["none"] is None
    assert ("None", "not installed") in part.lines


def test_text_of_a_report() -> None:
    parts = (
        Section("one_part", {}, (("a", "b"), ("long", "c")), notes=("note",)),
        Section("other", {}, problems=(Problem("what", "how"),)),
    )
    assert Report(parts).text().splitlines() == [
        *("one-part", "  a     b", "  long  c", "  note", "other", ""),
        *("problem: what", "    what to do: how"),
    ]


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (3 << 29, "1.5 GiB"),
        (5 << 50, "5120.0 TiB"),
    ],
)
def test_size(count: int, text: str) -> None:
    assert size(count) == text
