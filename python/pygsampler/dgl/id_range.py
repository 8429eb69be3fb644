"""The ids 0, 1, 2, ... of a block's edges, which DGL's kernels read."""

from __future__ import annotations

import mmap
import os
from functools import cache

import torch

__all__ = ["id_range"]

# Below it torch writes the ids in less time than a mapping takes; above it they are written for
# each block, since the pages they come from are kept.
_LEAST, _MOST = 1 << 13, 1 << 22
_SMALLEST_CLASS = 1 << 16


def id_range(count: int, like: torch.Tensor) -> torch.Tensor:
    """Returns 0 to ``count - 1``, with the dtype and on the device of ``like``.

    On the CPU each call gives a copy-on-write view of the same pages: 5 microseconds for any
    number, where writing half a million takes several hundred. A write to the ids of one block, as
    by DGL's ``global_uniform_negative_sampling``, changes no other block. On a GPU, where DGL sorts
    out of place, blocks share one array of each size class, which is never freed: kernels of any
    stream may still read it.
    """
    if like.is_cuda:
        return _on_gpu(_class_of(count), like.dtype, like.device)[:count]
    if not _LEAST <= count <= _MOST:
        return torch.arange(count, dtype=like.dtype)
    pages = _pages(_class_of(count), like.dtype)
    view = mmap.mmap(pages, count * like.element_size(), access=mmap.ACCESS_COPY)
    return torch.frombuffer(view, dtype=like.dtype)


def _class_of(count: int) -> int:
    return max(_SMALLEST_CLASS, 1 << (count - 1).bit_length())


@cache
def _pages(count: int, dtype: torch.dtype) -> int:
    """A file without a name that holds the first ``count`` ids; forked children share it."""
    file = os.memfd_create("pygsampler-consecutive", os.MFD_CLOEXEC)
    with os.fdopen(os.dup(file), "wb") as target:
        target.write(torch.arange(count, dtype=dtype).numpy().tobytes())
    return file


@cache
def _on_gpu(count: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    ids = torch.arange(count, dtype=dtype, device=device)
    # Other streams than the current one will read it.
    torch.cuda.current_stream(device).synchronize()
    return ids
