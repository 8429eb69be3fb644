"""``LinkLoader``: mini-batches around edges, for link prediction."""

from __future__ import annotations

import copy
import itertools
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload

import torch

from pygsampler._arrays import devices
from pygsampler._batch.link_batch import HeteroLinkBatch, LinkBatch, by_field
from pygsampler._batch.torch_minibatch import as_torch
from pygsampler._engine.checks import boolean, integer
from pygsampler._graph.hetero_graph import HeteroGraph
from pygsampler._loader.arguments import graph_on_device, resolve_sampler
from pygsampler._loader.checkpoint import EpochRun, check_shard_by
from pygsampler._loader.counted_loader import record_events
from pygsampler._loader.edge_exclusion import EdgeExclusion
from pygsampler._loader.epoch_state import shuffle
from pygsampler._loader.feature_fetcher import FeatureFetcher
from pygsampler._loader.hetero_feature_fetcher import HeteroFeatureFetcher
from pygsampler._loader.negatives import NegativeSampling
from pygsampler._loader.options import checked_keywords
from pygsampler._loader.prefetch import close_at_exit, prefetch_in_order
from pygsampler._loader.seed_edges import (
    EdgeSeeds,
    SampledEdges,
    all_links,
    collect_seeds,
    to_device,
)
from pygsampler._loader.seeds import check_dates
from pygsampler._loader.shards import EpochShard, Shards
from pygsampler._loader.static_layouts import timed_of
from pygsampler._loader.static_links import StaticLinkEpochs, StaticLinks, most_seeds, pass_seeds
from pygsampler._loader.static_option import StaticOption
from pygsampler._loader.stats import EpochStats
from pygsampler._sampling.batch_counter import resolve_seed
from pygsampler._sampling.pending import PendingBatch
from pygsampler._sampling.sampler import Sampler, check_blocks, check_graph

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from pygsampler._batch.link_batch import StaticHeteroLinkBatch, StaticLinkBatch
    from pygsampler._graph.graph import Graph
    from pygsampler._loader.options import LinkLoaderOptions

__all__ = ["LinkLoader"]

# The engine has buffers and streams for so many batches of a GPU at once.
_MOST_ON_GPU = 8


BatchT = TypeVar("BatchT")


