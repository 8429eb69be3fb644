"""Graph.from_tables(out=...): the file of the graph in memory, for tables of any size."""

from __future__ import annotations

import datetime
import decimal
import logging
import os
import signal
import sqlite3
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from partners import partner

import pygsampler as pgs
from pygsampler._graph import (
    table_batches,
    table_columns,
    table_edges,
    table_file,
    table_partitions,
    table_sources,
)

pa = partner("pyarrow")
pq = partner("pyarrow.parquet")

ONE_LINK: dict[str, Any] = {"a": {"key": "k"}, "b": {"links": {"f": "a"}}}
NAN = float("nan")
# Small enough for hundreds of partitions, a batch for every 64 rows, and ranges of few edges.
SMALL = 1 << 12


def both(
    folder: Path, tables: Callable[[], Any], schema: Any = None, memory: int = SMALL, **options: Any
) -> tuple[bytes, bytes]:
    """Returns the file of the graph that is made in memory, and the one that is written at once."""
    pgs.Graph.from_tables(tables(), schema, **options).save(folder / "memory.pgs")
    out = folder / "out.pgs"
    pgs.Graph.from_tables(tables(), schema, out=out, memory=memory, **options).close()
    assert sorted(path.name for path in folder.glob("*.pgs")) == ["memory.pgs", "out.pgs"]
    assert not list(folder.glob(".*"))
    return (folder / "memory.pgs").read_bytes(), out.read_bytes()


