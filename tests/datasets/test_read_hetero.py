"""Files of edges whose columns name types."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from partners import partner

import pygsampler as pgs
from pygsampler import datasets

RANDOM = np.random.default_rng(6)
KINDS = (("author", "writes", "paper"), ("paper", "cites", "paper"), ("author", "knows", "author"))
SIZES = {"author": 20, "paper": 50}
COUNT = 400
KIND = RANDOM.integers(0, 3, COUNT)
SRC, DST = (
    np.array([RANDOM.integers(0, SIZES[KINDS[k][end]]) for k in KIND], np.int32) for end in (0, 2)
)
W = RANDOM.random(COUNT)
COLUMNS = {
    "a": [KINDS[k][0] for k in KIND],
    "r": [KINDS[k][1] for k in KIND],
    "b": [KINDS[k][2] for k in KIND],
}
THREE: dict[str, Any] = {"src_type": "a", "relation": "r", "dst_type": "b"}


def write(folder: Path, name: str, src: Any = SRC, dst: Any = DST) -> Path:
    path = folder / name
    columns = {"src": src, "w": W, "dst": dst, "code": KIND.astype(np.int8), **COLUMNS}
    if name.endswith(".csv"):
        lines = zip(*(np.asarray(rows).tolist() for rows in columns.values()), strict=True)
        text = "\n".join(
            ",".join(f'"{each}"' if isinstance(each, str) else repr(each) for each in line)
            for line in lines
        )
        path.write_text(",".join(columns) + "\n" + text + "\n")
        return path
    pa = partner("pyarrow")
    columns["b"] = pa.array(COLUMNS["b"]).dictionary_encode()
    found = pa.table(columns)
    if name.endswith(".parquet"):
        partner("pyarrow.parquet").write_table(found, path, row_group_size=77)
    else:
        with pa.ipc.new_file(path, found.schema) as writer:
            writer.write_table(found, max_chunksize=77)
    return path


def check(graph: pgs.Graph, order: tuple[Any, ...]) -> None:
    """The edges of each type are those of its lines, in their order, with their values."""
    assert graph.edge_types == order
    for kind in order:
        lines = np.flatnonzero(KINDS.index(kind) == KIND)
        csc = graph[kind]
        ids = np.arange(len(lines)) if csc.edge_ids is None else csc.edge_ids.numpy()
        rows = np.repeat(np.arange(len(csc.indptr) - 1), np.diff(csc.indptr.numpy()))
        assert np.array_equal(SRC[lines][ids], csc.indices.numpy())
        assert np.array_equal(DST[lines][ids], rows)
        assert np.array_equal(graph.edata[kind]["w"].numpy(), W[lines])
        assert list(graph.edata[kind]) == ["w"]


@pytest.mark.parametrize("name", ["e.csv", "e.parquet", "e.arrow"])
def test_types_of_columns(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, name)
    as_they_occur = tuple(KINDS[k] for k in dict.fromkeys(KIND.tolist()))
    graph = datasets.read(path, **THREE, src="src", dst="dst", edge_data=["w"])
    check(graph, as_they_occur)
    assert graph.dtype == ("int64" if name == "e.csv" else "int32")
    schema = dict(enumerate(KINDS))
    graph = datasets.read(
        path, relation="code", types=schema, src="src", dst="dst", edge_data=["w"], dtype="int64"
    )
    check(graph, KINDS)
    assert graph.dtype == "int64"


def test_schemas_sizes_and_numbers(tmp_path: Path) -> None:
    # One numbering over all types, with gaps: papers after authors.
    base = {"author": 1000, "paper": 5000}
    src, dst = (
        np.array([3 * v + base[KINDS[k][end]] for k, v in zip(KIND, ids, strict=True)])
        for end, ids in ((0, SRC), (2, DST))
    )
    path = write(tmp_path, "e.csv", src, dst)
    graph = datasets.read(path, **THREE, renumber=True, edge_data=["w"])
    lines = {kind: np.flatnonzero(k == KIND) for k, kind in enumerate(KINDS)}
    for kind, these in lines.items():
        csc = graph[kind]
        names = [graph.ndata[of]["node_ids"].numpy() for of in (kind[0], kind[2])]
        rows = np.repeat(np.arange(len(csc.indptr) - 1), np.diff(csc.indptr.numpy()))
        ids = csc.edge_ids.numpy()
        assert np.array_equal(src[these][ids], names[0][csc.indices.numpy()])
        assert np.array_equal(dst[these][ids], names[1][rows])
    found = graph.ndata["author"]["node_ids"].numpy()
    assert (np.diff(found) > 0).all()
    assert found.max() < 5000
    path = tmp_path / "few.txt"
    path.write_text("# what\n0 1 x\n2 1 y\n1 0 x\n")
    schema = {"x": ("u", "buys", "v"), "z": ("v", "of", "w"), "y": ("u", "buys", "v")}
    few = datasets.read(path, relation=2, types=schema, num_nodes={"v": 5, "w": 2})
    assert few.num_nodes == {"u": 3, "v": 5, "w": 2}
    assert few.num_edges == {("u", "buys", "v"): 3, ("v", "of", "w"): 0}
    csc = few["u", "buys", "v"]
    assert (csc.indices.tolist(), csc.edge_ids.tolist()) == ([1, 0, 2], [2, 0, 1])


def test_what_is_wrong(tmp_path: Path) -> None:
    path = write(tmp_path, "e.csv")
    schema = {"writes": KINDS[0]}
    for options, error, text in (
        (
            {"relation": "r", "types": schema},
            ValueError,
            r"e\.csv: relation: .*, of edge \d",
        ),
        ({"relation": "r"}, ValueError, "src_type: expected a column, or types=, got None"),
        ({**THREE, "types": schema}, ValueError, "src_type: expected None with types="),
        ({**THREE, "relation": "q"}, ValueError, "relation: expected a column"),
        ({**THREE, "relation": None}, ValueError, "relation: expected a column, got None"),
        ({"relation": "r", "types": {"writes": "u"}}, TypeError, r"types\['writes'\]"),
        ({**THREE, "num_nodes": {"paper": 3}}, ValueError, r"paper.*\[0, 3\)"),
        ({**THREE, "num_nodes": 9}, TypeError, "num_nodes: expected a mapping"),
        ({**THREE, "renumber": True, "num_nodes": {"paper": 3}}, ValueError, "num_nodes: expected"),
        ({**THREE, "edge_data": {"relation": "w"}}, ValueError, "edge_data: expected names other"),
    ):
        with pytest.raises(error, match=text):
            datasets.read(path, **options)
    (tmp_path / "gap.csv").write_text("src,dst,r\n0,1,x\n1,2,\n")
    with pytest.raises(ValueError, match=r"gap\.csv:3: relation.*expected a name"):
        datasets.read(tmp_path / "gap.csv", relation="r", types={"x": KINDS[0]})
    with pytest.raises(ValueError, match=r"e\.npz|expected a file of format"):
        datasets.read(tmp_path / "e.npz", relation=2, types=schema)
    many = "".join(f"0,1,r{i}\n" for i in range(4097))
    (tmp_path / "many.csv").write_text("src,dst,r\n" + many)
    with pytest.raises(ValueError, match=r"many\.csv: relation: expected at most 4096"):
        datasets.read(tmp_path / "many.csv", relation="r", types=schema)
    pa = partner("pyarrow")
    floats = pa.table({"src": [0, 1], "dst": [1, 0], "r": [0.5, 1.5], "n": ["x", None]})
    partner("pyarrow.parquet").write_table(floats, tmp_path / "f.parquet")
    with pytest.raises(ValueError, match="relation: expected a column of text or integers"):
        datasets.read(tmp_path / "f.parquet", relation="r", types=schema)
    with pytest.raises(ValueError, match="row 1: relation: expected a value, got null"):
        datasets.read(tmp_path / "f.parquet", relation="n", types={"x": KINDS[0]})
