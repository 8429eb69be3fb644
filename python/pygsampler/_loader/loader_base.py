"""``LoaderBase``: what loaders around nodes and around edges have in common."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from copy import copy
from operator import attrgetter
from time import perf_counter
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from pygsampler._engine.checks import boolean, integer
from pygsampler._engine.progress import progress_bar
from pygsampler._graph.graph import is_heterogeneous
from pygsampler._graph.schema import by_name
from pygsampler._loader.arguments import choose_device, graph_on_device, resolve_sampler
from pygsampler._loader.assignable_options import (
    ASSIGNABLE,
    check_assigned,
    check_budget,
    check_cache,
    check_option,
    library_class,
    marks,
)
from pygsampler._loader.cache_tuner import CacheTuner, checked_rows
from pygsampler._loader.epoch_state import EpochState
from pygsampler._loader.explanation import explain_loader
from pygsampler._loader.feature_fetcher import FeatureFetcher, check_names
from pygsampler._loader.hetero_feature_fetcher import HeteroFeatureFetcher
from pygsampler._loader.label_leakage import check_label_columns, label_times
from pygsampler._loader.leakage import GuardedSeeds, LeakageGuard
from pygsampler._loader.pipeline import begin_static, run_epoch
from pygsampler._loader.prefetch import close_at_exit
from pygsampler._loader.prefetch_tuner import AUTO, PrefetchTuner
from pygsampler._loader.shards import EpochShard, Shards, check_shard_by
from pygsampler._loader.share_tuner import ShareTuner, checked_share
from pygsampler._loader.static_epochs import StaticPlan
from pygsampler._loader.stats import LoaderStats, stats_text
from pygsampler._sampling.batch_counter import resolve_seed
from pygsampler._sampling.sampler import check_graph

if TYPE_CHECKING:
    from pygsampler._loader.epoch_state import EpochRun
    from pygsampler._loader.static_epochs import StaticEpochs
    from pygsampler._loader.stats import EpochStats
    from pygsampler._loader.summary import Stats
    from pygsampler._sampling.sampler import Sampler
    from pygsampler._sampling.static_buffers import Capacity

__all__ = ["LoaderBase"]

BatchT = TypeVar("BatchT")

# The seconds between changes of a bar's figures.
BAR_SECONDS = 1.0


class LoaderBase(Generic[BatchT]):
    """A loader of its parts: the seeds, their shards, the epochs, the features, the figures."""

    graph: Any
    rank: int
    prefetch: int | tuple[int, int] | Literal["auto"]
    prefetch_memory: int | None
    progress: bool = False
    gpu_share: float | Literal["auto"] | None = None

    # Its class is the loader's only difference.
    _source: Any
    _epochs: EpochState
    # The assignment of positions to ranks.
    _shards: Shards
    _fetcher: FeatureFetcher
    _stats: LoaderStats
    _static: StaticPlan | None = None
    # The tuners of `prefetch="auto"`, `cache="auto"` and `gpu_share="auto"`, None otherwise.
    _tuner: PrefetchTuner | None = None
    _cache_tuner: CacheTuner | None = None
    _share_tuner: ShareTuner | None = None
    # From when on labels are known, by node type.
    _label_times: Mapping[str, Any]
    # Why `device="auto"` is what it is.
    _device_reason: str = ""

    def _compose(
        self,
        graph: Any,
        sampler_or_fanouts: Any,
        source: Callable[[Sampler[Any]], Any],
        *,
        batch_size: int,
        shuffle: bool,
        drop_last: bool,
        prefetch: Any,
        prefetch_memory: Any,
        seed: int | None,
        rank: int,
        world_size: int,
        shard_by: str,
        skip_batches: int,
        device: Any,
        features: Any,
        labels: Any,
        edge_features: Any,
        static: Any,
        progress: bool,
        gpu_share: float | Literal["auto"] | None,
        cache: Any,
        guard: Any,
        label_time: Any = None,
        seed_labels: Any = None,
    ) -> None:
        """Checks the options, and puts the loader together; ``source`` makes its seeds."""
        check_graph(graph, with_types=True)
        if seed_labels is not None and labels is not None:
            raise ValueError(
                "seed_labels: expected None with labels=, got some; give labels of nodes or of "
                "seeds"
            )
        batch_size = integer(batch_size, "batch_size", 1)
        shuffle, drop_last = boolean(shuffle, "shuffle"), boolean(drop_last, "drop_last")
        # By `__setattr__` each would take twice as long.
        own, world_size = vars(self), integer(world_size, "world_size", 1)
        own["prefetch"] = ahead = check_option(self, "prefetch", prefetch)
        own["prefetch_memory"] = check_budget(prefetch_memory, ahead, static)
        if ahead == AUTO:
            own["_tuner"] = PrefetchTuner(self.prefetch_memory)
        own["rank"] = integer(rank, "rank", 0, world_size - 1)
        own["progress"] = boolean(progress, "progress")
        if seed is not None:
            seed = resolve_seed(seed)
        is_hetero = is_heterogeneous(graph)
        if check_cache(cache, is_hetero):
            own["_cache_tuner"] = CacheTuner()
        sampler = resolve_sampler(sampler_or_fanouts, seed)
        own["_source"] = seeds = source(sampler)
        rule = getattr(sampler, "temporal", None)
        own["_label_times"] = label_times(graph, label_time, labels, rule)
        if boolean(guard, "guard"):
            if static is not False:
                raise ValueError("guard: expected False with static, got True")
            own["_source"] = GuardedSeeds(seeds, self._leakage_guard(graph, sampler, "guard"))
        own["_epochs"] = EpochState(
            sampler,
            seed,
            owns_sampler=sampler is not sampler_or_fanouts,
            shuffle=shuffle,
            world_size=world_size,
            weights=seeds.digest,
        )
        if gpu_share is not None:
            own["gpu_share"] = share = check_option(self, "gpu_share", gpu_share)
            if share == AUTO:
                own["_share_tuner"] = ShareTuner()
        count, shard_by = len(seeds), check_shard_by(shard_by)
        own["_shards"] = Shards(count, batch_size, world_size, drop_last, shard_by)
        self._epochs.skip(integer(skip_batches, "skip_batches", 0))
        # Last, since it may copy a graph of many gigabytes.
        if isinstance(device, str) and device == AUTO:
            device, own["_device_reason"] = choose_device(graph)
        own["graph"] = graph = graph_on_device(graph, device)
        # Tables are made now, and wrong weights are wrong arguments.
        sampler.sampled_graph(graph)
        rows_of = {"features": features, "labels": labels, "edge_features": edge_features}
        _check_rows(sampler, **rows_of, seed_labels=seed_labels)
        rows = HeteroFeatureFetcher if is_hetero else FeatureFetcher
        if seed_labels is not None:
            is_by_type = is_hetero and isinstance(features, Mapping)
            named = by_name(features, graph.num_nodes) if is_by_type else features
            check_names(named, seed_labels)
        own["_fetcher"] = rows(graph, **rows_of)
        if guard:
            self._check_label_columns()
        own["_stats"] = LoaderStats(self._fetcher)
        if static is not False:
            parts = sampler, self._shards, self.rank, seeds, self._fetcher
            own["_static"] = StaticPlan(graph, *parts, None if static is True else static)
            if skip_batches:
                raise ValueError(f"skip_batches: expected 0 with static, got {skip_batches}")
        own["_complete"] = True

    if TYPE_CHECKING:
        batch_size: int
        drop_last: bool
        shuffle: bool
    else:
        batch_size = property(attrgetter("_shards.batch_size"))
        drop_last = property(attrgetter("_shards.drop_last"))
        shuffle = property(attrgetter("_epochs.shuffle"))

        def __setattr__(self, name: str, value: Any) -> None:
            if name[0] != "_" and "_complete" in vars(self):
                check_assigned(self, name)
                if name in ASSIGNABLE:
                    self._assign(name, check_option(self, name, value))
                    return
            object.__setattr__(self, name, value)

    def _assign(self, name: str, value: Any) -> None:
        if name in ("batch_size", "drop_last"):
            self._shards = self._shards.with_size(**{name: value})
        elif name == "shuffle":
            self._epochs.check_shuffle(value)
            self._epochs.shuffle = value
        else:
            if name == "prefetch":
                check_budget(self.prefetch_memory, value, False)
            vars(self)[name] = value
            if name == "prefetch":
                self._tuner = PrefetchTuner(self.prefetch_memory) if value == AUTO else None
            elif name == "gpu_share":
                self._share_tuner = ShareTuner() if value == AUTO else None

    def __getstate__(self) -> dict[str, Any]:
        # A copy has epochs of its own.
        parts = "_epochs", "_stats", "_tuner", "_cache_tuner", "_share_tuner"
        return {**vars(self), **{name: copy(getattr(self, name)) for name in parts}}

    @property
    def sampler(self) -> Sampler[Any]:
        """The sampler, with the seed of the next epoch unless torch has another by then."""
        return self._epochs.sampler

    @property
    def seed(self) -> int:
        """The seed of the order; ``set_seed`` takes another one."""
        return self._epochs.seed

    @property
    def epoch(self) -> int:
        """The epoch that the next ``iter()`` takes."""
        return self._epochs.epoch

    @property
    def world_size(self) -> int:
        """The number of processes that take part."""
        return self._shards.world_size

    @property
    def device(self) -> str:
        """The device of the batches: ``"cpu"`` or, for one, ``"cuda:0"``."""
        device: str = self.graph.device
        return device

    @property
    def static(self) -> bool:
        """True if all batches are one, of fixed sizes."""
        return self._static is not None

    @property
    def capacities(self) -> list[Capacity] | None:
        """The most nodes and edges of each hop of static batches; None before that is known.

        Pairs ``(num_nodes, num_edges)``, with a ``HeteroGraph`` of mappings of types.
        """
        return None if self._static is None else self._static.capacities

    def set_epoch(self, epoch: int) -> None:
        """Chooses the epoch of the next ``iter()``, an integer in ``[0, 2**24)``.

        Without a call the epochs are 0, 1, 2, ... in the order of the ``iter()`` calls.
        """
        self._epochs.set_epoch(epoch)

    def set_seed(self, seed: int | None) -> None:
        """Sets ``seed``, for order and samples, from the next ``iter()`` on, as epoch 0.

        An integer from ``-2**63`` to ``2**64 - 1``, taken modulo ``2**64``; None goes back to
        torch's seed at each ``iter()``. A sampler that was passed is left alone: the loader goes on
        with a copy.
        """
        self._epochs.set_seed(seed)

    def state_dict(self) -> dict[str, Any]:
        """Returns the position in the epoch that began last, like torch's ``StatefulDataLoader``.

        Batches that were sampled ahead, and not handed over, are not counted. It is of plain
        numbers and strings; ranks that have had as many batches as each other have the same,
        except for ``prefetch`` and ``gpu_share``, which with ``"auto"`` are the numbers that were
        chosen, and for ``cache``, which with ``"auto"`` has how many rows of each feature were.
        """
        state = self._epochs.state_dict(self._shards)
        if self._tuner is not None and not self.sampler._changes:
            state["prefetch"] = self._tuner.depth
        if self._cache_tuner is not None and self._cache_tuner.rows is not None:
            state["cache"] = dict(self._cache_tuner.rows)
        if self._share_tuner is not None and self._share_tuner.choice is not None:
            state["gpu_share"] = self._share_tuner.choice
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues, at the next ``iter()``, at the position of ``state``, a ``state_dict()``.

        With ``shard_by="batches"`` that one may have had another ``world_size``. Epoch and seeds
        are its; graph, seeds and options are to be what they were. With ``prefetch="auto"`` and
        ``gpu_share="auto"`` the loader also begins with the numbers that were chosen there, if the
        state has them, and with ``cache="auto"`` with caches of those rows, unless it has chosen
        itself. Static batches begin with an epoch.

        Raises
        ------
        TypeError
            For what is no such state.
        ValueError
            For a state of a loader of other seeds, batches or options, naming which.
        """
        depth = None
        if self._tuner is not None and isinstance(state, Mapping):
            depth = state.get("prefetch")
        if depth is not None:
            depth = integer(depth, "state['prefetch']", 1)
        rows = None
        if self._cache_tuner is not None and isinstance(state, Mapping):
            rows = state.get("cache")
            rows = None if rows is None else checked_rows(rows)
        share = None
        if self._share_tuner is not None and isinstance(state, Mapping):
            share = state.get("gpu_share")
            share = None if share is None else checked_share(share)
        self._epochs.load_state_dict(state, self._shards, self.static)
        if depth is not None and self._tuner is not None and not self.sampler._changes:
            self._tuner.resume(depth)
        if self._cache_tuner is not None and rows is not None and not self._cache_tuner.is_done:
            self._cache_tuner.resume(rows)
        if self._share_tuner is not None and share is not None:
            self._share_tuner.resume(share)

    def stats(self) -> Stats:
        """Returns figures of the epoch that began last, until now or until it ended.

        ``print(loader.stats())`` shows a table with plain names.

        Any thread may ask, at any time. Nobody waits for the GPU, except where features have a
        cache, whose hits are counted there: asking waits then, and so does an epoch that begins.
        Iterators that are in use at once have figures of their own, of which these are the latest
        one's; a pickled loader begins without any. For static batches queues are not counted, and
        rows that fill them up are read and counted too; reading is part of ``waiting_share``, and
        in a loop of ``capture``, whose graph reads, of neither share. A ``LinkLoader`` draws
        negatives in ``next()`` for the batches that it begins there: in ``next_seconds``, and no
        waiting.

        Returns
        -------
        Stats
            A dict. ``epoch``, ``batches``, ``edges``: of what was handed over. ``seconds``: from
            the first ``next()`` until now or the end.

            ``waiting_share``: the part of the time that training waits for data. On the CPU
            ``waiting_seconds`` of ``seconds``. On a GPU by CUDA events in torch's current stream,
            over the last ``steps`` that were measured, up to 254 (the first 64 of an epoch and then
            one in 32): from where the stream has done all that was put into it before
            ``next()`` was called, until the batch is there; nothing where the host is ahead of the
            GPU. ``gathering_share``: the same for the reading of features in that
            stream, and for waiting there for rows that are read ahead over a link; None on the CPU,
            where all are read ahead.

            ``waits``, ``waiting_seconds``: how often ``next()`` waited on the host for a batch that
            was not there (20 microseconds or more), and for how long. ``next_seconds``: in
            ``next()`` in all.

            ``queues``: how many batches were found ``sampled``, and on the CPU with features
            ``gathered``, when the next was asked for: ``looks``, ``mean``, ``min``, and the part of
            looks that found it ``empty``. There is a look in each step, though but one in two
            milliseconds, and on a GPU one a group. ``held_back``: how many steps began no batch
            though fewer than ``prefetch`` were ahead. ``pauses``: how often that began with a
            queue of finished batches that had grown for five looks.

            ``features``: for each by its name what its ``stats()`` have grown by since the epoch
            began, whoever read them; ``bytes``: the sum of theirs, by where they were read;
            ``hit_rate``: hits by rows, of those that have a cache, or None.
        """
        return self._stats.stats()

    def explain(self) -> str:
        """Returns a text of some lines: the choices of the loader, their reasons, and what helps.

        ``print(loader.explain())`` names the device and how many batches are sampled ahead; for
        options that are ``"auto"`` it has the measured numbers that decided; other options are
        named as fixed. The fraction of time that the loop waits for batches follows, for the epoch
        that began last, and ways to reduce it. Values that are not measured yet are named so. Any
        thread may ask, at any time; ``stats`` says when it waits for a GPU.
        """
        reason = f'"auto" is {self.device!r}, since {self._device_reason}'
        return explain_loader(
            self.stats(),
            device=reason if self._device_reason else f"{self.device!r}, fixed",
            prefetch=self.prefetch,
            budget=self.prefetch_memory,
            tuner=self._tuner,
            cache=self._cache_tuner,
            share=self._share_tuner,
            tables=dict(self._fetcher.tables()),
            step_times=self._fetcher.step_times,
            is_static=self.static,
            is_steady=self.sampler._changes,
        )

    def check_no_leakage(self) -> int:
        """Samples the next epoch, without features, and compares all times in it.

        No edge of a batch, and no node, may have a time after that of the seed whose tree it is in,
        or at it where ``temporal`` is not inclusive. Times are read from the graph's arrays by the
        ids in the batch, whatever the sampler knows. No label of a seed may be known by the seed's
        time, if ``label_time`` says when it is, and no column of ``features`` of nodes may be the
        labels of the seeds, of which up to 4096 are compared, and 32 at least. The loader's own
        epochs go on as if nothing had been. ``guard=True`` does the same for each batch that is
        handed over, and compares columns first.

        Returns
        -------
        int
            The number of batches that were checked.

        Raises
        ------
        ValueError
            For the first that is later, with its time and the seed's; for features that are the
            labels; for a sampler without ``temporal``, and for static batches.
        """
        if self.static:
            raise ValueError("check_no_leakage: expected a loader without static, got one with it")
        loader, own = copy(self), dict[str, Any]()
        own["_fetcher"] = type(self._fetcher)(self.graph, None, None, None)
        if not isinstance(self._source, GuardedSeeds):
            guard = self._leakage_guard(self.graph, self.sampler, "check_no_leakage")
            own["_source"] = GuardedSeeds(self._source, guard)
        self._check_label_columns()
        vars(loader).update(own, progress=False)
        return sum(1 for _ in loader)

    def _leakage_guard(self, graph: Any, sampler: Any, where: str) -> LeakageGuard:
        rule = getattr(sampler, "temporal", None)
        if rule is None:
            raise ValueError(f"{where}: expected a sampler with temporal=, got {sampler!r}")
        if sampler.result_kind != "blocks":
            raise ValueError(
                f"{where}: expected a sampler whose batches are blocks, got {sampler!r}, whose "
                f"batches are {sampler.result_kind}; compare their times with seed_time yourself"
            )
        return LeakageGuard(graph, rule, self._label_times)

    def _check_label_columns(self) -> None:
        """Raises ValueError for a feature that is the label; labels of links are no nodes'."""
        seeds = getattr(self._source, "seeds_by_type", None)
        if seeds is not None:
            check_label_columns(self._fetcher, seeds, self._source.labels_by_type)

    def trace(self, path: Any) -> None:
        """Trace the next epoch, into the file ``path`` when it ends.

        ``chrome://tracing`` and Perfetto show such files. It has spans of each batch: ``sample``
        and, on the CPU, ``gather``, in threads for as many as run at once; of the loop's thread
        ``next``, in it ``wait``, and ``train``, which is between two calls of ``next()``; and on a
        GPU ``wait``, ``gather`` and ``train`` of torch's stream. Samples and reading on the CPU are
        shown where the engine worked on them, samples on a GPU from when they were launched until
        the loop saw that they were done. The file has the last 4096 batches. On a GPU a traced
        epoch waits for the device where it begins and where it ends.

        A warning in the log ("pygsampler") says where no epoch has ended after this call, so that
        there is no file. FileNotFoundError where there is no such folder. OSError at the end of the
        epoch where the file cannot be written.
        """
        self._stats.trace(path)

    def __len__(self) -> int:
        """Number of batches of a whole epoch on this rank.

        It is the same on every rank, unless batches are dealt out.
        """
        return EpochShard(self._shards, self.rank).steps

    def __iter__(self) -> Iterator[BatchT]:
        run = self._begin()
        parts = self._source, self.sampler, self.graph, self._fetcher, self._static
        batches = run_epoch(run, *parts)
        if self.progress:
            assert run.stats is not None
            batches = _with_bar(batches, run.stats, len(self))
        return close_at_exit(batches)

    def __repr__(self) -> str:
        ranks = f", rank={self.rank}, world_size={self.world_size}" if self.world_size > 1 else ""
        device = "" if self.device == "cpu" else f", device={self.device!r}"
        ahead = f"{self.prefetch}" if self._tuner is None else f"{AUTO!r} ({self._tuner.depth})"
        return (
            f"{library_class(self).__name__}({self._source.summary}, {self.sampler!r}, "
            f"batch_size={self.batch_size}, {self._repr_options()}shuffle={self.shuffle}, "
            f"drop_last={self.drop_last}, prefetch={ahead}{ranks}{device})"
        )

    def _repr_options(self) -> str:
        """Returns the options that this kind of loader alone has."""
        return ""

    def _begin(self) -> EpochRun:
        """Begins the next epoch, with the options that it goes on with."""
        run = self._epochs.begin(self._shards, self.rank)
        tuner = self._tuner
        run.low, run.prefetch = marks(self.prefetch if tuner is None else tuner.depth)
        run.tuner, run.cache_tuner = tuner, self._cache_tuner
        run.budget, run.share_tuner = self.prefetch_memory, self._share_tuner
        if self._share_tuner is not None:
            run.gpu_share = self._share_tuner.share
        elif not isinstance(self.gpu_share, str):
            run.gpu_share = self.gpu_share
        run.stats = self._stats.begin(run.epoch)
        return run

    def _static_pass(self) -> tuple[StaticEpochs, int, EpochStats]:
        """Begins an epoch for ``capture``: whose batches, its number, and what counts them."""
        if self._static is None:
            raise ValueError("loader: expected a loader with static=True, got one without")
        run = self._begin()
        # Its batches are not handed over one by one.
        self._epochs.run = None
        assert run.stats is not None
        parts = self._source, self.sampler, self.graph, self._fetcher
        return *begin_static(run, *parts, self._static), run.stats


def _with_bar(
    batches: Generator[Any, None, None], stats: EpochStats, total: int
) -> Generator[Any, None, None]:
    """Yields batches, and shows a bar of how many there are."""
    text = f"epoch {stats.epoch}"
    with closing(batches), progress_bar(total=total, desc=text, unit="batch") as shown:
        last = 0.0
        for batch in batches:
            # Reading what was measured takes longer than measuring it.
            if (now := perf_counter()) - last >= BAR_SECONDS:
                shown.set_postfix_str(stats_text(stats.stats()), refresh=False)
                last = now
            yield batch
            shown.update()
        shown.set_postfix_str(stats_text(stats.stats()))


def _check_rows(sampler: Sampler[Any], **features: Any) -> None:
    """Raises ValueError for ``features`` that the sampler's batches have no place for."""
    refused = {
        "walks": (*features,),
        "contexts": (*features,),
        "steps": (*features,),
        "visits": ("edge_features",),
    }
    for name in refused.get(sampler.result_kind, ()):
        if features[name] is not None:
            raise ValueError(
                f"{name}: expected None for a sampler whose batches are {sampler.result_kind}, "
                f"got some for {sampler!r}"
            )
