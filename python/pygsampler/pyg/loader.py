"""PyG's loaders with our sampler in them."""

from __future__ import annotations

import copy
from array import array
from collections.abc import Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch_geometric import loader
from torch_geometric.data import Data
from torch_geometric.sampler import NegativeSampling

from pygsampler._batch.edge_values import NO_VALUES
from pygsampler._engine.checks import describe, integer
from pygsampler._graph.graph import Graph
from pygsampler.pyg import loader_inputs
from pygsampler.pyg.adj_loader import NeighborSampler
from pygsampler.pyg.batch_features import BatchFeatures, join_edges, read_by_engine
from pygsampler.pyg.batch_slices import mark_grouped
from pygsampler.pyg.check_graph import check_graph_matches
from pygsampler.pyg.edge_index import check_layout, edge_index_of
from pygsampler.pyg.graph import homogeneous, with_edge_index
from pygsampler.pyg.hetero_sampler import HeteroRequests
from pygsampler.pyg.hetero_stores import is_hetero
from pygsampler.pyg.labor import labor_sampler
from pygsampler.pyg.loader_inputs import (
    check_input_type,
    check_link_type,
    check_mask,
    check_rows,
    checked_times,
    input_edges,
    input_rows,
    inputs_at,
    named_links,
    seed_times,
)
from pygsampler.pyg.lookahead import LookaheadBatch
from pygsampler.pyg.lookahead_sampler import LookaheadSampler, LookaheadStep, is_predictable
from pygsampler.pyg.negative_sampling import has_custom_rule
from pygsampler.pyg.neighbor_sampler import PGSampler, Sampler
from pygsampler.pyg.node_ids import for_inference
from pygsampler.pyg.options import check_range, subgraph
from pygsampler.pyg.order import begin_epoch, shuffle_by_seed
from pygsampler.pyg.threaded_prefetch import ThreadedPrefetch

__all__ = ["LinkNeighborLoader", "NeighborLoader", "NeighborSampler"]


_OPTIONS = frozenset(
    (
        *("num_neighbors", "replace", "subgraph_type", "disjoint", "temporal_strategy"),
        *("time_attr", "weight_attr", "is_sorted", "neighbor_sampler", "directed", "seed"),
        *("device", "edge_weights", "features", "edge_features", "edge_index", "labor", "prefetch"),
    )
)


class _SeedIndex:
    """The places among a loader's seeds, as torch's loader asks for them.

    PyG has a range there, of which torch looks each number up by itself, and makes a tensor of the
    list: most of what a batch of a thousand seeds takes in Python.
    """

    __slots__ = ("_count",)

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, place: int) -> int:
        return range(self._count)[place]

    def __getitems__(self, places: Any) -> torch.Tensor | Future[Any]:
        if isinstance(places, Future):
            # A prefetched batch, from `Ahead`.
            return places
        # Samplers of seeds may give numbers of any kind.
        if not isinstance(places, list) or not places:
            return torch.as_tensor(places, dtype=torch.int64)
        return torch.frombuffer(array("q", places), dtype=torch.int64)


