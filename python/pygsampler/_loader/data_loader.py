"""``DataLoader``: mini-batches around seeds, for training loops in plain PyTorch."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar, overload

import torch

from pygsampler._arrays import devices
from pygsampler._arrays.ids import as_ids
from pygsampler._batch.static import (
    StaticHeteroMiniBatch,
    StaticMiniBatch,
)
from pygsampler._batch.torch_minibatch import TorchMiniBatch, as_torch
from pygsampler._engine.checks import boolean, integer
from pygsampler._engine.progress import progress_bar
from pygsampler._graph.graph import Graph
from pygsampler._graph.hetero_graph import HeteroGraph
from pygsampler._loader.arguments import graph_on_device, resolve_sampler
from pygsampler._loader.checkpoint import EpochRun, check_shard_by
from pygsampler._loader.counted_loader import record_events
from pygsampler._loader.epoch_state import shuffle
from pygsampler._loader.feature_fetcher import FeatureFetcher
from pygsampler._loader.hetero_feature_fetcher import HeteroFeatureFetcher
from pygsampler._loader.options import checked_keywords
from pygsampler._loader.prefetch import close_at_exit, prefetch_groups, prefetch_in_order
from pygsampler._loader.seed_weights import seed_weights as checked_seed_weights
from pygsampler._loader.seeds import HeteroSeeds, check_dates, seed_tensor, seed_times_tensor
from pygsampler._loader.shards import EpochShard, Shards
from pygsampler._loader.static_epochs import StaticEpochs
from pygsampler._loader.static_layouts import timed_of
from pygsampler._loader.static_option import StaticOption
from pygsampler._loader.static_seeds import StaticSeeds
from pygsampler._loader.stats import EpochStats, stats_text
from pygsampler._sampling.batch_counter import resolve_seed
from pygsampler._sampling.pending import PendingBatch, PendingGroup
from pygsampler._sampling.sampler import Sampler, check_graph
from pygsampler.samplers.neighbor import PGSampler

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from pygsampler._batch.hetero_torch_minibatch import HeteroTorchMiniBatch
    from pygsampler._loader.options import DataLoaderOptions
    from pygsampler.walks.pinsage import PinSAGE
    from pygsampler.walks.visits import SeedVisits

# The engine has buffers and streams for so many batches of a GPU at once.
MOST_ON_GPU = 8
# How often a bar's figures change.
BAR_SECONDS = 1.0


BatchT = TypeVar("BatchT")
T_co = TypeVar("T_co", covariant=True)


class _Sampled(Protocol[T_co]):
    """A result of a sampler, which a loader gives in torch's tensors."""

    def torch(self) -> T_co: ...


