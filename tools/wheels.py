#!/usr/bin/env python3
"""Makes the wheels that go to PyPI: one for each CPython, for manylinux_2_28 on x86-64.

``make wheels`` builds those of every Python that pyproject.toml names; ``make wheels
VERSIONS='3.11 3.12'`` those alone. They lie in wheelhouse/, with a report in wheels.json.

The C parts are compiled by zig (the package ziglang of PyPI), against the headers and the symbol
versions of glibc 2.28, whatever this machine has: gcc would link them to the newest versions here.
2.28 is not what the extension asks for, which is less; it is the oldest that has all that the
package uses at run time (os.memfd_create, for forked workers, came with 2.27).

Kernels are compiled once (build/kernels), and Go compiles each package once for all interpreters:
only the glue of gopy differs. Each wheel is checked (auditwheel, and what the extension needs,
exports and names), installed into a fresh environment, and tried there with tools/smoke.py, where
PATH leads to no compiler and no Go. All wheels must sample the same edges.
"""

from __future__ import annotations

import argparse
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
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GLIBC = (2, 28)
PLATFORM = f"manylinux_{GLIBC[0]}_{GLIBC[1]}_x86_64"
HOUSE = ROOT / "wheelhouse"
WORK = ROOT / "build" / "wheels"
SMOKE = ROOT / "tools" / "smoke.py"
# All that a library of the C language alone may need; before glibc 2.34 it came in several files.
LIBRARIES = {"libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0"}
ENTRY = "PyInit__bridge"


@dataclass(frozen=True)
class Wheel:
    """What the report says of a wheel; sizes in bytes, durations in seconds."""

    python: str
    interpreter: str
    file: str
    size: int
    extension: int
    glibc: str
    build_seconds: float
    sample: str


# ---- interpreters ----------------------------------------------------------------------------

# An interpreter that can build: CPython with a GIL, its headers, and what makes environments.
_PROBE = """
import ensurepip, os, platform, sys, sysconfig, venv
os.stat(os.path.join(sysconfig.get_path("include"), "Python.h"))
soabi = sysconfig.get_config_var("SOABI").split("-")[1]
print(platform.python_implementation(), "%d.%d" % sys.version_info[:2], soabi, sys.executable)
"""


def supported() -> list[str]:
    """The versions that pyproject.toml names."""
    text = (ROOT / "pyproject.toml").read_text()
    return re.findall(r'"Programming Language :: Python :: (3\.\d+)"', text)


def candidates(version: str, env: Mapping[str, str] = os.environ) -> Iterator[Path]:
    """Where an interpreter of that version may be: PATH, then pyenv's and uv's folders."""
    name = f"python{version}"
    for folder in env.get("PATH", "").split(os.pathsep):
        for file in (Path(folder) / name, Path(folder) / "python3"):
            if folder and file.is_file():
                yield file
    home = Path(env.get("HOME", "/"))
    pyenv = Path(env.get("PYENV_ROOT") or home / ".pyenv") / "versions"
    share = Path(env.get("XDG_DATA_HOME") or home / ".local" / "share")
    uv = Path(env.get("UV_PYTHON_INSTALL_DIR") or share / "uv" / "python")
    for folder, pattern in ((pyenv, f"{version}.*"), (uv, f"cpython-{version}.*")):
        for file in sorted(folder.glob(f"{pattern}/bin/{name}"), reverse=True):
            yield file


