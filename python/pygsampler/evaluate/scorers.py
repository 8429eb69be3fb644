"""Scores of pairs of nodes: products of rows, or a function of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from pygsampler._engine.checks import describe
from pygsampler.evaluate.arguments import real, tensor

if TYPE_CHECKING:
    from pygsampler._loader.edge_relation import EdgeRelation

__all__ = ["Function", "Products", "ScoreFunction", "Scorer", "scorer_of"]

ScoreFunction = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


class Products:
    """Scores of pairs that are dot products of rows."""

    def __init__(self, src: torch.Tensor, dst: torch.Tensor) -> None:
        self.rows = src, dst
        self.counts: tuple[int, int] | None = (len(src), len(dst))
        self.device = src.device

    def shared(
        self, place: int, fixed: torch.Tensor, true: torch.Tensor, nodes: torch.Tensor | slice
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns the scores of the true ends, [links], and of all candidates, [links, nodes]."""
        others = self.rows[place]
        # The true ends are columns of the same product: equal rows then have equal scores.
        columns = _wide(torch.cat([others[true], others[nodes]]))
        scores = _wide(self.rows[1 - place][fixed]) @ columns.T
        return scores[:, : len(true)].diagonal(), scores[:, len(true) :]

    def per_link(self, place: int, fixed: torch.Tensor, nodes: torch.Tensor) -> torch.Tensor:
        """Returns the scores of nodes that each link has of its own, in their shape."""
        columns = _wide(self.rows[1 - place][fixed]).unsqueeze(2)
        return (_wide(self.rows[place][nodes]) @ columns).squeeze(2)


class Function:
    """Scores of pairs that a function of the ids of both ends computes."""

    def __init__(
        self, score: ScoreFunction, counts: tuple[int, int] | None, device: torch.device
    ) -> None:
        self.score = score
        self.counts = counts
        self.device = device

    def shared(
        self, place: int, fixed: torch.Tensor, true: torch.Tensor, nodes: torch.Tensor | slice
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns scores like ``Products.shared``."""
        if isinstance(nodes, slice):
            nodes = torch.arange(nodes.start, nodes.stop, device=fixed.device)
        links = len(fixed)
        scores = self._scored(
            place,
            torch.cat([fixed, fixed.repeat_interleave(len(nodes))]),
            torch.cat([true, nodes.repeat(links)]),
        )
        return scores[:links], scores[links:].view(links, len(nodes))

    def per_link(self, place: int, fixed: torch.Tensor, nodes: torch.Tensor) -> torch.Tensor:
        """Returns scores like ``Products.per_link``."""
        ids = fixed.repeat_interleave(nodes.shape[1])
        return self._scored(place, ids, nodes.flatten()).view(nodes.shape)

    def _scored(self, place: int, fixed: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
        """Returns a copy of the function's scores, which may be the caller's own memory."""
        scores = self.score(*((fixed, others) if place else (others, fixed)))
        if not isinstance(scores, torch.Tensor):
            raise TypeError(f"scores: expected a tensor, got {describe(scores)}")
        if scores.shape not in ((len(fixed),), (len(fixed), 1)):
            raise ValueError(
                f"scores: expected shape [{len(fixed)}], a score for each pair, got "
                f"{list(scores.shape)}"
            )
        if scores.device != fixed.device:
            raise ValueError(f"scores: expected them on {fixed.device}, got {scores.device}")
        flat = real(scores, "scores").flatten()
        return flat.clone() if flat.is_floating_point() else flat.double()


Scorer = Products | Function


def scorer_of(
    embeddings: Any, decoder: Any, edge_type: Any, relations: Sequence[EdgeRelation], device: Any
) -> Scorer:
    """Returns the scores of pairs as the caller describes them."""
    if decoder is not None and not callable(decoder):
        raise TypeError(f"decoder: expected a function of rows, got {describe(decoder)}")
    has_types = isinstance(embeddings, Mapping) or any(each.ends[0] for each in relations)
    if edge_type is not None and not has_types:
        raise ValueError(
            "edge_type: expected None without a heterogeneous graph or a mapping of embeddings, "
            f"got {describe(edge_type)}"
        )
    if callable(embeddings):
        if decoder is not None:
            raise ValueError("decoder: expected None with a function of ids, got one")
        return Function(embeddings, None, device)
    if isinstance(embeddings, Mapping):
        embeddings = _end_embeddings(embeddings, edge_type, relations)
    pair = embeddings if isinstance(embeddings, (list, tuple)) else (embeddings, embeddings)
    if len(pair) != 2:
        raise ValueError(f"embeddings: expected one array or a pair, got {len(pair)}")
    src, dst = (_embedding(each) for each in pair)
    if src.device != dst.device or src.dtype != dst.dtype:
        raise TypeError(
            f"embeddings: expected one dtype and device, got {src.dtype} on {src.device} and "
            f"{dst.dtype} on {dst.device}"
        )
    if decoder is not None:
        score = decoder
        counts = len(src), len(dst)
        return Function(lambda u, v: score(src[u], dst[v]), counts, src.device)
    if src.shape[1] != dst.shape[1]:
        raise ValueError(
            f"embeddings: expected rows of one width for dot products, got {src.shape[1]} and "
            f"{dst.shape[1]}; decoder takes others"
        )
    return Products(src, dst)


def _end_embeddings(
    embeddings: Mapping[str, Any], edge_type: Any, relations: Sequence[EdgeRelation]
) -> tuple[Any, Any]:
    """Returns the arrays of both node types of an edge type."""
    if relations and relations[0].ends[0]:
        src, dst = relations[0].ends
    elif isinstance(edge_type, tuple) and len(edge_type) == 3:
        src, _, dst = edge_type
    else:
        raise TypeError(
            "edge_type: expected (source, relation, destination) with a mapping of embeddings, "
            f"got {describe(edge_type)}"
        )
    for name in (src, dst):
        if name not in embeddings:
            raise ValueError(
                f"embeddings: expected an array for node type {name!r}, got some for "
                f"{', '.join(map(repr, embeddings)) or 'none'}"
            )
    return embeddings[src], embeddings[dst]


def _embedding(value: Any) -> torch.Tensor:
    rows = tensor(value, "embeddings")
    if rows.dim() != 2:
        raise ValueError(f"embeddings: expected shape [nodes, d], got {list(rows.shape)}")
    if not rows.is_floating_point():
        raise TypeError(f"embeddings: expected floats, got {rows.dtype}")
    return rows


def _wide(embedding: torch.Tensor) -> torch.Tensor:
    """Returns rows of 16 bits in float32: sums of 16 bits would make ties of different scores."""
    return embedding.float() if embedding.element_size() == 2 else embedding
