"""Graphs of RelBench's databases have the nodes, edges and names that its own tools give them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from partners import partner

import pygsampler as pgs
from pygsampler.datasets import from_relbench

pandas = partner("pandas")
partner("pyarrow")
RNG = np.random.default_rng(4)


def table(frame: Any, links: dict[str, str], key: str | None, time: str | None) -> Any:
    """A table with the attributes of ``relbench.base.Table``."""
    return SimpleNamespace(df=frame, fkey_col_to_pkey_table=links, pkey_col=key, time_col=time)


def database() -> Any:
    """As ``Database.reindex_pkeys_and_fkeys`` leaves one: keys count from 0, dangling are NaN."""
    keys = RNG.integers(0, 30, 200).astype(float)
    keys[RNG.random(200) < 0.1] = np.nan
    days = pandas.to_datetime(RNG.integers(0, 10**6, 200), unit="h")
    frame = pandas.DataFrame({"review_time": days, "customer_id": keys, "text": ["x"] * 200})
    frame["product_id"] = RNG.integers(0, 5, 200)
    frame = frame.sort_values("review_time")
    customers = pandas.DataFrame({"customer_id": np.arange(30), "age": RNG.integers(9, 99, 30)})
    products = pandas.DataFrame({"product_id": np.arange(5), "tags": [None, [], ["a"], [], None]})
    links = {"customer_id": "customer", "product_id": "product"}
    tables = {
        "review": table(frame, links, None, "review_time"),
        "customer": table(customers, {}, "customer_id", None),
        "product": table(products, {}, "product_id", None),
    }
    return SimpleNamespace(table_dict=tables)


def test_edges_are_those_of_foreign_keys() -> None:
    given = database()
    graph = from_relbench(given)
    assert graph.num_nodes == {"review": 200, "customer": 30, "product": 5}
    review = given.table_dict["review"].df
    for column, target in (("customer_id", "customer"), ("product_id", "product")):
        values = review[column].to_numpy()
        rows = np.flatnonzero(~np.isnan(values))
        want = sorted(zip(rows.tolist(), values[rows].astype(int).tolist(), strict=True))
        back = f"rev_f2p_{column}"
        assert edges(graph["review", f"f2p_{column}", target]) == want
        assert edges(graph[target, back, "review"]) == sorted((b, a) for a, b in want)
    times = review["review_time"].to_numpy().astype("datetime64[ns]").astype(np.int64)
    assert graph.ndata["review"]["time"].tolist() == times.tolist()
    assert "age" in graph.ndata["customer"]
    sampler = pgs.PGSampler([9], temporal="time", seed=1)
    bound = review["review_time"].iloc[100]
    batch = sampler.sample(graph, {"customer": np.arange(30)}, seed_time=bound)
    found = batch.input_nodes["review"].tolist()
    # Rows are in the order of their times.
    assert found and max(found) <= 100


def edges(relation: pgs.Graph) -> list[tuple[int, int]]:
    starts = relation.indptr.numpy()
    dst = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return sorted(zip(relation.indices.tolist(), dst.tolist(), strict=True))


def test_what_is_no_database() -> None:
    for wrong in (None, {}, SimpleNamespace(table_dict={"a": 5})):
        with pytest.raises(TypeError, match=r"database: expected a relbench.base.Database, got"):
            from_relbench(wrong)


def typed_database() -> Any:
    """A database whose columns are of all kinds, some with missing values."""
    given = database()
    products = pandas.DataFrame(
        {
            "product_id": np.arange(5),
            "price": [1.5, None, 2.0, 3.0, 4.0],
            "brand": ["b", "a", None, "b", "c"],
            "size": pandas.Categorical(["S", "M", "S", None, "M"], ["S", "M"]),
            "title": ["one", None, "three", "", "five"],
            "since": pandas.to_datetime(["2020-01-01", None, "2021-01-01", None, "2022-01-01"]),
            "look": [[1.0, 2.0]] * 5,
            "tags": [None, [], ["a"], [], None],
        }
    )
    given.table_dict["product"] = table(products, {}, "product_id", None)
    return given


KINDS = {
    "price": "number",
    "brand": "category",
    "size": "category",
    "title": "text",
    "since": "time",
    "look": "embedding",
}


@pytest.mark.parametrize("columns", [KINDS, [*KINDS]], ids=["kinds", "names"])
def test_columns_have_their_kinds(columns: Any) -> None:
    given = typed_database()
    graph = from_relbench(given, columns={"product": columns})
    # Without kinds they follow from the types: strings are text.
    kinds = KINDS if isinstance(columns, dict) else {**KINDS, "brand": "text"}
    found = graph.columns["product"]
    assert {name: column.kind for name, column in found.items()} == kinds
    frame = given.table_dict["product"].df
    for name in set(kinds) - {"look"}:
        assert found[name].missing.tolist() == frame[name].isna().tolist(), name
    assert graph.ndata["product"]["price"].tolist()[2:] == [2.0, 3.0, 4.0]
    assert found["size"].categories == ("S", "M")
    assert found["size"].values.tolist() == [0, 1, 0, -1, 1]
    assert found["title"].values.to_pylist() == ["one", None, "three", "", "five"]
    assert graph.ndata["product"]["look"].tolist() == [[1.0, 2.0]] * 5
    if isinstance(columns, dict):
        assert found["brand"].categories == ("b", "a", "c")
        assert found["brand"].values.tolist() == [0, 1, -1, 0, 2]
    # Tables that are not named have numbers and categories, and the times of their rows.
    assert {name: c.kind for name, c in graph.columns["review"].items()} == {"time": "time"}
    assert {name: c.kind for name, c in graph.columns["customer"].items()} == {"age": "number"}
    plain = from_relbench(given)
    assert sorted(plain.columns["product"]) == ["price", "size"]
    assert plain.edge_types == graph.edge_types
    assert all(edges(plain[kind]) == edges(graph[kind]) for kind in graph.edge_types)


def test_a_table_may_keep_text_alone_or_nothing() -> None:
    graph = from_relbench(database(), columns={"review": ["text"], "customer": []})
    kinds = {name: column.kind for name, column in graph.columns["review"].items()}
    assert kinds == {"time": "time", "text": "text"}
    assert set(graph.ndata["review"]) == {"time"}
    assert not graph.columns.get("customer") and "age" not in graph.ndata["customer"]


def test_frames_of_pytorch_frame() -> None:
    torch_frame = partner("torch_frame")
    partner("torch_geometric")
    from pygsampler.pyg import tensor_frames

    frames, col_stats = tensor_frames(from_relbench(typed_database(), columns={"product": KINDS}))
    assert frames["product"].col_names_dict == {
        torch_frame.numerical: ["price"],
        torch_frame.categorical: ["brand", "size"],
        torch_frame.timestamp: ["since"],
        torch_frame.embedding: ["look"],
    }
    assert frames["product"].num_rows == 5
    assert frames["product"].feat_dict[torch_frame.categorical].tolist() == [
        *([0, 0], [1, 1], [-1, 0], [0, -1], [2, 1])
    ]
    assert set(col_stats["product"]) == set(KINDS) - {"title"}
    assert frames["review"].col_names_dict == {torch_frame.timestamp: ["time"]}
    assert frames["review"].num_rows == 200


@pytest.mark.parametrize(
    "columns, error, text",
    [
        (["title"], TypeError, r"columns: expected a mapping of tables, got list"),
        ({"products": ["title"]}, ValueError, r"columns: expected tables of review, customer, p"),
        ({"product": "title"}, TypeError, r"columns\['product'\]: expected a list of names, or a"),
        (
            {"product": {"title": "string"}},
            ValueError,
            r"columns\['product'\]\['title'\]: expected one of number, category, text, time, "
            r"embedding, got 'string'",
        ),
        ({"product": ["name"]}, ValueError, r"tables\['product'\]: expected a column 'name', got"),
        (
            {"product": {"title": "number"}},
            TypeError,
            r"tables\['product'\]: title: expected a column that can be 'number', got",
        ),
        ({"product": ["tags"]}, ValueError, r"tables\['product'\]: tags: expected a row for each"),
    ],
)
def test_columns_that_do_not_fit(columns: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        from_relbench(typed_database(), columns=columns)
