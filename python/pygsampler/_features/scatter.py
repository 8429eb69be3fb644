"""``scatter_rows``: new values for some rows of an array, where it is."""

from __future__ import annotations

import sys
from typing import Any

from pygsampler._arrays.array import Array
from pygsampler._arrays.ids import as_ids

# Integers of as many bits, for those that torch can hold and hardly work on.
_SIGNED = {"uint16": "int16", "uint32": "int32", "uint64": "int64"}


def scatter_rows(target: Array, values: Any, ids: Any) -> None:
    """Writes ``values``, one for each of ``ids`` or one for all, into these rows of an array."""
    view = as_ids(ids, "ids", target._device if target._device >= 0 else None)
    rows: Any
    new: Any
    if target._device >= 0 or _torch_has(target.dtype):
        import torch

        rows, at = target.torch(), Array._of_view(view).torch().long()
        check_rows(at, len(rows))
        new = torch.as_tensor(values, dtype=rows.dtype).to(rows.device)
        shape = (len(at), *rows.shape[1:])
        try:
            new = new.expand(shape)
        except RuntimeError:
            raise _misshapen(shape, new) from None
        if target.dtype in _SIGNED:
            # Torch writes no chosen rows of unsigned integers.
            signed = getattr(torch, _SIGNED[target.dtype])
            rows, new = rows.view(signed), new.contiguous().view(signed)
        rows[at.to(rows.device)] = new
        return
    import numpy

    rows, places = target.numpy(), numpy.asarray(Array._of_view(view))
    check_rows(places, len(rows))
    new, shape = numpy.asarray(values), (len(places), *rows.shape[1:])
    try:
        new = numpy.broadcast_to(new, shape)
    except ValueError:
        raise _misshapen(shape, new) from None
    rows[places] = new


def _torch_has(dtype: str) -> bool:
    """True if torch is in use here, and of a version that has the dtype."""
    return hasattr(sys.modules.get("torch"), dtype)


def _misshapen(shape: tuple[int, ...], values: Any) -> ValueError:
    return ValueError(
        f"values: expected shape {shape} or that of one row, got {tuple(values.shape)}"
    )


def check_rows(ids: Any, num_rows: int) -> None:
    """Raises IndexError for the first of ids, a tensor or NumPy's, that is no row."""
    if len(ids) and (int(ids.min()) < 0 or int(ids.max()) >= num_rows):
        place, found = next((i, v) for i, v in enumerate(ids.tolist()) if not 0 <= v < num_rows)
        raise IndexError(f"ids[{place}]: expected an integer in [0, {num_rows}), got {found}")
