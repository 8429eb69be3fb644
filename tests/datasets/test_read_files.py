"""Graphs from several files, of names and dates, and of two kinds of nodes."""

from __future__ import annotations

import gzip
import itertools
import subprocess
import sys
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from partners import partner

import pygsampler as pgs
from pygsampler import datasets

RANDOM = np.random.default_rng(4)
COUNT, NODES = 500, 60
SRC, DST = RANDOM.integers(0, NODES, (2, COUNT))
W = RANDOM.random(COUNT)
CUTS = (0, 120, 121, 500)
PARTS = list(itertools.pairwise(CUTS))


def write(path: Path, **columns: Any) -> Path:
    """A table of columns in the format of the suffix."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pa = partner("pyarrow")
    table = pa.table(columns)
    if path.suffix == ".parquet":
        partner("pyarrow.parquet").write_table(table, path)
    elif path.suffix == ".csv":
        partner("pyarrow.csv").write_csv(table, path)
    else:
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    return path


def folder_of(folder: Path, suffix: str) -> Path:
    for i, (start, end) in enumerate(PARTS):
        part = slice(start, end)
        write(
            folder / f"part-{i}.{suffix}", src=SRC[part], other=DST[part], w=W[part], dst=DST[part]
        )
    return folder


def check_equal(graph: pgs.Graph, other: pgs.Graph) -> None:
    for name in ("indptr", "indices"):
        assert getattr(graph, name).tolist() == getattr(other, name).tolist()
    ids, others = (
        range(each.num_edges) if each.edge_ids is None else each.edge_ids.tolist()
        for each in (graph, other)
    )
    assert list(ids) == list(others)


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "csv"])
def test_a_folder_a_list_and_a_pattern_are_one_list(tmp_path: Path, suffix: str) -> None:
    folder = folder_of(tmp_path / "parts", suffix)
    (folder / "_SUCCESS").touch()
    (folder / ".hidden.parquet").touch()
    (folder / "notes.md").touch()
    for hidden in (".ipynb_checkpoints", "_temporary/0"):
        write(folder / hidden / f"part-0.{suffix}", src=SRC, other=DST, w=W, dst=DST)
    want = pgs.Graph.from_coo(SRC, DST)
    files = sorted(folder.glob(f"part-*.{suffix}"))
    for source in (folder, str(folder / f"part-?.{suffix}"), files, tuple(map(str, files))):
        graph = datasets.read(source, edge_data=["w"])
        check_equal(graph, want)
        np.testing.assert_allclose(graph.edata["w"].numpy(), W, rtol=1e-15)
    turned = datasets.read(files[::-1], num_nodes=NODES)
    places = np.concatenate([np.arange(start, end) for start, end in PARTS[::-1]])
    check_equal(turned, pgs.Graph.from_coo(SRC[places], DST[places], num_nodes=NODES))


def test_options_hold_for_several_files(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "parts", "parquet")
    one = write(tmp_path / "one.parquet", src=SRC, other=DST, w=W, dst=DST)
    for options in (
        {"src": "dst", "dst": "src"},
        {"src": 0, "dst": 1, "dtype": "int32"},
        {"undirected": True},
        {"renumber": True, "edge_data": {"x": "w"}},
    ):
        graph, want = datasets.read(folder, **options), datasets.read(one, **options)
        check_equal(graph, want)
        assert graph.dtype == want.dtype
        assert {name: array.tolist() for name, array in graph.edata.items()} == {
            name: array.tolist() for name, array in want.edata.items()
        }
        assert {name: array.tolist() for name, array in graph.file_arrays.items()} == {
            name: array.tolist() for name, array in want.file_arrays.items()
        }


def test_a_folder_is_converted_and_leaves_no_temporary_file(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "parts", "parquet")
    seen: list[tuple[int, int]] = []
    target = datasets.convert(
        folder, tmp_path / "g.pgs", edge_data=["w"], progress=lambda *at: seen.append(at)
    )
    assert sorted(each.name for each in tmp_path.iterdir()) == ["g.pgs", "parts"]
    assert seen
    assert all(done <= total for done, total in seen)
    with pgs.Graph.open(target, verify=True) as graph:
        check_equal(graph, pgs.Graph.from_coo(SRC, DST))
        assert graph.edata["w"].tolist() == W.tolist()
    with pytest.raises(ValueError, match="parts: row 3: src"):
        bad = write(
            tmp_path / "parts" / "part-0.parquet", src=[1, 2, 3, -1], dst=[0] * 4, w=[1.0] * 4
        )
        datasets.convert(folder, tmp_path / "g.pgs")
    bad.unlink()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["g.pgs", "parts"]


def test_columns_of_folder_names_are_read(tmp_path: Path) -> None:
    for day in (1, 2):
        write(tmp_path / "parts" / f"day={day}" / "e.parquet", src=[day], dst=[0])
    graph = datasets.read(tmp_path / "parts", edge_data=["day"])
    assert graph.edata["day"].tolist() == [1, 2]


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "csv"])
def test_parts_whose_types_differ_are_read_in_one_that_holds_all(
    tmp_path: Path, suffix: str
) -> None:
    pa = partner("pyarrow")
    parts = tmp_path / "parts"
    narrow = {"src": pa.array([0, 1], pa.int32()), "dst": pa.array([1, 2], pa.int32())}
    write(parts / "day=1" / f"0.{suffix}", **narrow, w=[1, 2], note=[1, 2])
    wide = {"src": [3, 2**33], "dst": [2, 0], "w": [0.5, 1.5], "note": ["a", "b"]}
    write(parts / "day=2" / f"0.{suffix}", **wide)
    graph = datasets.read(parts, edge_data=["w", "day"], renumber=True)
    assert graph.node_ids.tolist() == [0, 1, 2, 3, 2**33]
    assert graph.edata["w"].tolist() == [1.0, 2.0, 0.5, 1.5]
    assert graph.edata["day"].tolist() == [1, 1, 2, 2]
    with pytest.raises(ValueError, match="parts: expected tables that can be read, got"):
        datasets.read(parts, edge_data=["note"], renumber=True)


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "csv"])
def test_a_first_part_without_rows_says_nothing_of_types(tmp_path: Path, suffix: str) -> None:
    pa = partner("pyarrow")
    none = {name: pa.array([], pa.null()) for name in ("src", "dst", "w")}
    write(tmp_path / f"0.{suffix}", **none)
    write(tmp_path / f"1.{suffix}", src=["a", "b"], dst=["b", "c"], w=[0.5, 1.5])
    graph = datasets.read(tmp_path, edge_data=["w"], renumber=True)
    assert graph.node_names.tolist() == ["a", "b", "c"]
    assert graph.edata["w"].tolist() == [0.5, 1.5]


def test_a_headerless_csv_in_parts_keeps_its_first_lines(tmp_path: Path) -> None:
    for i in range(2):
        (tmp_path / f"{i}.csv").write_text(f"{i};5;0.5\n{i};6;1.5\n")
    graph = datasets.read(str(tmp_path / "*.csv"), edge_data={"w": 2})
    assert (graph.num_nodes, graph.num_edges) == (7, 4)
    assert graph.edata["w"].tolist() == [0.5, 1.5] * 2


@pytest.mark.parametrize("suffix", ["csv", "tsv", "csv.gz"])
def test_a_quote_that_never_ends_is_named_by_its_line(tmp_path: Path, suffix: str) -> None:
    mark = "\t" if suffix == "tsv" else ","
    opened: Any = gzip.open if suffix.endswith("gz") else open

    def filled(name: str, lines: list[str]) -> Path:
        with opened(tmp_path / f"{name}.{suffix}", "wt") as file:
            file.write("\n".join(["src,dst", *lines, ""]).replace(",", mark))
        return tmp_path / f"{name}.{suffix}"

    more = [f"n{i},m{i}" for i in range(1000)]
    whole = filled("whole", ['"a",b', *more])
    broken = filled("broken", ['"two, and', 'lines",b', 'x,"a', *more])
    for source in (broken, [whole, broken]):
        with pytest.raises(ValueError, match=rf"^broken.{suffix}:4: expected a closing quote"):
            datasets.read(source, renumber=True)
    # Quotes within a field are signs like others.
    inch = filled("inch", ['5" pipe,b', *more])
    graph = datasets.read([whole, inch], renumber=True)
    assert graph.num_edges == 2002
    assert '5" pipe' in graph.node_names.tolist()


def test_files_that_cannot_be_read_together_are_refused(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "parts", "parquet")
    with pytest.raises(ValueError, match="source: expected at least one file of edges, got none"):
        datasets.read([])
    with pytest.raises(FileNotFoundError, match=r"expected files of the pattern '.*none-\*', got"):
        datasets.read(str(folder / "none-*"))
    with pytest.raises(FileNotFoundError):
        datasets.read([folder / "none.parquet"])
    (folder / "e.csv").write_text("0,1\n")
    text = r"parts: expected files of one format, got parquet \(part-0.parquet\), csv \(e.csv\)"
    with pytest.raises(ValueError, match=text):
        datasets.read(folder)
    texts = [tmp_path / "a.txt", tmp_path / "b.txt"]
    for path in texts:
        path.write_text("0 1\n")
    with pytest.raises(
        ValueError, match=r"a.txt: expected one file of format snap, got 2; several"
    ):
        datasets.read(texts)
    (folder / "e.csv").unlink()
    (folder / "broken.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(ValueError, match="parts: expected tables that can be read"):
        datasets.read(folder)


def test_without_pyarrow_the_error_says_how_to_get_it(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("src,dst\nx,y\n")
    script = f"""
