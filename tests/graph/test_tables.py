"""Graph.from_tables: rows are nodes, foreign keys are edges, and nothing is lost unsaid."""

from __future__ import annotations

import datetime
import decimal
import json
import logging
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from partners import partner

import pygsampler as pgs

pa = partner("pyarrow")
pq = partner("pyarrow.parquet")
pytestmark = pytest.mark.usefixtures("both_table_ways")

DAYS = np.array(["2024-03-01", "2024-03-02", "2024-03-05", "2024-03-09"], "datetime64[D]")
TABLES: dict[str, Any] = {
    "customers": {"customer_id": ["bo", "al", "cy"], "age": [30.0, None, 50.0]},
    "articles": {"article_id": [10, 30, 20], "price": [1, 2, None], "name": ["x", "y", "z"]},
    "sales": {
        "customer_id": ["al", "al", "cy", None],
        "article_id": [30, 20, 10, 10],
        "day": DAYS,
    },
}
SCHEMA: dict[str, Any] = {
    "customers": {"key": "customer_id"},
    "articles": {"key": "article_id"},
    "sales": {"links": {"customer_id": "customers", "article_id": "articles"}, "time": "day"},
}
BOUGHT = ("sales", "customer_id", "customers")
# Of tables "a" and "b".
ONE_LINK: dict[str, Any] = {"a": {"key": "k"}, "b": {"links": {"f": "a"}}}
LINK = ("b", "f", "a")


def edges(graph: pgs.Graph, kind: tuple[str, str, str]) -> list[tuple[int, int]]:
    """Source and destination of each edge, by edge id."""
    relation = graph[kind]
    starts, src = relation.indptr.tolist(), relation.indices.tolist()
    dst = np.repeat(np.arange(len(starts) - 1), np.diff(starts)).tolist()
    ids = relation.edge_ids.tolist() if relation.edge_ids is not None else range(len(src))
    found = dict(zip(ids, zip(src, dst, strict=True), strict=True))
    return [found[i] for i in range(len(src))]


def tables(**changes: Any) -> dict[str, Any]:
    return {name: {**columns, **changes.get(name, {})} for name, columns in TABLES.items()}


def check(graph: pgs.Graph) -> None:
    assert graph.num_nodes == {"customers": 3, "articles": 3, "sales": 4}
    assert edges(graph, BOUGHT) == [(0, 1), (1, 1), (2, 2)]
    assert edges(graph, ("customers", "rev_customer_id", "sales")) == [(1, 0), (1, 1), (2, 2)]
    assert edges(graph, ("sales", "article_id", "articles")) == [(0, 1), (1, 2), (2, 0), (3, 0)]
    found = graph.index_of({"customers": ["cy", "bo"], "articles": [20, 10]})
    assert {kind: ids.tolist() for kind, ids in found.items()} == {
        "customers": [2, 0],
        "articles": [2, 0],
    }
    age, price = graph.ndata["customers"]["age"].numpy(), graph.ndata["articles"]["price"].numpy()
    assert np.array_equal(age, [30, np.nan, 50], equal_nan=True)
    assert np.array_equal(price, [1, 2, np.nan], equal_nan=True)
    wanted = DAYS.astype("datetime64[ns]").astype(np.int64)
    assert graph.ndata["sales"]["time"].tolist() == wanted.tolist()


@pytest.mark.parametrize("schema", [SCHEMA, None])
def test_rows_are_nodes_and_foreign_keys_edges(schema: Any) -> None:
    check(pgs.Graph.from_tables(TABLES, schema))


def arrow() -> dict[str, Any]:
    return {name: pa.table(columns) for name, columns in TABLES.items()}


def test_frames_of_pandas() -> None:
    pandas = partner("pandas")
    check(pgs.Graph.from_tables({name: pandas.DataFrame(of) for name, of in TABLES.items()}))


def test_frames_of_polars() -> None:
    polars = partner("polars")
    check(pgs.Graph.from_tables({name: polars.DataFrame(of) for name, of in TABLES.items()}))


def test_what_arrow_reads() -> None:
    given = arrow()
    batches = given["sales"].to_batches(max_chunksize=3)
    reader = pa.RecordBatchReader.from_batches(given["sales"].schema, batches)
    check(pgs.Graph.from_tables({**given, "sales": reader}))
    names = pa.array(TABLES["customers"]["customer_id"]).dictionary_encode()
    coded = given["customers"].set_column(0, "customer_id", names)
    check(pgs.Graph.from_tables({**given, "customers": coded}))


