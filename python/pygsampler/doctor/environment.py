"""The part of a report that is true without a GPU: versions, the extension, the machine."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pygsampler._core import library
from pygsampler.doctor.report import Problem, Section, size

# Key of the report, name for people, name on PyPI.
_PARTNERS = (
    ("numpy", "NumPy", "numpy"),
    ("torch", "torch", "torch"),
    ("dgl", "DGL", "dgl"),
    ("torch_geometric", "PyG", "torch-geometric"),
    ("pyarrow", "pyarrow", "pyarrow"),
)
_MEMINFO = Path("/proc/meminfo")


def versions() -> Section:
    """Of the package, Python, and the partners as they are installed; none is imported."""
    own, python = _version("pygsampler"), platform.python_version()
    found = {key: _version(package) for key, _, package in _PARTNERS}
    lines = [("pygsampler", own or "not installed, used from its folder"), ("Python", python)]
    lines += [(name, found[key] or "not installed") for key, name, _ in _PARTNERS]
    return Section("versions", {"pygsampler": own, "python": python, **found}, tuple(lines))


def extension() -> Section:
    """The compiled engine: where it is, how large, and whether it can be loaded."""
    try:
        path = library.extension_path()
    except ImportError as error:
        remedy = "install a wheel for this Python, or pip install . in a clone"
        return Section("extension", {"file": None}, problems=(Problem(str(error), remedy),))
    bytes_ = path.stat().st_size
    facts = {"file": str(path), "bytes": bytes_}
    lines = (("file", str(path)), ("size", size(bytes_)))
    try:
        library.engine()
    except ImportError as error:
        remedy = "build it here: pip install --force-reinstall . in a clone"
        return Section("extension", facts, lines, (Problem(f"{path.name}: {error}", remedy),))
    return Section("extension", facts, lines)


def machine() -> Section:
    """System, cores and memory, and how many threads the engine takes of it."""
    libc = " ".join(platform.libc_ver())
    system = f"{platform.system()} {platform.release()}"
    cores, usable = os.cpu_count() or 1, len(os.sched_getaffinity(0))
    threads = library.get_num_threads()
    memory, free = _memory()
    facts = {
        "system": system,
        "processor": platform.machine(),
        "libc": libc,
        "cores": cores,
        "usable_cores": usable,
        "threads": threads,
        "memory_bytes": memory,
        "free_bytes": free,
    }
    lines = (
        ("system", f"{system}, {platform.machine()}, {libc}"),
        ("cores", f"{usable} of {cores}; the engine takes {threads}"),
        ("memory", f"{size(memory)}, {size(free)} of them free"),
    )
    return Section("machine", facts, lines)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _memory() -> tuple[int, int]:
    """Bytes of the machine: all, and what new work can have."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for line in _MEMINFO.read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return total, int(line.split()[1]) * 1024
    return total, 0
