"""Compiles the kernels, with NVRTC: no nvcc and no GPU needed.

``python kernels/compile.py`` makes of every .cu file in the folders here one image for each
architecture of the target, and packs them into ``compiled/``, which Go embeds:
``neighbor.sm_80-86-89.xz`` has machine code for three architectures, and ``neighbor.compute_75.xz``
is PTX, which the driver compiles where no machine code fits. Images have the names of their files
without the folder. ``compiled/sources`` has the digests of what they were made of. ``python
kernels/compile.py sm_90 ...`` makes those architectures alone; of the others it keeps what was made
before of the same sources. ``python kernels/compile.py --native`` prints those that this machine
needs, and compiles nothing. The target is this machine, or the one that PYGSAMPLER_TARGET names.

An image is kept under ``build/kernels/`` with the digest of all that decides it, and is never made
twice. Nothing in ``compiled/`` is older than the sources: what is not of them, or not for the
target, is removed.

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
import itertools
import os
import platform
import re
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

try:
    import lzma
except ImportError:  # a Python that was compiled without liblzma
    lzma = None  # type: ignore[assignment]

SUFFIX = ".gz" if lzma is None else ".xz"
OPTIONS = ("-std=c++17",)
PACKAGE = "nvidia-cuda-nvrtc-cu12"
HERE = Path(__file__).resolve().parent
COMPILED = HERE / "compiled"
CACHE = HERE.parent / "build" / "kernels"

# ---- architectures ---------------------------------------------------------------------------

EVERYWHERE = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")
# Jetson Orin, Thor (which CUDA 13 calls 11.0, and which then gets PTX), GB300 and GB10. Machines
# of x86-64 have none of them but B300, which runs the code of sm_100.
ON_ARM = ("sm_87", "sm_101", "sm_103", "sm_121")
# PTX for the oldest alone: it serves the devices that come after the newest one here, too.
PTX = "compute_75"
# Tegra: Orin, and Thor by both of its names.
TEGRA = (87, 101, 110)
TARGETS = ("x86_64", "aarch64")


def architectures() -> list[str]:
    """Returns the names of all images for the target, by generation."""
    target = os.environ.get("PYGSAMPLER_TARGET") or platform.machine()
    if target not in (*TARGETS, platform.machine()):
        raise SystemExit(
            f"pygsampler: PYGSAMPLER_TARGET: expected {' or '.join(TARGETS)}, got {target}"
        )
    names = (*EVERYWHERE, *ON_ARM) if target == "aarch64" else EVERYWHERE
    return [*sorted(names, key=number), PTX]


def number(name: str) -> int:
    """Returns 90 for ``sm_90`` and for ``compute_90``."""
    return int(name.partition("_")[2])


def runs(code: int, device: int) -> bool:
    """True if a device can run machine code for another, both as ``number`` has them.

    "Binary compatibility is guaranteed from one minor revision to the next one, but not from one
    minor revision to the previous one or across major revisions. [...] Binary compatibility is
    supported only for the desktop. It is not supported for Tegra. Also, the binary compatibility
    between desktop and Tegra is not supported." (CUDA C++ Programming Guide 12.9, 6.1.2)
    """
    if code in TEGRA or device in TEGRA:
        return code == device
    return code // 10 == device // 10 and code <= device


def machine_code(names: Sequence[str], device: int) -> str | None:
    """Returns the best machine code for a device, as Choose of kernels.go does; None if none."""
    fits = [name for name in names if name.startswith("sm_") and runs(number(name), device)]
    return max(fits, key=number, default=None)


def generations(names: Sequence[str]) -> list[list[str]]:
    """Returns the names in groups: machine code of each major version, and PTX."""
    groups = itertools.groupby(names, lambda name: (name.partition("_")[0], number(name) // 10))
    return [list(group) for _, group in groups]


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
    names = architectures()
    found = capabilities()
    if found is None:
        return names
    best = {machine_code(names, 10 * major + minor) for major, minor in found}
    return [name for name in names if name in best or name == PTX]


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
    options = [f"--gpu-architecture={architecture}", *OPTIONS, f"-I{HERE}"]
    given = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    name = name_of(source)
    library.nvrtcCreateProgram(
        ctypes.byref(program), source.read_bytes(), name.encode(), 0, None, None
    )
    failed = library.nvrtcCompileProgram(program, len(options), given)
    library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    library.nvrtcGetProgramLog(program, log)
    if failed or log.value:
        print(f"{name} for {architecture}:\n{log.value.decode()}", file=sys.stderr)
    if failed:
        raise SystemExit(1)
    kind = "PTX" if architecture.startswith("compute_") else "CUBIN"
    getattr(library, f"nvrtcGet{kind}Size")(program, ctypes.byref(size))
    image = ctypes.create_string_buffer(size.value)
    if size.value == 0 or getattr(library, f"nvrtcGet{kind}")(program, image):
        raise SystemExit(f"pygsampler: NVRTC made no image of {name} for {architecture}")
    return image.raw


# ---- what an image is made of ----------------------------------------------------------------


def name_of(file: Path) -> str:
    """Returns the name by which other files include the file: ``common/grid.cuh``."""
    return file.relative_to(HERE).as_posix()


def closure(source: Path) -> list[Path]:
    """Returns the file and all files of ours that it includes."""
    seen: set[Path] = set()
    todo = [source]
    while todo:
        file = todo.pop()
        if file in seen or not file.is_file():
            continue
        seen.add(file)
        todo += [
            HERE / name for name in re.findall(r'(?m)^\s*#\s*include\s+"(.+)"', file.read_text())
        ]
    return sorted(seen)


def place(source: Path, architecture: str) -> Path:
    """Where the cache has the image."""
    digest = hashlib.sha256()
    version = importlib.metadata.version(PACKAGE)
    for word in (PACKAGE, version, architecture, *OPTIONS):
        digest.update(f"{word}\n".encode())
    for file in closure(source):
        content = hashlib.sha256(file.read_bytes()).hexdigest()
        digest.update(f"{name_of(file)} {content}\n".encode())
    return CACHE / f"{source.stem}.{architecture}.{digest.hexdigest()[:16]}{SUFFIX}"


# ---- packing ---------------------------------------------------------------------------------

# Part of the digest of a packed file: another number where the same images are packed differently.
PACKING = 1


def compress(content: bytes, kind: str) -> bytes:
    """Returns the content as xz, with parameters for machine code ("sm") or text ("compute")."""
    if lzma is None:
        return gzip.compress(content, mtime=0)
    # The decoder makes room for the dictionary, so it is no larger than what there is to look up.
    options = {"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": max(4096, len(content))}
    if kind == "sm":  # instructions are 16 bytes long, and are aligned: 4% less
        options |= {"lc": 0, "lp": 4, "pb": 4}
    return lzma.compress(content, check=lzma.CHECK_CRC32, filters=[options])


def decompress(content: bytes) -> bytes:
    return gzip.decompress(content) if lzma is None else lzma.decompress(content)


def packed(source: Path, names: list[str]) -> tuple[str, bytes]:
    """Returns name and content of the file with the images of one generation.

    Images of a generation are much alike: one after another in a single stream, those of the wheel
    for ARM are 9.5 MB instead of 16.5. The length of each stands before it.
    """
    images = [place(source, name) for name in names]
    digest = hashlib.sha256(" ".join([str(PACKING), *(image.name for image in images)]).encode())
    kind = names[0].partition("_")[0]
    stem = f"{source.stem}.{kind}_{'-'.join(str(number(name)) for name in names)}"
    kept = CACHE / f"{stem}.{digest.hexdigest()[:16]}.packed{SUFFIX}"
    if not kept.is_file():
        content = bytearray()
        for image in images:
            code = decompress(image.read_bytes())
            content += struct.pack("<Q", len(code)) + code
        write(kept, compress(bytes(content), kind))
    return stem + SUFFIX, kept.read_bytes()


def write(file: Path, content: bytes) -> None:
    """Replaces a file in one step."""
    with tempfile.NamedTemporaryFile(dir=CACHE, delete=False) as new:
        new.write(content)
    os.chmod(new.name, 0o644)
    os.replace(new.name, file)


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


def workers() -> ThreadPoolExecutor:
    # A compiler takes 200 MiB, and a container may have fewer cores than it sees.
    return ThreadPoolExecutor(min(16, len(os.sched_getaffinity(0))))


def make_all(sources: list[Path], names: list[str]) -> None:
    todo = [
        (source, architecture)
        for source in sources
        for architecture in names
        if not place(source, architecture).is_file()
    ]
    if not todo:
        return
    start = time.monotonic()
    with workers() as pool:
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
    """Makes ``compiled/`` hold what the cache has of these sources for the target, and no more."""
    todo = []
    for source in sources:
        there = [name for name in architectures() if place(source, name).is_file()]
        todo += [(source, names) for names in generations(there)]
    with workers() as pool:
        wanted = dict(pool.map(lambda unit: packed(*unit), todo))
    files = sorted({file for source in sources for file in closure(source)})
    lines = [
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {name_of(file)}\n" for file in files
    ]
    wanted["sources"] = "".join(lines).encode()
    for file in COMPILED.iterdir():
        if file.name not in wanted and file.name != ".gitignore":
            file.unlink()
    for name, content in wanted.items():
        file = COMPILED / name
        # Untouched where it is the same: Go's cache looks at times before it looks at content.
        if not file.is_file() or file.read_bytes() != content:
            write(file, content)


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--one"]:
        source, architecture, output = arguments[1:]
        image = compile_kernel(Path(source), architecture)
        Path(output).write_bytes(compress(image, architecture.partition("_")[0]))
        return
    if arguments == ["--native"]:
        print(*native())
        return
    names = architectures()
    unknown = [name for name in arguments if name not in names]
    if unknown:
        raise SystemExit(f"pygsampler: expected of {', '.join(names)}; got {unknown[0]}")
    nvrtc()
    sources = sorted(HERE.glob("*/*.cu"))
    CACHE.mkdir(parents=True, exist_ok=True)
    COMPILED.mkdir(exist_ok=True)
    with open(CACHE / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            make_all(sources, [name for name in names if name in arguments] or names)
        finally:
            install(sources)


if __name__ == "__main__":
    main(sys.argv[1:])
