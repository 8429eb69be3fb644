"""``Ticket``: what a request asks for, as JSON, and long lists of it as Arrow's."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import pyarrow

from pygsampler._arrays.datetimes import (
    DATED,
    NanosecondTimes,
    as_nanoseconds,
    as_numpy_dates,
    datetime_kind,
)
from pygsampler._arrays.ids import as_ids, as_int64
from pygsampler._engine import memory
from pygsampler._engine.checks import describe, integer
from pygsampler._engine.limits import MAX_BATCH, MAX_EPOCH
from pygsampler._graph.schema import relation_name
from pygsampler._sampling.plan import Plan

VERSION = 1
# The longest text of a plan: the engine caches the plans that it has read.
_LONGEST_PLAN = 1 << 16
# More ids than these go as arrays.
_FEW = 256
_MAX_SEED = (1 << 64) - 1
_FIELDS = frozenset(
    (
        *("version", "plan", "seed", "epoch", "batch", "seeds"),
        *("seed_time", "exclude", "metapath", "dates"),
    )
)
# The dtypes of dates and spans, by NumPy's letters for them.
_DTYPES = {kind: dtype for dtype, kind in DATED.items()}
# A row is a list: of what, of which type, and its values, which are integers or not.
ARRAYS = pyarrow.schema(
    [
        ("name", pyarrow.string()),
        ("type", pyarrow.string()),
        ("ids", pyarrow.list_(pyarrow.int64())),
        ("numbers", pyarrow.list_(pyarrow.float64())),
    ]
)


class Ticket(NamedTuple):
    """A batch that is asked for: all that it is a function of, but the graph."""

    plan: Plan
    seed: int
    epoch: int
    batch: int
    # A list, or by the names of types a mapping of lists.
    seeds: Any
    # The same, or a number; ``NanosecondTimes`` for times that were passed as dates or spans.
    seed_time: Any = None
    exclude: Any = None
    metapath: tuple[Any, ...] = ()
    # True if the plan's window was a timedelta64.
    spans: bool = False

    @classmethod
    def from_request(
        cls,
        plan: Plan,
        path: Iterable[Any],
        spans: bool,
        seed: int,
        epoch: int,
        batch: int,
        seeds: Any,
        seed_time: Any,
        exclude: Any,
    ) -> Ticket:
        """Returns a caller's request as a ticket; errors are those of a sampler here."""
        return cls(
            plan,
            seed,
            epoch,
            batch,
            _convert_by_type(seeds, "seeds", _ids),
            None if seed_time is None else _convert_by_type(seed_time, "seed_time", _times),
            None if exclude is None else _convert_by_type(exclude, "exclude", _ids),
            tuple(path),
            spans,
        )

    def written(self) -> tuple[bytes, Any]:
        """The JSON, and a record batch of the long lists; None where there are none."""
        about: dict[str, Any] = {
            "version": VERSION,
            "plan": json.loads(self.plan.document),
            "seed": self.seed,
            "epoch": self.epoch,
            "batch": self.batch,
        }
        if self.metapath:
            about["metapath"] = self.metapath
        dates: dict[str, Any] = {"window": _DTYPES["m"]} if self.spans else {}
        rows: list[dict[str, Any]] = []
        for name in ("seeds", "seed_time", "exclude"):
            value = getattr(self, name)
            if value is None:
                continue
            dated = _dtypes(value)
            if dated:
                dates[name] = dated
            value = _numbers_of(value)
            if isinstance(value, Mapping):
                about[name] = dict(_short_lists(rows, name, value.items()))
            else:
                about.update(_short_lists(rows, name, [(None, value)]))
        if dates:
            about["dates"] = dates
        return json.dumps(about).encode(), _batch(rows) if rows else None

    @classmethod
    def read(cls, text: bytes, arrays: Any = None) -> Ticket:
        """Reads a ticket from elsewhere; TypeError or ValueError says what is wrong with it."""
        try:
            about = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"ticket: expected JSON, got bytes that are none: {error}") from None
        if not isinstance(about, dict):
            raise TypeError(f"ticket: expected a JSON object, got {describe(about)}")
        for name in about:
            if name not in _FIELDS:
                raise ValueError(
                    f"ticket: expected fields of {', '.join(sorted(_FIELDS))}, got {describe(name)}"
                )
        if about.get("version") != VERSION:
            raise ValueError(
                f"version: expected {VERSION}, got {describe(about.get('version'))}; is the client "
                "of this version?"
            )
        plan = about.get("plan")
        if not isinstance(plan, dict):
            raise TypeError(f"plan: expected a JSON object, got {describe(plan)}")
        lists = _lists(arrays)
        given = {name: _combine(about.get(name), name, lists) for name in ("seeds", "seed_time")}
        exclude = _combine(about.get("exclude"), "exclude", lists)
        if lists:
            raise ValueError(
                f"arrays: expected seeds, seed_time and exclude, got {next(iter(lists))[0]!r}"
            )
        if given["seeds"] is None:
            raise ValueError("seeds: expected ids, or ids by type, got none")
        dates = _dates(about.get("dates"))
        return cls(
            _plan(plan),
            integer(about.get("seed", 0), "seed", 0, _MAX_SEED),
            integer(about.get("epoch", 0), "epoch", 0, MAX_EPOCH),
            integer(about.get("batch", 0), "batch", 0, MAX_BATCH),
            given["seeds"],
            _dated(given["seed_time"], dates.get("seed_time")),
            exclude,
            _metapath(about.get("metapath")),
            "window" in dates,
        )

    @property
    def num_seeds(self) -> int:
        """The number of seeds, of all types."""
        lists = self.seeds.values() if isinstance(self.seeds, dict) else [self.seeds]
        return sum(map(len, lists))