import sys
sys.modules["pyarrow"] = sys.modules["pyarrow.dataset"] = None
from pygsampler import datasets
folder = {str(tmp_path)!r}
for source, options in ((folder, {{}}), (folder + "/a.csv", {{"renumber": True}})):
    try:
        datasets.read(source, **options)
    except (ImportError, ValueError) as error:
        print(type(error).__name__, "pip install pyarrow" in str(error))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.split() == ["ImportError", "True", "ValueError", "True"], done.stderr


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "csv"])
def test_names_are_numbered_and_stored(tmp_path: Path, suffix: str) -> None:
    names = np.array([f"n{i:03d}" for i in RANDOM.permutation(NODES)])
    path = write(tmp_path / f"e.{suffix}", src=names[SRC], dst=names[DST], w=W)
    used = sorted({*names[SRC], *names[DST]})
    with pytest.raises(ValueError, match=r"; renumber=True numbers names$"):
        datasets.read(path)
    graph = datasets.read(path, renumber=True, edge_data=["w"])
    assert graph.node_names == used
    check_equal(
        graph,
        pgs.Graph.from_coo(np.searchsorted(used, names[SRC]), np.searchsorted(used, names[DST])),
    )
    np.testing.assert_allclose(graph.edata["w"].numpy(), W, rtol=1e-15)
    target = datasets.convert(path, tmp_path / "g.pgs", renumber=True)
    with pgs.Graph.open(target) as opened:
        assert opened.node_names == used
        assert opened.index_of(used[5]) == 5
    many = [
        write(tmp_path / f"m{i}.{suffix}", src=names[SRC[a:b]], dst=names[DST[a:b]])
        for i, (a, b) in enumerate(PARTS)
    ]
    check_equal(datasets.read(many, renumber=True), graph)


