"""``ogbn_mag``: OGB's heterogeneous graph, by its own loader or from the files of its download."""

from __future__ import annotations

import csv
import gzip
import os
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pygsampler._engine.checks import boolean, describe

if TYPE_CHECKING:
    from pygsampler._graph.graph import Graph
    from pygsampler._graph.schema import EdgeType

_NAME = "ogbn-mag"
# OGB's names of node arrays, and their names in PyG and here.
_ARRAYS = {"node_feat_dict": "x", "node_year": "year"}
_PARTS = {"train": "train_mask", "valid": "val_mask", "test": "test_mask"}


def ogbn_mag(dataset: Any = None, *, root: Any = "dataset", reverse: bool = False) -> Graph:
    """The Microsoft Academic Graph of OGB: papers, authors, institutions and fields of study.

    ``ndata["paper"]`` has the arrays of PyG's ``OGB_MAG``: ``"x"`` (float32, [N, 128]), ``"year"``
    and ``"y"``, the venue (int64, [N]), and ``"train_mask"``, ``"val_mask"`` and ``"test_mask"`` of
    the split by time (bool, [N]). Ids are int64; edge e of a relation is column e of OGB's
    ``edge_index``.

    Parameters
    ----------
    dataset : data set, optional
        A ``NodePropPredDataset("ogbn-mag")`` that OGB's package has loaded. Without it the files
        under ``root`` are read if they exist (neither ogb nor PyTorch is needed then, but pandas
        helps), else the package ogb loads the data set, and asks before it downloads it.
    root : str or os.PathLike
        OGB's folder of data sets, with the files in ``root/ogbn_mag/raw``, or PyG's folder, with
        the files in ``root/mag/raw``.
    reverse : bool
        True adds the reverse of each relation, with ``rev_`` before its name and the same edge ids;
        without reverses no edge leads to authors.

    Raises
    ------
    TypeError, ValueError
        For another data set, and for files that do not fit together.
    ImportError
        If there are no files and the package ogb is not installed.
    """
    both = boolean(reverse, "reverse")
    if dataset is not None:
        return _of_object(dataset, both)
    for folder in (Path(os.fspath(root)) / name for name in ("ogbn_mag", "mag")):
        if (folder / "raw" / "relations").is_dir():
            return _of_files(folder, both)
    try:
        loader = import_module("ogb.nodeproppred").NodePropPredDataset
    except ImportError as error:
        raise ImportError(
            f"datasets.ogbn_mag: expected files in {Path(os.fspath(root)) / 'ogbn_mag' / 'raw'} or "
            "the package ogb, found neither; pip install ogb"
        ) from error
    return _of_object(loader(_NAME, root=os.fspath(root)), both)


def _of_object(dataset: Any, reverse: bool) -> Graph:
    """Returns the graph that OGB's loader has loaded: dictionaries of NumPy arrays."""
    name = getattr(dataset, "name", None)
    if not getattr(dataset, "is_hetero", False) or not hasattr(dataset, "get_idx_split"):
        shown = describe(dataset) if name is None else name
        raise TypeError(f"dataset: expected OGB's NodePropPredDataset of {_NAME}, got {shown}")
    graph, labels = dataset[0]
    arrays = {
        new: {kind: rows for kind, rows in graph.get(old, {}).items() if rows is not None}
        for old, new in _ARRAYS.items()
    }
    arrays["y"] = labels
    edges = {tuple(kind): tuple(both) for kind, both in graph["edge_index_dict"].items()}
    nodes = {kind: int(count) for kind, count in graph["num_nodes_dict"].items()}
    return _hetero_graph(nodes, edges, arrays, dataset.get_idx_split(), reverse)


def _of_files(folder: Path, reverse: bool) -> Graph:
    """The files that the download of OGB or of PyG is unpacked to."""
    from pygsampler.datasets import _ogb_files as files

    raw = folder / "raw"
    with gzip.open(raw / "num-node-dict.csv.gz", "rt") as file:
        kinds, counts, *more = csv.reader(file)
    if more or len(kinds) != len(counts):
        raise ValueError(f"{_NAME}: num-node-dict.csv.gz: expected one graph, got {1 + len(more)}")
    nodes = {kind: int(count) for kind, count in zip(kinds, counts, strict=True)}
    edges: dict[Any, tuple[Any, Any]] = {}
    for place in sorted((raw / "relations").iterdir()):
        kind = tuple(place.name.split("___"))
        if len(kind) != 3 or kind[0] not in nodes or kind[2] not in nodes:
            expected = f"a folder source___relation___destination of the types {', '.join(nodes)}"
            raise ValueError(f"{_NAME}: relations: expected {expected}, got {place.name!r}")
        both = files.edges_of(place / "edge.csv.gz", max(nodes[kind[0]], nodes[kind[2]]))
        counted = place / "num-edge-list.csv.gz"
        if counted.exists() and files.number_in(_NAME, counted) != both.shape[1]:
            raise ValueError(
                f"{_NAME}: {place.name}: expected {files.number_in(_NAME, counted)} edges, as "
                f"num-edge-list.csv.gz says, got {both.shape[1]}"
            )
        edges[kind] = both[0], both[1]
    arrays: dict[str, dict[str, Any]] = {name: {} for name in (*_ARRAYS.values(), "y")}
    split: dict[str, dict[str, Any]] = {part: {} for part in _PARTS}
    for of in nodes:
        for name, path in (
            ("x", raw / "node-feat" / of / "node-feat.csv.gz"),
            ("year", raw / "node-feat" / of / "node_year.csv.gz"),
            ("y", raw / "node-label" / of / "node-label.csv.gz"),
        ):
            if path.exists():
                arrays[name][of] = files.table_of(path)
        for part in _PARTS:
            for above in (folder, raw):
                path = above / "split" / "time" / of / f"{part}.csv.gz"
                if path.exists():
                    split[part][of] = files.integers_of(path)
    return _hetero_graph(nodes, edges, arrays, split, reverse)


def _hetero_graph(
    nodes: dict[str, int],
    edges: dict[EdgeType, tuple[Any, Any]],
    arrays: dict[str, dict[str, Any]],
    split: dict[str, dict[str, Any]],
    reverse: bool,
) -> Graph:
    import numpy as np

    from pygsampler._graph.graph import Graph

    of_nodes: dict[str, dict[str, Any]] = {kind: {} for kind in nodes}
    for name, of_types in arrays.items():
        for kind, rows in of_types.items():
            values = np.asarray(rows, np.float32 if name == "x" else np.int64)
            if len(values) != nodes[kind]:
                raise ValueError(
                    f"{_NAME}: {name} of {kind}: expected {nodes[kind]} rows, got {len(values)}"
                )
            of_nodes[kind][name] = values if name == "x" else values.reshape(-1)
    for part, name in _PARTS.items():
        for kind, ids in split.get(part, {}).items():
            of_nodes[kind][name] = mask = np.zeros(nodes[kind], bool)
            mask[np.asarray(ids)] = True
    for edge_type, (src, dst) in list(edges.items()):
        ends = tuple(np.ascontiguousarray(ids, np.int64) for ids in (src, dst))
        edges[edge_type] = ends[0], ends[1]
        if reverse:
            edges[edge_type[2], f"rev_{edge_type[1]}", edge_type[0]] = ends[1], ends[0]
    return Graph.from_coo(edges, num_nodes=nodes, node_data=of_nodes)
