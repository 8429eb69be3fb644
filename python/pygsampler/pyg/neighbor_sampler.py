"""``PGSampler`` for PyG: neighbor sampling behind ``BaseSampler``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar

import torch
from torch_geometric.data import Data
from torch_geometric.sampler import NumNeighbors
from torch_geometric.sampler.base import SubgraphType

from pygsampler._engine.checks import describe
from pygsampler._graph.graph import is_homogeneous
from pygsampler.pyg import options
from pygsampler.pyg.attributes import Attributes
from pygsampler.pyg.base_sampler import Sampler
from pygsampler.pyg.comparison import mirrored, temporal_rule
from pygsampler.pyg.hetero_stores import is_hetero
from pygsampler.samplers import neighbor

__all__ = ["NeighborSampler", "PGSampler", "Sampler"]


class ClassByData(Sampler):
    """Base class of samplers that are of a subclass where the data is heterogeneous.

    The subclass has the class's own name. An object gets it in ``__init__``, since a class of the
    user's may have data in another place of its arguments.
    """

    # The methods for heterogeneous data, whose module imports that of the class.
    _hetero: ClassVar[type[Any]]
    # The class of this one's objects of heterogeneous data.
    _hetero_class: ClassVar[type[Any] | None] = None

    def _choose_class(self, data: Any) -> None:
        if is_hetero(data) and not isinstance(self, self._hetero):
            self.__class__ = _hetero_class(type(self))

    def __reduce_ex__(self, protocol: Any) -> Any:
        cls = type(self)
        hetero = "_of" in vars(cls)
        return _restored, (vars(cls)["_of"] if hetero else cls, hetero), self.__dict__


def _hetero_class(cls: type[ClassByData]) -> type[Any]:
    """Returns the class of a class's objects of heterogeneous data; always the same one."""
    found = vars(cls).get("_hetero_class")
    if found is None:
        bases = (cls._hetero,) if issubclass(cls._hetero, cls) else (cls, cls._hetero)
        names = {"__module__": cls.__module__, "__doc__": cls.__doc__, "_of": cls}
        found = cls._hetero_class = type(cls.__name__, bases, names)
    return found


def _restored(cls: type[ClassByData], hetero: bool) -> Any:
    return object.__new__(_hetero_class(cls) if hetero else cls)


