"""``DataLoader``: mini-batches around seeds, for training loops in plain PyTorch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, overload

from pygsampler._batch.minibatch import MiniBatch
from pygsampler._batch.static import StaticMiniBatch
from pygsampler._graph.graph import Graph
from pygsampler._loader.loader_base import BatchT, LoaderBase
from pygsampler._loader.node_seeds import NodeSeeds
from pygsampler._loader.options import checked_keywords
from pygsampler._sampling.sampler import Sampler
from pygsampler.samplers.neighbor import PGSampler

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from pygsampler._batch.minibatch import MiniBatch
    from pygsampler._loader.options import DataLoaderOptions
    from pygsampler.walks.pinsage import PinSAGE
    from pygsampler.walks.visits import Visits

__all__ = ["DataLoader"]

T_co = TypeVar("T_co", covariant=True)


class _Sampled(Protocol[T_co]):
    """A result of a sampler, which a loader gives in torch's tensors."""

    def torch(self) -> T_co: ...


class DataLoader(LoaderBase[BatchT]):
    """Iterates over ``seeds`` in mini-batches of sampled blocks, as torch tensors.

    Sampling runs in the engine, on the CPU outside the GIL or on a GPU in parallel with the
    training step, up to ``prefetch`` batches ahead of the training loop; no worker processes or
    Python threads are involved:

        loader = DataLoader(graph, train_ids, [10, 10], batch_size=1024, shuffle=True)
        for epoch in range(10):
            for batch in loader:
                h = features[batch.input_nodes]
                ...

    With ``features`` and ``labels`` it also prefetches the rows of a batch's nodes, as ``batch.x``
    (or another name) and ``batch.y``:

        loader = DataLoader(..., features={"x": x}, labels=y)

    Parameters
    ----------
    graph : Graph or HeteroGraph
        The graph to sample from.
    seeds : int32 or int64 node ids, 1-D
        A tensor, a NumPy array or a list. They are copied, to the CPU if they are on a GPU, and
        from there to the graph's device once an epoch. Duplicates are allowed, see ``MiniBatch``.
        Without any seed the loader has length 0. For a ``HeteroGraph`` they are a mapping of node
        types to ids; seeds of several types are concatenated, and shuffled and cut together.
    sampler : Sampler or list of int
        A sampler, or the fanouts of a ``PGSampler``, outermost hop first.
    batch_size : int
        Seeds of a batch, at least 1.
    shuffle : bool
        Permute the seeds anew in each epoch.
    drop_last : bool
        Drop batches that are not full, the same number on all ranks.
    prefetch : int, (int, int) or "auto"
        Batches sampled ahead while the consumer works on one; 0 samples a batch only when it is
        requested. On the CPU, from 2 on several batches run at once, each on one core, or on as
        many as there are threads for each; on a GPU at most 8 are in flight, with 4 to 12 bytes for
        each node of the graph to work with, and from 4 on they are started in groups of half as
        many. They take the memory of ``prefetch + 1`` batches, on a GPU with the dropped batches of
        their groups. A pair is (low, high): once ``high`` batches are ahead, no more are started
        until ``low`` are left, fewer than ``high``; then as many are started as there is room for,
        on a GPU by one call. For a number the low mark is one less: a batch is started for each
        that is taken. On a GPU, where the sampler starts groups, it is half
        (docs/guide/prefetching.md). ``"auto"`` starts with 4 and samples as many ahead as the loop
        needs to wait for none, by the times of earlier batches, within the idle cores and a quarter
        of the free memory; on a GPU 4 or 8, from epoch to epoch. ``explain()`` has the numbers.
    prefetch_memory : int, optional
        The bytes, at least 1, that batches ahead may take together with the batch that the loop
        works on: if they would take more, fewer than ``prefetch`` are ahead, but at least one. On
        the CPU batches count with their features, by the largest so far, after the first. On a GPU
        they count with their working memory, as the engine expects it or, for samplers that start
        no groups, by the largest so far. Batches do not depend on it, except those of samplers that
        learn. With ``"auto"`` it stands in for the free memory. None with ``static`` or a pair.
    cache : "auto", optional
        As many rows as fit are copied to the GPU, from ``features`` that a GPU reads out of
        page-locked memory, for the nodes with most out-edges: ``Features.cache`` with the policy
        ``"degree"``. The number of rows is chosen once, after 16 batches (or the first epoch, if it
        is shorter, and with ``static``), from the memory that is free then, less a tenth of all,
        for all features in proportion to their bytes. Features that have a cache stay as they are.
        Rows that are read do not depend on it; ``explain()`` and ``state_dict()`` have the numbers.
        Not for a ``HeteroGraph``.
    seed : int, optional
        64-bit seed of the order, and of the sampler if ``sampler`` is a list of fanouts. Default:
        the seed of ``sampler``, else ``torch.initial_seed()``, read at each ``iter()``: after
        ``torch.manual_seed`` with another number epochs start from 0 again. ``set_seed`` does that
        with any number. With ``shuffle`` and ``world_size`` > 1 a seed must be chosen, here or for
        the sampler.
    rank : int
        This process's number in data-parallel training, from 0 to ``world_size - 1``.
    world_size : int
        How many processes take part. The (shuffled) seeds are dealt out exactly: each seed goes to
        one rank, all ranks have the same number of batches, and no batch is empty or larger than
        ``batch_size``. Give all ranks the same ``seed``.
    shard_by : str
        ``"seeds"``: as above. ``"batches"``: batch b of a single process goes to rank b modulo
        ``world_size``, so that all ranks together have the batches of a single process, for any
        number of ranks. A rank may have one batch more than another: use
        ``torch.distributed.algorithms.Join``, or the first ``min`` of the ``len()`` of all ranks.
    skip_batches : int
        Number of batches that the first epoch leaves out: of all ranks together with
        ``shard_by="batches"``, else of each rank. ``load_state_dict`` goes on where ``state_dict``
        was taken.
    progress : bool
        Show a tqdm bar with batches and sampled edges per second.
    guard : bool
        Compare the times in each returned batch with the times of its seeds, as
        ``check_no_leakage`` does, and raise for the first that is later; the constructor raises for
        features that are the labels. Needs a sampler of blocks with ``temporal``; not with
        ``static``.
    device : str, int or torch.device, optional
        The device that samples and that has the batches: ``"cpu"``, ``"cuda"`` or ``"cuda:1"``.
        Default: the graph's own device. The constructor copies a graph on another device once, by
        ``graph.to(device)``; ``loader.graph`` is the copy. For a graph larger than the GPU's memory
        pass ``graph.pin()``, which stays in page-locked host memory. ``"auto"`` takes a graph on
        the CPU to torch's current GPU if half of its free memory has room for the graph, else
        ``"cpu"``; the constructor decides.
    features : mapping of str to Features or arrays of shape [num_nodes, ...], optional
        Each batch has the rows of its ``input_nodes`` as an attribute of that name, and in
        ``batch.features``. They are used on their device; ``Features.open`` reads features from a
        file. On the CPU they are read ahead like the samples. Batches on a GPU read features of
        that GPU, and features of the CPU out of page-locked memory over the link; ``Features.to``
        copies them to the GPU. A value may be a ``TensorFrame`` of PyTorch Frame: its tensors are
        read so, and batches have a ``TensorFrame`` (``pygsampler.pyg.tensor_frames``). For a
        ``HeteroGraph`` each name has a mapping of node types to arrays, in batches too; ``labels``
        are such a mapping, and ``edge_features`` have mappings of edge types.
    labels : Features or array of shape [num_nodes, ...], optional
        Each batch has the rows of its ``output_nodes`` as ``y``.
    seed_labels : array of shape [N, ...], or a mapping of types to such, optional
        A row for each seed, in the order of ``seeds``, for nodes that are seeds at several times
        with a label for each: ``y`` then has the rows of the batch's seeds in their order, on its
        device (with a ``HeteroGraph`` a mapping of types). All types of the seeds need labels. Not
        with ``labels``. With ``torch.arange(N)`` ``y`` is the positions of the seeds among the
        seeds of the loader.
    label_time : array of shape [num_nodes], or a mapping of types to such, or one for all, optional
        The time from which the label of each node is known, a number or a date like ``seed_time``,
        for ``guard`` and ``check_no_leakage``: the label of a seed must be known after its time. It
        may be infinity if times are floating-point. Not with ``seed_labels``: their times can be
        compared with ``seed_time`` without a batch.
    edge_features : mapping of str to Features or arrays of shape [num_edges, ...], optional
        Each block has the rows of its ``edge_ids`` as an attribute of that name, and in
        ``block.features``.
    gpu_share : float or "auto", optional
        The largest share of a GPU that a launch of the sampler takes, above 0 and up to 1, as a
        fraction of the blocks of threads that the GPU runs at once. None: the number that is best
        for the sampler. ``"auto"`` measures one epoch each, of 16 batches or more, with all, a half
        and a quarter, after the first epoch, and continues with the share whose steps are shortest;
        measured epochs wait for the GPU at their begin and end. It has no effect in mode ``"bsp"``,
        of static batches, nor on the CPU, where ``pgs.set_num_threads`` has one.
    seed_weights : array of shape [N], or a mapping of types to such, optional
        Each epoch draws ``num_samples`` of the seeds with replacement, each in proportion to its
        weight, for rare classes for example: finite numbers, 0 for never. The draws are a function
        of ``seed`` and the epoch (docs/developer/walk-draws.md), the same on all ranks, which share
        them out as they share seeds. A seed may be more than once in a batch: its outputs are rows
        ``batch.output_index``. Not with ``shuffle``.
    num_samples : int, optional
        With ``seed_weights``, the number of seeds of an epoch on all ranks. Default: the number of
        ``seeds``.
    static : bool, "max", or sequence of (int, int), or of (mapping, mapping)
        Not False: yield each batch as the same ``StaticMiniBatch``, of fixed sizes at fixed
        addresses, for ``capture``; only on a GPU, for a ``PGSampler`` of mode ``"auto"`` or
        ``"persistent"``. One epoch runs at a time: the next ``iter()`` ends the one before.
        ``prefetch`` is 2. True: each block has room for the batches of the first epoch, which are
        sampled once to measure them, and a twentieth more. A batch that needs more room is
        detected, and gets it in other memory. ``"max"`` is the upper bound of any batch by the
        fanouts, none of which may be -1: with several ranks no rank then has a batch that is too
        large, for which the others would not wait. A sequence has the numbers of sources and edges
        of each block, outermost first; with a ``HeteroGraph`` each pair is a mapping of node types
        to the number of nodes after that hop, and a mapping of edge types to the number of edges;
        types without an entry have the least possible room. ``loader.capacities`` has the sizes in
        use.
    seed_time : array of shape [N], or a mapping of types to such, or one for all, optional
        With a sampler that has ``temporal``, the bound of each seed's subgraph, a number or a date:
        see ``PGSampler.sample``.

    Notes
    -----
    A loader yields a ``MiniBatch`` in torch tensors, or for samplers of walks their results,
    without features and labels except for ``RestartNeighbors``. On the CPU the tensors share the
    engine's memory. On a GPU they are views of one tensor, which torch allocates on the stream that
    is current when the batch is submitted, and a yielded batch is complete: no stream has to wait
    for it. Work on it in another stream needs ``Tensor.record_stream`` before the batch is dropped,
    like any tensor. The batches of a group share their tensor: with ``prefetch=4`` groups have 2
    batches, from 8 on 4, below 4 one. A batch holds that memory as long as it lives, so clone the
    tensors that live long.

    The batches are a pure function of the graph, the seeds, the options, ``seed``, the epoch,
    ``rank`` and ``world_size``; ``device``, ``prefetch`` and the number of threads never change
    them, nor does ``gpu_share``. Each ``iter()`` takes the current epoch and advances it by one, so
    two iterations never repeat the same samples by accident; ``set_epoch(n)`` chooses the next
    epoch, as a resumed run does. Iterators are independent of each other and several may be in use
    at once, each of its own epoch. A batch that fails raises at its place, after the batches before
    it. Leaving a loop early, an error, Ctrl-C and the end of the interpreter cancel the batches in
    flight.

    On a GPU a batch is sampled after the work that is in torch's current stream when its group is
    submitted, and in parallel with later work of that stream: with ``prefetch`` of 2 and more,
    sampling and training overlap.

    A loader can be pickled when its graph can; its iterators cannot.

    ``batch_size``, ``drop_last``, ``shuffle``, ``prefetch``, ``progress`` and ``gpu_share`` may be
    assigned: the next ``iter()`` uses them, and running epochs do not. All other attributes are
    fixed, and assigning one is an error that names the remedy.

    Raises
    ------
    AttributeError
        For assignments that could have no effect.
    TypeError, ValueError
        For arguments of a wrong type or value, naming the argument, and for invalid weights, naming
        the edge. With ``world_size`` > 1 also if no exact sharding exists: fewer seeds than ranks,
        or ``batch_size=1`` with a number of seeds that ``world_size`` does not divide
        (``drop_last=True`` allows the latter).
    IndexError
        For a seed outside ``[0, graph.num_nodes)``.
    CudaError
        For a ``device`` that does not exist, or that torch cannot use.
    """

    @overload
    def __init__(
        self: DataLoader[StaticMiniBatch],
        graph: Graph,
        seeds: Any,
        sampler: PGSampler | Sequence[Any],
        *,
        batch_size: int,
        static: Literal[True],
        **options: Unpack[DataLoaderOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: DataLoader[MiniBatch],
        graph: Graph,
        seeds: Any,
        sampler: Sequence[Any],
        *,
        batch_size: int,
        static: Literal[False] = False,
        **options: Unpack[DataLoaderOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: DataLoader[Visits],
        graph: Graph,
        seeds: Any,
        sampler: PinSAGE,
        *,
        batch_size: int,
        static: Literal[False] = False,
        **options: Unpack[DataLoaderOptions],
    ) -> None: ...
    @overload
    def __init__(
        self,
        graph: Graph,
        seeds: Any,
        sampler: Sampler[_Sampled[BatchT]],
        *,
        batch_size: int,
        static: Literal[False] = False,
        **options: Unpack[DataLoaderOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: DataLoader[Any],
        graph: Graph,
        seeds: Any,
        sampler: Sampler[Any] | Sequence[Any],
        *,
        batch_size: int,
        static: Any = False,
        **options: Unpack[DataLoaderOptions],
    ) -> None: ...
    @checked_keywords
    def __init__(
        self,
        graph: Graph,
        seeds: Any,
        sampler: Sampler[Any] | Sequence[Any],
        *,
        batch_size: int,
        shuffle: bool = False,
        drop_last: bool = False,
        seed: int | None = None,
        seed_time: Any = None,
        seed_weights: Any = None,
        num_samples: int | None = None,
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
        labels: Any = None,
        seed_labels: Any = None,
        label_time: Any = None,
        edge_features: Mapping[str, Any] | None = None,
    ) -> None:
        self._compose(
            graph,
            sampler,
            lambda sampler: NodeSeeds(
                graph, seeds, sampler, seed_time, seed_weights, num_samples, seed_labels
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
            labels=labels,
            seed_labels=seed_labels,
            label_time=label_time,
            edge_features=edge_features,
            static=static,
            progress=progress,
            guard=guard,
            gpu_share=gpu_share,
            cache=cache,
        )