def test_names_of_more_than_a_few_rows_are_numbered_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pygsampler.datasets import _tables

    names = np.array([f"n{i:03d}" for i in range(NODES)])
    pa, pq = partner("pyarrow"), partner("pyarrow.parquet")
    table = pa.table({"src": pa.array(names[SRC]).dictionary_encode(), "dst": names[DST]})
    pq.write_table(table, tmp_path / "e.parquet", row_group_size=50)
    whole = datasets.read(tmp_path / "e.parquet", renumber=True)
    monkeypatch.setattr(_tables, "_ROWS", 70)
    pieces = datasets.read(tmp_path / "e.parquet", renumber=True)
    check_equal(pieces, whole)
    assert pieces.node_names == whole.node_names


def test_names_that_are_missing_or_mixed_with_integers_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "e.parquet", src=["a", None], dst=["b", "c"])
    with pytest.raises(ValueError, match=r"e.parquet: row 1: src: expected a name, got none"):
        datasets.read(path, renumber=True)
    path = write(tmp_path / "e.parquet", src=["a", "b"], dst=["b", ""])
    with pytest.raises(ValueError, match=r"e.parquet: row 1: dst: expected a name, got none"):
        datasets.read(path, renumber=True)
    path = write(tmp_path / "e.parquet", src=["a", "b"], dst=[1, 2])
    with pytest.raises(
        TypeError, match="expected two columns of names, or of integers, got string"
    ):
        datasets.read(path, renumber=True)
    (tmp_path / "e.txt").write_text("1 2\nann bob\n")
    with pytest.raises(ValueError, match=r"got 'ann'; names are read of parquet, arrow, csv, tsv"):
        datasets.read(tmp_path / "e.txt", renumber=True)


