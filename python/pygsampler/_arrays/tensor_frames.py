"""The tensors of PyTorch Frame's ``TensorFrame`` that have a row for each row of its table."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Mapping
from typing import Any

__all__ = [
    "FrameRows",
    "frame_on",
    "frame_tables",
    "is_tensor_frame",
    "row_tensors",
    "with_row_tensors",
]

# The target of a frame, among the tensors that are called by their kinds.
_TARGET = "y"


def is_tensor_frame(value: Any) -> bool:
    """True for a ``torch_frame.TensorFrame``; imports nothing: whoever has one has imported it."""
    frames = sys.modules.get("torch_frame")
    return frames is not None and isinstance(value, frames.TensorFrame)


def row_tensors(frame: Any) -> dict[str, Any]:
    """Returns the tensors [num_rows, ...] of a frame, by the names of their kinds, and ``y``.

    The tensor of embeddings is ``values`` of a ``MultiEmbeddingTensor``, whose offsets are by
    column. Rows of several lengths, as of ``multicategorical``, have no such tensor.
    """
    found = {
        kind.value: _values(feature)
        for kind, feature in frame.feat_dict.items()
        if _has_rows(feature)
    }
    return {**found, _TARGET: frame.y} if _has_rows(frame.y) else found


def with_row_tensors(frame: Any, tensors: Mapping[str, Any]) -> Any:
    """Returns a copy of a frame with other ``row_tensors``."""
    found = copy.copy(frame)
    if frame._num_rows is not None and tensors:
        found._num_rows = len(next(iter(tensors.values())))
    if _TARGET in tensors:
        found.y = tensors[_TARGET]
    for kind, feature in frame.feat_dict.items():
        values = tensors.get(kind.value)
        if values is not None and hasattr(feature, "offset"):
            embeddings = copy.copy(feature)
            embeddings.values, embeddings.num_rows = values, len(values)
            values = embeddings
        if values is not None:
            found.feat_dict[kind] = values
    return found


def frame_tables(frame: Any, where: str) -> dict[str, Any]:
    """Returns the ``row_tensors`` of a frame, of which a loader reads rows.

    ValueError for a frame without columns, and for one with rows of several lengths.
    """
    tensors = row_tensors(frame)
    nested = [
        name
        for kind, feature in frame.feat_dict.items()
        if not _has_rows(feature)
        for name in frame.col_names_dict[kind]
    ]
    if nested or not tensors:
        got = f"{', '.join(nested)}, of several lengths" if nested else "none"
        raise ValueError(
            f"{where}: expected a TensorFrame with columns that have as many values in each row, "
            f"got {got}; data[type].tf of pygsampler.pyg.NeighborLoader takes any"
        )
    return tensors


def frame_on(frame: Any, device: Any) -> Any:
    """Returns a frame for ``FrameRows`` whose rows will be on a device: its offsets are there."""
    found = with_row_tensors(frame, {})
    for kind, feature in frame.feat_dict.items():
        if hasattr(feature, "offset"):
            found.feat_dict[kind] = copy.copy(feature)
            found.feat_dict[kind].offset = feature.offset.to(device)
    return found


class FrameRows:
    """Makes a frame of the rows of another one's tensors, which are read one by one.

    ``attach`` gets the frame when the last of them is there.
    """

    __slots__ = ("_attach", "_frame", "_missing", "_rows")

    def __init__(self, frame: Any, attach: Callable[[Any], None]) -> None:
        self._frame, self._attach = frame, attach
        self._missing, self._rows = set(row_tensors(frame)), dict[str, Any]()

    def add(self, name: str, values: Any) -> None:
        """Takes the rows of a tensor, by its name in ``row_tensors``, or by one that ends so."""
        part = name.rpartition(".")[2]
        self._rows[part] = values
        self._missing.discard(part)
        if not self._missing:
            self._attach(with_row_tensors(self._frame, self._rows))


def _values(feature: Any) -> Any:
    return feature.values if hasattr(feature, "offset") else feature


def _has_rows(feature: Any) -> bool:
    """True for a tensor, and for a ``MultiEmbeddingTensor``: a row's values stand together."""
    if feature is None or isinstance(feature, dict):
        return False
    frames = sys.modules["torch_frame"]
    return not isinstance(feature, frames.data.MultiNestedTensor)
