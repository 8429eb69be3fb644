"""Metapaths: edge types one after another, which a caller may also name by their relations."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from pygsampler._engine.checks import describe
from pygsampler._graph.schema import EdgeType, edge_type_of


def metapath_of(metapath: Sequence[Any]) -> tuple[Any, ...]:
    """A caller's metapath as (source type, relation, destination type) and names of relations."""
    path = tuple(tuple(kind) if isinstance(kind, list) else kind for kind in metapath)
    for i, kind in enumerate(path):
        parts = kind if isinstance(kind, tuple) else (kind,)
        if len(parts) not in (1, 3) or not all(isinstance(part, str) for part in parts):
            raise TypeError(
                f"metapath[{i}]: expected (source, relation, destination) or the name of a "
                f"relation, got {describe(kind)}"
            )
    return path


def is_named(path: Sequence[Any]) -> bool:
    """True if only a graph knows the edge types of a metapath."""
    return any(isinstance(kind, str) for kind in path)


def resolved(path: tuple[Any, ...], kinds: Sequence[EdgeType]) -> tuple[EdgeType, ...]:
    """The edge types of a graph that a metapath names.

    Raises
    ------
    ValueError
        For a name that no edge type has, or several have, and for an edge type by two names.
    """
    if not is_named(path):
        return path
    found = tuple(edge_type_of(kind, kinds, f"metapath[{i}]") for i, kind in enumerate(path))
    if len(set(found)) != len(set(path)):
        raise ValueError(f"metapath: expected each edge type by one name, got {list(path)}")
    return found


def check_chain(path: Sequence[EdgeType], against: bool, closed: bool) -> None:
    """Raises ValueError unless each edge type leads from where the one before it leads to.

    If the metapath is ``closed`` the first edge type has to lead from where the last one leads to.
    """
    here, there = (2, 0) if against else (0, 2)
    for i in range(len(path) if closed else len(path) - 1):
        after = (i + 1) % len(path)
        if path[i][there] != path[after][here]:
            raise ValueError(
                f"metapath[{after}]: expected a type of edges from {path[i][there]!r}, where "
                f"metapath[{i}] leads, got {path[after]}"
            )


def columns(path: Sequence[EdgeType], against: bool, steps: int) -> tuple[str, ...]:
    """The type of the node at each place of a walk."""
    here, there = (2, 0) if against else (0, 2)
    kinds = itertools.islice(itertools.cycle(path), steps)
    return path[0][here], *(kind[there] for kind in kinds)