class LinkLoader(StaticOption, Generic[BatchT]):
    """Iterate over edges in mini-batches of blocks around their vertices, as torch tensors.

    Negatives are drawn beside the edges, and the edges of a batch, which are to be predicted, are
    not sampled:

        loader = LinkLoader(graph, train_edge_ids, [10, 10], batch_size=1024, shuffle=True,
                            negatives=NegativeSampling("structural"))
        for batch in loader:
            h = model(batch.sampled.blocks, features[batch.sampled.input_nodes])
            src, dst = batch.edge_label_index
            scores = (h[src] * h[dst]).sum(1)
            loss = binary_cross_entropy_with_logits(scores, batch.edge_label)

    Parameters
    ----------
    graph : Graph or HeteroGraph
        The graph to sample from.
    edges : int32 or int64 edge ids, shape [E], or vertices, shape [2, E]
        Ids of edges of the graph; or sources and destinations, which need be no edges of it. Of a
        ``HeteroGraph`` a mapping of edge types to either; those of several types are put behind one
        another, and shuffled and cut together.
    sampler_or_fanouts : Sampler or list of int
        A sampler whose batches are blocks or subgraphs, or the fanouts to make one of, outermost
        hop first.
    batch_size : int
        Edges of a batch, at least 1, without negatives.
    negatives : NegativeSampling, optional
        What is drawn for each edge. None at all by default. Of a ``HeteroGraph`` also a mapping of
        edge types, of which others get none; ``labels``, ``reverse_eids`` and ``seed_time`` are
        such mappings.
    labels : tensor of shape [E, ...], optional
        A label for each edge, in ``edge_label``; not with negatives of mode ``"binary"``, whose
        labels are 1 and 0.
    exclude : str or callable, optional
        Edges that a batch does not sample: ``"self"``, its own; ``"reverse_id"``, these and their
        ``reverse_eids``; of a ``HeteroGraph`` ``"reverse_types"``, these and the edges of the same
        ids of their ``reverse_types``; None: all are sampled, as it must be for pairs of vertices,
        and for samplers that exclude nothing, such as walks. A callable takes the ids of a batch's
        edges, int64, of a ``HeteroGraph`` as a dict of edge types, and returns the ids to leave
        out, likewise: those alone, or None.
    reverse_eids : int32 or int64 edge ids, shape [num_edges], optional
        The reverse of each edge of the graph, or -1 for none, with ``exclude="reverse_id"``;
        ``graph.reverse_edge_ids()`` when not given. Of a ``HeteroGraph`` a mapping; the reverses of
        edges between two types are edges of another type, which ``reverse_types`` names. With
        ``exclude="reverse_types"`` the ids of reverses that are not those of their edges.
    shuffle, drop_last, prefetch, rank, world_size, deal, start, device, prob, mask, edge_weights
        As ``DataLoader`` has them, of edges.
    labor : str, optional
        As ``DataLoader`` has it.
    seed : int, optional
        As ``DataLoader`` has it; of the order, of negatives, and of the sampler that is made.
    features : mapping of str to Features or arrays of shape [num_nodes, ...], optional
        As ``DataLoader`` has them: ``batch.sampled`` has their rows.
    edge_features : mapping of str to Features or arrays of shape [num_edges, ...], optional
        Likewise, of blocks.
    reverse_types : mapping of edge types to edge types, optional
        The edge type of the reverses, by edge type. With ``exclude="reverse_types"`` some types of
        the loader's edges may be missing: they have no reverses.
    seed_time : numbers or dates of shape [E], or one, optional
        When each edge is, or all are, for a sampler with ``time``, of which it is the bound for the
        trees of the edge and of its negatives, and for negatives with ``time_attr``.
    static : bool
        As ``DataLoader`` has it: each batch is the same ``StaticLinkBatch``, of a ``HeteroGraph``
        the same ``StaticHeteroLinkBatch``. What all batches of a pass begin with, negatives too, is
        drawn when it begins, and kept on the host: 8 bytes for each edge, and 16 for each link,
        those of negatives too; and on the GPU 4 or 8 for each seed, and 8 for each edge that a
        batch leaves out.
    capacities : sequence of (int, int), or of (mapping, mapping), or "most", optional
        As ``DataLoader`` has them. Seeds are at most as many vertices as a batch of edges and their
        negatives has.

    Notes
    -----
    It yields a ``LinkBatch``, and of a ``HeteroGraph`` a ``HeteroLinkBatch``. Seeds are the
    vertices of the links, ascending and each once; of a disjoint sampler they are all of them,
    sources before destinations: then each has a tree of its own, which the indices count.

    Options may be assigned as those of ``DataLoader``.

    Which vertices are drawn is decided on the CPU, for a GPU too, so that no batch waits for the
    work of the one before; tensors are where the graph is.

    The batches are a pure function of the graph, the edges, the options, ``seed``, the epoch,
    ``rank`` and ``world_size``. Epochs, iterators and pickles are as those of ``DataLoader``, and
    so are ``stats`` and ``trace``.

    Raises
    ------
    TypeError, ValueError
        For arguments of a wrong type or value, naming the argument. In the loop ``ValueError`` for
        structural negatives of a vertex that has edges to all others.
    IndexError
        For edges and vertices that the graph does not have.
    NotImplementedError
        In the loop, for ``exclude`` with a sampler that cannot.
    CudaError
        For a ``device`` that is not there, or that torch cannot use.
    """

    @overload
    def __init__(
        self: LinkLoader[StaticLinkBatch],
        graph: Graph,
        edges: Any,
        sampler_or_fanouts: Sampler[Any] | Sequence[Any],
        *,
        batch_size: int,
        static: Literal[True],
        **options: Unpack[LinkLoaderOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: LinkLoader[StaticHeteroLinkBatch],
        graph: HeteroGraph,
        edges: Any,
        sampler_or_fanouts: Sampler[Any] | Sequence[Any],
        *,
        batch_size: int,
        static: Literal[True],
        **options: Unpack[LinkLoaderOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: LinkLoader[LinkBatch],
        graph: Graph,
        edges: Any,
        sampler_or_fanouts: Sampler[Any] | Sequence[Any],
        *,
        batch_size: int,
        static: Literal[False] = False,
        **options: Unpack[LinkLoaderOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: LinkLoader[HeteroLinkBatch],
        graph: HeteroGraph,
        edges: Any,
        sampler_or_fanouts: Sampler[Any] | Sequence[Any],
        *,
        batch_size: int,
        static: Literal[False] = False,
        **options: Unpack[LinkLoaderOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: LinkLoader[Any],
        graph: Graph | HeteroGraph,
        edges: Any,
        sampler_or_fanouts: Sampler[Any] | Sequence[Any],
        *,
        batch_size: int,
        static: bool = False,
        **options: Unpack[LinkLoaderOptions],
    ) -> None: ...
    @checked_keywords
    def __init__(
        self,
        graph: Graph | HeteroGraph,
        edges: Any,
        sampler_or_fanouts: Sampler[Any] | Sequence[Any],
        *,
        batch_size: int,
        negatives: NegativeSampling | Mapping[Any, NegativeSampling] | None = None,
        labels: Any = None,
        exclude: str | Callable[[Any], Any] | None = "self",
        reverse_eids: Any = None,
        shuffle: bool = False,
        drop_last: bool = False,
        prefetch: int = 4,
        seed: int | None = None,
        rank: int = 0,
        world_size: int = 1,
        deal: str = "seeds",
        start: int = 0,
        device: Any = None,
        prob: str | None = None,
        mask: str | None = None,
        edge_weights: str | None = None,
        labor: str | None = None,
        features: Mapping[str, Any] | None = None,
        edge_features: Mapping[str, Any] | None = None,
        reverse_types: Mapping[Any, Any] | None = None,
        seed_time: Any = None,
        static: bool = False,
        capacities: Any = None,
    ) -> None:
        check_graph(graph, with_types=True)
        self.batch_size = self._checked("batch_size", batch_size)
        self.negatives = negatives
        self.shuffle = self._checked("shuffle", shuffle)
        self.drop_last = self._checked("drop_last", drop_last)
        self.prefetch = self._checked("prefetch", prefetch)
        self.world_size = integer(world_size, "world_size", 1)
        self.rank = integer(rank, "rank", 0, self.world_size - 1)
        if seed is not None:
            seed = resolve_seed(seed)
        self.sampler = resolve_sampler(
            sampler_or_fanouts,
            seed,
            labor=labor,
            typed=isinstance(graph, HeteroGraph),
            prob=prob,
            mask=mask,
            edge_weights=edge_weights,
        )
        typed = isinstance(graph, HeteroGraph)
        if typed:
            check_graph(graph, self.sampler._takes_types)
        check_blocks(self.sampler)
        if not self.sampler.rooted:
            raise ValueError(f"sampler: expected one around its seeds, got {self.sampler!r}")
        self._follows = seed is None and self.sampler is not sampler_or_fanouts
        self._seed_drawn = seed is None and self.sampler._numbers.is_drawn
        self._check_seed(self._seed_drawn)
        self.seed = self.sampler.seed if seed is None else seed
        self._epoch, self._counted = 0, True
        by_type = negatives.values() if isinstance(negatives, Mapping) else [negatives]
        rule = getattr(self.sampler, "temporal", None)
        named = dict.fromkeys(getattr(each, "time_attr", None) for each in by_type)
        named[None if rule is None else rule.attr] = None
        check_dates(seed_time, graph, *named)
        self._links = all_links(
            graph, edges, negatives=negatives, labels=labels, seed_time=seed_time
        )
        self._timed = rule is not None
        self._check_times(seed_time)
        self._exclusion = EdgeExclusion(graph, self._links, exclude, reverse_eids, reverse_types)
        self._typed = typed
        ends = itertools.accumulate(map(len, self._links.values()))
        self._bounds = torch.tensor([*ends], dtype=torch.int64)
        self._count = sum(map(len, self._links.values()))
        about = self._count, self.batch_size, self.world_size, self.drop_last
        self._shards = Shards(*about, check_shard_by(deal))
        self._from = None, integer(start, "start", 0)
        # Last, since it may copy a graph of many gigabytes.
        self.graph: Any = graph_on_device(graph, device)
        self.sampler.graph_of(self.graph)
        rows: Any = HeteroFeatureFetcher if typed else FeatureFetcher
        self._rows = rows(self.graph, features, None, edge_features)
        self._passes = self._static_passes(capacities) if boolean(static, "static") else None
        self._check_static(capacities, start)
        self._complete = True

    @property
    def exclude(self) -> str | Callable[[Any], Any] | None:
        """Which edges a batch does not sample."""
        kind: str | Callable[[Any], Any] | None = self._exclusion.kind
        return kind

    def __len__(self) -> int:
        """Number of batches of a whole epoch on this rank."""
        return EpochShard(self._shards, self.rank).steps

    def __iter__(self) -> Iterator[BatchT]:
        going, meter = self._next_pass()
        # A later set_seed must not reach a pass that goes on.
        return close_at_exit(copy.copy(self)._batches(going, meter))

    def __repr__(self) -> str:
        ranks = f", rank={self.rank}, world_size={self.world_size}" if self.world_size > 1 else ""
        device = "" if self.device == "cpu" else f", device={self.device!r}"
        return (
            f"LinkLoader({self._count} edges, {self.sampler!r}, "
            f"batch_size={self.batch_size}, negatives={self.negatives!r}, "
            f"exclude={self.exclude!r}, shuffle={self.shuffle}, drop_last={self.drop_last}, "
            f"prefetch={self.prefetch}{ranks}{device})"
        )

    def _check_times(self, seed_time: Any) -> None:
        """ValueError where times are missing, or nobody needs them."""
        drawn = any(of.drawn_by_time for of in self._links.values())
        if self._timed and seed_time is None and self._links:
            raise ValueError(
                "seed_time: expected a time for each edge with a sampler that has time, got None"
            )
        if seed_time is not None and not self._timed and not drawn:
            raise ValueError(
                "seed_time: expected None for a sampler and negatives without time, got some"
            )

    def _static_passes(self, capacities: Any) -> StaticLinkEpochs:
        size = min(self.batch_size, self._count)
        known = self.graph.num_nodes if self._typed else {"": self.graph.num_nodes}
        seeds = most_seeds(self._links, size, known, self._trees)
        form = self._form(seeds if self._typed else seeds[""], self.exclude is not None)
        given = form.checked(capacities, self.sampler)  # type: ignore[arg-type]
        about = self.graph, self._shards, self.rank, self._rows, form, given
        return StaticLinkEpochs(*about, links=StaticLinks(self._links, size, seeds, self._typed))

    def _begin_static(self, passes: Any, epoch: int, index: int) -> int:
        """As ``StaticOption._begin_static``; negatives of all of the pass are drawn."""
        part, order = EpochShard(self._shards, self.rank), self._order(epoch)
        sampler: Any = self.sampler
        batches = [self._begun(order, part, epoch, step) for step in range(part.steps)]
        kinds = self.graph.node_types if self._typed else [""]
        timed = timed_of(self.graph, sampler)
        without = self._exclusion.of_pass(
            self.graph, ([each.places for each in drawn] for drawn, _ in batches)
        )
        made = pass_seeds(
            [of for _, of in batches], kinds, timed, without, lambda ids: to_device(ids, index)
        )
        passes.links.begin(batches, index)

        def again(step: int, number: int) -> Any:
            return as_torch(self._launched(batches[step], epoch, number, into="torch").result())

        def submit(step: int) -> PendingBatch[Any]:
            return self._launched(
                batches[step], epoch, part.number(step), into="torch", beside=True
            )

        def sampled() -> Iterator[Any]:
            depth = min(self.prefetch, _MOST_ON_GPU)
            steady = sampler._changes
            with closing(prefetch_in_order(submit, part.steps, depth, steady=steady)) as found:
                yield from map(as_torch, found)

        begun: int = passes.begin(sampler, made, epoch, sampled, again)
        return begun

    @property
    def _trees(self) -> bool:
        """Whether each seed has a tree of its own."""
        return bool(getattr(self.sampler, "disjoint", False))

    def _order(self, epoch: int) -> torch.Tensor:
        """The places of the edges in the order of the epoch."""
        places = torch.arange(self._count)
        return shuffle(places, self.seed, epoch) if self.shuffle else places

    def _begun(
        self, order: torch.Tensor, part: EpochShard, epoch: int, step: int
    ) -> tuple[list[SampledEdges], EdgeSeeds]:
        """The links of a batch, and its seeds."""
        start, end = part.bounds(step)
        drawn = self._drawn(order[start:end], epoch, part.number(step))
        return drawn, collect_seeds(drawn, self._trees)

    def _launched(
        self, begun: tuple[list[SampledEdges], EdgeSeeds], epoch: int, number: int, **more: Any
    ) -> PendingBatch[Any]:
        """Samples a batch."""
        drawn, of = begun
        if self._timed:
            more["seed_time"] = self._plain(of.times)
        job: PendingBatch[Any] = self.sampler.launch(
            self.graph,
            self._plain(of.seeds),
            epoch=epoch,
            batch=number,
            exclude=self._exclusion.of([each.places for each in drawn]),
            **more,
        )
        return job

    def _batches(self, going: EpochRun, meter: EpochStats) -> Generator[Any, None, None]:
        epoch, part = going.epoch, going.part
        index = devices.parse(self.graph.device)
        if self._passes is not None and part.steps:
            # First, since it says what is wrong in a forked child, or with a closed graph.
            self.graph._handle()
            record_events(meter, index)
            passes = self._passes
            static = passes.batches(self._begin_static(passes, epoch, index))
            yield from self._metered_there(static, going, meter, lambda batch: batch, passes)
            return
        order = self._order(epoch)
        there: dict[str, Any] = {} if index < 0 else {"into": "torch"}
        depth = self.prefetch if index < 0 else min(self.prefetch, _MOST_ON_GPU)
        # With several batches in flight, one core for each wastes nothing on synchronisation.
        threads = int(index < 0 and self.prefetch >= 2)
        # Of the batches that are on their way.
        begun: deque[tuple[list[SampledEdges], list[torch.Tensor]]] = deque()

        def submit(step: int) -> PendingBatch[Any]:
            drawn, seeds = made = self._begun(order, part, epoch, step)
            begun.append((drawn, seeds.where))
            job = self._launched(
                made, epoch, part.number(step), threads=threads, beside=True, **there
            )
            if index >= 0:
                # Torch uses the device by now.
                record_events(meter, index)
            return job

        def read(batch: Any) -> PendingBatch[Any]:
            reading: PendingBatch[Any] = self._rows.start(batch, threads)
            return reading

        def handed(batch: Any) -> Any:
            sampled = as_torch(batch)
            if self._rows and index >= 0:
                self._rows.fetch_on_device(sampled)
            return self._handed(sampled, *begun.popleft(), index)

        then = read if self._rows and index < 0 else None
        steady = self.sampler._changes
        batches = prefetch_in_order(submit, part.steps, depth, then, steady=steady, meter=meter)
        if index < 0:
            yield from self._metered(batches, going, meter, handed)
        elif part.steps:
            record_events(meter, index)
            yield from self._metered_there(batches, going, meter, handed)

    def _plain(self, of_types: dict[str, torch.Tensor]) -> Any:
        """By type as the graph has it."""
        return of_types if self._typed else of_types[""]

    def _drawn(self, places: torch.Tensor, epoch: int, batch: int) -> list[SampledEdges]:
        """For each relation the vertices of the edges at these places, and of their negatives."""
        made, first = [], 0
        number = self.seed, epoch, batch
        of = torch.bucketize(places, self._bounds, right=True)
        for i, links in enumerate(self._links.values()):
            mine = places if len(self._links) == 1 else places[of == i] - first
            made.append(links.drawn(mine, *number))
            first += len(links)
        return made

    def _handed(
        self, sampled: Any, drawn: list[SampledEdges], where: list[torch.Tensor], index: int
    ) -> LinkBatch | HeteroLinkBatch:
        """A batch as its consumer sees it."""
        rows = iter([to_device(of, index) for of in where])
        fields = {
            kind: links.handed(of.places, [next(rows) for _ in of.lists], index)
            for (kind, links), of in zip(self._links.items(), drawn, strict=True)
        }
        if not self._typed:
            (only,) = fields.values()
            return LinkBatch(sampled, *only)
        return HeteroLinkBatch(sampled, *by_field(fields))
