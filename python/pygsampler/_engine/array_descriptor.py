"""``Row``: where an array of a result lies."""

from __future__ import annotations

from typing import NamedTuple


class ArrayDescriptor(NamedTuple):
    """Descriptor of an array of a result: positions of words in the header of the result.

    ``bits`` is the word with the width of its integers, or its dtype where that is always the same;
    ``length`` is the word with the number of elements, to which ``more`` is added; ``offset`` is
    the word with its begin, in bytes from the start: 0 where the result has no such array.
    """

    name: str
    bits: int | str
    length: int
    more: int
    offset: int


def dense_shape(length: int, width: int) -> tuple[int, int]:
    """Returns the shape of rows of ``width - 1`` numbers each, ``length`` numbers in all."""
    return (length // max(width - 1, 1), width - 1)
