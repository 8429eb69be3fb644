"""Commands on files with types and with names: what they write is what Python writes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from partners import partner

import pygsampler as pgs

BUYS, KNOWS = ("user", "buys", "item"), ("user", "knows", "user")
RANDOM = np.random.default_rng(8)
USERS, ITEMS = 30, 20
BUYER, BOUGHT = RANDOM.integers(0, USERS, 300), RANDOM.integers(0, ITEMS, 300)
ONE, OTHER = RANDOM.integers(0, USERS, (2, 200))


@pytest.fixture
def tables(tmp_path: Path) -> tuple[Path, Path]:
    buys, knows = tmp_path / "buys.csv", tmp_path / "knows.csv"
    rows = zip(BUYER, BOUGHT, range(300), strict=True)
    lines = [f"{100 + u},{200 + v},{i}" for u, v, i in rows]
    buys.write_text("\n".join(["user_id,item_id,price", *lines]) + "\n")
    lines = [f"{100 + u},{100 + v}" for u, v in zip(ONE, OTHER, strict=True)]
    knows.write_text("\n".join(["src,dst", *lines]) + "\n")
    return buys, knows


@pytest.fixture
def shop(ask: Callable[..., Any], tables: tuple[Path, Path], tmp_path: Path) -> Path:
    out = tmp_path / "shop.pgs"
    types = ["--types", "user,buys,item", "--types", "user, knows, user"]
    found = ask("convert", *tables, out, *types, "--renumber", "--edge-data", "buys:price")
    assert found["num_nodes"] == {"user": USERS, "item": ITEMS}
    assert found["num_edges"] == {"user:buys:item": 300, "user:knows:user": 200}
    assert found["arrays"] == ["item.node_ids", "user.node_ids", "user:buys:item.price"]
    return out


@pytest.fixture
def named(ask: Callable[..., Any], tmp_path: Path) -> Path:
    path, out = tmp_path / "names.csv", tmp_path / "names.pgs"
    path.write_text("src,dst\nann,bob\nbob,ann\ncarl,ann\n")
    assert ask("convert", path, out, "--renumber")["num_nodes"] == 3
    return out


def expected() -> pgs.Graph:
    return pgs.Graph.from_coo(
        {BUYS: (BUYER, BOUGHT), KNOWS: (ONE, OTHER)}, num_nodes={"user": USERS, "item": ITEMS}
    )


def test_a_file_of_each_type_is_converted(shop: Path) -> None:
    with pgs.Graph.open(shop, verify=True) as graph:
        for kind in (BUYS, KNOWS):
            assert graph[kind].indices.tolist() == expected()[kind].indices.tolist()
        assert graph.edata[BUYS]["price"].tolist() == list(range(300))
        assert graph.ndata["item"]["node_ids"].tolist() == list(range(200, 220))


def test_columns_that_name_types_are_converted(ask: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    path.write_text("a,src,r,b,dst\nuser,0,buys,item,1\nuser,1,knows,user,0\n")
    options = ["--relation", "r", "--src-type", "a", "--dst-type", "b", "--src", "src"]
    found = ask("convert", path, tmp_path / "e.pgs", *options, "--dst", "dst")
    assert found["num_edges"] == {"user:buys:item": 1, "user:knows:user": 1}


def test_two_kinds_name_the_options(
    refused: Callable[..., str], ask: Callable[..., Any], tables: tuple[Path, Path], tmp_path: Path
) -> None:
    out = tmp_path / "g.pgs"
    said = refused("convert", tables[0], out)
    assert said.endswith(
        "got 'user_id' and 'item_id'; --types user,RELATION,item makes a heterogeneous graph, "
        "--one-kind one set of nodes"
    )
    assert ask("convert", tables[0], out, "--one-kind")["num_nodes"] == 220


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--types", "user,item"], "expected a type like user,buys,item, got 'user,item'"),
        (["--types", "a,b,c", "--relation", "r"], "--relation: expected none with --types"),
        (["--relation", "r"], "--src-type: expected a column, as for the other options, got none"),
        (["--types", "a,b,c", "--undirected"], "--undirected: expected none for a het"),
        (["--types", "a,b,c", "--one-kind"], "--one-kind: expected none for a heterogeneous graph"),
        (["--types", "a,b,c", "--types", "a,d,c"], "--types: expected one, or one of each of 1"),
    ],
)
def test_mistakes_in_types(
    refused: Callable[..., str],
    tables: tuple[Path, Path],
    tmp_path: Path,
    options: list[str],
    words: str,
) -> None:
    assert words in refused("convert", tables[1], tmp_path / "g.pgs", *options, ends_with=2)
    assert not (tmp_path / "g.pgs").exists()


def test_several_files_and_a_folder_are_one_list(
    ask: Callable[..., Any], refused: Callable[..., str], tmp_path: Path
) -> None:
    partner("pyarrow")
    folder = tmp_path / "parts"
    folder.mkdir()
    for i in range(3):
        (folder / f"{i}.csv").write_text(f"src,dst\n{i},0\n")
    for sources in ([folder], [folder / "*.csv"], sorted(folder.iterdir())):
        assert ask("convert", *sources, tmp_path / "g.pgs")["num_edges"] == 3
    found = ask("convert", folder, tmp_path / "t.pgs", "--types", "a,b,a")
    assert found["num_edges"] == {"a:b:a": 3}
    assert "expected files of the pattern" in refused("convert", folder / "x*.csv", tmp_path / "h")


def test_info_counts_what_numpy_counts(
    ask: Callable[..., Any], run: Callable[..., Any], shop: Path
) -> None:
    found = ask("info", shop, "--check", "--parallel-edges")
    assert found["ok"] is True
    assert found["checks"] == {"checksums": "ok", "offsets and ids": "ok"}
    assert found["num_nodes"] == {"user": USERS, "item": ITEMS}
    of = found["relations"]["user:buys:item"]
    degree = np.bincount(BOUGHT, minlength=ITEMS)
    assert (of["in_degree"]["min"], of["in_degree"]["max"]) == (degree.min(), degree.max())
    assert of["in_degree"]["mean"] == degree.mean()
    assert of["out_degree"]["zero"] == int((np.bincount(BUYER, minlength=USERS) == 0).sum())
    pairs = {(u, v) for u, v in zip(BUYER, BOUGHT, strict=True)}
    assert of["parallel_edges"] == 300 - len(pairs)
    shown = run("info", shop).stdout
    for text in ("300 user:buys:item", "20 item", "item.node_ids"):
        assert text in shown


def test_info_finds_damage_in_a_file_with_types(run: Callable[..., Any], shop: Path) -> None:
    raw = bytearray(shop.read_bytes())
    raw[-20] ^= 1
    shop.write_bytes(raw)
    result = run("info", shop, "--check", ends_with=1)
    assert "checksums" in result.stdout
    run("info", shop, "--plot", shop.with_suffix(".png"), ends_with=2)


def test_samples_of_types_are_those_of_the_sampler(ask: Callable[..., Any], shop: Path) -> None:
    pq = partner("pyarrow.parquet")
    out = shop.with_suffix(".parquet")
    options = ["--node-type", "item", "--fanouts", "3,4", "--batch-size", "8", "--seed", "5"]
    found = ask("sample", shop, "--seeds", "all", *options, "--out", out)
    rows = pq.read_table(out).to_pylist()
    want, sampler = [], pgs.PGSampler([3, 4], seed=5)
    shift = {"user": 100, "item": 200}
    for number, start in enumerate(range(0, ITEMS, 8)):
        seeds = {"item": np.arange(start, min(start + 8, ITEMS))}
        batch = sampler.sample(expected(), seeds, epoch=0, batch=number)
        for hop, blocks in enumerate(reversed(batch.blocks)):
            for kind, block in blocks.items():
                src, dst = (np.asarray(each) for each in block.coo())
                ends = (
                    np.asarray(batch.input_nodes[kind[end]])[each] + shift[kind[end]]
                    for end, each in ((0, src), (2, dst))
                )
                ids = np.asarray(block.edge_ids)
                want += [(number, hop, *edge, *kind) for edge in zip(*ends, ids, strict=True)]
    assert [tuple(row.values()) for row in rows] == want
    assert found["edges"] == len(rows)
    some = ask("sample", shop, "--seeds", "200,219", *options)
    assert some["seeds"] == 2


def test_seeds_of_types_need_their_type(refused: Callable[..., str], shop: Path) -> None:
    said = refused("sample", shop, "--seeds", "all", ends_with=2)
    assert "expected the type of the seeds, one of user, item, got none" in said
    said = refused("sample", "debian", "--seeds", "1", "--node-type", "user", ends_with=2)
    assert "expected none for a homogeneous graph" in said
    said = refused("sample", shop, "--seeds", "7", "--node-type", "user")
    assert "seeds[0]: expected the original id of a node, got 7" in said


def test_walks_of_types_are_those_of_the_sampler(ask: Callable[..., Any], shop: Path) -> None:
    out = shop.with_suffix(".txt")
    options = ["--metapath", "knows,user:buys:item", "--walks", "2", "--seed", "3", "--out", out]
    found = ask("walk", shop, *options)
    walk = pgs.walks.MetaPathWalk([KNOWS, BUYS], walks_per_seed=2, seed=3)
    walks = walk.sample(expected(), np.arange(USERS), epoch=0, batch=0)
    shift = [100, 100, 200]
    want = [
        " ".join(str(node + more) for node, more in zip(row, shift, strict=True) if node >= 0)
        for row in np.asarray(walks.nodes).tolist()
    ]
    assert out.read_text().splitlines() == want
    assert (found["length"], found["walks"]) == (2, 2 * USERS)


def test_walks_of_types_refuse_other_options(refused: Callable[..., str], shop: Path) -> None:
    for options, words in (
        ([], "expected relations of user:buys:item, user:knows:user, got none"),
        (["--metapath", "sells"], "expected one of user:buys:item, user:knows:user, got 'sells'"),
        (["--metapath", "knows", "--restart", "0.5"], "--restart: expected none for a het"),
        (["--metapath", "knows", "-p", "0.5"], "-p: expected none for a heterogeneous graph"),
        (["--metapath", "knows", "--node-type", "item"], "expected user, where the metapath"),
    ):
        assert words in refused("walk", shop, *options, ends_with=2)


def test_names_are_seeds_and_are_written(
    ask: Callable[..., Any], refused: Callable[..., str], named: Path
) -> None:
    pq = partner("pyarrow.parquet")
    table, walks = named.with_suffix(".parquet"), named.with_suffix(".txt")
    ask("sample", named, "--seeds", "ann", "--fanouts", "5", "--out", table)
    rows = pq.read_table(table).to_pylist()
    assert sorted((row["src"], row["dst"]) for row in rows) == [("bob", "ann"), ("carl", "ann")]
    # Numbers of nodes are taken, too.
    assert ask("sample", named, "--seeds", "0,1", "--fanouts", "5")["seeds"] == 2
    listed = named.with_suffix(".seeds")
    listed.write_text("# names\nbob\n")
    ask("walk", named, "--seeds", listed, "--length", "2", "--out", walks)
    assert walks.read_text() == "bob ann bob\n"
    ask("walk", named, "--seeds", "carl", "--length", "1", "--out", table)
    assert pq.read_table(table).to_pylist() == [{"nodes": ["carl", "ann"]}]
    said = refused("sample", named, "--seeds", "ann,eve")
    assert said == "--seeds: expected nodes of the graph, got 'eve' (1 of 2 are unknown)"


@pytest.mark.parametrize("name", ["ann lee", "ann\nlee", "ann\u2028lee", " ann", "ann\t"])
def test_names_with_whitespace_are_no_words_of_a_line(
    run: Callable[..., Any], refused: Callable[..., str], tmp_path: Path, name: str
) -> None:
    pq = partner("pyarrow.parquet")
    path, out = tmp_path / "names.pgs", tmp_path / "walks.txt"
    pgs.Graph.from_coo([name, "bob"], ["bob", name], renumber=True).save(path)
    said = refused("walk", path, "--seeds", "bob", "--length", "1", "--out", out)
    assert said == (
        f"--out: expected names without whitespace, got {name!r}; .parquet and .arrow keep walks "
        "as lists"
    )
    assert not out.exists()
    table = out.with_suffix(".parquet")
    run("walk", path, "--seeds", "bob", "--length", "1", "--out", table)
    assert pq.read_table(table).to_pylist() == [{"nodes": ["bob", name]}]


@pytest.mark.parametrize("with_types", [False, True])
def test_a_date_bounds_what_is_sampled(
    ask: Callable[..., Any], refused: Callable[..., str], tmp_path: Path, with_types: bool
) -> None:
    partner("pyarrow")
    path, out = tmp_path / "e.csv", tmp_path / "e.pgs"
    path.write_text("src,dst,at\n1,0,2024-03-01\n2,0,2024-03-05\n3,0,2024-03-09T12:00\n")
    types = ["--types", "a,b,a"] if with_types else []
    ask("convert", path, out, "--edge-data", "at", *types)

    def edges(*options: str) -> int:
        found = ask("sample", out, "--seeds", "0", "--fanouts", "9", "--time", "at", *options)
        return int(found["edges"])

    assert edges("--seed-time", "2024-03-09") == 2
    assert edges("--seed-time", "2024-03-09T13:00+01:00") == 3
    assert edges("--seed-time", "2024-03-09", "--window", "7d") == 1
    assert edges("--seed-time", "2024-03-09", "--window", "192 hours") == 2
    assert edges("--seed-time", str(10**18)) == 0
    for options, words in (
        (["--time", "at"], "--seed-time: expected one with --time, got none"),
        (["--seed-time", "2024-03-01"], "--time: expected one with --seed-time, got none"),
        (["--time", "at", "--seed-time", "soon"], "expected a number or a date like 2024-03-01"),
        (["--time", "at", "--seed-time", "1", "--window", "x"], "a number, or a span as 3d, 12h"),
    ):
        assert words in refused("sample", out, "--seeds", "0", *options, ends_with=2)