class _EngineLoader:
    """Base class of our two loaders; ``_sampler_name`` is the name of their sampler in PyG's class.

    If that sampler is not ours, the methods only call PyG's.
    """

    _sampler_name: ClassVar[str]
    # The options that a loader has used when it was created: an assignment would have no effect.
    _options: ClassVar[frozenset[str]] = frozenset()
    data: Any
    generator: torch.Generator | None
    transform: Any
    transform_sampler_output: Any
    dataset: Any
    # The rows that are read in addition to those of ``data``.
    _rows: BatchFeatures
    # "coo" or "edge_index".
    _layout: str
    # The number of batches sampled ahead; None: one, if that cannot be observed.
    _prefetch: int | None = None
    # The batch that is being made, where the next one is known.
    _turn: LookaheadStep | None = None

    @property
    def _ours(self) -> Sampler | None:
        return _ours(getattr(self, self._sampler_name))

    if not TYPE_CHECKING:

        def __setattr__(self, name: str, value: Any) -> None:
            # A subclass has attributes of its own.
            used = name in self._options and type(self).__module__.startswith("pygsampler.")
            if used and "_layout" in self.__dict__ and not hasattr(self, name):
                raise AttributeError(
                    f"{name}: expected no assignment, since a loader has used it, got one; make "
                    f"another loader, or assign what loader.{self._sampler_name} has of it"
                )
            super().__setattr__(name, value)

    def __iter__(self) -> Any:
        if self._ours is not None:
            begin_epoch(self, self._ours._identity)
        return super().__iter__()  # type: ignore[misc]

    @property
    def _of_nodes(self) -> bool:
        return self._sampler_name == "node_sampler"

    def _set_order(self, options: dict[str, Any]) -> None:
        """Chooses the source of a batch's places, after torch's loader was built with options."""
        # Around torch's loader, which lets nobody assign it.
        self.__dict__["dataset"] = _SeedIndex(len(self.dataset))
        ours = self._ours
        if ours is not None:
            shuffle_by_seed(self, ours._identity, options)

    def _take(self, prefetch: Any, num_workers: Any, sampler: Any) -> None:
        """Takes ``prefetch``, or an error where nothing can be sampled ahead."""
        if prefetch is None:
            return
        self._prefetch = integer(prefetch, "prefetch", 0)
        if prefetch and num_workers:
            raise ValueError(
                f"prefetch: expected 0 with num_workers, which work ahead, got {prefetch}"
            )
        if prefetch and sampler is not None and _ours(sampler) is None:
            raise ValueError(
                f"prefetch: expected 0 with a neighbor_sampler that is not ours, got {prefetch}"
            )

    @property
    def _index_sampler(self) -> Any:
        base = super()._index_sampler  # type: ignore[misc]
        if not self._auto_collation:  # type: ignore[attr-defined]
            return base
        if self._prefetch:
            return ThreadedPrefetch(base, self._prefetch, self._sampled)
        ours, workers = self._ours, self.num_workers  # type: ignore[attr-defined]
        if self._prefetch is not None or ours is None or workers or not is_predictable(base):
            return base
        return LookaheadSampler(base, self._begin, self._start_step)

    def _begin(self, places: Any) -> LookaheadBatch | None:
        """Begins the batch of these places in the engine."""
        ours: Any = self._ours
        if ours is None:
            return None
        try:
            asked = self._request(places)
        except Exception:
            # It is raised when the batch is asked for.
            return None
        begun: LookaheadBatch | None = ours._begin(*asked)
        return begun

    def _start_step(self, step: LookaheadStep) -> None:
        self._turn, ours = step, self._ours
        if ours is not None:
            ours._beginning.begun = step.begun

    def _request(self, places: Any) -> tuple[Any, ...]:
        """Returns what PyG's ``collate_fn`` asks the sampler for."""
        raise NotImplementedError

    def _sampled(self, places: Any) -> Any:
        """Returns what PyG's ``collate_fn`` samples, without what it does with that."""
        raise NotImplementedError

    def collate_fn(self, index: Any) -> Any:
        """Returns the batch of ``index``, places of seeds or a batch that was sampled ahead."""
        if isinstance(index, Future):
            out = index.result()
        elif isinstance(index, torch.Tensor) and index.dtype == torch.int64 and index.dim() == 1:
            out = self._sampled(index)
        else:
            # A loader may be called with places of one's own.
            return super().collate_fn(index)  # type: ignore[misc]
        return self.filter_fn(out) if self.filter_per_worker else out  # type: ignore[attr-defined]

    def filter_fn(self, out: Any) -> Any:
        """Converts ``out``, the sampler's output, as PyG does, with factors and features added.

        A transform sees them. ValueError if ``data`` is no longer the graph of the sampler.
        """
        turn, self._turn, ours = self._turn, None, self._ours
        if turn is not None:
            if ours is not None:
                # Nobody asked for it, or it was taken.
                ours._beginning.begun = None
            turn.begin(out)
        if ours is not None:
            check_graph_matches(self.data, ours)
        factors = getattr(out, "edge_weights", None)
        named = {**getattr(out, "edge_values", NO_VALUES), **getattr(out, "beside", NO_VALUES)}
        if self.transform_sampler_output:
            out = self.transform_sampler_output(out)
        plain = object.__new__(type(self))
        data = read_by_engine(self.data, out)
        plain.__dict__.update(
            self.__dict__, data=data, transform=None, transform_sampler_output=None
        )
        # Another sampler's, or what a transform has kept, is not the batch's alone.
        alone = ours is not None and not self.transform_sampler_output
        joined = join_edges(data, out) if alone else out
        batch = super(_EngineLoader, plain).filter_fn(joined)  # type: ignore[misc]
        self._rows.attach(batch, self.data, out.node, self._edge_ids(out))
        # With ``cache=True`` PyG moves ids of the CPU to the GPU, too.
        on_gpu = isinstance(out.node, torch.Tensor) and (
            out.node.is_cuda or torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
        )
        if on_gpu and self._of_nodes:
            for_inference(batch, self)
        # Another may have changed the order.
        order = None if self.transform_sampler_output else getattr(out, "sort_order", None)
        if self._layout != "coo":
            self._lay_out(batch, out.node, order)
        elif order == "col":
            for store in batch.edge_stores:
                if "edge_index" in store:
                    mark_grouped(store.edge_index)
        if isinstance(factors, dict):
            for kind, values in factors.items():
                if "edge_weights" in batch[kind]:
                    raise ValueError(
                        f"edge_weights: expected data[{kind}] without an attribute of that name, "
                        "where batches have their factors, got one with it; rename the data's own"
                    )
                batch[kind].edge_weights = values
        elif factors is not None:
            if "edge_weights" in self.data:
                raise ValueError(
                    "edge_weights: expected data without an attribute of that name, where batches "
                    "have their factors, got one with it; rename the data's own"
                )
            batch.edge_weights = factors
        for name, values in named.items():
            if name in self.data:
                raise ValueError(
                    f"{name}: expected data without an attribute of that name, where batches have "
                    "what the program returned, got one with it; rename the data's own"
                )
            if name in batch or name == "num_nodes":
                raise ValueError(
                    f"{name}: expected another name of what the program returns, got one that "
                    "batches have already"
                )
            batch[name] = values
        return batch if self.transform is None else self.transform(batch)

    def _lay_out(self, batch: Any, nodes: Any, order: str | None) -> None:
        """Makes the edges of a batch of these nodes, that stand in this order, ``EdgeIndex``."""
        if not isinstance(nodes, dict):
            size = len(nodes), len(nodes)
            batch.edge_index = edge_index_of(batch.edge_index, size, order)
            return
        for kind in batch.edge_types:
            # Links may be of a type that has no edges.
            if "edge_index" in batch[kind]:
                size = len(nodes[kind[0]]), len(nodes[kind[-1]])
                batch[kind].edge_index = edge_index_of(batch[kind].edge_index, size, order)

    def _edge_ids(self, out: Any) -> Any:
        """The edges of a batch, as ``data`` has them; not ``e_id``, which may be data's own."""
        moved = getattr(self, self._sampler_name).edge_permutation
        edges = out.edge
        return edges if edges is None or moved is None else moved[edges.long()]

    def set_seed(self, seed: int | None) -> None:
        """Sets the seed, as ``seed=`` does, of a loader that is there already."""
        getattr(self, self._sampler_name).set_seed(seed)

    def set_epoch(self, epoch: int | None) -> None:
        """Sets the epoch: call it before each epoch to make a run repeatable."""
        getattr(self, self._sampler_name).set_epoch(epoch)


