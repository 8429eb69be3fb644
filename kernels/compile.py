"""Compiles the kernels to machine code, with NVRTC: no nvcc and no GPU needed.

``python kernels/compile.py [sm_90 ...]`` writes ``compiled/NAME.sm_XY.cubin`` for each .cu file
and architecture. NVRTC is a package of PyPI (nvidia-cuda-nvrtc-cu12); machine code of CUDA 12.9
runs on every driver since 525.
"""

from __future__ import annotations

import ctypes
import importlib.util
import sys
from pathlib import Path

ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")
HERE = Path(__file__).resolve().parent


def nvrtc() -> ctypes.CDLL:
    spec = importlib.util.find_spec("nvidia.cuda_nvrtc")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for library in Path(folder).glob("lib/libnvrtc.so.12"):
            return ctypes.CDLL(str(library))
    raise SystemExit(
        "pygsampler: no NVRTC; install it with: pip install nvidia-cuda-nvrtc-cu12==12.9.86"
    )


def compile_kernel(library: ctypes.CDLL, source: Path, architecture: str) -> bytes:
    """The cubin of a source; SystemExit with the compiler's log when it does not compile."""
    program = ctypes.c_void_p()
    size = ctypes.c_size_t()
    library.nvrtcCreateProgram(
        ctypes.byref(program), source.read_bytes(), source.name.encode(), 0, None, None
    )
    try:
        options = [f"--gpu-architecture={architecture}", "-std=c++17", f"-I{source.parent}"]
        given = (ctypes.c_char_p * len(options))(*(o.encode() for o in options))
        failed = library.nvrtcCompileProgram(program, len(options), given)
        if failed:
            library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value)
            library.nvrtcGetProgramLog(program, log)
            raise SystemExit(f"pygsampler: {source.name} for {architecture}:\n{log.value.decode()}")
        library.nvrtcGetCUBINSize(program, ctypes.byref(size))
        image = ctypes.create_string_buffer(size.value)
        library.nvrtcGetCUBIN(program, image)
        return image.raw
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def main(architectures: list[str]) -> None:
    library = nvrtc()
    for source in sorted(HERE.glob("*.cu")):
        for architecture in architectures or ARCHITECTURES:
            image = compile_kernel(library, source, architecture)
            (HERE / "compiled" / f"{source.stem}.{architecture}.cubin").write_bytes(image)


if __name__ == "__main__":
    main(sys.argv[1:])
