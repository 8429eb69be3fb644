"""Tables in batches of rows, and streams that are stored to be read again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from pygsampler._graph.table_sources import (
    TableSchema,
    blank_to_missing,
    errors_at,
    file_dataset,
    mixed_types,
)

__all__ = ["RowProgress", "count_missing", "count_rows", "read_batches", "store_stream"]

# Rows of a batch, at least and at most.
_FEWEST, _MOST = 64, 1 << 20
# Bytes that a value of text or of a list counts for.
_VARIABLE = 64


class RowProgress:
    """Rows that were read, of as many as are expected so far; called with the number of more."""

    def __init__(self, report: Callable[[int, int], object]) -> None:
        self._report = report
        self._done = self._total = 0

    def expect(self, more: int) -> None:
        self._total += more

    def __call__(self, more: int) -> None:
        self._done += more
        self._report(self._done, max(self._done, self._total))

    def share(self, size: int) -> Callable[[int, int], object]:
        """Returns a function to call with what is done of work that counts as so many rows."""
        shown = 0

        def report(done: int, total: int) -> None:
            nonlocal shown
            now = size * done // max(total, 1)
            self(now - shown)
            shown = now

        return report


def count_rows(source: Any, read: bool = False) -> int:
    """Returns the number of rows of a table or dataset.

    0 if only reading all of it would tell, unless ``read`` allows that.
    """
    import pyarrow as pa
    import pyarrow.dataset as ds

    if isinstance(source, pa.Table):
        return int(source.num_rows)
    known = isinstance(getattr(source, "format", None), (ds.ParquetFileFormat, ds.IpcFileFormat))
    return int(source.count_rows()) if read or known else 0


def count_missing(source: Any, name: str, column: str) -> int:
    """Returns how many rows of a table or dataset, called ``name``, lack a value in a column.

    Rows of files are read in batches, where the statistics of Parquet do not tell.
    """
    import pyarrow as pa
    import pyarrow.dataset as ds

    if isinstance(source, pa.Table):
        source = ds.dataset(source.select([column]))
    with errors_at(f"tables[{name!r}]"):
        missing = ds.field(column).is_null(nan_is_null=True)
        return int(source.count_rows(filter=missing, **_scan_options(source)))


def read_batches(
    source: Any, name: str, columns: Sequence[str], schema: TableSchema, most: int
) -> Iterator[tuple[int, Any]]:
    """Yields Arrow tables of about ``most`` bytes with columns of a source, one at least.

    Before each stands the number of its first row.
    """
    import pyarrow as pa

    first = 0
    rows = min(max(most // _row_bytes(source.schema, columns), _FEWEST), _MOST)
    pieces: Iterator[Any]
    if isinstance(source, pa.Table):
        table = source.select(columns)
        pieces = (table.slice(at, rows) for at in range(0, max(len(table), 1), rows))
    else:
        pieces = _dataset_batches(source, f"tables[{name!r}]", list(columns), rows, most)
    for piece in pieces:
        yield first, blank_to_missing(source, piece, schema)
        first += len(piece)


def _row_bytes(schema: Any, columns: Sequence[str]) -> int:
    return sum(_value_bytes(schema.field(name).type) for name in columns)


def _value_bytes(kind: Any) -> int:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return _value_bytes(kind.value_type)
    if pa.types.is_fixed_size_list(kind):
        return int(kind.list_size * _value_bytes(kind.value_type))
    try:
        return max(int(kind.bit_width) // 8, 1)
    except ValueError:
        return _VARIABLE


def _dataset_batches(
    source: Any, where: str, columns: list[str], batch_size: int, most: int
) -> Iterator[Any]:
    """The rows of a dataset as tables, of many small files together."""
    import pyarrow as pa

    with errors_at(where):
        scanner = source.scanner(columns=columns, batch_size=batch_size, **_scan_options(source))
        batches: list[Any] = []
        count = size = 0
        for batch in scanner.to_batches():
            # Batches without rows may have categories.
            if batch.num_rows and (count >= batch_size or (count and size >= most)):
                piece = pa.Table.from_batches(batches, scanner.projected_schema)
                batches, count, size = [], 0, 0
                yield piece
            batches.append(batch)
            count += batch.num_rows
            size += batch.nbytes
        yield pa.Table.from_batches(batches, scanner.projected_schema)


def _scan_options(source: Any) -> dict[str, Any]:
    """Returns how a dataset is read so that little of it is in memory at a time."""
    import pyarrow.dataset as ds

    # Threads would decode up to a gigabyte ahead of a slower reader.
    options = {"batch_readahead": 1, "fragment_readahead": 1, "use_threads": False}
    if isinstance(getattr(source, "format", None), ds.ParquetFileFormat):
        # Else a row group is held as a whole, as the file has it.
        options["fragment_scan_options"] = ds.ParquetFragmentScanOptions(
            use_buffered_stream=True, pre_buffer=False
        )
    return options


def store_stream(folder: str, tables: Iterable[Any], where: str, progress: RowProgress) -> Any:
    """Writes the rows of a stream, as Arrow tables, to a new folder; returns their dataset.

    Its columns have the types that all tables have together. A table whose columns are called
    alike, which is an error of the caller, is returned as it is.
    """
    import pyarrow as pa

    os.mkdir(folder)
    writer = written = whole = None
    number = 0
    try:
        for table in tables:
            schema = table.schema
            if len(set(schema.names)) < len(schema.names):
                return table
            # A file has one dictionary for each column.
            coded = any(pa.types.is_dictionary(kind) for kind in schema.types)
            if writer is None or coded or schema != written:
                if writer is not None:
                    writer.close()
                try:
                    both = [schema] if whole is None else [whole, schema]
                    whole = pa.unify_schemas(both, promote_options="permissive")
                except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
                    raise mixed_types(where, error) from None
                path = os.path.join(folder, f"{number:09}.arrow")
                writer, written = pa.ipc.new_file(path, schema), schema
                number += 1
            writer.write_table(table)
            if coded and not len(table):
                # Arrow writes no batch of it, and so no dictionaries.
                arrays = [(c.chunks or [pa.array([], c.type)])[0] for c in table.columns]
                writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
            progress.expect(len(table))
            progress(len(table))
    finally:
        if writer is not None:
            writer.close()
    return file_dataset(folder, where)