def test_files_folders_and_patterns(tmp_path: Path) -> None:
    given = arrow()
    pq.write_table(given["customers"], tmp_path / "customers.parquet")
    from pyarrow import csv

    csv.write_csv(given["articles"], tmp_path / "articles.csv")
    (tmp_path / "sales").mkdir()
    for i in range(4):
        pq.write_table(given["sales"].slice(i, 1), tmp_path / "sales" / f"part-{i}.parquet")
    (tmp_path / "sales" / "_SUCCESS").write_text("")
    paths = {
        "customers": tmp_path / "customers.parquet",
        "articles": str(tmp_path / "articles.csv"),
    }
    check(pgs.Graph.from_tables({**paths, "sales": tmp_path / "sales"}))
    check(pgs.Graph.from_tables({**paths, "sales": str(tmp_path / "sales" / "part-*.parquet")}))
    with pytest.raises(FileNotFoundError, match=r"tables\['sales'\]: expected a file, a folder"):
        pgs.Graph.from_tables({**paths, "sales": tmp_path / "none.parquet"})
    with pytest.raises(ValueError, match=r"expected files of one of .*, got \.txt"):
        (tmp_path / "x.txt").write_text("a")
        pgs.Graph.from_tables({**paths, "sales": tmp_path / "x.txt"})


def test_folders_called_as_columns(tmp_path: Path) -> None:
    for year in (2023, 2024):
        for hidden in ("_temporary", ".checkpoints", "."):
            folder = tmp_path / "run=1" / "b" / f"year={year}" / hidden
            folder.mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.table({"f": [year]}), folder / "part.parquet")
    schema = {"a": {"key": "k"}, "b": {"links": {"f": "a", "year": "a"}}}
    given = {"a": {"k": [2024, 2023]}}
    for path in ("run=1/b", "run=1/b/year=*", "run=1/b/*/*.parquet"):
        graph = pgs.Graph.from_tables({**given, "b": tmp_path / path}, schema)
        for column in ("f", "year"):
            assert edges(graph, ("b", column, "a")) == [(0, 1), (1, 0)]
        assert set(graph.ndata["b"]) == set()
    # The files have the column too, of another type.
    pq.write_table(
        pa.table({"f": [2023], "year": [2023]}), tmp_path / "run=1/b/year=2023/part.parquet"
    )
    pq.write_table(
        pa.table({"f": [2024], "year": [2024]}), tmp_path / "run=1/b/year=2024/part.parquet"
    )
    graph = pgs.Graph.from_tables({**given, "b": tmp_path / "run=1/b"}, schema)
    assert edges(graph, ("b", "year", "a")) == [(0, 1), (1, 0)]
    (tmp_path / "none" / ".hidden").mkdir(parents=True)
    with pytest.raises(FileNotFoundError, match="none', which has none"):
        pgs.Graph.from_tables({**given, "b": tmp_path / "none"}, schema)


def test_files_of_several_schemas(tmp_path: Path) -> None:
    parts = [
        {"f": pa.nulls(1)},
        {"f": pa.array([2**40]), "x": pa.array([1])},
        {"f": pa.array([5], pa.int8()), "x": pa.array([1.5])},
    ]
    for i, part in enumerate(parts):
        pq.write_table(pa.table(part), tmp_path / f"{i}.parquet")
    graph = pgs.Graph.from_tables({"a": {"k": [5, 2**40]}, "b": tmp_path}, ONE_LINK)
    assert edges(graph, LINK) == [(1, 1), (2, 0)]
    assert np.array_equal(graph.ndata["b"]["x"].numpy(), [np.nan, 1, 1.5], equal_nan=True)


