"""``CacheTuner``: the caches that a loader with ``cache="auto"`` gives to features on the host."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from pygsampler._arrays import devices
from pygsampler._engine.checks import describe, integer
from pygsampler._features.cache import CacheOptions
from pygsampler._features.cache_table import CacheTable, is_out_of_memory
from pygsampler.errors import CudaError

if TYPE_CHECKING:
    from pygsampler._features.features import Features
    from pygsampler._graph.graph import Graph

__all__ = ["CacheChoice", "CacheTuner", "checked_rows", "rows_within"]

# Batches of an epoch after which torch and the loader have the memory that they need.
MEASURED = 16
# The part of a GPU's memory that is left for batches that are larger than those, and for others.
RESERVE = 0.1
# So few bytes are not worth a cache.
LEAST = 1 << 20


_log = logging.getLogger("pygsampler")


class CacheChoice(NamedTuple):
    """Measurements that a cache was chosen by: bytes of the GPU's memory, free and in all."""

    free: int
    total: int
    epoch: int
    batches: int


class CacheTuner:
    """Chooses once how many rows of each table on the host a GPU has a copy of.

    Once some batches have been trained, what is left of the GPU's memory beyond a reserve goes to
    rows of nodes with most out-edges, of all tables in proportion to their bytes. Copies and
    pickles keep the choice.

    Source: TurboGNN, whose cache is sized by what the first iterations leave; PaGraph (Lin et al.,
    SoCC 2020) for the rows.
    """

    __slots__ = ("choice", "is_done", "rows")

    def __init__(self) -> None:
        self.is_done = False
        # By the names of tables; None: nothing is chosen yet.
        self.rows: dict[str, int] | None = None
        # None for rows of another loader's state.
        self.choice: CacheChoice | None = None

    def resume(self, counts: dict[str, int]) -> None:
        """Takes the numbers of rows that another loader has chosen, for the next epoch."""
        self.rows = counts
        self.choice, self.is_done = None, False

    def is_due(self, batches: int, steps: int) -> bool:
        """Says whether to choose after so many batches, or to take what was chosen before.

        Epochs of fewer ``steps`` than are measured choose at their end.
        """
        return not self.is_done and (self.rows is not None or batches >= min(MEASURED, steps) > 0)

    def caches(
        self,
        tables: Mapping[str, Features],
        graph: Graph,
        device: int,
        epoch: int,
        batches: int,
    ) -> dict[str, Features]:
        """Returns the tables, which are page-locked, with a cache, as many as are to have one."""
        self.is_done = True
        free, total = devices.free_memory(device), torch.cuda.mem_get_info(device)[1]
        sizes = [(len(table), table._row_bytes()) for table in tables.values()]
        room = free - int(RESERVE * total)
        fitting = dict(zip(tables, rows_within(sizes, room), strict=True))
        if self.rows is None:
            self.choice = CacheChoice(free, total, epoch, batches)
        else:
            # This GPU may have less room than the one that they were chosen for.
            fitting = {name: min(self.rows.get(name, 0), most) for name, most in fitting.items()}
        self.rows = fitting
        made = {}
        for name, count in fitting.items():
            if not count:
                continue
            plan = CacheOptions.checked(count, None, "degree", None)
            cached = made[name] = tables[name]._with_cache(plan)
            assert cached._cache is not None
            try:
                cached._cache.fill(graph)
            except (CudaError, torch.cuda.OutOfMemoryError) as error:
                if isinstance(error, CudaError) and not is_out_of_memory(error):
                    raise
                _log.warning("cache: %r has none: %s", name, error)
                del made[name]
        return made


def checked_rows(state: Any) -> dict[str, int]:
    """Returns the numbers of rows in a loader's state; TypeError or ValueError for others."""
    if not isinstance(state, Mapping):
        raise TypeError(
            f"state['cache']: expected a mapping of names to numbers, got {describe(state)}"
        )
    return {
        str(name): integer(count, f"state['cache'][{name!r}]", 0) for name, count in state.items()
    }


def rows_within(sizes: Sequence[tuple[int, int]], room: int) -> list[int]:
    """Returns how many rows of each table to cache, of so many rows and bytes a row, in a room."""
    whole = sum(rows * row for rows, row in sizes)
    found = []
    for rows, row in sizes:
        mine = room * rows * row // whole if whole else 0
        mine -= CacheTable.index_bytes(rows)
        count = max(mine, 0) // CacheTable.bytes_of(row, False) if row else 0
        found.append(min(count, rows) if count * row >= LEAST else 0)
    return found
