"""``BatchFeatures``: features of a batch that are not in ``data``."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from functools import partial
from operator import setitem
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.utils.data import get_worker_info
from torch_geometric.data import Data, HeteroData

from pygsampler._adapters.engine_batch import worker_threads
from pygsampler._arrays import devices
from pygsampler._arrays.dtypes import KINDS
from pygsampler._arrays.tensor_frames import (
    FrameRows,
    frame_on,
    frame_tables,
    is_tensor_frame,
    row_tensors,
    with_row_tensors,
)
from pygsampler._engine.checks import describe
from pygsampler._features.features import Features
from pygsampler._features.read_many import read_many
from pygsampler._graph.schema import by_name, check_by_type
from pygsampler.pyg.stores import FeatureStore

if TYPE_CHECKING:
    from pygsampler._graph.graph import Graph
    from pygsampler.pyg.base_sampler import Sampler

__all__ = [
    "BatchFeatures",
    "FeatureColumn",
    "check_edge_ids",
    "check_features",
    "join_edges",
    "read_by_engine",
]

# Rows of fewer bytes torch reads as fast.
_READ_BYTES = 1 << 20

# The attributes that batches of PyG's loaders, and of ours, have already.
_TAKEN = {
    "adj_t", "batch", "batch_size", "dst_neg_index", "dst_pos_index", "e_id", "edge_index",
    "edge_label", "edge_label_index", "edge_label_time", "input_id", "n_id", "num_nodes",
    "num_sampled_edges", "num_sampled_nodes", "ptr", "seed_time", "src_index",
}  # fmt: skip


class FeatureColumn(NamedTuple):
    """Features that batches have by a name, in a heterogeneous graph in the store of a type."""

    name: str
    # None in a graph without types.
    kind: Any
    features: Features
    # The name of the tensor in a TensorFrame, and the frame.
    part: str | None = None
    frame: Any = None


class BatchFeatures:
    """The features of nodes and of edges that are arguments of a loader.

    They are by name, for a ``hetero`` graph by name and type: ``{"x": {"paper": x}}``, for edges
    ``{"w": {cites: w}}``. Features on a GPU are read there. Others are read on the sampler's
    device: on a GPU out of page-locked memory.
    """

    __slots__ = ("_of_edges", "_of_nodes")

    def __init__(
        self, features: Any, edge_features: Any, sampler: Sampler | None, hetero: bool
    ) -> None:
        counts = (None, None) if sampler is None else (sampler.num_nodes, sampler.num_edges)
        columns = _hetero_columns if hetero else _columns
        self._of_nodes = list(columns(features, "features", "nodes", counts[0]))
        self._of_edges = list(columns(edge_features, "edge_features", "edges", counts[1]))
        both = {each.name for each in self._of_nodes} & {each.name for each in self._of_edges}
        if both and not hetero:
            raise ValueError(
                f"edge_features: expected other names than features has, got {sorted(both)}"
            )
        if sampler is None:
            return
        place, graph = devices.parse(sampler.device), sampler.graph
        for of in (self._of_nodes, self._of_edges):
            for i, each in enumerate(of):
                if place >= 0 and each.features._where() < 0:
                    of[i] = each = each._replace(features=each.features.pin(place))
                if each.frame is not None:
                    there = devices.name(each.features._where())
                    of[i] = each._replace(frame=frame_on(each.frame, there))
        for name, kind, column, *_ in self._of_edges:
            if not hetero:
                check_edge_ids(graph, column, f"edge_features[{name!r}]")
                continue
            # Backward the relations that are sampled are those of the reversed edges.
            sampled = kind if kind in graph.edge_types else kind[::-1]
            check_edge_ids(graph[sampled], column, f"edge_features[{name!r}][{kind!r}]")
        for each in self._of_nodes:
            cache = each.features._cache
            if cache is not None and cache.wants_graph:
                cache.fill(graph)

    def __bool__(self) -> bool:
        return bool(self._of_nodes or self._of_edges)

    @property
    def on_gpu(self) -> bool:
        """True if a GPU reads any of them, which workers cannot use."""
        return any(each.features._where() >= 0 for each in (*self._of_nodes, *self._of_edges))

    def without(self, data: Any) -> Any:
        """``data`` without the attributes that these take the place of, which PyG would look up."""
        if not isinstance(data, (Data, HeteroData)):
            return data
        columns = (*self._of_nodes, *self._of_edges)
        names = dict.fromkeys((each.name, each.kind) for each in columns)
        replaced = [(name, kind) for name, kind in names if name in _store(data, kind)]
        if not replaced:
            return data
        kinds = {kind for _, kind in replaced if not isinstance(kind, tuple)}
        counts = {kind: _store(data, kind).num_nodes for kind in kinds}
        data = copy.copy(data)
        for name, kind in replaced:
            del _store(data, kind)[name]
        for kind, count in counts.items():
            _store(data, kind).num_nodes = count
        return data

    def attach(self, batch: Any, data: Any, nodes: Any, edges: Any) -> None:
        """Adds the rows of these nodes and edges to a batch, with edge features of our store.

        They are tensors, or for a heterogeneous graph dicts of tensors.
        """
        store: Any = data[0] if isinstance(data, (tuple, list)) else None
        stored = store.get_edge_attrs() if isinstance(store, FeatureStore) else []
        if edges is None and (self._of_edges or stored):
            raise ValueError(
                "edge_features: expected batches with the ids of their edges, got one without"
            )
        if isinstance(edges, Mapping):
            stored = [attr for attr in stored if attr.group_name in edges]
        wanted = [(each.features, _store(nodes, each.kind)) for each in self._of_nodes]
        wanted += [(each.features, _ids(edges, each.kind)) for each in self._of_edges]
        if wanted:
            found = read_many(wanted, threads=worker_threads())
            columns, frames = (*self._of_nodes, *self._of_edges), dict[Any, FrameRows]()
            for each, rows in zip(columns, found, strict=True):
                put = partial(setitem, _store(batch, each.kind), each.name)
                if each.part is None:
                    put(rows)
                else:
                    of_frame = frames.setdefault(each[:2], FrameRows(each.frame, put))
                    of_frame.add(each.part, rows)
        for attr in stored:
            attr.index = _ids(edges, attr.group_name if isinstance(edges, Mapping) else None)
        if stored:
            for attr, rows in zip(stored, store.multi_get_tensor(stored), strict=True):
                of = _store(batch, attr.group_name if isinstance(edges, Mapping) else None)
                of[attr.attr_name] = rows


class _EngineTensor(torch.Tensor):
    """A tensor of ``data`` of which PyG asks torch for rows, and gets them from the engine.

    Idle cores of the engine read them, several rows ahead, into memory whose pages are there.
    PyTorch Frame asks for ``tensor[ids]`` of what a ``TensorFrame`` has. It may also have the
    sources of edges, which PyG stacks with the targets that follow in memory.
    """

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        # By its name: PyG puts another in the place of torch's.
        is_read = function.__name__ == "index_select" and len(args) == 3 and args[1] == 0
        if is_read or (function.__name__ == "__getitem__" and _is_ids(args[1])):
            with torch._C.DisableTorchFunctionSubclass():
                values, *_, ids = args
                features = Features.from_tensor(values.as_subclass(torch.Tensor))
                return read_many([(features, ids)], threads=worker_threads())[0]
        if function.__name__ == "stack" and kwargs in (None, {}, {"dim": 0}) and _is_pair(args):
            with torch._C.DisableTorchFunctionSubclass():
                row, col = (ends.as_subclass(torch.Tensor) for ends in args[0])
                if _lie_together(row, col):
                    return row.as_strided((2, len(row)), (len(row), 1))
        return super().__torch_function__(function, types, args, kwargs or {})  # type: ignore[no-untyped-call]


def read_by_engine(data: Any, out: Any) -> Any:
    """Returns ``data``, or a copy whose arrays the engine reads, for the batch of a sample.

    Values, order and types of the batch are the same. Few rows, and what a worker process reads
    into shared memory, are left to torch.
    """
    if not isinstance(data, (Data, HeteroData)) or get_worker_info() is not None:
        return data
    chosen = []
    kinds = {None, *data.node_types, *data.edge_types} if isinstance(data, HeteroData) else {None}
    for of, ids_of in (("is_node_attr", out.node), ("is_edge_attr", out.edge)):
        for kind, ids in (ids_of if isinstance(ids_of, Mapping) else {None: ids_of}).items():
            if ids is None or kind not in kinds:
                continue
            store = data._store if kind is None else data[kind]
            for name, value in store.items():
                read = _read_by_engine(value, len(ids))
                if read is not None and getattr(store, of)(name):
                    chosen.append((kind, name, read))
    if not chosen:
        return data
    data = copy.copy(data)
    for kind, name, read in chosen:
        _store(data, kind)[name] = read
    return data


def _read_by_engine(value: Any, count: int) -> Any:
    """Returns an array, or a ``TensorFrame``, whose rows the engine reads; None to leave it."""
    if not is_tensor_frame(value):
        return value.as_subclass(_EngineTensor) if _is_readable(value, count) else None
    large = {
        part: tensor.as_subclass(_EngineTensor)
        for part, tensor in row_tensors(value).items()
        if _is_readable(tensor, count)
    }
    return with_row_tensors(value, large) if large else None


def join_edges(data: Any, out: Any) -> Any:
    """Returns ``out``, or a copy whose sources and targets PyG makes an ``edge_index`` of at once.

    Sources and targets of many edges, in one memory, become the rows of a view of that. So ``out``
    is to be the engine's, and nobody else's.
    """
    row, col = out.row, out.col
    if not isinstance(data, Data) or "adj_t" in data or get_worker_info() is not None:
        return out
    if type(row) is not torch.Tensor or type(col) is not torch.Tensor:
        return out
    if 2 * row.nbytes < _READ_BYTES or not _lie_together(row, col):
        return out
    out = copy.copy(out)
    out.row = row.as_subclass(_EngineTensor)
    return out


def _is_ids(index: Any) -> bool:
    """True for an index that is a tensor of row numbers."""
    return (
        type(index) is torch.Tensor
        and index.dim() == 1
        and index.dtype in (torch.int32, torch.int64)
    )


def _is_pair(args: tuple[Any, ...]) -> bool:
    """True for the arguments of a function of two tensors in a list."""
    return len(args) == 1 and isinstance(args[0], (list, tuple)) and len(args[0]) == 2


def _lie_together(sources: torch.Tensor, targets: torch.Tensor) -> bool:
    """True for ends of edges that are the rows of one matrix in memory."""
    return bool(
        sources.dim() == targets.dim() == 1
        and sources.is_contiguous()
        and targets.is_contiguous()
        and (sources.dtype, sources.device, len(sources))
        == (targets.dtype, targets.device, len(targets))
        and sources.untyped_storage().data_ptr() == targets.untyped_storage().data_ptr()
        and sources.storage_offset() + len(sources) == targets.storage_offset()
    )


def _is_readable(value: Any, count: int) -> bool:
    """True for a tensor of which so many rows are worth a call, and no gradient is lost."""
    return (
        type(value) is torch.Tensor
        and value.device.type == "cpu"
        and value.layout == torch.strided
        and str(value.dtype).removeprefix("torch.") in KINDS
        and value.dim() > 0
        and value.is_contiguous()
        and not value.requires_grad
        and count * value.nbytes >= _READ_BYTES * max(len(value), 1)
    )


def _store(data: Any, kind: Any) -> Any:
    """Returns what ``data`` has of a type, or all where there is none."""
    return data if kind is None else data[kind]


def _ids(edges: Any, kind: Any) -> Any:
    ids = _store(edges, kind)
    if ids is None:
        raise ValueError(
            "edge_features: expected batches with the ids of their edges, got one without those of "
            f"{kind}"
        )
    return ids


def _columns(value: Any, where: str, row_noun: str, count: Any) -> Iterator[FeatureColumn]:
    frames, others = _frames(value)
    for name, features in check_features(others, where, row_noun, count).items():
        yield FeatureColumn(name, None, features)
    for name, frame in frames.items():
        yield from _of_frame(frame, name, None, f"{where}[{name!r}]", row_noun, count)


def _hetero_columns(value: Any, where: str, row_noun: str, counts: Any) -> Iterator[FeatureColumn]:
    if value is None:
        return
    kinds = "{'x': {'paper': x}}" if row_noun == "nodes" else "{'w': {('a', 'to', 'b'): w}}"
    if not isinstance(value, Mapping):
        raise TypeError(
            f"{where}: expected a mapping of names to mappings of types to arrays, as {kinds}, "
            f"got {describe(value)}"
        )
    for name, of_types in (value if counts is None else by_name(value, counts)).items():
        if not isinstance(of_types, Mapping):
            raise TypeError(
                f"{where}[{name!r}]: expected a mapping of types to arrays for data with types, as "
                f"{kinds}, got {describe(of_types)}"
            )
        if counts is not None:
            of_types = check_by_type(of_types, f"{where}[{name!r}]", counts, "data")
        for kind, values in of_types.items():
            count = None if counts is None else counts[kind]
            if is_tensor_frame(values):
                called, of_kind = f"{where}[{name!r}][{kind!r}]", f"{row_noun} of {kind!r}"
                yield from _of_frame(values, name, kind, called, of_kind, count)
                continue
            features = check_features({name: values}, where, f"{row_noun} of {kind!r}", count)[name]
            if features._cache is not None:
                raise ValueError(
                    f"{where}[{name!r}][{kind!r}]: expected features without a cache for data with "
                    f"types, got one of policy {features._cache.policy!r}"
                )
            yield FeatureColumn(name, kind, features)


def _frames(value_by_name: Any) -> tuple[dict[Any, Any], Any]:
    """Returns the frames among some features, and the others."""
    if not isinstance(value_by_name, Mapping):
        return {}, value_by_name
    frames = {name: value for name, value in value_by_name.items() if is_tensor_frame(value)}
    return frames, {name: value for name, value in value_by_name.items() if name not in frames}


def _of_frame(
    frame: Any, name: Any, kind: Any, where: str, row_noun: str, count: Any
) -> Iterator[FeatureColumn]:
    """Returns the features that are the tensors of a frame, checked as ``check_features`` does."""
    if not row_noun.startswith("nodes"):
        raise TypeError(f"{where}: expected an array of {row_noun}, got a TensorFrame")
    for part, values in frame_tables(frame, where).items():
        features = check_features({name: values}, where.partition("[")[0], row_noun, count)[name]
        yield FeatureColumn(name, kind, features, part, frame)


def check_features(
    value_by_name: Any, where: str, row_noun: str, count: int | None
) -> dict[str, Features]:
    """Returns features by name, checked: a row for each of ``count`` things."""
    if value_by_name is None:
        return {}
    if not isinstance(value_by_name, Mapping):
        raise TypeError(
            f"{where}: expected a mapping of names to arrays, as {{'x': x}}, got "
            f"{describe(value_by_name)}"
        )
    named = {}
    for name, values in value_by_name.items():
        if not isinstance(name, str) or not name.isidentifier() or name.startswith("_"):
            raise ValueError(f"{where}: expected names of attributes, got {name!r}")
        if name in _TAKEN:
            raise ValueError(f"{where}: expected names that batches do not have, got {name!r}")
        try:
            named[name] = Features.from_tensor(values)
            rows = len(named[name])
        except (TypeError, ValueError) as error:
            text = str(error).removeprefix("features: ")
            raise type(error)(f"{where}[{name!r}]: {text}") from None
        if count is not None and rows < count:
            raise ValueError(
                f"{where}[{name!r}]: expected a row for each of {count} {row_noun}, got {rows}"
            )
        if count is not None and rows > count and row_noun.startswith("nodes"):
            # Ids of edges may lie above their number, and those of nodes may not.
            raise ValueError(
                f"{where}[{name!r}]: expected a row for each of {count} {row_noun}, got {rows}; "
                f"data.num_nodes={rows} has as many, [:{count}] takes the first"
            )
    return named


def check_edge_ids(graph: Graph, features: Features, where: str) -> None:
    """Raises ValueError for ``features`` on a GPU, called ``where``, without a row for each edge.

    Edges may have any ids, and on a GPU nobody would notice one without a row.
    """
    ids = graph.edge_ids
    if features._where() < 0 or ids is None or not len(ids):
        return
    # Not as a tensor of those of a file, which torch would copy.
    most = int((ids.torch() if ids.device != "cpu" else ids.numpy()).max())
    if len(features) <= most:
        raise ValueError(
            f"{where}: expected a row for each edge id up to {most}, got {len(features)}"
        )
