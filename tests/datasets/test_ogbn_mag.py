"""OGB's graph with types, on a small imitation of its folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ogb_tables import table
from partners import partner

import pygsampler as pgs
from pygsampler import datasets

NODES = {"author": 20, "field_of_study": 6, "institution": 4, "paper": 30}
KINDS = (
    ("author", "affiliated_with", "institution"),
    ("author", "writes", "paper"),
    ("paper", "cites", "paper"),
    ("paper", "has_topic", "field_of_study"),
)
RNG = np.random.default_rng(8)
EDGES = {
    kind: np.stack([RNG.integers(0, NODES[kind[end]], 50 + at) for end in (0, 2)])
    for at, kind in enumerate(KINDS)
}
X = RNG.random((30, 5)).round(6).astype("float32")
YEAR = RNG.integers(2010, 2020, (30, 1))
Y = RNG.integers(0, 7, (30, 1))
SPLIT = dict(zip(("train", "valid", "test"), np.split(RNG.permutation(30), [18, 24]), strict=True))


def write(raw: Path, split: Path) -> None:
    for kind, both in EDGES.items():
        folder = raw / "relations" / "___".join(kind)
        table(folder / "edge.csv.gz", both.T)
        table(folder / "num-edge-list.csv.gz", [[both.shape[1]]])
    table(raw / "num-node-dict.csv.gz", [list(NODES.values())], ",".join(NODES) + "\n")
    table(raw / "node-feat" / "paper" / "node-feat.csv.gz", X)
    table(raw / "node-feat" / "paper" / "node_year.csv.gz", YEAR)
    table(raw / "node-label" / "paper" / "node-label.csv.gz", Y)
    for part, ids in SPLIT.items():
        table(split / "time" / "paper" / f"{part}.csv.gz", ids[:, None])


def check(graph: pgs.Graph) -> None:
    assert graph.num_nodes == NODES
    assert graph.edge_types == KINDS
    for kind, both in EDGES.items():
        csc = graph[kind]
        rows = np.repeat(np.arange(len(csc.indptr) - 1), np.diff(csc.indptr.numpy()))
        ids = csc.edge_ids.numpy()
        assert np.array_equal(both[:, ids], np.stack([csc.indices.numpy(), rows]))
    papers = {name: rows.numpy() for name, rows in graph.ndata["paper"].items()}
    masks = {"train": "train_mask", "valid": "val_mask", "test": "test_mask"}
    assert set(papers) == {"x", "y", "year", *masks.values()}
    assert papers["x"].dtype == np.float32
    np.testing.assert_array_equal(papers["x"], X)
    np.testing.assert_array_equal(papers["y"], Y[:, 0])
    np.testing.assert_array_equal(papers["year"], YEAR[:, 0])
    for part, name in masks.items():
        np.testing.assert_array_equal(np.flatnonzero(papers[name]), np.sort(SPLIT[part]))


@pytest.mark.parametrize("pygs", [False, True])
def test_files(tmp_path: Path, pygs: bool) -> None:
    folder = tmp_path / ("mag" if pygs else "ogbn_mag")
    write(folder / "raw", folder / ("raw/split" if pygs else "split"))
    check(datasets.ogbn_mag(root=tmp_path))
    both = datasets.ogbn_mag(root=tmp_path, reverse=True)
    assert len(both.edge_types) == 8
    back = both["paper", "rev_writes", "author"]
    assert back.num_edges == EDGES[KINDS[1]].shape[1]
    first = int(EDGES[KINDS[1]][0][0])
    row = slice(*(int(at) for at in back.indptr.numpy()[first : first + 2]))
    assert EDGES[KINDS[1]][1][0] in back.indices.numpy()[row]
    if not pygs:
        with pytest.raises(TypeError, match=r"which is not; datasets\.ogbn_mag has it"):
            datasets.ogb("ogbn-mag", root=tmp_path)


@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")
def test_as_pyg_reads_them(tmp_path: Path) -> None:
    partner("pandas")
    mag = partner("torch_geometric.datasets").OGB_MAG
    write(tmp_path / "mag" / "raw", tmp_path / "mag" / "raw" / "split")
    ours, theirs = datasets.ogbn_mag(root=tmp_path), mag(tmp_path)[0]
    check(pgs.Graph.from_pyg(theirs))
    for name, rows in ours.ndata["paper"].items():
        np.testing.assert_array_equal(rows.numpy(), theirs["paper"][name].numpy())


def test_what_ogb_has_loaded() -> None:
    class Loaded:
        name, is_hetero = "ogbn-mag", True

        def __getitem__(self, place: int) -> Any:
            graph = {
                "edge_index_dict": EDGES,
                "edge_feat_dict": {},
                "node_feat_dict": {"paper": X},
                "node_year": {"paper": YEAR},
                "num_nodes_dict": NODES,
            }
            return graph, {"paper": Y}

        def get_idx_split(self) -> dict[str, Any]:
            return {part: {"paper": ids} for part, ids in SPLIT.items()}

    check(datasets.ogbn_mag(Loaded()))
    Loaded.is_hetero = False
    with pytest.raises(TypeError, match="expected OGB's NodePropPredDataset of ogbn-mag, got ogbn"):
        datasets.ogbn_mag(Loaded())
    with pytest.raises(TypeError, match="got int"):
        datasets.ogbn_mag(3)


def test_what_does_not_fit_together(tmp_path: Path) -> None:
    raw = tmp_path / "ogbn_mag" / "raw"
    write(raw, tmp_path / "ogbn_mag" / "split")
    relation = raw / "relations" / "author___writes___paper"
    for path, rows, error in (
        (relation / "num-edge-list.csv.gz", [[7]], "author___writes___paper: expected 7 edges"),
        (relation / "edge.csv.gz", np.full((51, 2), 25), r"author.*\[0, 20\), got 25"),
        (raw / "node-feat/paper/node-feat.csv.gz", X[1:], "x of paper: expected 30 rows, got 29"),
    ):
        before = path.read_bytes()
        table(path, rows)
        with pytest.raises(ValueError, match=error):
            datasets.ogbn_mag(root=tmp_path)
        path.write_bytes(before)
    (raw / "relations" / "notes").mkdir()
    with pytest.raises(ValueError, match="relations: expected a folder source___relation"):
        datasets.ogbn_mag(root=tmp_path)


def test_nothing_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ogb.nodeproppred", None)
    with pytest.raises(ImportError, match=r"expected files in .*ogbn_mag/raw or the package ogb"):
        datasets.ogbn_mag(root=tmp_path)
