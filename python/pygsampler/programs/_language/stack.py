"""``stack``: several values of each edge, or of each node of a list."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

from pygsampler._engine.checks import describe
from pygsampler.programs._language.expressions import Arithmetic, Input


class Stack:
    """Matrices of the same edges, or vectors along the same list: several numbers of each.

    Parameters
    ----------
    values : list of Matrix or of Vector
        The values.
    """

    __slots__ = ("_parts",)

    def __init__(self, values: list[Arithmetic]) -> None:
        self._parts = values

    def __matmul__(self, weights: Any) -> Any:
        """The sum of the parts times weights: an input of 1 dimension, or as many numbers."""
        first = self._parts[0]
        known = isinstance(weights, Input) and len(weights.shape) == 1
        if not (known or isinstance(weights, (list, tuple))) or len(weights) != len(self._parts):
            first._refuse(
                f"@ of {describe(weights)} and a stack of {len(self._parts)} times",
                "expected as many weights",
            )
        scaled = [part * weights[i] for i, part in enumerate(self._parts)]
        return functools.reduce(operator.add, scaled)

    def __len__(self) -> int:
        return len(self._parts)


def stack(parts: Sequence[Arithmetic]) -> Stack:
    """Several values of each edge, or of each node of a list, for ``stack([C, D]) @ W``.

    Parameters
    ----------
    parts : sequence of Matrix, or of Vector
        Matrices of the same edges, or vectors along the same list.

    Returns
    -------
    Stack
        ``@`` with an input of 1 dimension, its ``softmax()``, or as many numbers is the sum of the
        parts times these.
    """
    found = list(parts)
    if not found or not all(isinstance(part, Arithmetic) for part in found):
        kinds = ", ".join(map(describe, found)) or "none"
        raise TypeError(f"stack: expected matrices or vectors of a program, got {kinds}")
    return Stack(found)
