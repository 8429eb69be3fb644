"""Columns of files of edges beside the ends: each value stands at the id of its edge."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from partners import partner

import pygsampler as pgs
from pygsampler import datasets

RANDOM = np.random.default_rng(2)
EDGES, NODES = 500, 40
SRC, DST = RANDOM.integers(0, NODES, (2, EDGES))
W = RANDOM.exponential(size=EDGES)
N = RANDOM.integers(-9, 9, EDGES)
LOOPS = int((SRC == DST).sum())


def text(separator: str, header: bool) -> str:
    lines = [separator.join(("src", "dst", "w", "n"))] if header else []
    rows = zip(SRC, DST, W.tolist(), N, strict=True)
    return "\n".join(
        lines + [f"{u}{separator}{v}{separator}{w!r}{separator}{n}" for u, v, w, n in rows]
    )


def write(folder: Path, name: str, **columns: Any) -> Path:
    path = folder / name
    kind = path.suffix
    if kind == ".csv":
        path.write_text(text(",", True))
    elif kind == ".gz":
        path.write_bytes(gzip.compress(text("\t", True).encode()))
    elif kind == ".txt":
        path.write_text("# w is third\n" + text(" ", False))
    else:
        pa = partner("pyarrow")
        table = pa.table({"src": SRC, "w": W, "dst": DST, "n": N, **columns})
        if kind == ".parquet":
            partner("pyarrow.parquet").write_table(table, path, row_group_size=77)
        else:
            with pa.ipc.new_file(path, table.schema) as writer:
                writer.write_table(table, max_chunksize=77)
    return path


def test_values_stand_at_the_ids_of_their_edges(tmp_path: Path) -> None:
    for name in ("e.csv", "e.tsv.gz", "e.txt", "e.parquet", "e.arrow"):
        path = write(tmp_path, name)
        options: dict[str, Any] = {"edge_data": ["w", "n"]}
        if name == "e.txt":
            options = {"edge_data": {"w": 2, "n": 3}, "renumber": False}
        target = tmp_path / "graph"
        memory = datasets.read(path, **options)
        for graph in (
            memory,
            pgs.Graph.open(datasets.convert(path, target, **options), verify=True),
        ):
            assert list(graph.edata) == ["w", "n"]
            assert graph.edata["w"].numpy().tobytes() == W.tobytes()
            assert graph.edata["n"].tolist() == N.tolist()
            assert graph.edata["n"].dtype == ("int64" if name[2] in "pa" else "float64")
            batch = pgs.PGSampler([5, 5], seed=1, prob="w").sample(graph, range(20))
            for block in batch.blocks:
                nodes, (src, dst) = block.src_nodes.numpy(), block.coo()
                assert (SRC[block.edge_ids.numpy()] == nodes[src]).all()
                assert (DST[block.edge_ids.numpy()] == nodes[dst]).all()
        both = datasets.read(path, undirected=True, **options)
        assert both.num_edges == 2 * EDGES - LOOPS < 2 * EDGES
        expected = [*W, *W[SRC != DST]]
        assert both.edata["w"].tolist() == expected
        with pgs.Graph.open(datasets.convert(path, target, undirected=True, **options)) as opened:
            assert opened.edata["w"].tolist() == expected
            # One value for each edge, by its id, in both directions.
            reverses = opened.reverse_edge_ids().numpy()
            assert (both.edata["w"].numpy()[reverses] == expected).all()
            assert opened.edge_ids.tolist() == both.edge_ids.tolist()


@pytest.mark.parametrize("name", ["e.parquet", "e.arrow"])
def test_dtypes_are_those_of_the_file(tmp_path: Path, name: str) -> None:
    dtypes = ["bool", "float32", "float64"]
    dtypes += [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
    dtypes += ["float16"] if name == "e.arrow" else []
    columns = {dtype: (N * 7).astype(dtype) for dtype in dtypes}
    path = write(tmp_path, name, **columns)
    target = datasets.convert(path, tmp_path / "graph", edge_data=dtypes)
    for graph in (datasets.read(path, edge_data=dtypes), pgs.Graph.open(target)):
        for dtype, values in columns.items():
            found = graph.edata[dtype]
            assert found.dtype == dtype
            assert found.numpy().tobytes() == values.tobytes(), dtype


def test_an_array_has_another_name_than_its_column(tmp_path: Path) -> None:
    path = write(tmp_path, "e.csv")
    graph = datasets.read(path, edge_data={"a": "n", "b": 2, "again": "src"})
    assert graph.edata["a"].tolist() == N.tolist()
    assert graph.edata["b"].tolist() == W.tolist()
    assert graph.edata["again"].tolist() == SRC.tolist()
    with pytest.raises(
        ValueError, match=r"edata\['a'\]\[\d+\]: expected a finite weight >= 0, got -"
    ):
        pgs.PGSampler([2], seed=0, prob="a").sample(graph, [0])


def test_files_without_edges(tmp_path: Path) -> None:
    for name, content in (("e.csv", "src,dst,w\n"), ("none.csv", "")):
        (tmp_path / name).write_text(content)
        graph = datasets.read(tmp_path / name, edge_data=["w"])
        assert (graph.num_edges, graph.edata["w"].shape) == (0, (0,))
        opened = pgs.Graph.open(
            datasets.convert(tmp_path / name, tmp_path / "graph", edge_data=["w"])
        )
        assert opened.edata["w"].shape == (0,)


def test_text_is_read_as_numbers(tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    path.write_text('src,dst,"w"\n0,1," 1e-3"\n1,0,+2\n\n1,1,nan\n0,0,-inf\n')
    assert (
        repr(datasets.read(path, edge_data=["w"]).edata["w"].tolist()) == "[0.001, 2.0, nan, -inf]"
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("0,1,0.5\n1,0,x\n", r"e\.csv:3: edge_data\['w'\]: expected a number, got 'x'"),
        ("0,1,\n", r"e\.csv:2: edge_data\['w'\]: expected a number, got ''"),
        ("0,1,0.5\n0,1\n", r"e\.csv:3: expected at least 3 columns, got 2"),
        ("0,1,1e999\n", r"e\.csv:2: edge_data\['w'\]: expected a number, got '1e999'"),
    ],
)
def test_what_is_no_number_is_named(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "e.csv").write_text("src,dst,w\n" + content)
    with pytest.raises(ValueError, match=message):
        datasets.read(tmp_path / "e.csv", edge_data=["w"])
    with pytest.raises(ValueError, match=message):
        datasets.convert(tmp_path / "e.csv", tmp_path / "graph", edge_data=["w"])
    assert [path.name for path in tmp_path.iterdir()] == ["e.csv"]


@pytest.mark.parametrize("name", ["e.parquet", "e.arrow"])
def test_columns_that_are_no_numbers_are_named(tmp_path: Path, name: str) -> None:
    pa = partner("pyarrow")
    holes = pa.array([None if i == 300 else 0.5 for i in range(EDGES)], "float32")
    path = write(tmp_path, name, holes=holes, words=["a"] * EDGES, lists=[[1.0]] * EDGES)
    with pytest.raises(
        ValueError, match=r"row 300: edge_data\['holes'\]: expected a value, got null"
    ):
        datasets.read(path, edge_data=["holes"])
    for wrong in ("words", 6):
        with pytest.raises(ValueError, match=r"edge_data\['w'\]: expected a column of bool, integ"):
            datasets.read(path, edge_data={"w": wrong})
    with pytest.raises(ValueError, match=r"edge_data\['x'\]: expected a column \"x\", got columns"):
        datasets.read(path, edge_data=["x"])
    with pytest.raises(ValueError, match=r"edge_data\['x'\]: expected at least 10 columns, got 7"):
        datasets.read(path, edge_data={"x": 9})


@pytest.mark.parametrize(
    ("edge_data", "error", "message"),
    [
        ("w", TypeError, "edge_data: expected a list of names of columns, or a mapping"),
        (3, TypeError, "edge_data: expected a list of names of columns, or a mapping"),
        ([3], TypeError, "edge_data: expected names of type str, got int"),
        ([""], ValueError, "edge_data: expected names of 1 to 53 bytes"),
        ({"w": 1.5}, TypeError, r"edge_data\['w'\]: expected the name of a column or its place"),
        ({"w": -1}, ValueError, r"edge_data\['w'\]"),
        (
            ["v"],
            ValueError,
            r"edge_data\['v'\]: expected a column \"v\", got columns src, dst, w, n",
        ),
    ],
)
def test_wrong_columns(
    tmp_path: Path, edge_data: Any, error: type[Exception], message: str
) -> None:
    path = write(tmp_path, "e.csv")
    with pytest.raises(error, match=message):
        datasets.read(path, edge_data=edge_data)


def test_formats_without_such_columns(tmp_path: Path) -> None:
    np.savez(tmp_path / "e.npz", src=SRC, dst=DST, w=W)
    with pytest.raises(
        ValueError, match="edge_data: expected a file of format snap, csv, tsv, par"
    ):
        datasets.read(tmp_path / "e.npz", edge_data=["w"])
