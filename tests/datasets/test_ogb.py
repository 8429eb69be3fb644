"""OGB's data sets, on files of the same layout: read by us, and by OGB's own loader."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ogb_tables import table
from partners import partner

import pygsampler as pgs
from pygsampler import datasets

NODES, LINES = 30, 80
RNG = np.random.default_rng(5)
EDGES = RNG.integers(0, NODES, (LINES, 2))
EDGES[3] = 7  # a self loop
FEATURES = RNG.random((NODES, 4)).astype("float32")
LABELS = RNG.integers(0, 3, (NODES, 1))
WEIGHT = RNG.integers(1, 9, (LINES, 1))
SPLIT = dict(
    zip(("train", "valid", "test"), np.split(RNG.permutation(NODES), [18, 24]), strict=True)
)


def beside(folder: Path, kind: str) -> None:
    for name, ids in SPLIT.items():
        table(folder / "split" / kind / f"{name}.csv.gz", ids[:, None])
    # By this OGB's loader knows that nothing newer is to be asked for.
    (folder / "RELEASE_v1.txt").write_text("")
    (folder / "processed").mkdir()
    (folder / "mapping").mkdir()


def write_csv(folder: Path, kind: str = "time") -> None:
    raw = folder / "raw"
    table(raw / "edge.csv.gz", EDGES)
    table(raw / "num-node-list.csv.gz", [[NODES]])
    table(raw / "num-edge-list.csv.gz", [[LINES]])
    table(raw / "node-feat.csv.gz", FEATURES)
    table(raw / "node-label.csv.gz", LABELS)
    table(raw / "edge_weight.csv.gz", WEIGHT)
    beside(folder, kind)


def write_npz(folder: Path) -> None:
    (folder / "raw").mkdir(parents=True)
    np.savez(
        folder / "raw" / "data.npz",
        edge_index=EDGES.T,
        node_feat=FEATURES,
        node_year=LABELS + 2000,
        num_nodes_list=np.array([NODES]),
        num_edges_list=np.array([LINES]),
    )
    np.savez(folder / "raw" / "node-label.npz", node_label=LABELS)
    beside(folder, "time")


def ends(graph: pgs.Graph) -> np.ndarray:
    """OGB's edge_index: column e is edge e."""
    indptr = graph.indptr.numpy()
    both = np.stack([graph.indices.numpy(), np.repeat(np.arange(graph.num_nodes), np.diff(indptr))])
    ids = np.arange(graph.num_edges) if graph.edge_ids is None else graph.edge_ids.numpy()
    out = np.empty_like(both)
    out[:, ids] = both
    return out


def check(data: datasets.Ogb, inverse: bool) -> None:
    expected = EDGES.T
    if inverse:
        expected = np.repeat(expected, 2, axis=1)
        expected[:, 1::2] = EDGES.T[::-1]
    assert np.array_equal(ends(data.graph), expected)
    assert (data.num_nodes, data.num_edges) == (NODES, LINES * (2 if inverse else 1))
    assert data.graph.dtype == "int64"
    assert np.allclose(data.features, FEATURES)
    assert data.features.dtype == np.float32
    assert np.array_equal(data.labels, LABELS)
    for name, ids in (("train", data.train), ("valid", data.val), ("test", data.test)):
        assert ids.dtype == np.int64
        assert np.array_equal(ids, SPLIT[name])


def same(ours: datasets.Ogb, theirs: datasets.Ogb) -> None:
    assert np.array_equal(ends(ours.graph), ends(theirs.graph))
    for name in ("features", "edge_features", "labels", "train", "val", "test"):
        a, b = getattr(ours, name), getattr(theirs, name)
        assert (a is None) == (b is None), name
        if a is not None:
            assert np.array_equal(a, b)
            assert a.dtype == b.dtype, name
    assert ours.more.keys() == theirs.more.keys()
    for name, value in ours.more.items():
        assert np.array_equal(value, theirs.more[name])
        assert value.dtype == theirs.more[name].dtype


@pytest.mark.parametrize(
    ("name", "kind", "inverse"),
    [("ogbn-arxiv", "time", False), ("ogbn-products", "sales_ranking", True)],
)
def test_files_of_csv(tmp_path, name, kind, inverse):
    write_csv(tmp_path / name.replace("-", "_"), kind)
    # Of several splits, the standard one.
    table(tmp_path / name.replace("-", "_") / "split" / "other" / "train.csv.gz", [[1]])
    data = datasets.ogb(name, root=tmp_path)
    check(data, inverse)
    expected = np.repeat(WEIGHT, 2, axis=0) if inverse else WEIGHT
    assert np.array_equal(data.more["edge_weight"], expected)
    assert repr(data) == f"Ogb('{name}', num_nodes=30, num_edges={160 if inverse else 80})"


def test_files_of_npz(tmp_path):
    write_npz(tmp_path / "ogbn_papers100M")
    data = datasets.ogb("ogbn-papers100M", root=str(tmp_path))
    check(data, False)
    assert np.array_equal(data.more["node_year"], LABELS + 2000)


def test_names_that_are_not_ogbs_say_what_their_file_has(tmp_path):
    write_csv(tmp_path / "ogbn_mine")
    with pytest.raises(ValueError, match="add_inverse_edge: expected True or False for ogbn-mine"):
        datasets.ogb("ogbn-mine", root=tmp_path)
    check(datasets.ogb("ogbn-mine", root=tmp_path, add_inverse_edge=True), True)


