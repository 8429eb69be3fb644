"""``PGSampler`` for PyG: neighbour sampling behind ``BaseSampler``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch.utils.data import get_worker_info
from torch_geometric.data import Data
from torch_geometric.sampler import (
    BaseSampler,
    EdgeSamplerInput,
    NodeSamplerInput,
    NumNeighbors,
    SamplerOutput,
)
from torch_geometric.sampler.base import SubgraphType
from torch_geometric.sampler.neighbor_sampler import edge_sample

from pygsampler import sampler as _core
from pygsampler._batch.induced import induced
from pygsampler._core.checks import boolean, describe
from pygsampler._loading.batch_number import BatchNumber
from pygsampler._sampling.base import check_blocks
from pygsampler.converted import as_torch
from pygsampler.graph import Graph
from pygsampler.pyg import options
from pygsampler.pyg.graph import graph_of
from pygsampler.pyg.negatives import NodesByTime, When, negatives_of
from pygsampler.pyg.output import around, directional, vertices
from pygsampler.subgraph import TorchSubgraph

if TYPE_CHECKING:
    from pygsampler.converted import TorchBatch
    from pygsampler.graph import Graph

__all__ = ["PGSampler", "Sampler"]


class Sampler(BaseSampler):  # type: ignore[misc]
    """Any ``pygsampler.Sampler`` as a sampler for PyG's loaders.

    ``PGSampler`` is the one that takes the arguments of PyG's own; here the sampler is given:

        sampler = pygsampler.pyg.Sampler(data, pygsampler.PGSampler([5, 10], frontier="new"))
        loader = NodeLoader(data, sampler, input_nodes=data.train_mask, batch_size=1024)

    Graphs, devices, subgraphs and random numbers are as ``PGSampler`` of this module says. Edges
    are grouped by hop, and each has the place of its source among the nodes.

    A batch of a program that returns a subgraph has a node for each seed first, repeated ones too,
    then its other vertices. Where the seeds have no part in these (``samplers.saint_node``), they
    stand in their order, all of them count for ``batch_size``, and ``input_id`` is their ids.

    Parameters
    ----------
    data : Data, Graph, or (FeatureStore, GraphStore)
        As for ``PGSampler``.
    sampler : pygsampler.Sampler
        Its local ids must be the same in all blocks, as those of ``PGSampler`` are. What ``prob``
        or ``mask`` of a ``pygsampler.PGSampler`` names is an attribute of the edges of ``data``.
        ValueError for one of walks or of vectors alone.
    subgraph_type, device, is_sorted, sample_direction
        As for ``PGSampler``.
    """

    # What options of the core are called.
    _options_names: ClassVar[Mapping[str, str]] = MappingProxyType({})

    def __init__(
        self,
        data: Any,
        sampler: _core.Sampler[Any],
        *,
        subgraph_type: str | SubgraphType = "directional",
        device: Any = None,
        is_sorted: bool = False,
        sample_direction: str = "forward",
        reads: tuple[tuple[str, ...], tuple[str, ...]] | None = None,
    ) -> None:
        if not isinstance(sampler, _core.Sampler):
            raise TypeError(
                f"sampler: expected a pygsampler.Sampler, got {describe(sampler)}; "
                "pygsampler.pyg.PGSampler takes numbers of neighbours"
            )
        check_blocks(sampler)
        backward = options.backward(sample_direction)
        self._identity = BatchNumber(sampler.seed)
        self._sampler = sampler
        self.subgraph_type = subgraph_type
        self.keep_orig_edges = False
        self._check_factors()
        array = None
        if sampler.drawn_by is not None:
            kind, name = sampler.drawn_by
            array = self._options_names.get(kind, kind), name
        # Last, since it may sort many gigabytes.
        in_order = boolean(is_sorted, "is_sorted")
        named = sampler.reads if reads is None else reads
        self._graph = graph_of(data, device, in_order, backward, array, named)
        self._sample_direction = sample_direction
        # Now, and by what the array is now: wrong weights are wrong arguments.
        self._drawn()

    def __setattr__(self, name: str, value: Any) -> None:
        options.assignable(name, value)
        super().__setattr__(name, value)

    def __copy__(self) -> Sampler:
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, _identity=self._identity.copy())
        return other

    @property
    def disjoint(self) -> bool:
        """Whether each seed has a tree of its own."""
        return bool(getattr(self._sampler, "disjoint", False))

    @property
    def subgraph_type(self) -> SubgraphType:
        """Directional, bidirectional or induced."""
        return self._subgraph_type

    @subgraph_type.setter
    def subgraph_type(self, subgraph_type: str | SubgraphType) -> None:
        self._subgraph_type = options.kind(subgraph_type)

    @property
    def sample_direction(self) -> str:
        """``"forward"`` or ``"backward"``."""
        return self._sample_direction

    @property
    def graph(self) -> Graph:
        """What is sampled; of a sampler that goes backward the reversed edges."""
        return self._graph

    @property
    def num_nodes(self) -> int:
        """Number of nodes of the graph."""
        return self._graph.num_nodes

    @property
    def num_edges(self) -> int:
        """Number of edges of the graph."""
        return self._graph.num_edges

    @property
    def seed(self) -> int:
        """The 64-bit seed of the random numbers."""
        return self._identity.seed

    @property
    def device(self) -> str:
        """Where it samples: ``"cpu"`` or, for one, ``"cuda:0"``."""
        return self._graph.device

    @property
    def edge_permutation(self) -> None:
        """None: the sampled edges have the ids of ``data`` already."""
        return None

    def set_seed(self, seed: int | None) -> None:
        """Take another seed, from ``-2**63`` to ``2**64 - 1``, in workers that live on too.

        Without ``set_epoch`` calls count from 0 again, so that a seed which is set twice repeats
        its batches. ``None`` goes back to torch's seed.
        """
        self._identity.set_seed(seed)

    def set_epoch(self, epoch: int | None) -> None:
        """Make the batches from now on a function of ``epoch``, an integer in ``[0, 2**24)``.

        ``None`` goes back to batches that never repeat. Workers see it too, also those that live
        through several epochs.
        """
        self._identity.set_epoch(epoch)

    def sample_from_nodes(self, index: NodeSamplerInput, **kwargs: Any) -> SamplerOutput:
        """The subgraph around the nodes of ``index``; called by PyG's ``NodeLoader``.

        The nodes are int32 or int64, shape [N]. Returns a ``torch_geometric.sampler.SamplerOutput``
        of tensors where the graph is, with its dtype: ``node`` and ``batch`` have a value for each
        node, ``row``, ``col`` and ``edge`` one for each edge. ``num_sampled_nodes`` (one more than
        hops) and ``num_sampled_edges`` are lists of int, or None but for directional subgraphs.

        Raises ``TypeError`` for other dtypes, ``IndexError`` for an id that is not a vertex,
        ``NotImplementedError`` for seeds with times or a type, ``ClosedError`` for a closed graph
        and ``CudaError`` where the GPU fails or belongs to the parent of a forked process.
        """
        inputs = NodeSamplerInput.cast(index)
        options.check_inputs(inputs, "input_time", kwargs, self._is_temporal)
        seeds = options.ids(inputs.node, "input_nodes")
        times = self._times_of(seeds, inputs.time, "input_time")
        identity = self._identity.of(seeds, None if times is None else (b"times", bits(times)))
        out = self._sample(seeds, identity, times)
        known = (inputs.input_id, inputs.time)
        out.metadata = known if self._sampler.rooted else (out.node, None)
        return self._finished(out)

    def sample_from_edges(
        self, index: EdgeSamplerInput, neg_sampling: Any = None, **kwargs: Any
    ) -> SamplerOutput:
        """The subgraph around the ends of the edges of ``index``; called by PyG's ``LinkLoader``.

        ``neg_sampling`` is a ``NegativeSampling``, binary or triplet, or None. Its random numbers
        are the batch's own: torch's generator is left as it was.

        Returns and raises what ``sample_from_nodes`` does. ``metadata`` has, as in PyG, the places
        of the edges' ends among the nodes: ``edge_label_index``, shape [2, edges], and
        ``edge_label``; or of triplets ``src_index``, ``dst_pos_index`` and ``dst_neg_index``.
        """
        if not self._sampler.rooted:
            raise ValueError(
                f"sampler: expected one whose vertices follow from the ends of edges, got "
                f"{describe(self._sampler)}"
            )
        inputs = EdgeSamplerInput.cast(index)
        options.check_inputs(inputs, "edge_label_time", kwargs, self._is_temporal)
        sources, targets = (
            options.ids(ends, "edge_label_index") for ends in (inputs.row, inputs.col)
        )
        identity = self._identity.of(sources, (b"targets", targets))
        label = inputs.label

        def sample(given: torch.Tensor, time: torch.Tensor | None) -> SamplerOutput:
            seeds = options.ids(given, "seeds")
            return self._sample(seeds, identity, self._times_of(seeds, time, "edge_label_time"))

        known = self._node_time()
        nodes = None if neg_sampling is None else self._nodes_by_time("", known)
        when = When(inputs.time, nodes, nodes)
        with negatives_of(neg_sampling, when, known, self.seed, *identity) as (negatives, times):
            out = edge_sample(
                EdgeSamplerInput(inputs.input_id, sources, targets, label, inputs.time),
                sample,
                self.num_nodes,
                self.disjoint,
                times,
                negatives,
            )
        input_id, *others = out.metadata
        out.metadata = (input_id, *[on(value, out.node.device) for value in others])
        return self._finished(out)

    # Whether seeds have times.
    _is_temporal = False

    def _times_of(
        self, seeds: torch.Tensor, given: torch.Tensor | None, where: str
    ) -> torch.Tensor | None:
        """The bounds of seeds; None for a sampler without times."""
        return None

    def _node_time(self) -> torch.Tensor | None:
        """When nodes are, for negatives; None where they have no times."""
        return None

    def _nodes_by_time(self, kind: str, times: torch.Tensor | None) -> NodesByTime | None:
        """The nodes of a type that have these times in the order of them; sorted once."""
        if times is None:
            return None
        known: dict[str, NodesByTime] = self.__dict__.setdefault("_by_time", {})
        found = known.get(kind)
        if found is None:
            found = known[kind] = NodesByTime(times)
        return found

    def _sample(
        self, seeds: torch.Tensor, identity: tuple[int, int], times: torch.Tensor | None
    ) -> SamplerOutput:
        self._check_factors()
        batch = self._batch(seeds, *identity, times)
        if isinstance(batch, TorchSubgraph):
            return self._of_subgraph(batch)
        node, num_nodes = vertices(batch)
        trees = None if batch.trees is None else batch.trees.to(node.dtype)
        if self.subgraph_type == SubgraphType.induced:
            edges = induced(self._drawn(), node, trees)
            out = SamplerOutput(node, edges.row, edges.col, edges.edge, batch=trees)
            out.sort_order = "col"
            return out
        edges, num_edges = directional(batch)
        hops = self._hops(batch)
        out = SamplerOutput(
            node,
            edges.row,
            edges.col,
            edges.edge,
            batch=trees,
            num_sampled_nodes=num_nodes[: hops + 1],
            num_sampled_edges=num_edges[:hops],
        )
        # PyG's class has no place for these; our loaders look for them.
        out.sort_order = "col" if edges.ordered else None
        if edges.weight is not None:
            out.edge_weights = edges.weight
        if edges.named:
            out.edge_values = edges.named
        return out

    def _of_subgraph(self, batch: TorchSubgraph) -> SamplerOutput:
        node, edges = around(batch, self._sampler.rooted)
        if self.subgraph_type == SubgraphType.induced:
            edges = induced(self._drawn(), node, batch.trees)
        # Those of a sampler with trees have their roots in front, and stay where they are.
        trees = None if batch.trees is None else batch.trees.to(node.dtype)
        out = SamplerOutput(node, edges.row, edges.col, edges.edge, batch=trees)
        out.sort_order = "col"
        if edges.weight is not None:
            out.edge_weights = edges.weight
        if edges.named:
            out.edge_values = edges.named
        return out

    def _check_factors(self) -> None:
        """ValueError for factors of edges that are not those that were sampled."""
        if getattr(self._sampler, "edge_weights", None) is None:
            return
        if self.subgraph_type != SubgraphType.directional:
            raise ValueError(
                f"edge_weights: expected None, or subgraph_type='directional', whose edges are "
                f"those that were sampled, got {describe(self.subgraph_type.value)}"
            )

    def _hops(self, batch: TorchBatch) -> int:
        """How many hops of the batch were asked for."""
        return len(batch.blocks)

    def _batch(
        self, seeds: torch.Tensor, epoch: int, batch: int, times: torch.Tensor | None = None
    ) -> TorchBatch:
        if self._sampler.seed != self.seed:
            self._sampler = self._sampler.with_seed(self.seed)
        threads = 0 if get_worker_info() is None else 1
        launch: Any = self._sampler.launch
        if times is not None:
            launch = partial(launch, seed_time=times)
        job = launch(self._graph, seeds, epoch=epoch, batch=batch, threads=threads, into="torch")
        return as_torch(job.result())

    def _drawn(self) -> Graph:
        """The graph without the edges that are never sampled."""
        return self._sampler.graph_of(self._graph)

    def _finished(self, out: SamplerOutput) -> SamplerOutput:
        """``out`` with its edges as they are in the data, and their reverses if asked for."""
        if self.sample_direction == "backward":
            out.row, out.col = out.col, out.row
            out.sort_order = out.sort_order and "row"
        if self.subgraph_type != SubgraphType.bidirectional:
            return out
        out = out.to_bidirectional(keep_orig_edges=self.keep_orig_edges)
        out.sort_order = None
        return out

    def __repr__(self) -> str:
        return f"pygsampler.pyg.Sampler({self._sampler!r}, {self.subgraph_type.value!r})"


class PGSampler(Sampler):
    """Neighbour sampling for PyG's loaders, by pygsampler's engine.

    Takes the place of ``torch_geometric.sampler.NeighborSampler``, and needs neither pyg-lib nor
    torch-sparse:

        sampler = pygsampler.pyg.PGSampler(data, [10, 10])
        loader = NodeLoader(data, sampler, input_nodes=data.train_mask, batch_size=1024)

    or ``NeighborLoader(data, [10, 10], neighbor_sampler=sampler, ...)``, and likewise
    ``LinkLoader(data, sampler, ...)`` and ``LinkNeighborLoader``. ``NeighborLoader`` and
    ``LinkNeighborLoader`` of this module make the sampler themselves.

    A batch is what PyG's own sampler gives. The seeds are the first nodes, in their order, and
    nodes are numbered as they are first reached. A node is expanded once, at the hop after the one
    that reached it. Edges are grouped by hop, and ``e_id`` is the column of ``edge_index``.

    Parameters
    ----------
    data : Data, Graph, or (FeatureStore, GraphStore)
        The graph, without types; ``HeteroSampler`` takes a ``HeteroData``. Its edges are sorted
        once, here; later changes of ``data`` do not reach the sampler. Arrays of a Graph, and
        sorted edges, are used where they lie: keep them unchanged.
    num_neighbors : list of int or NumNeighbors
        In-neighbours to sample for each node, ``num_neighbors[0]`` for the seeds. -1 takes all,
        also with ``replace=True``. ``[]`` samples no edges.
    replace : bool
        Sample with replacement.
    subgraph_type : str or SubgraphType
        ``"directional"``: the sampled edges. ``"bidirectional"``: each with its reverse.
        ``"induced"``: all edges of the graph between the sampled nodes.
    disjoint : bool
        Each seed has a tree of its own, and ``batch`` says whose tree a node belongs to.
    seed : int, optional
        64-bit seed of the random numbers. Default: torch's, see below.
    device : str, int or torch.device, optional
        Where to sample, and where the sampled ids are. Default: where the edges are.
    is_sorted : bool
        ``edge_index`` is ordered by its row 1, the targets. Checked.
    temporal_strategy : str
        ``"uniform"``, or ``"last"``: the latest edges, or those to the latest nodes.
    time_attr : str, optional
        The name of an attribute of nodes or of edges of ``data``, integers or floats: times. Each
        seed has a tree of its own, along edges (to nodes) that are not later than the seed's time
        at any hop. A seed without one has that of its node. Not for induced
        subgraphs, which would have later edges.
        Backward it is the same along out-edges, to targets. In stores without types a tensor "time"
        is of nodes, and one of another name of edges, as in PyG.
    weight_attr : str, optional
        The name of an attribute of the edges of ``data``, shape [E]: bool, integers, float32 or
        float64, finite weights >= 0, in the order of ``edge_index`` or ``adj_t``. "edge_weight" may
        be the values of an ``adj_t``; of a Graph it is an array in ``edata``. A node draws its
        edges one after another, each by its weight among those that are left; with ``replace``
        among all. An edge of weight 0 is never in a batch, not by -1 or in an induced subgraph
        either.
    edge_weights : str, optional
        ``"ht"``: each edge has a factor, float32, by which sums over the sampled edges of a node
        are, in the mean, those over all its edges: see ``pygsampler.PGSampler``. Batches of this
        module's loaders have them as ``edge_weights``, beside ``e_id``, and ``SamplerOutput`` has
        them under that name. For directional subgraphs.
    share_memory : bool
        Accepted for compatibility: processes share the graph in any case.
    directed : bool
        PyG's old word: False is ``subgraph_type="induced"``.
    sample_direction : str
        ``"forward"``: in-neighbours, ``"backward"``: out-neighbours. Edges are written from source
        to target in either.

    Notes
    -----
    ``num_neighbors``, ``replace``, ``subgraph_type``, ``disjoint``, ``edge_weights`` and
    ``keep_orig_edges`` may be assigned, and count from the next batch on; a shallow copy of a
    sampler shares the graph and nothing else. The graph, and what it was made by, cannot be
    assigned; ``weight_attr`` can be None, or an array that the graph was made with.

    The weights are copied and made into tables here: a pass over all edges, on all cores, and 16
    bytes an edge. Forked workers share them; spawned ones each make them again.

    Random numbers. Call ``sampler.set_epoch(n)`` before each epoch to make every batch a pure
    function of (graph, options, seed, n, the batch's seeds): it is then the same for every number
    of workers, for fork and spawn, on CPU and GPU, and in a later run. That holds for the negatives
    of link loaders too. Without it no batch repeats an earlier one by accident, and a run is
    repeated by ``torch.manual_seed`` and the same number of workers. A seed that is not given is
    ``torch.initial_seed()``, asked for when the sampler is made, by ``set_epoch``, when a pass over
    a loader of this module begins and, without an epoch, for each batch outside worker processes.

    A seed that is given twice has a row for each time, with the same in-edges in each.

    On a GPU. The samples are those of the CPU. Seeds come from the CPU, since PyG's loaders keep
    them there; node and edge ids of the batch are on the GPU, and PyG's loaders look up features
    wherever these are. A forked worker cannot use its parent's GPU: give ``device="cpu"`` where a
    loader has workers. In a worker a batch is sampled by one core.

    Raises
    ------
    TypeError, ValueError, IndexError
        For arguments of a wrong type or value, naming the argument.
    NotImplementedError
        For graphs with types, and for options that are not offered.
    CudaError
        For a device that is not there.
    """

    _options_names = MappingProxyType({"prob": "weight_attr"})

    def __init__(
        self,
        data: Any,
        num_neighbors: Sequence[int] | NumNeighbors,
        subgraph_type: str | SubgraphType = "directional",
        replace: bool = False,
        disjoint: bool = False,
        temporal_strategy: str = "uniform",
        time_attr: str | None = None,
        weight_attr: str | None = None,
        is_sorted: bool = False,
        share_memory: bool = False,
        directed: bool = True,
        sample_direction: str = "forward",
        *,
        seed: int | None = None,
        device: Any = None,
        edge_weights: str | None = None,
    ) -> None:
        boolean(share_memory, "share_memory")
        times = options.times(time_attr, temporal_strategy)
        if weight_attr is not None and not isinstance(weight_attr, str):
            raise TypeError(
                f"weight_attr: expected the name of an attribute, got {describe(weight_attr)}"
            )
        counts = options.hops(num_neighbors)
        super().__init__(
            data,
            _core.PGSampler(
                # PyG's first number is for the seeds, ours is for the outermost hop. No hop at all
                # is sampled as one that takes nothing.
                counts[::-1] or [0],
                replace=replace,
                frontier="new",
                disjoint=disjoint,
                prob=weight_attr,
                edge_weights=edge_weights,
                seed=seed,
                **times,
            ),
            subgraph_type=options.subgraph(subgraph_type, directed),
            device=device,
            is_sorted=is_sorted,
            sample_direction=sample_direction,
            reads=None if time_attr is None else _with_times(data, time_attr),
        )
        self._identity.set_seed(seed)
        if time_attr is not None:
            # Now: wrong times are wrong arguments, and rows are sorted by time once.
            self._graph._timed(time_attr, None, weight_attr)
        self._num_neighbors = NumNeighbors(list(counts))

    @property
    def num_neighbors(self) -> NumNeighbors:
        """In-neighbours to sample for each node, the seeds' number first."""
        return self._num_neighbors

    @num_neighbors.setter
    def num_neighbors(self, num_neighbors: Sequence[int] | NumNeighbors) -> None:
        counts = options.hops(num_neighbors)
        self._sampler = self._made()._with(fanouts=counts[::-1] or [0])
        self._num_neighbors = NumNeighbors(list(counts))

    @property
    def time_attr(self) -> str | None:
        """The name of the times; None: edges have none."""
        return self._made().time

    @time_attr.setter
    def time_attr(self, time_attr: str | None) -> None:
        _same("time_attr", time_attr, self.time_attr)

    @property
    def temporal_strategy(self) -> str:
        """``"uniform"`` or ``"last"``."""
        return self._made().strategy

    @temporal_strategy.setter
    def temporal_strategy(self, temporal_strategy: str) -> None:
        _same("temporal_strategy", temporal_strategy, self.temporal_strategy)

    @property
    def _is_temporal(self) -> bool:  # type: ignore[override]
        return self.time_attr is not None

    def _times_of(
        self, seeds: torch.Tensor, given: torch.Tensor | None, where: str
    ) -> torch.Tensor | None:
        name = self.time_attr
        if name is None:
            return None
        options.no_induced(self.subgraph_type)
        if given is not None:
            timed = self._graph._timed(name, None, self.weight_attr)
            return options.bounds(given, where, name, timed.float)
        times = self._node_time()
        if times is None:
            raise ValueError(
                f"{where}: expected times with time_attr={self.time_attr!r} of edges, got None"
            )
        return times[seeds.long()]

    def _node_time(self) -> torch.Tensor | None:
        name = self.time_attr
        values = None if name is None else self._graph.ndata.get(name)
        return None if values is None else values.torch()

    @property
    def replace(self) -> bool:
        """Whether edges are sampled with replacement."""
        return self._made().replace

    @replace.setter
    def replace(self, replace: bool) -> None:
        self._sampler = self._made()._with(replace=replace)

    @property
    def disjoint(self) -> bool:
        """Whether each seed has a tree of its own."""
        return self._made().disjoint

    @disjoint.setter
    def disjoint(self, disjoint: bool) -> None:
        self._sampler = self._made()._with(disjoint=disjoint)

    @property
    def weight_attr(self) -> str | None:
        """The name of the weights of edges; None: edges are equal."""
        return self._made().prob

    @weight_attr.setter
    def weight_attr(self, weight_attr: str | None) -> None:
        known = self.graph.edata
        if weight_attr is not None and weight_attr not in known:
            have = ", ".join(map(repr, known)) or "none"
            raise ValueError(
                f"weight_attr: expected None or the name of an array that the sampler was made "
                f"with ({have}), got {describe(weight_attr)}; make another sampler"
            )
        self._sampler = self._made()._with(prob=weight_attr)

    @property
    def edge_weights(self) -> str | None:
        """``"ht"``, or None: edges have no factors."""
        return self._made().edge_weights

    @edge_weights.setter
    def edge_weights(self, edge_weights: str | None) -> None:
        self._sampler = self._made()._with(edge_weights=edge_weights)

    def _made(self) -> _core.PGSampler:
        made = self._sampler
        assert isinstance(made, _core.PGSampler)
        return made

    def _hops(self, batch: TorchBatch) -> int:
        return int(self.num_neighbors.num_hops)

    def __repr__(self) -> str:
        named = {"weight_attr": self.weight_attr, "edge_weights": self.edge_weights}
        weights = "".join(f", {name}={value!r}" for name, value in named.items() if value)
        return (
            f"pygsampler.pyg.PGSampler({self.num_neighbors.values}, replace={self.replace}, "
            f"subgraph_type={self.subgraph_type.value!r}, disjoint={self.disjoint}{weights})"
        )


def _same(name: str, value: Any, known: Any) -> None:
    """AttributeError for what would be without effect."""
    if value != known:
        raise AttributeError(
            f"{name}: cannot be assigned, since a sampler keeps its rows by time; make another "
            "sampler"
        )


def _with_times(data: Any, name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Which attributes of edges and of nodes of data are its times."""
    if isinstance(data, Graph):
        return ((name,), ()) if name in data.edata else ((), (name,))
    if isinstance(data, Data) and name not in data:
        raise ValueError(
            f"time_attr: expected the name of an attribute of nodes or edges of data, got {name!r}"
        )
    if isinstance(data, (tuple, list)):
        # As PyG tells them apart in stores.
        return ((), (name,)) if name == "time" else ((name,), ())
    of_edges = isinstance(data, Data) and name in data and data.is_edge_attr(name)
    return ((name,), ()) if of_edges else ((), (name,))


def bits(times: torch.Tensor) -> torch.Tensor:
    """Integers that say which times they are."""
    return times.double().view(torch.int64) if times.is_floating_point() else times.long()


def on(value: Any, device: torch.device) -> Any:
    return value.to(device) if isinstance(value, torch.Tensor) else value
