"""``open``: a partitioned graph, in as many processes as shards."""

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
    """Opens a partitioned graph, an output of ``pygsampler partition``, in as many processes.

    All processes call it. The process of rank r has part r; it maps the part's file, which may be
    on its local disk.

    Parameters
    ----------
    path : path
        The folder of the parts.
    exchange : Exchange, optional
        The way in which processes communicate; by default ``TorchExchange()``, for which all of
        them call this within 300 seconds: ``TorchExchange(wait=)`` takes other times.
    device : device
        The device that draws rows of this process's part for all processes. A GPU then also has the
        part, and draws rows of ``PGSampler`` without ``disjoint`` and times, and the CPU draws all
        others. Batches are the same, and are on the CPU. The device may differ between processes.

    Returns
    -------
    DistributedGraph

    Raises
    ------
    ValueError
        For another number of processes than of parts, or processes with parts of other graphs.
    TimeoutError
        If other processes do not join: it names their ranks.
    CudaError
        For a GPU that does not exist, or has no room for the part.
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
