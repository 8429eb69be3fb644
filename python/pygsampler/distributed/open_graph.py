"""``open``: a graph in parts, in as many processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygsampler._arrays import devices
from pygsampler.distributed.exchange import Exchange, TorchExchange
from pygsampler.distributed.graph import DistributedGraph
from pygsampler.distributed.partition import Partition

if TYPE_CHECKING:
    import os


def open_graph(
    path: str | os.PathLike[str], exchange: Exchange | None = None, *, device: Any = "cpu"
) -> DistributedGraph:
    """Opens a graph in parts, which ``pygsampler partition`` has made, in as many processes.

    All processes call it. That of rank r has part r; it maps the part's file, which may be on a
    disk of its own.

    Parameters
    ----------
    path : path
        The folder of the parts.
    exchange : Exchange, optional
        How the processes ask each other; by default ``TorchExchange()``, for which all of them come
        here within 300 seconds: ``TorchExchange(wait=)`` takes other times.
    device : device
        Where this process draws rows of its part for all: on a GPU, which then has the part, too,
        those of ``PGSampler`` without trees and times, and the CPU all others. Batches are the
        same, and are on the CPU. It may differ between processes.

    Returns
    -------
    DistributedGraph

    Raises
    ------
    ValueError
        For another number of processes than of parts, or processes with parts of other graphs.
    TimeoutError
        Where other processes do not come: it names their ranks.
    CudaError
        For a GPU that is not there, or has no room for the part.
    OSError
        For files that cannot be read.
    """
    on = devices.parse(device)
    parts = Partition.open(path)
    over = TorchExchange() if exchange is None else exchange
    if over.size != parts.num_parts:
        raise ValueError(
            f"exchange: expected {parts.num_parts} processes, one for each part, got {over.size}"
        )
    if on >= 0 and not over.owns:
        raise ValueError(
            "device: expected 'cpu' where this process has no part, got "
            f"{devices.name(on)!r}; RayExchange.start(device=) is for actors"
        )
    return DistributedGraph._opened(parts, over, on)
