"""Tensors on the host that stand in for those that torch would make on a device.

For tests on the emulator, whose memory is the host's: torch does not take it for a GPU.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

import pygsampler as pgs
from pygsampler._arrays import devices
from pygsampler._engine import memory as memories

if TYPE_CHECKING:
    import pytest


def allocate(size: int, bits: int, device: int) -> torch.Tensor:
    kind = torch.int64 if bits == 64 else torch.int32
    return torch.empty((size + 7) // 8 * (64 // bits), dtype=kind)


to_torch = pgs.Array.torch


def torch_of_host(array: pgs.Array) -> Any:
    """A tensor of an array on the emulator, whose memory is the host's."""
    if array._device < 0:
        return to_torch(array)
    there, array._device = array._device, devices.CPU
    try:
        return to_torch(array)
    finally:
        array._device = there


class SideStream:
    """A side stream whose work is done when it is launched."""

    def __init__(self, device: int, priority: int = 0) -> None: ...

    def launch(self, work: Callable[[], None]) -> None:
        work()

    def join(self, stream: Any = None) -> None: ...


class Stream:
    """A stream other than the default one, in the place of ``torch.cuda.Stream``."""

    cuda_stream = 1

    def __init__(self, *device: Any) -> None: ...

    def wait_stream(self, other: Any) -> None: ...


class DefaultStream(Stream):
    cuda_stream = 0


class Replays:
    """Calls a captured loop's step, in the place of the CUDA graph that would replay it."""

    def __init__(self, loop: Any, epochs: Any) -> None:
        self._loop, self._epochs = loop, epochs

    def replay(self) -> None:
        self._loop._out = self._loop._run(self._epochs, self._epochs._begun, 0)


def capture(loop: Any, epochs: Any, epoch_number: int, step: int) -> None:
    loop._graph = Replays(loop, epochs)


def upload(values: torch.Tensor, index: int) -> torch.Tensor:
    """Returns a copy in the emulated device's memory, where the engine looks for seeds."""
    if index == devices.CPU:
        return values
    size = values.numel() * values.element_size()
    memory = memories.new("DeviceUpload", index, values.data_ptr(), size, 0)
    place = (ctypes.c_byte * size).from_address(memory.data)
    place.memory = memory  # type: ignore[attr-defined]  # which lives as long as the tensor
    return torch.frombuffer(place, dtype=values.dtype) if size else values.clone()


def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaces what makes tensors and streams on a device, and what refuses tensors on the host."""
    from pygsampler._arrays import exchange
    from pygsampler._features import features
    from pygsampler._loader import (
        arguments,
        edge_seeds,
        feature_fetcher,
        node_seeds,
        pipeline,
        seed_edges,
        seed_labels,
        static_epochs,
    )
    from pygsampler._loader import capture as captured_loop
    from pygsampler._sampling import device_job, static_buffers

    monkeypatch.setattr(pgs.Array, "torch", torch_of_host)
    monkeypatch.setattr(device_job, "allocate", allocate)
    monkeypatch.setattr(arguments, "_check", lambda index: None)
    # Tensors by one call would be on a device that this torch does not have.
    monkeypatch.setattr(exchange._TorchTable, "address", 0)
    # Batches with excluded edges come in memory of the engine's.
    as_torch = pipeline.as_torch
    monkeypatch.setattr(
        pipeline,
        "as_torch",
        lambda batch: as_torch(batch.cpu() if isinstance(batch, pgs.MiniBatch) else batch),
    )
    for seeds in (edge_seeds, node_seeds):
        monkeypatch.setattr(seeds, "to_device", upload)
    for rows in (seed_edges, seed_labels):
        monkeypatch.setattr(rows, "to_device", lambda values, index: values.clone())
    # Static batches, their streams and their captures.
    monkeypatch.setattr(static_epochs, "SideStream", SideStream)
    monkeypatch.setattr(static_buffers, "place_of", lambda device: torch.device("cpu"))
    monkeypatch.setattr(captured_loop.CapturedLoop, "_capture", capture)
    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "current_stream", Stream)
    monkeypatch.setattr(torch.cuda, "default_stream", DefaultStream)
    monkeypatch.setattr(torch.cuda, "stream", contextlib.nullcontext)
    # Rows of features, by ids on the host.
    as_ids, frame_on = features.as_ids, feature_fetcher.frame_on
    monkeypatch.setattr(features, "as_ids", lambda ids, name, place=-1: as_ids(ids, name))
    monkeypatch.setattr(
        features.Features,
        "_empty",
        lambda table, count, place: torch.zeros(
            (count, *table.shape[1:]), dtype=getattr(torch, table.dtype)
        ),
    )
    monkeypatch.setattr(feature_fetcher, "frame_on", lambda frame, device: frame_on(frame, "cpu"))