class PGSampler(ClassByData, Attributes):
    """Neighbor sampling for PyG's loaders, by pygsampler's engine.

    It replaces ``torch_geometric.sampler.NeighborSampler``, and needs neither pyg-lib nor
    torch-sparse:

        sampler = pygsampler.pyg.PGSampler(data, [10, 10])
        loader = NodeLoader(data, sampler, input_nodes=data.train_mask, batch_size=1024)

    or ``NeighborLoader(data, [10, 10], neighbor_sampler=sampler, ...)``, and ``LinkLoader(data,
    sampler, ...)`` and ``LinkNeighborLoader``. ``NeighborLoader`` and ``LinkNeighborLoader`` of
    this module create the sampler themselves. ``NeighborSampler`` is another name of this class,
    for a change of the import only; ``pygsampler.pyg.loader.NeighborSampler`` is PyG's older loader
    of the same name.

    A batch has the layout of PyG's own sampler. The seeds are the first nodes, in their order, and
    nodes are numbered as they are first reached. A node is expanded once, at the hop after the hop
    that reached it. Edges are grouped by hop, and ``e_id`` is the column of ``edge_index``.

    A batch of a ``HeteroData`` has all types, those without nodes or edges too. Nodes are numbered
    within their type, hop by hop and in a hop edge type by edge type in the order of
    ``data.metadata()``; subgraphs of ``disjoint`` are numbered by their seeds.

    Parameters
    ----------
    data : Data, HeteroData, Graph, or (FeatureStore, GraphStore)
        The graph. Its edges are sorted once, here; later changes of ``data`` do not reach the
        sampler. Arrays of a Graph, or of a Graph in a ``GraphStore`` of this module, and sorted
        edges are used without a copy: they must not change. A ``HeteroData`` has ``edge_index`` of
        each edge type, all int32 or all int64.
    num_neighbors : list of int, dict of edge types to lists of int, or NumNeighbors
        In-neighbors to sample for each node, ``num_neighbors[0]`` for the seeds. -1 takes all, also
        with ``replace=True``. ``[]`` samples no edges. In heterogeneous data the numbers are for
        each edge type; a dict has all edge types, unless it is in a ``NumNeighbors`` with a
        ``default``.
    replace : bool
        Sample with replacement.
    subgraph_type : str or SubgraphType
        ``"directional"``: the sampled edges. ``"bidirectional"``: each with its reverse, in the
        edge type that PyG pairs with its own; in heterogeneous data ids of such edges are None, as
        in PyG. ``"induced"``: all edges of the graph between the sampled nodes, with ``disjoint``
        within each subgraph.
    disjoint : bool
        Each seed has its own subgraph, and ``batch`` has the subgraph of each node.
    seed : int, optional
        64-bit seed of the random numbers. Default: torch's, see below.
    device : str, int or torch.device, optional
        The device that samples and has the sampled ids. Default: the device of the edges.
    is_sorted : bool
        ``edge_index`` is ordered by its row 1, the targets. Checked.
    temporal_strategy : str
        ``"uniform"``, or ``"last"``: the latest edges, or edges to the latest nodes.
    time_attr : str, optional
        The name of an attribute of nodes or of edges of ``data``, integers or floats: times. Each
        seed has its own subgraph, along edges (to nodes) that are not later than the seed's time at
        any hop. A seed without a time has the time of its node. Not for induced subgraphs, which
        would have later edges. Backward it is the same along out-edges, to targets. In homogeneous
        stores a tensor "time" belongs to nodes, and a tensor of another name to edges, as in PyG.
        In heterogeneous data some types may have the attribute; edges of other types are allowed at
        any time.
    weight_attr : str, optional
        The name of an attribute of the edges of ``data``, shape [E]: bool, integers, float32 or
        float64, finite weights >= 0, in the order of ``edge_index`` or ``adj_t``. "edge_weight" may
        be the values of an ``adj_t``; for a Graph it is an array in ``edata``. A node draws its
        edges one after another, each by its weight among those that are left; with ``replace``
        among all. An edge of weight 0 is never in a batch, not by -1 or in an induced subgraph
        either. Edge types without it are sampled uniformly.
    edge_weights : str, optional
        ``"ht"``: each edge has a factor, float32, by which sums over the sampled edges of a node
        are, in the mean, sums over all its edges: see ``pygsampler.PGSampler``. Batches of this
        module's loaders have them as ``edge_weights``, in the order of ``e_id``, and
        ``SamplerOutput`` has them under that name, in heterogeneous data by edge type. For
        directional subgraphs.
    temporal_comparison : str, optional
        The argument of cuGraph's loaders: "monotonically_decreasing", "strictly_decreasing",
        "monotonically_increasing" or "strictly_increasing" times along each path away from a seed,
        whose own time is the first. Default: times that are not later than the seed's.
    carry : str, optional
        ``"seed"``: the seed's time is the bound at every hop, ``"edge"``: the time of the edge, or
        the node, before. Default: "edge" with ``temporal_comparison``, else "seed".
    share_memory : bool
        Accepted for compatibility: processes share the graph in any case.
    directed : bool
        PyG's old word: False is ``subgraph_type="induced"``.
    sample_direction : str
        ``"forward"``: in-neighbors, ``"backward"``: out-neighbors. Edges are written from source to
        target in both.

    Notes
    -----
    ``num_neighbors``, ``replace``, ``subgraph_type``, ``disjoint``, ``edge_weights`` and
    ``keep_orig_edges`` may be assigned, and count from the next batch on; a shallow copy of a
    sampler shares the graph and nothing else. The graph, and the arguments that it was built from,
    cannot be assigned; ``weight_attr`` can be None, or an array that the graph was built with.

    The constructor copies the weights and builds tables: a pass over all edges, on all cores, and
    16 bytes per edge. Forked workers share them; each spawned worker builds them again.

    Random numbers. Call ``sampler.set_epoch(n)`` before each epoch to make every batch a pure
    function of (graph, options, seed, n, the batch's seeds): it is then the same for every number
    of workers, for fork and spawn, on CPU and GPU, and in a later run. Negatives of link loaders
    follow the same rule. Without ``set_epoch`` no batch repeats an earlier one by accident. A
    chosen ``seed`` then decides all epochs of a loader of this module, which are counted, in every
    process and for every number of workers; else a run is repeated by ``torch.manual_seed`` and the
    same number of workers, as in workers of PyG's own loaders in any case. The default seed is
    ``torch.initial_seed()``, read by the constructor, by ``set_epoch``, at the start of an epoch of
    a loader of this module and, without an epoch, for each batch outside worker processes.

    A repeated seed has a row for each repetition, with the same in-edges in each.

    On a GPU. The samples are equal to samples of the CPU. Seeds come from the CPU, since PyG's
    loaders hold them there; node and edge ids of the batch are on the GPU, and PyG's loaders look
    up features on any device. A forked worker cannot use its parent's GPU: pass ``device="cpu"`` if
    a loader has workers. In a worker a batch is sampled by one core.

    Raises
    ------
    TypeError, ValueError, IndexError
        For arguments of a wrong type or value, naming the argument.
    NotImplementedError
        For options that are not supported.
    CudaError
        For a device that does not exist.
    """

    _options_names = MappingProxyType({"prob": "weight_attr"})

    def __init__(
        self,
        data: Any,
        num_neighbors: Sequence[int] | Mapping[Any, Sequence[int]] | NumNeighbors,
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
        temporal_comparison: str | None = None,
        carry: str | None = None,
    ) -> None:
        self._choose_class(data)
        options.flag(share_memory, "share_memory")
        temporal, self._mirrored = temporal_rule(
            time_attr, temporal_strategy, temporal_comparison, carry
        )
        if weight_attr is not None and not isinstance(weight_attr, str):
            raise TypeError(
                f"weight_attr: expected the name of an attribute, got {describe(weight_attr)}"
            )
        super().__init__(
            data,
            neighbor.PGSampler(
                # Until the types of the graph are known.
                [0],
                replace=options.flag(replace, "replace"),
                frontier="new",
                disjoint=options.flag(disjoint, "disjoint"),
                prob=weight_attr,
                edge_weights=edge_weights,
                seed=seed,
                temporal=temporal,
            ),
            subgraph_type=options.subgraph(subgraph_type, directed),
            device=device,
            is_sorted=is_sorted,
            sample_direction=sample_direction,
        )
        self.num_neighbors = num_neighbors
        self._identity.set_seed(seed)
        if time_attr is not None:
            # Now: wrong times are wrong arguments, and rows are sorted by time once.
            self._graph._source._time_sorted(time_attr, None, weight_attr)
        self._stored = isinstance(data, (tuple, list))

    def _graph_of(self, data: Any, device: Any, is_sorted: bool, backward: bool) -> Any:
        graph = super()._graph_of(data, device, is_sorted, backward)
        return mirrored(graph, str(self.time_attr)) if self._mirrored else graph

    def _reads(self, data: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
        name = self.time_attr
        return super()._reads(data) if name is None else _with_times(data, name)

    @property
    def num_neighbors(self) -> Any:
        """In-neighbors to sample for each node, the seeds' number first, as a ``NumNeighbors``.

        In a heterogeneous graph they are numbers for each edge type.
        """
        return self._num_neighbors

    @num_neighbors.setter
    def num_neighbors(self, num_neighbors: Any) -> None:
        numbers, fanouts = self._fanouts(num_neighbors)
        # No hop at all is sampled as one that takes nothing.
        self._sampler = self._engine_sampler()._with(fanouts=fanouts or [0])
        self._num_neighbors = numbers

    def _fanouts(self, num_neighbors: Any) -> tuple[NumNeighbors, list[Any]]:
        """Returns ``num_neighbors`` as PyG has it, and the core's fanouts."""
        counts = options.num_neighbors(num_neighbors)
        # PyG's first number is for the seeds, ours is for the outermost hop.
        return NumNeighbors(list(counts)), counts[::-1]

    @property
    def time_attr(self) -> str | None:
        """The name of the times; None: edges have none."""
        rule = self._engine_sampler().temporal
        return None if rule is None else rule.attr

    @time_attr.setter
    def time_attr(self, time_attr: str | None) -> None:
        _require_unchanged("time_attr", time_attr, self.time_attr)

    @property
    def temporal_strategy(self) -> str:
        """``"uniform"`` or ``"last"``."""
        rule = self._engine_sampler().temporal
        return "uniform" if rule is None else rule.strategy

    @temporal_strategy.setter
    def temporal_strategy(self, temporal_strategy: str) -> None:
        _require_unchanged("temporal_strategy", temporal_strategy, self.temporal_strategy)

    @property
    def _is_temporal(self) -> bool:  # type: ignore[override]
        return self.time_attr is not None

    def _times_of(self, seeds: Any, bounds: Any, where: str) -> Any:
        name = self.time_attr
        if name is None:
            return None
        options.no_induced(self.subgraph_type)
        if bounds is not None:
            timed = self._graph._source._time_sorted(name, None, self.weight_attr)
            return self._in_data_direction(options.bounds(bounds, where, name, timed.float))
        times = self._node_time()
        if times is None:
            raise ValueError(
                f"{where}: expected times with time_attr={self.time_attr!r} of edges, got None"
            )
        return times[seeds.long()]

    def _node_time(self) -> Any:
        name = self.time_attr
        values = None if name is None else self._graph.ndata.get(name)
        return None if values is None else values.torch()

    def _compared(self, times: torch.Tensor | None) -> torch.Tensor | None:
        return None if times is None else self._in_data_direction(times)

    @property
    def replace(self) -> bool:
        """True if edges are sampled with replacement."""
        return self._engine_sampler().replace

    @replace.setter
    def replace(self, replace: bool) -> None:
        self._sampler = self._engine_sampler()._with(replace=options.flag(replace, "replace"))

    @property
    def disjoint(self) -> bool:
        """True if each seed has a tree of its own."""
        return self._engine_sampler().disjoint

    @disjoint.setter
    def disjoint(self, disjoint: bool) -> None:
        self._sampler = self._engine_sampler()._with(disjoint=options.flag(disjoint, "disjoint"))

    @property
    def weight_attr(self) -> str | None:
        """The name of the weights of edges; None: edges are equal."""
        return self._engine_sampler().prob

    @weight_attr.setter
    def weight_attr(self, weight_attr: str | None) -> None:
        arrays = self.graph.edata.values() if self.is_hetero else [self.graph.edata]
        names = dict.fromkeys(name for of in arrays for name in of)
        name = options.weights(weight_attr, names)
        self._sampler = self._engine_sampler()._with(prob=name)

    @property
    def edge_weights(self) -> str | None:
        """``"ht"``, or None: edges have no factors."""
        return self._engine_sampler().edge_weights

    @edge_weights.setter
    def edge_weights(self, edge_weights: str | None) -> None:
        self._sampler = self._engine_sampler()._with(edge_weights=edge_weights)

    def _names(self) -> tuple[str | None, str | None]:
        return self.time_attr, self.weight_attr

    def _engine_sampler(self) -> neighbor.PGSampler:
        made = self._sampler
        assert isinstance(made, neighbor.PGSampler)
        return made

    def _hops(self, num_hops: int) -> int:
        return int(self.num_neighbors.num_hops)

    def __repr__(self) -> str:
        named = {"weight_attr": self.weight_attr, "edge_weights": self.edge_weights}
        weights = "".join(f", {name}={value!r}" for name, value in named.items() if value)
        return (
            f"pygsampler.pyg.{type(self).__name__}({self.num_neighbors.values}, "
            f"replace={self.replace}, subgraph_type={self.subgraph_type.value!r}, "
            f"disjoint={self.disjoint}{weights})"
        )


# PyG's name.
NeighborSampler = PGSampler


def _require_unchanged(name: str, value: Any, current: Any) -> None:
    """Raises AttributeError for what would be without effect."""
    if value != current:
        raise AttributeError(
            f"{name}: cannot be assigned, since a sampler has sorted its rows by time; create "
            "another sampler"
        )


def _with_times(data: Any, name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns which attributes of edges and of nodes of data are its times."""
    if is_homogeneous(data):
        return ((name,), ()) if name in data.edata else ((), (name,))
    if isinstance(data, Data) and name not in data:
        raise ValueError(
            f"time_attr: expected the name of an attribute of nodes or edges of data, got {name!r}"
        )
    if isinstance(data, (tuple, list)):
        # PyG tells node times from edge times in stores by this name.
        return ((), (name,)) if name == "time" else ((name,), ())
    of_edges = isinstance(data, Data) and name in data and data.is_edge_attr(name)
    return ((name,), ()) if of_edges else ((), (name,))
