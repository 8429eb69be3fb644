"""The tensors of PyTorch Frame's ``TensorFrame`` that have a row for each row of its table."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["FrameRows", "is_tensor_frame", "nested_columns", "row_tensors", "with_row_tensors"]


def is_tensor_frame(value: Any) -> bool:
    """True for a ``torch_frame.TensorFrame``; imports nothing: whoever has one has imported it."""
    frames = sys.modules.get("torch_frame")
    return frames is not None and isinstance(value, frames.TensorFrame)


def row_tensors(frame: Any) -> list[Any]:
    """Returns the tensors [num_rows, ...] of a frame: numbers, categories, times, embeddings, y.

    Those of embeddings are ``values`` of a ``MultiEmbeddingTensor``, whose offsets are by column.
    """
    found = [_values(feature) for feature in frame.feat_dict.values() if _has_rows(feature)]
    return [*found, frame.y] if _has_rows(frame.y) else found


def with_row_tensors(frame: Any, tensors: Sequence[Any]) -> Any:
    """Returns a copy of a frame with other ``row_tensors``, in their order."""
    found, rest = copy.copy(frame), list(tensors)
    if frame._num_rows is not None and rest:
        found._num_rows = len(rest[0])
    if _has_rows(frame.y):
        found.y = rest.pop()
    waiting = iter(rest)
    for kind, feature in frame.feat_dict.items():
        if not _has_rows(feature):
            continue
        values = next(waiting)
        if hasattr(feature, "offset"):
            embeddings = copy.copy(feature)
            embeddings.values, embeddings.num_rows = values, len(values)
            values = embeddings
        found.feat_dict[kind] = values
    return found


class FrameRows:
    """Makes a frame of the rows of another one's tensors, which are read one by one.

    ``attach`` gets the frame when the last of them is there.
    """

    __slots__ = ("_attach", "_frame", "_rows")

    def __init__(self, frame: Any, attach: Callable[[Any], None]) -> None:
        self._frame, self._attach = frame, attach
        self._rows: list[Any] = [None] * len(row_tensors(frame))

    def add(self, place: int, values: Any) -> None:
        """Takes the rows of a tensor, by its place among ``row_tensors``."""
        self._rows[place] = values
        if all(each is not None for each in self._rows):
            self._attach(with_row_tensors(self._frame, self._rows))


def nested_columns(frame: Any) -> list[str]:
    """Returns the columns whose rows have several lengths, which no tensor has by row."""
    found: list[str] = []
    for kind, feature in frame.feat_dict.items():
        if not _has_rows(feature):
            found += frame.col_names_dict[kind]
    return found


def _values(feature: Any) -> Any:
    return feature.values if hasattr(feature, "offset") else feature


def _has_rows(feature: Any) -> bool:
    """True for a tensor, and for a ``MultiEmbeddingTensor``: a row's values stand together."""
    if feature is None or isinstance(feature, dict):
        return False
    frames = sys.modules["torch_frame"]
    return not isinstance(feature, frames.data.MultiNestedTensor)
