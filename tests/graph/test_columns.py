"""``Graph.columns``: numbers, categories, times, text and embeddings of tables."""

from __future__ import annotations

import copy
import datetime
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from partners import partner

import pygsampler as pgs

pa = partner("pyarrow")
pq = partner("pyarrow.parquet")
both_ways = pytest.mark.usefixtures("both_table_ways")

DAY = datetime.datetime(2024, 3, 1, 12)
TABLE: dict[str, Any] = {
    "id": [5, 6, 7, 8],
    "age": [30, None, 50, 20],
    "fast": [True, False, None, True],
    "color": ["red", None, "blue", "red"],
    "shop": [3.0, None, 9.0, 3.0],
    "note": ["ä note", "", None, "four"],
    "day": [DAY, None, DAY - datetime.timedelta(1), DAY],
    "emb": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]],
}
KINDS = {
    "age": "number",
    "fast": "number",
    "color": "category",
    "shop": "category",
    "note": "text",
    "day": "time",
    "emb": "embedding",
}
SALES = {"id": [8, 5, 5], "when": [DAY] * 3}
SCHEMA: dict[str, Any] = {
    "items": {"key": "id", "columns": KINDS},
    "sales": {"links": {"id": "items"}, "time": "when"},
}


def graph(schema: Any = SCHEMA, **changes: Any) -> pgs.Graph:
    return pgs.Graph.from_tables({"items": {**TABLE, **changes}, "sales": SALES}, schema)


def check(made: pgs.Graph) -> None:
    columns = made.columns["items"]
    assert {name: column.kind for name, column in columns.items()} == KINDS
    nan = float("nan")
    assert np.array_equal(columns["age"].values.numpy(), [30, nan, 50, 20], equal_nan=True)
    assert columns["color"].values.dtype == "int32"
    assert columns["color"].values.tolist() == [0, -1, 1, 0]
    assert columns["color"].categories == ("red", "blue")
    assert columns["shop"].values.tolist() == [0, -1, 1, 0]
    assert columns["shop"].categories == (3, 9)
    assert columns["note"].values.type == pa.large_string()
    assert columns["note"].values.to_pylist() == TABLE["note"]
    day = columns["day"].values.numpy().view("datetime64[ns]")
    wanted = np.array(TABLE["day"], "datetime64[ns]")
    assert np.array_equal(day, wanted, equal_nan=True)
    assert columns["emb"].values.tolist() == TABLE["emb"]
    for name, column in columns.items():
        assert column.missing.tolist() == [value is None for value in TABLE[name]], name
        assert (name in made.ndata["items"]) == (name != "note")
        if name != "note":
            assert made.ndata["items"][name].dtype == column.values.dtype
    assert {name: of.kind for name, of in made.columns["sales"].items()} == {"time": "time"}


def opened(made: pgs.Graph, folder: Path) -> pgs.Graph:
    made.save(folder / "g.pgs")
    return pgs.Graph.open(folder / "g.pgs", verify=True)


@both_ways
@pytest.mark.parametrize(
    "way",
    [
        lambda made, folder: made,
        opened,
        lambda made, folder: pickle.loads(pickle.dumps(made)),
        lambda made, folder: pickle.loads(pickle.dumps(opened(made, folder))),
        lambda made, folder: copy.copy(made),
        lambda made, folder: made.with_data(node_data={"sales": {"x": np.zeros(3)}}),
        lambda made, folder: made.to("cpu"),
        lambda made, folder: opened(opened(made, folder).with_data(), folder),
    ],
    ids=["made", "file", "pickle", "pickled file", "copy", "with_data", "to", "saved again"],
)
def test_columns_stay(way: Callable[[pgs.Graph, Path], pgs.Graph], tmp_path: Path) -> None:
    check(way(graph(), tmp_path))


@both_ways
@pytest.mark.parametrize("library", ["pandas", "polars", "arrow", "parquet"])
def test_columns_of_libraries(library: str, tmp_path: Path) -> None:
    if library == "pandas":
        frame = partner("pandas").DataFrame(TABLE).astype({"color": "category"})
        # pandas sorts categories.
        frame["color"] = frame["color"].cat.reorder_categories(["red", "blue"])
    elif library == "polars":
        frame = partner("polars").DataFrame(TABLE).cast({"color": partner("polars").Categorical})
    else:
        frame = pa.table({**TABLE, "color": pa.array(TABLE["color"]).dictionary_encode()})
    if library == "parquet":
        (tmp_path / "items").mkdir()
        for place in range(4):
            pq.write_table(frame.slice(place, 1), tmp_path / "items" / f"{place}.parquet")
        frame = tmp_path / "items"
    check(pgs.Graph.from_tables({"items": frame, "sales": SALES}, SCHEMA))


