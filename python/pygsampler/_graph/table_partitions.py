"""Rows in files: partitions of them by number, and arrays that are written piece by piece."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pygsampler._arrays.array import Array, as_array
from pygsampler._graph.file_sections import SectionWriter
from pygsampler._graph.table_sources import text_buffers

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

__all__ = ["Partitions", "StoredArray", "key_hashes"]

# Bytes of a stored array that are read at a time.
_PIECE = 4 << 20
# Bytes of a key beyond which it has no more influence on its hash.
_HASHED = 1 << 12
# Odd numbers whose bits are those of the golden ratio, and of MurmurHash3's finalizer.
_GOLDEN, _MIXER = 0x9E3779B97F4A7C15, 0xFF51AFD7ED558CCD


class Partitions:
    """Rows of Arrow columns, split into files by a number that each row has.

    The rows of a file have the order in which they were added. A file is a stream of Arrow's IPC
    format, and no file is open between two calls, so that there may be thousands of them.
    """

    def __init__(self, folder: str, count: int) -> None:
        os.mkdir(folder)
        self.folder, self.count = folder, count
        # The number of rows of each file.
        self.rows = [0] * count

    def add(self, files: Numbers, columns: dict[str, Any]) -> None:
        """Adds rows; ``files`` has the number of the file of each, from 0."""
        import numpy as np
        import pyarrow as pa

        if not len(files):
            return
        batch = pa.RecordBatch.from_pydict(columns)
        if self.count == 1:
            self._write(0, batch)
            return
        # NumPy sorts 16 bits by their digits.
        numbers = files.astype(np.uint16)
        order = np.argsort(numbers, kind="stable")
        batch = batch.take(pa.array(order))
        bounds = np.concatenate([[0], np.cumsum(np.bincount(numbers, minlength=self.count))])
        for number in np.flatnonzero(np.diff(bounds)).tolist():
            start, stop = bounds[number : number + 2].tolist()
            self._write(number, batch.slice(start, stop - start))

    def _write(self, number: int, batch: Any) -> None:
        with open(self._path(number), "ab") as file:
            if not file.tell():
                file.write(batch.schema.serialize())
            file.write(batch.serialize())
        self.rows[number] += batch.num_rows

    def _path(self, number: int) -> str:
        return os.path.join(self.folder, str(number))

    def read(self, number: int, most: int) -> Iterator[Any]:
        """Yields the rows of a file as Arrow tables of one chunk, of about ``most`` bytes."""
        import pyarrow as pa

        path = self._path(number)
        if not os.path.exists(path):
            return
        with pa.OSFile(path) as file, pa.ipc.open_stream(file) as reader:
            batches: list[Any] = []
            size = 0
            for batch in reader:
                batches.append(batch)
                size += batch.nbytes
                if size >= most:
                    yield _one_chunk(batches)
                    size = 0
            if batches:
                yield _one_chunk(batches)

    def remove(self, number: int) -> None:
        """Removes a file whose rows are no longer needed."""
        if os.path.exists(self._path(number)):
            os.remove(self._path(number))


def _one_chunk(batches: list[Any]) -> Any:
    """Returns a table of batches, which the list then no longer has."""
    import pyarrow as pa

    table = pa.Table.from_batches(batches)
    batches.clear()
    return table.combine_chunks()


class StoredArray:
    """An array in a file, to which rows are added; their dtype may widen meanwhile.

    ``dtype`` and ``shape`` are those of all rows, with the dtype that has all of theirs.
    """

    def __init__(self, path: str, dtype: str | None = None) -> None:
        self._path = path
        # Dtype and number of the elements that were added with that dtype.
        self._runs: list[tuple[str, int]] = []
        self.dtype = dtype
        self.shape: tuple[int, ...] = (0,)

    def __len__(self) -> int:
        return self.shape[0]

    def add(self, values: Any) -> None:
        """Adds rows of an array, whose further dimensions are those of the first rows."""
        import numpy as np

        rows = np.ascontiguousarray(values)
        if self.dtype is None:
            self.dtype, self.shape = rows.dtype.name, (0, *rows.shape[1:])
        elif self.dtype != rows.dtype.name:
            self.dtype = np.result_type(self.dtype, rows.dtype).name
        if self._runs and self._runs[-1][0] == rows.dtype.name:
            self._runs[-1] = rows.dtype.name, self._runs[-1][1] + rows.size
        else:
            self._runs.append((rows.dtype.name, rows.size))
        self.shape = (self.shape[0] + len(rows), *self.shape[1:])
        with open(self._path, "ab") as file:
            rows.tofile(file)

    def section(self) -> SectionWriter:
        """The array as a section of a graph file."""
        return SectionWriter(self._pieces(), self.dtype or "int64", self.shape)

    def _pieces(self) -> Iterator[Array]:
        import numpy as np

        if not self._runs:
            return
        with open(self._path, "rb") as file:
            for dtype, count in self._runs:
                most = max(_PIECE // np.dtype(dtype).itemsize, 1)
                for start in range(0, count, most):
                    piece = np.fromfile(file, dtype, min(most, count - start))
                    yield as_array(piece.astype(self.dtype, copy=False), self._path)


def key_hashes(keys: Any) -> NDArray[np.uint64]:
    """Returns a hash of each key of an Arrow array without missing ones; equal for equal keys."""
    import numpy as np

    starts, data = _key_bytes(keys)
    lengths = np.diff(starts)
    hashes: NDArray[np.uint64] = lengths.astype(np.uint64) * np.uint64(_GOLDEN)
    # Eight bytes from any place: behind the last key there are some more.
    data = np.concatenate([data, np.zeros(8, np.uint8)])
    words = np.ndarray(len(data) - 7, "<u8", data, strides=(1,))
    masks = np.array([2 ** (8 * size) - 1 for size in range(9)], np.uint64)
    for place in range(0, min(int(lengths.max(initial=0)), _HASHED), 8):
        # Most keys of a column have about the same length.
        rows = np.flatnonzero(lengths > place)
        left = np.minimum(lengths[rows] - place, 8)
        mixed = hashes[rows] ^ (words[starts[:-1][rows] + place] & masks[left])
        mixed *= np.uint64(_GOLDEN)
        hashes[rows] = mixed ^ (mixed >> np.uint64(29))
    for _ in range(2):
        hashes ^= hashes >> np.uint64(33)
        hashes *= np.uint64(_MIXER)
    return hashes


def _key_bytes(keys: Any) -> tuple[Numbers, NDArray[np.uint8]]:
    """Returns where the bytes of each key begin, and where the last ends, and the bytes."""
    import numpy as np
    import pyarrow as pa

    kind = keys.type
    if pa.types.is_boolean(kind):
        keys = keys.cast(pa.uint8())
    elif pa.types.is_floating(kind):
        # Zeros of both signs are alike.
        keys = pa.array(keys.to_numpy(zero_copy_only=False) + 0)
    elif pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        return text_buffers(keys)
    offset, count, width = keys.offset, len(keys), keys.type.bit_width // 8
    data = np.frombuffer(keys.buffers()[-1] or b"", np.uint8)
    return np.arange(count + 1) * width, data[offset * width : (offset + count) * width]
