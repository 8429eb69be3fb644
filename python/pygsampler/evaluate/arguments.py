"""Checks of the arguments of ``rank``: links, candidates, and how many nodes there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from pygsampler._arrays.tensors import as_tensor
from pygsampler._engine.checks import describe

if TYPE_CHECKING:
    from pygsampler._loader.edge_relation import EdgeRelation

__all__ = ["candidates_of", "link_ends", "node_counts", "one_of", "real", "tensor"]


def link_ends(value: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns sources and destinations, int64."""
    pair = value if isinstance(value, (list, tuple)) else _ids(value, "links")
    if len(pair) != 2:
        raise ValueError(f"links: expected shape [2, links], got {len(pair)} rows")
    src, dst = _ids(pair[0], "links[0]"), _ids(pair[1], "links[1]")
    if src.dim() != 1 or src.shape != dst.shape:
        raise ValueError(
            f"links: expected two rows of one length, got shapes {list(src.shape)} and "
            f"{list(dst.shape)}"
        )
    if src.device != dst.device:
        raise ValueError(f"links[1]: expected it on {src.device}, got {dst.device}")
    return src.long(), dst.long()


def candidates_of(value: Any, both: bool, links: int) -> tuple[torch.Tensor | None, ...]:
    """Returns the candidates of each side, None for all nodes."""
    values: Any = (value,)
    if both:
        values = (None, None) if value is None else value
        if not isinstance(values, (list, tuple)) or len(values) != 2:
            raise TypeError(
                "candidates: expected a pair of arrays with side='both', for sources and "
                f"destinations, got {describe(value)}"
            )
    result = []
    for each in values:
        ids = None if each is None else _ids(each, "candidates")
        if ids is not None and ids.dim() != 1 and ids.shape[:-1] != (links,):
            raise ValueError(
                f"candidates: expected shape [n], or [{links}, n] with as many rows as links, got "
                f"{list(ids.shape)}"
            )
        if ids is not None and ids.dim() == 1 and len(torch.unique(ids)) < len(ids):
            raise ValueError(
                "candidates: expected each node at most once, got some twice; use torch.unique"
            )
        result.append(ids)
    return tuple(result)


def node_counts(
    counts: tuple[int, int] | None,
    relations: Sequence[EdgeRelation],
    end_ids: tuple[torch.Tensor, torch.Tensor],
    nodes: Mapping[str, torch.Tensor | None],
) -> tuple[int, int]:
    """Returns the numbers of nodes at both ends; IndexError for an id beyond them."""
    for relation in relations:
        of_graph = relation.num_src, relation.num_dst
        if counts is not None and of_graph != counts:
            raise ValueError(
                f"filters: expected a graph of {counts[0]} source and {counts[1]} destination "
                f"nodes, as there are embeddings or in another graph, got {of_graph[0]} and "
                f"{of_graph[1]}"
            )
        counts = of_graph
    if counts is None and any(each is None for each in nodes.values()):
        raise ValueError(
            "candidates: expected some with a function of ids and no graph, since nothing says "
            "how many nodes there are, got None; use torch.arange(num_nodes)"
        )
    largest = [0, 0]
    for place, name in enumerate(("src", "dst")):
        for where, ids in ((f"links[{place}]", end_ids[place]), ("candidates", nodes.get(name))):
            if ids is None or not ids.numel():
                continue
            low, high = (int(each) for each in ids.aminmax())
            if low < 0 or (counts is not None and high >= counts[place]):
                below = "" if counts is None else f" below {counts[place]}"
                raise IndexError(
                    f"{where}: expected node ids from 0{below}, got {low if low < 0 else high}"
                )
            largest[place] = max(largest[place], high + 1)
    return (largest[0], largest[1]) if counts is None else counts


def _ids(value: Any, where: str) -> torch.Tensor:
    ids = tensor(value, where)
    if not ids.numel() and not isinstance(value, torch.Tensor):
        ids = ids.long()  # torch makes floats of an empty list
    if ids.dtype not in (torch.int32, torch.int64):
        raise TypeError(f"{where}: expected int32 or int64, got {ids.dtype}")
    if ids.dim() not in (1, 2):
        raise ValueError(f"{where}: expected one or two dimensions, got {list(ids.shape)}")
    return ids


def real(scores: torch.Tensor, where: str) -> torch.Tensor:
    """Returns ``scores`` if they have an order."""
    if scores.dtype == torch.bool or scores.is_complex():
        raise TypeError(f"{where}: expected floats or integers, got {scores.dtype}")
    return scores


def tensor(value: Any, where: str) -> torch.Tensor:
    try:
        return as_tensor(value).detach()
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"{where}: expected an array, got {describe(value)} ({error})") from None


def one_of(value: Any, where: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{where}: expected one of {', '.join(choices)}, got {describe(value)}")
