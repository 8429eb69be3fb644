"""``Sampler``: what every loader knows of a sampler."""

from __future__ import annotations

import copy
import re
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, ClassVar, Generic, TypeVar

from pygsampler._batch.minibatch import result_bytes
from pygsampler._engine.checks import describe, integer
from pygsampler._graph.graph import Graph, is_heterogeneous, is_homogeneous
from pygsampler._sampling.batch_counter import BatchCounter
from pygsampler._sampling.pending import GroupLauncher, PendingBatch
from pygsampler._sampling.seed_times import is_scalar_time

T_co = TypeVar("T_co", covariant=True)
S = TypeVar("S", bound="Sampler[Any]")


class Sampler(ABC, Generic[T_co]):
    """Base class of all samplers: the interface for loaders, adapters and commands.

    A custom sampler has a ``plan`` and ``launch``, and calls ``super().__init__(seed)``. It
    inherits the rest, and ``pygsampler.torch.DataLoader``, ``pygsampler.dgl.Sampler`` and
    ``pygsampler.pyg.Sampler`` take it:

        class Nothing(pgs.Sampler):
            plan = ("nothing",)

            def launch(self, graph, seeds, *, epoch, batch, **how):
                block = [0] * (len(seeds) + 1), [], []
                result = pgs.MiniBatch.from_blocks(
                    seeds, seeds, [block], epoch=epoch, batch=batch
                )
                return Ready(result)

    Parameters
    ----------
    seed : int, optional
        From ``-2**63`` to ``2**64 - 1``, taken modulo ``2**64``: see ``PGSampler``.
    """

    __slots__ = ()

    # A class with slots declares it, and "__weakref__".
    _numbers: BatchCounter

    # True if it samples heterogeneous graphs, too.
    _takes_types: ClassVar[bool] = False
    # True of a program over relations of a heterogeneous graph.
    _names_relations: ClassVar[bool] = False
    # The node arrays that are read as rows of values, of those in ``array_names``.
    _row_names: tuple[str, ...] = ()
    edge_values: ClassVar[str] = "edge_weights"
    """What DGL's blocks have a sampler's values of edges as, in ``edata``."""

    @property
    def result_kind(self) -> str:
        """The kind of its batches.

        ``"blocks"``, ``"subgraph"``, ``"vectors"``, ``"walks"``, ``"visits"`` or ``"steps"``.
        """
        return "blocks"

    @property
    def is_rooted(self) -> bool:
        """True if batches are around their seeds, which only some programs' batches are not."""
        return True

    @property
    def _changes(self) -> bool:
        """True if training changes what is drawn: batches depend on when they start."""
        return False

    def __init__(self, seed: int | None = None) -> None:
        self._numbers = BatchCounter(seed)  # type: ignore[misc]

    def _seeded_as(self, sampler: Sampler[Any]) -> None:
        """Resets the counter, by the seed of the sampler that this one was derived from."""
        Sampler.__init__(self, sampler.seed)
        # Loaders of several processes refuse a seed that nobody gave.
        self._numbers.is_drawn = sampler._numbers.is_drawn

    @property
    @abstractmethod
    def plan(self) -> Hashable:
        """The kind and the options of the sampler, without the seed: immutable and hashable.

        It can be pickled.
        """

    @abstractmethod
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
        """Starts a batch, which is a pure function of (graph, plan, seed, epoch, batch, seeds).

        Parameters
        ----------
        graph : Graph
        seeds : int32 or int64, shape [N]
            On the CPU, or on the graph's device.
        epoch, batch : int
            Checked: ``[0, 2**24)`` and ``[0, 2**40)``.
        exclude : int32 or int64, shape [K], optional
            Edges to sample around; NotImplementedError where a sampler cannot.
        threads : int
            The most threads for a batch on the CPU; 0 for all that are idle.
        form : str
            ``"array"``, the default, asks for a result in the engine's memory, ``"torch"`` for one
            in torch's, which a sampler may ignore. ``"edge_lists"`` is for neighbor samplers on the
            CPU alone: the result is a memory with one list of edges for all hops, as
            ``_batch.layout`` describes it.
        asynchronous : bool
            True if the caller does other work before it asks for the result. On a GPU the batch
            then runs at the same time as work that is put into the current stream later.

        Returns
        -------
        Pending
            Its result is what the sampler makes: a ``MiniBatch`` or a ``MiniBatch``, or
            ``Walks``.
        """

    def group_launcher(
        self, graph: Graph, *, epoch: int, form: str = "array"
    ) -> GroupLauncher | None:
        """Returns a function that starts several batches by one call, for loaders with prefetch.

        Its batches are those of ``launch`` with ``asynchronous``. A subclass need not define this
        method: the default is None, and each batch is launched alone.

        Parameters
        ----------
        graph : Graph
        epoch : int
            Checked: ``[0, 2**24)``.
        form : str
            ``"torch"`` for results in torch's memory. Our samplers return None for all others, and
            for a graph on the CPU.
        """
        return None

    @property
    def edge_array(self) -> tuple[str, str] | None:
        """``"prob"`` or ``"mask"``, and the name of the edge array with the weights or the mask.

        None if all edges are equal. DGL's and PyG's adapters copy the array from their graphs.
        """
        return None

    @property
    def array_names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of the edge arrays and of the node arrays that are read when a batch is sampled.

        DGL's and PyG's adapters copy these arrays from their graphs.
        """
        return (), ()

    @property
    def extra_places(self) -> Mapping[str, str]:
        """A mapping that says, by name, whose elements an array in ``batch.extra`` has.

        ``"all_nodes"``: all nodes of the graph; ``"nodes"``: the nodes of a subgraph; ``"seeds"``:
        the seeds with their duplicates; ``"unique_seeds"``: the seeds without duplicates; ``""``:
        none of these. DGL's and PyG's adapters pass on the elements of nodes in their batches.
        """
        return {}

    def sampled_graph(self, graph: Graph) -> Graph:
        """Returns the graph that is sampled instead of ``graph``: the edges that may be drawn."""
        return graph

    @property
    def seed(self) -> int:
        """The 64 bit seed, ``0 <= seed < 2**64``."""
        return self._numbers.seed

    @property
    def epoch(self) -> int:
        """The epoch of calls that give none; ``set_epoch`` sets it."""
        return self._numbers.epoch

    def with_seed(self: S, seed: int | None) -> S:
        """Another sampler of this plan, with that seed, that begins with batch 0 of epoch 0."""
        other = copy.copy(self)
        Sampler.__init__(other, seed)
        return other

    def with_gpu_share(self, share: float) -> Sampler[T_co]:
        """Returns a sampler of the same batches, whose launches use at most ``share`` of a GPU.

        It begins with batch 0 of epoch 0, as after ``with_seed``. ``share`` is above 0 and at most
        1. A subclass need not define this method: the default raises NotImplementedError.
        """
        raise NotImplementedError(f"{type(self).__name__} does not bound its launches")

    def set_epoch(self, n: int) -> None:
        """Makes ``n`` (0 to ``2**24 - 1``) the epoch, and the next batch without a number batch 0.

        Call it before each epoch, as with torch's DistributedSampler, and two runs see the same
        samples; without it the batch numbers go on, so that no two epochs see the same.
        """
        self._numbers.set_epoch(n)

    def sample(
        self,
        graph: Graph,
        seeds: Any,
        *,
        epoch: int | None = None,
        batch: int | None = None,
        exclude: Any = None,
        threads: int = 0,
    ) -> T_co:
        """Samples from ``seeds``; returns a ``MiniBatch``, or another result of the sampler.

        For a graph on a GPU the GPU samples, after the work that is in the current stream (torch's
        on that device where torch uses CUDA, else the default stream), and the batch is on the GPU,
        complete for every stream when this returns.

        Parameters
        ----------
        graph : Graph
        seeds : int32 or int64, shape [N], or a sequence of int
            Nodes of the graph. Duplicates stay in ``output_nodes`` but are sampled once. On
            the CPU, or on the graph's own device.
        epoch : int, optional
            0 to ``2**24 - 1``; the sampler's own by default.
        batch : int, optional
            0 to ``2**40 - 1``. By default the next number of the sampler's counter, so that two
            calls never repeat a sample. A worker of torch's DataLoader starts to count at a number
            that depends on its own seed. Other copies (by fork or pickle) continue with equal
            numbers: pass different numbers, or use different seeds.
        exclude : int32 or int64, shape [K], optional
            Original ids of edges to sample around, as if they were not in the graph. For a graph
            that was created from arrays on a GPU only if it has no ``edge_ids``.
        threads : int
            The most threads for this batch; 0 for all that are idle. A GPU uses none.

        Raises
        ------
        TypeError, ValueError
            For an argument of the wrong type, shape, range or device.
        IndexError
            For a seed that is not a node.
        ClosedError
            When the graph was closed.
        CudaError
            When the GPU fails, has no room, or belongs to the parent of a forked process.
        """
        job = self._start(graph, seeds, epoch, batch, exclude, threads, asynchronous=False)
        made: T_co = job.result()
        return made

    def submit(
        self,
        graph: Graph,
        seeds: Any,
        *,
        epoch: int | None = None,
        batch: int | None = None,
        exclude: Any = None,
        threads: int = 0,
    ) -> PendingBatch[T_co]:
        """Starts ``sample`` in the background; ``result()`` waits and returns the batch.

        The seeds and excluded ids are copied before it returns; seeds on a GPU are read there, so
        they must not change until the batch is done. Batches on a GPU run in parallel with each
        other, and with later work of the current stream. Wrong arguments raise here, as in
        ``sample``; later errors are raised by ``result()``.

        Parameters
        ----------
        graph, seeds, epoch, batch, exclude, threads
            As for ``sample``.
        """
        return self._start(graph, seeds, epoch, batch, exclude, threads, asynchronous=True)

    def sample_many(
        self,
        graph: Graph,
        seeds: Iterable[Any],
        *,
        epoch: int | None = None,
        batch: int | None = None,
        memory: int | None = None,
    ) -> list[T_co]:
        """A batch for each of several sets of seeds, as ``sample`` makes them one by one.

        Several run at once: on the CPU one to a core, on a GPU up to 16 to a launch and two
        launches, fewer where so many would take more than half of the memory that is free there.
        They are gSampler's super-batches (Gong et al., SOSP 2023, section 4.4).

        Parameters
        ----------
        graph : Graph
        seeds : iterable of int32 or int64 arrays, each of shape [N]
            As those of ``sample``; their lengths may differ.
        epoch, batch : int, optional
            As those of ``sample``; ``batch`` is the number of the first, and the others have those
            after it.
        memory : int, optional
            The bytes, at least 1, that batches may take while they are being sampled: as many run
            at once as fit, one at least. On a GPU a batch counts with all that it works in, as the
            engine expects it; on the CPU by the largest one so far, after the first, which runs
            alone. Batches that are sampled already are not counted. Batches do not depend on it.

        Returns
        -------
        list
            One for each set of seeds, in their order.

        Raises
        ------
        TypeError, ValueError, IndexError, ClosedError, CudaError
            As ``sample``: the error of the first batch that fails. The others are dropped.
        """
        return self._sample_sets(graph, seeds, epoch, batch, memory)

    def _sample_sets(
        self,
        graph: Any,
        seeds: Any,
        epoch: int | None,
        batch: int | None,
        memory: int | None,
        seed_time: Any = None,
    ) -> list[T_co]:
        """Samples as ``sample_many`` does; a ``seed_time`` is for samplers whose seeds have one."""
        check_graph(graph, self._takes_types)
        if isinstance(seeds, (str, bytes, Mapping)) or not isinstance(seeds, Iterable):
            raise TypeError(f"seeds: expected several arrays of ids, got {describe(seeds)}")
        many = list(seeds)
        times = None if seed_time is None else _times_of_sets(seed_time, len(many))
        epoch = self._numbers.chosen_epoch(epoch)
        if memory is not None:
            memory = integer(memory, "memory", 1)
        if not many:
            return []
        first = self._numbers.chosen_batch(batch, len(many))
        if times is None:
            return self._many(graph, many, epoch, first, memory)
        return self._launch_each(graph, many, epoch, first, memory, times)

    def _many(
        self, graph: Any, many: list[Any], epoch: int, batch: int, memory: int | None
    ) -> list[T_co]:
        return self._launch_each(graph, many, epoch, batch, memory)

    def _launch_each(
        self,
        graph: Any,
        many: list[Any],
        epoch: int,
        batch: int,
        memory: int | None,
        times: list[Any] | None = None,
    ) -> list[T_co]:
        """Launches each batch alone, several at once; ``times`` has those of the seeds of each."""
        jobs: list[PendingBatch[T_co]] = []
        # With several batches in flight, one core for each wastes nothing on synchronisation.
        threads = int(len(many) > 1)
        batches: list[T_co] = []
        # The most that are on their way at a time, and the bytes of the largest batch so far.
        most, largest, place = len(many) if memory is None else 1, 1, 0
        try:
            while len(batches) < len(many):
                while len(jobs) < min(len(batches) + most, len(many)):
                    place = len(jobs)
                    more: dict[str, Any] = {} if times is None else {"seed_time": times[place]}
                    job = self.launch(
                        graph,
                        many[place],
                        epoch=epoch,
                        batch=batch + place,
                        threads=threads,
                        asynchronous=True,
                        **more,
                    )
                    jobs.append(job)
                place = len(batches)
                batches.append(jobs[place].result())
                if memory is not None:
                    largest = max(largest, result_bytes(batches[-1]))
                    most = max(memory // largest, 1)
            return batches
        except (TypeError, ValueError, IndexError) as error:
            raise with_set_index(error, place) from None
        finally:
            # After an error, those that are still on their way.
            for job in jobs:
                job.cancel()

    def _start(
        self,
        graph: Any,
        seeds: Any,
        epoch: int | None,
        batch: int | None,
        exclude: Any,
        threads: int,
        asynchronous: bool,
        **more: Any,
    ) -> PendingBatch[Any]:
        check_graph(graph, self._takes_types)
        numbers = self._numbers
        epoch = numbers.chosen_epoch(epoch)
        return self.launch(
            graph,
            seeds,
            epoch=epoch,
            batch=numbers.chosen_batch(batch),
            exclude=exclude,
            threads=integer(threads, "threads", 0, _MOST_THREADS),
            asynchronous=asynchronous,
            **more,
        )


_MOST_THREADS = (1 << 31) - 1
# The text of an error of a set of seeds, or of its times.
_OF_SET = re.compile(r"(seeds|seed_time)([:\[].*)", re.DOTALL)


def from_pickle(kind: type[S], arguments: dict[str, Any], seed: int, epoch: int, number: int) -> S:
    """Returns the sampler of a pickle, from its arguments and its counter."""
    sampler = kind(**arguments, seed=seed)
    sampler._numbers.go_on(epoch, number)
    return sampler


def with_set_index(error: Exception, place: int) -> Exception:
    """An error of one of several sets of seeds, or of its times, whose text then says which."""
    match = _OF_SET.match(str(error))
    if match is None or type(error).__module__ != "builtins":
        return error
    return type(error)(f"{match[1]}[{place}]{match[2]}")


def _times_of_sets(seed_time: Any, count: int) -> list[Any]:
    """Returns the times of each of ``count`` sets of seeds, of a time for all or one for each."""
    if is_scalar_time(seed_time):
        return [seed_time] * count
    if isinstance(seed_time, (bytes, Mapping)) or not isinstance(seed_time, Iterable):
        raise TypeError(
            "seed_time: expected the times of each set of seeds, or one time for all, got "
            f"{describe(seed_time)}"
        )
    times = list(seed_time)
    if len(times) != count:
        raise ValueError(
            f"seed_time: expected the times of each of {count} sets of seeds, got {len(times)}"
        )
    return times


def check_graph(graph: Any, with_types: bool = False) -> None:
    """Raises TypeError for what is no Graph; others' graphs may be meant for a loader of theirs."""
    if with_types and is_heterogeneous(graph):
        return
    if not is_homogeneous(graph):
        library = type(graph).__module__.partition(".")[0]
        remedy = {
            "dgl": "Graph.from_dgl makes one, and pygsampler.dgl.PGSampler is for DGL's loaders",
            "torch_geometric": "Graph.from_pyg makes one, and pygsampler.pyg has PyG's loaders",
        }.get(library, "Graph.from_csc, from_coo, from_dgl, from_pyg and from_scipy make one")
        if is_heterogeneous(graph):
            remedy = "graph.to_homogeneous() is the one without types"
        raise TypeError(f"graph: expected a pygsampler.Graph, got {describe(graph)}; {remedy}")


def check_blocks(sampler: Sampler[Any]) -> None:
    """Raises ValueError for a sampler whose batches are neither blocks nor subgraphs."""
    if sampler.result_kind not in ("blocks", "subgraph"):
        raise ValueError(
            "sampler: expected a sampler that returns blocks or subgraphs, got "
            f"{describe(sampler)}, which returns {sampler.result_kind}; use "
            "pygsampler.torch.DataLoader"
        )
