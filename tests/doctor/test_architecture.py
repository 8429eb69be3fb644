"""The doctor on architectures: ELF headers, kernels and emulators that the tests write."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

from pygsampler._cli.doctor import environment
from pygsampler._engine import architecture, library

X86_CPUINFO = "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC\nflags\t\t: fpu\n"
ARM_CPUINFO = "processor\t: 0\nBogoMIPS\t: 100.00\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\n"
ROSETTA_CPUINFO = X86_CPUINFO.replace("AuthenticAMD", "VirtualApple")
RISCV_CPUINFO = "processor\t: 0\nhart\t\t: 0\nisa\t\t: rv64imafdc\n"


def elf(machine: int, bits: int = 64, order: Literal["little", "big"] = "little") -> bytes:
    """The first bytes of a shared library of that architecture."""
    head = b"\x7fELF" + bytes([bits // 32, 1 if order == "little" else 2, 1, 0]) + bytes(8)
    return head + (3).to_bytes(2, order) + machine.to_bytes(2, order) + bytes(44)


class World:
    """The files that a kernel shows, with what a test writes into them."""

    def __init__(self, folder: Path) -> None:
        self.exe = folder / "exe"
        self.kernel = folder / "arch"
        self.modalias = folder / "modalias"
        self.cpuinfo = folder / "cpuinfo"


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A machine without any of the files."""
    folder = tmp_path / "world"
    folder.mkdir()
    files = World(folder)
    monkeypatch.setattr(architecture, "_SELF", files.exe)
    monkeypatch.setattr(architecture, "_KERNEL", files.kernel)
    monkeypatch.setattr(architecture, "_MODALIAS", files.modalias)
    monkeypatch.setattr(architecture, "_CPUINFO", files.cpuinfo)
    return files


@pytest.mark.parametrize(
    ("content", "machine"),
    [
        (elf(62), "x86_64"),
        (elf(183), "aarch64"),
        (elf(40, bits=32), "arm"),
        (elf(3, bits=32), "i386"),
        (elf(243), "machine 243"),
        (elf(22, order="big"), "machine 22"),
        (b"\x7fELF", None),
        (b"no library, and longer than a header", None),
        (b"", None),
    ],
)
def test_elf_machine_is_read_from_the_header(
    content: bytes, machine: str | None, tmp_path: Path
) -> None:
    file = tmp_path / "library.so"
    file.write_bytes(content)
    assert architecture.elf_machine(file) == machine


def test_process_machine_is_the_one_of_this_interpreter() -> None:
    if sys.maxsize < 2**32:
        pytest.skip("this Python is 32-bit, where uname names the kernel; take a 64-bit Python")
    assert architecture.process_machine() == platform.machine()


def test_process_machine_without_proc_is_what_uname_says(world: World) -> None:
    assert architecture.process_machine() == platform.machine()
    world.exe.write_bytes(elf(40, bits=32))
    assert architecture.process_machine() == "arm"


@pytest.mark.parametrize(
    ("machine", "kernel", "modalias", "cpuinfo", "emulated"),
    [
        # Real machines, from the newest kernels to containers without /sys.
        (62, "x86_64\n", "cpu:type:x86,ven0002fam0019mod0001:feature:,0000\n", X86_CPUINFO, False),
        (62, "", "cpu:type:x86,ven0002fam0019mod0001:feature:,0000\n", X86_CPUINFO, False),
        (62, "", "", X86_CPUINFO, False),
        (183, "aarch64\n", "cpu:type:aarch64:feature:,0000,0001\n", ARM_CPUINFO, False),
        (183, "", "cpu:type:aarch64:feature:,0000,0001\n", ARM_CPUINFO, False),
        (183, "", "", ARM_CPUINFO, False),
        # 32-bit Pythons under 64-bit kernels are no emulation.
        (3, "x86_64\n", "", X86_CPUINFO, False),
        (40, "aarch64\n", "", ARM_CPUINFO, False),
        # QEMU 7 passes the host's /proc/cpuinfo through, QEMU 8.1 and newer forge it.
        (183, "x86_64\n", "", X86_CPUINFO, True),
        (183, "", "", X86_CPUINFO, True),
        (183, "", "cpu:type:x86,ven0002fam0019mod0001:feature:,0000\n", ARM_CPUINFO, True),
        (183, "x86_64\n", "", ARM_CPUINFO, True),
        # x86-64 on ARM: FEX and box64 forge /proc/cpuinfo, Rosetta names itself there.
        (62, "aarch64\n", "", X86_CPUINFO, True),
        (62, "", "cpu:type:aarch64:feature:,0000,0001\n", X86_CPUINFO, True),
        (62, "", "", ROSETTA_CPUINFO, True),
        # Another family, which names itself by its kernel alone.
        (62, "riscv64\n", "", "", True),
        # Nothing that says it.
        (62, "", "", "", None),
        (62, "", "", RISCV_CPUINFO, None),
    ],
)
def test_emulation_is_a_kernel_of_another_family(
    world: World, machine: int, kernel: str, modalias: str, cpuinfo: str, emulated: bool | None
) -> None:
    world.exe.write_bytes(elf(machine))
    for file, text in (
        (world.kernel, kernel),
        (world.modalias, modalias),
        (world.cpuinfo, cpuinfo),
    ):
        if text:
            file.write_text(text)
    assert architecture.emulated() is emulated


