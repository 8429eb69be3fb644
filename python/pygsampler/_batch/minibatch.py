"""``MiniBatch``: the sampled neighborhood of seeds, in the arrays of any library."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from pygsampler._arrays import devices
from pygsampler._arrays.array import Array
from pygsampler._arrays.tensor_frames import is_tensor_frame, row_tensors
from pygsampler._batch import layout as at
from pygsampler._batch.array_sources import (
    BLOCK_ARRAYS,
    NODE_ARRAYS,
    EngineSource,
    HeaderSource,
    LazyAttribute,
    StoredSource,
)
from pygsampler._batch.attached_features import HasFeatures
from pygsampler._batch.block import Block
from pygsampler._batch.edge_values import NO_VALUES, EdgeValueName, split_edge_values
from pygsampler._batch.exports import Exports
from pygsampler._batch.html_tables import blocks_html, types_html
from pygsampler._batch.packing import pack_batch
from pygsampler._batch.torch_sources import torch_source
from pygsampler._engine import memory as memories
from pygsampler._engine.checks import describe
from pygsampler._engine.memory import from_pickle, to_pickle
from pygsampler._graph.schema import ByEdgeType, ByNodeType, Schema

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pygsampler._batch.array_sources import ArraySource
    from pygsampler._engine.memory import Memory
    from pygsampler._graph.schema import EdgeType, PerEdgeType, PerNodeType

__all__ = ["MiniBatch", "as_torch", "result_bytes"]


def __dir__() -> list[str]:
    return sorted(__all__)


B = TypeVar("B", bound="MiniBatch")


class _LazySource:
    """The source of the arrays of a batch in a memory of the engine, which is read on first use."""

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        memory = instance.__dict__.get("_memory")
        if memory is None:
            raise AttributeError(f"{type(instance).__name__!r} object has no attribute '_source'")
        place = memory, memory.data, memory.header, memory.device
        source = EngineSource(*place, instance._schema, len(instance._names))
        instance.__dict__["_source"] = source
        return source


def _nodes_of(attributes: dict[str, Any], source: ArraySource, name: str) -> Any:
    schema = source.schema
    value: Any
    if schema is None:
        value = source.node_array(name)
    else:
        arrays = ByNodeType(
            (kind, source.node_array(name, place)) for place, kind in enumerate(schema.node_types)
        )
        if name == "subgraph_ids":
            arrays = ByNodeType((kind, ids) for kind, ids in arrays.items() if ids is not None)
        value = MappingProxyType(arrays) if arrays or name != "subgraph_ids" else None
    attributes[name] = value
    return value


def _extra_of(attributes: dict[str, Any], source: ArraySource, name: str) -> Any:
    names = attributes.get("_names")
    if not names:
        attributes["extra"], attributes["_edge_values"] = {}, NO_VALUES
    else:
        arrays = zip(names, source.extras(len(names)), strict=True)
        attributes["extra"], attributes["_edge_values"] = split_edge_values(arrays)
    return attributes[name]


def _blocks_of(attributes: dict[str, Any], source: ArraySource, name: str) -> Any:
    schema, hops, of = source.schema, range(source.hops()), Block._from_source
    blocks: tuple[Any, ...]
    values: Mapping[Any, Any] = NO_VALUES
    if "_names" in attributes:
        values = attributes.get("_edge_values") or _extra_of(attributes, source, "_edge_values")
    if schema is None:
        blocks = tuple([of(source, place, values.get(place)) for place in hops])
    else:
        kinds = schema.edge_types
        blocks = tuple(
            ByEdgeType(
                (kind, of(source, place, values.get(place), kind))
                for place, kind in enumerate(kinds, hop * len(kinds))
            ).read_only()
            for hop in hops
        )
    # Last: another thread that finds the blocks finds all.
    attributes[name] = blocks
    return blocks


class MiniBatch(HasFeatures, Exports):
    """The sampled neighborhood of seeds: one block for each hop, and the nodes they touch.

    ``blocks`` has the outermost hop first: ``blocks[-1]`` leads into the seeds, and the
    destinations of each block are the sources of the next. A repeated seed is repeated in
    ``output_nodes`` and is one node of the last block; ``output_index`` has its row. With
    ``frontier="new"`` all blocks number the nodes alike, by their place in ``input_nodes``, and the
    destinations of a block are the nodes that the hop before it found.

    In a heterogeneous graph each field of nodes is a mapping of node types to arrays, and each of
    ``blocks`` a mapping of all edge types to blocks, those without edges too:
    ``blocks[0]["writes"]`` is the block of the only edge type with that relation. Local ids count
    within a node type, in the order of first occurrence: hop by hop, and within a hop edge type
    by edge type.

    ``form`` says whose arrays the batch has: those of a sampler are `pygsampler.Array`, views of
    one memory, which lives as long as any of them; ``torch()``, ``numpy()`` and ``arrow()`` return
    the same batch in other arrays. A batch of a graph on a GPU is on that GPU. Torch tensors of
    such a batch are views of one tensor: ``record_stream`` of one of them is for all, and ``to``
    is one copy.

    A loader with ``features`` attaches the rows of ``input_nodes``, as attributes and in
    ``features``, and the ``labels`` of ``output_nodes`` as ``y``; in a heterogeneous graph these
    are mappings of node types to rows.
    """

    __slots__ = ("__dict__", "__weakref__")

    epoch: int
    batch: int
    # The names of the arrays that a program returned in addition to its blocks.
    _names: tuple[str | EdgeValueName, ...] = ()
    # The types of a heterogeneous graph.
    _schema: Schema | None = None

    if TYPE_CHECKING:
        _source: Any
        input_nodes: PerNodeType
        """Original ids of the nodes whose features are needed, in the graph's id dtype.

        The seeds are first; in a homogeneous graph these are the sources of ``blocks[0]``.
        """
        output_nodes: PerNodeType
        """The seeds as they were given, duplicates kept: shape [N], in the graph's id dtype."""
        output_index: PerNodeType
        """The row of each seed in ``blocks[-1]``: ``h[output_index]`` has a row for each seed.

        Shape [N], in the graph's id dtype; its place among ``input_nodes``, of its type. If no seed
        was given twice, it is 0, 1, 2, ...
        """
        subgraph_ids: PerNodeType
        """The seed of each node's subgraph, in the graph's id dtype; None without
        ``disjoint=True``. Seeds are counted over all types, in the order of the types."""
        blocks: PerEdgeType
        """The blocks of each hop, the outermost first."""
        extra: Mapping[str, Any]
        """Arrays that a program returned in addition to its blocks, by name: float32, or ids."""
    else:
        _source = _LazySource()
        input_nodes = LazyAttribute(_nodes_of)
        output_nodes = LazyAttribute(_nodes_of)
        output_index = LazyAttribute(_nodes_of)
        subgraph_ids = LazyAttribute(_nodes_of)
        blocks = LazyAttribute(_blocks_of)
        extra = LazyAttribute(_extra_of)

    def __init__(self) -> None:
        raise TypeError(f"{type(self).__name__}: created by PGSampler.sample only")

    @classmethod
    def from_blocks(
        cls,
        seeds: Any,
        nodes: Any,
        blocks: Sequence[Any],
        *,
        output_index: Any = None,
        epoch: int = 0,
        batch: int = 0,
    ) -> MiniBatch:
        """Returns a batch with copies of arrays on the CPU, for custom classes of ``Sampler``.

        Parameters
        ----------
        seeds : int32 or int64, shape [N]
            The seeds of the call, with duplicates.
        nodes : int32 or int64, shape [V]
            Original ids of the nodes, distinct, the seeds first; their dtype is the batch's.
        blocks : sequence of (indptr, indices, edge_ids) or (indptr, indices, edge_ids, dst_offset)
            Outermost first. Destination i is ``nodes[dst_offset + i]``, and ``indices`` are places
            in ``nodes``. The sources of the first block are all nodes, those of another the nodes
            up to the last destination of the block before it.
        output_index : int32 or int64, shape [N], optional
            The row of each seed in the last block; by default 0, 1, 2, ...
        epoch, batch : int
            The numbers of the epoch and of the batch.

        Raises
        ------
        TypeError, ValueError
            For arrays of another dtype, shape or range, naming the array.
        """
        region = memoryview(pack_batch(seeds, nodes, blocks, output_index))
        address = memories.address_of(region)
        return cls._of_source(EngineSource(region, address, address, devices.CPU), epoch, batch)

    @classmethod
    def _from_memory(
        cls: type[B],
        memory: Memory,
        epoch: int,
        batch: int,
        names: tuple[str | EdgeValueName, ...] = (),
        schema: Schema | None = None,
    ) -> B:
        """Returns the batch in a memory of the engine, of which nothing is read yet."""
        result = object.__new__(cls)
        known = result.__dict__
        known["_memory"] = memory
        known["epoch"] = epoch
        known["batch"] = batch
        if names:
            known["_names"] = names
        if schema is not None:
            known["_schema"] = schema
        return result

    @classmethod
    def _of_source(
        cls: type[B],
        source: ArraySource,
        epoch: int,
        batch: int,
        names: tuple[str | EdgeValueName, ...] = (),
    ) -> B:
        result = object.__new__(cls)
        known = result.__dict__
        known["_source"] = source
        known["epoch"] = epoch
        known["batch"] = batch
        if names:
            known["_names"] = names
        if source.schema is not None:
            known["_schema"] = source.schema
        return result

    @classmethod
    def _of_fields(
        cls: type[B],
        fields: Mapping[str, Any],
        epoch: int,
        batch: int,
        counts: Sequence[list[int]] | None = None,
        extra: Mapping[str, Any] = NO_VALUES,
    ) -> B:
        """Returns a batch in torch tensors of its fields, values or mappings of types.

        ``counts`` are the nodes of each type when each hop began, of a heterogeneous graph.
        """
        blocks, schema, nodes = fields["blocks"], None, {}
        for name in NODE_ARRAYS:
            field = fields.get(name)
            if isinstance(field, Mapping):
                nodes[name] = list(field.values())
            else:
                nodes[name] = [field] * len(fields["input_nodes"] if counts is not None else "1")
        flat = blocks
        if counts is not None:
            schema = Schema(tuple(fields["input_nodes"]), tuple(blocks[0]))
            flat = [block for hop in blocks for block in hop.values()]
        arrays = [{name: getattr(block, name) for name in BLOCK_ARRAYS} for block in flat]
        sizes = [block._source.block_sizes(block._place) for block in flat]
        extras = list(extra.values())
        source = StoredSource("torch", schema, nodes, arrays, sizes, counts, extras)
        result = cls._of_source(source, epoch, batch, tuple(extra))
        result.__dict__["blocks"] = blocks
        return result

    @property
    def form(self) -> str:
        """The library of the arrays: ``"array"``, ``"torch"``, ``"numpy"`` or ``"arrow"``."""
        form: str = self._source.form
        return form

    @property
    def is_homogeneous(self) -> bool:
        """True if the batch is of a graph without types, and its fields are no mappings."""
        return self._schema is None

    @property
    def device(self) -> Any:
        """The device of all arrays: ``"cpu"`` or ``"cuda:0"``, for tensors a ``torch.device``."""
        return self._source.device

    @property
    def num_edges(self) -> int:
        """Number of sampled edges of all blocks."""
        count: int = self._source.num_edges()
        return count

    @property
    def num_sampled_nodes(self) -> Any:
        """The number of distinct seeds, and how many nodes each hop found, the seeds' hop first.

        A list; in a heterogeneous graph a mapping of node types to lists.
        """
        of = self._source.node_counts
        if self._schema is None:
            return _growth(of())
        return ByNodeType(
            (kind, _growth(of(place))) for place, kind in enumerate(self._schema.node_types)
        )

    @property
    def num_sampled_edges(self) -> Any:
        """The number of edges of each hop, the seeds' hop first.

        A list; in a heterogeneous graph a mapping of edge types to lists.
        """
        source = self._source
        sizes, hops = source.block_sizes, range(source.hops() - 1, -1, -1)
        if self._schema is None:
            return [sizes(hop)[2] for hop in hops]
        kinds = self._schema.edge_types
        return ByEdgeType(
            (kind, [sizes(hop * len(kinds) + place)[2] for hop in hops])
            for place, kind in enumerate(kinds)
        )

    @property
    def edge_index_dict(self) -> dict[EdgeType, Any]:
        """The edges of all hops by edge type, as PyG's models take them, in torch tensors.

        They are int64, of shape [2, E], row 0 the sources, in local ids; the edges of the seeds'
        hop are first.

        With ``frontier="new"`` an edge is there once, as in a batch of PyG's; with ``"all"``
        nodes are expanded again in each hop, and such models take ``blocks`` one by one.
        """
        if self._schema is None:
            raise TypeError(
                "edge_index_dict: expected a batch of a heterogeneous graph, got one of a "
                "homogeneous graph, whose blocks have edge_index"
            )
        import torch

        return {
            kind: torch.cat([hop[kind].edge_index for hop in reversed(self.blocks)], dim=1)
            for kind in self._schema.edge_types
        }

    def torch(self: B) -> B:
        """Returns the same batch with torch tensors, which share its memory.

        Each tensor is created when it is first used.
        """
        source = self._source
        form = source.form
        if form == "torch":
            return self
        if form != "array":
            self._need_form("torch")
        return self._of_source(torch_source(source), self.epoch, self.batch, self._names)

    def numpy(self: B) -> B:
        """The same batch with NumPy arrays, which share its memory.

        TypeError for a batch on a device, which ``cpu()`` copies.
        """
        return self._converted("numpy", Array.numpy)

    def arrow(self: B) -> B:
        """The same batch with pyarrow arrays, which share its memory.

        TypeError for a batch on a device, which ``cpu()`` copies; ImportError without pyarrow.
        """
        return self._converted("arrow", _arrow_array)

    def _converted(self: B, form: str, convert: Callable[[Array], Any]) -> B:
        source = self._source
        if source.form == form:
            return self
        self._need_form(form)
        self._need_cpu(form)
        converted = StoredSource.converted(source, form, len(self._names), convert)
        return self._of_source(converted, self.epoch, self.batch, self._names)

    def cpu(self: B) -> B:
        """This batch on the CPU: itself, or a copy of a batch on a device."""
        source = self._source
        if not self._is_on_device:
            return self
        if source.form == "torch":
            return self.to("cpu")
        return self._of_source(source.on_cpu(), self.epoch, self.batch, self._names)

    def to(self: B, device: Any, non_blocking: bool = False) -> B:
        """The batch on another device: itself if it is there, else a copy.

        Parameters
        ----------
        device : str, int or torch.device
            As ``Graph.to`` takes it; for a batch in torch tensors any device of torch's, and
            tensors that are there already are shared.
        non_blocking : bool
            Passed on to torch for a batch in torch tensors.

        Raises
        ------
        TypeError, ValueError
            For anything but a device; for a batch of arrays on another GPU, or of NumPy or Arrow.
        CudaError
            If there is no such device, no driver or no room.
        """
        source = self._source
        if source.form == "torch":
            return self._map(lambda tensor: tensor.to(device, non_blocking=non_blocking))
        self._need_form("to")
        index = devices.parse(device)
        if index == source._device:
            return self
        if index < 0:
            return self.cpu()
        if source._device >= 0:
            raise ValueError(
                f"device: expected {self.device!r}, where the batch is, or 'cpu', got "
                f"{devices.name(index)!r}"
            )
        devices.require(index)
        return self._of_source(source.on_device(index), self.epoch, self.batch, self._names)

    def pin_memory(self: B) -> B:
        """The batch of torch tensors in page-locked memory, as torch's DataLoader asks for it."""
        return self.torch()._map(lambda tensor: tensor.pin_memory())

    def create_tensors(self: B) -> B:
        """Creates the arrays of all blocks now and returns the batch.

        They are created when they are first used, which ``torch.compile`` cannot do: call this
        before a compiled model gets the blocks.
        """
        for block in self._all_blocks():
            for name in BLOCK_ARRAYS:
                getattr(block, name)
        return self

    def _map(self: B, move: Any) -> B:
        source = self._source
        moved = source.moved(move)
        if moved is None:
            moved = StoredSource.converted(source, "torch", len(self._names), move)
        result = self._of_source(moved, self.epoch, self.batch, self._names)
        features: Mapping[str, Any] = self.features
        for name, rows in features.items():
            by_type = self._schema is not None
            new = {kind: move(of) for kind, of in rows.items()} if by_type else move(rows)
            result._attach(name, new)
        if "blocks" in self.__dict__:
            for old, block in zip(self._all_blocks(), result._all_blocks(), strict=True):
                for name, rows in old.features.items():
                    block._attach(name, move(rows))
        return result

    def _all_blocks(self) -> list[Block]:
        """Returns the blocks of all hops and edge types."""
        if self._schema is None:
            return list(self.blocks)
        return [block for hop in self.blocks for block in hop.values()]

    def _distinct_seeds(self) -> int:
        """Returns how many of the seeds are distinct, which are the first nodes."""
        count = len(self.output_nodes)
        # If all are, the engine has no array for them alone: then a GPU is not waited for.
        if not count or self.output_nodes.data_ptr() == self.input_nodes.data_ptr():
            return count
        return int(self.output_index.max()) + 1

    @property
    def _is_on_device(self) -> bool:
        source = self._source
        if source.form == "torch":
            return bool(source.device.type != "cpu")
        return bool(source.form == "array" and source._device >= 0)

    def _need_cpu(self, what: str) -> None:
        if self._is_on_device:
            raise TypeError(
                f"MiniBatch.{what}: expected a batch on the CPU, got one on {self.device}; "
                ".cpu() copies it"
            )

    def _need_form(self, what: str) -> None:
        if self.form != "array":
            raise TypeError(
                f"MiniBatch.{what}: expected a batch in pygsampler's arrays, got one with "
                f"form={self.form!r}; keep the batch that the sampler returned"
            )

    def __repr__(self) -> str:
        numbers = f"epoch={self.epoch}, batch={self.batch}{self._where()}"
        name = type(self).__name__
        if self._schema is not None:
            nodes = ", ".join(f"{kind}={len(ids)}" for kind, ids in self.input_nodes.items())
            size = f"hops={len(self.blocks)}, edges={self.num_edges}"
            return f"{name}({nodes}, {size}, {numbers})"
        hops = ", ".join(
            f"{block.num_src_nodes}->{block.num_dst_nodes} by {block.num_edges}"
            for block in self.blocks
        )
        seeds = self.output_nodes
        return (
            f"{name}(seeds={len(seeds)}, input_nodes={len(self.input_nodes)}, blocks=[{hops}], "
            f"dtype={_dtype(seeds)}, {numbers})"
        )

    def _repr_html_(self) -> str:
        if self._schema is not None:
            return types_html(repr(self), self.blocks)
        seeds = self.output_nodes
        title = (
            f"{type(self).__name__} of {len(seeds):,} seeds, {_dtype(seeds)}, epoch {self.epoch}, "
            f"batch {self.batch}{self._where()}"
        )
        return blocks_html(title, self.blocks)

    def _where(self) -> str:
        """Returns the end of the text: whose arrays, and which device, unless they are usual."""
        form = "" if self.form == "array" else f", form={self.form!r}"
        return f"{form}, device={self.device}" if self._is_on_device else form

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        source, names = self._source, self._names
        numbers = self.epoch, self.batch, names
        if source.form == "array":
            self._need_cpu("pickle")
            values = to_pickle(source.packed(), protocol)
            return _from_pickle, (type(self), values, self._schema, *numbers)
        if not isinstance(source, StoredSource):
            source = StoredSource.converted(source, source.form, len(names), lambda array: array)
        of_blocks = [dict(block.features) for block in self._all_blocks()]
        return _from_arrays, (type(self), source, *numbers, of_blocks), dict(self.features)


