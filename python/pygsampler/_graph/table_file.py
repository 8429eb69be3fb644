"""Graph files from tables that are larger than memory."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from pygsampler._arrays.interning import BYTES, IDS, OFFSETS
from pygsampler._engine.checks import integer
from pygsampler._engine.error_conversion import ErrorConversion
from pygsampler._engine.memory import free_memory
from pygsampler._engine.progress import Progress, progress_callback
from pygsampler._graph import named_arrays as graph_data
from pygsampler._graph.construction import node_arrays
from pygsampler._graph.file import as_path, write_hetero_sections
from pygsampler._graph.file_writer import require_folder
from pygsampler._graph.schema import check_relations, node_count
from pygsampler._graph.table_batches import RowProgress, count_rows, read_batches, store_stream
from pygsampler._graph.table_columns import (
    VALID,
    Categories,
    column_arrays,
    packed_marks,
    text_column,
    valid_marks,
)
from pygsampler._graph.table_conversion import (
    MissingValuesError,
    check_unmatched,
    column_kinds,
    lengths_error,
    link_types,
    node_arrays_of,
)
from pygsampler._graph.table_edges import (
    KeyPartitions,
    Link,
    Repetitions,
    Workspace,
    repetitions,
    store_relations,
)
from pygsampler._graph.table_keys import (
    SharedType,
    check_comparable,
    key_labels,
    key_values,
    label_kind,
    refuse_missing_key,
    refuse_repeated_keys,
    refuse_rounded,
    report_unmatched,
    rounded_key,
)
from pygsampler._graph.table_partitions import StoredArray
from pygsampler._graph.table_schema import schemas_of
from pygsampler._graph.table_sources import (
    TableSchema,
    open_tables,
    text_buffers,
    wanted_columns,
)

if TYPE_CHECKING:
    from pygsampler._graph.schema import EdgeType
    from pygsampler._graph.table_columns import ColumnKind

__all__ = ["write_table_graph"]

# The end of the names of temporary folders, the letters before it that tempfile chooses, and the
# seconds after which a folder without a lock has no process that is about to lock it.
_END, _RANDOM, _ABANDONED = ".tmp", 8, 60


def write_table_graph(
    tables: Any, schema: Any, unmatched: Any, out: Any, memory: Any, progress: Progress
) -> str:
    """Writes the graph of tables to a file, as ``Graph.from_tables`` describes it.

    Returns the path of the file. Keys, edges and columns are in files of a temporary folder, in the
    folder of ``out``, meanwhile.
    """
    check_unmatched(unmatched)
    path = as_path(out, "out")
    most = free_memory() // 2 if memory is None else integer(memory, "memory", 1)
    require_folder(path)
    with (
        _temporary_folder(path) as files,
        progress_callback(progress, "reading tables", "rows") as report,
    ):
        rows = RowProgress(report)
        reader = _TableReader(tables, schema, unmatched, Workspace(files, most, rows), rows)
        relations = reader.relations()
        nodes, arrays = reader.nodes, reader.arrays
        sections = {name: {at: a.section() for at, a in of.items()} for name, of in arrays.items()}
        write_hetero_sections(path, nodes, relations, sections, rows.share(sum(nodes.values())))
    return path


@contextmanager
def _temporary_folder(path: str) -> Iterator[str]:
    """A temporary folder in the folder of a file; folders of killed processes are removed.

    It is locked meanwhile. If the system does not lock folders, the folders of killed processes
    stay.
    """
    folder, name = os.path.split(os.path.realpath(path))
    start = f".{os.fsdecode(os.fsencode(name)[:200])}."
    for other in os.scandir(folder):
        own = other.name.startswith(start) and other.name.endswith(_END)
        if own and len(other.name) == len(start) + _RANDOM + len(_END) and other.is_dir():
            with suppress(OSError), _locked(other.path):
                if time.time() - other.stat().st_mtime > _ABANDONED:
                    shutil.rmtree(other.path)
    with TemporaryDirectory(_END, start, folder) as made, ExitStack() as stack:
        with suppress(OSError):
            stack.enter_context(_locked(made))
        yield made


@contextmanager
def _locked(folder: str) -> Iterator[None]:
    """Holds the lock of a folder; OSError if another process does."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