def test_emulation_is_a_note_and_no_problem(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.exe.write_bytes(elf(183))
    world.kernel.write_text("x86_64\n")
    part = environment.machine()
    assert part.facts["emulated"] is True
    assert part.facts["architecture"] == "aarch64"
    assert part.facts["kernel_architecture"] == "x86_64"
    assert ("processor", "aarch64, emulated on x86_64") in part.lines
    assert part.problems == ()
    assert part.notes == (
        "emulated: the kernel is x86_64, so times and the order of memory accesses say nothing "
        "about aarch64 hardware",
    )
    world.kernel.write_text("aarch64\n")
    part = environment.machine()
    assert part.facts["emulated"] is False
    assert ("processor", "aarch64, not emulated") in part.lines
    assert part.notes == ()
    world.kernel.unlink()
    part = environment.machine()
    assert part.facts["emulated"] is None
    assert ("processor", "aarch64, emulation unknown") in part.lines
    assert part.notes == ()


def test_machine_is_shown_without_an_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise ImportError("expected an engine")

    monkeypatch.setattr(library, "get_num_threads", refuse)
    part = environment.machine()
    assert part.facts["threads"] is None
    assert part.facts["usable_cores"] == len(os.sched_getaffinity(0))
    assert part.problems == ()


@pytest.mark.parametrize(
    ("built", "process", "names"),
    [(183, 62, ("aarch64", "x86_64")), (62, 183, ("x86_64", "aarch64"))],
)
def test_engine_of_another_architecture_is_not_loaded(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    built: int,
    process: int,
    names: tuple[str, str],
) -> None:
    file = tmp_path / "_bridge.abi3.so"
    file.write_bytes(elf(built))
    world.exe.write_bytes(elf(process))
    loads: list[int] = []
    monkeypatch.setattr(library, "extension_path", lambda: file)
    monkeypatch.setattr(library, "engine", lambda: loads.append(1))
    part = environment.extension()
    assert loads == []
    assert part.facts["architecture"] == names[0]
    ((what, remedy),) = part.problems
    assert what == f"pygsampler: expected an engine for {names[1]}, got {file} for {names[0]}"
    assert f"{names[1]}.whl" in remedy
    world.exe.write_bytes(elf(built))
    assert environment.extension().problems == ()
    assert loads == [1]


def test_import_error_names_the_architecture_of_the_file(run_python: Callable[..., str]) -> None:
    """The dynamic linker says that it cannot open a file that is there."""
    process = architecture.process_machine()
    number, other = (183, "aarch64") if process == "x86_64" else (62, "x86_64")
    script = f"""
        import pathlib
        from pygsampler._engine import library
        file = pathlib.Path("_bridge.abi3.so").absolute()
        file.write_bytes({elf(number)!r})
        library.extension_path = lambda: file
        for _ in range(2):
            try:
                library.engine()
            except ImportError as error:
                print(str(error).replace(str(file), "FILE"))
    """
    expected = f"pygsampler: expected an engine for {process}, got FILE for {other}; install the "
    assert [line[: len(expected)] for line in run_python(script).splitlines()] == [expected] * 2


def test_engine_says_its_abi_and_architecture() -> None:
    part = environment.extension()
    assert part.facts["abi"] == "abi3"
    assert part.facts["architecture"] == architecture.process_machine()
    assert ("ABI", "abi3, for CPython 3.10 and newer") in part.lines
    assert part.problems == ()


@pytest.mark.parametrize(
    ("tag", "libc", "line"),
    [
        (
            "cp310-abi3-manylinux_2_28_x86_64",
            ("glibc", "2.36"),
            ("glibc", "2.36; the wheel asks for 2.28"),
        ),
        ("cp310-abi3-linux_x86_64", ("glibc", "2.36"), None),
        (None, ("glibc", "2.36"), None),
        ("cp310-abi3-manylinux_2_28_x86_64", ("", ""), None),
    ],
)
def test_glibc_stands_beside_what_the_wheel_asks_for(
    monkeypatch: pytest.MonkeyPatch,
    tag: str | None,
    libc: tuple[str, str],
    line: tuple[str, str] | None,
) -> None:
    monkeypatch.setattr(environment, "_wheel_tag", lambda: tag)
    monkeypatch.setattr(platform, "libc_ver", lambda: libc)
    part = environment.extension()
    assert part.facts["wheel"] == tag
    assert [entry for entry in part.lines if entry[0] == "glibc"] == ([line] if line else [])


def test_oldest_python_is_the_one_that_the_build_asks_for() -> None:
    """The doctor names what setup.py compiles for, and pip what pyproject.toml names."""
    root = Path(__file__).parents[2]
    oldest = environment._OLDEST
    assert f"ABI = ({oldest.replace('.', ', ')})\n" in (root / "setup.py").read_text()
    assert f'requires-python = ">={oldest}"\n' in (root / "pyproject.toml").read_text()


def test_wheel_tag_is_the_one_of_the_installed_wheel(tmp_path: Path) -> None:
    folder = tmp_path / "pygsampler-1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: pygsampler\nVersion: 1\n")
    code = "from pygsampler._cli.doctor.environment import _wheel_tag; print(_wheel_tag())"

    def tag() -> str:
        path = os.pathsep.join([str(tmp_path), str(Path(library.__file__).parents[2])])
        command = [sys.executable, "-c", code]
        environment = {**os.environ, "PYTHONPATH": path}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    assert tag() == "None"
    (folder / "WHEEL").write_text("Wheel-Version: 1.0\nTag: cp310-abi3-manylinux_2_28_aarch64\n\n")
    assert tag() == "cp310-abi3-manylinux_2_28_aarch64"
