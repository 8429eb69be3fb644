"""The named arrays of a graph: a row for each edge, or for each node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from pygsampler._arrays.array import Array, as_array
from pygsampler._arrays.datetimes import Kind, as_nanoseconds, as_numpy_dates, datetime_kind
from pygsampler._arrays.ids import has_moved, is_tensor
from pygsampler._engine.checks import describe

if TYPE_CHECKING:
    from pygsampler._arrays.mmap_file import MappedFile

EDGES, NODES = "edge_data", "node_data"
# The sections of a graph file in which they stand are called by these and a name.
PREFIXES = (f"{EDGES}.", f"{NODES}.")

# The longest name that the format has room for, after the longer prefix.
_LONGEST_NAME = 63 - max(map(len, PREFIXES))


class RowCount(NamedTuple):
    """The number of rows that the arrays of edges, or of nodes, have.

    ``more`` allows further rows: edges with ids of their own may have ids beyond their number.
    """

    kind: str
    number: int
    more: bool = False

    def wrong(self, shape: tuple[int, ...]) -> str:
        """Returns an error text for an array of that shape, empty if it has the rows."""
        if shape and (shape[0] == self.number or (self.more and shape[0] > self.number)):
            return ""
        each = "at least one row" if self.more else "one row"
        things = "edges" if self.kind == EDGES else "nodes"
        found = str(shape[0]) if shape else "a number without dimensions"
        return f"expected {each} for each of {self.number} {things}, got {found}"


class LazyArray(NamedTuple):
    """An array that somebody else makes when it is asked for."""

    make: Callable[[], Any]


class OfferedArray(NamedTuple):
    """An array of another library's, or a ``Later``, of a dtype that we have."""

    value: Any
    shape: tuple[int, ...]


class NamedArrays(Mapping[str, Array]):
    """Arrays by name, read-only.

    Arrays of other libraries are read when they are first used, and read anew if torch has moved
    them meanwhile.
    """

    __slots__ = ("_kinds", "_rows", "_stored", "_taken", "_values")

    # The arrays, or what they are made of.
    _values: dict[str, Any]
    _taken: dict[str, Array]
    _rows: RowCount
    # The names of those that an opened graph has by its file.
    _stored: frozenset[str]
    # The kinds that the taken arrays had before they were numbers; unknown for an `Array`.
    _kinds: dict[str, Kind]

    def __init__(
        self, row_count: RowCount, values: Mapping[str, Any], stored: Iterable[str] = ()
    ) -> None:
        self._rows = row_count
        self._kinds = dict(values._kinds) if isinstance(values, NamedArrays) else {}
        self._values = dict(values._values if isinstance(values, NamedArrays) else values)
        self._taken = {}
        self._stored = frozenset(stored)

    def __getitem__(self, name: str) -> Array:
        value, array = self._values[name], self._taken.get(name)
        if array is None or has_moved(value, array._address):
            where = f"{self._rows.kind}[{name!r}]"
            given = value.make() if isinstance(value, LazyArray) else value
            if not isinstance(given, Array):
                given = as_numpy_dates(given, where)
                self._kinds.setdefault(name, datetime_kind(given))
            array = as_array(as_nanoseconds(given, where), where)
            wrong = self._rows.wrong(array.shape)
            if wrong:
                raise ValueError(f"{where}: {wrong}")
            if value is not array:
                # Not the original, which may be on a GPU, or larger than what is shown.
                self._values[name] = array._owner if is_tensor(array._owner) else array
            self._taken[name] = array
        return array

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"{{{', '.join(f'{name!r}: {self._shown(name)}' for name in self)}}}"

    def _shown(self, name: str) -> str:
        """Dtype and shape of an array, or a note that it is computed at its first use."""
        value = self._taken.get(name, self._values[name])
        shape = getattr(value, "shape", None)
        if shape is None:
            return "computed at its first use"
        return f"{str(value.dtype).removeprefix('torch.')} {list(shape)}"

    def __reduce__(self) -> tuple[Any, ...]:
        return NamedArrays, (self._rows, dict(self)), (None, {"_kinds": self._kinds})

    def kind(self, name: str) -> Kind | None:
        """Returns the dtype of dates or time spans that an array had before it became numbers.

        It is None for an array that had none, and for an array of a file, which has numbers alone.
        """
        self.get(name)
        return self._kinds.get(name)

    def with_more(self, more: NamedArrays) -> NamedArrays:
        """Returns these arrays and ``more``, whose arrays replace others of the same name."""
        stored = self._stored - more._values.keys()
        both = NamedArrays(more._rows, {**self._values, **more._values}, stored)
        both._taken = {**self._taken, **more._taken}
        kept = {name: kind for name, kind in self._kinds.items() if name not in more._values}
        both._kinds = {**kept, **more._kinds}
        return both

    def is_stored(self, name: str) -> bool:
        """True if the array of that name is the one in the graph's file."""
        return name in self._stored

    def unstored(self) -> NamedArrays:
        """Returns the arrays that are not in the graph's file."""
        others = {name: self[name] for name in self if name not in self._stored}
        made = NamedArrays(self._rows, others)
        made._kinds = {name: kind for name, kind in self._kinds.items() if name in others}
        return made


