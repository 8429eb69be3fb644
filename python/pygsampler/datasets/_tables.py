"""Tables that pyarrow reads, as one Arrow file for the engine.

The engine reads single files of integers by itself. Several files, names as ids and columns of
dates come through pyarrow.dataset, batch by batch, into a temporary file of integers.
"""

from __future__ import annotations

import csv
import gzip
import itertools
import json
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from pygsampler._arrays.datetimes import Kind, as_nanoseconds, as_numpy_dates, is_date_text
from pygsampler._arrays.interning import BYTES, OFFSETS
from pygsampler._engine import library
from pygsampler._engine import memory as memories
from pygsampler._engine.error_conversion import ErrorConversion
from pygsampler._engine.progress import Progress, progress_callback
from pygsampler.datasets import _read_job, _read_options
from pygsampler.datasets._sources import Files

# Errors of the engine about ids that are text, rather than fractions or negative numbers.
_TEXT_IDS = re.compile(
    r"""expected an integer.* got ('(?!"?[-+]?[\d.]*([eE][-+]?\d+)?"?').*'"""
    r"|.* of type (large_)?(utf8|[Ss]tring).*)$"
)

# Rows that are numbered at once; more where there are more names than that.
_ROWS = 1 << 20

# Bytes of text that are held at once.
_PIECE = 1 << 20


class Written(NamedTuple):
    """The temporary file of a table: its path and the plan that the engine reads it by.

    ``names`` are the names that its ids number, as further arrays of a graph's file; ``kinds`` says
    which columns were dates or spans.
    """

    path: str
    plan: dict[str, Any]
    names: dict[str, Any] | None
    kinds: dict[str, Kind]


class Loaded(NamedTuple):
    """Result of reading files: a memory of the engine, or 0 where the graph is in a file.

    ``names`` and ``kinds`` are those of ``Written``.
    """

    memory: memories.Memory | int
    names: dict[str, Any] | None
    kinds: dict[str, Kind]


def load(
    files: Files,
    target: str,
    plan: dict[str, Any],
    progress: Progress,
    words: dict[str, list[str]] | None = None,
) -> Loaded:
    """Reads files into a memory, or into the file ``target``; names of nodes into a memory alone.

    The arguments are those of ``_job.run``. ImportError where pyarrow is needed and is not there.
    """
    if files.one and not _has_spans(files.paths[0], plan):
        try:
            return Loaded(_read_job.run(files.paths[0], target, plan, progress, words), None, {})
        except ValueError as error:
            table = _table_instead(files, plan, error)
    else:
        table = _table_of(files, plan)
    folder = os.path.dirname(os.path.abspath(target)) if target else None
    errors = ErrorConversion(table.reading_error)
    with errors, table.written(folder, progress) as written:
        if written.names is not None:
            target = ""
        memory = _read_job.run(written.path, target, written.plan, progress, words)
        return Loaded(memory, written.names, written.kinds)


def _has_spans(path: str, plan: dict[str, Any]) -> bool:
    """True for Parquet with durations among its arrays, whose units the engine does not know."""
    columns = [each["column"] for each in plan["data"] if not each.get("words")]
    if plan["format"] != "parquet" or not columns:
        return False
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        return False
    try:
        schema = pq.read_schema(path)
    except (pa.ArrowException, OSError):
        # The engine says what is wrong.
        return False
    named = {each.get("name") for each in columns}
    placed = {each.get("index") for each in columns}
    return any(
        pa.types.is_duration(field.type) and (field.name in named or i in placed)
        for i, field in enumerate(schema)
    )


def _table_instead(files: Files, plan: dict[str, Any], error: ValueError) -> Table:
    """The table of a file of names or dates, which the engine refused; else raises ``error``."""
    named = _TEXT_IDS.search(str(error)) is not None
    anew = plan["numbering"] == "always"
    if named and not anew:
        raise ValueError(f"{error}; renumber=True numbers names") from None
    if plan["format"] not in _read_options.TABLES:
        hint = f"; names are read of {', '.join(_read_options.TABLES)}" if named else ""
        raise ValueError(f"{error}{hint}") from None
    if not (anew or plan["data"]):
        raise error
    try:
        table = _table_of(files, plan)
    except ImportError:
        raise ValueError(f"{error}; pip install pyarrow for names and dates") from None
    except ValueError as reason:
        raise reason if named else error from None
    if not (table.has_names or table.kinds):
        raise error
    return table


