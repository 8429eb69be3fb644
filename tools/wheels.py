#!/usr/bin/env python3
"""Makes the wheels that go to PyPI: one for each architecture, for CPython 3.10 and newer.

``make wheels`` builds the wheel of this machine, ``make wheels ARCH='x86_64 aarch64'`` both. They
are written to wheelhouse/, with a report in wheels.json. Each is for manylinux_2_28, and of the
stable ABI: the same file serves every CPython.

The C parts are compiled by zig (the package ziglang of PyPI), for either architecture, against the
headers and the symbol versions of glibc 2.28, whatever this machine has: gcc would link them to the
newest versions here. The extension asks for less than 2.28, which is the oldest version that has
all that the package uses at run time (os.memfd_create, for forked workers, came with 2.27).

Each wheel is checked (auditwheel, abi3audit, and the libraries, exports and names of the
extension). The wheel of this machine is then installed into a fresh environment and tried with
tools/smoke.py, where PATH leads to no compiler and no Go. tests/packaging tries it on other
Pythons, and the wheel of aarch64 under emulation.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GLIBC = (2, 28)
ARCHITECTURES = ("x86_64", "aarch64")
HOUSE = ROOT / "wheelhouse"
WORK = ROOT / "build" / "wheels"
SMOKE = ROOT / "tools" / "smoke.py"
# All that a library of the C language alone may need; before glibc 2.34 it came in several files.
LIBRARIES = {
    *("libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0"),
    "ld-linux-aarch64.so.1",
}
ENTRY = "PyInit__bridge"
MOST_BYTES = 24_000_000


@dataclass(frozen=True)
class Wheel:
    """An entry of the report; sizes in bytes, durations in seconds.

    ``sample`` is the digest that tools/smoke.py prints, or None where this machine does not run
    the wheel.
    """

    architecture: str
    file: str
    size: int
    extension: int
    glibc: str
    build_seconds: float
    sample: str | None


def platform_tag(architecture: str) -> str:
    """The tag of the wheel's platform: ``manylinux_2_28_x86_64``."""
    return f"manylinux_{GLIBC[0]}_{GLIBC[1]}_{architecture}"


# ---- one wheel -------------------------------------------------------------------------------


