"""python -m pygsampler tables: the schema of a folder of tables, and its graph file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from partners import partner

import pygsampler as pgs

partner("pyarrow")


# The tables of the folder, in the order of the command.
PATHS = {"no:body": "", "sales": "", "users": ".csv"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "shop"
    (made / "sales").mkdir(parents=True)
    (made / "no:body").mkdir()
    (made / ".hidden.csv").write_text("a\n1\n")
    (made / "users.csv").write_text("user_id,age\n5,30\n7,40\n")
    for i, row in enumerate(("5,2024-03-01", "7,2024-03-02", "9,2024-03-03")):
        (made / "sales" / f"{i}.csv").write_text(f"user_id,day\n{row}\n")
    (made / "no:body" / "x.csv").write_text("on\n1\n")
    return made


def test_schema_and_graph(run: Callable[..., Any], folder: Path, tmp_path: Path) -> None:
    want = {
        "no:body": {},
        "sales": {"links": {"user_id": "users"}, "time": "day"},
        "users": {"key": "user_id"},
    }
    assert json.loads(run("tables", folder, "--json").stdout) == want
    shown = run("tables", folder).stdout
    yaml = partner("yaml")
    assert yaml.safe_load(shown) == want
    schema = tmp_path / "schema.yaml"
    schema.write_text(shown.replace("  time: day", "  time: day\n  columns: []"))
    assert yaml.safe_load(run("tables", folder, "--schema", schema).stdout)["sales"] == {
        "links": {"user_id": "users"},
        "time": "day",
        "columns": [],
    }
    out = tmp_path / "shop.pgs"
    failed = run("tables", folder, "--schema", schema, "--out", out, ends_with=1)
    text = "1 of 3 rows with keys that no row has, such as 9; "
    assert f"{text}--unmatched drop gives them no edge" in failed.output
    assert not out.exists()
    told = run("tables", folder, "--schema", schema, "--out", out, "--unmatched", "drop", "--json")
    assert f"Note: tables['sales']: user_id: {text}they have no edge" in told.stderr
    assert json.loads(told.stdout)["num_edges"] == {
        "sales:user_id:users": 2,
        "users:rev_user_id:sales": 2,
    }
    with pgs.Graph.open(out) as graph:
        assert graph.num_nodes == {"no:body": 1, "sales": 3, "users": 2}
        assert graph.index_of({"users": [7, 5]})["users"].tolist() == [1, 0]
        assert graph.ndata["users"]["age"].tolist() == [30, 40]
        tables = {name: folder / f"{name}{end}" for name, end in PATHS.items()}
        pgs.Graph.from_tables(tables, schema, unmatched="drop").save(tmp_path / "memory.pgs")
    assert out.read_bytes() == (tmp_path / "memory.pgs").read_bytes()
    assert not list(tmp_path.glob(".*"))


def test_times_with_gaps(run: Callable[..., Any], folder: Path, tmp_path: Path) -> None:
    orders = folder / "orders.csv"
    orders.write_text("user_id,sent,paid\n5,,2024-03-02\n7,2024-03-02,2024-03-03\n")
    want = {"links": {"user_id": "users"}, "time": "paid"}
    plain = run("tables", folder)
    assert partner("yaml").safe_load(plain.stdout)["orders"] == want and "#" not in plain.stdout
    # No column of dates is whole.
    orders.write_text("user_id,sent,paid\n5,,2024-03-02\n7,2024-03-02,\n7,,\n")
    want["time"] = "sent"
    shown, note = run("tables", folder).stdout, "2 of 3 rows have none, which --out refuses: drop"
    assert f"  time: sent  # {note} them" in shown and shown.count("#") == 1
    assert partner("yaml").safe_load(shown)["orders"] == want
    told = run("tables", folder, "--json")
    assert json.loads(told.stdout)["orders"] == want
    assert f"Note: orders: time sent: {note}" in told.stderr
    schema, out = tmp_path / "schema.yaml", tmp_path / "shop.pgs"
    schema.write_text(shown)
    command = ("tables", folder, "--schema", schema, "--out", out, "--unmatched", "drop")
    failed = run(*command, ends_with=1)
    assert "sent: expected a time of each row, got 2 missing of 3; drop those rows" in failed.output
    schema.write_text("\n".join(line for line in shown.splitlines() if note not in line))
    run(*command)
    with pgs.Graph.open(out) as graph:
        assert "time" not in graph.ndata.get("orders", {})
        assert graph.num_nodes["orders"] == 3


def test_names_beyond_16_bits(run: Callable[..., Any], folder: Path) -> None:
    (folder / "\U0001f600.csv").write_text("user_id\n5\n")
    found = partner("yaml").safe_load(run("tables", folder).stdout)
    assert found["\U0001f600"] == {"links": {"user_id": "users"}}


def test_schemas_that_do_not_fit(run: Callable[..., Any], folder: Path, tmp_path: Path) -> None:
    schema = tmp_path / "schema.yaml"
    for text, want in (
        ("", "schema: expected a mapping of tables, got NoneType None"),
        ("users: {key: none}", "tables['users']: expected a column 'none', got user_id, age"),
    ):
        schema.write_text(text)
        assert want in run("tables", folder, "--schema", schema, ends_with=1).output


def test_two_tables_of_one_name(run: Callable[..., Any], folder: Path) -> None:
    (folder / "users").mkdir()
    failed = run("tables", folder, ends_with=2)
    assert "expected tables of different names, got users and users.csv" in failed.output


def test_mistakes(run: Callable[..., Any], tmp_path: Path) -> None:
    assert "expected files of tables, found none" in run("tables", tmp_path, ends_with=2).output
    assert "does not exist" in run("tables", tmp_path / "none", ends_with=2).output
