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