def _from_pickle(
    kind: type[MiniBatch],
    values: Any,
    schema: Schema | None,
    epoch: int,
    batch: int,
    names: tuple[str | EdgeValueName, ...],
) -> MiniBatch:
    buffer, address = from_pickle(values)
    source = EngineSource(buffer, address, address, devices.CPU, schema, len(names))
    return kind._of_source(source, epoch, batch, names)


def _from_arrays(
    kind: type[MiniBatch],
    source: ArraySource,
    epoch: int,
    batch: int,
    names: tuple[str | EdgeValueName, ...],
    of_blocks: list[dict[str, Any]],
) -> MiniBatch:
    result = kind._of_source(source, epoch, batch, names)
    if any(of_blocks):
        for block, features in zip(result._all_blocks(), of_blocks, strict=True):
            block.__setstate__(features)
    return result


def as_torch(batch: Any) -> Any:
    """Returns the result of a sampler in torch tensors."""
    return batch if batch.form == "torch" else batch.torch()


def result_bytes(result: Any) -> int:
    """Returns how many bytes the result of a sampler has, with features that are attached.

    TypeError for a result that is none of this package's.
    """
    if not isinstance(result, MiniBatch):
        if isinstance(size := getattr(result, "nbytes", None), int):
            return size
        memory = getattr(result, "_memory", None)
        count = getattr(memory, "size" if isinstance(memory, memories.Memory) else "nbytes", None)
        if count is None:
            raise TypeError(
                "memory, prefetch_memory: expected a sampler of this package, or results with "
                f"nbytes, got {describe(result)}"
            )
        return int(count)
    source, blocks = result._source, result._all_blocks()
    if isinstance(source, HeaderSource):
        count = source._words[at.SIZE]
    else:
        values = [getattr(result, name) for name in NODE_ARRAYS]
        values += [getattr(block, name) for block in blocks for name in BLOCK_ARRAYS]
        count = sum(map(_nbytes, values))
    held = [*result.features.values(), *(x for block in blocks for x in block.features.values())]
    return int(count) + sum(map(_nbytes, held))