def usable(file: Path, version: str) -> str | None:
    """The interpreter behind a candidate (pyenv's are scripts), if it is the one wanted."""
    try:
        done = subprocess.run(
            [file, "-I", "-c", _PROBE], cwd="/", capture_output=True, text=True, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    words = done.stdout.split(maxsplit=3)
    if done.returncode or len(words) != 4:
        return None
    implementation, found, soabi, executable = words
    if (implementation, found, soabi) != ("CPython", version, version.replace(".", "")):
        return None
    return executable.strip()


def interpreters(versions: Iterable[str], env: Mapping[str, str] = os.environ) -> dict[str, str]:
    """One for each version; SystemExit that names those which are not there."""
    found: dict[str, str] = {}
    missing = []
    for version in versions:
        at = (usable(file, version) for file in candidates(version, env))
        executable = next((path for path in at if path), None)
        if executable is None:
            missing.append(version)
        else:
            found[version] = executable
    if missing:
        raise SystemExit(
            f"wheels: no CPython {', '.join(missing)} with Python.h and venv on PATH or in "
            f"pyenv's or uv's folders; install each (pyenv install {missing[0]}, uv python install "
            f"{missing[0]}, apt-get install python{missing[0]}-dev python{missing[0]}-venv), "
            f"or name the versions to build: make wheels VERSIONS='{' '.join(found) or '3.11'}'"
        )
    return found


# ---- one wheel -------------------------------------------------------------------------------


def run(command: list[str], log: Path, env: Mapping[str, str], cwd: Path = ROOT) -> str:
    """What it printed; where it fails, the end of its log and no more."""
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


def compiler() -> Path:
    """A script that is zig as a C compiler for glibc 2.28.

    mumax/3 names folders of this machine's own headers and libraries, which are of another glibc,
    so they are taken out. zig checks for undefined behaviour in what is not optimised unless told
    not to, and the checks would want a library.
    """
    import ziglang

    zig = Path(ziglang.__file__).parent / "zig"
    target = f"x86_64-linux-gnu.{GLIBC[0]}.{GLIBC[1]}"
    script = WORK / "cc"
    script.write_text(
        "#!/bin/sh\n"
        "for a; do\n"
        "  shift\n"
        '  case $a in -I/usr/*|-L/usr/*|-I/opt/*|-L/opt/*) ;; *) set -- "$@" "$a" ;; esac\n'
        "done\n"
        f"exec {shlex.quote(str(zig))} cc -target {target} -fno-sanitize=undefined "
        '-Wno-macro-redefined "$@"\n'
    )
    script.chmod(0o755)
    return script


def build(interpreter: str, log: Path, folder: Path) -> Path:
    """A wheel as this interpreter's pip would build it, but with zig and without a download."""
    env = {
        **os.environ,
        "CC": str(compiler()),
        # The build requirements are plain Python, or not of Python at all: one copy serves all.
        "PYTHONPATH": sysconfig.get_path("purelib"),
        "PYTHONNOUSERSITE": "1",
        "ZIG_GLOBAL_CACHE_DIR": str(ROOT / "build" / "zig"),
        "ZIG_LOCAL_CACHE_DIR": str(ROOT / "build" / "zig"),
    }
    code = "import setup, sys; setup.build_wheel(sys.argv[1])"
    run([interpreter, "-W", "ignore", "-c", code, str(folder)], log, env)
    (wheel,) = folder.glob("*.whl")
    return wheel


def audit(wheel: Path, log: Path, house: Path) -> Path:
    """The wheel under its new name, which auditwheel gives only where it holds."""
    scripts = sysconfig.get_path("scripts")
    env = {**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}
    tool = [sys.executable, "-m", "auditwheel"]
    run([*tool, "show", str(wheel)], log, env)
    # The tag of an older glibc would hold for the extension, but not for all of the package.
    plat = ["--plat", PLATFORM, "--only-plat"]
    with tempfile.TemporaryDirectory(dir=WORK) as work:
        run([*tool, "repair", *plat, "-w", work, str(wheel)], log, env)
        (made,) = Path(work).glob(f"*{PLATFORM}.whl")
        return Path(shutil.move(made, house / made.name))


def inspect(content: bytes, scratch: Path) -> tuple[int, ...]:
    """The newest glibc that the extension asks for; SystemExit where it does what it must not."""
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
        raise SystemExit(f"wheels: expected symbols up to glibc {GLIBC}, got {newest}")
    if str(ROOT).encode() in content:
        raise SystemExit(f"wheels: the extension names a folder of this machine, {ROOT}")
    return newest


def smoke(wheel: Path, interpreter: str, log: Path) -> str:
    """What tools/smoke.py says in a fresh environment of that interpreter."""
    with tempfile.TemporaryDirectory(prefix="pygsampler-wheel-") as work:
        run([interpreter, "-m", "venv", f"{work}/env"], log, os.environ)
        scripts = f"{work}/env/bin"
        keep = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        # No Go and no compiler, also not for what the package depends on.
        env = {**keep, "PATH": scripts, "HOME": work}
        pip = [f"{scripts}/python", "-m", "pip", "install", "-q", "--only-binary", ":all:"]
        run([*pip, f"{wheel}[cli]", "numpy"], log, env, Path(work))
        command = [f"{scripts}/python", "-W", "error", str(SMOKE)]
        return run(command, log, env, Path(work)).splitlines()[-1]


def make(version: str, interpreter: str) -> Wheel:
    log = WORK / f"{version}.log"
    log.unlink(missing_ok=True)
    start = time.monotonic()
    with tempfile.TemporaryDirectory(dir=WORK) as work:
        wheel = audit(build(interpreter, log, Path(work)), log, HOUSE)
        seconds = time.monotonic() - start
        with zipfile.ZipFile(wheel) as archive:
            (name,) = (name for name in archive.namelist() if name.endswith(".so"))
            content = archive.read(name)
        newest = inspect(content, Path(work) / "extension.so")
    tried = json.loads(smoke(wheel, interpreter, log))
    return Wheel(
        python=tried["python"],
        interpreter=interpreter,
        file=wheel.name,
        size=wheel.stat().st_size,
        extension=len(content),
        glibc=".".join(map(str, newest)),
        build_seconds=round(seconds, 1),
        sample=tried["sample"],
    )


# ---- all of them -----------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("versions", nargs="*", help="such as 3.11; all that are supported if none")
    versions = parser.parse_args().versions or supported()
    if unknown := sorted(set(versions) - set(supported())):
        raise SystemExit(f"wheels: expected of {', '.join(supported())}; got {', '.join(unknown)}")
    if platform.machine() != "x86_64":
        raise SystemExit(f"wheels: expected an x86-64 machine, got {platform.machine()}")
    found = interpreters(versions)
    shutil.rmtree(HOUSE, ignore_errors=True)
    HOUSE.mkdir()
    WORK.mkdir(parents=True, exist_ok=True)
    made = []
    for version, interpreter in found.items():
        print(f"CPython {version}: {interpreter}", flush=True)
        wheel = make(version, interpreter)
        made.append(wheel)
        print(
            f"  {wheel.file}\n"
            f"  {wheel.size / 2**20:.2f} MiB, extension {wheel.extension / 2**20:.2f} MiB; asks "
            f"for glibc {wheel.glibc}; built in {wheel.build_seconds} s; tried on {wheel.python}",
            flush=True,
        )
    if len({wheel.sample for wheel in made}) != 1:
        raise SystemExit(f"wheels: not all sample alike: {[(w.file, w.sample) for w in made]}")
    report = {"platform": PLATFORM, "wheels": [asdict(wheel) for wheel in made]}
    (HOUSE / "wheels.json").write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
