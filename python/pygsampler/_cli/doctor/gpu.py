"""The part of a report on CUDA: the driver, its devices, and the kernels that each gets."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from pygsampler import cuda as driver
from pygsampler._cli.doctor.remedies import OLDEST_DRIVER, REPORT, UPDATE, remedy
from pygsampler._cli.doctor.report import Problem, Section, size
from pygsampler._engine import library
from pygsampler.errors import CudaError

# The driver's kernel module describes itself in this file while it is loaded.
_MODULE = Path("/proc/driver/nvidia/version")


def cuda() -> Section:
    """Driver and devices. No GPU is no problem: everything else works without."""
    module = _module_version()
    facts: dict[str, Any] = {"driver": None, "driver_module": module, "devices": []}
    try:
        version = driver.driver_version()
        if version:
            facts["driver"] = f"{version // 1000}.{version % 1000 // 10}"
        count = driver.device_count()
    except CudaError as error:
        return Section("cuda", facts, problems=(Problem(str(error), remedy(error)),))
    if not version:
        return _without_driver(facts)
    built = f", module {module}" if module else ""
    lines = [("driver", f"CUDA {facts['driver']}{built}")]
    if not count:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        why = "" if visible is None else f"; CUDA_VISIBLE_DEVICES is {visible!r}"
        note = f"the driver shows no device{why}; sampling is on the CPU"
        return Section("cuda", facts, tuple(lines), notes=(note,))
    problems = []
    if version < OLDEST_DRIVER:
        problems.append(Problem(f"the driver is of CUDA {facts['driver']}, too old", UPDATE))
    for index in range(count):
        device = _device(index)
        facts["devices"].append(device)
        lines += _device_lines(device)
        problems += _device_problems(device)
    return Section("cuda", facts, tuple(lines), tuple(problems))


def _without_driver(facts: dict[str, Any]) -> Section:
    if facts["driver_module"] is None:
        note = "no driver (libcuda.so.1): sampling is on the CPU"
        return Section("cuda", facts, notes=(note,))
    problem = Problem(
        f"the kernel has the NVIDIA driver {facts['driver_module']}, but no libcuda.so.1 is found",
        "install the driver's library of that version; in a container start it with --gpus all",
    )
    return Section("cuda", facts, problems=(problem,))


def _module_version() -> str | None:
    try:
        text = _MODULE.read_text()
    except OSError:
        return None
    found = re.search(r"\d+\.\d+(\.\d+)?", text)
    return found[0] if found else None


def _device(index: int) -> dict[str, Any]:
    """Returns what the engine says of a device; where it cannot, its error."""
    try:
        return {"index": index, **json.loads(library.call("DeviceKernels", index))}
    except CudaError as error:
        return {"index": index, "name": None, "kernels": [], "error": str(error)}


def _device_lines(device: dict[str, Any]) -> list[tuple[str, str]]:
    label = f"cuda:{device['index']}"
    if device["name"] is None:
        return [(label, "fails")]
    memory = f"{size(device['memory_bytes'])}, {size(device['free_bytes'])} of them free"
    lines = [
        (
            label,
            f"{device['name']}, compute capability {device['compute_capability']}, "
            f"{device['multiprocessors']} multiprocessors, {memory}",
        )
    ]
    for kernel in device["kernels"]:
        state = "fails" if kernel["error"] else kernel["code"]
        lines.append(("", f"kernel {kernel['name']}: {state}"))
        if kernel["ptx"] and kernel["log"]:
            lines += [("", f"    {line}") for line in kernel["log"].splitlines()]
    return lines


def _device_problems(device: dict[str, Any]) -> list[Problem]:
    where = f"cuda:{device['index']}"
    if device["error"]:
        return [Problem(f"{where}: {device['error']}", remedy(device["error"]))]
    problems = []
    if not device["kernels"]:
        problems.append(
            Problem(
                f"{where}: this build of pygsampler has no kernels",
                "in the repository: make kernels build; else install a wheel",
            )
        )
    if not device["cooperative_launch"]:
        problems.append(
            Problem(
                f"{where}: the device does not launch kernels cooperatively",
                "sample on the CPU, or on another device",
            )
        )
    problems += [
        Problem(f"{where}: {kernel['error']}", _kernel_remedy(kernel["error"]))
        for kernel in device["kernels"]
        if kernel["error"]
    ]
    return problems


def _kernel_remedy(error: str) -> str:
    if "compute capability" in error:
        return "the device is older than any that pygsampler has kernels for: sample on the CPU"
    found = remedy(error)
    return UPDATE if found == REPORT and "gpu: cuModuleLoadDataEx" in error else found