def _nbytes(value: Any) -> int:
    if isinstance(value, Mapping):
        return sum(map(_nbytes, value.values()))
    if is_tensor_frame(value):
        return sum(map(_nbytes, row_tensors(value).values()))
    return int(getattr(value, "nbytes", 0))


def _growth(counts: list[int]) -> list[int]:
    """Returns the first of some counts, and how many each has more than the one before it."""
    return [counts[0], *(b - a for a, b in pairwise(counts))]


def _dtype(values: Any) -> str:
    return str(getattr(values, "dtype", None) or values.type).removeprefix("torch.")


def _arrow_array(values: Array) -> Any:
    """Returns ``values`` as a ``pyarrow.Array`` on the same memory, rows as lists."""
    try:
        import pyarrow
    except ImportError:
        raise ImportError(
            "MiniBatch.arrow: expected pyarrow, found none; pip install pyarrow"
        ) from None
    if values.dtype != "float32":
        return pyarrow.array(values)
    values._need_cpu()
    data = pyarrow.foreign_buffer(values._address, values.nbytes, base=values)
    count, *width = values.shape
    length = math.prod(values.shape)
    flat = pyarrow.Array.from_buffers(pyarrow.float32(), length, [None, data])
    if not width:
        return flat
    kind = pyarrow.list_(pyarrow.float32(), math.prod(width))
    return pyarrow.Array.from_buffers(kind, count, [None], children=[flat])
