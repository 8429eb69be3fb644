"""Compiles the kernels, with NVRTC: no nvcc and no GPU needed.

``python kernels/compile.py`` makes of every .cu file here one image for each architecture, and
puts them into ``compiled/``, which Go embeds: ``neighbor.sm_90.bz2`` is machine code, which runs on
its own architecture and on later ones of the same major version, and ``neighbor.compute_75.bz2``
is PTX, which the driver compiles where no machine code fits. ``compiled/sources`` has the digests
of what they were made of. ``python kernels/compile.py sm_90 ...`` makes those architectures alone;
of the others it keeps what was made before of the same sources. ``python kernels/compile.py
--native`` prints those that this machine needs, and compiles nothing.

An image is kept under ``build/kernels/`` with the digest of all that decides it, and is never made
twice. Nothing in ``compiled/`` is older than the sources: what is not of them is removed.

NVRTC is a package of PyPI, nvidia-cuda-nvrtc-cu12. Machine code of CUDA 12.9 runs on every driver
from 525 on.
"""

from __future__ import annotations

import ctypes
import fcntl
import gzip
import hashlib
import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

try:  # 430 KiB for the machine code of a .cu file, where gzip has 600
    import bz2 as packer

    SUFFIX = ".bz2"
except ImportError:  # a Python that was compiled without libbz2
    packer = gzip  # type: ignore[misc]
    SUFFIX = ".gz"

# PTX for the oldest alone: it serves the devices that come after the newest one here, too.
ARCHITECTURES = (
    *("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"),
    "compute_75",
)
OPTIONS = ("-std=c++17",)
PACKAGE = "nvidia-cuda-nvrtc-cu12"
HERE = Path(__file__).resolve().parent
COMPILED = HERE / "compiled"
CACHE = HERE.parent / "build" / "kernels"

# ---- the GPUs of this machine ----------------------------------------------------------------

# What the kernel's module of the driver says of itself, where it is loaded.
MODULE = Path("/proc/driver/nvidia/version")
NO_DEVICE = 100
MAJOR, MINOR = 75, 76


def capabilities() -> set[tuple[int, int]] | None:
    """Compute capabilities of the GPUs that the driver shows, None where it cannot tell."""
    # With a module there is a GPU, which a container or CUDA_VISIBLE_DEVICES hides for now.
    none: set[tuple[int, int]] | None = None if MODULE.exists() else set()
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return none
    status = driver.cuInit(0)
    if status == NO_DEVICE:
        return none
    count = ctypes.c_int()
    if status or driver.cuDeviceGetCount(ctypes.byref(count)):
        return None
    found = set()
    for index in range(count.value):
        device, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        if (
            driver.cuDeviceGet(ctypes.byref(device), index)
            or driver.cuDeviceGetAttribute(ctypes.byref(major), MAJOR, device)
            or driver.cuDeviceGetAttribute(ctypes.byref(minor), MINOR, device)
        ):
            return None
        found.add((major.value, minor.value))
    return found


def native() -> list[str]:
    """What the GPUs here would get of all architectures, and PTX; all where nobody can tell.

    PTX alone would not do for a GPU that is here: a driver takes none of a newer CUDA than its own.
    """
    found = capabilities()
    if found is None:
        return list(ARCHITECTURES)
    best = set()
    for major, minor in found:
        # As Choose of kernels.go: of the same major version the newest that is not newer.
        fits = [
            number
            for name in ARCHITECTURES
            if name.startswith("sm_") and (number := int(name[3:])) // 10 == major
            if number % 10 <= minor
        ]
        best.update(f"sm_{number}" for number in fits[-1:])
    return [name for name in ARCHITECTURES if name in best or name.startswith("compute_")]


# ---- one image -------------------------------------------------------------------------------


def nvrtc() -> Path:
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for library in Path(folder).glob("cuda_nvrtc/lib/libnvrtc.so.12"):
            return library
    raise SystemExit(f"pygsampler: no NVRTC; install it with: pip install {PACKAGE}==12.9.86")


def compile_kernel(source: Path, architecture: str) -> bytes:
    """A cubin, or PTX; SystemExit with the compiler's log where the source does not compile."""
    library = ctypes.CDLL(str(nvrtc()))
    program = ctypes.c_void_p()
    size = ctypes.c_size_t()
    options = [f"--gpu-architecture={architecture}", *OPTIONS, f"-I{source.parent}"]
    given = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    library.nvrtcCreateProgram(
        ctypes.byref(program), source.read_bytes(), source.name.encode(), 0, None, None
    )
    failed = library.nvrtcCompileProgram(program, len(options), given)
    library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    library.nvrtcGetProgramLog(program, log)
    if failed or log.value:
        print(f"{source.name} for {architecture}:\n{log.value.decode()}", file=sys.stderr)
    if failed:
        raise SystemExit(1)
    kind = "PTX" if architecture.startswith("compute_") else "CUBIN"
    getattr(library, f"nvrtcGet{kind}Size")(program, ctypes.byref(size))
    image = ctypes.create_string_buffer(size.value)
    if size.value == 0 or getattr(library, f"nvrtcGet{kind}")(program, image):
        raise SystemExit(f"pygsampler: NVRTC made no image of {source.name} for {architecture}")
    return image.raw


