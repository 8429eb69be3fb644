"""The processor architecture of a file, of this process and of the kernel that runs it."""

from __future__ import annotations

import platform
from pathlib import Path

_SELF = Path("/proc/self/exe")
_KERNEL = Path("/proc/sys/kernel/arch")
_MODALIAS = Path("/sys/devices/system/cpu/modalias")
_CPUINFO = Path("/proc/cpuinfo")
# The first bytes of an ELF file, up to e_machine.
_HEADER_BYTES = 20
_MACHINES = {3: "i386", 40: "arm", 62: "x86_64", 183: "aarch64"}


def elf_machine(file: Path) -> str | None:
    """Returns the architecture that an ELF file is built for, None if it is not an ELF file.

    The names are those of wheels: ``x86_64``, ``aarch64``; any other is ``machine 243`` with the
    number of the header.
    """
    with file.open("rb") as opened:
        header = opened.read(_HEADER_BYTES)
    if len(header) < _HEADER_BYTES or header[:4] != b"\x7fELF":
        return None
    number = int.from_bytes(header[18:20], "big" if header[5] == 2 else "little")
    return _MACHINES.get(number, f"machine {number}")


def process_machine() -> str:
    """Returns the architecture of this interpreter, which may be 32-bit under a 64-bit kernel."""
    try:
        machine = elf_machine(_SELF)
    except OSError:
        machine = None
    return machine or platform.machine()


def check_machine(file: Path) -> None:
    """Raises ImportError if an ELF file is built for another architecture than this interpreter.

    The dynamic linker says of such a file no more than that it cannot open it.
    """
    machine, process = elf_machine(file), process_machine()
    if machine is not None and machine != process:
        raise ImportError(
            f"pygsampler: expected an engine for {process}, got {file} for {machine}; install the "
            f"wheel whose name ends with {process}.whl, or pip install . in a clone"
        )


def kernel_machine() -> str | None:
    """Returns the architecture of the kernel, read where emulators pass the host's files through.

    ``uname`` and, in newer versions, ``/proc/cpuinfo`` are forged by QEMU, FEX and Rosetta.
    ``/proc/sys/kernel/arch`` came with Linux 6.1, and not every container shows ``/sys``.
    """
    kernel = _text(_KERNEL).strip()
    if kernel:
        return kernel
    # cpu:type:x86,ven0002fam0019mod0001:feature:... or cpu:type:aarch64:feature:...
    kind, _, rest = _text(_MODALIAS).partition("cpu:type:")[2].partition(":")
    if rest:
        return kind.partition(",")[0]
    cpuinfo = _text(_CPUINFO)
    keys = {line.partition(":")[0].strip() for line in cpuinfo.splitlines()}
    if "VirtualApple" in cpuinfo or "CPU implementer" in keys:
        return "aarch64"
    return "x86" if "vendor_id" in keys and "flags" in keys else None


def emulated() -> bool | None:
    """Returns True if a user-mode emulator runs this process, None if nothing says so or denies it.

    A virtual machine that emulates a whole computer is not recognized: its kernel has the
    architecture of the process.
    """
    kernel = kernel_machine()
    return None if kernel is None else _family(kernel) != _family(process_machine())


def _family(machine: str) -> str:
    """x86 and ARM processors run 32-bit programs of their own family without emulation."""
    if machine.startswith(("arm", "aarch")):
        return "ARM"
    return "x86" if machine in ("x86", "x86_64", "i386", "i686") else machine


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""
