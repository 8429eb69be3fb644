"""Arguments of walks on a DGL graph: steps, first nodes, and random numbers."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from dgl import DGLError

from pygsampler._adapters.batch_number import batch_number_of_ids
from pygsampler._adapters.engine_batch import engine_batch
from pygsampler._engine.checks import describe, integer
from pygsampler._engine.error_conversion import ErrorConversion
from pygsampler._engine.limits import MAX_BATCH, MAX_EPOCH
from pygsampler._sampling.batch_counter import fresh_seed, resolve_seed
from pygsampler.dgl.homogeneous import HomogeneousIds
from pygsampler.dgl.options import as_ids
from pygsampler.walks.random_walk import RandomWalk

__all__ = [
    "DGLIndexError",
    "DGLValueError",
    "WalkSeed",
    "as_dgl_errors",
    "is_hetero",
    "nodes_of",
    "pattern_of",
    "starts_of",
    "steps_of",
    "walk_seed",
    "walks_of",
]

# The longest pattern of a metapath that the engine repeats.
_LONGEST_PATTERN = 64


class DGLValueError(DGLError, ValueError):  # type: ignore[misc]
    """A value that DGL refuses with an error of its own, too."""


class DGLIndexError(DGLError, IndexError):  # type: ignore[misc]
    """The error for an id that is no node."""


class WalkSeed(NamedTuple):
    """The values that the random numbers of a call are a function of."""

    seed: int
    epoch: int
    batch: int

    def generator(self) -> torch.Generator:
        """A generator of random numbers on the CPU, for numbers that the engine does not draw."""
        text = b"stop %d %d %d" % self
        digest = hashlib.blake2b(text, digest_size=8).digest()
        return torch.Generator().manual_seed(int.from_bytes(digest, "little") >> 1)


def is_hetero(g: Any) -> bool:
    return len(g.ntypes) != 1 or len(g.canonical_etypes) != 1


def steps_of(g: Any, metapath: Sequence[Any] | None, length: int | None) -> tuple[Any, list[int]]:
    """The id of the edge type of each step, and that of the node type at each place."""
    if metapath is None:
        if is_hetero(g):
            raise DGLValueError(
                f"metapath: expected one for a graph of {len(g.ntypes)} node types and "
                f"{len(g.canonical_etypes)} edge types, got None"
            )
        if length is None:
            raise ValueError("length: expected a number of steps, or a metapath, got neither")
        steps = integer(length, "length", 0, 1 << 20)
        return [0] * steps, [0] * (steps + 1)
    if g.is_block:
        raise NotImplementedError("g: expected a graph, got a block, which walks do not take")
    if isinstance(metapath, str) or not isinstance(metapath, Sequence):
        raise TypeError(f"metapath: expected a list of edge types, got {describe(metapath)}")
    # Most metapaths repeat a few types, and DGL looks each up for some microseconds.
    known = {etype: g.get_etype_id(etype) for etype in dict.fromkeys(metapath)}
    ends = {}
    for etype in known.values():
        before, _, after = g.canonical_etypes[etype]
        ends[etype] = g.get_ntype_id(before), g.get_ntype_id(after)
    path = [known[etype] for etype in metapath]
    if not path:
        raise DGLValueError("metapath: expected at least one edge type, got none")
    types: list[int] = []
    for i, etype in enumerate(path):
        here, there = ends[etype]
        if types and types[-1] != here:
            raise DGLValueError(
                f"metapath[{i}]: expected an edge type from {g.ntypes[types[-1]]!r}, where "
                f"metapath[{i - 1}] leads, got {g.canonical_etypes[etype]!r}"
            )
        types = types or [here]
        types.append(there)
    return path, types


def pattern_of(path: list[int]) -> list[int]:
    """The shortest beginning of the path that makes all of it, again from its first on."""
    for size in range(1, min(len(path), _LONGEST_PATTERN) + 1):
        if all(path[i] == path[i - size] for i in range(size, len(path))):
            return path[:size]
    raise NotImplementedError(
        f"metapath: expected at most {_LONGEST_PATTERN} steps, or a pattern of so many that "
        f"repeats, got {len(path)} without one"
    )


def nodes_of(g: Any, nodes: Any, where: str = "nodes") -> torch.Tensor:
    """Returns ids unchanged, or a list of ids as a tensor on the device of ``g``."""
    ids = as_ids(nodes, where)
    return ids if isinstance(nodes, torch.Tensor) else ids.to(g.device)


def starts_of(
    g: Any, joint: HomogeneousIds, ids: torch.Tensor, ntype: int, where: str = "nodes"
) -> torch.Tensor:
    """Converts ids of nodes of one type to ids of the merged graph."""
    count = g.num_nodes(g.ntypes[ntype])
    wrong = (ids < 0) | (ids >= count)
    if wrong.any():
        at = int(wrong.nonzero()[0])
        raise DGLIndexError(
            f"{where}[{at}]: expected an id of {g.ntypes[ntype]!r} in [0, {count}), "
            f"got {int(ids[at])}"
        )
    first = joint.first_node[ntype]
    return ids.long() + first if first else ids


def walk_seed(ids: torch.Tensor, seed: int | None) -> WalkSeed:
    """Returns the random numbers of a call with that seed, or new ones."""
    if seed is not None:
        return WalkSeed(resolve_seed(seed), 0, batch_number_of_ids(ids.cpu()))
    # The number comes from torch's generator, so that torch.manual_seed repeats calls, each call
    # differs from the one before, and workers, which torch seeds, differ from one another.
    drawn = int(torch.empty((), dtype=torch.int64).random_())
    return WalkSeed(fresh_seed(), (drawn >> MAX_BATCH.bit_length()) & MAX_EPOCH, drawn & MAX_BATCH)


@lru_cache(maxsize=64)
def _sampler(kind: type[RandomWalk], seed: int, options: tuple[tuple[str, Any], ...]) -> RandomWalk:
    return kind(**dict(options), seed=seed)


def walks_of(
    kind: type[RandomWalk], graph: Any, ids: torch.Tensor, walk_seed: WalkSeed, **options: Any
) -> Any:
    """Returns what a sampler of that kind makes in one call, in torch's tensors."""
    listed = {k: tuple(v) if isinstance(v, list) else v for k, v in options.items()}
    sampler = _sampler(kind, walk_seed.seed, tuple(listed.items()))
    return engine_batch(sampler, graph, ids, walk_seed.epoch, walk_seed.batch)


def as_dgl_errors(nodes: str = "nodes") -> ErrorConversion:
    """Errors of ids and values as errors of DGL's too, by the names of its arguments."""

    def convert(error: Exception) -> Exception | None:
        if isinstance(error, IndexError):
            return DGLIndexError(_renamed(error, nodes))
        if isinstance(error, ValueError):
            return DGLValueError(_renamed(error, nodes))
        return None

    return ErrorConversion(convert)


def _renamed(error: Exception, nodes: str) -> str:
    text = str(error)
    for name in ("seed_nodes", "seeds"):
        if text.startswith((f"{name}:", f"{name}[")):
            return f"{nodes}{text[len(name) :]}"
    return text
