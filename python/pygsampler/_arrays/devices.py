"""Devices by number: -1 for the CPU, else the index of a CUDA device."""

from __future__ import annotations

import operator
import re
import sys
from typing import Any

from pygsampler._engine import library
from pygsampler._engine.checks import describe
from pygsampler.errors import CudaError

CPU = -1
# DLPack's device types.
DL_CPU, DL_CUDA = 1, 2
# Streams as integers: the legacy default stream, by its handle and by its name in DLPack.
NULL_STREAM, LEGACY_STREAM = 0, 1

_EXPECTED = 'device: expected "cpu", "cuda", "cuda:<index>", an index or a torch.device'
_CUDA = re.compile(r"cuda(?::(\d{1,9}))?")


def parse(device: Any) -> int:
    """Returns the index of ``device``: "cpu", "cuda", "cuda:1", 1 or a torch.device; -1 is the CPU.

    "cuda" without an index is torch's current device where torch has begun to use CUDA, else device
    0. The existence of the device is not checked here.
    """
    if isinstance(device, bool) or device is None:
        raise TypeError(f"{_EXPECTED}, got {describe(device)}")
    if not isinstance(device, str):
        if hasattr(device, "__index__"):
            index = operator.index(device)
            if index < 0:
                raise ValueError(f"{_EXPECTED}, got {index}")
            return index
        if not (hasattr(device, "type") and hasattr(device, "index")):
            raise TypeError(f"{_EXPECTED}, got {describe(device)}")
    text = str(device)
    if text == "cpu" or text == "cpu:0":
        return CPU
    match = _CUDA.fullmatch(text)
    if match is None:
        raise ValueError(f"{_EXPECTED}, got {text!r}")
    if match[1] is not None:
        return int(match[1])
    cuda = _torch_cuda()
    return 0 if cuda is None else int(cuda.current_device())


def name(index: int) -> str:
    """ "cpu" or, for one, "cuda:0"."""
    return "cpu" if index < 0 else f"cuda:{index}"


def require(index: int) -> None:
    """Raises CudaError, with the reason and what to do, where the device cannot be used."""
    try:
        count = int(library.call("DeviceCount"))
    except CudaError as error:
        if not library.generation():
            raise
        raise CudaError(
            f"device: expected a process that may use {name(index)}, got one that was forked "
            f"after its parent had begun to use CUDA ({error}); sample on the CPU here, or start "
            'workers with "spawn"'
        ) from None
    if index < count:
        return
    if not count:
        version = int(library.call("DriverVersion"))
        found = "none: the driver finds no device" if version else "no CUDA driver (libcuda.so.1)"
    else:
        found = f"{count} of them" if count > 1 else "cuda:0 alone"
    raise CudaError(f"device: expected the CUDA device {name(index)}, found {found}")


def current_stream(index: int) -> int:
    """The CUstream after whose work ours is to come: torch's current one on that device.

    Without torch, or before torch has begun to use CUDA, the legacy default stream (0).
    """
    stream = _raw_stream
    if stream is not None:
        return int(stream(index))
    cuda = _torch_cuda()
    if cuda is None:
        return NULL_STREAM
    return _find_raw_stream(cuda, index)


def consumer_stream(stream: Any) -> int:
    """The CUstream that the ``stream`` of DLPack names; BufferError where it names none."""
    if stream is None:
        return LEGACY_STREAM
    if isinstance(stream, bool) or not hasattr(stream, "__index__") or stream < 1:
        raise BufferError(
            f"stream: expected None, -1, 1, 2 or a CUstream on a CUDA device, "
            f"got {describe(stream)}"
        )
    return operator.index(stream)


# torch's own way to the handle, without an object for the stream; once torch uses CUDA.
_raw_stream: Any = None


def _find_raw_stream(cuda: Any, index: int) -> int:
    global _raw_stream
    found = getattr(sys.modules["torch"]._C, "_cuda_getCurrentRawStream", None)
    if found is None:
        return int(cuda.current_stream(index).cuda_stream)
    _raw_stream = found
    return int(found(index))


def torch_uses_cuda() -> bool:
    """True if torch is imported and has begun to use CUDA in this process."""
    return _torch_cuda() is not None


def free_memory(index: int) -> int:
    """Returns how many bytes of a device torch and the engine can still allocate.

    The result counts the free bytes and the bytes that torch caches: torch uses these again, and
    gives them back if the engine lacks memory (``free_reserve``).
    """
    import torch

    reserve = torch.cuda.memory_reserved(index) - torch.cuda.memory_allocated(index)
    return torch.cuda.mem_get_info(index)[0] + reserve


def free_reserve() -> bool:
    """Gives the memory back that torch keeps for later; whether torch uses CUDA here."""
    cuda = _torch_cuda()
    if cuda is None:
        return False
    cuda.empty_cache()
    return True


def _torch_cuda() -> Any:
    """``torch.cuda`` where torch is imported and has begun to use CUDA in this process."""
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    return cuda if cuda is not None and cuda.is_initialized() else None
