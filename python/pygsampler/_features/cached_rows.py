"""Features of the host with a cache of the rows that are read most, where there is room for one."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from pygsampler._features.cache import CacheOptions
from pygsampler._features.cache_policy import top_rows
from pygsampler._features.cache_table import CacheTable
from pygsampler._features.features import Features
from pygsampler.errors import CudaError

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

__all__ = ["cached_rows"]

_LOG = logging.getLogger("pygsampler")


def cached_rows(
    features: Features, device: Any, room: int, count: Callable[[], Tensor]
) -> Features | None:
    """Returns features page-locked for a GPU, with the rows of the highest counts on it.

    Rows on the GPU take at most ``room`` bytes; without room for one they are page-locked alone. A
    cache that features have already stays. None where the system does not allow to lock pages.
    """
    if features.cached:
        return features
    if features.pinned:
        features = features._on_host()
    rows, row = len(features), features._row_bytes()
    try:
        if not row or room < CacheTable.index_bytes(rows) + CacheTable.bytes_of(row, False):
            return features.pin(device)
        made = features._cached_for(device, CacheOptions.checked(None, room, "degree", None))
    except (CudaError, ValueError) as error:
        _LOG.info("rows of the host are not page-locked: %s", error)
        return None
    assert made._cache is not None
    made._cache.take(top_rows(count(), made.cached))
    return made
