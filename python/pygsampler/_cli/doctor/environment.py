"""The part of a report that is true without a GPU: versions, the extension, the machine."""

from __future__ import annotations

import os
import platform
import re
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path

from pygsampler._cli.doctor.report import Problem, Section, size
from pygsampler._engine import library
from pygsampler._engine.architecture import (
    check_machine,
    elf_machine,
    emulated,
    kernel_machine,
    process_machine,
)

# Key of the report, name for people, name on PyPI.
_PARTNERS = (
    ("numpy", "NumPy", "numpy"),
    ("torch", "torch", "torch"),
    ("dgl", "DGL", "dgl"),
    ("torch_geometric", "PyG", "torch-geometric"),
    ("pyarrow", "pyarrow", "pyarrow"),
)
_MEMINFO = Path("/proc/meminfo")
# The Pythons of the one extension that setup.py builds.
_ABI, _OLDEST = "abi3", "3.10"


def versions() -> Section:
    """Returns versions of the package, Python, and installed partners; none is imported."""
    own, python = _version("pygsampler"), platform.python_version()
    found = {key: _version(package) for key, _, package in _PARTNERS}
    lines = [("pygsampler", own or "not installed, used from its folder"), ("Python", python)]
    lines += [(name, found[key] or "not installed") for key, name, _ in _PARTNERS]
    return Section("versions", {"pygsampler": own, "python": python, **found}, tuple(lines))


def extension() -> Section:
    """Describes the compiled engine: its file, what it is built for, and whether it loads."""
    try:
        path = library.extension_path()
    except ImportError as error:
        return Section("extension", {"file": None}, problems=(_problem(error),))
    bytes_, machine, process = path.stat().st_size, elf_machine(path), process_machine()
    wheel, libc = _wheel_tag(), platform.libc_ver()
    facts = {
        "file": str(path),
        "bytes": bytes_,
        "abi": _ABI,
        "architecture": machine,
        "wheel": wheel,
    }
    lines = [
        ("file", str(path)),
        ("size", size(bytes_)),
        ("ABI", f"{_ABI}, for CPython {_OLDEST} and newer"),
        ("architecture", f"{machine or 'not an ELF file'}; this Python is {process}"),
    ]
    required = re.search(r"manylinux_(\d+)_(\d+)_", wheel or "")
    if required and libc[0] == "glibc":
        lines.append(("glibc", f"{libc[1]}; the wheel asks for {required[1]}.{required[2]}"))

    problems: tuple[Problem, ...] = ()
    try:
        check_machine(path)
    except ImportError as error:
        problems = (_problem(error),)
    else:
        try:
            library.engine()
        except ImportError as error:
            remedy = "build it here: pip install --force-reinstall . in a clone"
            problems = (Problem(f"{path.name}: {error}", remedy),)
    return Section("extension", facts, tuple(lines), problems)


def machine() -> Section:
    """Describes system, processor, cores and memory, and how many threads the engine takes."""
    libc = " ".join(platform.libc_ver())
    system = f"{platform.system()} {platform.release()}"
    cores = os.cpu_count() or 1
    # Other systems, where the section before has a problem, have no such function.
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else cores
    try:
        threads = library.get_num_threads()
    except ImportError:  # the problem of the section before
        threads = None
    memory, free = _memory()
    process, kernel, emulation = process_machine(), kernel_machine(), emulated()
    facts = {
        "system": system,
        "processor": platform.machine(),
        "architecture": process,
        "kernel_architecture": kernel,
        "emulated": emulation,
        "libc": libc,
        "cores": cores,
        "usable_cores": usable,
        "threads": threads,
        "memory_bytes": memory,
        "free_bytes": free,
    }
    state = {True: f"emulated on {kernel}", False: "not emulated", None: "emulation unknown"}
    lines = (
        ("system", f"{system}, {libc}"),
        ("processor", f"{process}, {state[emulation]}"),
        ("cores", f"{usable} of {cores}" + (f"; the engine takes {threads}" if threads else "")),
        ("memory", f"{size(memory)}, {size(free)} of them free"),
    )
    note = (
        f"emulated: the kernel is {kernel}, so times and the order of memory accesses say nothing "
        f"about {process} hardware"
    )
    return Section("machine", facts, lines, notes=(note,) if emulation else ())


def _problem(error: ImportError) -> Problem:
    """Returns the problem of an error of the package, which ends with the remedy."""
    what, _, remedy = str(error).rpartition("; ")
    return Problem(what, remedy)


def _wheel_tag() -> str | None:
    """Returns the tag of the installed wheel, None if the package is used from its folder."""
    try:
        text = distribution("pygsampler").read_text("WHEEL") or ""
    except PackageNotFoundError:
        return None
    match = re.search(r"(?m)^Tag: (\S+)$", text)
    return match[1] if match else None


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
