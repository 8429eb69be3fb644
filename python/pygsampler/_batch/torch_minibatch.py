"""Mini-batches in the arrays of torch, NumPy and pyarrow: what ``MiniBatch.torch()``,
``numpy()`` and ``arrow()`` return."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from pygsampler._batch.attached_features import HasFeatures
from pygsampler._batch.edge_values import NO_VALUES
from pygsampler._batch.exports import Exports
from pygsampler._batch.html_tables import blocks_html
from pygsampler._batch.lazy import LazyAttribute
from pygsampler._batch.torch_block import ArrowBlock, ForeignBlock, NumpyBlock, TorchBlock

if TYPE_CHECKING:
    from collections.abc import Mapping

    # In the bases of NumpyMiniBatch, as text.
    import numpy  # noqa: F401
    import torch

    from pygsampler._arrays.array import Array
    from pygsampler._batch.lazy import BatchSource

__all__ = [
    "ArrowBlock",
    "ArrowMiniBatch",
    "ForeignBlock",
    "ForeignMiniBatch",
    "HasTorchForm",
    "NumpyBlock",
    "NumpyMiniBatch",
    "TorchBlock",
    "TorchMiniBatch",
    "arrow_array",
    "as_torch",
]


def __dir__() -> list[str]:
    return sorted(__all__)


ArrayT = TypeVar("ArrayT")
BlockT = TypeVar("BlockT", bound="ForeignBlock[Any]")


def _of_batch(known: dict[str, Any], views: BatchSource, name: str) -> Any:
    tensor = known[name] = views.of_batch(name)
    return tensor


def _blocks_of(known: dict[str, Any], views: BatchSource, name: str) -> Any:
    of, hops = TorchBlock._of, range(views.hops())
    named = known.get("_edge_values", NO_VALUES)
    blocks = known[name] = tuple([of(views, place, named.get(place)) for place in hops])
    return blocks


class HasTorchForm(Protocol):
    """A ``MiniBatch``, for what stands below it."""

    def torch(self) -> TorchMiniBatch: ...


@dataclass(frozen=True, eq=False, repr=False)
class ForeignMiniBatch(Generic[ArrayT, BlockT]):
    """A ``MiniBatch`` whose arrays are another library's; the names are the same."""

    input_nodes: ArrayT
    output_nodes: ArrayT
    output_index: ArrayT
    blocks: tuple[BlockT, ...]
    epoch: int
    batch: int
    subgraph_ids: ArrayT | None = None
    # What a program has returned beside its blocks, by name.
    extra: Mapping[str, ArrayT] = field(default_factory=dict)

    @property
    def num_edges(self) -> int:
        """Number of sampled edges of all hops."""
        return sum(block.num_edges for block in self.blocks)

    def __repr__(self) -> str:
        blocks = ", ".join(map(repr, self.blocks))
        return (
            f"{type(self).__name__}(seeds={len(self.output_nodes)}, "  # type: ignore[arg-type]
            f"input_nodes={len(self.input_nodes)}, "  # type: ignore[arg-type]
            f"blocks=[{blocks}], epoch={self.epoch}, batch={self.batch})"
        )

    def _repr_html_(self) -> str:
        title = (
            f"{type(self).__name__} of {len(self.output_nodes):,} seeds, "  # type: ignore[arg-type]
            f"epoch {self.epoch}, batch {self.batch}"
        )
        return blocks_html(title, self.blocks)