def _plan(fields: dict[str, Any]) -> Plan:
    for name, kind in (("family", str), ("fanouts", list), ("num_samples", list)):
        if not isinstance(fields.get(name), (kind, type(None))):
            raise TypeError(
                f"plan: {name}: expected a {kind.__name__}, got {describe(fields[name])}"
            )
    if "self" in fields:
        raise ValueError("plan: expected names of a plan's fields, got 'self'")
    document = json.dumps(fields)
    if len(document) > _LONGEST_PLAN:
        raise ValueError(f"plan: expected at most {_LONGEST_PLAN} bytes, got {len(document)}")
    try:
        return Plan.of_document(document)
    except KeyError as error:
        raise ValueError(f"plan: expected the field {error}, got none") from None


def _convert_by_type(value: Any, where: str, one: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            relation_name(kind): one(each, f"{where}[{kind!r}]") for kind, each in value.items()
        }
    return one(value, where)


def _ids(value: Any, where: str) -> array[int]:
    view = as_int64(as_ids(value, where))
    made = array("q")
    made.frombytes(memory.integer_view(view.address, view.length, 64).cast("B"))
    return made


def _times(value: Any, where: str) -> Any:
    """A number, an array of int64 or float64, or ``NanosecondTimes`` of dates or spans."""
    value = as_numpy_dates(value, where)
    kind = datetime_kind(value)
    if kind:
        return NanosecondTimes(_times(as_nanoseconds(value, where), where), _DTYPES[kind])
    if getattr(value, "ndim", None) == 0:
        value = value.item()
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    try:
        return _ids(value, where)
    except TypeError:
        pass
    try:
        return array("d", value.tolist() if hasattr(value, "tolist") else value)
    except TypeError:
        raise TypeError(f"{where}: expected numbers, got {describe(value)}") from None


def _dtypes(value: Any) -> Any:
    """Returns the kinds of a ticket's times, by type where they are; None if none were dates."""
    if isinstance(value, Mapping):
        found = {name: _dtypes(each) for name, each in value.items()}
        return {name: dtype for name, dtype in found.items() if dtype} or None
    return value.dtype if isinstance(value, NanosecondTimes) else None


def _numbers_of(value: Any) -> Any:
    """The same as numbers alone."""
    if isinstance(value, Mapping):
        return {name: _numbers_of(each) for name, each in value.items()}
    return value.values if isinstance(value, NanosecondTimes) else value


def _short_lists(
    records: list[dict[str, Any]], name: str, lists: Iterable[tuple[Any, Any]]
) -> Iterable[tuple[str, Any]]:
    """Returns the lists by type that stay in the JSON; the long ones become rows."""
    for kind, values in lists:
        if not isinstance(values, array):
            yield name if kind is None else kind, values
        elif len(values) <= _FEW:
            yield name if kind is None else kind, values.tolist()
        else:
            column = "ids" if values.typecode == "q" else "numbers"
            records.append({"name": name, "type": kind, column: values})


def _batch(records: list[dict[str, Any]]) -> Any:
    columns = []
    for field in ARRAYS:
        if not pyarrow.types.is_list(field.type):
            columns.append(pyarrow.array([row[field.name] for row in records], field.type))
            continue
        offsets, values = [0], []
        for row in records:
            held = row.get(field.name)
            values.append(pyarrow.array([] if held is None else held, field.type.value_type))
            offsets.append(offsets[-1] + len(values[-1]))
        whole = pyarrow.concat_arrays(values)
        columns.append(pyarrow.ListArray.from_arrays(pyarrow.array(offsets, "int32"), whole))
    return pyarrow.RecordBatch.from_arrays(columns, schema=ARRAYS)


