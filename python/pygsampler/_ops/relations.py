"""Reductions of each destination's edges by their relations, as R-GCN has them, in one launch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from pygsampler._engine.checks import describe
from pygsampler._ops import segments as by_edge
from pygsampler._ops.segments import MEAN, Segments

if TYPE_CHECKING:
    from torch import Tensor


def reduce_by_relation(
    segments: Segments, x: Tensor, relations: Tensor, num_relations: int, kind: int = MEAN
) -> Tensor:
    """Rows of x, [sources, ...], reduced over the edges of each row and relation.

    Parameters
    ----------
    segments, x, kind
        As for ``segments.reduce``: a sum, a mean or the largest.
    relations : integers, shape [edges]
        The relation of each edge, in [0, num_relations). On a GPU an edge with another adds
        nothing.
    num_relations : int

    Returns
    -------
    torch.Tensor
        Of shape [rows, num_relations, ...], 0 where a row has no edge of a relation, with a
        gradient to x.
    """
    edges, _ = split_by_relation(segments, relations, num_relations)
    reduced = by_edge.reduce(edges, x, kind)
    return reduced.reshape((segments.num_rows, num_relations, *x.shape[1:]))


def split_by_relation(
    segments: Segments, relations: Tensor, num_relations: int
) -> tuple[Segments, Tensor]:
    """The edges as segments of each row and relation, rows first, and which edge each of them is.

    Edges of one row and relation keep their order. No step waits for the device.
    """
    indptr, indices = segments.indptr, segments.indices
    edges = indices.shape[0]
    if not isinstance(relations, torch.Tensor) or relations.dtype.is_floating_point:
        found = getattr(relations, "dtype", None) or describe(relations)
        raise TypeError(f"relations: expected a tensor of integers, got {found}")
    if tuple(relations.shape) != (edges,) or relations.device != indices.device:
        raise ValueError(
            f"relations: expected shape [{edges}] on {indices.device}, got "
            f"{tuple(relations.shape)} on {relations.device}"
        )
    if num_relations < 1:
        raise ValueError(f"num_relations: expected at least 1, got {num_relations}")
    places = torch.arange(edges, device=indices.device, dtype=indptr.dtype)
    rows = torch.searchsorted(indptr, places, right=True) - 1
    many = segments.num_rows * num_relations
    # A relation that is none must not become one of another row.
    known = (relations >= 0) & (relations < num_relations)
    keys = torch.where(known, rows * num_relations + relations, many).to(indices.dtype)
    keyed = Segments(indptr, keys, many).transposed(places=True)
    starts, order = keyed.indptr, keyed.places
    assert order is not None
    # Edges that are padding have no place.
    order = torch.where(places < starts[-1], order, 0)
    found = indices.index_select(0, order) if edges else indices
    return Segments(starts, found, segments.sources), order