class TorchMiniBatch(ForeignMiniBatch["torch.Tensor", TorchBlock], HasFeatures, Exports):
    """A mini-batch of torch tensors.

    Of a batch that was sampled on a GPU they are views of one tensor, each made when it is first
    used: ``record_stream`` of one of them is for all, and ``to`` is one copy.

    A loader that was given ``features`` puts the rows of ``input_nodes`` beside them, as attributes
    and in ``features``, and the ``labels`` of ``output_nodes`` as ``y``.
    """

    @classmethod
    def _of(
        cls,
        views: BatchSource,
        epoch: int,
        batch: int,
        extra: Mapping[str, Any] | None = None,
        named: Mapping[int, Mapping[str, Any]] | None = None,
    ) -> TorchMiniBatch:
        made = object.__new__(cls)
        known = made.__dict__
        known["extra"] = extra or {}
        known["_views"] = views
        known["epoch"] = epoch
        known["batch"] = batch
        if named:
            known["_edge_values"] = named
        return made

    if not TYPE_CHECKING:
        input_nodes = LazyAttribute(_of_batch)
        output_nodes = LazyAttribute(_of_batch)
        output_index = LazyAttribute(_of_batch)
        subgraph_ids = LazyAttribute(_of_batch)
        blocks = LazyAttribute(_blocks_of)

    @property
    def num_edges(self) -> int:
        """Number of sampled edges of all hops."""
        views: BatchSource | None = self.__dict__.get("_views")
        return super().num_edges if views is None else views.num_edges()

    def _distinct_seeds(self) -> int:
        """How many of the seeds are distinct, which are the first vertices."""
        count = len(self.output_nodes)
        # Where all are, the engine has no array for them alone: then a GPU is not waited for.
        if not count or self.output_nodes.data_ptr() == self.input_nodes.data_ptr():
            return count
        return int(self.output_index.max()) + 1

    def to(self, device: torch.device | str | int, non_blocking: bool = False) -> TorchMiniBatch:
        """The batch on another device; tensors that are there already are shared."""
        return self._map(lambda tensor: tensor.to(device, non_blocking=non_blocking))

    def pin_memory(self) -> TorchMiniBatch:
        """The batch in page-locked memory, as torch's DataLoader asks for it."""
        return self._map(lambda tensor: tensor.pin_memory())

    def _map(self, move: Any) -> TorchMiniBatch:
        made = self._moved(move)
        for name, rows in self.features.items():
            made._attach(name, move(rows))
        for old, new in zip(self.blocks, made.blocks, strict=True):
            for name, rows in old.features.items():
                new._attach(name, move(rows))
        return made

    def _moved(self, move: Any) -> TorchMiniBatch:
        """Without the rows that a loader read."""
        views: BatchSource | None = self.__dict__.get("_views")
        moved = None if views is None else views.moved(move)
        extra = {name: move(values) for name, values in self.extra.items()}
        named = {
            place: {name: move(values) for name, values in block.edge_values.items()}
            for place, block in enumerate(self.blocks)
        }
        if moved is not None:
            return self._of(moved, self.epoch, self.batch, extra, named)
        nodes = move(self.input_nodes)
        blocks = tuple(
            TorchBlock(
                move(block.indptr),
                move(block.indices),
                move(block.edge_ids),
                nodes[: block.num_src_nodes],
                nodes[block.dst_offset : block.dst_offset + block.num_dst_nodes],
                block.dst_offset,
                None if block.edge_weights is None else move(block.edge_weights),
                named[place],
            )
            for place, block in enumerate(self.blocks)
        )
        seeds, index = move(self.output_nodes), move(self.output_index)
        subgraph_ids = None if self.subgraph_ids is None else move(self.subgraph_ids)
        return type(self)(nodes, seeds, index, blocks, self.epoch, self.batch, subgraph_ids, extra)

    def __reduce__(self) -> tuple[Any, ...]:
        parts = (
            self.input_nodes,
            self.output_nodes,
            self.output_index,
            self.blocks,
            self.epoch,
            self.batch,
            self.subgraph_ids,
            self.extra,
        )
        return type(self), parts, dict(self.features)


def as_torch(batch: TorchMiniBatch | HasTorchForm) -> TorchMiniBatch:
    """What a sampler gave, in torch's tensors."""
    # Of a graph with types it is a HeteroTorchMiniBatch, which is one of these too.
    if isinstance(batch, HasFeatures) and batch.form == "torch":
        return batch
    return batch.torch()  # type: ignore[operator]


class NumpyMiniBatch(ForeignMiniBatch["numpy.ndarray[Any, Any]", NumpyBlock]):
    """A mini-batch of NumPy arrays."""


class ArrowMiniBatch(ForeignMiniBatch[Any, ArrowBlock]):
    """A mini-batch of ``pyarrow.Array``."""


def arrow_array(values: Array) -> Any:
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