# ---- what an image is made of ----------------------------------------------------------------


def closure(source: Path) -> list[Path]:
    """The file and all that it includes of ours."""
    seen: set[Path] = set()
    todo = [source]
    while todo:
        file = todo.pop()
        if file in seen or not file.is_file():
            continue
        seen.add(file)
        todo += [
            file.parent / name
            for name in re.findall(r'(?m)^\s*#\s*include\s+"(.+)"', file.read_text())
        ]
    return sorted(seen)


def place(source: Path, architecture: str) -> Path:
    """Where the cache has the image."""
    digest = hashlib.sha256()
    version = importlib.metadata.version(PACKAGE)
    for word in (PACKAGE, version, architecture, *OPTIONS):
        digest.update(f"{word}\n".encode())
    for file in closure(source):
        digest.update(f"{file.name} {hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return CACHE / f"{source.stem}.{architecture}.{digest.hexdigest()[:16]}{SUFFIX}"


# ---- all images ------------------------------------------------------------------------------


def make(source: Path, architecture: str) -> None:
    """Fills the cache; in a process of its own, since NVRTC compiles one at a time in each."""
    kept = place(source, architecture)
    with tempfile.TemporaryDirectory(dir=CACHE) as work:
        made = Path(work) / "image"
        command = [sys.executable, __file__, "--one", str(source), architecture, str(made)]
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            raise SystemExit(f"pygsampler: a kernel does not compile\n{done.stderr}")
        sys.stderr.write(done.stderr)
        # Whoever changed a source meanwhile gets a name that fits it at the next call.
        if place(source, architecture) == kept:
            made.rename(kept)


def make_all(sources: list[Path], architectures: list[str]) -> None:
    todo = [
        (source, architecture)
        for source in sources
        for architecture in architectures
        if not place(source, architecture).is_file()
    ]
    if not todo:
        return
    start = time.monotonic()
    # Each takes 200 MiB, and a container may have fewer cores than it sees.
    with ThreadPoolExecutor(min(16, len(os.sched_getaffinity(0)))) as pool:
        running = [pool.submit(make, *unit) for unit in todo]
        try:
            for unit in running:
                unit.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    seconds = time.monotonic() - start
    print(f"pygsampler: compiled {len(todo)} images of kernels in {seconds:.0f} s", flush=True)


def install(sources: list[Path]) -> None:
    """Makes ``compiled/`` hold what the cache has of these sources, and nothing else."""
    wanted = {}
    for source in sources:
        for architecture in ARCHITECTURES:
            image = place(source, architecture)
            if image.is_file():
                wanted[f"{source.stem}.{architecture}{SUFFIX}"] = image.read_bytes()
    files = sorted({file for source in sources for file in closure(source)})
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files]
    wanted["sources"] = "".join(lines).encode()
    for file in COMPILED.iterdir():
        if file.name not in wanted and file.name != ".gitignore":
            file.unlink()
    for name, content in wanted.items():
        file = COMPILED / name
        # Untouched where it is the same: Go's cache looks at times before it looks at content.
        if not file.is_file() or file.read_bytes() != content:
            with tempfile.NamedTemporaryFile(dir=CACHE, delete=False) as new:
                new.write(content)
            os.chmod(new.name, 0o644)
            os.replace(new.name, file)


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--one"]:
        source, architecture, output = arguments[1:]
        Path(output).write_bytes(packer.compress(compile_kernel(Path(source), architecture)))
        return
    if arguments == ["--native"]:
        print(*native())
        return
    unknown = [name for name in arguments if name not in ARCHITECTURES]
    if unknown:
        raise SystemExit(f"pygsampler: expected of {', '.join(ARCHITECTURES)}; got {unknown[0]}")
    nvrtc()
    sources = sorted(HERE.glob("*.cu"))
    CACHE.mkdir(parents=True, exist_ok=True)
    COMPILED.mkdir(exist_ok=True)
    with open(CACHE / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            make_all(sources, arguments or list(ARCHITECTURES))
        finally:
            install(sources)


if __name__ == "__main__":
    main(sys.argv[1:])