class Table:
    """The columns of files that a plan wants: the ends of edges, then the arrays over the edges."""

    def __init__(self, files: Files, plan: dict[str, Any]) -> None:
        self._files, self._plan = files, plan
        self._dataset, names = _dataset(files, plan)
        self._schema = self._dataset.schema
        about = {
            "path": files.name,
            "names": names,
            "src": plan["src"],
            "dst": plan["dst"],
        }
        self._ends: list[int] = json.loads(library.call("EdgesEnds", json.dumps(about)))
        self._data = [self._place(column) for column in plan["data"]]
        types = [self._schema.field(place).type for place in self._ends]
        texts = [_is_text(kind) for kind in types]
        self.has_names = any(texts)
        if self.has_names and not all(texts):
            raise TypeError(
                f"{files.name}: expected two columns of names, or of integers, got "
                f"{types[0]} and {types[1]}"
            )
        self.kinds: dict[str, Kind] = {
            column["name"]: kind
            for column, place in zip(plan["data"], self._data, strict=True)
            if not column.get("words") and (kind := self._kind(place))
        }

    @contextmanager
    def written(self, folder: str | None, progress: Progress) -> Iterator[Written]:
        """Writes the table into a temporary file in ``folder``, which goes when the block ends."""
        name = self._files.name
        if self.has_names and self._plan["numbering"] != "always":
            raise ValueError(
                f"{name}: src: expected integers, got names; renumber=True numbers them"
            )
        if self._plan["format"] in ("csv", "tsv"):
            for path in self._files.paths:
                _check_quotes(path, self._dataset.format.parse_options.delimiter)
        names = self._names() if self.has_names else None
        with tempfile.TemporaryDirectory(prefix="pygsampler-", dir=folder) as temporary:
            # Errors of the engine name the file.
            path = os.path.join(temporary, name or "edges")
            self._write(path, names, progress)
            data = [
                {**each, "column": _column_at(2 + i)} for i, each in enumerate(self._plan["data"])
            ]
            ends = {"src": {**_column_at(0), "mixed": True}, "dst": _column_at(1)}
            plan = {**self._plan, **ends, "format": "arrow", "data": data}
            if names is not None:
                plan.update(numbering="never", num_nodes=len(names))
            yield Written(path, plan, None if names is None else _name_arrays(names), self.kinds)

    def reading_error(self, error: Exception) -> Exception | None:
        """Returns the ValueError for an error of Arrow, which comes from the content of files."""
        import pyarrow as pa

        if not isinstance(error, pa.ArrowException) or isinstance(error, MemoryError):
            return None
        return ValueError(f"{self._files.name}: expected tables that can be read, got {error}")

    def _place(self, column: dict[str, Any]) -> int:
        about, names = column["column"], self._schema.names
        where = f"{self._files.name}: edge_data[{column['name']!r}]"
        if "name" not in about:
            if about["index"] >= len(names):
                raise ValueError(
                    f"{where}: expected at least {about['index'] + 1} columns, got {len(names)}"
                )
            return int(about["index"])
        if names.count(about["name"]) != 1:
            listed = ", ".join(names)
            raise ValueError(f"{where}: expected a column {about['name']!r}, got columns {listed}")
        return int(names.index(about["name"]))

    def _kind(self, place: int) -> Kind:
        """Returns the kind of times of a column; texts are dates where the first one is."""
        import pyarrow as pa

        kind = self._schema.field(place).type
        if pa.types.is_duration(kind):
            return "m"
        if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
            return "M"
        if not _is_text(kind):
            return ""
        first = self._dataset.head(1, columns=[self._schema.names[place]]).column(0).to_pylist()
        return "M" if first and first[0] is not None and is_date_text(first[0]) else ""

    def _batches(self, places: list[int]) -> Iterator[Any]:
        names = [self._schema.names[place] for place in places]
        # A column may be both an end and an array.
        for batch in self._dataset.scanner(columns=list(dict.fromkeys(names))).to_batches():
            yield [batch.column(name) for name in names]

    def _names(self) -> Any:
        """All names in ascending order, as one Arrow array."""
        import pyarrow as pa
        import pyarrow.compute as pc

        known, more, row = pa.array([], pa.large_string()), [], 0
        for columns in self._batches(self._ends):
            for side, column in zip(("src", "dst"), columns, strict=True):
                _check_names(column, f"{self._files.name}: row {{}}: {side}", row)
                more.append(pc.unique(_as_text(column)))
            row += len(columns[0])
            if sum(map(len, more)) > 2 * len(known) + _ROWS:
                known, more = pc.unique(pa.chunked_array([known, *more])), []
        known = pc.unique(pa.chunked_array([known, *more]))
        return known.take(pc.sort_indices(known))

    def _write(self, path: str, names: Any, progress: Progress) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        places = [*self._ends, *self._data]
        labels = ["src", "dst", *(column["name"] for column in self._plan["data"])]
        kinds = [self.kinds.get(label) for label in labels[2:]]
        at_once = _ROWS if names is None else max(_ROWS, len(names))
        total, done, row = sum(map(os.path.getsize, self._files.paths)), 0, 0
        writer: Any = None
        with progress_callback(progress, f"reading {self._files.name}") as report:
            try:
                for columns in _in_larger_batches(self._batches(places), at_once):
                    ends = columns[:2]
                    if names is not None:
                        ends = [pc.index_in(_as_text(end), value_set=names) for end in ends]
                        ends = [end.cast(pa.int64()) for end in ends]
                    data = [
                        self._values(label, column, kind, row)
                        for label, column, kind in zip(labels[2:], columns[2:], kinds, strict=True)
                    ]
                    batch = pa.record_batch(
                        [*ends, *data], [self._label(i, label) for i, label in enumerate(labels)]
                    )
                    if writer is None:
                        writer = pa.ipc.new_stream(path, batch.schema)
                    writer.write_batch(batch)
                    row += batch.num_rows
                    done += batch.nbytes
                    report(min(done, total), total)
                if writer is None:
                    fields = [pa.array([], pa.int64())] * len(labels)
                    empty = pa.record_batch(
                        fields, [self._label(i, label) for i, label in enumerate(labels)]
                    )
                    writer = pa.ipc.new_stream(path, empty.schema)
            finally:
                if writer is not None:
                    writer.close()

    def _label(self, i: int, label: str) -> str:
        return str(self._schema.names[self._ends[i]]) if i < 2 else f"edge_data.{label}"

    def _values(self, label: str, column: Any, kind: Kind | None, first_row: int) -> Any:
        """An array over the edges as the engine takes it."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if kind is None:
            text = self._plan["format"] in ("csv", "tsv")
            numbers = text and not _is_text(column.type) and label not in _words(self._plan)
            return pc.cast(column, pa.float64(), safe=False) if numbers else column
        where = f"{self._files.name}: edge_data[{label!r}]"
        if column.null_count:
            place = first_row + column.is_null().index(True).as_py()
            raise ValueError(f"{self._files.name}: row {place}: {where}: expected a time, got null")
        return pa.array(as_nanoseconds(as_numpy_dates(column, where), where), pa.int64())


def _table_of(files: Files, plan: dict[str, Any]) -> Table:
    """Returns the table of several files, or of names; ImportError without pyarrow."""
    try:
        import pyarrow.dataset  # noqa: F401
    except ImportError:
        raise ImportError(
            f"source: expected pyarrow for {files.name}, which the engine does not read by itself, "
            "found none; pip install pyarrow"
        ) from None
    return Table(files, plan)


def _dataset(files: Files, plan: dict[str, Any]) -> tuple[Any, list[str]]:
    """The files as pyarrow reads them, and the names of columns, "" where they have none."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    format_: Any = plan["format"]
    bare = False
    if format_ in ("csv", "tsv"):
        format_, bare = _text_format(files, format_)
    try:
        about: dict[str, Any] = {"format": format_, "partitioning": "hive"}
        found = ds.dataset(list(files.paths), **about)
        if not files.one:
            found = ds.dataset(list(files.paths), schema=_schema_of(found), **about)
    except pa.ArrowMemoryError:
        raise
    except pa.ArrowException as error:
        raise ValueError(f"{files.name}: expected tables that can be read, got {error}") from None
    names = found.schema.names
    return found, [""] * len(names) if bare else names


