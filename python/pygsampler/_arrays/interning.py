"""Numbers labels, which are names or integers of any size, from 0 by ascending label."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import date
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from pygsampler._arrays.ids import as_ids
from pygsampler._engine import memory
from pygsampler._engine.checks import describe

if TYPE_CHECKING:
    from numpy.typing import NDArray

_EXPECTED = "names of type str"
# The arrays beside a graph that hold the labels of its nodes.
IDS, OFFSETS, BYTES = "node_ids", "node_names.offsets", "node_names.bytes"


class Interned(NamedTuple):
    """Columns of labels as numbers: ``numbers`` has one int64 array for each column.

    Number i stands for ``names[i]`` or, where the labels are integers, for ``ids[i]``; both ascend.
    """

    numbers: list[NDArray[Any]]
    names: list[str] | None
    ids: NDArray[Any] | None

    @property
    def num_nodes(self) -> int:
        """The number of different labels."""
        return (
            len(self.ids) if self.names is None and self.ids is not None else len(self.names or ())
        )

    def arrays(self) -> dict[str, Any]:
        """The labels as further arrays of a graph's file.

        They are "node_ids", or "node_names.offsets" and "node_names.bytes".
        """
        return {IDS: self.ids} if self.names is None else text_arrays(self.names)


class _Column(NamedTuple):
    """A column of names: ``names[codes[i]]`` is the value at i."""

    codes: NDArray[Any]
    names: Sequence[Any]


def intern(columns: Mapping[str, Any]) -> Interned:
    """Numbers the labels of all columns together; the keys name the columns in errors.

    A column is of names (list of str, NumPy's str and object arrays, pandas and Arrow strings and
    categories, polars; UUIDs and dates count as their text) or of integers as ``as_ids`` takes
    them, and all are alike; an empty one is like any other. Needs NumPy.

    TypeError for columns of names together with columns of integers, and for values that are
    neither. ValueError for missing values.
    """
    np = _numpy()
    found = {where: _names(value, where) for where, value in columns.items()}
    empty = {where for where, value in columns.items() if _is_empty(value)}
    told = {where: column for where, column in found.items() if where not in empty}
    first = next(iter(told), "")
    for where, column in told.items():
        if (column is None) is not (told[first] is None):
            kinds = ("integers", "names") if column is not None else ("names", "integers")
            raise TypeError(f"{where}: expected {kinds[0]}, as {first} has, got {kinds[1]}")
    if all(column is None for column in (told or found).values()):
        none = np.zeros(0, np.int64)
        whole = [none if where in empty else integers(columns[where], where) for where in found]
        ids = np.unique(np.concatenate([none, *whole]))
        return Interned([np.searchsorted(ids, each) for each in whole], None, ids)
    texts = [_Column(np.zeros(0, np.int64), []) if c is None else c for c in found.values()]
    names = sorted({str(name) for column in texts for name in column.names})
    number = {name: i for i, name in enumerate(names)}
    numbers = [
        _places(number, [str(name) for name in column.names])[column.codes] for column in texts
    ]
    return Interned(numbers, names, None)


def _is_empty(value: Any) -> bool:
    """True for a column without values, whatever its dtype."""
    if isinstance(value, (str, bytes, Mapping)) or not hasattr(value, "__len__"):
        return False
    shape = getattr(value, "shape", None)
    return not len(value) if shape is None else tuple(shape) == (0,)


def is_text(value: Any) -> bool:
    """True if ``value`` is a column of names, all or some of whose values are str."""
    try:
        return _names(value, "") is not None
    except (TypeError, ValueError):
        return True
    except ImportError:
        return False


def text_arrays(names: Sequence[str]) -> dict[str, Any]:
    """Names in UTF-8, one after the other, and where each begins."""
    np = _numpy()
    try:
        texts = [name.encode() for name in names]
    except UnicodeEncodeError as error:
        raise ValueError(f"node_names: expected text that UTF-8 has, got {error}") from None
    offsets = np.fromiter(accumulate(map(len, texts), initial=0), np.int64, len(texts) + 1)
    return {OFFSETS: offsets, BYTES: np.frombuffer(b"".join(texts), np.uint8)}


def texts(value: Any, where: str) -> list[str]:
    """A column of names as a list of str; TypeError for anything else."""
    column = _names(value, where)
    if column is None:
        if hasattr(value, "__len__") and not len(value):
            return []
        raise TypeError(f"{where}: expected {_EXPECTED}, got {describe(value)}")
    names = [str(name) for name in column.names]
    return [names[code] for code in column.codes.tolist()]


def _numpy() -> Any:
    try:
        import numpy
    except ImportError:
        raise ImportError("renumber: expected NumPy, found none; pip install numpy") from None
    return numpy


def _places(number: Mapping[str, int], names: list[str]) -> NDArray[Any]:
    np = _numpy()
    places: NDArray[Any] = np.fromiter(map(number.__getitem__, names), np.int64, len(names))
    return places


def integers(value: Any, where: str) -> NDArray[Any]:
    """A copy of a column of integers, int64."""
    view = as_ids(value, where)
    values = memory.integer_view(view.address, view.length, view.bits)
    found: NDArray[Any] = _numpy().array(values, "int64")
    return found


def _names(value: Any, where: str) -> _Column | None:
    """A column of names; None for what is to be read as integers."""
    package = type(value).__module__.partition(".")[0]
    if package == "pandas" and hasattr(value, "dtype"):
        return _of_pandas(value, where)
    if package == "pyarrow" and hasattr(value, "type"):
        return _of_arrow(value, where)
    if package == "polars" and hasattr(value, "to_list"):
        dtype = str(getattr(value, "dtype", "")).partition("(")[0]
        if dtype in ("String", "Utf8", "Categorical", "Enum", "Object"):
            return _of_objects(value.to_list(), where)
        return None
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    if kind in ("U", "T", "O"):
        _check_dimensions(value, where)
        return _of_objects(value.tolist(), where)
    if kind == "S":
        _refuse(where, 'bytes; numpy.char.decode(array, "utf-8") makes names')
    if isinstance(value, (list, tuple)):
        return _of_objects(value, where)
    return None


def _of_objects(values: Sequence[Any], where: str) -> _Column | None:
    kinds = set(map(type, values))
    if any(map(has_text, kinds)):
        values = _as_text(values)
        kinds = set(map(type, values))
    if not any(issubclass(kind, str) for kind in kinds):
        return None
    if not all(issubclass(kind, str) for kind in kinds):
        place = next(i for i, value in enumerate(values) if not isinstance(value, str))
        _refuse_value(values[place], where, place)
    np = _numpy()
    names = list(dict.fromkeys(values))
    number = {name: i for i, name in enumerate(names)}
    return _Column(np.fromiter(map(number.__getitem__, values), np.int64, len(values)), names)


def has_text(kind: type) -> bool:
    """True for the types of UUIDs and dates, which are names by their text."""
    return kind.__module__ == "uuid" or (issubclass(kind, date) and kind.__name__ != "NaTType")


def _as_text(values: Sequence[Any]) -> list[Any]:
    """Values, of which UUIDs and dates are text."""
    return [
        each
        if not has_text(type(each))
        else each.isoformat()
        if isinstance(each, date)
        else str(each)
        for each in values
    ]


def _of_pandas(value: Any, where: str) -> _Column | None:
    pandas: Any = sys.modules["pandas"]
    categories = getattr(value.dtype, "categories", None)
    if categories is None and not (
        pandas.api.types.is_string_dtype(value.dtype) or value.dtype == object
    ):
        return None
    codes, names = pandas.factorize(value)
    if (codes < 0).any():
        _refuse_missing(where, int((codes < 0).argmax()))
    names = list(names)
    if any(map(has_text, set(map(type, names)))):
        names = _as_text(names)
    if not any(isinstance(name, str) for name in names):
        # Categories that are integers.
        return None
    for code, name in enumerate(names):
        if not isinstance(name, str):
            _refuse_value(name, where, int((codes == code).argmax()))
    return _Column(codes, names)


def _of_arrow(value: Any, where: str) -> _Column | None:
    import pyarrow as pa

    kind = value.type
    of_names = kind.value_type if pa.types.is_dictionary(kind) else kind
    views = getattr(pa.types, "is_string_view", lambda _: False)
    if not (pa.types.is_string(of_names) or pa.types.is_large_string(of_names) or views(of_names)):
        return None
    if of_names is not kind and not views(of_names):
        # A dictionary may have nulls, and names that do not occur.
        value = value.cast(of_names)
    if value.null_count:
        _refuse_missing(where, next(i for i, each in enumerate(value) if not each.is_valid))
    if views(of_names):
        # Arrow neither encodes them nor casts to them.
        return _of_objects(value.to_pylist(), where)
    coded = value.dictionary_encode()
    if isinstance(coded, pa.ChunkedArray):
        # Chunks of dictionaries may have one each.
        coded = coded.unify_dictionaries().combine_chunks()
        if isinstance(coded, pa.ChunkedArray):
            coded = coded.chunk(0) if coded.num_chunks else pa.array([], coded.type)
    np = _numpy()
    codes = np.asarray(coded.indices.to_numpy(zero_copy_only=False), np.int64)
    return _Column(codes, coded.dictionary.to_pylist())


def _check_dimensions(value: Any, where: str) -> None:
    if value.ndim != 1:
        raise ValueError(f"{where}: expected one dimension, got shape {value.shape}")


def _refuse_value(value: Any, where: str, place: int) -> NoReturn:
    # In this order: pandas' NA has no truth.
    if value is None or type(value).__name__ in ("NAType", "NaTType") or value != value:
        _refuse_missing(where, place)
    raise TypeError(f"{where}[{place}]: expected {_EXPECTED}, as others are, got {describe(value)}")


def _refuse_missing(where: str, place: int) -> NoReturn:
    raise ValueError(f"{where}[{place}]: expected a name, got a missing value")


def _refuse(where: str, got: str) -> NoReturn:
    raise TypeError(f"{where}: expected {_EXPECTED} or integers, got {got}")
