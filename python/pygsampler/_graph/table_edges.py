"""Edges of tables in files: keys are joined partition by partition, and sorted range by range."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from pygsampler._arrays.array import as_array
from pygsampler._graph.file_sections import SectionWriter
from pygsampler._graph.table_keys import SHOWN
from pygsampler._graph.table_partitions import Partitions, StoredArray, key_hashes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Rows = NDArray[np.int64]

__all__ = ["KeyPartitions", "Link", "Workspace", "repetitions", "store_relations"]

# Bytes that a row takes while it is joined or sorted, without its key: some arrays of numbers, and
# Arrow's table of hashes.
_ROW_BYTES = 128
# Partitions at most.
_MANY = 1 << 12
# Numbers that are made at a time.
_BLOCK = 1 << 18


class Workspace:
    """A folder for files, whose rows are in memory in parts of ``memory`` bytes.

    ``advance`` is called with numbers of rows that were read.
    """

    def __init__(self, folder: str, memory: int, advance: Callable[[int], object]) -> None:
        self._folder, self._names = folder, count()
        self.memory, self.advance = memory, advance

    def path(self) -> str:
        """Returns a new name in the folder."""
        return os.path.join(self._folder, str(next(self._names)))

    def array(self, dtype: str | None = None) -> StoredArray:
        return StoredArray(self.path(), dtype)

    @property
    def batch(self) -> int:
        """Bytes of the rows that are read at a time."""
        return max(self.memory // 32, 1)

    def partitions(self, count: int, key_bytes: int = 0) -> Partitions:
        """Returns partitions for so many rows, each of which can be joined or sorted in memory.

        The keys of all rows have ``key_bytes``.
        """
        size = count * _ROW_BYTES + 4 * key_bytes
        return Partitions(self.path(), min(max(-(-2 * size // self.memory), 1), _MANY))

    @property
    def most_edges(self) -> int:
        """The number of edges that can be sorted in memory."""
        return max(self.memory // (2 * _ROW_BYTES), 1)


class KeyPartitions(NamedTuple):
    """The primary keys of a table in one type, and their rows, in partitions by hashes of keys."""

    files: Partitions

    def add(self, keys: Any, places: Any) -> None:
        self.files.add(key_partition(keys, self.files.count), {"key": keys, "row": places})

    def read(self, number: int) -> tuple[Any, Rows] | None:
        """Returns the keys of a partition, and their rows."""
        tables = list(self.files.read(number, 1 << 62))
        return _keys_and_rows(tables[0]) if tables else None


def key_partition(keys: Any, partitions: int) -> Any:
    """Returns the partition of each key."""
    import numpy as np

    if partitions == 1:
        return np.zeros(len(keys), np.int64)
    return key_hashes(keys) % np.uint64(partitions)


def _keys_and_rows(table: Any) -> tuple[Any, Rows]:
    return table["key"].chunk(0), table["row"].chunk(0).to_numpy()


class Repetitions(NamedTuple):
    """Keys that are there twice: the first of them, two of its rows, and how many rows repeat."""

    key: Any
    rows: tuple[int, int]
    number: int


def repetitions(keys: KeyPartitions, work: Workspace) -> Repetitions | None:
    """Returns the repetitions among the keys of a table; None if there are none."""
    import numpy as np
    import pyarrow as pa

    first: tuple[int, int, Any] | None = None
    repeated = 0
    for number in range(keys.files.count):
        seen: tuple[Any, Rows] | None = None
        # One piece, unless the keys of many rows are alike.
        for piece in keys.files.read(number, 2 * work.memory):
            values, rows = _keys_and_rows(piece)
            if seen is not None:
                values, rows = pa.concat_arrays([seen[0], values]), np.concatenate([seen[1], rows])
            hashes = np.sort(key_hashes(values))
            if (hashes[1:] != hashes[:-1]).all():
                seen = values, rows
                continue
            codes = values.dictionary_encode().indices.to_numpy()
            _, places = np.unique(codes, return_index=True)
            again = np.delete(np.arange(len(codes)), places)
            if not len(again):
                # Two keys of one hash.
                seen = values, rows
                continue
            repeated += len(again)
            # Codes ascend by the first rows of their keys.
            code = codes[again].min()
            other = rows[again[codes[again] == code][0]]
            found = int(rows[places[code]]), int(other), values[int(places[code])]
            first = found if first is None else min(first, found, key=lambda each: each[0])
            seen = values.take(pa.array(places)), rows[places]
    return None if first is None else Repetitions(first[2], first[:2], repeated)


class Link:
    """A foreign key: its values in partitions, and those that no row has.

    ``rows`` is the number of rows that have it, set before ``edges`` is called, and ``targets``
    that of the other table. ``unknown`` counts values without a row, and ``shown`` has the rows of
    the first of them that differ. ``rounded`` is the largest float that may have been rounded.
    """

    def __init__(self, targets: int) -> None:
        self.rows, self.targets = 0, targets
        self.kind: Any = None
        self.rounded: float | None = None
        self.keys: KeyPartitions | None = None
        self.values: Partitions | None = None
        self.unknown = self._count = 0
        self._shown: dict[Any, int] = {}

    @property
    def shown(self) -> list[int]:
        return list(self._shown.values())

    def add(self, values: Any, places: Rows, keys: KeyPartitions, work: Workspace) -> None:
        """Adds foreign keys, in the type of ``keys``, and their rows."""
        if self.values is None:
            self.keys, self.values = keys, Partitions(work.path(), keys.files.count)
        self.values.add(key_partition(values, self.values.count), {"key": values, "row": places})
        self._count += len(places)

    def add_unknown(self, values: Any, places: Rows) -> None:
        """Notes values that no row has, and their rows, which ascend."""
        self.unknown += len(values)
        for value in values.unique()[:SHOWN]:
            place = values.index(value).as_py()
            self._shown[value] = min(int(places[place]), self._shown.get(value, 1 << 62))
        kept = sorted(self._shown.items(), key=lambda each: each[1])[:SHOWN]
        self._shown = dict(kept)

    def edges(self, work: Workspace) -> Iterator[tuple[Rows, Rows]]:
        """Yields rows with a key, ascending, and the rows of the other table that have the key."""
        work.advance(self.rows - self._count)
        if self.keys is None or self.values is None:
            return
        if self.values.count == 1:
            yield from self._join(0, self.keys, self.values, work)
            return
        by_row = work.partitions(self.rows)
        width = -(-self.rows // by_row.count)
        for number in range(self.values.count):
            for rows, targets in self._join(number, self.keys, self.values, work):
                by_row.add(rows // width, {"row": rows, "target": targets})
            self.values.remove(number)
        for number in range(by_row.count):
            for table in by_row.read(number, 1 << 62):
                rows, targets = _columns(table, "row", "target")
                order = rows.argsort()
                yield rows[order], targets[order]
            by_row.remove(number)

    def _join(
        self, number: int, keys: KeyPartitions, values: Partitions, work: Workspace
    ) -> Iterator[tuple[Rows, Rows]]:
        """The edges of a partition of the keys."""
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        known = keys.read(number)
        for piece in values.read(number, work.memory // 8):
            found_keys, rows = _keys_and_rows(piece)
            kept = rows[:0], rows[:0]
            unknown = np.ones(len(rows), bool)
            if known is not None:
                found = pc.index_in(found_keys, value_set=known[0])
                unknown = found.is_null().to_numpy(zero_copy_only=False)
                kept = rows[~unknown], known[1][found.drop_null().to_numpy()]
            if unknown.any():
                self.add_unknown(found_keys.filter(pa.array(unknown)), rows[unknown])
            work.advance(len(rows))
            yield kept


def _columns(table: Any, *names: str) -> list[Rows]:
    return [table[name].chunk(0).to_numpy() for name in names]


def store_relations(link: Link, work: Workspace) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the sections of the relation along a foreign key, and of the relation back."""
    import numpy as np

    indptr, indices = work.array("int64"), work.array("int64")
    by_target = work.partitions(link.rows)
    width = max(-(-link.targets // by_target.count), 1)
    edge = row = 0
    for rows, targets in link.edges(work):
        if not len(rows):
            continue
        indices.add(targets)
        for start, stop in _blocks(row, int(rows[-1]) + 1):
            indptr.add(rows.searchsorted(_range(start, stop)) + edge)
        row = int(rows[-1]) + 1
        ids = _range(edge, edge + len(rows))
        by_target.add(targets // width, {"target": targets, "row": rows, "edge": ids})
        edge += len(rows)
    for start, stop in _blocks(row, link.rows + 1):
        indptr.add(np.full(stop - start, edge))
    ids = (as_array(_range(*block), "edge_ids") for block in _blocks(0, edge))
    back = {
        "indptr": indptr.section(),
        "indices": indices.section(),
        "edge_ids": SectionWriter(ids, "int64", (edge,)),
    }
    there = _TargetOrder(work)
    there.add(by_target, width, 0, link.targets)
    work.advance(link.rows - there.edges)
    return there.sections(), back


class _TargetOrder:
    """The edges of a relation in the order of their targets, and of their numbers for each."""

    def __init__(self, work: Workspace) -> None:
        self._work = work
        self.edges = 0
        self._indptr, self._indices, self._ids = (work.array("int64") for _ in range(3))
        self._indptr.add(_range(0, 1))

    def sections(self) -> dict[str, SectionWriter]:
        arrays = {"indptr": self._indptr, "indices": self._indices, "edge_ids": self._ids}
        return {name: array.section() for name, array in arrays.items()}

    def add(self, files: Partitions, width: int, low: int, high: int) -> None:
        """Adds the edges of the targets from ``low`` to ``high``, of which a file has ``width``."""
        for number in range(files.count):
            start, stop = low + number * width, min(low + (number + 1) * width, high)
            if start >= stop:
                break
            if files.rows[number] > self._work.most_edges and stop - start > 1:
                # Some targets have more edges than others.
                parts = self._work.partitions(files.rows[number])
                narrow = -(-(stop - start) // parts.count)
                for piece in files.read(number, self._work.memory // 8):
                    targets, rows, edges = _columns(piece, "target", "row", "edge")
                    columns = {"target": targets, "row": rows, "edge": edges}
                    parts.add((targets - start) // narrow, columns)
                files.remove(number)
                self.add(parts, narrow, start, stop)
            else:
                self._add_file(files, number, start, stop)
                files.remove(number)

    def _add_file(self, files: Partitions, number: int, low: int, high: int) -> None:
        # The edges of one target are in order, so they are read in pieces: they may exceed memory.
        most = self._work.memory // 8 if high == low + 1 else 1 << 62
        targets = _range(0, 0)
        before = self.edges
        for piece in files.read(number, most):
            targets, rows, edges = _columns(piece, "target", "row", "edge")
            order = targets.argsort(kind="stable")
            self._indices.add(rows[order])
            self._ids.add(edges[order])
            targets = targets[order]
            self.edges += len(rows)
            self._work.advance(len(rows))
        if high == low + 1:
            self._indptr.add(_range(self.edges, self.edges + 1))
            return
        for block in _blocks(low, high):
            self._indptr.add(targets.searchsorted(_range(*block), "right") + before)


def _range(start: int, stop: int) -> Any:
    import numpy as np

    return np.arange(start, stop, dtype=np.int64)


def _blocks(start: int, stop: int) -> Iterator[tuple[int, int]]:
    return ((at, min(at + _BLOCK, stop)) for at in range(start, stop, _BLOCK))