def _schema_of(dataset: Any) -> Any:
    """The columns of the first file, in types that hold the values of all files."""
    import pyarrow as pa

    schema = dataset.schema
    for fragment in dataset.get_fragments():
        for field in fragment.physical_schema:
            place = schema.get_field_index(field.name)
            if place < 0 or schema.field(place).type == field.type:
                continue
            both = [pa.schema([schema.field(place)]), pa.schema([field])]
            try:
                joined = pa.unify_schemas(both, promote_options="permissive")
            except pa.ArrowException:
                # Whoever reads the column is told; others need not agree on it.
                continue
            schema = schema.set(place, joined.field(0))
    return schema


def _text_format(files: Files, kind: str) -> tuple[Any, bool]:
    """Returns the format of text files, by the first lines of one, and True if they have no header.

    The rules are those of the engine: comments before the header are skipped, a header has no
    numbers, and the fields of CSV are between commas, semicolons, tabs or bars.
    """
    import pyarrow.dataset as ds
    from pyarrow.csv import ParseOptions, ReadOptions

    path = files.paths[0]
    opened: Any = gzip.open if path.endswith(".gz") else open
    skipped, first = 0, ""
    with opened(path, "rt", encoding="utf-8-sig", errors="replace") as lines:
        for line in lines:
            if line.strip() and not line.startswith("#"):
                first = line
                break
            skipped += 1
    marks = [mark for mark in (",;\t|" if kind == "csv" else "\t") if mark in first]
    mark = marks[0] if marks else ("," if kind == "csv" else "\t")
    fields = [field.strip().strip('"') for field in first.split(mark)]
    bare = any(field[:1] and field[0] in "+-.0123456789" for field in fields)
    if skipped and files.one:
        # A dataset looks for names in the first line of all, unless it is given them.
        names = [f"f{i}" for i in range(len(fields))] if bare else fields
        options = ReadOptions(skip_rows=skipped + (not bare), column_names=names)
    else:
        options = ReadOptions(skip_rows=skipped, autogenerate_column_names=bare)
    return ds.CsvFileFormat(ParseOptions(delimiter=mark), read_options=options), bare


