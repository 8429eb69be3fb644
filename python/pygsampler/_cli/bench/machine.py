"""The machine that a benchmark runs on, the versions that take part, and what others do there."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

_PACKAGES = (
    "pygsampler",
    "dgl",
    "torch",
    "torch-geometric",
    "pyg-lib",
    "torch-sparse",
    "torch-cluster",
    "pylibcugraph",
    "kumo-engine",
    "numpy",
)
# Packages of other names that have a module.
_OTHER_NAMES = {"pylibcugraph": ("pylibcugraph-cu13", "pylibcugraph-cu12")}


def hardware(device: str = "cpu") -> dict[str, Any]:
    """Processor, cores that this process may use, caches, memory, huge pages, load average.

    With a device the GPU's name is there too, and the newest CUDA that its driver supports.
    """
    gpu = {}
    if device != "cpu":
        from pygsampler import cuda

        index = int(device.partition(":")[2] or 0)
        gpu = {"gpu": cuda.device_name(index), "cuda_driver": cuda.driver_version()}
    return {
        **gpu,
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count(),
        "caches": _caches(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "transparent_huge_pages": _huge_pages(),
        "load_average": [round(load, 2) for load in os.getloadavg()],
    }


def versions() -> dict[str, str | None]:
    """Versions of what takes part, None for what is not installed."""
    found: dict[str, str | None] = {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
    }
    for package in _PACKAGES:
        names = (package, *_OTHER_NAMES.get(package, ()))
        found[package] = next(filter(None, map(_version, names)), None)
    return found


def commit() -> str | None:
    """The commit of the package where it runs in its repository, with a + if files differ."""
    folder = Path(__file__).parents[3]
    if not (folder.parent / "pygsampler" / "internal").is_dir():
        return None
    try:
        command = ["git", "-C", str(folder), "describe", "--always", "--abbrev=12", "--dirty=+"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def huge_page_share() -> float | None:
    """Share of this process's anonymous memory on huge pages: they speed random reads up."""
    fields = dict.fromkeys(("Anonymous", "AnonHugePages"), 0)
    for line in (_read("/proc/self/smaps_rollup") or "").splitlines():
        name, _, value = line.partition(":")
        if name in fields:
            fields[name] = int(value.split()[0])
    if not fields["Anonymous"]:
        return None
    return round(fields["AnonHugePages"] / fields["Anonymous"], 3)


class OtherLoad:
    """The share of this machine's cores that other processes used since the last look.

    DGL's threads spin at barriers: one other busy process makes it ten times slower and us twice,
    so a ratio measured on a busy machine flatters us.
    """

    def __init__(self) -> None:
        self._last = self._read()

    def share(self) -> float:
        """The share, 0 on an idle machine, 1 when other processes used every core.

        It is also 0 if it cannot be read: outside Linux, and for less than 0.1 s, since the system
        counts in steps of 10 ms.
        """
        before, self._last = self._last, self._read()
        machine, own, wall = (now - then for now, then in zip(self._last, before, strict=True))
        if not machine or wall < 0.1:
            return 0.0
        return max(0.0, machine - own) / (wall * (os.cpu_count() or 1))

    @staticmethod
    def _read() -> tuple[float, float, float]:
        """Seconds of work of the machine (stolen time too), of this process, and of the clock."""
        fields = (_read("/proc/stat") or "cpu").splitlines()[0].split()[1:9]
        # user, nice, system, idle, iowait, irq, softirq, steal
        busy = sum(int(field) for place, field in enumerate(fields) if place not in (3, 4))
        return busy / os.sysconf("SC_CLK_TCK"), time.process_time(), time.perf_counter()


def summary(record: dict[str, Any]) -> str:
    """Returns a line of `describe` for the head of a table."""
    machine, used = record["hardware"], record["versions"]
    names = [f"{name} {used[name]}" for name in _PACKAGES if used[name]]
    place = f"{machine['cpu']}, {machine['cores']} cores"
    if "gpu" in machine:
        place += f"; {machine['gpu']}"
    return f"{place}; Python {used['python']}, {', '.join(names)}"


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _cpu_model() -> str:
    for line in (_read("/proc/cpuinfo") or "").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _caches() -> dict[str, str]:
    caches = {}
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = (_read(index / name) for name in ("level", "type", "size"))
        if level and kind and size:
            caches[f"L{level} {kind.lower()}"] = size
    return caches


def _huge_pages() -> str | None:
    text = _read("/sys/kernel/mm/transparent_hugepage/enabled")
    return text.partition("[")[2].partition("]")[0] if text else None


def _read(path: str | Path) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None