def run(command: list[str], log: Path, env: Mapping[str, str], cwd: Path = ROOT) -> str:
    """Returns the output of a command; SystemExit with the end of the output if it fails."""
    with open(log, "a") as file:
        print("+", shlex.join(command), file=file, flush=True)
        done = subprocess.run(
            command, cwd=cwd, env=dict(env), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        file.write(done.stdout)
    if done.returncode:
        tail = "\n".join(done.stdout.splitlines()[-30:])
        raise SystemExit(f"{tail}\nwheels: {shlex.join(command[:3])} failed; all of it: {log}")
    return done.stdout


def compiler(architecture: str) -> Path:
    """Writes a script that is zig as a C compiler for glibc 2.28.

    mumax/3 names folders of this machine's own headers and libraries, which are of another glibc,
    so they are taken out. zig checks for undefined behaviour in what is not optimised unless told
    not to, and the checks would want a library.
    """
    target = f"{architecture}-linux-gnu.{GLIBC[0]}.{GLIBC[1]}"
    script = WORK / f"cc-{architecture}"
    script.write_text(
        "#!/bin/sh\n"
        "for a; do\n"
        "  shift\n"
        '  case $a in -I/usr/*|-L/usr/*|-I/opt/*|-L/opt/*) ;; *) set -- "$@" "$a" ;; esac\n'
        "done\n"
        f"exec {shlex.quote(sys.executable)} -m ziglang cc -target {target} "
        '-fno-sanitize=undefined -Wno-macro-redefined "$@"\n'
    )
    script.chmod(0o755)
    return script


def build(architecture: str, log: Path, folder: Path) -> Path:
    """Builds a wheel as pip would, but with zig and without a download."""
    env = {
        **os.environ,
        "CC": str(compiler(architecture)),
        "PYGSAMPLER_TARGET": architecture,
        "ZIG_GLOBAL_CACHE_DIR": str(ROOT / "build" / "zig"),
        "ZIG_LOCAL_CACHE_DIR": str(ROOT / "build" / "zig"),
    }
    code = "import setup, sys; setup.build_wheel(sys.argv[1])"
    run([sys.executable, "-W", "ignore", "-c", code, str(folder)], log, env)
    (wheel,) = folder.glob("*.whl")
    return wheel


def audit(wheel: Path, architecture: str, log: Path, house: Path) -> Path:
    """Moves the wheel into ``house`` under its final name, which auditwheel gives if it holds."""
    scripts = sysconfig.get_path("scripts")
    env = {**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}
    tag = platform_tag(architecture)
    run([sys.executable, "-m", "auditwheel", "show", str(wheel)], log, env)
    # The tag of an older glibc would hold for the extension, but not for all of the package.
    # auditwheel accepts the tags of the machine that it runs on, so it runs as if on the wheel's.
    code = (
        f"import platform; platform.machine = lambda: {architecture!r}; "
        "from auditwheel.main import main; raise SystemExit(main())"
    )
    repair = [sys.executable, "-c", code, "repair", "--plat", tag, "--only-plat"]
    with tempfile.TemporaryDirectory(dir=WORK) as work:
        run([*repair, "-w", work, str(wheel)], log, env)
        (made,) = Path(work).glob(f"*-cp310-abi3-{tag}.whl")
        # Every symbol of Python that it asks for has to be of the stable ABI of 3.10.
        run([sys.executable, "-m", "abi3audit", "--strict", "--verbose", str(made)], log, env)
        return Path(shutil.move(made, house / made.name))


def inspect(content: bytes, scratch: Path) -> tuple[int, ...]:
    """Returns the newest glibc that the extension asks for; SystemExit if it breaks a rule."""
    from elftools.elf.elffile import ELFFile
    from elftools.elf.gnuversions import GNUVerNeedSection

    scratch.write_bytes(content)
    with open(scratch, "rb") as file:
        elf = ELFFile(file)
        tags = list(elf.get_section_by_name(".dynamic").iter_tags())
        needed = {tag.needed for tag in tags if tag.entry.d_tag == "DT_NEEDED"}
        paths = [tag for tag in tags if tag.entry.d_tag in ("DT_RPATH", "DT_RUNPATH")]
        shown = [
            symbol.name
            for symbol in elf.get_section_by_name(".dynsym").iter_symbols()
            if symbol.entry.st_shndx != "SHN_UNDEF" and symbol.name
        ]
        versions = {
            auxiliary.name
            for section in elf.iter_sections()
            if isinstance(section, GNUVerNeedSection)
            for _, asked in section.iter_versions()
            for auxiliary in asked
        }
    if not versions or not needed <= LIBRARIES or paths or shown != [ENTRY]:
        raise SystemExit(
            f"wheels: expected an extension that needs {sorted(LIBRARIES)} at most, has no search "
            f"path and exports {ENTRY} alone, got needs {sorted(needed)}, {len(paths)} search "
            f"paths, exports {shown[:9]}, versions {sorted(versions)[:9]}"
        )
    newest = max(tuple(map(int, re.findall(r"\d+", name))) for name in versions)
    if newest > GLIBC:
        wanted, got = (".".join(map(str, version)) for version in (GLIBC, newest))
        raise SystemExit(
            f"wheels: expected symbols up to glibc {wanted}, got {got}; zig compiles for {wanted}"
        )
    if str(ROOT).encode() in content:
        raise SystemExit(f"wheels: the extension names a folder of this machine, {ROOT}")
    return newest


def kernel_images(content: bytes) -> set[str]:
    """Returns the names of the kernels' images that an extension has, such as neighbor.sm_90."""
    return {
        f"{kernel.decode()}.{kind.decode()}_{number}"
        for kernel, kind, numbers in re.findall(
            rb"compiled/(\w+?)\.(sm|compute)_([\d-]+)\.(?:xz|gz)", content
        )
        for number in numbers.decode().split("-")
    }


def images(content: bytes) -> list[str]:
    """Returns the GPU architectures that every kernel of an extension has an image for."""
    names = kernel_images(content)
    kernels = {name.partition(".")[0] for name in names}
    found = {name.partition(".")[2] for name in names}
    return sorted(one for one in found if all(f"{kernel}.{one}" in names for kernel in kernels))


def architectures(target: str) -> list[str]:
    """Returns the GPU architectures of a target, as kernels/compile.py has them."""
    code = "import compile; print(*compile.architectures())"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT / "kernels", capture_output=True, text=True,
        check=True, env={**os.environ, "PYGSAMPLER_TARGET": target},
    )  # fmt: skip
    return sorted(done.stdout.split())