def test_link_prediction_has_no_vertices_to_train_on(tmp_path):
    write_csv(tmp_path / "ogbl_collab")
    data = datasets.ogb("ogbl-collab", root=tmp_path)
    assert data.num_edges == 2 * LINES
    assert data.train is data.val is data.test is None


# OGB adds no inverse edges to files of npz.
@pytest.mark.parametrize(("binary", "inverse"), [(False, False), (False, True), (True, False)])
def test_ogbs_own_loader_gives_the_same(tmp_path, capsys, binary, inverse):
    loader = partner("ogb.nodeproppred")
    folder = tmp_path / "ogbn_mine"
    (write_npz if binary else write_csv)(folder)
    about = {
        "version": 1,
        "dir_path": str(folder),
        "binary": str(binary),
        "num tasks": 1,
        "num classes": 3,
        "task type": "classification",
        "eval metric": "acc",
        "is hetero": "False",
        "split": "time",
        "add_inverse_edge": str(inverse),
        "download_name": "mine",
        "url": "",
        "additional node files": "None",
        "additional edge files": "None" if binary else "edge_weight",
    }
    ours = datasets.ogb("ogbn-mine", root=tmp_path, add_inverse_edge=inverse)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loaded = loader.NodePropPredDataset("ogbn-mine", meta_dict=about)
        theirs = datasets.ogb(loaded)
    check(theirs, inverse)
    same(ours, theirs)
    capsys.readouterr()


def test_a_pyg_graph_of_ogb():
    torch, framework = partner("torch"), partner("torch_geometric")

    class OfPyg:
        name, is_hetero = "ogbn-arxiv", False

        def __len__(self) -> int:
            return 1

        def __getitem__(self, place: int) -> Any:
            return framework.data.Data(
                x=torch.from_numpy(FEATURES),
                edge_index=torch.from_numpy(EDGES.T.copy()),
                y=torch.from_numpy(LABELS),
                node_year=torch.from_numpy(LABELS),
                num_nodes=NODES,
            )

        def get_idx_split(self) -> dict[str, Any]:
            return {name: torch.from_numpy(ids) for name, ids in SPLIT.items()}

    data = datasets.ogb(OfPyg())
    assert isinstance(data.features, torch.Tensor)
    assert np.array_equal(ends(data.graph), EDGES.T)
    assert np.array_equal(data.labels, LABELS)
    assert np.array_equal(data.val, SPLIT["valid"])
    assert list(data.more) == ["node_year"]


def test_a_dgl_graph_of_ogb():
    torch, framework = partner("torch"), partner("dgl")

    class OfDgl:
        name = "ogbn-arxiv"

        def __len__(self) -> int:
            return 1

        def __getitem__(self, place: int) -> Any:
            g = framework.graph(
                (torch.from_numpy(EDGES[:, 0]), torch.from_numpy(EDGES[:, 1])), num_nodes=NODES
            )
            g.ndata["feat"] = torch.from_numpy(FEATURES)
            return g, torch.from_numpy(LABELS)

    data = datasets.ogb(OfDgl())
    assert np.array_equal(ends(data.graph), EDGES.T)
    assert np.allclose(data.features, FEATURES)
    assert np.array_equal(data.labels, LABELS)


def test_what_does_not_fit_together(tmp_path):
    folder = tmp_path / "ogbn_arxiv"
    write_csv(folder)
    for name, rows, error in (
        ("num-edge-list", [[LINES - 1]], "edge.csv.gz: expected 79 lines, as num-edge-list.csv.gz"),
        ("num-edge-list", [[40], [40]], "num-edge-list.csv.gz: expected one graph, got 2"),
        ("edge", [[0, NODES]], "edge.csv.gz:1: expected ids below 30, as num_nodes says, got 30"),
        ("edge_weight", WEIGHT[1:], "edge_weight: expected 80 rows, got 79"),
        ("node-feat", FEATURES[1:], "node_feat: expected 30 rows, got 29"),
        ("node-label", LABELS[1:], "labels: expected 30 rows, got 29"),
    ):
        path = folder / "raw" / f"{name}.csv.gz"
        before = path.read_bytes()
        table(path, rows)
        with pytest.raises(ValueError, match=error):
            datasets.ogb("ogbn-arxiv", root=tmp_path)
        path.write_bytes(before)
    check(datasets.ogb("ogbn-arxiv", root=tmp_path), False)
    (folder / "raw" / "edge.csv.gz").unlink()
    with pytest.raises(FileNotFoundError, match=r"expected edge.csv.gz or data.npz"):
        datasets.ogb("ogbn-arxiv", root=tmp_path)
    table(folder / "raw" / "triplet-type-list.csv.gz", [[1]])
    with pytest.raises(TypeError, match="expected a homogeneous graph, got ogbn-arxiv"):
        datasets.ogb("ogbn-arxiv", root=tmp_path)


def test_what_is_no_data_set(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="expected the name of a node or link property data set"):
        datasets.ogb("ogbg-molhiv", root=tmp_path)
    with pytest.raises(
        TypeError, match="expected a name or a data set of the package ogb, got int"
    ):
        datasets.ogb(3)
    monkeypatch.setitem(sys.modules, "ogb.nodeproppred", None)
    with pytest.raises(ImportError, match=r"expected files in .*raw or the package ogb"):
        datasets.ogb("ogbn-arxiv", root=tmp_path)


def test_without_pandas_tables_are_read_too(tmp_path, monkeypatch):
    write_csv(tmp_path / "ogbn_arxiv")
    monkeypatch.setitem(sys.modules, "pandas", None)
    check(datasets.ogb("ogbn-arxiv", root=tmp_path), False)