def random_keys(kind: str, random: np.random.Generator, count: int) -> Any:
    """Different keys of a type, in random order, as an Arrow array."""
    numbers = (random.permutation(2 * count)[:count] - count // 3).tolist()
    values: dict[str, Callable[[int], Any]] = {
        "int64": int,
        "text": lambda i: "x" * (i % 40) + str(i),
        "binary": lambda i: str(i).encode() + b"\xff",
        "decimal": lambda i: decimal.Decimal(i) / 4,
        "float": lambda i: i / 8,
        "date": lambda i: datetime.date(2000, 1, 1) + datetime.timedelta(i),
        "time": lambda i: datetime.datetime(2000, 1, 1) + datetime.timedelta(seconds=i),
        "uuid": lambda i: uuid.UUID(int=i % (1 << 64)).bytes,
    }
    types = {"uuid": pa.binary(16), "decimal": pa.decimal128(20, 2), "time": pa.timestamp("us")}
    return pa.array([values[kind](i) for i in numbers], types.get(kind))


KINDS = ("int64", "text", "binary", "decimal", "float", "date", "time", "uuid")


@pytest.mark.parametrize("memory", [SMALL, 1 << 17, 1 << 30])
@pytest.mark.parametrize("kind", KINDS)
def test_the_file_is_that_of_the_graph_in_memory(
    tmp_path: Path, kind: str, memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(KINDS.index(kind))
    keys = random_keys(kind, random, 700)
    # A third of the rows has one key; some keys are missing, and some no row has.
    chosen = np.where(random.random(2000) < 0.3, 5, random.integers(0, 700, 2000))
    foreign = keys.take(pa.array(chosen, mask=random.random(2000) < 0.1))
    known = keys.take(pa.array(np.delete(np.arange(700), random.integers(6, 700, 50))))
    tables = {
        "a": pa.table({"k": known, "x": random.random(len(known))}),
        "b": pa.table({"f": foreign, "t": random.integers(0, 9, 2000), "a_k": foreign[::-1]}),
    }
    schema = {"a": {"key": "k"}, "b": {"links": {"f": "a", "a_k": "a"}, "time": "t"}}
    counts = []
    original = table_partitions.Partitions.__init__

    def counted(self: Any, folder: str, count: int) -> None:
        counts.append(count)
        original(self, folder, count)

    monkeypatch.setattr(table_partitions.Partitions, "__init__", counted)
    want, found = both(tmp_path, lambda: tables, schema, memory, unmatched="drop")
    assert found == want
    assert (max(counts) > 30) == (memory == SMALL)
    assert (max(counts) == 1) == (memory == 1 << 30)


def of_two_types(random: np.random.Generator) -> dict[str, tuple[Any, Any]]:
    numbers = random.permutation(300)
    ids = [uuid.UUID(int=int(i)) for i in numbers]
    return {
        "widths": (pa.array(numbers, pa.int16()), pa.array(numbers[::-1], pa.int64())),
        "floats": (pa.array(numbers), pa.array(numbers[::-1].astype(float))),
        "large": (pa.array(numbers.astype(np.uint64) + np.uint64(2**63)), pa.array([2**62, 5])),
        "decimals": (pa.array(numbers), pa.array([decimal.Decimal(i) for i in range(300)])),
        "uuids": (list(map(str, ids)), [i.bytes for i in ids[:90]]),
        "dates": (
            numbers.astype("datetime64[D]"),
            np.array(numbers[::-1], "datetime64[D]").astype("datetime64[us]"),
        ),
        "coded": (pa.array(list(map(str, numbers))).dictionary_encode(), ["5", None, "250"]),
        "truths": (pa.array([True, False]), pa.array([False, None, True])),
        "none": (pa.array([], pa.int64()), pa.array([5, None])),
        "missing": (pa.array(["u"]), pa.nulls(200)),
    }


@pytest.mark.parametrize("name", of_two_types(np.random.default_rng(0)))
def test_keys_of_two_types(tmp_path: Path, name: str) -> None:
    keys, foreign = of_two_types(np.random.default_rng(0))[name]
    if name == "uuids":
        foreign = pa.array(foreign, pa.binary(16))
    tables = {"a": {"k": keys}, "b": {"f": foreign}}
    want, found = both(tmp_path, lambda: tables, ONE_LINK, unmatched="drop")
    assert found == want


def shop(count: int = 500) -> dict[str, Any]:
    random = np.random.default_rng(3)
    words = [f"word {i}" for i in range(60)]
    return {
        "users": {"user_id": words, "boss_id": [None, *words[:59]], "age": [None, *range(59)]},
        "sales": {
            "user_id": [words[i] for i in random.integers(0, 60, count)],
            # Missing values come late: the first batches have integers.
            "sum": [*range(count - 3), None, 2**60 + 1, 5],
            "row": random.integers(0, 9, (count, 3)).tolist(),
            "flag": [*[True] * (count - 2), None, False],
            "price": [decimal.Decimal(i) / 4 for i in range(count)],
            "day": (np.datetime64("2025-01-01") + random.integers(0, 99, count)).tolist(),
            "text": ["t"] * count,
        },
    }


SCHEMA: dict[str, Any] = {
    "users": {"key": "user_id", "links": {"boss_id": "users"}, "columns": ["age", "user_id"][:1]},
    "sales": {
        "links": {"user_id": "users"},
        "time": "day",
        "columns": ["sum", "row", "flag", "price", "day"],
    },
}


def as_parquet(folder: Path) -> dict[str, Any]:
    for name, table in shop().items():
        (folder / name).mkdir()
        for part in range(10):
            rows = pa.table(table)
            rows = rows.slice(part * len(rows) // 10, len(rows) // 10)
            pq.write_table(rows, folder / name / f"{part}.parquet", row_group_size=7)
    return {name: folder / name for name in shop()}


def as_csv(folder: Path) -> dict[str, Any]:
    from pyarrow import csv

    for name, table in shop().items():
        found = pa.table(table)
        csv.write_csv(found.drop_columns(["row"] if "row" in table else []), folder / f"{name}.csv")
    return {name: folder / f"{name}.csv" for name in shop()}


def as_sqlite(folder: Path) -> dict[str, Any]:
    connection = sqlite3.connect(folder / "shop.db")
    connection.execute("create table users (user_id, boss_id, age)")
    connection.execute("create table sales (user_id, sum)")
    given = shop()
    columns = zip(*given["users"].values(), strict=True)
    connection.executemany("insert into users values (?, ?, ?)", columns)
    columns = zip(given["sales"]["user_id"], given["sales"]["sum"], strict=True)
    connection.executemany("insert into sales values (?, ?)", columns)
    return {
        name: (connection, f"select * from {name} order by rowid") for name in ("users", "sales")
    }


def as_duckdb(folder: Path) -> dict[str, Any]:
    duckdb = partner("duckdb")
    connection = duckdb.connect()
    for name, table in shop().items():
        connection.register(f"view_{name}", pa.table(table))
        connection.execute(f"create table {name} as select * from view_{name}")
    users = connection, "select * from users"
    return {"users": users, "sales": connection.sql("select * from sales")}


def as_readers(folder: Path) -> dict[str, Any]:
    tables = {name: pa.table(table) for name, table in shop().items()}
    tables["users"] = tables["users"].set_column(
        0, "user_id", tables["users"]["user_id"].dictionary_encode()
    )
    return {
        name: pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=9))
        for name, table in tables.items()
    }


def as_pandas(folder: Path) -> dict[str, Any]:
    pandas = partner("pandas")
    return {name: pandas.DataFrame(table) for name, table in shop().items()}


def as_polars(folder: Path) -> dict[str, Any]:
    polars = partner("polars")
    users, sales = (polars.DataFrame(table) for table in shop().values())
    return {"users": users, "sales": sales.lazy()}


@pytest.mark.parametrize(
    "source",
    [as_parquet, as_csv, as_sqlite, as_duckdb, as_readers, as_pandas, as_polars],
)
def test_tables_of_every_kind(
    tmp_path: Path,
    source: Callable[[Path], Any],
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    monkeypatch.setattr(table_sources, "_FETCHED", 100)
    schema = {
        **SCHEMA,
        "sales": {**SCHEMA["sales"], "columns": SCHEMA["sales"]["columns"][:]},
    }
    if source is as_csv:
        schema["sales"]["columns"].remove("row")
    if source is as_sqlite:
        schema["sales"] = {"links": {"user_id": "users"}}
    folders = iter((tmp_path / "1", tmp_path / "2", tmp_path / "3", tmp_path / "4"))

    def tables() -> dict[str, Any]:
        folder = next(folders)
        folder.mkdir()
        result: dict[str, Any] = source(folder)
        if source is as_sqlite:
            request.addfinalizer(result["users"][0].close)
        return result

    want, found = both(tmp_path, tables, schema)
    assert found == want
    # With a schema that is guessed.
    options: dict[str, Any] = {"out": tmp_path / "out.pgs", "memory": SMALL}
    with pgs.Graph.from_tables(tables(), **options) as graph:
        other = pgs.Graph.from_tables(tables())
        assert graph.edge_types == other.edge_types
        assert graph.ndata["users"].keys() == other.ndata["users"].keys()


def test_columns_of_a_query_that_change_their_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setattr(table_sources, "_FETCHED", 2)
    connection = sqlite3.connect(":memory:")
    request.addfinalizer(connection.close)
    values = "select null as f, 1 as x union all select null, 2 union all select 5, 2.5"
    tables = {"a": {"k": [5, 6]}, "b": (connection, values)}
    want, found = both(tmp_path, lambda: tables, ONE_LINK)
    assert found == want
    tables["b"] = connection, f"{values} union all select null, 3 union all select 5, 'x'"
    for options in ({}, {"out": tmp_path / "out.pgs"}):
        with pytest.raises(TypeError, match=r"tables\['b'\]: .*expected values of one type"):
            pgs.Graph.from_tables(tables, ONE_LINK, **options)
    assert (tmp_path / "out.pgs").read_bytes() == found


def test_tables_without_rows_or_links(tmp_path: Path) -> None:
    tables = {
        "a": pa.table({"k": pa.array([], pa.string()), "x": pa.array([], pa.float32())}),
        "b": pa.table({"f": pa.array([], pa.string()), "t": pa.array([], pa.timestamp("s"))}),
        "only": {"k": list(range(200))},
        "alone": {"text": ["x", "y"]},
    }
    schema = {"a": {"key": "k"}, "b": {"links": {"f": "a"}, "time": "t"}, "only": {"key": "k"}}
    want, found = both(tmp_path, lambda: tables, schema)
    assert found == want


def test_edges_of_few_targets_of_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first targets have most edges, so that their ranges are split again."""
    random = np.random.default_rng(5)
    chosen = np.minimum(random.integers(0, 90, 4000), random.integers(0, 5000, 4000))
    chosen[random.random(4000) < 0.3] = 7
    tables = {"a": {"k": np.arange(9000)}, "b": {"f": chosen}}
    widths = []
    original = table_edges._TargetOrder.add

    def add(self: Any, files: Any, width: int, *limits: int) -> None:
        widths.append(width)
        original(self, files, width, *limits)

    monkeypatch.setattr(table_edges._TargetOrder, "add", add)
    want, found = both(tmp_path, lambda: tables, ONE_LINK, 1 << 15)
    assert found == want
    assert widths[0] > 100 and len(widths) > 5 and min(widths) == 1


def test_keys_of_one_hash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All keys are in one partition, and only looking at them tells them apart."""
    monkeypatch.setattr(
        table_edges, "key_hashes", lambda keys: np.zeros(len(keys), np.uint64) + np.uint64(3)
    )
    keys = [f"k{i}" for i in range(900)]
    tables = {"a": {"k": keys}, "b": {"f": keys[::-1]}}
    want, found = both(tmp_path, lambda: tables, ONE_LINK)
    assert found == want


@pytest.mark.parametrize("kind", KINDS)
def test_hashes_are_of_the_keys_alone(kind: str) -> None:
    keys = random_keys(kind, np.random.default_rng(1), 5000)
    if kind in ("text", "binary"):
        keys = keys.cast(getattr(pa, {"text": "large_string"}.get(kind, "large_binary"))())
    hashes = table_partitions.key_hashes(keys)
    assert len(np.unique(hashes)) == 5000
    assert np.array_equal(table_partitions.key_hashes(keys.slice(77, 900)), hashes[77:977])
    order = pa.array(np.arange(5000)[::-1])
    assert np.array_equal(table_partitions.key_hashes(keys.take(order)), hashes[::-1])
    # Of 50 partitions with 100 keys each on average none is half as full or twice.
    counts = np.bincount((hashes % np.uint64(50)).astype(int), minlength=50)
    assert counts.min() > 50 and counts.max() < 200


def test_hashes_of_long_and_empty_keys() -> None:
    texts = ["", "\0", "\0\0", "x" * 9000, "x" * 9001, "y" + "x" * 8999, "x" * 8]
    hashes = table_partitions.key_hashes(pa.array(texts, pa.large_string()))
    assert len(set(hashes.tolist())) == len(texts)
    assert len(table_partitions.key_hashes(pa.array([], pa.large_string()))) == 0
    zeros = table_partitions.key_hashes(pa.array([0.0, -0.0]))
    assert zeros[0] == zeros[1]


NOTES = ["", None, "plain", "Größe \U0001f40d", "x" * 300]
COLUMNS = {
    "color": "category",
    "code": "category",
    "shop": "category",
    "fast": "category",
    "note": "text",
    "full": "text",
    "word": "text",
    "day": "time",
    "born": "time",
    "look": "embedding",
    "sum": "number",
}


def piece(random: np.random.Generator, first: int, count: int) -> Any:
    """Rows of a table with columns of all kinds, whose dictionaries differ from other rows'."""
    names = [f"c{i}" for i in random.permutation(60)[:40]]
    # Some categories have no row.
    colors = random.integers(0, 30, count)
    coded = pa.array(colors, pa.int8(), mask=random.random(count) < 0.2)
    days = np.datetime64("2025-01-01") + random.integers(0, 99, count)
    notes = [NOTES[i] for i in random.integers(0, len(NOTES), count)]
    if not first:
        # The first rows lack nothing.
        notes, coded = [note or "" for note in notes], pa.array(colors, pa.int8())
    shops = random.integers(first, first + 90, count)
    return pa.table(
        {
            "k": pa.array([f"k{i}" for i in range(first, first + count)], pa.string()),
            "color": pa.DictionaryArray.from_arrays(coded, pa.array(names)),
            "code": pa.array([f"n{i}" if i % 7 else None for i in shops], pa.string()),
            "shop": pa.array(shops.astype(float), mask=random.random(count) < 0.1),
            "fast": pa.array(shops % 2 == 0, mask=random.random(count) < 0.1),
            "note": pa.array(notes, pa.string()),
            "full": pa.array([note or "-" for note in notes], pa.string()),
            "word": pa.array(notes, pa.string()).dictionary_encode(),
            "day": pa.array(days, pa.date32(), mask=random.random(count) < 0.1 * (first > 0)),
            "born": days.astype("datetime64[us]"),
            "look": pa.array(random.random((count, 3)).tolist(), pa.list_(pa.float64())),
            "sum": pa.array(shops, mask=random.random(count) < 0.1 * (first > 0)),
        }
    )


def as_chunks(pieces: list[Any], folder: Path) -> Any:
    return pa.concat_tables(pieces)


def batch_of(table: Any) -> Any:
    """Returns a table of one piece as a batch, also without rows."""
    columns = [column.chunk(0) for column in table.columns]
    return pa.RecordBatch.from_arrays(columns, table.column_names)


def as_batches(pieces: list[Any], folder: Path) -> Any:
    batches = list(map(batch_of, pieces))
    return pa.RecordBatchReader.from_batches(pieces[0].schema, batches)


def as_parquet_files(pieces: list[Any], folder: Path) -> Any:
    # Dictionaries that are full are written as plain text.
    options = {"row_group_size": 50, "dictionary_pagesize_limit": 64, "data_page_size": 64}
    for place, each in enumerate(pieces):
        pq.write_table(each, folder / f"{place}.parquet", **options if place % 2 else {})
    return folder


def as_arrow_files(pieces: list[Any], folder: Path) -> Any:
    for place, each in enumerate(pieces):
        with pa.ipc.new_file(folder / f"{place}.arrow", each.schema) as writer:
            writer.write_batch(batch_of(each))
    return folder


def as_csv_file(pieces: list[Any], folder: Path) -> Any:
    from pyarrow import csv

    table = pa.concat_tables(pieces).drop_columns(["look"])
    for name in ("color", "word"):
        place = table.column_names.index(name)
        table = table.set_column(place, name, table[name].cast(pa.string()))
    # Arrow 17 writes the names once more behind a chunk without rows.
    csv.write_csv(table.combine_chunks(), folder / "a.csv")
    return folder / "a.csv"


def as_frame(pieces: list[Any], folder: Path) -> Any:
    partner("pandas")
    return pa.concat_tables(pieces).unify_dictionaries().to_pandas()


def as_lazy_frame(pieces: list[Any], folder: Path) -> Any:
    return partner("polars").concat([partner("polars").from_arrow(each) for each in pieces]).lazy()


COLUMN_SOURCES = (
    as_chunks,
    as_batches,
    as_parquet_files,
    as_arrow_files,
    as_csv_file,
    as_frame,
    as_lazy_frame,
)


@pytest.mark.parametrize("memory", [1 << 11, 1 << 16, 1 << 30])
@pytest.mark.parametrize("source", COLUMN_SOURCES)
@pytest.mark.parametrize("seed", [0, 1])
def test_columns_of_every_kind(
    tmp_path: Path,
    source: Callable[[list[Any], Path], Any],
    memory: int,
    seed: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(table_batches, "_FEWEST", 5)
    monkeypatch.setattr(table_columns, "_PENDING", 16)
    random = np.random.default_rng(seed)
    counts = [0, 61, 1, *random.integers(0, 90, 4).tolist(), 200, 0]
    firsts = np.cumsum([0, *counts])
    pieces = [piece(random, *each) for each in zip(firsts.tolist(), counts, strict=False)]
    kinds = dict(COLUMNS)
    if source is as_csv_file:
        del kinds["look"]
    keys = random.integers(0, sum(counts), 300)
    schema = {
        "a": {"key": "k", "time": "born", "columns": {**kinds, "k": "text"}},
        "b": {"links": {"f": "a"}},
    }
    folders = iter((tmp_path / "1", tmp_path / "2"))

    def tables() -> dict[str, Any]:
        folder = next(folders)
        folder.mkdir()
        return {"a": source(pieces, folder), "b": {"f": [f"k{i}" for i in keys.tolist()]}}

    want, found = both(tmp_path, tables, schema, memory)
    assert found == want
    with pgs.Graph.open(tmp_path / "out.pgs", verify=True) as graph:
        columns = graph.columns["a"]
        rows = pa.concat_tables(pieces)
        assert {name: column.kind for name, column in columns.items()} == {
            **kinds,
            "k": "text",
        }
        color, note = columns["color"], columns["note"]
        assert len(set(color.categories)) == len(color.categories) >= 30
        if source is as_csv_file:
            # Text that is missing there is empty.
            return
        names = [None if i < 0 else color.categories[i] for i in color.values.tolist()]
        assert names == rows["color"].to_pylist()
        assert note.values.to_pylist() == rows["note"].to_pylist()
        assert np.array_equal(note.missing, rows["note"].is_null().to_numpy())


def coded(indices: list[int | None], names: list[str | None]) -> Any:
    return pa.DictionaryArray.from_arrays(
        pa.array(indices, pa.int8()), pa.array(names, pa.string())
    )


MANY_NAMES = [[f"{part}{i}" for i in range(100)] for part in "xyz"]
ODD: dict[str, tuple[list[Any], tuple[str, ...]]] = {
    "more than int8": (
        [coded([99, 0, None], names) for names in MANY_NAMES],
        tuple(name for names in MANY_NAMES for name in names),
    ),
    "a name twice": ([coded([0], ["x"]), coded([2, 1, None], ["z", "y", "y"])], ("x", "z", "y")),
    "one with a name twice": ([coded([2, 0], ["y", "z", "y"]), coded([1], ["y", "z", "y"])], "yz"),
    "a missing name": ([coded([1, 0], [None, "b"]), coded([0], [None]), coded([0], ["a"])], "ba"),
    "nothing": ([coded([], [])], ()),
    "a name twice without rows": ([coded([], ["x", "x"])], ("x",)),
    "a missing name in a piece without rows": ([coded([0], ["x", "y"]), coded([], [None])], ("x",)),
    "without rows": (
        [coded([], ["q", "p"]), coded([1], ["p", "r"]), coded([], ["s"])],
        ("q", "p", "r", "s"),
    ),
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("source", [as_chunks, as_batches, as_arrow_files])
def test_dictionaries_that_differ(
    tmp_path: Path,
    name: str,
    source: Callable[[list[Any], Path], Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(table_batches, "_FEWEST", 1)
    chunks, wanted = ODD[name]
    pieces = [
        pa.table({"c": chunk, "f": pa.array([0] * len(chunk), pa.int64())}) for chunk in chunks
    ]
    folders = iter((tmp_path / "1", tmp_path / "2"))

    def tables() -> dict[str, Any]:
        folder = next(folders)
        folder.mkdir()
        return {"a": {"k": [0]}, "b": source(pieces, folder)}

    schema = {"a": {"key": "k"}, "b": {"links": {"f": "a"}}}
    want, found = both(tmp_path, tables, schema, 1)
    assert found == want
    with pgs.Graph.open(tmp_path / "out.pgs") as graph:
        column = graph.columns["b"]["c"]
        assert column.categories == tuple(wanted)
        names = [None if i < 0 else column.categories[i] for i in column.values.tolist()]
    assert names == [each for chunk in chunks for each in chunk.to_pylist()]


MANY = 300
WORDS = [f"w{i}" for i in range(MANY)]
BAD: dict[str, Any] = {
    "a key twice": ({"a": {"k": [*WORDS, "w9", "w200", "w9"]}, "b": {"f": WORDS}}, ONE_LINK),
    "one key": ({"a": {"k": [7] * 900}, "b": {"f": [7]}}, ONE_LINK),
    "keys missing": ({"a": {"k": [*WORDS, None, "x", None]}, "b": {"f": WORDS}}, ONE_LINK),
    "keys rounded": ({"a": {"k": [2.0**53, *range(99), 2.0**60]}, "b": {"f": [5]}}, ONE_LINK),
    "links rounded": ({"a": {"k": [5]}, "b": {"f": [2.0**53, *[5] * 99, 2.0**60]}}, ONE_LINK),
    "unmatched": ({"a": {"k": WORDS}, "b": {"f": [*WORDS, "no", None, "x", "no", "y", "z"]}}, None),
    "unmatched floats": ({"a": {"k": [1]}, "b": {"f": [1.0, 7.0, *[1.0] * 99, 5.0]}}, ONE_LINK),
    "no keys": ({"a": {"k": []}, "b": {"f": [None, *range(99)]}}, ONE_LINK),
    "types": ({"a": {"k": WORDS}, "b": {"f": [None] * 99 + [5]}}, ONE_LINK),
    "fractions": ({"a": {"k": [5]}, "b": {"f": [*[5.0] * 99, 5.5]}}, ONE_LINK),
    "structs": ({"a": {"k": [{"x": 1}]}, "b": {"f": [1]}}, ONE_LINK),
    "times": ({"a": {"k": [1]}, "b": {"f": [1] * MANY, "t": [1.0, NAN] * (MANY // 2)}}, "t"),
    "dates": (
        {"a": {"k": [1]}, "b": {"f": [1] * MANY, "t": ["2025-01-01"] * 200 + ["x"] * 100}},
        "t",
    ),
    "columns": (
        {
            "a": {"k": [1]},
            "b": {
                "f": [1] * MANY,
                "c": [None, *[datetime.date(2025, 1, 1)] * 200, *[datetime.date(3000, 1, 1)] * 99],
            },
        },
        "c",
    ),
    "lists": ({"a": {"k": [1]}, "b": {"f": [1] * MANY, "c": [*[[1]] * 200, *[None] * 100]}}, "c"),
    "lengths": (
        {"a": {"k": [1]}, "b": {"f": [1] * MANY, "c": [*[[1]] * 200, *[[1, 2]] * 100]}},
        "c",
    ),
    "bytes": ({"a": {"k": [1]}, "b": {"f": [1] * MANY, "c": [b"x"] * MANY}}, "c"),
    "categories": (
        {"a": {"k": [1]}, "b": {"f": [1] * MANY, "c": [*range(200), *[0.5] * 100]}},
        {"c": "category"},
    ),
    "structs as categories": (
        {"a": {"k": [1]}, "b": {"f": [1] * MANY, "c": [{"x": 1}] * MANY}},
        {"c": "category"},
    ),
    "kinds": ({"a": {"k": [1]}, "b": {"f": [1] * MANY, "c": WORDS}}, {"c": "number"}),
    "no links": ({"a": {"k": [1]}}, {"a": {"key": "k"}}),
    "names": (
        {"a": {"k": [1], "up": [1], "rev_up": [1]}},
        {"a": {"key": "k", "links": {"up": "a", "rev_up": "a"}}},
    ),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("memory", [SMALL, 1 << 30])
def test_mistakes_are_those_of_the_graph_in_memory(tmp_path: Path, name: str, memory: int) -> None:
    tables, schema = BAD[name]
    if schema is None:
        schema = ONE_LINK
    elif schema == "t":
        schema = {**ONE_LINK, "b": {"links": {"f": "a"}, "time": "t"}}
    elif "c" in schema:
        columns = ["c"] if schema == "c" else schema
        schema = {**ONE_LINK, "b": {"links": {"f": "a"}, "columns": columns}}
    errors = []
    for options in ({}, {"out": tmp_path / "out.pgs", "memory": memory}):
        with pytest.raises((TypeError, ValueError)) as raised:
            pgs.Graph.from_tables(tables, schema, **options)
        errors.append((raised.value.__class__, str(raised.value)))
    assert errors[0] == errors[1]
    assert not list(tmp_path.iterdir())


def test_the_log_is_that_of_the_graph_in_memory(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tables, _ = BAD["unmatched"]
    with caplog.at_level(logging.WARNING, "pygsampler"):
        want, found = both(tmp_path, lambda: tables, ONE_LINK, unmatched="drop")
    assert found == want
    first, second = (record.getMessage() for record in caplog.records)
    assert first == second
    assert "5 of 306 rows with keys that no row has, such as 'no', 'x', 'y'; they" in first


def test_arguments(tmp_path: Path) -> None:
    tables = {"a": {"k": [1]}, "b": {"f": [1]}}
    for options, error, text in (
        ({"memory": 5}, ValueError, "memory: expected None without out, got int 5"),
        ({"memory": 0, "out": tmp_path / "x"}, ValueError, "memory: expected"),
        ({"memory": "1", "out": tmp_path / "x"}, TypeError, "memory: expected"),
        ({"out": 5}, TypeError, "out: expected a str or os.PathLike"),
        ({"out": tmp_path / "none" / "x"}, FileNotFoundError, "there is no folder"),
        ({"out": tmp_path / "x", "unmatched": "keep"}, ValueError, "unmatched: expected one of"),
        ({"out": tmp_path / "x", "progress": 5}, TypeError, "progress: expected"),
        ({"progress": 5}, TypeError, "progress: expected"),
    ):
        with pytest.raises(error, match=text):
            pgs.Graph.from_tables(tables, ONE_LINK, **options)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("out", [False, True])
def test_progress_counts_rows(tmp_path: Path, out: bool) -> None:
    tables = as_parquet(tmp_path)
    calls: list[tuple[int, int]] = []
    options = {"out": tmp_path / "out.pgs", "memory": SMALL} if out else {}
    pgs.Graph.from_tables(
        tables, SCHEMA, progress=lambda *numbers: calls.append(numbers), **options
    )
    done = [each for each, _ in calls]
    assert done == sorted(done) and all(each <= total for each, total in calls)
    # Links and the key of "users" are read, joined and written, or read and joined.
    assert calls[-1] == ((60 * 6 + 500 * 4,) * 2 if out else (60 * 3 + 500 * 2,) * 2)
    assert len(calls) > 20


@pytest.mark.parametrize("out", [False, True])
def test_ctrl_c_leaves_what_was_there(tmp_path: Path, out: bool) -> None:
    tables = as_parquet(tmp_path)
    path = tmp_path / "out" / "out.pgs"
    path.parent.mkdir()
    path.write_bytes(b"before")
    options = {"out": path, "memory": SMALL} if out else {}
    moment = 0
    while True:
        left = moment

        def look(done: int, total: int) -> None:
            nonlocal left
            left -= 1
            if left == -1:
                signal.raise_signal(signal.SIGINT)

        try:
            pgs.Graph.from_tables(tables, SCHEMA, progress=look, **options)
        except KeyboardInterrupt:
            assert list(path.parent.iterdir()) == [path]
            assert path.read_bytes() == b"before"
            moment += 1 + moment // 3
        else:
            break
    assert moment > 20
    assert (path.read_bytes() == b"before") == (not out)


KILLED = """
    import os, signal
    import pygsampler as pgs
    tables = {"a": {"a_id": [1]}, "b": {"a_id": [1]}}
    kill = lambda done, total: os.kill(os.getpid(), signal.SIGKILL)
    pgs.Graph.from_tables(tables, out="out.pgs", progress=kill)
"""


def test_folders_of_killed_processes_are_removed(
    tmp_path: Path, run_python: Callable[..., str]
) -> None:
    run_python(KILLED, ends_with=-signal.SIGKILL)
    (folder,) = tmp_path.iterdir()
    (tmp_path / ".out.pgs.note.tmp").mkdir()
    os.utime(tmp_path / ".out.pgs.note.tmp", (0, 0))
    tables = {"a": {"k": [1]}, "b": {"f": [1]}}
    # Its process may be about to lock it.
    pgs.Graph.from_tables(tables, ONE_LINK, out=tmp_path / "out.pgs").close()
    assert folder.exists()
    os.utime(folder, (0, 0))
    with table_file._locked(str(folder)):
        pgs.Graph.from_tables(tables, ONE_LINK, out=tmp_path / "out.pgs").close()
        assert folder.exists()
    pgs.Graph.from_tables(tables, ONE_LINK, out=tmp_path / "out.pgs").close()
    assert sorted(path.name for path in tmp_path.iterdir()) == [".out.pgs.note.tmp", "out.pgs"]


BOUNDED = """
    import os

    # Arrow's other allocators keep what was freed, tens of MB more where processors are busy.
    os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "system"

    import numpy as np, pyarrow as pa, pyarrow.parquet as pq, pygsampler as pgs

    ROWS, BATCH = 1_000_000, 50_000
    random = np.random.default_rng(0)

    def write(name, columns):
        with pq.ParquetWriter(name, pa.table(columns(0)).schema) as writer:
            for first in range(0, ROWS, BATCH):
                writer.write_table(pa.table(columns(first)))

    def keys(numbers):
        return pa.array([f"a key of some length {i}" for i in numbers.tolist()])

    order = random.permutation(ROWS)
    write("a.parquet", lambda at: {"k": keys(order[at : at + BATCH]), "x": random.random(BATCH)})

    def links(at):
        chosen = random.integers(0, ROWS, BATCH) ** 2 // ROWS
        # Categories of each part begin with other ones.
        colors = pa.array([f"color {i}" for i in (at + chosen % 700).tolist()])
        columns = {"f": keys(chosen), "note": keys(at + chosen), "size": keys(chosen % 1000)}
        return columns | {"color": colors.dictionary_encode()}

    write("b.parquet", links)

    def anonymous():
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("RssAnon"))

    most = 0

    def look(done, total):
        global most
        most = max(most, anonymous())

    kinds = {"note": "text", "size": "category", "color": "category"}
    schema = {"a": {"key": "k"}, "b": {"links": {"f": "a"}, "columns": kinds}}
    small = {"a": {"k": ["x"]}, "b": dict.fromkeys(["f", *kinds], ["x"])}
    pgs.Graph.from_tables(small, schema, out="small.pgs").close()
    before = anonymous()
    tables = {"a": "a.parquet", "b": "b.parquet"}
    graph = pgs.Graph.from_tables(tables, schema, out="out.pgs", memory=16 << 20, progress=look)
    assert graph.num_edges["b", "f", "a"] == ROWS
    assert len(graph.columns["b"]["color"].categories) > 10_000
    print(most - before)
"""


@pytest.mark.once
def test_memory_is_bounded(run_python: Callable[..., str]) -> None:
    """Builds in 20 to 45 MB a file that takes 240 MB and more without a bound."""
    assert int(run_python(BOUNDED)) < 150 << 10