class _Key(NamedTuple):
    """A column of keys: its type, rows and bytes, and errors that it has as a primary key.

    ``labels`` is the kind of the labels of all rows, None for keys that cannot be compared.
    ``missing`` is the first row without a key, and ``rounded`` the largest float that may have been
    rounded.
    """

    kind: Any
    rows: int
    size: int
    labels: int | None
    missing: int | None
    rounded: float | None


def _add_texts(arrays: dict[str, StoredArray], starts: Any, text: Any, work: Workspace) -> None:
    """Adds texts, as ``text_buffers`` has them, to those that are there."""
    if arrays:
        starts = starts[1:] + len(arrays[BYTES])
    for part, values in ((OFFSETS, starts), (BYTES, text)):
        if part not in arrays:
            arrays[part] = work.array()
        arrays[part].add(values)


class _StoredText:
    """A column of text in files."""

    def __init__(self, work: Workspace) -> None:
        self._work = work
        self._arrays: dict[str, StoredArray] = {}
        self._marks = work.array()
        self._missing = 0
        # Marks of the last rows, too few for a byte.
        self._rest: Any = ()

    def add(self, column: Any, where: str) -> None:
        import numpy as np

        text = text_column(column, where)
        _add_texts(self._arrays, *text_buffers(text), self._work)
        self._missing += text.null_count
        marks = np.concatenate([np.array(self._rest, bool), valid_marks(text)])
        full = len(marks) // 8 * 8
        self._marks.add(packed_marks(marks[:full]))
        self._rest = marks[full:]

    def arrays(self) -> dict[str, StoredArray]:
        """Returns the arrays of ``column_parts``, after the last rows were added."""
        if not self._missing:
            return self._arrays
        self._marks.add(packed_marks(self._rest))
        return {**self._arrays, VALID: self._marks}