@pytest.mark.parametrize(
    "name",
    ["9f1b2c3d-0a1b-4c2d-8e3f-001122334455", "0x" + "1f" * 20, "1-2", "-a", ".b", "2nd", '"4th"'],
)
def test_names_that_begin_as_numbers_do_name_renumber(tmp_path: Path, name: str) -> None:
    path = tmp_path / "e.csv"
    path.write_text(f"src,dst\n{name},b\n")
    with pytest.raises(ValueError, match=r"expected an integer.*; renumber=True numbers names$"):
        datasets.read(path)
    assert name.strip('"') in datasets.read(path, renumber=True).node_names.tolist()


@pytest.mark.parametrize("number", ["1.5", "-1", "1e5", "-2.5E+3", "", "9" * 50, '"-3"'])
def test_numbers_that_are_no_ids_are_no_names(tmp_path: Path, number: str) -> None:
    path = tmp_path / "e.csv"
    path.write_text(f"src,dst\n{number},7\n")
    with pytest.raises(ValueError, match="expected an integer") as error:
        datasets.read(path)
    assert "renumber=True numbers names" not in str(error.value)


@pytest.mark.parametrize("before", ["# one, two, three\n", "\n# one\n\n"])
@pytest.mark.parametrize("header", ["src,dst,at\n", '"src","dst","at"\n', ""])
def test_names_below_comments_are_read(tmp_path: Path, before: str, header: str) -> None:
    path = tmp_path / "e.csv"
    if header:
        path.write_text(f"{before}{header}a,b,2024-01-02\nb,c,2024-01-03\n")
        graph = datasets.read(path, renumber=True, edge_data=["at"])
        assert graph.node_names.tolist() == ["a", "b", "c"]
    else:
        path.write_text(f"{before}1,2,2024-01-02\n2,3,2024-01-03\n")
        graph = datasets.read(path, renumber=True, edge_data={"at": 2})
        assert graph.node_ids.tolist() == [1, 2, 3]
    assert np.diff(graph.edata["at"].tolist()).tolist() == [86_400 * 10**9]


def test_names_that_cannot_be_read_say_why(tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    path.write_text("src,dst\na,b\nc,d,e\n")
    with pytest.raises(ValueError, match=r"e.csv: expected tables that can be read, got .*columns"):
        datasets.read(path, renumber=True)


def test_integers_that_look_like_hashes_name_renumber(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text(f"src,dst\n{10**15},5\n")
    with pytest.raises(ValueError, match="renumber=True numbers"):
        datasets.read(tmp_path / "e.csv")
    graph = datasets.read(tmp_path / "e.csv", renumber=True)
    assert graph.index_of(10**15) == 1


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "csv"])
def test_columns_of_dates_are_times(tmp_path: Path, suffix: str) -> None:
    pa = partner("pyarrow")
    moments = [datetime(2024, 3, day, 12) for day in (1, 2, 3)]
    columns: dict[str, Any] = {
        "us": pa.array(moments, pa.timestamp("us")),
        "day": pa.array([at.date() for at in moments]),
        "text": [at.isoformat() for at in moments],
    }
    if suffix != "csv":
        columns["zoned"] = pa.array(moments, pa.timestamp("ms", "Europe/Berlin"))
    path = write(tmp_path / f"e.{suffix}", src=[1, 2, 3], dst=[0, 0, 0], **columns)
    graph = datasets.read(path, edge_data=list(columns))
    noons = np.array(moments, "datetime64[ns]").astype(np.int64).tolist()
    for name in columns:
        hours = 12 * 3600 * 10**9 if name == "day" else 0
        assert graph.edata[name].tolist() == [noon - hours for noon in noons]
    batch = pgs.PGSampler([5], temporal="us", seed=1).sample(graph, [0], seed_time=date(2024, 3, 3))
    assert sorted(batch.blocks[0].edge_ids.tolist()) == [0, 1]
    target = datasets.convert(path, tmp_path / "g.pgs", edge_data=["us"])
    with pgs.Graph.open(target) as opened:
        assert opened.edata["us"].tolist() == noons


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_durations_are_nanoseconds_in_any_unit(tmp_path: Path, suffix: str, unit: str) -> None:
    pa = partner("pyarrow")
    spans = pa.array(np.array([1, 2], "m8[D]").astype(f"m8[{unit}]"))
    path = write(tmp_path / f"e.{suffix}", src=[0, 1], dst=[1, 2], took=spans, w=[0.5, 1.5])
    for source in (path, [path]):
        for column in ("took", 2):
            graph = datasets.read(source, edge_data={"took": column, "w": "w"})
            assert graph.edata["took"].tolist() == [86_400 * 10**9, 2 * 86_400 * 10**9]
            assert graph._source._kind_of_times("took") == "m"
            assert graph.edata["w"].tolist() == [0.5, 1.5]