class NeighborLoader(_EngineLoader, loader.NeighborLoader):  # type: ignore[misc]
    """``torch_geometric.loader.NeighborLoader`` with pygsampler's engine: change the import only.

    It takes the arguments of PyG and of torch's ``DataLoader``, and yields PyG's batches. Options
    that ``PGSampler`` does not support raise ``NotImplementedError`` with the option's name. For a
    ``HeteroData`` ``input_nodes`` is a node type, or (type, ids or mask), and ``num_neighbors`` a
    list, or a dict of edge types to lists.

    Parameters
    ----------
    seed : int, optional
        64-bit seed of order, samples and negatives. They depend on nothing else: epochs are
        counted, and an epoch is the same in every process, for every number of workers.
        ``generator=`` or ``sampler=`` decides the order instead. Default: torch's seed, read at the
        start of an epoch: without ``set_epoch``, ``torch.manual_seed`` before an epoch repeats it,
        as in PyG.
    device : str, int or torch.device, optional
        The device that samples. Default: the device of the edges, or the CPU with ``num_workers`` >
        0.
    weight_attr, edge_weights, temporal_comparison, carry : str, optional
        See ``PGSampler``.
    features : mapping of str to Features or arrays of shape [num_nodes, ...], optional
        Each batch has the rows of its nodes, ``n_id``, under that name, instead of the attribute of
        ``data``. They are used without a copy; ``Features.open`` reads features from a file.
        Features on a GPU are read there; others on the sampler's device, by a GPU out of
        page-locked memory. For heterogeneous data each name has a mapping of types to features,
        without a cache. They may be ``TensorFrame`` of PyTorch Frame: ``{"tf":
        tensor_frames(graph)[0]}``.
    edge_features : mapping of str to Features or arrays of shape [num_edges, ...], optional
        The same for its edges, ``e_id``.
    edge_index : str
        ``"coo"``: batches have PyG's tensor of edges. ``"edge_index"``: an ``EdgeIndex`` of this
        module, by which PyG's layers add up by segments; PyG 2.6 or newer.
    labor : str, optional
        LABOR instead of neighbors drawn separately for each node: fewer nodes, as targets share the
        numbers of their sources. ``"poisson"``: ``num_neighbors`` edges in the mean, like DGL's
        ``LaborSampler``, ``"exact"``: exactly so many, like GraphBolt's. ``LaborSampler`` has more
        options. Without ``replace``, ``disjoint`` and times. ``edge_weights="ht"`` gives the
        factors of its edges.
    prefetch : int, optional
        For ``num_workers=0``. Default: the engine samples the next batch while PyG assembles one,
        if only the time can differ: on the CPU, with samplers of this package, and with seeds that
        are in order, shuffled by torch without ``generator=``, or from a ``DistributedSampler``.
        Assignments meanwhile count from the next batch on, as usual. 0: each batch is sampled when
        it is requested. Above 0: so many are sampled ahead, in a thread of this process, while
        earlier batches are assembled and used. They are the same batches; assignments to the
        sampler within an epoch, and torch's seed, count from the first batch that was not sampled
        yet.
    **kwargs
        PyG's other arguments. With ``neighbor_sampler`` the options of that sampler count.

    Raises
    ------
    NotImplementedError
        For options that are not supported.
    TypeError, ValueError, IndexError, CudaError
        For the reasons of ``PGSampler`` and, in the loop, of its ``sample_from_nodes``;
        ``IndexError`` for ``input_nodes`` that are no nodes; ``ValueError`` for ``seed`` or
        ``device`` together with ``neighbor_sampler``, and for ``data`` with other numbers of nodes
        or edges than the graph of the sampler, here and, where ``data`` was changed, in the loop.
    """

    _sampler_name = "node_sampler"
    _options = _OPTIONS | {"input_nodes", "input_time"}

    def __init__(
        self,
        data: Any,
        num_neighbors: Any,
        input_nodes: Any = None,
        input_time: Any = None,
        replace: bool = False,
        subgraph_type: Any = "directional",
        disjoint: bool = False,
        temporal_strategy: str = "uniform",
        time_attr: str | None = None,
        weight_attr: str | None = None,
        transform: Any = None,
        transform_sampler_output: Any = None,
        is_sorted: bool = False,
        filter_per_worker: bool | None = None,
        neighbor_sampler: Any = None,
        directed: bool = True,
        *,
        seed: int | None = None,
        device: Any = None,
        edge_weights: str | None = None,
        features: Mapping[str, Any] | None = None,
        edge_features: Mapping[str, Any] | None = None,
        edge_index: str = "coo",
        labor: str | None = None,
        prefetch: int | None = None,
        temporal_comparison: str | None = None,
        carry: str | None = None,
        **kwargs: Any,
    ) -> None:
        typed = is_hetero(data)
        self._take(prefetch, kwargs.get("num_workers"), neighbor_sampler)
        neighbor_sampler = _sampler(
            neighbor_sampler,
            data,
            num_neighbors,
            seed,
            device,
            kwargs.get("num_workers", 0),
            replace=replace,
            subgraph_type=subgraph(subgraph_type, directed),
            disjoint=disjoint,
            is_sorted=is_sorted,
            temporal_strategy=temporal_strategy,
            time_attr=time_attr,
            temporal_comparison=temporal_comparison,
            carry=carry,
            weight_attr=weight_attr,
            edge_weights=edge_weights,
            labor=labor,
        )
        if typed:
            check_input_type(data, input_nodes)
        input_nodes = loader_inputs.input_nodes(input_nodes, typed)
        input_time = seed_times(input_time, "input_time")
        rows = BatchFeatures(features, edge_features, _ours(neighbor_sampler), typed)
        if filter_per_worker is None and rows.on_gpu:
            # Workers cannot use their parent's GPU.
            filter_per_worker = False
        data = rows.without(_with_edges(data))
        check_layout(edge_index, data)
        super().__init__(
            data,
            num_neighbors,
            input_nodes=input_nodes,
            input_time=input_time,
            time_attr=time_attr,
            transform=transform,
            transform_sampler_output=transform_sampler_output,
            filter_per_worker=filter_per_worker,
            neighbor_sampler=neighbor_sampler,
            **kwargs,
        )
        self._rows, self._layout = rows, edge_index
        self._set_order(kwargs)
        check_graph_matches(self.data, neighbor_sampler)
        self.input_data.time = checked_times(
            self.input_data.time, "input_time", len(self.dataset), "input nodes"
        )
        if isinstance(neighbor_sampler, Sampler):
            count: Any = neighbor_sampler.num_nodes
            if typed:
                count = count[self.input_data.input_type]
            check_mask(input_nodes, count)
            check_range(self.input_data.node, "input_nodes", count)

    def _request(self, places: Any) -> tuple[Any, ...]:
        return (inputs_at(self.input_data, self.dataset.__getitems__(places)),)

    def _sampled(self, places: Any) -> Any:
        return self.node_sampler.sample_from_nodes(*self._request(places))


