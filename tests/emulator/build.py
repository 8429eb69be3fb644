"""Makes a libcuda.so.1 that runs the kernels of ``kernels/`` on the CPU.

    python tests/emulator/build.py FOLDER [--sanitize]

It is compiled once for each state of its sources, in ``build/emulator``, and linked into FOLDER. A
process that starts with FOLDER in LD_LIBRARY_PATH has a GPU that is none; see README.md here.
Beside it is a libnvrtc.so.12 for kernels that are compiled at run time, which calls

    python tests/emulator/build.py --image FILE.cu [-DNAME=VALUE ...]
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
KERNELS = ROOT / "kernels"
DRIVER = ROOT / "gpu" / "shim" / "testdata"
CACHE = ROOT / "build" / "emulator"

# As many as the tests compile, of 70 kB each: many of them ask for the same ones.
IMAGES = 1000
WARNINGS = ["-Wall", "-Wextra", "-Werror"]
# CUDA C++ wraps and aliases where it likes, and has pragmas of its own.
CUDA = ["-std=c++17", "-O1", "-w", "-fno-strict-aliasing", "-fwrapv"]
# races.cpp has what these call; the kernels alone are compiled so.
RACES = ["-fsanitize=thread", "--param=tsan-distinguish-volatile=1"]
SANITIZE = ["-fsanitize=address,undefined", "-fno-omit-frame-pointer"]

DYNAMIC = re.compile(
    r"\bextern\s+__shared__\s+((?:__align__\s*\(\s*\d+\s*\)\s*)?)([\w: ]+?)\s+(\w+)\s*\[\s*\]\s*;"
)
BOUNDS = r"__launch_bounds__\s*\(((?:[^()]|\([^()]*\))*)\)\s*"
ENTRY = re.compile(
    rf"__global__\s+(?:{BOUNDS})?void\s+(?:{BOUNDS})?(\w+)\s*\(\s*const\s+__grid_constant__\s+([\w:]+)\s"
)

UNIT = """\
#include "device.h"
#include "scheduler.h"
#define __shared__ static  // all that is in .bss, which becomes a section of its own
extern "C" {{
extern char __start_shared_{name}[] __attribute__((weak, visibility("hidden")));
extern char __stop_shared_{name}[] __attribute__((weak, visibility("hidden")));
}}
template <class Args, void (*kernel)(Args)>
static void call(const void* args) {{
  kernel(*(const Args*)args);
}}
// Names and types are the file's own, as they are in its cubin.
namespace {{
namespace {name}_cu {{
{body}
// kernels/common/grid.cuh has these as inline PTX, and declares them here. Loads let others run.
unsigned load_acquire(const unsigned* p) {{ return emulator::load(p); }}
unsigned load_relaxed(const unsigned* p) {{ return emulator::load(p); }}
unsigned long long load_acquire(const unsigned long long* p) {{ return emulator::load(p); }}
unsigned long long load_relaxed(const unsigned long long* p) {{ return emulator::load(p); }}
void add_release(unsigned* p, unsigned x) {{ *p += x; }}
void fence() {{}}
{entries}
}}
}}
"""
ENTRY_UNIT = """\
Kernel kernel_{name} = {{
    "{name}", sizeof({type}), call<{type}, {name}>, {threads}, {blocks},
    __start_shared_{file}, __stop_shared_{file}, nullptr,
}};
__attribute__((constructor)) void register_{name}() {{ emulator_register(&kernel_{name}); }}
"""


def kernel_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/*.cu"))


def compilers() -> tuple[list[str], list[str]] | None:
    """The commands of the C and the C++ compiler, where both are there."""
    c = shlex.split(os.environ.get("CC", "gcc"))
    cxx = shlex.split(os.environ.get("CXX", "g++"))
    return (c, cxx) if shutil.which(c[0]) and shutil.which(cxx[0]) else None


def digest(files: list[Path], *more: str) -> str:
    total = hashlib.sha256("\0".join(more).encode())
    for file in files:
        content = file.read_bytes()
        total.update(f"{file.name} {len(content)}\n".encode() + content)
    return total.hexdigest()[:20]


def unit_of(file: Path, cxx: list[str], *define: str, cwd: Path | None = None) -> str:
    """The C++ file that compiles a file of kernels. Headers are found in `cwd`, else in kernels/.

    The preprocessor has been there before, so that kernels made by macros are found. Dynamic shared
    memory is the one thing that no header can explain to g++.
    """
    define = ("-DPGS_EMULATED", "-D__CUDA_ARCH__=900", *define)
    text = subprocess.run(
        [*cxx, "-E", "-std=c++17", f"-I{'.' if cwd else KERNELS}", *define, "-x", "c++", str(file)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        cwd=cwd,
    ).stdout
    entries = []
    for before, after, name, argument in ENTRY.findall(text):
        threads, _, blocks = (before or after).partition(",")
        entries.append(
            ENTRY_UNIT.format(
                name=name,
                type=argument,
                file=file.stem,
                threads=threads or 1024,
                blocks=blocks or 1,
            )
        )
    body = DYNAMIC.sub(r"\2* const \3 = (\2*)emulator::dynamic_shared();", text)
    return UNIT.format(name=file.stem, body=body, entries="".join(entries))


def compile_all(made: Path, kernels: list[Path], flags: list[str], races: bool) -> None:
    found = compilers()
    if found is None:
        raise SystemExit("tests/emulator: expected gcc and g++ on PATH, got none or one of them")
    c, cxx = found
    # Notes for debuggers take g++ a quarter of its time.
    debug = ["-g"] if races or set(SANITIZE) <= set(flags) else []
    common = [*debug, "-fPIC", "-pthread", "-c", *flags]
    jobs: list[list[str]] = []
    for file in kernels:
        unit = made / f"{file.stem}.cpp"
        unit.write_text(unit_of(file, cxx))
        own = [*CUDA, *(RACES if races else [])]
        jobs.append([*cxx, *common, *own, f"-I{HERE}", "-o", f"{unit}.o", str(unit)])
    for name in ("scheduler", "images", *(["races"] if races else [])):
        output = str(made / f"{name}.o")
        source = str(HERE / f"{name}.cpp")
        own = ["-std=c++17", "-O2", *WARNINGS, *(["-DRACES"] if races else [])]
        jobs.append([*cxx, *common, *own, "-o", output, source])
    for name in ("fake_libcuda", "fake_work"):
        source = str(DRIVER / f"{name}.c")
        jobs.append(
            [
                *c,
                *common,
                "-O1",
                *WARNINGS,
                "-DWORKING",
                "-DEMULATED",
                "-Wno-unused-parameter",
                "-o",
                str(made / f"{name}.o"),
                source,
            ]
        )
    running = []
    for job in jobs:
        running.append((job, subprocess.Popen(job)))
        if len(running) == (os.cpu_count() or 1):
            wait(*running.pop(0))
    for pair in running:
        wait(*pair)
    for file in kernels:
        share(made / f"{file.stem}.cpp.o", file.stem)
    objects = [job[job.index("-o") + 1] for job in jobs]
    link = [
        *cxx,
        "-shared",
        "-pthread",
        *flags,
        "-static-libstdc++",
        "-static-libgcc",
        "-Wl,-Bsymbolic",
        "-Wl,-z,defs",
        "-Wl,-soname,libcuda.so.1",
        "-o",
        str(made / "libcuda.so.1"),
        *objects,
    ]
    subprocess.run(link, check=True)


def share(unit: Path, name: str) -> None:
    """Makes what a unit has in .bss the section of its shared memory."""
    # g++ ignores the section that an attribute names for variables of template functions.
    rename = f".bss=shared_{name},alloc,load,data,contents"
    subprocess.run(["objcopy", "--rename-section", rename, str(unit)], check=True)


def wait(job: list[str], process: subprocess.Popen[bytes]) -> None:
    if process.wait():
        raise SystemExit(f"tests/emulator: failed: {shlex.join(job)}")


def build(
    folder: Path,
    *,
    kernels: list[Path] | None = None,
    sanitize: bool = False,
    races: bool = False,
    flags: tuple[str, ...] = (),
) -> Path:
    """Makes ``folder``/libcuda.so.1 of the given files of kernels; of ``kernels/`` if none."""
    kernels = kernels or kernel_files(KERNELS)
    extra = [*flags, *(SANITIZE if sanitize else [])]
    inputs = sorted(
        {
            *kernels,
            *KERNELS.glob("*/*.cuh"),
            *[f for f in HERE.iterdir() if f.suffix in (".h", ".cpp")],
            Path(__file__),
            *DRIVER.glob("fake_*"),
        }
    )
    key = digest(inputs, *extra, str(races), *map(str, compilers() or ()), *map(str, kernels))
    CACHE.mkdir(parents=True, exist_ok=True)
    made = CACHE / key
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (made / "done").exists():
            shutil.rmtree(made, ignore_errors=True)
            made.mkdir()
            compile_all(made, kernels, extra, races)
            (made / "done").touch()
            for old in sorted(CACHE.glob("*/done"), key=lambda f: f.stat().st_mtime)[:-8]:
                shutil.rmtree(old.parent)
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / "libcuda.so.1"
    library.unlink(missing_ok=True)
    shutil.copy(made / "libcuda.so.1", library)
    build_nvrtc(folder)
    return folder


# ---- kernels that are compiled at run time ---------------------------------------------------


def build_nvrtc(folder: Path) -> None:
    """Makes ``folder``/libnvrtc.so.12, which has this Python run this file."""
    found = compilers()
    assert found is not None
    define = [f'-DPYTHON="{sys.executable}"', f'-DBUILD="{Path(__file__).resolve()}"']
    library = str(folder / "libnvrtc.so.12")
    flags = ["-shared", "-fPIC", "-O1", *WARNINGS, *define, "-Wl,-soname,libnvrtc.so.12"]
    subprocess.run([*found[0], *flags, "-o", library, str(HERE / "nvrtc.c")], check=True)


def least_used(folder: Path) -> list[Path]:
    """Its files, the one that was asked for last at the end. Other processes may remove some."""
    ages = {}
    for file in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):
            if file.is_file():
                ages[file] = file.stat().st_mtime
    return sorted(ages, key=ages.__getitem__)


def common_part(c: list[str], cxx: list[str], flags: list[str]) -> Path:
    """Makes the folder of what all images have in common, once for each state of the headers.

    It has the headers precompiled, which take g++ a third of its time for an image, and an empty
    libcuda.so.1, to link with.
    """
    headers = [HERE / "device.h", HERE / "scheduler.h"]
    kept = CACHE / "common" / digest([*headers, Path(__file__)], *c, *cxx, *flags)
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
            made = Path(folder)
            (made / "none.c").touch()
            driver = [*c, "-shared", "-Wl,-soname,libcuda.so.1", "-o", str(made / "libcuda.so.1")]
            subprocess.run([*driver, str(made / "none.c")], check=True)
            (made / "first.h").write_text("".join(f'#include "{h.name}"\n' for h in headers))
            compiled = ["-o", str(made / "first.h.gch"), str(made / "first.h")]
            subprocess.run([*cxx, *flags, "-x", "c++-header", *compiled], check=True)
            # Another process may have been first.
            with contextlib.suppress(OSError):
                made.rename(kept)
                made.mkdir()
    return kept


def image(file: Path, *define: str) -> None:
    """Compiles a file of kernels into a shared object, ``image`` beside it.

    It finds the emulator in the process that loads it, under the name libcuda.so.1. Equal programs
    are compiled once, as those of a build are.
    """
    found = compilers()
    if found is None:
        raise SystemExit("tests/emulator: expected gcc and g++ on PATH, got none or one of them")
    c, cxx = found
    # By its name alone: where it lies must not be in what is compiled.
    unit = unit_of(Path(file.name), cxx, *define, cwd=file.parent)
    headers = [HERE / "device.h", HERE / "scheduler.h", Path(__file__)]
    races = RACES if os.environ.get("EMULATOR_RACES") else []
    kept = CACHE / "images" / digest(headers, unit, *cxx, *races)
    if not kept.exists():
        # A program is compiled for a few small batches: -O1 would take longer than it runs. -O0
        # takes g++ longer than -Og, and its code is larger.
        flags = ["-fPIC", "-pthread", "-fno-gnu-unique", *CUDA, f"-I{HERE}"]
        flags += ["-g", *races] if races else ["-Og"]
        common = common_part(c, cxx, flags)
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
            made = Path(folder)
            (made / "unit.cpp").write_text(unit)
            unit_o = made / "unit.o"
            first = ["-include", str(common / "first.h")]
            if subprocess.run(
                [*cxx, *flags, *first, "-c", "-o", str(unit_o), str(made / "unit.cpp")]
            ).returncode:
                raise SystemExit(1)
            share(unit_o, file.stem)
            link = [*cxx, "-shared", "-static-libstdc++", "-static-libgcc", "-Wl,-Bsymbolic"]
            parts = [str(unit_o), "-Wl,--no-as-needed", str(common / "libcuda.so.1")]
            subprocess.run([*link, "-o", str(made / "image"), *parts], check=True)
            (made / "image").rename(kept)
        for old in least_used(kept.parent)[:-IMAGES]:
            old.unlink(missing_ok=True)
    os.utime(kept)
    shutil.copy(kept, file.parent / "image")


def main() -> None:
    if sys.argv[1:2] == ["--image"]:
        return image(Path(sys.argv[2]), *sys.argv[3:])
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--sanitize", action="store_true", help="with ASan and UBSan; README.md says how to run it"
    )
    parser.add_argument(
        "--races", action="store_true", help="finds hazards in shared memory, as README.md says"
    )
    arguments = parser.parse_args()
    build(arguments.folder, sanitize=arguments.sanitize, races=arguments.races)
    print(arguments.folder / "libcuda.so.1")


if __name__ == "__main__":
    main()