def test_text_that_is_missing_in_files(tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_text("f,x\nu,1\n,2\nNA,3\n")
    graph = pgs.Graph.from_tables({"a": {"k": ["NA", "u"]}, "b": tmp_path / "b.csv"}, ONE_LINK)
    assert edges(graph, LINK) == [(0, 1), (2, 0)]
    given = {"a": tmp_path / "b.csv", "b": {"f": ["u"]}}
    with pytest.raises(
        ValueError, match=r"f\[1\]: expected a key of each row, got a missing value"
    ):
        pgs.Graph.from_tables(given, {**ONE_LINK, "a": {"key": "f"}})


def test_text_of_several_lines_in_files(tmp_path: Path) -> None:
    # More than Arrow reads at once.
    count = 40_000
    rows = "".join(
        f'{i % 7},"{"line" * 20}\n{i},{i}\nof ""three"", and more",{i}\n' for i in range(count)
    )
    (tmp_path / "b.csv").write_text(f"f,text,x\n{rows}")
    given = {"a": {"k": list(range(7))}, "b": tmp_path / "b.csv"}
    graph = pgs.Graph.from_tables(given, ONE_LINK)
    assert edges(graph, LINK) == [(i, i % 7) for i in range(count)]
    assert graph.ndata["b"]["x"].tolist() == list(range(count))


@pytest.fixture
def database() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        yield connection


def test_rows_as_mappings(database: sqlite3.Connection) -> None:
    database.row_factory = lambda cursor, row: {
        about[0]: value for about, value in zip(cursor.description, row, strict=True)
    }
    query = database, "select 5 as f union all select 6 as f"
    graph = pgs.Graph.from_tables({"a": {"k": [6, 5]}, "b": query}, ONE_LINK)
    assert edges(graph, LINK) == [(0, 1), (1, 0)]


def test_queries_that_fail(database: sqlite3.Connection) -> None:
    for query, text in (
        ("selec 1", r"tables\['a'\]: near"),
        ("create table t (i)", r"tables\['a'\]: expected a query with columns, got"),
        ("select 1 as k, 2 as k", "expected columns of different names, got k twice"),
    ):
        with pytest.raises(ValueError, match=text):
            pgs.Graph.from_tables({"a": (database, query), "b": {"f": [1]}}, ONE_LINK)
    database.close()
    with pytest.raises(ValueError, match=r"tables\['a'\]: Cannot operate on a closed database"):
        pgs.Graph.from_tables({"a": (database, "select 1 as k"), "b": {"f": [1]}}, ONE_LINK)


def test_queries_of_duckdb_that_fail() -> None:
    connection = partner("duckdb").connect()
    for query, text in (
        ("selec 1", r"tables\['a'\]: Parser Error"),
        ("select error('no') as k", r"tables\['a'\]: .*no"),
        ("select 1 as k, 2 as k", "expected columns of different names, got k twice"),
    ):
        with pytest.raises(ValueError, match=text):
            pgs.Graph.from_tables({"a": (connection, query), "b": {"f": [1]}}, ONE_LINK)
    relation = connection.sql("select 1 as k")
    connection.close()
    with pytest.raises(ValueError, match=r"tables\['a'\]: .*closed"):
        pgs.Graph.from_tables({"a": relation, "b": {"f": [1]}}, ONE_LINK)


def test_queries_of_sqlite(database: sqlite3.Connection) -> None:
    database.execute("create table sold (customer_id text, article_id integer, day text)")
    columns = TABLES["sales"]
    rows = zip(*(columns[name] for name in ("customer_id", "article_id")), strict=True)
    database.executemany("insert into sold values (?, ?, null)", list(rows))
    query = database, "select customer_id, article_id from sold order by rowid"
    graph = pgs.Graph.from_tables({**TABLES, "sales": query})
    assert edges(graph, BOUGHT) == [(0, 1), (1, 1), (2, 2)]


def test_queries_of_duckdb() -> None:
    duckdb = partner("duckdb")
    connection = duckdb.connect()
    connection.register("sold", arrow()["sales"])
    query = connection, "select * from sold"
    check(pgs.Graph.from_tables({**TABLES, "sales": query}))
    check(pgs.Graph.from_tables({**TABLES, "sales": connection.sql("select * from sold")}))


IDS = [uuid.UUID(int=9), uuid.UUID(int=3), uuid.UUID(int=4)]


@pytest.mark.parametrize(
    ("keys", "labels"),
    [
        ([2**62, -5, 7], [2**62, -5, 7]),
        (["b", "a", "ü"], ["b", "a", "ü"]),
        (IDS, IDS),
        (
            [datetime.date(2024, 3, 1), datetime.date(2023, 1, 1), datetime.date(2025, 1, 1)],
            ["2024-03-01", "2023-01-01", "2025-01-01"],
        ),
        (
            [datetime.datetime(2024, 3, i, 12) for i in (1, 2, 3)],
            [f"2024-03-0{i}T12:00:00" for i in (1, 2, 3)],
        ),
        ([True, False], ["true", "false"]),
    ],
    ids=["integers", "text", "uuids", "dates", "times", "booleans"],
)
def test_keys_of_any_type(keys: list[Any], labels: list[Any], tmp_path: Path) -> None:
    given = {"a": {"a_id": keys}, "b": {"a_id": [*keys[::-1], None, keys[0]]}}
    graph = pgs.Graph.from_tables(given)
    last = len(keys) - 1
    want = [(i, last - i) for i in range(len(keys))] + [(len(keys) + 1, 0)]
    assert edges(graph, ("b", "a_id", "a")) == want
    assert graph.index_of({"a": labels[::-1]})["a"].tolist() == list(range(len(keys)))[::-1]
    graph.save(tmp_path / "g.pgs")
    with pgs.Graph.open(tmp_path / "g.pgs") as opened:
        assert opened.index_of({"a": labels})["a"].tolist() == list(range(len(keys)))


DAY, NOON = datetime.date(2024, 3, 1), datetime.datetime(2024, 3, 1, 12)
NAN = float("nan")


def typed(values: list[Any], kind: str, *more: Any) -> Any:
    return pa.array(values, getattr(pa, kind)(*more))


@pytest.mark.parametrize(
    ("keys", "foreign", "want"),
    [
        (typed([7, 5], "int8"), [5, 300, -1, 7], [(0, 1), (3, 0)]),
        (typed([7, 5], "uint32"), [5, -1], [(0, 1)]),
        (typed([2**63 + 1, 5], "uint64"), [5, -1], [(0, 1)]),
        ([7, 5], typed([5, 2**63 + 1], "uint64"), [(0, 1)]),
        (typed([7, 5], "int8"), [5.0, None, 300.0], [(0, 1)]),
        ([7, 5], np.array([NAN, 5.0]), [(1, 1)]),
        ([7, 5], pa.array([NAN, 5.0]), [(1, 1)]),
        (typed([0.1], "float32"), [0.1, float(np.float32(0.1))], [(1, 0)]),
        (typed([decimal.Decimal(7), decimal.Decimal(5)], "decimal128", 4, 0), [5], [(0, 1)]),
        (
            [7, 5],
            typed([decimal.Decimal("5.00"), decimal.Decimal("6.50")], "decimal128", 9, 2),
            [(0, 1)],
        ),
        ([DAY], [NOON, datetime.datetime(2024, 3, 1)], [(1, 0)]),
        (
            np.array([NOON], "datetime64[us]"),
            np.array(["2024-03-01T12:00:00.000000001", "2024-03-01T12"], "datetime64[ns]"),
            [(1, 0)],
        ),
        (np.array([NOON], "datetime64[h]"), [NOON], [(0, 0)]),
        (np.array(["2024-03"], "datetime64[M]"), [DAY], [(0, 0)]),
        (np.array([DAY]), [None, np.datetime64(DAY)], [(1, 0)]),
        ([b"u", b"v"], typed([b"v"], "large_binary"), [(0, 1)]),
        (IDS, [str(IDS[1]), None], [(0, 1)]),
        (list(map(str, IDS)), [IDS[1], None], [(0, 1)]),
        ([], [5], []),
        (["u"], np.array([NAN]), []),
        (["u"], np.array(["u", NAN, None], object), [(0, 0)]),
    ],
)
def test_keys_of_two_types(keys: Any, foreign: Any, want: Any) -> None:
    given = {"a": {"k": keys}, "b": {"f": foreign}}
    graph = pgs.Graph.from_tables(given, ONE_LINK, unmatched="drop")
    assert edges(graph, LINK) == want


@pytest.mark.parametrize(
    ("keys", "labels"),
    [
        (typed([7, 5], "uint64"), [5, 7]),
        (typed([2**63, 5], "uint64"), ["5", str(2**63)]),
        ([decimal.Decimal(7), decimal.Decimal(5)], [5, 7]),
        ([b"v", b"u"], ["u", "v"]),
        ([b"\xff", b"u"], ["75", "ff"]),
        ([NOON.date(), DAY - datetime.timedelta(1)], [DAY - datetime.timedelta(1), DAY]),
        ([NOON, datetime.datetime(2023, 1, 1)], [datetime.datetime(2023, 1, 1), NOON]),
    ],
)
def test_nodes_by_keys(keys: Any, labels: list[Any]) -> None:
    graph = pgs.Graph.from_tables({"a": {"k": keys}, "b": {"f": pa.nulls(1)}}, ONE_LINK)
    assert graph.index_of({"a": labels})["a"].tolist() == [1, 0]
    assert graph.index_of({"a": labels[0]})["a"] == 1


def test_uuids_that_match_nothing() -> None:
    given = {"a": {"k": IDS[1:]}, "b": {"f": IDS}}
    with pytest.raises(ValueError, match=f"such as '?{IDS[0]}"):
        pgs.Graph.from_tables(given, ONE_LINK)


def test_integers_that_floats_round() -> None:
    given = {"a": {"k": [2**53, 2**53 + 1]}, "b": {"f": [2.0**53, None]}}
    with pytest.raises(ValueError, match=r"tables\['b'\]: f: expected keys below 2\*\*53"):
        pgs.Graph.from_tables(given, ONE_LINK)


def test_indexes_of_pandas() -> None:
    pandas = partner("pandas")
    keys = pandas.DataFrame({"k": [5, 6], "x": [1, 2]}, index=[8, 7])
    foreign = pandas.DataFrame({"f": [6, None, 5]}, index=[0, 0, 1], dtype="Int64")
    want = [(0, 1), (2, 0)]
    for frame in (keys, keys.set_index("k"), keys.set_index(["k", "x"])):
        graph = pgs.Graph.from_tables({"a": frame, "b": foreign}, ONE_LINK)
        assert edges(graph, LINK) == want
        assert graph.ndata["a"]["x"].tolist() == [1, 2]


def test_columns_called_alike() -> None:
    pandas = partner("pandas")
    for table in (
        pandas.DataFrame([[1, 2, 3]], columns=["k", "x", "x"]),
        pandas.DataFrame([[1, 2, 3]], columns=["k", 1, "1"]),
        pa.table([pa.array([1])] * 3, names=["k", "x", "x"]),
    ):
        with pytest.raises(ValueError, match=r"tables\['a'\]: expected columns of different names"):
            pgs.Graph.from_tables({"a": table, "b": {"f": [1]}}, ONE_LINK)


def test_objects_of_polars() -> None:
    polars = partner("polars")
    keys = polars.DataFrame({"k": polars.Series(IDS, dtype=polars.Object)})
    foreign = polars.LazyFrame({"f": [str(IDS[2]), None]})
    graph = pgs.Graph.from_tables({"a": keys, "b": foreign}, ONE_LINK)
    assert edges(graph, LINK) == [(0, 2)]


def test_integers_with_gaps_are_floats_in_pandas() -> None:
    pandas = partner("pandas")
    given = {
        "a": pandas.DataFrame({"a_id": [4, 5]}),
        "b": pandas.DataFrame({"a_id": [5.0, None, 4.0]}),
    }
    assert edges(pgs.Graph.from_tables(given), ("b", "a_id", "a")) == [(0, 1), (2, 0)]


def test_columns_of_missing_keys_alone() -> None:
    graph = pgs.Graph.from_tables({"a": {"a_id": ["x"]}, "b": {"a_id": [None, None]}})
    assert graph.num_edges == {("b", "a_id", "a"): 0, ("a", "rev_a_id", "b"): 0}
    assert graph.num_nodes == {"a": 1, "b": 2}


def test_links_to_the_own_table_and_two_to_one() -> None:
    given = {
        "people": {"id": [1, 2, 3], "boss": [None, 1, 1]},
        "calls": {"caller": [1, 3], "called": [2, 2]},
    }
    links = {"caller": "people", "called": "people"}
    schema = {"people": {"key": "id", "links": {"boss": "people"}}, "calls": {"links": links}}
    graph = pgs.Graph.from_tables(given, schema)
    assert edges(graph, ("people", "boss", "people")) == [(1, 0), (2, 0)]
    assert edges(graph, ("people", "rev_boss", "people")) == [(0, 1), (0, 2)]
    assert edges(graph, ("calls", "caller", "people")) == [(0, 0), (1, 2)]
    assert edges(graph, ("calls", "called", "people")) == [(0, 1), (1, 1)]
    assert graph.num_nodes == {"people": 3, "calls": 2}


def test_keys_that_match_nothing(caplog: pytest.LogCaptureFixture) -> None:
    given = tables(sales={"article_id": [30, 99, 98, 99]})
    text = "3 of 4 rows with keys that no row has, such as 99, 98"
    with pytest.raises(
        ValueError, match=rf"tables\['sales'\]: article_id: expected keys of 'articles', got {text}"
    ):
        pgs.Graph.from_tables(given)
    with caplog.at_level(logging.WARNING, "pygsampler"):
        graph = pgs.Graph.from_tables(given, unmatched="drop")
    assert edges(graph, ("sales", "article_id", "articles")) == [(0, 1)]
    assert text in caplog.text
    with pytest.raises(ValueError, match="unmatched: expected one of"):
        pgs.Graph.from_tables(given, unmatched="keep")


def test_samples_are_not_later_than_their_seeds() -> None:
    graph = pgs.Graph.from_tables(TABLES)
    sampler = pgs.PGSampler([5, 5], temporal="time", seed=1)
    bound = {"customers": np.array(["2024-03-01T12"], "datetime64[h]")}
    batch = sampler.sample(graph, {"customers": [1]}, seed_time=bound)
    assert batch.input_nodes["sales"].tolist() == [0]
    assert batch.input_nodes["articles"].tolist() == [1]


@pytest.mark.parametrize(
    ("times", "error", "text"),
    [
        (np.array([1, NAN]), ValueError, "expected a time of each row, got 1 missing of 2"),
        (["2024-03-01", "soon"], TypeError, r"day\[1\]: expected a number, or a date"),
        ([datetime.time(3)] * 2, TypeError, "expected dates or numbers, got time64"),
    ],
)
def test_times_that_are_none(times: Any, error: type[Exception], text: str) -> None:
    given = {"a": {"k": [5, 6]}, "b": {"f": [5, 6], "day": times}}
    schema = {**ONE_LINK, "b": {"links": {"f": "a"}, "time": "day"}}
    with pytest.raises(error, match=rf"tables\['b'\]: day.*{text.removeprefix('day')}"):
        pgs.Graph.from_tables(given, schema)


def test_times_of_no_rows() -> None:
    given = {"a": {"k": [5]}, "b": {"f": [], "day": []}}
    schema = {**ONE_LINK, "b": {"links": {"f": "a"}, "time": "day"}}
    assert pgs.Graph.from_tables(given, schema).ndata["b"]["time"].tolist() == []


@pytest.mark.parametrize("days", [[DAYS[0], np.datetime64("NaT"), DAYS[2]], DAYS[:3], DAYS[:0]])
def test_windows_of_days_take_dates_with_gaps_and_without_rows(days: Any) -> None:
    times = pa.array(np.array(days, "datetime64[s]"))
    given = {"a": {"k": [5]}, "b": {"f": [5] * len(times), "day": times}}
    latest = pgs.samplers.Temporal("time", window=np.timedelta64(2, "D"))
    schema: dict[str, Any] = {**ONE_LINK, "b": {"links": {"f": "a"}, "time": "day"}}
    if times.null_count:
        latest = pgs.samplers.Temporal("day", window=np.timedelta64(2, "D"))
        schema["b"] = {"links": {"f": "a"}, "columns": ["day"]}
    sampler = pgs.PGSampler([5], temporal=latest, seed=1)
    graph = pgs.Graph.from_tables(given, schema)
    batch = sampler.sample(graph, {"a": [0]}, seed_time=DAYS[2])
    # Rows 0 and 1 of the days without gaps are not within two days.
    assert batch.input_nodes["b"].tolist() == ([2] if len(times) else [])
    with pytest.raises(ValueError, match="seed_time"):
        sampler.sample(graph, {"a": [0]}, seed_time=np.datetime64("NaT"))


@pytest.mark.parametrize("suffix", [".json", ".yaml"])
def test_schemas_in_files(tmp_path: Path, suffix: str) -> None:
    if suffix == ".yaml":
        partner("yaml")
    path = tmp_path / f"schema{suffix}"
    path.write_text(json.dumps(SCHEMA))
    check(pgs.Graph.from_tables(TABLES, path))
    path.write_text("{a: [")
    with pytest.raises(ValueError, match=f"schema: expected {suffix[1:].upper()} in"):
        pgs.Graph.from_tables(TABLES, path)
    path.write_text('{"sales": {"links": {"customer_id": "customers"}, "links": {}}}')
    with pytest.raises(ValueError, match="got links twice in one mapping"):
        pgs.Graph.from_tables(TABLES, path)
    path.write_bytes(b'{"a": "\xff"}')
    with pytest.raises(ValueError, match=f"schema: expected {suffix[1:].upper()} in"):
        pgs.Graph.from_tables(TABLES, path)


def test_columns_of_decimals_large_integers_and_nested_rows() -> None:
    nested = np.arange(12.0).reshape(2, 3, 2)
    of = {
        "k": [1, 2],
        "price": [decimal.Decimal("1.50"), None],
        "large": [2**60 + 1, None],
        "grid": pa.array(nested.tolist(), pa.list_(pa.list_(pa.float32(), 2), 3)),
        "lists": nested.tolist(),
    }
    columns = [*list(of)[1:], "grid"]
    schema = {**ONE_LINK, "a": {"key": "k", "columns": columns}}
    graph = pgs.Graph.from_tables({"a": of, "b": {"f": [1]}}, schema)
    arrays = graph.ndata["a"]
    assert np.array_equal(arrays["price"].numpy(), [1.5, np.nan], equal_nan=True)
    assert np.array_equal(arrays["large"].numpy(), [2.0**60, np.nan], equal_nan=True)
    assert arrays["grid"].numpy().tolist() == arrays["lists"].numpy().tolist() == nested.tolist()
    default = pgs.Graph.from_tables({"a": of, "b": {"f": [1]}}, ONE_LINK)
    assert set(default.ndata["a"]) == {"price", "large", "grid", "node_ids"}


def test_the_time_among_the_columns() -> None:
    schema = {**ONE_LINK, "b": {"links": {"f": "a"}, "time": "time", "columns": ["time"]}}
    graph = pgs.Graph.from_tables({"a": {"k": [5]}, "b": {"f": [5], "time": [3]}}, schema)
    assert graph.ndata["b"]["time"].tolist() == [3]


def test_columns_become_arrays() -> None:
    of = {
        "a_id": [1, 2],
        "flag": [True, None],
        "small": np.array([1, 2], np.int16),
        "embedding": np.arange(6, dtype=np.float32).reshape(2, 3),
        "pairs": [[1, 2], [3, 4]],
        "born": DAYS[:2],
        "word": ["x", "y"],
        "raw": [b"x", b"y"],
    }
    given = {"a": of, "b": {"a_id": [1]}}
    plain = pgs.Graph.from_tables(given).ndata["a"]
    assert set(plain) == {"flag", "small", "embedding", "node_ids"} | {"time"}
    assert plain["embedding"].numpy().tolist() == [[0, 1, 2], [3, 4, 5]]
    assert np.array_equal(plain["flag"].numpy(), [1, np.nan], equal_nan=True)
    schema: dict[str, Any] = {"a": {"key": "a_id"}, "b": {"links": {"a_id": "a"}}}
    schema["a"]["columns"] = ["pairs", "born"]
    named = pgs.Graph.from_tables(given, schema).ndata["a"]
    assert set(named) == {"pairs", "born", "node_ids"}
    assert named["pairs"].numpy().tolist() == [[1, 2], [3, 4]]
    for columns, error, text in (
        (["raw"], TypeError, "raw: expected numbers, categories, dates, text or rows .*binary"),
        (["none"], ValueError, "expected a column 'none', got a_id, flag"),
    ):
        schema["a"]["columns"] = columns
        with pytest.raises(error, match=text):
            pgs.Graph.from_tables(given, schema)
    schema["a"] = {"key": "a_id", "columns": ["pairs"]}
    with pytest.raises(ValueError, match="pairs: expected rows of one length"):
        pgs.Graph.from_tables({**given, "a": {**of, "pairs": [[1], [3, 4]]}}, schema)
    missing = {**of, "born": [datetime.date(2024, 1, 1), None]}
    schema["a"] = {"key": "a_id", "columns": ["born"]}
    born = pgs.Graph.from_tables({**given, "a": missing}, schema).ndata["a"]["born"].numpy()
    assert born.view("datetime64[ns]").tolist()[1] is None
    schema["a"] = {"key": "a_id", "time": "born"}
    with pytest.raises(ValueError, match="born: expected a time of each row, got 1 missing of 2"):
        pgs.Graph.from_tables({**given, "a": missing}, schema)


@pytest.mark.parametrize(
    ("given", "schema", "error", "text"),
    [
        ([], None, TypeError, "tables: expected a mapping of names to tables"),
        ({1: {}}, None, TypeError, "tables: expected names of type str"),
        ({"a": 5}, None, TypeError, r"tables\['a'\]: expected a table of pandas"),
        ({"a": {"x": [object()]}}, None, TypeError, r"tables\['a'\]: .*did not recognize"),
        ({"a": {"x": [1, "a"]}}, None, TypeError, r"tables\['a'\]: x: expected values of one type"),
        ({"a": {"x": 5}}, None, TypeError, r"tables\['a'\]: x: expected values of one type"),
        ({"a": {"x": [2**70]}}, None, TypeError, r"tables\['a'\]: x: .*too large"),
        ({"a": {"x": ["\ud800"]}}, None, TypeError, r"tables\['a'\]: x: .*surrogates"),
        ({"a": {"x": [1], "y": []}}, None, ValueError, r"tables\['a'\]: .*length"),
        (
            {"a": {"k": [{"o": 1}]}, "b": {"f": [{"o": 1}]}},
            ONE_LINK,
            TypeError,
            r"tables\['a'\]: k: expected keys that can be compared, got struct",
        ),
        (
            {"a": {"k": [1.5, NAN]}, "b": {"f": [1.5]}},
            ONE_LINK,
            ValueError,
            r"k\[1\]: expected a key of each row, got a missing value",
        ),
        (
            {"a": {"k": [1], "node_ids": [2]}, "b": {"f": [1]}},
            ONE_LINK,
            ValueError,
            "expected no column 'node_ids' in addition to the key 'k'",
        ),
        (
            {"a": {"k": [1], "up": [1], "rev_up": [1]}},
            {"a": {"key": "k", "links": {"up": "a", "rev_up": "a"}}},
            ValueError,
            r"links\['rev_up'\]: expected one relation \('a', 'rev_up', 'a'\), got two",
        ),
        (
            {"a": {"k": [1]}, "b": {"f": [1]}},
            {"a": {"key": "k"}, "b": {"links": {"f": ["a"]}}},
            ValueError,
            r"links\['f'\]: expected one of a, b, got \['a'\]",
        ),
        ({"a": (5, "select 1")}, None, TypeError, r"tables\['a'\]: expected a connection, got"),
        (TABLES, {"other": {}}, ValueError, "expected tables of customers, .*, got 'other'"),
        (TABLES, [], TypeError, "schema: expected a mapping of tables"),
        (TABLES, {"sales": {"keys": "a"}}, ValueError, "expected key, links, time, columns"),
        (TABLES, {"sales": {"key": 5}}, TypeError, "key: expected a column, got int 5"),
        (TABLES, {"sales": {"links": ["a"]}}, TypeError, "links: expected a mapping"),
        (TABLES, {"sales": {"columns": "a"}}, TypeError, "columns: expected a list of names"),
        (TABLES, {"sales": {"key": "none"}}, ValueError, "expected a column 'none'"),
        (TABLES, {}, ValueError, "schema: expected a link between two tables"),
        (
            TABLES,
            {"sales": {"links": {"customer_id": "customers"}}},
            ValueError,
            r"expected a table with a key, got 'customers'; schema\['customers'\] says it by",
        ),
        (
            TABLES,
            {"sales": {"links": {"customer_id": "none"}}},
            ValueError,
            "expected one of customers, articles, sales, got 'none'",
        ),
        (
            tables(customers={"customer_id": ["bo", None, "cy"]}),
            SCHEMA,
            ValueError,
            r"customer_id\[1\]: expected a key of each row, got a missing value",
        ),
        (
            tables(customers={"customer_id": ["bo", "al", "bo"]}),
            SCHEMA,
            ValueError,
            "expected different keys, got 'bo' in rows 0 and 2, and 1 repetitions in all",
        ),
        (
            tables(sales={"article_id": ["a", "b", "c", "d"]}),
            SCHEMA,
            TypeError,
            "article_id: expected keys of 'articles', int64, got large_string",
        ),
        (
            tables(sales={"article_id": ["10", "20", "30", "10"]}),
            SCHEMA,
            TypeError,
            "int64, got large_string; make one of them what the other is",
        ),
        (
            tables(sales={"article_id": [10.5, 20, 30, 10]}),
            SCHEMA,
            TypeError,
            "article_id: expected keys of 'articles', int64, got double",
        ),
        (
            tables(sales={"time": [1, 2, 3, 4]}),
            SCHEMA,
            ValueError,
            "expected no column 'time' in addition to the times 'day'",
        ),
    ],
)
def test_mistakes(given: Any, schema: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        pgs.Graph.from_tables(given, schema)


@pytest.mark.parametrize(
    ("given", "want"),
    [
        (
            {"Cities": {"ID": [1, 2]}, "shops": {"city_id": [2, 2, 9], "Opened": list(DAYS[:3])}},
            {"Cities": {"key": "ID"}, "shops": {"links": {"city_id": "Cities"}, "time": "Opened"}},
        ),
        (
            # Arrow does not compare structs.
            {"a": {"id": [{"o": 1}]}, "b": {"b_id": [1]}, "s": {"s_id": [1]}, "t": {"id": [1, 1]}},
            {"a": {}, "b": {"key": "b_id"}, "s": {"key": "s_id"}, "t": {}},
        ),
        (
            # No key: its values repeat.
            {"users": {"user_id": [1, 1]}, "posts": {"user_id": [1], "post_id": [5]}},
            {"users": {}, "posts": {"key": "post_id"}},
        ),
        (
            {"boxes": {"boxId": [1]}, "things": {"thing_id": [4], "box_id": [1]}},
            {
                "boxes": {"key": "boxId"},
                "things": {"key": "thing_id", "links": {"box_id": "boxes"}},
            },
        ),
        (
            # Times that some rows lack are guessed where there are no others.
            {
                "a": {"sent": [None, *DAYS[:2]], "paid": list(DAYS[:3]), "due": list(DAYS[:3])},
                "b": {"sent": [None, *DAYS[:2]], "paid": [*DAYS[:2], None]},
                "c": {"sent": pa.array([], pa.date32()), "paid": pa.array([], pa.date32())},
            },
            {"a": {"time": "paid"}, "b": {"time": "sent"}, "c": {"time": "sent"}},
        ),
    ],
)
def test_guesses(given: Any, want: Any) -> None:
    from pygsampler._graph.table_schema import schema_document

    assert schema_document(given, None) == want
    assert schema_document(given, want) == want


def test_times_are_guessed_of_columns_without_gaps(tmp_path: Path) -> None:
    from pyarrow import csv

    from pygsampler._graph.table_schema import schema_document, times_with_gaps

    table = pa.table(
        {
            "shipped": pa.array([None, *DAYS[1:3].tolist(), None], pa.date32()),
            "user_id": [1, 2, 1, 2],
            "ordered": pa.array(DAYS).cast(pa.timestamp("us")),
        }
    )
    parts = tmp_path / "parts"
    parts.mkdir()
    # The second file has no such column.
    pq.write_table(table[1:3], parts / "0.parquet")
    pq.write_table(table[:1].drop_columns("shipped"), parts / "1.parquet")
    csv.write_csv(table, tmp_path / "orders.csv")
    pq.write_table(table, tmp_path / "orders.parquet")
    for orders, gaps, rows in (
        (table, 2, 4),
        (parts, 1, 3),
        (tmp_path / "orders.csv", 2, 4),
        (tmp_path / "orders.parquet", 2, 4),
    ):
        tables = {"users": {"id": [1, 2]}, "orders": orders}
        found = schema_document(tables, None)
        assert found["orders"] == {"links": {"user_id": "users"}, "time": "ordered"}
        assert times_with_gaps(tables, found) == {}
        found["orders"]["time"] = "shipped"
        assert times_with_gaps(tables, found) == {"orders": (gaps, rows)}
        days = DAYS[[1, 2, 0]] if orders is parts else DAYS
        want = days.astype("datetime64[ns]").astype(np.int64).tolist()
        assert pgs.Graph.from_tables(tables).ndata["orders"]["time"].tolist() == want
        with pytest.raises(ValueError, match=f"expected a time of each row, got {gaps} missing"):
            pgs.Graph.from_tables(tables, found)
    numbers = pa.table({"at": [1.0, None, float("nan")]})
    assert times_with_gaps({"a": numbers}, {"a": {"time": "at"}}) == {"a": (2, 3)}
