"""``LinkBatch``: edges to predict and the mini-batch around them, which a ``LinkLoader`` yields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch

from pygsampler._batch.html_tables import arrays_html
from pygsampler._batch.minibatch import MiniBatch
from pygsampler._batch.static import prefix_mask
from pygsampler._graph.schema import ByEdgeType, PerEdgeType

__all__ = ["LinkBatch", "link_batch"]


class LinkBatch(NamedTuple):
    """Edges to predict, and the mini-batch around their nodes.

    Indices are int64, and count the rows that a model returns for ``minibatch.output_nodes``. For a
    heterogeneous graph each field is a mapping of edge types, without types that have no such
    array; indices count the rows of the types at the ends of an edge.

    A loader with ``static=True`` yields one batch of fixed sizes, whose memory stays where it is:
    each of its batches uses the first places of every field. Indices that fill up are rows of
    ``minibatch.output_nodes`` that the batch does not use, spread over all of those; labels that
    fill up are -100 if they are integers, else 0, and ``input_id`` is 0. ``link_mask`` tells a loss
    which links to count, and ``trimmed()`` is a copy to keep.
    """

    minibatch: MiniBatch
    """The sampled neighborhood of the nodes, each once, with rows of features if requested."""
    input_id: PerEdgeType
    """The place of each edge among those of the loader, of its type: shape [edges]. On the CPU, of
    a static batch on the GPU."""
    edge_label_index: PerEdgeType
    """Sources and destinations of the edges, then of their negatives, all of one edge before those
    of the next: shape [2, links]. None with triplets."""
    edge_label: PerEdgeType
    """The labels of the edges, or without labels float32: 1 for edges and 0 for negatives. Shape
    [links, ...]; with triplets the labels that the loader has, or None."""
    src_index: PerEdgeType
    """With triplets the sources: shape [edges]."""
    dst_pos_index: PerEdgeType
    """With triplets the destinations: shape [edges]."""
    dst_neg_index: PerEdgeType
    """With triplets the negatives: shape [edges, amount]."""
    counts: PerEdgeType = None
    """The numbers of edges and links of a static batch: int64, shape [2], on the GPU; else None."""

    @property
    def edge_mask(self) -> PerEdgeType:
        """Marks the edges of the batch among ``input_id``, and triplets: bool, shape [edges].

        All of them unless the batch is static.
        """
        return self._per_type(lambda links: _mask(links[0], links[-1], 0))

    @property
    def link_mask(self) -> PerEdgeType:
        """Marks the links of the batch in ``edge_label_index``: bool, shape [links].

        Marks triplets where there are such. All of them unless the batch is static.
        """
        return self._per_type(
            lambda links: _mask(links[3] if links[1] is None else links[1][0], links[-1], 1)
        )

    def trimmed(self) -> LinkBatch:
        """Returns a static batch as a loader without ``static`` yields it, in memory of its own.

        Waits for the GPU, which knows the sizes. Returns any other batch as it is.
        """
        if self.counts is None:
            return self
        minibatch: Any = self.minibatch
        return link_batch(minibatch.trimmed(), self._per_type(_trimmed))

    def to(self, device: torch.device | str | int, non_blocking: bool = False) -> LinkBatch:
        """Returns the batch on ``device``; with ``non_blocking`` no copy is waited for.

        Tensors that are there already are shared. A static batch is trimmed first.
        """
        return self._map(lambda values: values.to(device, non_blocking=non_blocking))

    def pin_memory(self) -> LinkBatch:
        """Returns the batch in page-locked memory, as torch's DataLoader needs it."""
        return self._map(lambda values: values.pin_memory())

    def _map(self, move: Callable[[Any], Any]) -> LinkBatch:
        minibatch, *fields = self.trimmed()
        return LinkBatch(
            move(minibatch),
            *(
                ByEdgeType((kind, move(values)) for kind, values in field.items())
                if isinstance(field, Mapping)
                else None
                if field is None
                else move(field)
                for field in fields
            ),
        )

    def _per_type(self, function: Callable[[list[Any]], Any]) -> Any:
        """Returns the value of a function of the fields behind ``minibatch``, of each type."""
        if not isinstance(self.input_id, Mapping):
            return function([*self[1:]])
        return ByEdgeType(
            (kind, function([None if field is None else field.get(kind) for field in self[1:]]))
            for kind in self.input_id
        )

    def __repr__(self) -> str:
        edges = ", ".join(f"{kind}{count}" for kind, count in _counted(self.input_id, 0))
        index = self.edge_label_index
        links = index if index is not None and len(index) else self.dst_pos_index
        counts = ", ".join(f"{kind}{count}" for kind, count in _counted(links, -1))
        return (
            f"{type(self).__name__}(edges={edges}, links={counts or 0}, "
            f"minibatch={self.minibatch!r})"
        )

    def _repr_html_(self) -> str:
        arrays = []
        for name, values in zip(self._fields[1:], self[1:], strict=True):
            if isinstance(values, Mapping):
                arrays += [(f"{name}[{kind!r}]", each) for kind, each in values.items()]
            else:
                arrays.append((name, values))
        minibatch: str = self.minibatch._repr_html_()
        return arrays_html(repr(self), arrays) + minibatch


def link_batch(minibatch: Any, fields: Any) -> LinkBatch:
    """Returns the batch whose fields behind ``minibatch`` are a list, or mapping types to lists."""
    if not isinstance(fields, Mapping):
        return LinkBatch(minibatch, *fields)
    return LinkBatch(
        minibatch,
        *(
            ByEdgeType(
                (kind, value)
                for kind, value in zip(fields, field, strict=True)
                if value is not None
            )
            for field in zip(*fields.values(), strict=True)
        ),
    )


def _missing(batch: LinkBatch, name: str) -> Any:
    """Raises AttributeError, which says where the attributes of the mini-batch are."""
    kind = type(batch).__name__
    if name.startswith("_") or not hasattr(batch.minibatch, name):
        raise AttributeError(f"{kind!r} object has no attribute {name!r}")
    raise AttributeError(
        f"{name}: expected an attribute of {kind}, got {name!r}; the mini-batch has it: "
        f"batch.minibatch.{name}"
    )


# Outside of the class, where type checkers would take any name.
LinkBatch.__getattr__ = _missing  # type: ignore[attr-defined]


def _counted(tensors: Any, dim: int) -> list[tuple[str, int]]:
    """Returns (label, count) for each type, or one pair with an empty label without types."""
    if tensors is None:
        return []
    if isinstance(tensors, Mapping):
        return [(f"{kind!r}: ", each.shape[dim]) for kind, each in tensors.items()]
    return [("", tensors.shape[dim])]


def _mask(values: torch.Tensor, counts: torch.Tensor | None, place: int) -> torch.Tensor:
    """Marks the first of ``values``, as many as one of the ``counts`` says."""
    if counts is None:
        return torch.ones(len(values), dtype=torch.bool, device=values.device)
    return prefix_mask(len(values), counts[place])


def _trimmed(links: list[Any]) -> list[Any]:
    """Returns the fields from ``input_id`` on without what fills them up."""
    places, index, label, *ends, counts = links
    edges, count = counts.tolist()
    return [
        places[:edges].cpu() if places.is_cuda else places[:edges].clone(),
        None if index is None else index[:, :count].clone(),
        None if label is None else label[:count].clone(),
        *(None if end is None else end[:edges].clone() for end in ends),
    ]
