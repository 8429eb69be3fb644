"""``LinkBatch`` and its kin: what loaders of links yield."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from pygsampler._batch.html_tables import arrays_html
from pygsampler._batch.minibatch import MiniBatch
from pygsampler._batch.static import StaticHeteroMiniBatch, StaticMiniBatch, prefix_mask
from pygsampler._graph.schema import ByEdgeType

if TYPE_CHECKING:
    from pygsampler._batch.minibatch import MiniBatch
    from pygsampler._graph.hetero_graph import EdgeType

__all__ = ["HeteroLinkBatch", "LinkBatch", "StaticHeteroLinkBatch", "StaticLinkBatch", "by_field"]


# Methods of named tuples, which have no base class of ours.


def _shown(batch: Any) -> str:
    """Returns a batch by the counts of its edges and links, and by what was sampled."""
    edges = ", ".join(f"{kind}{count}" for kind, count in _counted(batch.input_id, 0))
    index = batch.edge_label_index
    links = index if index is not None and len(index) else batch.dst_pos_index
    counts = _counted(links, -1)
    told = ", ".join(f"{kind}{count}" for kind, count in counts)
    return f"{type(batch).__name__}(edges={edges}, links={told or 0}, sampled={batch.sampled!r})"


def _counted(tensors: Any, dim: int) -> list[tuple[str, int]]:
    """Returns (label, count) for each type, or one pair with an empty label without types."""
    if tensors is None:
        return []
    if isinstance(tensors, Mapping):
        return [(f"{kind!r}: ", each.shape[dim]) for kind, each in tensors.items()]
    return [("", tensors.shape[dim])]


def _html(batch: Any) -> str:
    """Returns a table of a batch's tensors, and that of what was sampled."""
    arrays = []
    for name, values in zip(batch._fields[1:], batch[1:], strict=True):
        if isinstance(values, Mapping):
            arrays += [(f"{name}[{kind!r}]", each) for kind, each in values.items()]
        else:
            arrays.append((name, values))
    sampled: str = batch.sampled._repr_html_()
    return arrays_html(repr(batch), arrays) + sampled


def _missing(batch: Any, name: str) -> Any:
    """AttributeError that says where the attributes of what was sampled are."""
    kind = type(batch).__name__
    if name.startswith("_") or not hasattr(batch.sampled, name):
        raise AttributeError(f"{kind!r} object has no attribute {name!r}")
    raise AttributeError(
        f"{name}: expected an attribute of {kind}, got {name!r}; what was sampled has it: "
        f"batch.sampled.{name}"
    )


class LinkBatch(NamedTuple):
    """Links, and what was sampled around their vertices.

    Indices are int64, and count the rows that a model gives for ``sampled.output_nodes``.
    """

    sampled: MiniBatch
    """What the sampler makes of the vertices, each once, with rows of features if asked for."""
    input_id: torch.Tensor
    """The place of each edge among those of the loader: shape [edges], on the CPU."""
    edge_label_index: torch.Tensor | None
    """Sources and destinations of the edges, then of their negatives, all of one edge before those
    of the next: shape [2, links]. None with triplets."""
    edge_label: torch.Tensor | None
    """The labels of the edges, or without labels float32: 1 for edges and 0 for negatives. Shape
    [links, ...]; with triplets the labels that were given, or None."""
    src_index: torch.Tensor | None
    """With triplets the sources: shape [edges]."""
    dst_pos_index: torch.Tensor | None
    """With triplets the destinations: shape [edges]."""
    dst_neg_index: torch.Tensor | None
    """With triplets the negatives: shape [edges, amount]."""

    def __repr__(self) -> str:
        return _shown(self)

    def _repr_html_(self) -> str:
        return _html(self)


class HeteroLinkBatch(NamedTuple):
    """Links of a graph with types, and what was sampled around their vertices.

    As ``LinkBatch``, each field a mapping of edge types; one that a type does not have is not in
    it. Rows of sources are those of ``sampled.output_nodes`` of their type, and rows of
    destinations those of theirs.
    """

    sampled: MiniBatch
    input_id: ByEdgeType[torch.Tensor]
    """The place of each edge among those that the loader was given of its type."""
    edge_label_index: ByEdgeType[torch.Tensor]
    edge_label: ByEdgeType[torch.Tensor]
    src_index: ByEdgeType[torch.Tensor]
    dst_pos_index: ByEdgeType[torch.Tensor]
    dst_neg_index: ByEdgeType[torch.Tensor]

    def __repr__(self) -> str:
        return _shown(self)

    def _repr_html_(self) -> str:
        return _html(self)