def _lists(record_batch: Any) -> dict[tuple[str, Any], Any]:
    """The lists of a record batch that came from elsewhere, by name and type."""
    found: dict[tuple[str, Any], Any] = {}
    if record_batch is None:
        return found
    if record_batch.schema != ARRAYS:
        raise ValueError(
            f"arrays: expected columns {_shown(ARRAYS)}, got {_shown(record_batch.schema)}"
        )
    record_batch.validate(full=True)
    for row in range(record_batch.num_rows):
        name, kind = (record_batch.column(place)[row].as_py() for place in (0, 1))
        ids, numbers = (record_batch.column(place)[row].values for place in (2, 3))
        values = ids if numbers is None or not len(numbers) else numbers
        if name is None or values is None or values.null_count or (name, kind) in found:
            raise ValueError(
                f"arrays: expected a list for each name and type, got {name!r}, {kind!r}"
            )
        found[name, kind] = values
    return found


def _shown(schema: Any) -> str:
    return ", ".join(f"{field.name}: {field.type}" for field in schema)


def _combine(value: Any, name: str, lists: dict[tuple[str, Any], Any]) -> Any:
    """Takes a name's values out of the JSON and the arrays, and returns them."""
    kinds = [kind for found, kind in lists if found == name]
    of_arrays = {kind: lists.pop((name, kind)) for kind in kinds}
    if None in of_arrays:
        if value is not None or len(of_arrays) > 1:
            raise ValueError(f"{name}: expected one list, or lists by type, got both")
        return of_arrays[None]
    scalar = name == "seed_time" and isinstance(value, (int, float)) and not isinstance(value, bool)
    if value is not None and not scalar and not isinstance(value, (list, dict)):
        raise TypeError(f"{name}: expected a list, or lists by type, got {describe(value)}")
    if isinstance(value, dict):
        for kind, each in value.items():
            if not isinstance(each, list) or kind in of_arrays:
                raise TypeError(f"{name}[{kind!r}]: expected one list, got {describe(each)}")
    if of_arrays:
        if value is not None and not isinstance(value, dict):
            raise ValueError(f"{name}: expected one list, or lists by type, got both")
        return {**(value or {}), **of_arrays}
    return value


def _dates(value: Any) -> dict[str, Any]:
    """Returns which fields of a ticket from elsewhere were dates or spans."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise TypeError(f"dates: expected an object of dtypes by field, got {describe(value)}")
    for name, dtype in value.items():
        if name not in ("seed_time", "window"):
            raise ValueError(f"dates: expected seed_time and window, got {describe(name)}")
        each = dtype.values() if name == "seed_time" and isinstance(dtype, dict) else [dtype]
        known = [_DTYPES["m"]] if name == "window" else list(DATED)
        for one in each:
            if one not in known:
                raise ValueError(
                    f"dates[{name!r}]: expected {' or '.join(map(repr, known))}, got "
                    f"{describe(one)}"
                )
    return value


def _dated(times: Any, dtypes: Any) -> Any:
    """Times that came from elsewhere, as what they were there."""
    if dtypes is None:
        return times
    if isinstance(times, dict) != isinstance(dtypes, dict) or times is None:
        raise ValueError(
            f"dates['seed_time']: expected dtypes as seed_time has lists, got {describe(dtypes)}"
        )
    if not isinstance(times, dict):
        return NanosecondTimes(times, dtypes)
    for kind in dtypes:
        if kind not in times:
            raise ValueError(f"dates['seed_time']: expected types of seed_time, got {kind!r}")
    return {
        kind: NanosecondTimes(each, dtypes[kind]) if kind in dtypes else each
        for kind, each in times.items()
    }


def _metapath(value: Any) -> tuple[Any, ...]:
    if value is None:
        return ()
    ok = isinstance(value, list) and all(
        isinstance(kind, str)
        or (isinstance(kind, list) and len(kind) == 3 and all(isinstance(of, str) for of in kind))
        for kind in value
    )
    if not ok:
        raise TypeError(
            "metapath: expected a list of [source, relation, destination] or of names of "
            f"relations, got {describe(value)}"
        )
    return tuple(kind if isinstance(kind, str) else tuple(kind) for kind in value)
