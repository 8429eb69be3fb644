"""Rows of several features at once, for loaders that ask for them when a batch is there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pygsampler._arrays import devices
from pygsampler._arrays.ids import as_ids
from pygsampler._features.gather import GatherJob, gather_on_device

if TYPE_CHECKING:
    import torch

    from pygsampler._features.features import Features

__all__ = ["read_many"]


def read_many(
    wanted: Sequence[tuple[Features, torch.Tensor]], *, threads: int = 0, check: bool = False
) -> list[torch.Tensor]:
    """Returns the rows of features by their ids, each on the device of its features.

    Rows on the CPU are one job of the engine, into one block of memory, and rows on a GPU one
    launch in torch's current stream there, without a wait. Ids may be on another device. IndexError
    for an id that is no row: on the CPU always, on a GPU with ``check``, which waits for it;
    without it such rows are zeros there.
    """
    made: list[torch.Tensor | None] = [None] * len(wanted)
    for place in sorted({features._where() for features, _ in wanted}):
        near = [at for at, (features, _) in enumerate(wanted) if features._where() == place]
        read = _on_cpu if place < 0 else _on_gpu
        found = read([wanted[at] for at in near], place, threads, check)
        for at, rows in zip(near, found, strict=True):
            made[at] = rows
    return [rows for rows in made if rows is not None]


def _on_cpu(
    wanted: list[tuple[Features, torch.Tensor]], place: int, threads: int, check: bool
) -> list[torch.Tensor]:
    views = [as_ids(ids.cpu().contiguous(), "ids") for _, ids in wanted]
    parts = [features._part(view) for (features, _), view in zip(wanted, views, strict=True)]
    memory, starts = GatherJob(parts, threads=threads, prompt=True).result()
    return [
        features._shown(memory, start, view.length).torch()
        for (features, _), view, start in zip(wanted, views, starts, strict=True)
    ]


def _on_gpu(
    wanted: list[tuple[Features, torch.Tensor]], place: int, threads: int, check: bool
) -> list[torch.Tensor]:
    import torch

    there = torch.device(devices.name(place))
    wanted = [(features, ids.to(there).contiguous()) for features, ids in wanted]
    made = [features._device_rows(ids, place) for features, ids in wanted]
    bad = torch.full((1,), -1, dtype=torch.int64, device=there) if check else None
    gather_on_device(place, [part for _, part in made], 0 if bad is None else bad.data_ptr())
    if bad is not None and int(bad) >= 0:
        for features, ids in wanted:
            features.read(ids)  # raises, by the first that has no row
    return [rows for rows, _ in made]
