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
    """Iterate over ``seeds`` in mini-batches of sampled blocks, as torch tensors.

    Sampling runs in the engine, on the CPU outside the GIL or on a GPU beside the training
    step, up to ``prefetch`` batches ahead of the training loop; no worker processes or Python
    threads are involved:

        loader = DataLoader(graph, train_ids, [10, 10], batch_size=1024, shuffle=True)
        for epoch in range(10):
            for batch in loader:
                h = features[batch.input_nodes]
                ...

    With ``features`` and ``labels`` it also reads what belongs to the nodes of a batch ahead,
    and hands it over as ``batch.x`` (or another name) and ``batch.y``:

        loader = DataLoader(..., features={"x": x}, labels=y)

    Parameters
    ----------
    graph : Graph or HeteroGraph
        The graph to sample from.
    seeds : int32 or int64 node ids, 1-D
        A tensor, a NumPy array or a list. They are copied, to the CPU if they are on a GPU, and
        from there to the graph's device once an epoch. Duplicates are allowed, see
        ``MiniBatch``. None at all makes a loader of length 0. Of a ``HeteroGraph`` a mapping of
        node types to ids; those of several types are put after each other, and shuffled and cut
        together.
    sampler : Sampler or list of int
        A sampler, or the fanouts to make one of, outermost hop first.
    batch_size : int
        Seeds of a batch, at least 1.
    shuffle : bool
        Permute the seeds anew in each epoch.
    drop_last : bool
        Drop batches that are not full, the same number on all ranks.
    prefetch : int, (int, int) or "auto"
        Batches sampled ahead while the consumer works on one; 0 samples a batch only when it is
        asked for. On the CPU, from 2 on several batches run at once, each on one core, or on as
        many as there are threads for each; on a GPU at most 8 are in flight, with 4 to 12 bytes for
        each node of the graph to work with, and from 4 on they are started in groups of half as
        many. Memory is that of ``prefetch + 1`` batches, on a GPU with those of their groups that
        were dropped.
        A pair is (low, high): once ``high`` batches are ahead no more are begun until ``low`` are
        left, fewer than ``high``; then as many as there is room for are, on a GPU by one call. For
        a number the low mark is one less: a batch is begun for each that is taken. On a GPU, where
        the sampler starts groups, it is half (docs/guide/prefetching.md). ``"auto"`` begins with 4
        and samples as many ahead as the loop needs to wait for none, by the times of the batches
        before, within the idle cores and a quarter of the free memory; on a GPU 4 or 8, from epoch
        to epoch. ``explain()`` has the numbers.
    prefetch_memory : int, optional
        The bytes, at least 1, that batches ahead may take with the one that the loop works on:
        fewer than ``prefetch`` are ahead where they take more, one at least. On the CPU batches
        count with their features, by the largest so far, after the first; on a GPU with all that
        they work in, as the engine expects it or, of samplers that start no groups, as the largest
        so far had it. Batches do not depend on it, except those of samplers that learn. With
        ``"auto"`` it stands in for the free memory. None with ``static`` or a pair.
    cache : "auto", optional
        Of ``features`` that a GPU reads out of page-locked memory, as many rows as fit are copied
        to the GPU, those of nodes with most out-edges: ``Features.cache`` with the policy
        ``"degree"``. How many is chosen once, after 16 batches (the first epoch, where that is
        shorter, and with ``static``), by what is free then but a tenth of the memory, for all
        features in proportion to their bytes. Features that have a cache stay as they are. Rows
        that are read do not depend on it; ``explain()`` and ``state_dict()`` have the numbers. Not
        for a ``HeteroGraph``.
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
    shard_by : str
        ``"seeds"``: as above. ``"batches"``: batch b of a single process is one of rank b modulo
        ``world_size``, so that all ranks together make the batches of a single process, for any
        number of them. Some rank may have one batch more than another, for which
        ``torch.distributed.algorithms.Join`` is there, or the first ``min`` of the ``len()``.
    skip_batches : int
        Number of batches that the first epoch leaves out: of all ranks with ``shard_by="batches"``,
        else of each. ``load_state_dict`` goes on where ``state_dict`` was taken.
    progress : bool
        Show a tqdm bar with batches and sampled edges per second.
    guard : bool
        Compare the times in each batch with those of its seeds when it is handed over, as
        ``check_no_leakage`` does, and raise for the first that is later; and when the loader is
        made, for features that are the labels. Needs a sampler of blocks with
        ``temporal``; not with ``static``.
    device : str, int or torch.device, optional
        Where to sample, and where the batches are: ``"cpu"``, ``"cuda"`` or ``"cuda:1"``. Default:
        the graph's own device. A graph that is elsewhere is copied there by ``graph.to(device)``,
        once, when the loader is made; ``loader.graph`` is the copy. For a graph larger than the
        GPU's memory give ``graph.pin()``, which stays in page-locked host memory. ``"auto"`` takes
        a graph on the CPU to torch's current GPU if half of its free memory has room for the graph,
        else ``"cpu"``; it is decided when the loader is made.
    features : mapping of str to Features or arrays of shape [num_nodes, ...], optional
        Each batch has the rows of its ``input_nodes`` as an attribute of that name, and in
        ``batch.features``. They are used where they lie; ``Features.open`` has those of a file.
        On the CPU they are read ahead like the samples. Batches on a GPU read them there, or,
        those on the CPU, out of page-locked memory over the link: ``Features.to`` copies them.
        A ``TensorFrame`` of PyTorch Frame may be one, whose tensors are read so, and batches have
        one (``pygsampler.pyg.tensor_frames``). Of a ``HeteroGraph`` each name has a mapping of node
        types to arrays, in batches too; ``labels`` are such a mapping, and ``edge_features`` have
        mappings of edge types.
    labels : Features or array of shape [num_nodes, ...], optional
        Each batch has the rows of its ``output_nodes`` as ``y``.
    seed_labels : array of shape [N, ...], or a mapping of types to such, optional
        A row for each seed, in the order of ``seeds``, where a node is a seed at several times with
        a label for each: ``y`` then has the rows of the batch's seeds in their order, on its device
        (with a ``HeteroGraph`` a mapping of types). All types of the seeds have some. Not with
        ``labels``. ``torch.arange(N)`` gives the places of the seeds among those of the loader.
    label_time : array of shape [num_nodes], or a mapping of types to such, or one for all, optional
        From when on the label of each node is known, a number or a date as ``seed_time`` is, for
        ``guard`` and ``check_no_leakage``: the label of a seed must be known after its time. It may
        be infinity, where times are floating-point. Not with ``seed_labels``, whose times no batch
        is needed to compare with ``seed_time``.
    edge_features : mapping of str to Features or arrays of shape [num_edges, ...], optional
        Each block has the rows of its ``edge_ids`` as an attribute of that name, and in
        ``block.features``.
    gpu_share : float or "auto", optional
        The most that a launch of the sampler takes of a GPU, above 0 and up to 1: that part of the
        blocks of threads that it runs at once. None: as many as is best for the sampler. ``"auto"``
        measures an epoch each, of 16 batches or more, with all, a half and a quarter, after the
        first one, and goes on with the share whose steps are shortest; measured epochs wait for the
        GPU where they begin and end. It has no effect in mode ``"bsp"``, of static batches, nor on
        the CPU, where ``pgs.set_num_threads`` has one.
    seed_weights : array of shape [N], or a mapping of types to such, optional
        Each epoch draws ``num_samples`` of the seeds with replacement, each in proportion to its
        weight: finite numbers, 0 for never, as for rare classes. The draws are a function of
        ``seed`` and the epoch (docs/concepts/randomness.md), the same on all ranks, which share
        them out as they share seeds. A seed may be more than once in a batch: its outputs are rows
        ``batch.output_index``. Not with ``shuffle``.
    num_samples : int, optional
        With ``seed_weights``, how many seeds an epoch has on all ranks. Default: as many as there
        are seeds.
    static : bool, "max", or sequence of (int, int), or of (mapping, mapping)
        Not False: yield each batch as the same ``StaticMiniBatch``, of fixed sizes in memory that
        stays where it is, as ``capture`` needs it; on a GPU alone, for a ``PGSampler`` of mode
        ``"auto"`` or ``"persistent"``. One epoch at a time: the next ``iter()`` ends the one
        before. ``prefetch`` is 2. True: each block has room for what the batches of the first epoch
        need, which are sampled once for that, and a twentieth more. A batch that needs more is
        noticed, and gets it, in other memory. ``"max"`` is what no batch can need more than, by the
        fanouts, of which none may be -1: with several ranks no batch of one of them is then too
        large, for which the others would not wait. A sequence has how many sources and edges each
        block may have, outermost first; with a ``HeteroGraph`` each pair is a mapping of node types
        to how many a batch may have after that hop, and one of edge types to how many edges; types
        that are not named have as few as may be. ``loader.capacities`` are those in use.
    seed_time : array of shape [N], or a mapping of types to such, or one for all, optional
        With a sampler that has ``time``, the bound of each seed's tree, a number or a date: see
        ``PGSampler.sample``.

    Notes
    -----
    It yields a ``MiniBatch`` in torch tensors; of samplers of walks their results, without features
    and labels except for ``RestartNeighbors``. On the CPU the tensors share the
    engine's memory. On a GPU they are views of one tensor, which torch allocates on the stream that
    is current when the batch is submitted, and the batch is complete when it is handed over: no
    stream has to wait for it. As with any tensor, work on it in a stream other than that one needs
    ``Tensor.record_stream`` before the batch is dropped. The batches of a group share their tensor:
    with ``prefetch=4`` 2 of them do, from 8 on 4, below 4 none. A batch that is kept keeps that
    memory, so clone the tensors to keep one for long.

    The batches are a pure function of the graph, the seeds, the options, ``seed``, the epoch,
    ``rank`` and ``world_size``; ``device``, ``prefetch`` and the number of threads never change
    them, nor does ``gpu_share``. Each ``iter()`` takes the current epoch and advances it by one, so
    two iterations never repeat the same samples by accident; ``set_epoch(n)`` chooses the next
    epoch, as a resumed run does. Iterators are independent of each other and several may be in use
    at once, each of its own epoch. A batch that fails raises when its turn comes, after the batches
    before it. Leaving a loop early, an error, Ctrl-C and the end of the interpreter cancel what is
    in flight.

    On a GPU a batch is sampled after the work that is in torch's current stream when its group is
    submitted, and beside what is put there later: with ``prefetch`` of 2 and more, sampling and
    training overlap.

    A loader can be pickled when its graph can; its iterators cannot.

    ``batch_size``, ``drop_last``, ``shuffle``, ``prefetch``, ``progress`` and
    ``gpu_share`` may be assigned: the next ``iter()`` has them, and epochs that go on do not.
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