NO_DATA = NamedArrays(RowCount("data", 0), {})


def check_named_arrays(values: Any, row_count: RowCount) -> NamedArrays:
    """Arrays that a caller gives; errors name the one that is wrong."""
    values = {} if values is None else columns(values)
    if not isinstance(values, Mapping):
        expected = "a mapping of names to arrays"
        raise TypeError(f"{row_count.kind}: expected {expected}, got {describe(values)}")
    check_names(values, row_count.kind)
    found = NamedArrays(row_count, values)
    for name in found:
        found[name]
    return found


def check_names(names: Iterable[Any], kind: str) -> None:
    """Raises TypeError or ValueError for what cannot be the name of an array of that kind."""
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"{kind}: expected names of type str, got {describe(name)}")
        if not _is_name(name):
            expected = f"names of 1 to {_LONGEST_NAME} bytes of UTF-8"
            raise ValueError(f"{kind}: expected {expected}, got {name!r}")


def offered(offers: Mapping[str, OfferedArray], row_count: RowCount) -> NamedArrays:
    """Returns the usable ones of the arrays of another library's graph, without reading them."""
    return NamedArrays(
        row_count,
        {
            name: offer.value
            for name, offer in offers.items()
            if isinstance(name, str) and _is_name(name) and not row_count.wrong(offer.shape)
        },
    )


def arrays_from_file(
    sections: dict[str, Array], row_count: RowCount, pages: MappedFile
) -> NamedArrays:
    """Returns the arrays of one kind among the further arrays of a graph's file.

    Raises ValueError for a section without a name, or with another number of rows.
    """
    prefix, found = f"{row_count.kind}.", {}
    for section in [name for name in sections if name.startswith(prefix)]:
        array = sections.pop(section)
        name, wrong = section.removeprefix(prefix), row_count.wrong(array.shape)
        if not name:
            wrong = f"expected a name after {prefix!r}, got none"
        if wrong:
            raise ValueError(f"{pages.path}: section {section!r}: {wrong}")
        found[name] = array
    return NamedArrays(row_count, found, stored=found)


def selected(
    arrays: Mapping[str, Array], names: Iterable[str] | None, where: str
) -> dict[str, Array]:
    """The arrays of these names, or all; ValueError for a name without an array."""
    if isinstance(names, str):
        raise TypeError(f"{where}: expected a list of names, got {describe(names)}")
    wanted = list(arrays) if names is None else list(names)
    for name in wanted:
        if name not in arrays:
            have = ", ".join(map(repr, arrays)) or "none"
            raise ValueError(f"{where}: expected names of arrays ({have}), got {name!r}")
    return {name: arrays[name] for name in wanted}


def sections(edge_data: Mapping[str, Array], node_data: Mapping[str, Array]) -> dict[str, Array]:
    """The arrays by the names of their sections in a file."""
    found = {f"{EDGES}.{name}": array for name, array in edge_data.items()}
    found.update((f"{NODES}.{name}", array) for name, array in node_data.items())
    return found


def columns(table: Any) -> Any:
    """Returns the columns of a table of pandas, Arrow or polars by name; all else as it is."""
    if isinstance(table, Mapping) or getattr(table, "ndim", 2) != 2:
        return table
    if hasattr(table, "combine_chunks") and hasattr(table, "column_names"):
        # Before pandas' way, since an Arrow table has `columns` without names.
        chunks = table.combine_chunks()
        return {name: _single_chunk(chunks.column(name)) for name in table.column_names}
    if hasattr(table, "column_names") and hasattr(table, "column"):
        return {name: table.column(name) for name in table.column_names}
    if hasattr(table, "columns") and hasattr(table, "to_numpy"):
        return {name: table[name].to_numpy() for name in table.columns}
    return table


def _single_chunk(column: Any) -> Any:
    """A column of an Arrow table, which has one chunk or none, as one array."""
    return column.chunk(0) if column.num_chunks else column.combine_chunks()


def _is_name(name: str) -> bool:
    try:
        return 0 < len(name.encode()) <= _LONGEST_NAME and "\0" not in name
    except UnicodeEncodeError:
        return False
