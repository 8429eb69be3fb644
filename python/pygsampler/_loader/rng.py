"""Random numbers for negatives and windows, drawn by the engine on the device of the tensors.

docs/developer/walk-draws.md has the rules, in its sections on windows and links.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, NamedTuple

import torch

from pygsampler._arrays import devices
from pygsampler._engine.checks import describe
from pygsampler._engine.library import call
from pygsampler._sampling.batch_counter import signed_seed

if TYPE_CHECKING:
    from pygsampler._graph.derived import DegreeAliasTable as Table

__all__ = ["BatchId", "DrawShape", "check_power", "device_of", "draw"]


class BatchId(NamedTuple):
    """The number of a batch: seed, epoch and place in the epoch."""

    seed: int
    epoch: int
    batch: int


class DrawShape(NamedTuple):
    """The shape of random numbers: ``each`` numbers for ``rows`` places.

    The places are ``places``, or the first ones; a walk has ``slots`` places.
    """

    rows: int
    slots: int
    each: int
    places: torch.Tensor | None = None


def draw(
    like: torch.Tensor,
    number: BatchId,
    site: int,
    below: int,
    shape: DrawShape,
    by: Table | None = None,
) -> torch.Tensor:
    """Numbers in [0, below), as ``like`` has its dtype and device: shape [rows, each]."""
    index = device_of(like)
    out = like.new_empty((shape.rows, shape.each))
    about = array(
        "q",
        [
            signed_seed(number.seed),
            number.epoch,
            number.batch,
            site,
            below,
            shape.rows,
            shape.slots,
            shape.each,
            0 if by is None else _address(by, index),
            0 if shape.places is None else shape.places.data_ptr(),
            out.data_ptr(),
            8 * out.element_size(),
        ],
    )
    address = about.buffer_info()[0]
    call("DrawNumbers", index, address, 0 if index < 0 else devices.current_stream(index))
    return out


def device_of(tensor: torch.Tensor) -> int:
    """-1 for the CPU, else the number of the device."""
    return tensor.get_device() if tensor.is_cuda else devices.CPU


def check_power(power: float) -> float:
    """``power``, a number in [0, 1]."""
    if isinstance(power, bool) or not isinstance(power, (int, float)):
        raise TypeError(f"power: expected a number, got {describe(power)}")
    if not 0 <= power <= 1:
        raise ValueError(f"power: expected a number in [0, 1], got {power}")
    return float(power)


def _address(by: Table, index: int) -> int:
    """Returns the address of the table for the CPU (-1) or for a device, which gets a copy once."""
    if index < 0:
        return by.table._address
    copy = by.copies.get(index)
    if copy is None:
        # The host waits for the copy, so it is there for every stream.
        copy = by.copies[index] = by.table.torch().to(torch.device("cuda", index))
    return int(copy.data_ptr())