class StaticLinkBatch(NamedTuple):
    """Links with room for a number of them, around a ``StaticMiniBatch``, on a GPU.

    Fields are those of ``LinkBatch``, of fixed sizes in memory that stays where it is: a batch uses
    the first of each. Indices that fill up are rows of ``sampled.output_nodes`` that the batch does
    not use, dealt out over those; labels are -100 where they are integers, else 0; places are 0.
    ``link_mask`` tells a loss which links to count. ``trimmed()`` is a copy to keep.
    """

    sampled: StaticMiniBatch
    input_id: torch.Tensor
    """As ``LinkBatch`` has it, but on the GPU."""
    edge_label_index: torch.Tensor | None
    edge_label: torch.Tensor | None
    src_index: torch.Tensor | None
    dst_pos_index: torch.Tensor | None
    dst_neg_index: torch.Tensor | None
    counts: torch.Tensor
    """How many edges the batch has, and how many links: int64, shape [2], on the GPU."""

    def __repr__(self) -> str:
        return _shown(self)

    def _repr_html_(self) -> str:
        return _html(self)

    @property
    def edge_mask(self) -> torch.Tensor:
        """Which of ``input_id``, and with triplets of the rest, are the batch's: bool [edges]."""
        return prefix_mask(len(self.input_id), self.counts[0])

    @property
    def link_mask(self) -> torch.Tensor:
        """Which of ``edge_label_index`` are the batch's: bool, shape [links]; with triplets
        ``edge_mask``."""
        return prefix_mask(_links(self), self.counts[1])

    def trimmed(self) -> LinkBatch:
        """The batch that a loader without ``static`` gives, in memory of its own.

        Waits for the GPU, which knows the sizes.
        """
        return LinkBatch(self.sampled.trimmed(), *_trimmed(self, self.counts.tolist()))


class StaticHeteroLinkBatch(NamedTuple):
    """Edges to predict of a heterogeneous graph, padded, around a ``StaticHeteroMiniBatch``.

    As ``StaticLinkBatch``, each field a mapping of edge types.
    """

    sampled: StaticHeteroMiniBatch
    input_id: ByEdgeType[torch.Tensor]
    """As ``HeteroLinkBatch`` has it, but on the GPU."""
    edge_label_index: ByEdgeType[torch.Tensor]
    edge_label: ByEdgeType[torch.Tensor]
    src_index: ByEdgeType[torch.Tensor]
    dst_pos_index: ByEdgeType[torch.Tensor]
    dst_neg_index: ByEdgeType[torch.Tensor]
    counts: ByEdgeType[torch.Tensor]
    """How many edges of each type the batch has, and how many links: int64, shape [2], on the
    GPU."""

    def __repr__(self) -> str:
        return _shown(self)

    def _repr_html_(self) -> str:
        return _html(self)

    @property
    def edge_mask(self) -> dict[EdgeType, torch.Tensor]:
        """Of each type which of ``input_id`` are the batch's: bool."""
        return {
            kind: prefix_mask(len(self.input_id[kind]), of[0]) for kind, of in self.counts.items()
        }

    @property
    def link_mask(self) -> dict[EdgeType, torch.Tensor]:
        """Of each type which of ``edge_label_index`` are the batch's: bool."""
        return {
            kind: prefix_mask(_links(self._of(kind)), of[1]) for kind, of in self.counts.items()
        }

    def trimmed(self) -> HeteroLinkBatch:
        """As ``StaticLinkBatch.trimmed``."""
        fields = {kind: _trimmed(self._of(kind), of.tolist()) for kind, of in self.counts.items()}
        return HeteroLinkBatch(self.sampled.trimmed(), *by_field(fields))

    def _of(self, kind: EdgeType) -> Any:
        """The links of one type."""
        of: Any = self.sampled
        return StaticLinkBatch(of, *(fields.get(kind) for fields in self[1:]))


# Not among their methods, where type checkers would take any name.
for _kind in (LinkBatch, HeteroLinkBatch, StaticLinkBatch, StaticHeteroLinkBatch):
    _kind.__getattr__ = _missing  # type: ignore[union-attr]


def by_field(fields: Mapping[EdgeType, list[Any]]) -> list[ByEdgeType[Any]]:
    """Fields of each type as mappings of types, without those that a type does not have."""
    return [
        ByEdgeType(
            (kind, value) for kind, value in zip(fields, of, strict=True) if value is not None
        )
        for of in zip(*fields.values(), strict=True)
    ]


def _links(batch: StaticLinkBatch) -> int:
    """How many links there is room for."""
    index = batch.edge_label_index
    return len(batch.input_id) if index is None else index.shape[1]


def _trimmed(batch: StaticLinkBatch, counts: list[int]) -> list[Any]:
    """The fields from ``input_id`` on, as ``LinkBatch`` has them."""
    edges, links = counts
    index, *others = batch[2:7]
    label, *ends = others
    return [
        batch.input_id[:edges].cpu() if batch.input_id.is_cuda else batch.input_id[:edges].clone(),
        None if index is None else index[:, :links].clone(),
        None if label is None else label[:links].clone(),
        *(None if end is None else end[:edges].clone() for end in ends),
    ]
