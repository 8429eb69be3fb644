"""Walks in a file: tables of pyarrow's, NumPy's arrays, or text.

Each kind takes batches of walks one after the other and holds no more than one.
"""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from pygsampler._cli.atomic_file import atomic_write
from pygsampler._cli.edge_table import ARROW, PARQUET

if TYPE_CHECKING:
    from pygsampler._cli.labels import Labels
    from pygsampler.walks.result import Walks

NUMPY = (".npy", ".npz")
TEXT = (".txt",)
# Nodes of a group of rows, at most: a table's lists count them in 31 bits.
_VALUES = 1 << 22
SUFFIXES = PARQUET + ARROW + NUMPY + TEXT
WITH_EDGES = (*PARQUET, *ARROW, ".npz")


class _WalkWriter(Protocol):
    def add(self, walks: Walks[Any]) -> None:
        """Appends a batch that is on the CPU."""

    def finish(self) -> None:
        """Completes the file after the last batch."""

    def close(self) -> None:
        """Gives back what it holds, also after an error."""


def check(suffix: str) -> None:
    """Raises ImportError where a format needs what is not there."""
    import numpy  # noqa: F401

    if suffix in ARROW + PARQUET:
        import pyarrow  # noqa: F401


@contextmanager
def walk_file(
    path: Path, count: int, length: int, metadata: dict[str, Any], labels: Labels, edge_ids: bool
) -> Iterator[Callable[[Walks[Any]], None]]:
    """Yields a writer of batches of walks to the file ``path``, replaced once the block ends well.

    The batches have ``count`` walks of at most ``length`` steps in all. ``metadata`` is stored in a
    table's metadata as JSON, under "pygsampler". ``labels`` are the names of nodes; NumPy's formats
    have the numbers of nodes instead of names.
    """
    with atomic_write(path) as temporary:
        writer: _WalkWriter
        if path.suffix in ARROW + PARQUET:
            writer = _Table(temporary, metadata, labels, edge_ids)
        elif path.suffix == ".npy":
            writer = _Array(temporary, (count, length + 1), lambda walks: _nodes(walks, labels))
        elif path.suffix == ".npz":
            writer = _Archive(temporary, count, length, labels, edge_ids)
        else:
            writer = _Text(temporary, labels)
        try:
            yield writer.add
            writer.finish()
        finally:
            writer.close()


def _nodes(walks: Walks[Any], labels: Labels, *, text: bool = False) -> Any:
    """Returns the labels of nodes, [walks, length + 1], -1 after the end; with ``text`` names."""
    import numpy as np

    nodes = walks.numpy().nodes
    types = walks.node_types
    if types is None:
        return labels.numpy(None, nodes, text=text)
    columns = [labels.numpy(kind, nodes[:, i], text=text) for i, kind in enumerate(types)]
    return np.stack(columns, axis=1)


class _Table:
    """Arrow IPC or Parquet: a row is a walk, a batch is a group of rows."""

    def __init__(
        self, path: Path, metadata: dict[str, Any], labels: Labels, edge_ids: bool
    ) -> None:
        import pyarrow as pa

        columns = [("nodes", pa.list_(pa.string() if labels.text else pa.int64()))]
        if edge_ids:
            columns.append(("edge_ids", pa.list_(pa.int64())))
        self._schema = pa.schema(columns, metadata={"pygsampler": json.dumps(metadata)})
        self._labels, self._edges = labels, edge_ids
        if path.suffix in PARQUET:
            import pyarrow.parquet as pq

            # Ids hardly repeat, as those of sampled edges.
            packed: Any = {"use_dictionary": False, "column_encoding": "DELTA_BINARY_PACKED"}
            self._writer = pq.ParquetWriter(path, self._schema, **({} if labels.text else packed))
        else:
            self._writer = pa.ipc.new_file(str(path), self._schema)

    def add(self, walks: Walks[Any]) -> None:
        import pyarrow as pa

        found = walks.numpy()
        nodes, lengths = _nodes(walks, self._labels, text=True), found.lengths
        edges = found.edge_ids if self._edges else None
        size = max(_VALUES // nodes.shape[1], 1)
        for first in range(0, len(nodes), size):
            part = slice(first, first + size)
            columns = [_lists(pa, nodes[part], lengths[part] + 1)]
            if edges is not None:
                columns.append(_lists(pa, edges[part], lengths[part]))
            self._writer.write_table(pa.table(columns, schema=self._schema))

    def finish(self) -> None:
        self._writer.close()

    def close(self) -> None:
        self._writer.close()


def _lists(pa: Any, padded: Any, lengths: Any) -> Any:
    """The first so many values of each row."""
    import numpy as np

    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    values = padded[np.arange(padded.shape[1]) < lengths[:, None]]
    if values.dtype != object:
        values = values.astype(np.int64)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(values))