class LinkNeighborLoader(_EngineLoader, loader.LinkNeighborLoader):  # type: ignore[misc]
    """``torch_geometric.loader.LinkNeighborLoader`` with pygsampler's engine.

    Only the import has to change.

    Parameters
    ----------
    edge_label_index
        PyG's argument. For a ``HeteroData`` it is an edge type, or (edge type, edges).
    seed, device, edge_weights, features, edge_features, edge_index, labor, prefetch
        The arguments of ``NeighborLoader``.
    temporal_comparison, carry
        The arguments of ``NeighborLoader``.
    **kwargs
        PyG's other arguments.

    Raises
    ------
    ValueError
        For data without edges if ``edge_label_index`` is None, and for ``prefetch`` with a custom
        class of ``neg_sampling`` whose ``sample`` draws by torch's generator. All other errors are
        those of ``NeighborLoader``.
    """

    _sampler_name = "link_sampler"
    _options = _OPTIONS | {
        "edge_label_index",
        "edge_label",
        "edge_label_time",
        "neg_sampling_ratio",
    }

    def __init__(
        self,
        data: Any,
        num_neighbors: Any,
        edge_label_index: Any = None,
        edge_label: Any = None,
        edge_label_time: Any = None,
        replace: bool = False,
        subgraph_type: Any = "directional",
        disjoint: bool = False,
        temporal_strategy: str = "uniform",
        neg_sampling: Any = None,
        neg_sampling_ratio: float | None = None,
        time_attr: str | None = None,
        weight_attr: str | None = None,
        transform: Any = None,
        transform_sampler_output: Any = None,
        is_sorted: bool = False,
        filter_per_worker: bool | None = None,
        neighbor_sampler: Any = None,
        directed: bool = True,
        *,
        seed: int | None = None,
        device: Any = None,
        edge_weights: str | None = None,
        features: Mapping[str, Any] | None = None,
        edge_features: Mapping[str, Any] | None = None,
        edge_index: str = "coo",
        labor: str | None = None,
        prefetch: int | None = None,
        temporal_comparison: str | None = None,
        carry: str | None = None,
        **kwargs: Any,
    ) -> None:
        if edge_label_index is None and _has_no_edges(data):
            raise ValueError("edge_label_index: expected edges, since data has none, got None")
        typed = is_hetero(data)
        self._take(prefetch, kwargs.get("num_workers"), neighbor_sampler)
        own = NegativeSampling.cast(neg_sampling) if prefetch else None
        if own is not None and has_custom_rule(own):
            raise ValueError(
                "prefetch: expected 0 with a neg_sampling whose sample() is its own, and draws by "
                f"torch's generator, which the training step moves meanwhile, got {prefetch}"
            )
        neighbor_sampler = _sampler(
            neighbor_sampler,
            data,
            num_neighbors,
            seed,
            device,
            kwargs.get("num_workers", 0),
            replace=replace,
            subgraph_type=subgraph(subgraph_type, directed),
            disjoint=disjoint,
            is_sorted=is_sorted,
            temporal_strategy=temporal_strategy,
            time_attr=time_attr,
            temporal_comparison=temporal_comparison,
            carry=carry,
            weight_attr=weight_attr,
            edge_weights=edge_weights,
            labor=labor,
        )
        if typed:
            edge_label_index = named_links(data, edge_label_index)
            check_link_type(data, edge_label_index)
        edge_label_index = input_edges(edge_label_index, typed, isinstance(data, tuple))
        edge_label = input_rows(edge_label, "edge_label")
        edge_label_time = seed_times(edge_label_time, "edge_label_time")
        rows = BatchFeatures(features, edge_features, _ours(neighbor_sampler), typed)
        if filter_per_worker is None and rows.on_gpu:
            # Workers cannot use their parent's GPU.
            filter_per_worker = False
        data = rows.without(_with_edges(data))
        check_layout(edge_index, data)
        super().__init__(
            data,
            num_neighbors,
            edge_label_index=edge_label_index,
            edge_label=edge_label,
            edge_label_time=edge_label_time,
            time_attr=time_attr,
            neg_sampling=neg_sampling,
            neg_sampling_ratio=neg_sampling_ratio,
            transform=transform,
            transform_sampler_output=transform_sampler_output,
            filter_per_worker=filter_per_worker,
            neighbor_sampler=neighbor_sampler,
            **kwargs,
        )
        self._rows, self._layout = rows, edge_index
        self._set_order(kwargs)
        check_rows(self.input_data.label, "edge_label", len(self.dataset), "links")
        self.input_data.time = checked_times(
            self.input_data.time, "edge_label_time", len(self.dataset), "links"
        )
        check_graph_matches(self.data, neighbor_sampler)
        if isinstance(neighbor_sampler, Sampler) and edge_label_index is not None:
            counts: Any = neighbor_sampler.num_nodes, neighbor_sampler.num_nodes
            if typed:
                src, *_, dst = self.input_data.input_type
                counts = counts[0][src], counts[1][dst]
            for row, ends in enumerate((self.input_data.row, self.input_data.col)):
                check_range(ends, f"edge_label_index[{row}]", counts[row])

    def _request(self, places: Any) -> tuple[Any, ...]:
        return inputs_at(self.input_data, self.dataset.__getitems__(places)), self.neg_sampling

    def _sampled(self, places: Any) -> Any:
        asked, neg_sampling = self._request(places)
        return self.link_sampler.sample_from_edges(asked, neg_sampling=neg_sampling)