def smoke(wheel: Path, log: Path) -> str:
    """Returns the sample digest that tools/smoke.py prints in a fresh environment."""
    with tempfile.TemporaryDirectory(prefix="pygsampler-wheel-") as work:
        run([sys.executable, "-m", "venv", f"{work}/env"], log, os.environ)
        scripts = f"{work}/env/bin"
        keep = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        # No Go and no compiler, also not for what the package depends on.
        env = {**keep, "PATH": scripts, "HOME": work}
        pip = [f"{scripts}/python", "-m", "pip", "install", "-q", "--only-binary", ":all:"]
        run([*pip, f"{wheel}[cli]", "numpy"], log, env, Path(work))
        command = [f"{scripts}/python", "-W", "error", str(SMOKE)]
        line = run(command, log, env, Path(work)).splitlines()[-1]
        return str(json.loads(line)["sample"])


def make(architecture: str) -> Wheel:
    log = WORK / f"{architecture}.log"
    log.unlink(missing_ok=True)
    start = time.monotonic()
    with tempfile.TemporaryDirectory(dir=WORK) as work:
        wheel = audit(build(architecture, log, Path(work)), architecture, log, HOUSE)
        seconds = time.monotonic() - start
        with zipfile.ZipFile(wheel) as archive:
            (name,) = (name for name in archive.namelist() if name.endswith(".so"))
            content = archive.read(name)
        newest = inspect(content, Path(work) / "extension.so")
    every, named = architectures(architecture), os.environ.get("PYGSAMPLER_ARCHITECTURES", "")
    got, wanted = images(content), named.replace(",", " ").split() or every
    if not set(wanted) <= set(got) <= set(every):
        raise SystemExit(f"wheels: expected kernels for {wanted}, got {got}; build it once more")
    if wheel.stat().st_size > MOST_BYTES:
        raise SystemExit(
            f"wheels: {wheel.name}: expected at most {MOST_BYTES} bytes, got {wheel.stat().st_size}"
        )
    return Wheel(
        architecture=architecture,
        file=wheel.name,
        size=wheel.stat().st_size,
        extension=len(content),
        glibc=".".join(map(str, newest)),
        build_seconds=round(seconds, 1),
        sample=smoke(wheel, log) if architecture == platform.machine() else None,
    )


# ---- all of them -----------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "architectures", nargs="*", metavar="ARCH", help="x86_64, aarch64; this machine's if none"
    )
    architectures = parser.parse_args().architectures or [platform.machine()]
    if unknown := sorted(set(architectures) - set(ARCHITECTURES)):
        raise SystemExit(
            f"wheels: ARCH: expected {' or '.join(ARCHITECTURES)}, got {', '.join(unknown)}"
        )
    if importlib.util.find_spec("_lzma") is None:
        raise SystemExit(
            "wheels: expected a Python with liblzma, which packs the kernels, got one without; "
            "name another one: make wheels PYTHON=python3.12"
        )
    shutil.rmtree(HOUSE, ignore_errors=True)
    HOUSE.mkdir()
    WORK.mkdir(parents=True, exist_ok=True)
    wheels = []
    for architecture in architectures:
        print(f"{architecture}: building", flush=True)
        wheel = make(architecture)
        wheels.append(wheel)
        tried = f"sample {wheel.sample}" if wheel.sample else "not tried on this machine"
        print(
            f"  {wheel.file}\n"
            f"  {wheel.size / 2**20:.2f} MiB, extension {wheel.extension / 2**20:.2f} MiB; asks "
            f"for glibc {wheel.glibc}; built in {wheel.build_seconds} s; {tried}",
            flush=True,
        )
    report = {"wheels": [asdict(wheel) for wheel in wheels]}
    (HOUSE / "wheels.json").write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
