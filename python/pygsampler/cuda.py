"""The CUDA devices that this process may use.

The driver is opened and initialised by the first question, not by the import, and no question
makes a context: nothing here takes memory on a device or gets in the way of torch.

Since the first graph on a device the engine holds memory there: ``memory_stats`` says how much, and
``trim`` gives back what no batch uses.

A process that was forked after its parent had initialised CUDA cannot use CUDA any more. The
driver says so with an error, hence there ``is_available`` is False and the others raise.
"""

from __future__ import annotations

import json
import operator

from pygsampler._arrays.devices import require
from pygsampler._engine.checks import describe
from pygsampler._engine.library import call
from pygsampler.errors import CudaError

__all__ = [
    "device_count",
    "device_name",
    "driver_version",
    "is_available",
    "memory_stats",
    "trim",
]


def __dir__() -> list[str]:
    return sorted(__all__)


def is_available() -> bool:
    """True if there is a CUDA device that this process may use.

    False without a driver, and also where the driver is there but broken: never an error.
    ``device_count`` raises what is wrong with it.
    """
    try:
        return device_count() > 0
    except CudaError:
        return False


def device_count() -> int:
    """Returns the number of CUDA devices that CUDA_VISIBLE_DEVICES leaves to this process.

    0 without a driver.

    Raises
    ------
    CudaError
        The driver is there and fails, with its own name and number for the reason.
    """
    return int(call("DeviceCount"))


def device_name(index: int = 0) -> str:
    """Returns the name of device ``index``, as in ``"NVIDIA H200"``.

    Raises
    ------
    TypeError
        ``index`` is no integer.
    IndexError
        There is no such device; negative indices do not count from the end.
    CudaError
        The driver fails.
    """
    return str(call("DeviceName", _checked(index, "index")))


def driver_version() -> int:
    """The newest CUDA version that the driver supports, as ``1000 * major + 10 * minor``.

    12090 is CUDA 12.9. 0 without a driver.

    Raises
    ------
    CudaError
        The driver fails.
    """
    return int(call("DriverVersion"))


def memory_stats(device: int = 0) -> dict[str, int]:
    """Returns the memory of a device that the engine holds.

    Returns
    -------
    dict of str to int
        ``used``: bytes of graphs, batches and workspaces. ``reserved``: these bytes and the bytes
        reserved for the next batches. ``workspaces``: the number of sets of tables, one for each
        batch in flight. ``flights``: the number of batches in flight. All are 0 before the first
        graph on the device.

    Raises
    ------
    TypeError
        ``device`` is no integer.
    IndexError
        There is no such device.
    CudaError
        There is no device at all, or the driver fails.
    """
    stats: dict[str, int] = json.loads(call("DeviceStats", _checked(device, "device")))
    return stats


def trim(device: int = 0) -> None:
    """Gives the memory of a device back that no graph and no batch uses.

    Raises
    ------
    TypeError
        ``device`` is no integer.
    IndexError
        There is no such device.
    CudaError
        There is no device at all, or the driver fails.
    """
    call("Trim", _checked(device, "device"))


def _checked(index: int, where: str) -> int:
    if isinstance(index, bool) or not hasattr(index, "__index__"):
        raise TypeError(f"{where}: expected an integer, got {describe(index)}")
    number = operator.index(index)
    count = device_count()
    if not count:
        # With the reason: no driver, or one that finds nothing.
        require(0)
    if not 0 <= number < count:
        raise IndexError(f"{where}: expected 0 <= {where} < device_count() = {count}, got {number}")
    return number