class _Array:
    """NumPy's format, of a shape that is known before: rows are appended."""

    def __init__(
        self,
        path: Path,
        shape: tuple[int, ...],
        rows_of_walks: Callable[[Walks[Any]], Any],
        dtype: str = "<i8",
    ) -> None:
        self._file: BinaryIO = open(path, "wb")  # noqa: SIM115 - close() does it
        self._rows, self._dtype = rows_of_walks, dtype
        from numpy.lib import format as numpy_format

        header = {"descr": dtype, "fortran_order": False, "shape": shape}
        numpy_format.write_array_header_1_0(self._file, header)

    def add(self, walks: Walks[Any]) -> None:
        import numpy as np

        rows = np.ascontiguousarray(self._rows(walks), self._dtype)
        self._file.write(rows.data if rows.size else b"")

    def finish(self) -> None:
        self._file.close()

    def close(self) -> None:
        self._file.close()


class _Archive:
    """NumPy's archive: ``nodes``, ``lengths`` and, on request, ``edge_ids``.

    A zip file takes one array after the other, so the later arrays wait in temporary files.
    """

    def __init__(self, path: Path, count: int, length: int, labels: Labels, edge_ids: bool) -> None:
        self._path = path
        self._parts: dict[str, _Array] = {}
        parts: dict[str, tuple[tuple[int, ...], Callable[[Walks[Any]], Any], str]] = {
            "nodes": ((count, length + 1), lambda walks: _nodes(walks, labels), "<i8"),
            "lengths": ((count,), lambda walks: walks.numpy().lengths, "<i4"),
        }
        if edge_ids:
            parts["edge_ids"] = ((count, length), lambda walks: walks.numpy().edge_ids, "<i8")
        try:
            for name, (shape, rows, dtype) in parts.items():
                self._parts[name] = _Array(self._part(name), shape, rows, dtype)
        except BaseException:
            self.close()
            raise

    def _part(self, name: str) -> Path:
        return self._path.with_name(f"{self._path.name}.{name}.npy")

    def add(self, walks: Walks[Any]) -> None:
        for part in self._parts.values():
            part.add(walks)

    def finish(self) -> None:
        with zipfile.ZipFile(self._path, "w", zipfile.ZIP_STORED) as archive:
            for name, part in self._parts.items():
                part.close()
                with (
                    open(self._part(name), "rb") as source,
                    archive.open(f"{name}.npy", "w", force_zip64=True) as target,
                ):
                    shutil.copyfileobj(source, target, 1 << 20)
                self._part(name).unlink()

    def close(self) -> None:
        for name, part in self._parts.items():
            part.close()
            self._part(name).unlink(missing_ok=True)


class _Text:
    """A line is a walk: ids with a blank between them, as word2vec reads them."""

    def __init__(self, path: Path, labels: Labels) -> None:
        self._file = open(path, "w", encoding="utf-8", buffering=1 << 20)  # noqa: SIM115
        self._labels = labels

    def add(self, walks: Walks[Any]) -> None:
        found = walks.numpy()
        rows = _nodes(walks, self._labels, text=True).tolist()
        lengths = (found.lengths + 1).tolist()
        for row, length in zip(rows, lengths, strict=True):
            line = " ".join(map(str, row[:length]))
            # Readers part a line at any whitespace: only a label without it is one word.
            if self._labels.text and line.split() != row[:length]:
                name = next(each for each in row[:length] if each.split() != [each])
                raise ValueError(
                    f"--out: expected names without whitespace, got {name!r}; .parquet and .arrow "
                    "keep walks as lists"
                )
            self._file.write(line + "\n")

    def finish(self) -> None:
        self._file.close()

    def close(self) -> None:
        self._file.close()