def test_a_date_that_is_missing_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "e.parquet", src=[1, 2], dst=[0, 0], t=[datetime(2024, 3, 1), None])
    with pytest.raises(ValueError, match=r"e.parquet: row 1: .*edge_data\['t'\]: expected a time"):
        datasets.read(path, edge_data=["t"])
    path = write(tmp_path / "e.parquet", src=[1, 2], dst=[0, 0], t=["2024-03-01", "soon"])
    with pytest.raises(
        TypeError, match=r"e.parquet: edge_data\['t'\]\[1\]: expected a number, or a"
    ):
        datasets.read(path, edge_data=["t"])


def test_two_kinds_of_nodes_are_an_error_that_names_the_way(tmp_path: Path) -> None:
    path = tmp_path / "buys.csv"
    path.write_text("item_id,user_id,price\n7,1,0.5\n8,1,1.5\n")
    with pytest.raises(ValueError) as raised:
        datasets.read(path)
    assert str(raised.value) == (
        "buys.csv: expected two columns of one kind of nodes, got 'user_id' and 'item_id'; "
        'types=("user", "to", "item") makes a heterogeneous graph, '
        "one_kind=True one set of nodes"
    )
    with pytest.raises(ValueError, match="expected two columns of one kind"):
        datasets.convert(path, tmp_path / "g.pgs", src="user_id", dst="item_id")
    assert datasets.read(path, one_kind=True).num_nodes == 9
    typed = datasets.read(path, types=("user", "to", "item"), edge_data=["price"])
    kind = ("user", "to", "item")
    assert typed.num_nodes == {"user": 2, "item": 9}
    assert typed[kind].indices.tolist() == [1, 1]
    assert typed.edata[kind]["price"].tolist() == [0.5, 1.5]
    called = datasets.read(path, types=("user", "buys", "item"), renumber=True)
    assert list(called.edge_types) == [("user", "buys", "item")]
    assert called.num_nodes == {"user": 1, "item": 2}
    with pytest.raises(ValueError, match="dst_type: expected a column, or types=, got None"):
        datasets.read(path, src_type="user_id")
    for option in ("undirected", "one_kind"):
        with pytest.raises(ValueError, match=f"{option}: expected False for a heterogeneous"):
            datasets.read(path, types=kind, **{option: True})