@both_ways
def test_kinds_are_guessed_by_types() -> None:
    listed = {**SCHEMA, "items": {"key": "id", "columns": list(KINDS)}}
    coded = pa.array(TABLE["color"]).dictionary_encode()
    kinds = {name: of.kind for name, of in graph(listed, color=coded).columns["items"].items()}
    assert kinds == {**KINDS, "shop": "number"}
    # By default numbers, and the categories of a dictionary.
    default = {**SCHEMA, "items": {"key": "id"}}
    kinds = {name: of.kind for name, of in graph(default, color=coded).columns["items"].items()}
    assert kinds == {"age": "number", "fast": "number", "color": "category", "shop": "number"}
    assert "color" not in graph(default).columns["items"]


@both_ways
def test_categories_of_pieces_and_repetitions() -> None:
    pieces = pa.chunked_array(
        [pa.array(["b", None]).dictionary_encode(), pa.array(["a", "b"]).dictionary_encode()]
    )
    column = graph(color=pieces).columns["items"]["color"]
    assert column.categories == ("b", "a") and column.values.tolist() == [0, -1, 1, 0]
    # A dictionary may have a name twice, and none.
    indices = pa.array([0, 1, 2, None], pa.int8())
    odd = pa.DictionaryArray.from_arrays(indices, pa.array(["x", "x", None]))
    column = graph(color=odd).columns["items"]["color"]
    assert column.categories == ("x",) and column.values.tolist() == [0, 0, -1, -1]
    # Categories that no row has stay.
    unused = pa.DictionaryArray.from_arrays(pa.array([1, 1, 1, 1]), pa.array(["x", "y"]))
    column = graph(color=unused).columns["items"]["color"]
    assert column.categories == ("x", "y") and column.values.tolist() == [1] * 4


@both_ways
def test_text_of_pieces_and_none() -> None:
    pieces = pa.chunked_array([pa.array(["x", "a", None]).slice(1), pa.array(["", "ü"])])
    assert graph(note=pieces).columns["items"]["note"].values.to_pylist() == ["a", None, "", "ü"]
    of = pa.table({"id": pa.array([], pa.int64()), "note": pa.array([], pa.string())})
    given = {"items": of, "sales": {"id": pa.array([], pa.int64())}}
    schema = {
        "items": {"key": "id", "columns": {"note": "text"}},
        "sales": {"links": {"id": "items"}},
    }
    column = pgs.Graph.from_tables(given, schema).columns["items"]["note"]
    assert column.values.to_pylist() == [] and column.missing.tolist() == []


@both_ways
def test_text_of_a_file_is_mapped(tmp_path: Path) -> None:
    made = opened(graph(note=["x" * 1000] * 4), tmp_path)
    stored = made.file_arrays["items"]
    place = list(KINDS).index("note")
    text = made.columns["items"]["note"].values
    assert text.buffers()[2].address == stored[f"columns.{place}.node_names.bytes"]._address
    assert text.buffers()[1].address == stored[f"columns.{place}.node_names.offsets"]._address


@both_ways
def test_a_schema_in_yaml_and_json(tmp_path: Path) -> None:
    yaml = partner("yaml")
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(SCHEMA))
    (tmp_path / "s.json").write_text(json.dumps(SCHEMA))
    check(graph(tmp_path / "s.yaml"))
    check(graph(tmp_path / "s.json"))


@both_ways
def test_columns_of_nothing_but_missing_values() -> None:
    kinds = {name: kind for name, kind in KINDS.items() if kind != "embedding"}
    schema = {**SCHEMA, "items": {"key": "id", "columns": kinds}}
    columns = graph(schema, **dict.fromkeys(kinds, [None] * 4)).columns["items"]
    assert {name: column.kind for name, column in columns.items()} == kinds
    assert all(column.missing.all() for column in columns.values())
    assert columns["color"].categories == columns["shop"].categories == ()
    with pytest.raises(TypeError, match="emb: expected a column that can be 'embedding', got null"):
        graph(emb=[None] * 4)