class DataLoader(StaticOption, Generic[BatchT]):
    """Iterate over ``seeds`` in mini-batches of sampled blocks, as torch tensors.

    Sampling runs in the engine, on the CPU outside the GIL or on a GPU beside the training
    step, up to ``prefetch`` batches ahead of the training loop; no worker processes or Python
    threads are involved:

        loader = DataLoader(graph, train_ids, [10, 10], batch_size=1024, shuffle=True)
        for epoch in range(10):
            for batch in loader:
                h = features[batch.input_nodes]
                ...

    With ``features`` and ``labels`` it also reads what belongs to the vertices of a batch ahead,
    and hands it over as ``batch.x`` (or another name) and ``batch.y``:

        loader = DataLoader(..., features={"x": x}, labels=y)

    Parameters
    ----------
    graph : Graph or HeteroGraph
        The graph to sample from.
    seeds : int32 or int64 vertex ids, 1-D
        A tensor, a NumPy array or a list. They are copied, to the CPU if they are on a GPU, and
        from there to the graph's device once an epoch. Duplicates are allowed, see
        ``MiniBatch``. None at all makes a loader of length 0. Of a ``HeteroGraph`` a mapping of
        vertex types to ids; those of several types are put after each other, and shuffled and cut
        together.
    sampler_or_fanouts : Sampler or list of int
        A sampler, or the fanouts to make one of, outermost hop first.
    batch_size : int
        Seeds of a batch, at least 1.
    shuffle : bool
        Permute the seeds anew in each epoch.
    drop_last : bool
        Drop batches that are not full, the same number on all ranks.
    prefetch : int
        Batches sampled ahead while the consumer works on one; 0 samples a batch only when it is
        asked for. On the CPU, from 2 on each batch is sampled by one core and several batches
        run at once; on a GPU at most 8 are in flight, with 4 to 12 bytes for each vertex of the
        graph to work with, and from 4 on they are started in groups of half as many. Memory is
        that of ``prefetch + 1`` batches, on a GPU with those of their groups that were dropped.
    seed : int, optional
        64-bit seed of the order, and of the sampler where fanouts are given. Default: that of the
        sampler that is given, else ``torch.initial_seed()``, asked for at each ``iter()``:
        ``torch.manual_seed`` with another number begins anew with epoch 0. ``set_seed`` does
        that with any number. With ``shuffle`` and ``world_size`` > 1 a seed must be chosen, here
        or for the sampler.
    rank : int
        This process's number in data-parallel training, from 0 to ``world_size - 1``.
    world_size : int
        How many processes take part. The (shuffled) seeds are dealt out exactly: each seed goes to
        one rank, all ranks have the same number of batches, and no batch is empty or larger than
        ``batch_size``. Give all ranks the same ``seed``.
    deal : str
        ``"seeds"``: as above. ``"batches"``: batch b of a single process is one of rank b modulo
        ``world_size``, so that all ranks together make the batches of a single process, for any
        number of them. Some rank may have one batch more than another, for which
        ``torch.distributed.algorithms.Join`` is there, or the first ``min`` of the ``len()``.
    start : int
        How many batches the first pass leaves out: of all ranks with ``deal="batches"``, else of
        each. ``load_state_dict`` goes on where ``state_dict`` was taken.
    progress : bool
        Show a tqdm bar with batches and sampled edges per second.
    device : str, int or torch.device, optional
        Where to sample, and where the batches are: ``"cpu"``, ``"cuda"`` or ``"cuda:1"``. Default:
        the graph's own device. A graph that is elsewhere is copied there by ``graph.to(device)``,
        once, when the loader is made; ``loader.graph`` is the copy. For a graph larger than the
        GPU's memory give ``graph.pin()``, which stays in page-locked host memory.
    prob, mask : str, optional
        The name of an edge array of the graph, for the sampler that is made of fanouts: weights to
        draw by, or the edges to sample, as ``PGSampler`` says. What a sampler that is given has is
        its own.
    edge_weights : str, optional
        ``"ht"``: each block has ``edge_weights``, a factor for each edge, likewise.
    labor : str, optional
        The sampler that is made of fanouts is LABOR, of which batches have fewer vertices:
        ``"poisson"``, with ``fanouts`` edges in the mean, or ``"exact"``, with so many. It is
        ``samplers.labor``, and of a ``HeteroGraph`` ``HeteroLaborSampler``.
    features : mapping of str to Features or arrays of shape [num_nodes, ...], optional
        Each batch has the rows of its ``input_nodes`` as an attribute of that name, and in
        ``batch.features``. They are used where they lie; ``Features.open`` has those of a file.
        On the CPU they are read ahead like the samples. Batches on a GPU read them there, or,
        those on the CPU, out of page-locked memory over the link: ``Features.to`` copies them.
        Of a ``HeteroGraph`` each name has a mapping of vertex types to arrays, in batches too;
        ``labels`` are such a mapping, and ``edge_features`` have mappings of edge types.
    labels : Features or array of shape [num_nodes, ...], optional
        Each batch has the rows of its ``output_nodes`` as ``y``.
    edge_features : mapping of str to Features or arrays of shape [num_edges, ...], optional
        Each block has the rows of its ``edge_ids`` as an attribute of that name, and in
        ``block.features``.
    low_mark : int, optional
        Once ``prefetch`` batches are ahead no more are begun until so many are left, fewer than
        ``prefetch``; then as many as there is room for are, on a GPU by one call. By default one
        less than ``prefetch``: one is begun for each that is taken. On a GPU, where the sampler
        starts groups, half of it. More is in docs/guide/prefetching.md.
    sampler_share : float, optional
        The most that a launch of the sampler takes of a GPU, above 0 and up to 1: that part of the
        blocks of threads that it runs at once. None: as many as is best for the sampler. It has no
        effect in mode ``"bsp"``, nor on the CPU, where ``pgs.set_num_threads`` has one.
    seed_weights : array of shape [N], or a mapping of types to such, optional
        Each epoch draws ``num_samples`` of the seeds with replacement, each in proportion to its
        weight: finite numbers, 0 for never, as for rare classes. The draws are a function of
        ``seed`` and the epoch (docs/concepts/randomness.md), the same on all ranks, which share
        them out as they share seeds. A seed may be more than once in a batch: its outputs are rows
        ``batch.output_index``. Not with ``shuffle``.
    num_samples : int, optional
        With ``seed_weights``, how many seeds an epoch has on all ranks. Default: as many as there
        are seeds.
    static : bool
        Yield each batch as the same ``StaticMiniBatch``, of fixed sizes in memory that stays where
        it is, as ``capture`` needs it, of a ``HeteroGraph`` as the same ``StaticHeteroMiniBatch``;
        on a GPU alone, for a ``PGSampler`` of mode ``"auto"`` or ``"persistent"``. One pass at a
        time: the next ``iter()`` ends the one before. ``prefetch`` is 2.
    capacities : sequence of (int, int), or of (mapping, mapping), or "most", optional
        With ``static``, how many sources and edges each block may have, outermost first; seeds are
        at most ``batch_size``. Default: what the batches of the first pass need, which are sampled
        once for that, and a twentieth more. A batch that needs more is noticed, and gets it, in
        other memory. ``"most"`` is what no batch can need more than, by the fanouts, of which none
        may be -1: with several ranks no batch of one of them is then too large, for which the
        others would not wait. ``loader.capacities`` are those in use. Of a ``HeteroGraph`` each
        pair is a mapping of vertex types to how many a batch may have after that hop, and one of
        edge types to how many edges; types that are not named have as few as may be.

    seed_time : array of shape [N], or a mapping of types to such, or one for all, optional
        With a sampler that has ``time``, the bound of each seed's tree, a number or a date: see
        ``PGSampler.sample``.

    Notes
    -----
    It yields what ``MiniBatch.torch()`` returns, a ``TorchMiniBatch``, and of a ``HeteroGraph`` a
    ``HeteroTorchMiniBatch``; of samplers that walk what these give, without features and labels but
    for ``RestartNeighbors``. On the CPU the tensors share the
    engine's memory. On a GPU they are views of one tensor, which torch allocates on the stream that
    is current when the batch is submitted, and the batch is complete when it is handed over: no
    stream has to wait for it. As with any tensor, work on it in a stream other than that one needs
    ``Tensor.record_stream`` before the batch is dropped. The batches of a group share their tensor:
    with ``prefetch=4`` 2 of them do, from 8 on 4, below 4 none. A batch that is kept keeps that
    memory, so clone the tensors to keep one for long.

    The batches are a pure function of the graph, the seeds, the options, ``seed``, the epoch,
    ``rank`` and ``world_size``; ``device``, ``prefetch`` and the number of threads never change
    them, nor do ``low_mark`` and ``sampler_share``. Each
    ``iter()`` takes the current epoch and advances it by one, so two passes never repeat the
    same samples by accident; ``set_epoch(n)`` chooses the epoch of the next pass, as a resumed run
    does. Iterators are independent of each other and several may be in use at once, each of its
    own epoch. A batch that fails raises when its turn comes, after the batches before it. Leaving
    a loop early, an error, Ctrl-C and the end of the interpreter cancel what is in flight.

    On a GPU a batch is sampled after the work that is in torch's current stream when its group is
    submitted, and beside what is put there later: with ``prefetch`` of 2 and more, sampling and
    training overlap.

    A loader can be pickled when its graph can; its iterators cannot.

    ``batch_size``, ``drop_last``, ``shuffle``, ``prefetch``, ``low_mark``, ``progress`` and
    ``sampler_share`` may be assigned: the next ``iter()`` has them, and passes that go on do not.
    All else is fixed, and assigning it is an error that says what to do.

    Raises
    ------
    AttributeError
        For assignments that could have no effect.
    TypeError, ValueError
        For arguments of a wrong type or value, naming the argument, and weights that are none,
        naming the edge. With ``world_size`` > 1 where
        no exact sharding exists: fewer seeds than ranks, or ``batch_size=1`` with a number of
        seeds that ``world_size`` does not divide (``drop_last=True`` allows the latter).
    IndexError
        For a seed outside ``[0, graph.num_nodes)``.
    CudaError
        For a ``device`` that is not there, or that torch cannot use.
    """

    @overload
    def __init__(
        self: DataLoader[StaticMiniBatch],
        graph: Graph,
        seeds: Any,
        sampler_or_fanouts: PGSampler | Sequence[int],
        *,
        batch_size: int,
        static: Literal[True],
        **options: Unpack[DataLoaderOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: DataLoader[StaticHeteroMiniBatch],
        graph: HeteroGraph,
        seeds: Any,
        sampler_or_fanouts: PGSampler | Sequence[Any],
        *,
        batch_size: int,
        static: Literal[True],
        **options: Unpack[DataLoaderOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: DataLoader[TorchMiniBatch],
        graph: Graph,
        seeds: Any,
        sampler_or_fanouts: Sequence[int],
        *,
        batch_size: int,
        static: Literal[False] = False,
        **options: Unpack[DataLoaderOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: DataLoader[HeteroTorchMiniBatch],
        graph: HeteroGraph,
        seeds: Any,
        sampler_or_fanouts: PGSampler | Sequence[Any],
        *,
        batch_size: int,
        static: Literal[False] = False,
        **options: Unpack[DataLoaderOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: DataLoader[SeedVisits],
        graph: Graph | HeteroGraph,
        seeds: Any,
        sampler_or_fanouts: PinSAGE,
        *,
        batch_size: int,
        static: Literal[False] = False,
        **options: Unpack[DataLoaderOptions],
    ) -> None: ...
    @overload
    def __init__(
        self,
        graph: Graph | HeteroGraph,
        seeds: Any,
        sampler_or_fanouts: Sampler[_Sampled[BatchT]],
        *,
        batch_size: int,
        static: Literal[False] = False,
        **options: Unpack[DataLoaderOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: DataLoader[Any],
        graph: Graph | HeteroGraph,
        seeds: Any,
        sampler_or_fanouts: Sampler[Any] | Sequence[Any],
        *,
        batch_size: int,
        static: bool = False,
        **options: Unpack[DataLoaderOptions],
    ) -> None: ...
    @checked_keywords
    def __init__(
        self,
        graph: Graph | HeteroGraph,
        seeds: Any,
        sampler_or_fanouts: Sampler[Any] | Sequence[Any],
        *,
        batch_size: int,
        shuffle: bool = False,
        drop_last: bool = False,
        prefetch: int = 4,
        seed: int | None = None,
        rank: int = 0,
        world_size: int = 1,
        progress: bool = False,
        deal: str = "seeds",
        start: int = 0,
        device: Any = None,
        prob: str | None = None,
        mask: str | None = None,
        edge_weights: str | None = None,
        labor: str | None = None,
        features: Mapping[str, Any] | None = None,
        labels: Any = None,
        edge_features: Mapping[str, Any] | None = None,
        low_mark: int | None = None,
        sampler_share: float | None = None,
        static: bool = False,
        capacities: Any = None,
        seed_time: Any = None,
        seed_weights: Any = None,
        num_samples: int | None = None,
    ) -> None:
        check_graph(graph, with_types=True)
        # By `__setattr__` each would take twice as long.
        own, world_size = vars(self), integer(world_size, "world_size", 1)
        own["batch_size"] = integer(batch_size, "batch_size", 1)
        own["shuffle"] = boolean(shuffle, "shuffle")
        own["drop_last"] = boolean(drop_last, "drop_last")
        own["prefetch"] = integer(prefetch, "prefetch", 0)
        own["low_mark"] = None if low_mark is None else self._checked("low_mark", low_mark)
        own["world_size"] = world_size
        own["rank"] = integer(rank, "rank", 0, world_size - 1)
        own["progress"] = boolean(progress, "progress")
        if seed is not None:
            seed = resolve_seed(seed)
        own["sampler"] = resolve_sampler(
            sampler_or_fanouts,
            seed,
            labor=labor,
            typed=isinstance(graph, HeteroGraph),
            prob=prob,
            mask=mask,
            edge_weights=edge_weights,
        )
        if sampler_share is not None:
            self.sampler_share = self._checked("sampler_share", sampler_share)
        # A sampler that was given has a seed of its own, which its owner sees.
        own["_follows"] = seed is None and self.sampler is not sampler_or_fanouts
        own["_seed_drawn"] = seed is None and self.sampler._numbers.is_drawn
        own["seed"] = self.sampler.seed if seed is None else seed
        self._types: HeteroSeeds | None = None
        if isinstance(graph, HeteroGraph):
            check_graph(graph, self.sampler._takes_types)
            if self.sampler.result == "relations":
                raise TypeError(
                    "sampler: expected one whose batches loaders have a form for, got "
                    f"{self.sampler!r}, a program over relations: call its sample or submit"
                )
            self._types = HeteroSeeds(graph, seeds)
            self._seeds = self._types.order
        else:
            self._seeds = seed_tensor(seeds, graph.num_nodes)
        self._times = self._times_of(seed_time, graph)
        if seed_weights is not None or num_samples is not None:
            about = seed_weights, num_samples, self._types, len(self._seeds)
            self._weights = checked_seed_weights(*about)
            if self.shuffle:
                self._check_shuffle()
        self._check_seed(self._seed_drawn)
        own["_shards"] = Shards(
            self._number, self.batch_size, world_size, self.drop_last, check_shard_by(deal)
        )
        own["_from"] = None, integer(start, "start", 0)
        # The epoch is the count of passes, until one is chosen.
        own["_epoch"], own["_counted"] = 0, True
        # Last, since it may copy a graph of many gigabytes.
        self.graph = graph_on_device(graph, device)
        # Tables are made now, and wrong weights are wrong arguments.
        self.sampler.graph_of(self.graph)
        _check_rows(self.sampler, features=features, labels=labels, edge_features=edge_features)
        rows = HeteroFeatureFetcher if self._types else FeatureFetcher
        self._rows = rows(self.graph, features, labels, edge_features)
        self._passes = None
        if boolean(static, "static"):
            size = min(self.batch_size, self._number)
            again = self._weights is not None
            form = self._form(self._types.most(size, again) if self._types else size)
            given = form.checked(capacities, self.sampler)  # type: ignore[arg-type]
            owned = self.graph, self._shards, self.rank, self._rows, form, given
            self._passes = StaticEpochs(*owned)
        self._check_static(capacities, start)
        own["_complete"] = True

    @property
    def _number(self) -> int:
        """The number of seeds of an epoch, on all ranks."""
        return len(self._seeds) if self._weights is None else self._weights.count

    def __len__(self) -> int:
        """Number of batches of a whole epoch on this rank.

        It is the same on every rank, unless batches are dealt out.
        """
        return EpochShard(self._shards, self.rank).steps

    def __iter__(self) -> Iterator[BatchT]:
        going, meter = self._next_pass()
        # A later set_seed must not reach a pass that goes on.
        batches = copy.copy(self)._batches(going, meter)
        shown: Any = self._with_bar(batches, meter) if self.progress else batches
        return close_at_exit(shown)

    def __repr__(self) -> str:
        ranks = f", rank={self.rank}, world_size={self.world_size}" if self.world_size > 1 else ""
        device = "" if self.device == "cpu" else f", device={self.device!r}"
        drawn = "" if self._weights is None else f"{self._number} by weight of "
        return (
            f"DataLoader({drawn}{len(self._seeds)} seeds, {self.sampler!r}, "
            f"batch_size={self.batch_size}, shuffle={self.shuffle}, drop_last={self.drop_last}, "
            f"prefetch={self.prefetch}{ranks}{device})"
        )

    def _begin_static(self, passes: StaticEpochs, epoch: int, index: int) -> int:
        """Begins a pass whose batches have one memory, and gives its number."""
        self._fill_caches(epoch, index)
        sampler = self.sampler
        assert isinstance(sampler, PGSampler)
        timed = timed_of(self.graph, sampler)
        made = StaticSeeds(self._types, self._shards, self.rank, timed)
        seeds = made.of(self._order(epoch), self._times_in_order(epoch), index, _copied)

        def again(step: int, number: int) -> Any:
            start, end = self._shards.bounds(self.rank, step)
            order = self._order(epoch)
            part = self._types.part(order, start, end) if self._types else order[start:end]
            about = self._timed(epoch)(start, end)
            job = sampler.launch(self.graph, part, **about, epoch=epoch, batch=number, into="torch")
            return as_torch(job.result())

        return passes.begin(sampler, seeds, epoch, lambda: self._sampled(epoch, index), again)

    def _fill_caches(self, epoch: int, index: int) -> None:
        """Caches of features have the rows that they are to have in the epoch."""
        steps = self._shards.steps
        self._rows.fill_caches(self.seed, epoch, lambda e: self._sampled(e, index), steps)

    def _order_there(self, epoch: int) -> torch.Tensor:
        """The seeds of the epoch on the GPU, put into torch's current stream."""
        return _copied(self._order(epoch), devices.parse(self.graph.device))

    def _batches(self, going: EpochRun, meter: EpochStats) -> Generator[TorchMiniBatch, None, None]:
        """The batches of this rank; none is submitted before the first is asked for."""
        index = devices.parse(self.graph.device)
        if index < 0:
            return self._on_cpu(going, meter)
        return self._on_gpu(going, index, meter)

    def _on_cpu(self, going: EpochRun, meter: EpochStats) -> Generator[TorchMiniBatch, None, None]:
        epoch, part = going.epoch, going.part
        order, timed = self._order(epoch), self._timed(epoch)
        # With several batches in flight, one core for each wastes nothing on synchronisation.
        threads = 1 if self.prefetch >= 2 else 0

        def submit(step: int) -> PendingBatch[Any]:
            start, end = part.bounds(step)
            return self.sampler.submit(
                self.graph,
                self._types.part(order, start, end) if self._types else order[start:end],
                **timed(start, end),
                epoch=epoch,
                batch=part.number(step),
                threads=threads,
            )

        def read(batch: Any) -> PendingBatch[Any]:
            return self._rows.start(batch, threads)

        then = read if self._rows else None
        depth = self.prefetch
        steady = self.sampler._changes
        batches = prefetch_in_order(
            submit, part.steps, depth, then, low=self.low_mark, steady=steady, meter=meter
        )
        yield from self._metered(batches, going, meter, as_torch)

    def _on_gpu(
        self, going: EpochRun, index: int, meter: EpochStats
    ) -> Generator[TorchMiniBatch, None, None]:
        if not going.part.steps:
            return
        epoch = going.epoch
        # First, since it says what is wrong in a forked child, or with a closed graph.
        self.graph._handle()
        record_events(meter, index)
        passes = self._passes
        if passes is not None:
            # Static ones have rows already, and sizes that are not the batch's.
            static = passes.batches(self._begin_static(passes, epoch, index))
            yield from self._metered_there(static, going, meter, lambda batch: batch, passes)
            return
        self._fill_caches(epoch, index)
        batches = self._sampled(epoch, index, meter, going.part)
        yield from self._metered_there(batches, going, meter, self._with_rows)

    def _with_rows(self, batch: Any) -> Any:
        if self._rows:
            self._rows.fetch_on_device(batch)
        return batch

    def _sampled(
        self, epoch: int, index: int, meter: EpochStats | None = None, of: EpochShard | None = None
    ) -> Generator[TorchMiniBatch, None, None]:
        """The batches of a rank on a GPU, without rows; all of the epoch, or that part."""
        of = EpochShard(self._shards, self.rank) if of is None else of
        part: Callable[[int, int], Any]
        if self._types is None:
            # Put into the stream of the first submissions, which so come after it. Later ones may
            # be in other streams: by then a batch has been handed over, so the copy is done.
            part = as_ids(self._order_there(epoch), "seeds", index).part
        else:
            part = partial(self._types.part, self._order(epoch))
        if meter is not None:
            record_events(meter, index)
        graph, bounds, number = self.graph, of.bounds, of.number
        share = self.sampler_share
        sampler = self.sampler if share is None else self.sampler.within(share)
        launch = sampler.launch

        timed = self._timed(epoch)

        def submit(step: int) -> PendingBatch[Any]:
            start, end = bounds(step)
            return launch(
                graph,
                part(start, end),
                **timed(start, end),
                epoch=epoch,
                batch=number(step),
                into="torch",
                beside=True,
            )

        depth = min(self.prefetch, MOST_ON_GPU)
        low = self.low_mark if self.low_mark is None else min(self.low_mark, max(depth - 1, 0))
        # While one half of what is ahead is consumed, the other is on its way.
        size = depth // 2 if low is None else depth - low
        start = sampler.launcher(graph, epoch=epoch, into="torch") if size > 1 else None

        def submit_many(first: int, count: int) -> PendingGroup[Any]:
            assert start is not None
            steps = range(first, first + count)
            seeds = [part(*bounds(step)) for step in steps]
            return start(seeds, [number(step) for step in steps])

        # Each job is over, or cancelled, before the order goes: none reads it after that.
        steady = self.sampler._changes
        if start is None:
            batches = prefetch_in_order(
                submit, of.steps, depth, low=low, steady=steady, meter=meter
            )
        else:
            batches = prefetch_groups(
                submit_many, of.steps, depth, size, steady=steady, meter=meter
            )
        with closing(batches):
            for batch in batches:
                yield as_torch(batch)

    def _times_of(self, given: Any, graph: Any) -> torch.Tensor | None:
        """A time for each seed, int64 or float64; None for a sampler that asks for none."""
        rule = getattr(self.sampler, "temporal", None)
        if rule is None:
            if given is not None:
                raise ValueError(
                    "seed_time: expected None for a sampler without temporal=, got some"
                )
            return None
        if given is None:
            raise ValueError(
                f"seed_time: expected a time for each seed with temporal={rule.attr!r}, got None"
            )
        check_dates(given, graph, rule.attr)
        if self._types is not None:
            return self._types.times(given)
        return seed_times_tensor(given, "seed_time", len(self._seeds), "seeds")

    def _timed(self, epoch: int) -> Callable[[int, int], dict[str, Any]]:
        """What a batch of the seeds from one place of the epoch's order up to another is told of
        their times."""
        times = self._times_in_order(epoch)
        if times is None:
            return lambda start, end: {}
        if self._types is not None:
            of = partial(self._types.part_times, self._order(epoch), times)
            return lambda start, end: {"seed_time": of(start, end)}
        return lambda start, end: {"seed_time": times[start:end]}

    def _times_in_order(self, epoch: int) -> torch.Tensor | None:
        """The times of the seeds of the epoch on the CPU; None: they have none."""
        times = self._times
        if times is not None and self._weights is not None:
            return times[self._weights.places(self.seed, epoch)]
        if times is None or not self.shuffle:
            return times
        # The order depends on the number of seeds alone; a float64 moves as its bits.
        return shuffle(times.view(torch.int64), self.seed, epoch).view(times.dtype)

    def _order(self, epoch: int) -> torch.Tensor:
        """The seeds of the epoch on the CPU, the same for every device."""
        if self._weights is not None:
            return self._seeds[self._weights.places(self.seed, epoch)]
        return shuffle(self._seeds, self.seed, epoch) if self.shuffle else self._seeds

    def _with_bar(
        self, batches: Generator[TorchMiniBatch, None, None], meter: EpochStats
    ) -> Generator[TorchMiniBatch, None, None]:
        text = f"epoch {meter.epoch}"
        with closing(batches), progress_bar(total=len(self), desc=text, unit="batch") as shown:
            told = 0.0
            for batch in batches:
                # Reading what was measured takes longer than measuring it.
                if (now := time.perf_counter()) - told >= BAR_SECONDS:
                    shown.set_postfix_str(stats_text(meter.stats()), refresh=False)
                    told = now
                yield batch
                shown.update()
            shown.set_postfix_str(stats_text(meter.stats()))


def _check_rows(sampler: Sampler[Any], **given: Any) -> None:
    """ValueError for rows that the sampler's batches have no place for."""
    refused = {"walks": (*given,), "steps": (*given,), "visits": ("edge_features",)}
    for name in refused.get(sampler.result, ()):
        if given[name] is not None:
            raise ValueError(
                f"{name}: expected None for a sampler whose batches are {sampler.result}, got some "
                f"for {sampler!r}"
            )


def _copied(order: torch.Tensor, index: int) -> torch.Tensor:
    """``order`` on the device, once the work that is now in torch's current stream is done."""
    # From page-locked memory the copy is asynchronous. Torch keeps that memory until it is done.
    return order.pin_memory().to(torch.device("cuda", index), non_blocking=True)