def _check_quotes(path: str, mark: str) -> None:
    """Raises ValueError for a quote that never ends, behind which pyarrow passes over rows."""
    opened: Any = gzip.open if path.endswith(".gz") else open
    with opened(path, "rb") as file:
        # An even number of quotes in all pieces of whole lines is nearly always right.
        while piece := file.read(_PIECE):
            if (piece + file.readline(_PIECE)).count(b'"') % 2:
                break
        else:
            return
    end, ended = ["end"], False
    start = behind = 1
    with opened(path, "rt", encoding="utf-8-sig", errors="replace", newline="") as lines:
        rows = csv.reader(itertools.chain(lines, end), delimiter=mark)
        try:
            for row in rows:
                start, behind, ended = behind, rows.line_num + 1, row == end
        except csv.Error:
            # The field is longer than any should be.
            start, ended = behind, False
    if not ended:
        raise ValueError(
            f"{os.path.basename(path)}:{start}: expected a closing quote, got the end of the file"
        )


def _in_larger_batches(batches: Iterator[Any], min_rows: int) -> Iterator[list[Any]]:
    """Columns of batches, joined where these are small."""
    import pyarrow as pa

    held: list[Any] = []
    for columns in batches:
        if len(columns[0]):
            held.append(columns)
        if sum(len(each[0]) for each in held) >= min_rows:
            yield [pa.concat_arrays(parts) for parts in zip(*held, strict=True)]
            held = []
    if held:
        yield [pa.concat_arrays(parts) for parts in zip(*held, strict=True)]


def _column_at(place: int) -> dict[str, Any]:
    return {"index": place, "given": True}


def _words(plan: dict[str, Any]) -> list[str]:
    return [column["name"] for column in plan["data"] if column.get("words")]


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _as_text(column: Any) -> Any:
    import pyarrow as pa

    return column.cast(pa.large_string())


def _check_names(column: Any, where: str, first_row: int) -> None:
    """Raises ValueError for a name that is missing; ``where`` has the place of its row."""
    import pyarrow.compute as pc

    missing = pc.or_kleene(column.is_null(), pc.equal(_as_text(column), ""))
    if pc.any(missing).as_py():
        raise ValueError(
            f"{where.format(first_row + missing.index(True).as_py())}: expected a name, got none"
        )


def _name_arrays(names: Any) -> dict[str, Any]:
    """Returns names as further arrays of a graph's file: their bytes, and their offsets."""
    import numpy as np

    _, offsets, text = names.buffers()
    starts = np.frombuffer(offsets, np.int64, len(names) + 1, 8 * names.offset).copy()
    content = np.frombuffer(text, np.uint8)[starts[0] : starts[-1]] if text else np.zeros(0, "u1")
    return {OFFSETS: starts - starts[0], BYTES: content.copy()}
