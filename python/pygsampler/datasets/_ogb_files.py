"""The files of an OGB data set as its download has them: CSV packed with gzip, or npz."""

from __future__ import annotations

import gzip
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

# Files that are no arrays beside the graph.
_STRUCTURE = ("edge", "num-node-list", "num-edge-list", "node-label", "node-feat", "edge-feat")


def is_heterogeneous(raw: Path) -> bool:
    """True if the files are those of several types of nodes or edges."""
    names = ("triplet-type-list.csv.gz", "edge_index_dict.npz", "num-node-dict.csv.gz")
    return any((raw / name).exists() for name in names)


def read(name: str, raw: Path, inverse: bool | None) -> tuple[dict[str, Any], Any]:
    """The graph as OGB's own loader gives it, and the labels or None."""
    if (raw / "data.npz").exists():
        return _read_npz(name, raw)
    if not (raw / "edge.csv.gz").exists():
        raise FileNotFoundError(f"{name}: expected edge.csv.gz or data.npz in {raw}, got neither")
    if inverse is None:
        raise ValueError(
            f"add_inverse_edge: expected True or False for {name}, which is not OGB's, got None"
        )
    return _read_csv(name, raw, inverse)


def split(folder: Path, kind: str | None) -> dict[str, Any] | None:
    """The nodes of the three parts; None where there are no files that can be trusted.

    Some data sets have a ``split_dict.pt`` in their place, a pickle, which could run anything.
    """
    found = [path for path in sorted(folder.glob("*")) if (path / "train.csv.gz").exists()]
    if kind is not None:
        found = [path for path in found if path.name == kind]
    if len(found) != 1:
        return None
    return {part: integers_of(found[0] / f"{part}.csv.gz") for part in ("train", "valid", "test")}


def _read_csv(name: str, raw: Path, inverse: bool) -> tuple[dict[str, Any], Any]:
    import numpy as np

    nodes = number_in(name, raw / "num-node-list.csv.gz")
    edges = number_in(name, raw / "num-edge-list.csv.gz")
    both = edges_of(raw / "edge.csv.gz", nodes)
    if both.shape[1] != edges:
        raise ValueError(
            f"{name}: edge.csv.gz: expected {edges} lines, as num-edge-list.csv.gz says, "
            f"got {both.shape[1]}"
        )
    arrays: dict[str, Any] = {"num_nodes": nodes, "node_feat": None, "edge_feat": None}
    for path in sorted(raw.glob("*.csv.gz")):
        stem = path.name.removesuffix(".csv.gz")
        if stem in _STRUCTURE[:4]:
            continue
        key = stem.replace("-", "_") if stem in _STRUCTURE else stem
        # Such as edge_weight, and node_year: other files have no rows of the graph.
        if key.partition("_")[0] not in ("node", "edge"):
            continue
        table = table_of(path)
        if inverse and key.startswith("edge_"):
            table = np.repeat(table, 2, axis=0)
        arrays[key] = table
    if inverse:
        doubled = np.repeat(both, 2, axis=1)
        doubled[:, 1::2] = both[::-1]
        both = doubled
    arrays["edge_index"] = both
    labels = raw / "node-label.csv.gz"
    return arrays, table_of(labels, keep=True) if labels.exists() else None


def _read_npz(name: str, raw: Path) -> tuple[dict[str, Any], Any]:
    import numpy as np

    with np.load(raw / "data.npz", allow_pickle=False) as data:
        counts = [data[key] for key in ("num_nodes_list", "num_edges_list")]
        if any(len(count) != 1 for count in counts):
            raise ValueError(f"{name}: data.npz: expected one graph, got {len(counts[0])}")
        arrays: dict[str, Any] = {
            key: data[key] for key in data.files if key not in ("num_nodes_list", "num_edges_list")
        }
    arrays["num_nodes"] = int(counts[0][0])
    if arrays["edge_index"].shape[-1] != int(counts[1][0]):
        raise ValueError(
            f"{name}: data.npz: edge_index: expected {int(counts[1][0])} edges, "
            f"got shape {arrays['edge_index'].shape}"
        )
    labels = raw / "node-label.npz"
    if not labels.exists():
        return arrays, None
    with np.load(labels, allow_pickle=False) as data:
        return arrays, data["node_label"]


def edges_of(path: Path, nodes: int) -> NDArray[Any]:
    """The lines of the file as an array of shape [2, E], by the engine's reader."""
    import numpy as np

    from pygsampler.datasets._files import read as read_edges

    with read_edges(path, format="csv", src=0, dst=1, num_nodes=nodes) as graph:
        indptr, src = graph.indptr.numpy(), graph.indices.numpy()
        dst = np.repeat(np.arange(nodes, dtype=np.int64), np.diff(indptr))
        both = np.empty((2, len(src)), np.int64)
        place = slice(None) if graph.edge_ids is None else graph.edge_ids.numpy()
        both[0, place], both[1, place] = src, dst
        return both


def number_in(name: str, path: Path) -> int:
    """The number in a file that has one for each graph."""
    values = integers_of(path)
    if len(values) != 1:
        raise ValueError(f"{name}: {path.name}: expected one graph, got {len(values)}")
    return int(values[0])


def integers_of(path: Path) -> NDArray[Any]:
    import numpy as np

    return np.asarray(table_of(path)[:, 0], np.int64)


def table_of(path: Path, keep: bool = False) -> NDArray[Any]:
    """The rows of a CSV file without a header: int64, or float32 where not all are integers.

    ``keep`` leaves floats as they are read, as OGB does for labels.
    """
    import numpy as np

    try:
        pandas = import_module("pandas")
    except ImportError:
        # Many times slower, which matters for features alone.
        with gzip.open(path, "rt") as file:
            values = np.loadtxt(file, delimiter=",", ndmin=2)
        if values.size and np.array_equal(values, np.trunc(values)):
            values = values.astype(np.int64)
    else:
        values = pandas.read_csv(path, compression="gzip", header=None).to_numpy()
    if values.dtype.kind in "iu":
        return values.astype(np.int64, copy=False)
    return values if keep else values.astype(np.float32)
