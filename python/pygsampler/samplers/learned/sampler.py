"""``LearnedSampler``: programs that draw by arrays which training changes, version by version."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from threading import RLock
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakSet

from pygsampler._engine import library
from pygsampler._engine.checks import describe, integer
from pygsampler._graph.graph import Graph
from pygsampler._sampling.dispatch import dispatch
from pygsampler._sampling.pending import PendingBatch
from pygsampler._sampling.request import SampleRequest
from pygsampler._sampling.sampler import check_graph
from pygsampler.programs.program_sampler import ProgramSampler

if TYPE_CHECKING:
    import numpy as np

    from pygsampler.programs import Program

    Values = np.ndarray[Any, np.dtype[np.float64]]
    Ids = np.ndarray[Any, np.dtype[np.int64]]

__all__ = ["LearnedSampler", "finite_values"]

# The number of batches whose version of the values is remembered.
_REMEMBERED = 1 << 16

# One of so many values of the edge arrays may change before all are copied: a value that is written
# takes its id along, and stands in the list until it is.
_FEW = 4


class _LearnedState:
    """Arrays of a sampler and its copies; ``LearnedSampler`` alone changes them, under a lock."""

    def __init__(self, edges: Mapping[str, Values], nodes: Mapping[str, Values]) -> None:
        self.edges, self.nodes = dict(edges), dict(nodes)
        self.version = 0
        self._begin()

    def _begin(self) -> None:
        self._renew()
        self.versions: OrderedDict[tuple[int, int], int] = OrderedDict()
        # By the version that a change made: the ids of the edges that it changed.
        self.changed: OrderedDict[int, Ids] = OrderedDict()
        # By graph: the version that it was made of, and the graph with the arrays.
        self.graphs: WeakKeyDictionary[Graph, tuple[int, Graph]] = WeakKeyDictionary()

    def _renew(self) -> None:
        self._lock = RLock()
        self.flying: WeakSet[_VersionedJob] = WeakSet()
        self._generation = library.generation()

    @property
    def lock(self) -> RLock:
        """The lock under which arrays change; a forked child has its own, and no batches in flight.

        A thread that the child lacks might hold the parent's lock.
        """
        if self._generation != library.generation():
            with library.handle_lock():
                if self._generation != library.generation():
                    self._renew()
        return self._lock

    def changes_since(self, version: int) -> Ids | None:
        """Ids of the edges that changed since, distinct; None if they are not known."""
        import numpy as np

        if version == self.version:
            return np.zeros(0, np.int64)
        if version + 1 not in self.changed:
            return None
        since = (ids for made, ids in self.changed.items() if made > version)
        return np.unique(np.concatenate(list(since)))

    def __getstate__(self) -> tuple[Any, ...]:
        return self.edges, self.nodes, self.version

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.edges, self.nodes, self.version = state
        self._begin()


class _VersionedJob:
    """A batch on its way, which reads the arrays until it is there."""

    def __init__(self, job: PendingBatch[Any]) -> None:
        self._job = job

    def result(self) -> Any:
        """The batch; a second call gives the same one."""
        return self._job.result()

    def done(self) -> bool:
        """True if the result is there."""
        return self._job.done()

    def cancel(self) -> None:
        """Ends it."""
        self._job.cancel()

    def settle(self) -> None:
        """Waits until it reads no more. Its error is for who asks for the batch."""
        try:
            self._job.result()
        except Exception:
            return


class LearnedSampler(ProgramSampler[Any]):
    """A sampler that draws by arrays of its own, which training changes; see ``gcn_bs``.

    A batch is a pure function of (graph, plan, seed, epoch, batch, seeds) and of the ``version``
    that the arrays had when it was submitted. A change waits for the batches that are on their way,
    so each is of one version, which ``version_of`` tells. A loader that samples ahead
    (``prefetch``) submits batches by older versions, the same ones in every run; with
    ``prefetch=0`` each has the newest. Copies by ``with_seed``, as a loader makes them, have the
    same arrays. A pickle, and so a worker process, has arrays of its own, as they were then. So has
    a forked child; forked within a change, it may have half of that.

    ``state_dict`` and ``load_state_dict`` are for checkpoints. A graph on a GPU has copies of the
    arrays: of a bandit's the changed values alone are written there, others are copied once a
    version.

    Parameters
    ----------
    program : Program
        The program that reads the arrays.
    edges, nodes : mapping of str to array, optional
        The arrays by name, one value per edge id and one per node.
    """

    edge_values = "w"

    def __init__(
        self,
        program: Program,
        edges: Mapping[str, Values] | None = None,
        nodes: Mapping[str, Values] | None = None,
    ) -> None:
        super().__init__(program)
        self._state = _LearnedState(edges or {}, nodes or {})

    @property
    def array_names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of the arrays that the program reads from the graph itself."""
        edges, nodes = self._program.array_names
        return (
            tuple(name for name in edges if name not in self._state.edges),
            tuple(name for name in nodes if name not in self._state.nodes),
        )

    @property
    def extra_places(self) -> Mapping[str, str]:
        places: Mapping[str, str] = self._program.extra_places
        return places

    def _graph(self, graph: Graph) -> Graph:
        check_graph(graph)
        return Graph._wrap(self.sampled_graph(graph)._source)

    @property
    def _changes(self) -> bool:
        return True

    @property
    def version(self) -> int:
        """The number of times that the arrays have been changed."""
        return self._state.version

    def version_of(self, batch: Any) -> int:
        """The version that a batch was drawn by.

        Parameters
        ----------
        batch : MiniBatch
            Of this sampler, or of a copy; the last 65,536 are known.

        Raises
        ------
        KeyError
            For a batch that is not known, or of another process.
        """
        return self._state.versions[batch.epoch, batch.batch]

    def state_dict(self) -> dict[str, Any]:
        """Copies of the arrays by name, float64, and ``"version"``."""
        state = self._state
        with state.lock:
            arrays = {**state.edges, **state.nodes}
            return {"version": state.version, **{k: v.copy() for k, v in arrays.items()}}

    def load_state_dict(self, saved_state: Mapping[str, Any]) -> None:
        """Restores the state ``saved_state``, a result of ``state_dict``, from the next batch on.

        Raises
        ------
        TypeError
            For an object that is no mapping.
        ValueError
            For missing or further names, and for arrays of other shapes or of numbers that are not
            finite.
        """
        if not isinstance(saved_state, Mapping):
            raise TypeError(f"state: expected a mapping, got {describe(saved_state)}")
        state = self._state
        arrays = {**state.edges, **state.nodes}
        if set(saved_state) != {"version", *arrays}:
            names = ", ".join(["version", *arrays])
            raise ValueError(
                f"state: expected {names}, got {', '.join(map(str, saved_state)) or 'none'}"
            )
        version = integer(saved_state["version"], "state: version", 0)
        new = {
            name: finite_values(saved_state[name], f"state: {name}", values.shape)
            for name, values in arrays.items()
        }
        with state.lock:
            self._settle()
            for name, values in arrays.items():
                values[...] = new[name]
            state.version = version
            # Also where the number is the same, the arrays may not be.
            state.graphs.clear()
            state.changed.clear()

    def _changed(self, edges: Ids | None = None) -> int:
        """Counts a change, applied under the lock after ``_settle``, and returns the version.

        ``edges`` are the distinct ids of the edges whose values changed, if no others did: where
        they are few, only they are written to a GPU.
        """
        state = self._state
        state.version += 1
        if edges is None:
            state.changed.clear()
        else:
            state.changed[state.version] = edges
            most = sum(map(len, state.edges.values())) // _FEW
            while sum(map(len, state.changed.values())) > most:
                state.changed.popitem(last=False)
        return state.version

    def _settle(self) -> None:
        """Waits until no batch reads the arrays."""
        for flight in list(self._state.flying):
            flight.settle()
        self._state.flying.clear()

    def sampled_graph(self, graph: Graph) -> Graph:
        """The graph with the arrays."""
        state = self._state
        with state.lock:
            known = state.graphs.get(graph)
            # The engine reads the arrays on the CPU where they are.
            if known is not None:
                version, stored = known
                changed = None if graph._device < 0 else state.changes_since(version)
                if changed is not None and len(changed):
                    # One of half of the values, after an error, is known no more.
                    del state.graphs[graph]
                    relation: Any = stored
                    for name, values in state.edges.items():
                        relation._write_edges(name, changed, values[changed])
                    state.graphs[graph] = state.version, stored
                if graph._device < 0 or changed is not None:
                    return stored
            source: Any = graph._source
            made: Graph = source._with_inputs(self._program._reads, state.edges, state.nodes)
            state.graphs[graph] = state.version, made
            return made

    def launch(
        self,
        graph: Graph,
        seeds: Any,
        *,
        epoch: int,
        batch: int,
        exclude: Any = None,
        threads: int = 0,
        form: str = "array",
        asynchronous: bool = False,
    ) -> PendingBatch[Any]:
        """Starts a batch by the newest arrays, as ``Sampler.launch`` does.

        Parameters
        ----------
        graph, seeds, epoch, batch, threads, form, asynchronous
            The arguments of ``Sampler.launch``.
        exclude
            The argument of ``Program.launch``.
        """
        state = self._state
        with state.lock:
            job = dispatch(
                SampleRequest(
                    self._program,
                    self.sampled_graph(graph),
                    seeds,
                    epoch=epoch,
                    batch=batch,
                    exclude=exclude,
                    threads=threads,
                    form=form,
                    asynchronous=asynchronous,
                )
            )
            flight = _VersionedJob(job)
            state.flying.add(flight)
            state.versions[epoch, batch] = state.version
            state.versions.move_to_end((epoch, batch))
            if len(state.versions) > _REMEMBERED:
                state.versions.popitem(last=False)
        return flight

    def __repr__(self) -> str:
        return f"{self._program!r}, version {self.version}"


def finite_values(value: Any, where: str, shape: tuple[int, ...]) -> Values:
    """Finite numbers of that shape, as float64 on the CPU."""
    import numpy as np

    if hasattr(value, "detach"):
        value = value.detach().cpu()
    try:
        values = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{where}: expected numbers, got {describe(value)}") from error
    if values.shape != shape:
        raise ValueError(f"{where}: expected shape {shape}, got {values.shape}")
    if not np.isfinite(values).all():
        wrong = values[~np.isfinite(values)].flat[0]
        raise ValueError(f"{where}: expected finite numbers, got {wrong}")
    return values