def test_a_file_for_each_type_is_one_graph(tmp_path: Path) -> None:
    buys, knows = ("user", "buys", "item"), ("user", "knows", "user")
    write(tmp_path / "buys" / "0.parquet", item_id=[30, 40], user_id=[7, 5], w=[0.5, 1.5])
    write(tmp_path / "buys" / "1.parquet", item_id=[30], user_id=[5], w=[2.5])
    (tmp_path / "knows.csv").write_text("src,dst,since\n5,9,1\n9,7,2\n")
    sources = {buys: tmp_path / "buys", knows: tmp_path / "knows.csv"}
    graph = datasets.read(
        sources, edge_data={buys: ["w"], knows: {"year": "since"}}, num_nodes={"user": 12}
    )
    assert graph.num_nodes == {"user": 12, "item": 41}
    assert graph[buys].indices.tolist() == [7, 5, 5]
    assert graph.edata[buys]["w"].tolist() == [0.5, 1.5, 2.5]
    assert graph.edata[knows]["year"].tolist() == [1.0, 2.0]
    anew = datasets.read(sources, renumber=True)
    assert anew.ndata["user"]["node_ids"].tolist() == [5, 7, 9]
    assert anew.ndata["item"]["node_ids"].tolist() == [30, 40]
    src, dst = (np.asarray(each).tolist() for each in (anew[buys].indices, anew[buys].edge_ids))
    assert (src, dst) == ([1, 0, 0], [0, 2, 1])
    turned = datasets.read({knows: tmp_path / "knows.csv"}, src={knows: "dst"}, dst={knows: "src"})
    assert turned[knows].indices.tolist() == [9, 7]
    short = datasets.read(
        sources, src={"knows": "dst"}, dst={"knows": "src"}, edge_data={"knows": {"year": "since"}}
    )
    assert short[knows].indices.tolist() == [9, 7]
    assert short.edata[knows]["year"].tolist() == [1.0, 2.0]
    alike = datasets.read({knows: tmp_path / "knows.csv"}, edge_data={"year": "since"})
    assert alike.edata[knows]["year"].tolist() == [1.0, 2.0]


@pytest.mark.parametrize("option", ["src", "dst", "edge_data"])
@pytest.mark.parametrize("key", [("user", "buy", "item"), "buy"])
def test_options_of_types_without_files_are_refused(tmp_path: Path, option: str, key: Any) -> None:
    path = write(tmp_path / "e.csv", src=[0], dst=[1], w=[0.5])
    value: Any = ["w"] if option == "edge_data" else "w"
    text = rf"{option}: expected types of source, got .*buy.*; there are .*'buys', 'item'"
    with pytest.raises(ValueError, match=text):
        datasets.read({("user", "buys", "item"): path}, **{option: {key: value}})


def test_names_count_within_a_type(tmp_path: Path) -> None:
    buys, knows = ("user", "buys", "item"), ("user", "knows", "user")
    (tmp_path / "buys.csv").write_text("user,item\nbob,x\nann,x\n")
    (tmp_path / "knows.csv").write_text("src,dst\nann,carol\n")
    sources = {buys: tmp_path / "buys.csv", knows: tmp_path / "knows.csv"}
    graph = datasets.read(sources, renumber=True)
    assert graph.num_nodes == {"user": 3, "item": 1}
    assert graph.node_names == {"user": ["ann", "bob", "carol"], "item": ["x"]}
    assert graph[buys].indices.tolist() == [1, 0]
    assert graph[knows].indices.tolist() == [0]
    with pytest.raises(ValueError, match=r"buys.csv:2: .* got 'bob'; renumber=True numbers names"):
        datasets.read(sources)
    (tmp_path / "knows.csv").write_text("src,dst\n1,2\n")
    with pytest.raises(
        TypeError,
        match=r"src: expected integers, as .*buys.* has, got names|src: expected names, as",
    ):
        datasets.read(sources, renumber=True)


def test_types_that_columns_name_are_read_of_a_folder(tmp_path: Path) -> None:
    for i, relation in enumerate(("wrote", "cites")):
        write(tmp_path / "parts" / f"{i}.parquet", src=[0, i], dst=[3, 4], rel=[relation] * 2)
    graph = datasets.read(
        tmp_path / "parts",
        relation="rel",
        types={"wrote": ("author", "writes", "paper"), "cites": ("paper", "cites", "paper")},
    )
    assert graph.num_nodes == {"author": 1, "paper": 5}
    assert graph["paper", "cites", "paper"].indices.tolist() == [0, 1]


def test_a_mapping_of_types_refuses_columns_of_types(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("0,1\n")
    with pytest.raises(
        ValueError, match="relation: expected None with a file for each type, got 'r'"
    ):
        datasets.read({("a", "b", "c"): tmp_path / "e.csv"}, relation="r")
    with pytest.raises(ValueError, match=r"source: expected a mapping of edge types \(source, rel"):
        datasets.read({"buys": tmp_path / "e.csv"})
    with pytest.raises(ValueError, match="source: expected at least one edge type, got none"):
        datasets.read({})
