"""``PGSampler``: uniform neighbour sampling over L hops."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from pygsampler import _engine, _seed
from pygsampler._check import describe, integer
from pygsampler._device_job import DeviceJob, TorchJob, sample_many
from pygsampler._handled import Handled
from pygsampler._job import Job, in_set
from pygsampler._options import Options
from pygsampler.graph import Graph

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pygsampler.minibatch import MiniBatch

# The counters of the random numbers hold an epoch in 24 and a batch in 40 bits.
MAX_EPOCH = (1 << 24) - 1
MAX_BATCH = (1 << 40) - 1
_MOST_THREADS = (1 << 31) - 1


class PGSampler(Handled):
    """Samples in-neighbours uniformly, hop by hop, from seeds outwards.

    At each hop every vertex of the frontier gets ``fanout`` of its in-edges, drawn afresh. The
    sample is a pure function of (graph, options, seed, epoch, batch, seeds): never of threads,
    processes or earlier calls.

    Parameters
    ----------
    fanouts : sequence of int
        In-edges for each vertex, outermost hop first: ``fanouts[-1]`` is applied to the seeds.
        -1 takes all, also with replacement; 0 takes none.
    replace : bool
        Draw with replacement: then a vertex with any in-edge gets exactly ``fanout`` draws.
        Without, a vertex with at most ``fanout`` in-edges gets all of them.
    frontier : str
        ``"all"``, as DGL has it: each hop expands every vertex reached so far. ``"new"``, as PyG
        has it: a vertex is expanded once, at the hop after the one that reached it first.
    disjoint : bool
        Each seed, also a repeated one, has a tree of its own: trees share neither vertices nor
        draws, and ``MiniBatch.trees`` tells which vertex is whose.
    seed : int, optional
        From ``-2**63`` to ``2**64 - 1``, taken modulo ``2**64``. Without one it is
        ``torch.initial_seed()`` when torch has been imported, else it comes from the operating
        system.
    ordered : bool
        Vertices are numbered in the canonical order, which is the same everywhere. False skips
        the pass for it in mode ``"queue"`` on a GPU: the edges are the same in original ids, and
        the vertices after the seeds are numbered as they arrive. Elsewhere it changes nothing.
    mode : str
        How a GPU goes about it; the batches are equal. ``"auto"`` is the fastest known for the
        shape. ``"persistent"``: all hops in one launch, in phases that all blocks of threads go
        through together. ``"fused"``: all hops in one launch, rows dealt out beforehand.
        ``"bsp"``: a few launches for each hop, whose size the host reads in between.
        ``"queue"``: the task queue of the paper, without a barrier between hops. On the CPU
        ``"queue"`` is such a task queue too, and the others are alike. With ``frontier="new"``
        or ``disjoint=True`` it is one of the first two.
    map_limit : int, optional
        Bytes that a batch in flight may use to number its vertices. Above it tables grow with
        the batch, where else a map of 4 bytes for each vertex of the graph (8 for batches
        of ``2**24`` vertices and more) is faster. Of no effect on a GPU.

    Notes
    -----
    Random numbers are counter-based (Philox4x32-10 for each row, SplitMix64 for each draw), and
    sampling without replacement is Robert Floyd's algorithm, so that a row costs O(fanout) at
    any degree; docs/randomness.md has the rules. The hops of a batch and mode ``"queue"`` follow
    the paper "PGSampler: Accelerating GPU-based Graph Sampling in GNN Systems via Workload Fusion",
    sections III-B and III-C; ``frontier`` is DGL's or PyG's.

    One sampler may be used from many threads at once. Pickling keeps options, seed, epoch and the
    number of the next batch.
    """

    _end: ClassVar[str] = "SamplerClose"

    __slots__ = (
        "__weakref__",
        "_counted_in",
        "_drawn",
        "_epoch",
        "_next",
        "_options",
    )

    def __init__(
        self,
        fanouts: Sequence[int],
        *,
        replace: bool = False,
        frontier: str = "all",
        disjoint: bool = False,
        seed: int | None = None,
        ordered: bool = True,
        mode: str = "auto",
        map_limit: int | None = None,
    ) -> None:
        # Its handle is made at first use: a sampler costs nothing before.
        super().__init__()
        self._options = Options.checked(
            fanouts,
            replace=replace,
            frontier=frontier,
            disjoint=disjoint,
            ordered=ordered,
            mode=mode,
            map_limit=map_limit,
            seed=seed,
        )
        # Whether another process that makes this sampler has another seed.
        self._drawn = seed is None
        self._epoch = 0
        self._next = 0
        # The engine generation whose process the batch counter was set up for.
        self._counted_in: int | None = None

    @property
    def fanouts(self) -> tuple[int, ...]:
        """In-edges for each vertex, outermost hop first."""
        return self._options.fanouts

    @property
    def replace(self) -> bool:
        """Whether edges are drawn with replacement."""
        return self._options.replace

    @property
    def frontier(self) -> str:
        """``"all"`` or ``"new"``: which vertices a hop expands."""
        return self._options.frontier

    @property
    def disjoint(self) -> bool:
        """Whether each seed has a tree of its own."""
        return self._options.disjoint

    @property
    def seed(self) -> int:
        """The 64 bit seed, ``0 <= seed < 2**64``."""
        return self._options.seed

    @property
    def ordered(self) -> bool:
        """As it was given."""
        return self._options.ordered

    @property
    def mode(self) -> str:
        """``"auto"``, ``"persistent"``, ``"fused"``, ``"bsp"`` or ``"queue"``."""
        return self._options.mode

    @property
    def map_limit(self) -> int | None:
        """As it was given."""
        return self._options.map_limit

    @property
    def epoch(self) -> int:
        """The epoch of calls that give none; ``set_epoch`` sets it."""
        return self._epoch

    def set_epoch(self, n: int) -> None:
        """Makes ``n`` (0 to ``2**24 - 1``) the epoch, and the next batch without a number batch 0.

        Call it before each epoch, as with torch's DistributedSampler, and two runs see the same
        samples; without it the batch numbers go on, so that no two epochs see the same.
        """
        epoch = integer(n, "epoch", 0, MAX_EPOCH)
        with _engine.count_lock():
            self._epoch = epoch
            self._next = 0
            self._counted_in = None

    def sample(
        self,
        graph: Graph,
        seeds: Any,
        *,
        epoch: int | None = None,
        batch: int | None = None,
        exclude: Any = None,
        threads: int = 0,
    ) -> MiniBatch:
        """The sampled neighbourhood of ``seeds``.

        Of a graph on a GPU the GPU samples, after the work that is in the current stream (torch's
        on that device where torch uses CUDA, else the default stream), and the batch is there,
        complete for every stream when this returns.

        Parameters
        ----------
        graph : Graph
        seeds : int32 or int64, shape [N], or a sequence of int
            Vertices of the graph. Duplicates stay in ``output_nodes`` but are sampled once. On
            the CPU, or on the graph's own device.
        epoch : int, optional
            0 to ``2**24 - 1``; the sampler's own by default.
        batch : int, optional
            0 to ``2**40 - 1``. By default the next number of the sampler's counter, so that two
            calls never repeat a sample. A worker of torch's DataLoader starts to count at a place
            that its own seed says. Other copies (made by fork or pickle) go on counting alike:
            give them numbers, or seeds, of their own.
        exclude : int32 or int64, shape [K], optional
            Original ids of edges to sample around, as if they were not in the graph. Of a graph
            that was made of arrays on a GPU only where it has no ``edge_ids``.
        threads : int
            The most threads for this batch; 0 for all that are idle. A GPU uses none.

        Raises
        ------
        TypeError, ValueError
            For an argument of the wrong type, shape, range or device.
        IndexError
            For a seed that is not a vertex.
        ClosedError
            When the graph was closed.
        CudaError
            When the GPU fails, has no room, or belongs to the parent of a forked process.
        """
        return self._start(graph, seeds, epoch, batch, exclude, threads, prompt=True).result()

    def sample_many(
        self,
        graph: Graph,
        seeds: Iterable[Any],
        *,
        epoch: int | None = None,
        batch: int | None = None,
    ) -> list[MiniBatch]:
        """A batch for each of several sets of seeds, as ``sample`` makes them one by one.

        Several run at once: on the CPU one to a core, on a GPU up to 16 to a launch.

        Parameters
        ----------
        graph : Graph
        seeds : iterable of int32 or int64 arrays, each of shape [N]
            As those of ``sample``; their lengths may differ.
        epoch, batch : int, optional
            As those of ``sample``; ``batch`` is the number of the first, and the others have those
            after it.

        Returns
        -------
        list of MiniBatch
            One for each set of seeds, in their order.

        Raises
        ------
        TypeError, ValueError, IndexError, ClosedError, CudaError
            As ``sample``: the error of the first batch that fails. The others are dropped.
        """
        check_graph(graph)
        if isinstance(seeds, (str, bytes, Mapping)) or not isinstance(seeds, Iterable):
            raise TypeError(f"seeds: expected several arrays of ids, got {describe(seeds)}")
        many = list(seeds)
        epoch = self._epoch if epoch is None else integer(epoch, "epoch", 0, MAX_EPOCH)
        if not many:
            return []
        if batch is None:
            batch = self._next_batch(len(many))
        batch = integer(batch, "batch", 0, MAX_BATCH - len(many) + 1)
        if graph._device >= 0:
            return sample_many(graph, self, many, epoch, batch)
        jobs: list[Job] = []
        # With several batches in flight, one core for each wastes nothing on synchronisation.
        threads = int(len(many) > 1)
        batches: list[MiniBatch] = []
        try:
            for i, ids in enumerate(many, batch):
                jobs.append(Job.start(graph, self, ids, epoch=epoch, batch=i, threads=threads))
            for job in jobs:
                batches.append(job.result())
            return batches
        except (TypeError, ValueError, IndexError) as error:
            place = len(jobs) if len(jobs) < len(many) else len(batches)
            raise in_set(error, place) from None
        finally:
            # After an error, those that are still on their way.
            for job in jobs:
                job.cancel()

    def submit(
        self,
        graph: Graph,
        seeds: Any,
        *,
        epoch: int | None = None,
        batch: int | None = None,
        exclude: Any = None,
        threads: int = 0,
    ) -> Job:
        """Starts what ``sample`` does in the background; ``Job.result()`` gives the MiniBatch.

        The seeds and excluded ids are copied before it returns; seeds on a GPU are read there, so
        leave them as they are until the batch is done. Batches on a GPU run beside each other,
        and beside what is put into the current stream later. Wrong arguments raise here, as
        ``sample`` does for them; what fails later is raised by ``Job.result()``.
        """
        return self._start(graph, seeds, epoch, batch, exclude, threads, prompt=False)

    def _start(
        self,
        graph: Graph,
        seeds: Any,
        epoch: int | None,
        batch: int | None,
        exclude: Any,
        threads: int,
        prompt: bool,
    ) -> Job:
        check_graph(graph)
        epoch = self._epoch if epoch is None else integer(epoch, "epoch", 0, MAX_EPOCH)
        if batch is None:
            batch = self._next_batch()
        batch = integer(batch, "batch", 0, MAX_BATCH)
        threads = integer(threads, "threads", 0, _MOST_THREADS)
        if graph._device >= 0:
            return DeviceJob.submit(
                graph, self, seeds, epoch=epoch, batch=batch, exclude=exclude, own=not prompt
            )
        return Job.start(
            graph,
            self,
            seeds,
            epoch=epoch,
            batch=batch,
            exclude=exclude,
            threads=threads,
            prompt=prompt,
        )

    def _launch_torch(
        self, graph: Graph, seeds: Any, epoch: int, batch: int, *, own_stream: bool
    ) -> TorchJob:
        """Starts a batch of a graph on a GPU, in memory that torch allocates in its current stream.

        ``own_stream``: run beside what is put into the current stream later, rather than in it.
        """
        return TorchJob(graph, self, seeds, epoch, batch, own_stream)

    def __repr__(self) -> str:
        return f"PGSampler({self._options})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self.fanouts, self._options.named(), self._epoch, self._next)

    def _next_batch(self, count: int = 1) -> int:
        with _engine.count_lock():
            if self._counted_in != _engine.generation():
                self._counted_in = _engine.generation()
                self._next = _seed.worker_start(self._next)
            number = self._next
            self._next += count
            return number

    def _handle(self) -> int:
        """The handle in this process's engine, made anew after a fork."""
        number = self._current()
        if number:
            return number
        with _engine.handle_lock():
            if not self._current():
                self._give_back()
                fanouts = array("q", self.fanouts)
                self._make("SamplerNew", *self._options.arguments(fanouts.buffer_info()[0]))
            return self._number


def check_graph(graph: Any) -> None:
    """TypeError for what is no Graph; others' graphs may be meant for a loader of theirs."""
    if not isinstance(graph, Graph):
        library = type(graph).__module__.partition(".")[0]
        remedy = {
            "dgl": "Graph.from_dgl makes one, and pygsampler.dgl.PGSampler is for DGL's loaders",
            "torch_geometric": "Graph.from_pyg makes one, and pygsampler.pyg has PyG's loaders",
        }.get(library, "Graph.from_csc, from_coo, from_dgl, from_pyg and from_scipy make one")
        raise TypeError(f"graph: expected a pygsampler.Graph, got {describe(graph)}; {remedy}")


def _restore(
    fanouts: tuple[int, ...], options: dict[str, Any], epoch: int, number: int
) -> PGSampler:
    sampler = PGSampler(fanouts, **options)
    sampler._epoch = epoch
    sampler._next = number
    return sampler
