"""Functions that reverse the order of hops, which options list outermost first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pygsampler._engine.checks import describe, integer

# The largest K, an int32.
_MOST = 2**31 - 1


def innermost_first(counts: Sequence[int], name: str, hops: int = 1) -> Iterator[int]:
    """The numbers from the last to the first, of at least so many hops.

    TypeError, ValueError for what are none.
    """
    if isinstance(counts, (str, bytes)) or not isinstance(counts, Sequence):
        raise TypeError(
            f"{name}: expected a list of int, outermost hop first, got {describe(counts)}"
        )
    checked = [integer(K, f"{name}[{i}]", -1, _MOST) for i, K in enumerate(counts)]
    if len(checked) < hops:
        raise ValueError(f"{name}: expected numbers of at least {hops} hop, got none")
    return reversed(checked)
