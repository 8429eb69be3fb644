"""``tensor_frames``: the columns of a graph's tables as frames of PyTorch Frame."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from pygsampler._engine.checks import describe
from pygsampler._graph.graph import is_heterogeneous

if TYPE_CHECKING:
    from pygsampler._graph.table_columns import Column

__all__ = ["tensor_frames"]

# The column of a table that has no other, as RelBench calls it.
_CONSTANT = "__const__"


class _Feature(NamedTuple):
    """A column as a frame has it, and its statistics."""

    kind: Any
    values: torch.Tensor
    stats: dict[Any, Any]


def tensor_frames(
    graph: Any, text_embedder: Any = None
) -> tuple[dict[str, Any], dict[str, dict[str, dict[Any, Any]]]]:
    """Returns the columns of a graph of tables as a ``TensorFrame`` for each, and their statistics.

    Frame and statistics are those that ``torch_frame.data.Dataset`` makes of the table, except that
    a category's code is that of ``graph.columns``, and the i-th of ``StatType.COUNT`` has code i.
    Loaders take the frames: ``DataLoader(..., features={"tf": frames})`` gives ``batch.tf``, and
    ``data[type].tf = frame`` gives ``batch[type].tf`` of this module's loaders.

    Parameters
    ----------
    graph : Graph
        A graph of ``Graph.from_tables``, which may have been opened from a file.
    text_embedder : callable or torch_frame.config.TextEmbedderConfig, optional
        Takes a list of n texts, "" for missing ones, and returns a tensor [n, D]. A callable gets
        all texts of a column at once, a configuration with a ``batch_size`` so many. Without it
        text is left out.

    Returns
    -------
    frames : dict of str to TensorFrame
        By table, of N rows, in the order of its nodes: numbers are "numerical", float32 (torch's
        default dtype), NaN for missing ones; categories "categorical", int64, -1 for missing ones;
        times "timestamp", int64, [N, columns, 7], -1 for missing ones; embeddings, and text by its
        embedder, "embedding". A table without columns has one of ones, "__const__", as in RelBench.
    col_stats : dict of str to dict of str to dict of StatType
        By table and column, as encoders of ``torch_frame.nn`` take them.

    Raises
    ------
    TypeError, ValueError
        For a graph without columns, and an embedder that returns anything but rows for its texts.
    ImportError
        Without pytorch-frame.
    """
    try:
        import torch_frame
    except ImportError:
        raise ImportError(
            "tensor_frames: expected pytorch-frame, found none; pip install pytorch-frame"
        ) from None
    columns = graph.columns if is_heterogeneous(graph) else {}
    if not columns:
        raise ValueError(
            "graph: expected a graph of Graph.from_tables with columns, got one without: "
            f"{describe(graph)}"
        )
    embed = getattr(text_embedder, "text_embedder", text_embedder)
    if embed is not None and not callable(embed):
        raise TypeError(
            "text_embedder: expected a function of a list of texts, a TextEmbedderConfig or None, "
            f"got {describe(text_embedder)}"
        )
    frames, col_stats = {}, {}
    for table, count in graph.num_nodes.items():
        found = dict(_features(columns.get(table, {}), table, text_embedder))
        if not found:
            ones = torch.ones(count)
            found = {_CONSTANT: _Feature(torch_frame.numerical, ones, _statistics(ones.numpy()))}
        frames[table] = _frame(found)
        col_stats[table] = {name: each.stats for name, each in found.items()}
    return frames, col_stats


def _features(
    columns: Mapping[str, Column], table: str, text_embedder: Any
) -> Iterator[tuple[str, _Feature]]:
    import numpy as np
    import torch_frame
    from torch_frame.data.stats import StatType

    for name, column in columns.items():
        if column.kind == "text":
            if text_embedder is None:
                continue
            values = _embedded(column.values, text_embedder, f"text_embedder: {table}.{name}")
            stats = {StatType.EMB_DIM: values.shape[1]}
            yield name, _Feature(torch_frame.embedding, values, stats)
            continue
        array = column.values.numpy()
        if column.kind == "number":
            numbers = array.astype(str(torch.get_default_dtype()).removeprefix("torch."))
            values, stats = torch.from_numpy(numbers), _statistics(array.astype(np.float64))
            yield name, _Feature(torch_frame.numerical, values, stats)
        elif column.kind == "category":
            codes = torch.from_numpy(array.astype(np.int64))
            names = list(column.categories or ())
            counts = np.bincount(array[array >= 0], minlength=len(names)).tolist()
            yield name, _Feature(torch_frame.categorical, codes, {StatType.COUNT: (names, counts)})
        elif column.kind == "time":
            yield name, _times(array.view("datetime64[ns]"))
        else:
            values = torch.from_numpy(array.reshape(len(array), -1).copy())
            values = values.to(torch.get_default_dtype())
            stats = {StatType.EMB_DIM: values.shape[1]}
            yield name, _Feature(torch_frame.embedding, values, stats)


def _statistics(values: Any) -> dict[Any, Any]:
    import pandas as pd
    import torch_frame
    from torch_frame.data.stats import compute_col_stats

    found: dict[Any, Any] = compute_col_stats(pd.Series(values), torch_frame.numerical)
    return found


def _times(times: Any) -> _Feature:
    """Returns dates of NumPy as a timestamp, as ``TimestampTensorMapper`` does of pandas'."""
    import numpy as np
    import torch_frame
    from torch_frame.data.stats import StatType

    known = np.sort(times[~np.isnat(times)])
    # The default statistics of PyTorch Frame where all are missing.
    few = known[[0, len(known) // 2, -1]] if len(known) else np.full(3, np.datetime64("NaT", "ns"))
    oldest, median, newest = _calendar(few)
    stats = {
        StatType.YEAR_RANGE: [int(oldest[0]), int(newest[0])],
        StatType.NEWEST_TIME: newest,
        StatType.OLDEST_TIME: oldest,
        StatType.MEDIAN_TIME: median,
    }
    return _Feature(torch_frame.timestamp, _calendar(times), stats)


def _calendar(times: Any) -> torch.Tensor:
    """Returns year, month, day, day of the week, hour, minute and second, int64, [N, 7].

    All but the year begin with 0. Fields of NaT are -1.
    """
    import numpy as np

    years, months, days = (times.astype(f"datetime64[{unit}]") for unit in "YMD")
    seconds = (times.astype("datetime64[s]") - days).astype(np.int64)
    parts = [
        years.astype(np.int64) + 1970,
        (months - years).astype(np.int64),
        (days - months).astype(np.int64),
        # 1970 began with a Thursday.
        (days.astype(np.int64) + 3) % 7,
        seconds // 3600,
        seconds // 60 % 60,
        seconds % 60,
    ]
    found = np.stack(parts, 1)
    found[np.isnat(times)] = -1
    return torch.from_numpy(found)


def _embedded(texts: Any, text_embedder: Any, where: str) -> torch.Tensor:
    """Returns the embeddings of texts on the CPU, by a callable or a configuration of one."""
    embed = getattr(text_embedder, "text_embedder", text_embedder)
    size = getattr(text_embedder, "batch_size", None) or max(len(texts), 1)
    parts = []
    for start in range(0, max(len(texts), 1), size):
        some = [text or "" for text in texts[start : start + size].to_pylist()]
        rows = embed(some)
        if not isinstance(rows, torch.Tensor) or rows.dim() != 2 or len(rows) != len(some):
            got = tuple(rows.shape) if isinstance(rows, torch.Tensor) else describe(rows)
            raise ValueError(f"{where}: expected a tensor [{len(some)}, D], got {got}")
        parts.append(rows.detach().cpu())
    return torch.cat(parts)


def _frame(features: Mapping[str, _Feature]) -> Any:
    """Returns the frame of columns, by the order of their names in each kind."""
    import torch_frame
    from torch_frame.data import MultiEmbeddingTensor

    tensors: dict[Any, Any] = {}
    names: dict[Any, list[str]] = {}
    for name in sorted(features):
        names.setdefault(features[name].kind, []).append(name)
    for kind, of_kind in names.items():
        values = [features[name].values for name in of_kind]
        if kind == torch_frame.embedding:
            tensors[kind] = MultiEmbeddingTensor.from_tensor_list(values)
        else:
            tensors[kind] = torch.stack(values, 1)
    return torch_frame.TensorFrame(tensors, names)
