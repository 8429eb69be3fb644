"""``TimedSampler``: the engine's way to a batch of edges that are not later than a bound."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

from pygsampler._arrays.ids import as_ids, as_int64
from pygsampler._core import memories
from pygsampler._core.checks import describe
from pygsampler._sampling.engine_sampler import EngineSampler
from pygsampler._sampling.job import Job
from pygsampler.minibatch import MiniBatch

if TYPE_CHECKING:
    from pygsampler._core.memories import Memory
    from pygsampler._graph.timed import Timed
    from pygsampler.graph import Graph


class TimedSampler(EngineSampler):
    """A plan of the family of neighbours by time, and its handle in the engine."""

    __slots__ = ()

    def start(
        self,
        graph: Graph,
        seeds: Any,
        seed_time: Any,
        *,
        epoch: int,
        batch: int,
        threads: int,
        prompt: bool,
    ) -> Job:
        """Hands a batch to the engine."""
        if graph._device >= 0:
            raise NotImplementedError(
                f"time: expected a graph on the CPU, got one on {graph.device}; graph.to('cpu') "
                "has it"
            )
        timed: Timed = graph._timed(self._plan["time"], self._plan["mask"])
        ids = as_ids(seeds, "seeds")
        times = _times(seed_time, ids.length, timed)
        job = _TimedJob(timed.graph, self, epoch, batch)
        job._rows = timed
        started = memories.call(
            "TimedSubmit",
            timed.graph._handle(),
            self._handle(),
            ids.address,
            ids.length,
            ids.bits,
            epoch,
            batch,
            threads,
            int(prompt),
            timed.memory.address,
            times.buffer_info()[0],
            int(timed.by_vertex),
            jobs=[job],
        )
        if isinstance(started, memories.Memory):
            job._outcome = job._taken(started)
        return job

    def _view(self, graph: Graph, memory: Memory, epoch: int, batch: int) -> MiniBatch:
        return MiniBatch._of(memory, epoch, batch)


class _TimedJob(Job):
    """It keeps the times, too."""

    __slots__ = ("_rows",)

    _rows: Timed


def _times(given: Any, count: int, timed: Timed) -> array[Any]:
    """A time for each seed, as the graph has times: int64 or float64."""
    if given is None:
        raise ValueError(
            f"seed_time: expected a time for each seed with time={timed.name!r}, got None"
        )
    if isinstance(given, (int, float)) and not isinstance(given, bool):
        if not timed.float and not isinstance(given, int):
            raise TypeError(f"seed_time: expected integers, as the graph's times, got {given!r}")
        return array("d" if timed.float else "q", [given]) * count
    if timed.float:
        try:
            made = array("d", given.tolist() if hasattr(given, "tolist") else given)
        except TypeError:
            raise TypeError(
                f"seed_time: expected a time for each seed, got {describe(given)}"
            ) from None
    else:
        view = as_int64(as_ids(given, "seed_time"))
        made = array("q")
        made.frombytes(memories.integer_view(view.address, view.length, 64).cast("B"))
    if len(made) != count:
        raise ValueError(f"seed_time: expected a time for each of {count} seeds, got {len(made)}")
    return made
