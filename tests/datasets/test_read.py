"""Files of edges: each format gives the graph that Graph.from_coo makes of the same edges."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from partners import partner

import pygsampler as pgs
from pygsampler import datasets

SRC = np.array([3, 0, 2, 2, 5, 0, 3])
DST = np.array([1, 3, 3, 0, 5, 3, 1])


def parts(graph: pgs.Graph) -> tuple[object, ...]:
    """All of a graph; ids of edges whether they are stored or not."""
    ids = range(graph.num_edges) if graph.edge_ids is None else graph.edge_ids.tolist()
    known = graph.file_arrays["node_ids"].tolist() if "node_ids" in graph.file_arrays else None
    return graph.num_nodes, graph.indptr.tolist(), graph.indices.tolist(), list(ids), known


def lines(separator: str, header: str = "") -> str:
    return header + "".join(f"{u}{separator}{v}\n" for u, v in zip(SRC, DST, strict=True))


def write(folder: Path, name: str) -> Path:
    """The edges in the format of the name."""
    path = folder / name
    kind = name.partition(".")[2]
    if kind == "txt":
        path.write_text("# Nodes: 6 Edges: 7\n# FromNodeId\tToNodeId\n" + lines("\t"))
    elif kind == "csv.gz":
        path.write_bytes(gzip.compress(lines(",", "src,dst\n").encode()))
    elif kind == "tsv":
        path.write_text(lines("\t", "from\tto\n"))
    elif kind == "mtx":
        partner("scipy.io").mmwrite(path, matrix(), field="pattern", symmetry="general")
    elif kind == "npz":
        np.savez(path, src=SRC, dst=DST)
    else:
        pa = partner("pyarrow")
        table = pa.table({"w": SRC * 0.5, "src": SRC, "dst": DST})
        if kind == "parquet":
            partner("pyarrow.parquet").write_table(table, path, row_group_size=3)
        else:
            made = pa.ipc.new_file if kind == "arrow" else pa.ipc.new_stream
            with made(path, table.schema) as writer:
                writer.write_table(table, max_chunksize=2)
    return path


def matrix() -> object:
    sp = partner("scipy.sparse")
    return sp.coo_matrix((np.ones(len(SRC)), (SRC, DST)), (6, 6))


NAMES = ["e.txt", "e.csv.gz", "e.tsv", "e.mtx", "e.npz", "e.parquet", "e.arrow", "e.arrows"]


@pytest.mark.parametrize("name", NAMES)
def test_every_format_gives_the_same_graph(tmp_path, name):
    path = write(tmp_path, name)
    expected = parts(pgs.Graph.from_coo(SRC, DST, num_nodes=6))
    options = {"renumber": False}
    graph = datasets.read(path, **options)
    assert parts(graph) == expected
    assert graph.dtype == "int64"
    target = datasets.convert(path, tmp_path / "g.pgs", **options)
    with pgs.Graph.open(target, verify=True) as opened:
        assert parts(opened) == expected
    both = datasets.read(str(path), undirected=True, dtype="int32", **options)
    loop = SRC != DST
    assert both.dtype == "int32"
    assert both.num_edges == 13
    found = dict(zip(both.edge_ids.tolist(), both.indices.tolist(), strict=True))
    assert found == {
        **dict(enumerate(SRC.tolist())),
        **{7 + i: int(DST[e]) for i, e in enumerate(np.flatnonzero(loop))},
    }
    reverses = both.reverse_edge_ids().numpy()
    backwards = [7 + int(loop[:e].sum()) if loop[e] else e for e in range(7)]
    assert reverses[:7].tolist() == backwards
    assert reverses[reverses].tolist() == list(range(13))
    with pgs.Graph.open(
        datasets.convert(path, target, undirected=True, dtype="int32", **options)
    ) as opened:
        assert parts(opened) == parts(both)
    anew = datasets.read(path, renumber=True)
    known = np.unique([SRC, DST])
    assert anew.file_arrays["node_ids"].tolist() == known.tolist()
    renamed = pgs.Graph.from_coo(np.searchsorted(known, SRC), np.searchsorted(known, DST))
    assert parts(anew)[:4] == parts(renamed)[:4]
    with pgs.Graph.open(datasets.convert(path, target, renumber=True)) as opened:
        assert parts(opened) == parts(anew)
    assert sorted(os.listdir(tmp_path)) == sorted([name, "g.pgs"])


def test_snap_numbers_anew_where_there_are_gaps_only(tmp_path):
    path = tmp_path / "edges"
    path.write_text("# c\r\n7 100\r\n100\t7 0.5\r\n\r\n9000000000000 7")
    graph = datasets.snap(path)
    assert graph.file_arrays["node_ids"].tolist() == [7, 100, 9000000000000]
    assert parts(graph)[:4] == (3, [0, 2, 3, 3], [1, 2, 0], [1, 2, 0])
    path.write_text("0 1\n2 0\n")
    assert not datasets.snap(path).file_arrays
    path.write_text("id near far\n0 1 7\n1 0 8\n")
    assert datasets.snap(path).indices.tolist() == [1, 0]
    path.write_text("0 2\n")
    assert datasets.snap(path).num_nodes == 2
    assert datasets.snap(path, num_nodes=4).num_nodes == 4
    assert datasets.snap(path, renumber=False).num_nodes == 3
    path.write_text("")
    assert (datasets.snap(path).num_nodes, datasets.snap(path, num_nodes=3).num_nodes) == (0, 3)


def test_ids_need_not_be_stored_where_targets_ascend(tmp_path):
    path = tmp_path / "e.csv"
    path.write_text("5,0\n1,0\n0,3\n")
    assert datasets.read(path).edge_ids is None
    assert datasets.read(path, undirected=True).edge_ids is not None


@given(
    edges=st.lists(st.tuples(*[st.sampled_from([0, 1, 2, 7, 2**33 + 1, 2**63 - 1])] * 2)),
    undirected=st.booleans(),
)
def test_any_ids_are_numbered_by_size(tmp_path_factory, edges, undirected):
    path = tmp_path_factory.mktemp("edges") / "e.csv"
    path.write_text("".join(f"{u},{v}\n" for u, v in edges))
    graph = datasets.read(path, renumber=True, undirected=undirected)
    known = sorted({end for edge in edges for end in edge})
    assert graph.file_arrays["node_ids"].tolist() == known
    indptr, indices = graph.indptr.tolist(), graph.indices.tolist()
    ids = list(range(len(edges))) if graph.edge_ids is None else graph.edge_ids.tolist()
    found = {
        ids[at]: (known[indices[at]], known[v])
        for v in range(graph.num_nodes)
        for at in range(indptr[v], indptr[v + 1])
    }
    expected = dict(enumerate(edges))
    if undirected:
        back = [(v, u) for u, v in edges if u != v]
        expected |= dict(enumerate(back, len(edges)))
    assert found == expected


def test_columns_are_found_by_name_or_place(tmp_path):
    path = tmp_path / "e.csv"
    path.write_text('id,name,Source,Target\n1,"a,b",3,4\n2,"c\nd",5,6\n')
    assert datasets.read(path).indices.tolist() == [3, 5]
    assert datasets.read(path, src="Target", dst=0).indices.tolist() == [4, 6]
    pa, pq = partner("pyarrow"), partner("pyarrow.parquet")
    path = tmp_path / "e.parquet"
    pq.write_table(pa.table({"a": [1, 2], "b": pa.array([3, 4], "uint32")}), path)
    assert datasets.read(path, src="b", dst="a").indices.tolist() == [3, 4]
    assert datasets.read(path, src=0, dst=1).indices.tolist() == [1, 2]


def test_a_table_of_pandas_needs_no_options(tmp_path):
    pd = partner("pandas")
    for names in (("source_id", "target_id"), ("a", "b")):
        table = pd.DataFrame({names[0]: [7, 8], names[1]: [5, 6]}, index=[1, 0])
        table.to_csv(tmp_path / "e.csv")
        table.to_parquet(tmp_path / "e.parquet")
        table.to_parquet(tmp_path / "index.parquet", index=True)
        for name in ("e.csv", "e.parquet", "index.parquet"):
            graph = datasets.read(tmp_path / name)
            assert graph.indices.tolist() == [7, 8]


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_columns_that_names_do_not_tell_apart(tmp_path, kind):
    pa, pq = partner("pyarrow"), partner("pyarrow.parquet")
    path = tmp_path / f"e.{kind}"

    def save(**columns: object) -> None:
        table = pa.table(columns)
        if kind == "parquet":
            pq.write_table(table, path)
        else:
            with pa.ipc.new_file(path, table.schema) as writer:
                writer.write_table(table)

    save(time=[9, 9], from_id=[1, 2], to_id=[3, 4])
    assert datasets.read(path).indices.tolist() == [1, 2]
    save(time=[9, 9], buyer=[1, 2], article=[3, -4])
    with pytest.raises(ValueError) as caught:
        datasets.read(path)
    assert str(caught.value) == (
        f"e.{kind}: expected src= and dst=, as no pair of columns has a usual name; "
        "the columns are time, buyer, article"
    )
    with pytest.raises(
        ValueError, match=f"e.{kind}: expected dst= in addition to src=, since no other"
    ):
        datasets.read(path, src="buyer")
    with pytest.raises(ValueError, match=r"row 1: dst \(column 'article'\): expected an integer"):
        datasets.read(path, src="buyer", dst="article")


def test_parquet_that_is_not_read_says_what_is(tmp_path):
    pa, pq = partner("pyarrow"), partner("pyarrow.parquet")
    path = tmp_path / "e.parquet"
    pq.write_table(pa.table({"src": [1], "dst": [0]}), path, compression="lz4")
    with pytest.raises(ValueError, match=r"by snappy, zstd, .* got LZ4.*, which is not read"):
        datasets.read(path)


def test_dtypes_of_numpy_and_torch_are_names(tmp_path):
    path = tmp_path / "e.csv"
    path.write_text("0,1\n")
    given = [np.int32, np.dtype("int32"), partner("torch").int32]
    assert [datasets.read(path, dtype=dtype).dtype for dtype in given] == ["int32"] * 3
    assert datasets.read(path, dtype=np.int64).dtype == "int64"


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_columns_of_any_integers(tmp_path, kind):
    pa, pq = partner("pyarrow"), partner("pyarrow.parquet")
    path = tmp_path / f"e.{kind}"

    def save(src: object, dst: object) -> None:
        table = pa.table({"src": src, "dst": dst})
        if kind == "parquet":
            pq.write_table(table, path, compression="zstd", data_page_version="2.0")
        else:
            with pa.ipc.new_file(path, table.schema) as writer:
                writer.write_table(table)

    for width in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"):
        save(pa.array([1, 100, 2], width), pa.array([0, 1, 1], width))
        graph = datasets.read(path)
        assert graph.indices.tolist() == [1, 100, 2]
        assert graph.dtype == (
            "int32" if width in ("int8", "uint8", "int16", "uint16", "int32") else "int64"
        )
    save(pa.array([7, 9, 7]).dictionary_encode(), pa.array([0, 1, 2], "int32"))
    assert datasets.read(path).indices.tolist() == [7, 9, 7]
    high = 2**32 - 1
    save(pa.array([high], "uint32"), pa.array([0], "uint32"))
    assert datasets.read(path, renumber=True).file_arrays["node_ids"].tolist() == [0, high]
    save(pa.array([], "int64"), pa.array([], "int64"))
    assert datasets.read(path).num_edges == 0
    for src, text in (
        (pa.array([1, None]), "row 1: src: expected an integer >= 0, got null"),
        (pa.array([1, -5]), "row 1: src: expected an integer >= 0, got -5"),
        (
            pa.array([1, 2**63], "uint64"),
            "row 1: src: expected an integer >= 0, got 9223372036854775808",
        ),
        (pa.array(["a", "b"]), "src: expected an integer column, got .src. of type"),
        (pa.array([0.5, 1]), "src: expected an integer column, got .src. of type"),
        (pa.array([[1], [2]]), "src: expected .*got"),
    ):
        save(src, pa.array([0, 0]))
        with pytest.raises(ValueError, match=text):
            datasets.read(path)
    save(pa.array([1, 2]), pa.array([0, 0]))
    with pytest.raises(ValueError, match=r'dst: expected a column "x", got columns src, dst'):
        datasets.read(path, dst="x")
    whole = path.read_bytes()
    for cut in (10, len(whole) // 2, len(whole) - 4):
        path.write_bytes(whole[:cut])
        with pytest.raises(ValueError, match=f"e.{kind}: expected a whole"):
            datasets.read(path)


def test_npz_of_matrices_and_arrays(tmp_path):
    sp = partner("scipy.sparse")
    path = tmp_path / "m.npz"
    for form in ("csr", "csc", "coo"):
        m = matrix().asformat(form)
        sp.save_npz(path, m)
        assert parts(datasets.read(path)) == parts(pgs.Graph.from_scipy(m))
    csr = matrix().tocsr()
    np.savez(
        path, adj_data=csr.data, adj_indices=csr.indices, adj_indptr=csr.indptr, adj_shape=csr.shape
    )
    assert parts(datasets.read(path)) == parts(pgs.Graph.from_scipy(csr))
    csc = pgs.Graph.from_coo(SRC, DST, num_nodes=9)
    np.savez(path, indptr=csc.indptr, indices=csc.indices, edge_ids=csc.edge_ids, num_nodes=9)
    assert parts(datasets.read(path)) == parts(csc)
    assert parts(datasets.read(path, renumber=True))[4] == [0, 1, 2, 3, 5]
    np.savez(path, edge_index=np.stack([SRC, DST]).astype("int32"))
    assert datasets.read(path).dtype == "int32"
    np.savez(path, a=SRC, b=DST)
    assert parts(datasets.read(path, src="b", dst="a")) == parts(pgs.Graph.from_coo(DST, SRC))
    for text, options in (
        ("expected a sparse matrix of SciPy, .*got a, b", {}),
        ("src: expected an array 'c', got a, b", {"src": "c", "dst": "a"}),
        ("dst: expected the name of an array", {"src": "a"}),
        ("src, dst: expected two arrays, got 'a' for both", {"src": "a", "dst": "a"}),
    ):
        with pytest.raises(ValueError, match=r"m.npz: " + text):
            datasets.read(path, **options)
    wide = np.array([2**60 + 1, 2**60], np.uint64)
    np.savez(path, src=wide, dst=np.array([2**60 + 1, 7]))
    assert parts(datasets.read(path, renumber=True))[4] == [7, 2**60, 2**60 + 1]
    for bad in (np.array([-1, 2]), np.array([2**63, 2], np.uint64)):
        np.savez(path, src=[0, 1], dst=bad)
        for renumber in (False, True):
            with pytest.raises(
                ValueError, match=r"m.npz: dst: expected ids from 0 to 2\^63 - 1, got"
            ):
                datasets.read(path, renumber=renumber)
    np.savez(path, src=np.array([{}], dtype=object), dst=DST)
    with pytest.raises(ValueError, match=r"m.npz: expected a whole npz file, got Object arrays"):
        datasets.read(path)
    for content, got in ((path.read_bytes()[:50], ""), (b"0 1\n", "what is no zip archive")):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=rf"m.npz: expected a whole npz file, got {got}"):
            datasets.read(path)


def test_networkx_graphs():
    nx = partner("networkx")
    g = nx.MultiDiGraph([(0, 1), (2, 1), (0, 1), (1, 1)])
    assert parts(pgs.Graph.from_networkx(g)) == parts(
        pgs.Graph.from_coo(*(np.array(ends) for ends in zip(*g.edges(), strict=True)))
    )
    g = nx.Graph([("b", "a"), ("a", "a"), ("a", "ö")])
    g.add_node("")
    graph = pgs.Graph.from_networkx(g)
    assert (graph.num_nodes, graph.num_edges) == (4, 5)
    text = bytes(graph.file_arrays["node_names.bytes"].numpy()).decode()
    assert text == "baö"
    assert graph.file_arrays["node_names.offsets"].tolist() == [0, 1, 2, 4, 4]
    ids = dict(zip(graph.edge_ids.tolist(), graph.indices.tolist(), strict=True))
    assert ids == {0: 0, 1: 1, 2: 1, 3: 1, 4: 2}
    assert graph.reverse_edge_ids().tolist() == [3, 1, 4, 0, 2]
    assert graph.node_names == ["b", "a", "ö", ""]
    assert graph.index_of(["ö", "", "b"]).tolist() == [2, 3, 0]
    graph = pgs.Graph.from_networkx(nx.path_graph([30, 10, 20]))
    assert graph.file_arrays["node_ids"].tolist() == [30, 10, 20]
    assert graph.num_edges == 4
    assert not pgs.Graph.from_networkx(nx.path_graph([2, 0, 1])).file_arrays
    assert pgs.Graph.from_networkx(nx.Graph()).num_nodes == 0
    with pytest.raises(TypeError, match="g: expected a networkx graph, got list"):
        pgs.Graph.from_networkx([])