class _TableReader:
    """The sections of the graph of tables, read in batches.

    ``nodes`` has the number of rows of each table, and ``arrays`` the arrays of its nodes by the
    names of their sections.
    """

    def __init__(
        self, tables: Any, schema: Any, unmatched: str, work: Workspace, progress: RowProgress
    ) -> None:
        self._work, self._unmatched, self._progress = work, unmatched, progress
        self._keys: dict[str, _Key] = {}
        # The keys of each table in a type.
        self._partitions: dict[tuple[str, Any], KeyPartitions] = {}
        self._sources = open_tables(tables, self._store)
        self._schemas = schemas_of(schema, self._sources, self._is_unique)
        self._types = link_types(self._schemas)
        check_relations(dict.fromkeys(kind for kinds in self._types.values() for kind in kinds))
        self.nodes: dict[str, int] = dict.fromkeys(self._sources, 0)
        self.arrays: dict[str, dict[str, StoredArray]] = {name: {} for name in self._sources}

    def relations(self) -> dict[EdgeType, dict[str, Any]]:
        """Returns the sections of each relation."""
        for name, of in self._schemas.items():
            passes = 2 + 2 * bool(of.key) + 2 * len(of.links)
            self._progress.expect(passes * count_rows(self._sources[name]))
        labels = {
            name: self._read_key(name, of.key) for name, of in self._schemas.items() if of.key
        }
        links: dict[tuple[str, str], Link] = {}
        for name in self._schemas:
            columns: dict[str, StoredArray] = {}
            links |= self._read_rows(name, columns)
            self.arrays[name] |= labels.get(name, {}) | columns
        found: dict[EdgeType, dict[str, Any]] = {}
        for (name, column), kinds in self._types.items():
            link = links[name, column]
            found |= dict(zip(kinds, store_relations(link, self._work), strict=True))
            self._report(name, column, link)
        return found

    def _store(self, tables: Any, where: str) -> Any:
        return store_stream(self._work.path(), tables, where, self._progress)

    def _batches(
        self, name: str, columns: Sequence[str], schema: TableSchema
    ) -> Iterator[tuple[int, Any]]:
        return read_batches(self._sources[name], name, columns, schema, self._work.batch)

    def _key_batches(self, name: str, column: str) -> Iterator[tuple[int, Any]]:
        """The values of a column of keys, and the number of the first row of each batch."""
        for first, table in self._batches(name, [column], TableSchema(column)):
            yield first, key_values(table, column)

    def _examine(self, name: str, column: str) -> _Key:
        kind = labels = missing = rounded = None
        rows = size = 0
        comparable = True
        for first, keys in self._key_batches(name, column):
            if kind is None:
                kind = keys.type
                try:
                    check_comparable(keys, "")
                except TypeError:
                    comparable = False
            if missing is None and keys.null_count:
                missing = first + keys.is_null().index(True).as_py()
            largest = rounded_key(keys)
            if largest is not None:
                rounded = max(largest, rounded or 0)
            if comparable and missing is None:
                labels = max(label_kind(keys), labels or 0)
            rows += len(keys)
            size += keys.nbytes
            self._work.advance(len(keys))
        return _Key(kind, rows, size, labels if comparable else None, missing, rounded)

    def _is_unique(self, source: Any, name: str, column: str) -> bool:
        self._progress.expect(2 * count_rows(source))
        key = self._examine(name, column)
        refuse_rounded(key.rounded, key.kind, name, column)
        if key.missing is not None or key.labels is None:
            return False
        return self._split(name, column, key)[1] is None

    def _split(
        self, name: str, column: str, key: _Key, labels: dict[str, StoredArray] | None = None
    ) -> tuple[KeyPartitions, Repetitions | None]:
        """Returns the keys in partitions, and what is there twice; ``labels`` gets the labels."""
        import numpy as np

        found = KeyPartitions(self._work.partitions(key.rows, key.size))
        for first, keys in self._key_batches(name, column):
            found.add(keys, np.arange(first, first + len(keys)))
            if labels is not None:
                self._add_labels(labels, key_labels(keys, key.labels))
            self._work.advance(len(keys))
        return found, repetitions(found, self._work)

    def _add_labels(self, labels: dict[str, StoredArray], more: dict[str, Any]) -> None:
        if IDS in more:
            labels.setdefault(f"{graph_data.NODES}.{IDS}", self._work.array()).add(more[IDS])
        else:
            _add_texts(labels, more[OFFSETS], more[BYTES], self._work)

    def _read_key(self, name: str, column: str) -> dict[str, StoredArray]:
        """Reads the primary key of a table; returns the labels of its nodes."""
        import pyarrow as pa

        where = f"tables[{name!r}]: {column}"
        key = self._examine(name, column)
        refuse_rounded(key.rounded, key.kind, name, column)
        if key.missing is not None:
            refuse_missing_key(key.missing, where)
        check_comparable(pa.array([], key.kind), where)
        labels: dict[str, StoredArray] = {}
        split, twice = self._split(name, column, key, labels)
        if twice is not None:
            refuse_repeated_keys(twice.key, twice.rows, twice.number, where)
        self._keys[name], self._partitions[name, key.kind] = key, split
        self.nodes[name] = node_count(name, key.rows)
        return labels

    def _keys_in(self, name: str, shared: SharedType) -> KeyPartitions:
        """Returns the keys of a table in the type in which they are compared."""
        import numpy as np

        found = self._partitions.get((name, shared.kind))
        if found is None:
            key = self._keys[name]
            found = KeyPartitions(self._work.partitions(key.rows, 2 * key.size))
            self._progress.expect(key.rows)
            for first, keys in self._key_batches(name, self._schemas[name].key or ""):
                found.add(shared.cast(keys), np.arange(first, first + len(keys)))
                self._work.advance(len(keys))
            self._partitions[name, shared.kind] = found
        return found

    def _categories(self, name: str, kinds: Mapping[str, ColumnKind]) -> dict[str, Categories]:
        """Returns the categories of all rows of a table, by column."""
        import pyarrow as pa

        where, source = f"tables[{name!r}]", self._sources[name]
        found = {
            column: Categories(f"{where}: {column}")
            for column, kind in kinds.items()
            if kind == "category"
        }
        if not found:
            return {}
        self._progress.expect(count_rows(source))
        if isinstance(source, pa.Table):
            for column, categories in found.items():
                # Batches have no piece without rows.
                categories.add_names(source[column])
        for _, table in self._batches(name, list(found), self._schemas[name]):
            for column, categories in found.items():
                categories.add(table[column])
            self._work.advance(len(table))
        return found

    def _read_rows(self, name: str, arrays: dict[str, StoredArray]) -> dict[tuple[str, str], Link]:
        """Reads the node arrays of a table, and its foreign keys.

        ``arrays`` gets those that say what columns there are.
        """
        of = self._schemas[name]
        links = {column: Link(self.nodes[target]) for column, target in of.links.items()}
        used = {*of.links, of.time, *(of.columns or ())}
        wanted = wanted_columns(self._sources[name], of)
        columns = [column for column in wanted if column != of.key or column in used]
        empty = self._sources[name].schema.empty_table().select(wanted)
        kinds = column_kinds(empty, name, of)
        categories = self._categories(name, kinds)
        texts = {
            column: _StoredText(self._work) for column, kind in kinds.items() if kind == "text"
        }
        rows = self.nodes[name]
        for first, table in self._batches(name, columns, of) if columns else ():
            for column, text in texts.items():
                text.add(table[column], f"tables[{name!r}]: {column}")
            for column, known in categories.items():
                place, codes = table.column_names.index(column), known.encode(table[column])
                table = table.set_column(place, column, codes)
            self._add_columns(name, first, table)
            for column, link in links.items():
                self._add_link(name, column, first, key_values(table, column), link)
            rows = first + len(table)
            self._work.advance(len(table))
        self.nodes[name] = node_count(name, rows)
        parts = {column: key_labels(known.array()) for column, known in categories.items()}
        parts |= {column: text.arrays() for column, text in texts.items()}
        for part, values in column_arrays(kinds, parts).items():
            arrays[part] = values if isinstance(values, StoredArray) else self._stored(values)
        for column, link in links.items():
            link.rows = rows
            refuse_rounded(link.rounded, link.kind, name, column)
        return {(name, column): link for column, link in links.items()}

    def _stored(self, values: Any) -> StoredArray:
        found = self._work.array()
        found.add(values)
        return found

    def _add_columns(self, name: str, first: int, table: Any) -> None:
        arrays = self.arrays[name]
        with ErrorConversion(partial(self._error_of_table, name, first)):
            found = node_arrays_of(table, name, self._schemas[name])
            named = node_arrays({name: found}, {name: len(table)})[name]
        for column, array in named.items():
            rows = array.numpy()
            stored = arrays.setdefault(f"{graph_data.NODES}.{column}", self._work.array())
            if stored.dtype is not None:
                for lengths in zip(stored.shape[1:], rows.shape[1:], strict=True):
                    if len({*lengths}) > 1:
                        raise lengths_error(f"tables[{name!r}]: {column}", lengths)
            stored.add(rows)

    def _error_of_table(self, name: str, first: int, error: Exception) -> Exception | None:
        """An error of a batch, which begins with row ``first``, as an error of the table."""
        if isinstance(error, MissingValuesError):
            missing = rows = 0
            column = error.where.removeprefix(f"tables[{name!r}]: ")
            for _, table in self._batches(name, [column], self._schemas[name]):
                missing += key_values(table, column).null_count
                rows += len(table)
            if not missing:
                # They are within lists.
                return None
            return MissingValuesError(error.where, error.text, missing, rows)
        if not isinstance(error, (TypeError, ValueError)):
            return None
        text = str(error)
        place = re.escape(f"tables[{name!r}]: {self._schemas[name].time}[")
        row = re.match(rf"{place}(\d+)", text)
        if row is None:
            return None
        at = int(row[1]) + first
        return type(error)(f"{text[: row.start(1)]}{at}{text[row.end(1) :]}")

    def _add_link(self, name: str, column: str, first: int, values: Any, link: Link) -> None:
        """Adds the foreign keys of a batch."""
        import numpy as np

        target = self._schemas[name].links[column]
        link.kind = values.type
        largest = rounded_key(values)
        if largest is not None:
            link.rounded = max(largest, link.rounded or 0)
        if values.null_count == len(values):
            return
        rows = first + np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
        values = values.drop_null()
        key = self._keys[target]
        if not key.rows:
            link.add_unknown(values, rows)
        elif link.rounded is None:
            where = f"tables[{name!r}]: {column}: expected keys of {target!r}"
            shared = SharedType.between(key.kind, values.type, where)
            link.add(shared.cast(values), rows, self._keys_in(target, shared), self._work)

    def _report(self, name: str, column: str, link: Link) -> None:
        """Reports the foreign keys that no row has."""
        if not link.unknown:
            return
        shown = [
            keys[row - first]
            for first, keys in self._key_batches(name, column)
            for row in link.shown
            if first <= row < first + len(keys)
        ]
        where, target = f"tables[{name!r}]: {column}", self._schemas[name].links[column]
        report_unmatched(shown, link.unknown, link.rows, where, target, self._unmatched)