def _ours(sampler: Any) -> Sampler | None:
    return sampler if isinstance(sampler, Sampler) else None


def _has_no_edges(data: Any) -> bool:
    return isinstance(data, Data) and data.edge_index is None and "adj_t" not in data


def _with_edges(data: Any) -> Any:
    """``data`` as PyG's loaders can filter it: they put a batch's edges where ``data`` has some.

    The result has an empty ``edge_index`` if the graph is only in the sampler.
    """
    if not _has_no_edges(data):
        return with_edge_index(data)
    data = copy.copy(data)
    data.edge_index = torch.empty(2, 0, dtype=torch.int64)
    return data


def _sampler(
    sampler: Any,
    data: Any,
    num_neighbors: Any,
    seed: Any,
    device: Any,
    num_workers: int,
    *,
    labor: Any,
    **options: Any,
) -> Any:
    """Returns the sampler argument, or a sampler from the loader's arguments."""
    if isinstance(data, Graph):
        raise TypeError(
            f"data: expected a Data or (FeatureStore, GraphStore), got {describe(data)}; "
            "neighbor_sampler=PGSampler(graph, ...) samples a Graph, and Data has the features"
        )
    if sampler is None:
        if device is None and num_workers:
            # Workers cannot use their parent's GPU.
            device = "cpu"
        if labor is not None:
            return labor_sampler(labor, data, num_neighbors, seed, device, options)
        return PGSampler(data, num_neighbors, seed=seed, device=device, **options)
    for name, value in (("seed", seed), ("device", device), ("labor", labor)):
        if value is not None:
            raise ValueError(
                f"{name}: expected None with neighbor_sampler, which has its own, "
                f"got {describe(value)}"
            )
    if not (hasattr(sampler, "sample_from_nodes") or hasattr(sampler, "sample_from_edges")):
        kind = type(sampler)
        # The core's class and that for DGL have the same name, and are known by where they are.
        module = kind.__module__.partition(".samplers")[0].removesuffix(".sampler")
        raise TypeError(
            f"neighbor_sampler: expected a pygsampler.pyg.PGSampler, got a "
            f"{module}.{kind.__qualname__}; pygsampler.pyg.PGSampler(data, fanouts) makes one, and "
            "Sampler(data, sampler) of any other"
        )
    of_types = isinstance(sampler, HeteroRequests)
    if of_types and not is_hetero(data):
        which = "PGSampler" if isinstance(sampler, PGSampler) else "Sampler"
        raise TypeError(
            f"neighbor_sampler: expected a {which} of {describe(data)}, got a {which} of "
            "heterogeneous data"
        )
    if isinstance(sampler, Sampler) and not of_types:
        homogeneous(data)
    return sampler
