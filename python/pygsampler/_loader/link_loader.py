"""``LinkLoader``: mini-batches around edges, for link prediction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pygsampler._batch.link_batch import LinkBatch
from pygsampler._loader.edge_seeds import EdgeSeeds
from pygsampler._loader.loader_base import LoaderBase
from pygsampler._loader.options import checked_keywords

if TYPE_CHECKING:
    from pygsampler._graph.graph import Graph
    from pygsampler._loader.negatives import NegativeSampling
    from pygsampler._sampling.sampler import Sampler

__all__ = ["LinkLoader"]


class LinkLoader(LoaderBase[LinkBatch]):
    """Iterates over edges in mini-batches of blocks around their nodes, as torch tensors.

    Negatives are drawn for the edges, and the edges of a batch, which are to be predicted, are not
    sampled:

        loader = LinkLoader(graph, train_edge_ids, [10, 10], batch_size=1024, shuffle=True,
                            negative_sampling=NegativeSampling("structural"))
        for batch in loader:
            h = model(batch.minibatch.blocks, features[batch.minibatch.input_nodes])
            src, dst = batch.edge_label_index
            scores = (h[src] * h[dst]).sum(1)
            loss = binary_cross_entropy_with_logits(scores, batch.edge_label)

    Parameters
    ----------
    graph : Graph or HeteroGraph
        The graph to sample from.
    edges : int32 or int64 edge ids, shape [E], or nodes, shape [2, E]
        Ids of edges of the graph; or sources and destinations, which need not be edges of it. For a
        ``HeteroGraph`` a mapping of edge types to either; edges of several types are concatenated,
        and shuffled and cut together.
    sampler : Sampler or list of int
        A sampler whose batches are blocks or subgraphs, or the fanouts of a ``PGSampler``,
        outermost hop first.
    batch_size : int
        Edges of a batch, at least 1, without negatives.
    negative_sampling : NegativeSampling, optional
        The negatives of each edge; by default there are none. For a ``HeteroGraph`` also a mapping
        of edge types: other types get no negatives. ``labels``, ``reverse_eids`` and ``seed_time``
        are such mappings.
    labels : tensor of shape [E, ...], optional
        A label for each edge, in ``edge_label``; not with negatives of mode ``"binary"``, whose
        labels are 1 and 0.
    exclude : str or callable, optional
        Edges that a batch does not sample. ``"self"``: its seed edges. ``"reverse_id"``: its seed
        edges and their ``reverse_eids``. ``"reverse_types"``, for a ``HeteroGraph``: its seed edges
        and the edges with the same ids of their ``reverse_etypes``. None: no edges; needed for
        pairs of nodes, and for samplers that exclude nothing, such as walks. A callable takes the
        ids of a batch's edges, int64, for a ``HeteroGraph`` as a dict of edge types, and returns in
        the same way the ids of all edges to leave out, or None.
    reverse_eids : int32 or int64 edge ids, shape [num_edges], optional
        The reverse of each edge of the graph, or -1 for none, with ``exclude="reverse_id"``; by
        default ``graph.reverse_edge_ids()``. For a ``HeteroGraph`` a mapping; the reverses of edges
        between two types are edges of another type, which ``reverse_etypes`` names. With
        ``exclude="reverse_types"`` the ids of reverses that differ from the ids of their edges.
    shuffle, drop_last, rank, world_size, shard_by, skip_batches
        As for ``DataLoader``, for edges.
    prefetch, prefetch_memory, gpu_share, progress, guard, device
        As for ``DataLoader``, for edges.
    seed : int, optional
        See ``DataLoader``: the seed of the order, of negatives, and of a sampler from fanouts.
    features : mapping of str to Features or arrays of shape [num_nodes, ...], optional
        See ``DataLoader``: ``batch.minibatch`` has their rows.
    edge_features : mapping of str to Features or arrays of shape [num_edges, ...], optional
        See ``DataLoader``: the blocks of ``batch.minibatch`` have their rows.
    reverse_etypes : mapping of edge types to edge types, optional
        The edge type of the reverses, by edge type. With ``exclude="reverse_types"`` some types of
        the loader's edges may be missing: they have no reverses.
    seed_time : numbers or dates of shape [E], or one, optional
        The time of each edge, or of all, for a sampler with ``temporal``: the bound of the
        subgraphs of the edge and of its negatives; also for negatives with ``time_attr``.
    static : bool, "max", or sequence of (int, int), or of (mapping, mapping)
        As for ``DataLoader``: each batch is the same ``LinkBatch``, of fixed sizes and with
        ``counts``. The seeds of all batches of an epoch, with negatives, are drawn at its start,
        and stay on the host: 8 bytes for each edge, and 16 for each link, with negatives. The GPU
        has 4 or 8 bytes for each seed, and 8 for each edge that a batch leaves out.

    Notes
    -----
    A loader yields a ``LinkBatch``. Seeds are the nodes of the links, ascending and each once. For
    a disjoint sampler they are the ends of all links, sources before destinations: then each end
    has its own subgraph, and the indices count subgraphs.

    Options may be assigned like the options of ``DataLoader``.

    The CPU draws the nodes, for a GPU too, so that no batch waits for the work of the batch before;
    tensors are on the graph's device.

    The batches are a pure function of the graph, the edges, the options, ``seed``, the epoch,
    ``rank`` and ``world_size``. Epochs, iterators and pickles are as those of ``DataLoader``, and
    so are ``stats`` and ``trace``.

    Raises
    ------
    TypeError, ValueError
        For arguments of a wrong type or value, naming the argument. In the loop ``ValueError`` for
        structural negatives of a node that has edges to all others.
    IndexError
        For edges and nodes that the graph does not have.
    NotImplementedError
        In the loop, for ``exclude`` with a sampler that cannot exclude edges.
    CudaError
        For a ``device`` that does not exist, or that torch cannot use.
    """

    @checked_keywords
    def __init__(
        self,
        graph: Graph,
        edges: Any,
        sampler: Sampler[Any] | Sequence[Any],
        *,
        batch_size: int,
        negative_sampling: NegativeSampling | Mapping[Any, NegativeSampling] | None = None,
        labels: Any = None,
        exclude: str | Callable[[Any], Any] | None = "self",
        reverse_eids: Any = None,
        reverse_etypes: Mapping[Any, Any] | None = None,
        shuffle: bool = False,
        drop_last: bool = False,
        seed: int | None = None,
        seed_time: Any = None,
        rank: int = 0,
        world_size: int = 1,
        shard_by: str = "seeds",
        skip_batches: int = 0,
        prefetch: int | tuple[int, int] | Literal["auto"] = 4,
        prefetch_memory: int | None = None,
        cache: Literal["auto"] | None = None,
        gpu_share: float | Literal["auto"] | None = None,
        progress: bool = False,
        guard: bool = False,
        device: Any = None,
        static: bool | str | Sequence[Any] = False,
        features: Mapping[str, Any] | None = None,
        edge_features: Mapping[str, Any] | None = None,
    ) -> None:
        self.negative_sampling = negative_sampling
        self._compose(
            graph,
            sampler,
            lambda sampler: EdgeSeeds(
                graph,
                edges,
                sampler,
                negative_sampling=negative_sampling,
                labels=labels,
                seed_time=seed_time,
                exclude=exclude,
                reverse_eids=reverse_eids,
                reverse_etypes=reverse_etypes,
            ),
            batch_size=batch_size,
            shuffle=shuffle,
            drop_last=drop_last,
            prefetch=prefetch,
            prefetch_memory=prefetch_memory,
            seed=seed,
            rank=rank,
            world_size=world_size,
            shard_by=shard_by,
            skip_batches=skip_batches,
            device=device,
            features=features,
            labels=None,
            edge_features=edge_features,
            static=static,
            progress=progress,
            guard=guard,
            gpu_share=gpu_share,
            cache=cache,
        )

    @property
    def exclude(self) -> str | Callable[[Any], Any] | None:
        """The edges that a batch does not sample."""
        kind: str | Callable[[Any], Any] | None = self._source.exclusion.kind
        return kind

    def _repr_options(self) -> str:
        return f"negative_sampling={self.negative_sampling!r}, exclude={self.exclude!r}, "