@both_ways
def test_dictionaries_that_are_called_text_or_numbers() -> None:
    kinds = {"color": "text", "shop": "number"}
    schema = {**SCHEMA, "items": {"key": "id", "columns": kinds}}
    coded = {name: pa.array(TABLE[name]).dictionary_encode() for name in kinds}
    columns = graph(schema, **coded).columns["items"]
    assert columns["color"].values.to_pylist() == TABLE["color"]
    assert np.array_equal(columns["shop"].values, [3, np.nan, 9, 3], equal_nan=True)


def test_the_command_shows_kinds(tmp_path: Path) -> None:
    yaml = partner("yaml")
    partner("click")
    from pygsampler._cli.commands.tables import _yaml
    from pygsampler._graph.table_schema import schema_document

    shown = schema_document({"items": TABLE, "sales": SALES}, SCHEMA)
    assert shown == SCHEMA and yaml.safe_load(_yaml(shown, {})) == SCHEMA
    listed = {**SCHEMA, "items": {"key": "id", "columns": list(KINDS)}}
    assert schema_document({"items": TABLE, "sales": SALES}, listed) == listed


def test_graphs_without_columns(tmp_path: Path) -> None:
    coo = pgs.Graph.from_coo(np.array([0, 1]), np.array([1, 0]), num_nodes=2)
    assert coo.columns == {}
    kind = ("a", "to", "b")
    typed = pgs.Graph.from_coo({kind: ([0], [0])}, num_nodes={"a": 1, "b": 1})
    assert typed.columns == {}
    assert opened(typed, tmp_path).columns == {}


@both_ways
def test_arrays_that_are_no_columns_are_refused(tmp_path: Path) -> None:
    made = graph()
    labels = dict(made.file_arrays["items"])
    for name, value in (
        ("columns", np.frombuffer(b"[{}]", np.uint8)),
        ("columns", np.frombuffer(b'[{"name": "age", "kind": "other"}]', np.uint8)),
        ("columns.4.node_names.offsets", np.array([0, 5, 3, 11, 11])),
        ("columns.4.node_names.offsets", np.array([0, 1, 2, 3, 100])),
        ("columns.4.valid", np.zeros(0, np.uint8)),
    ):
        from pygsampler._arrays.array import as_array

        made._source._labels["items"] = {**labels, name: as_array(value, name)}
        with pytest.raises(ValueError, match=r"columns\['items'\]: expected the columns that"):
            made.columns  # noqa: B018


@both_ways
@pytest.mark.parametrize(
    ("columns", "error", "text"),
    [
        ({"age": "numeric"}, ValueError, r"columns\['age'\]: expected one of number, category"),
        ({"age": None}, ValueError, r"columns\['age'\]: expected one of number, .*, got None"),
        ({"none": "text"}, ValueError, "expected a column 'none'"),
        ({"note": "number"}, TypeError, "note: expected a column that can be 'number', got .*str"),
        ({"age": "text"}, TypeError, "age: expected a column that can be 'text', got int64"),
        ({"age": "time"}, TypeError, "age: expected a column that can be 'time', got int64"),
        ({"emb": "category"}, TypeError, "emb: expected a column that can be 'category'"),
        ({"emb": "number"}, TypeError, "emb: expected a column that can be 'number'"),
        ({"age": "embedding"}, TypeError, "age: expected a column that can be 'embedding'"),
        ({"half": "category"}, TypeError, "half: expected categories, got numbers with fractions"),
        ("age", TypeError, "columns: expected a list of names, or a mapping of names to kinds"),
    ],
)
def test_wrong_kinds(columns: Any, error: type[Exception], text: str) -> None:
    schema = {**SCHEMA, "items": {"key": "id", "columns": columns}}
    with pytest.raises(error, match=text):
        graph(schema, half=[0.5, 1.0, 1.5, 2.0])


@both_ways
def test_samples_are_those_of_a_graph_without_columns() -> None:
    plain = {**SCHEMA, "items": {"key": "id", "columns": []}}
    sampler = pgs.PGSampler([3, 3], seed=1)
    one, other = (sampler.sample(made, {"items": [0, 3]}) for made in (graph(), graph(plain)))
    for kind in ("items", "sales"):
        assert one.input_nodes[kind].tolist() == other.input_nodes[kind].tolist()
