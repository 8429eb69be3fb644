"""The data sets of the Open Graph Benchmark: by its own loader, or the files that it keeps."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pygsampler._engine.checks import describe

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pygsampler._graph.graph import Graph


class _Facts(NamedTuple):
    """Facts about a data set in OGB's table that its files do not say."""

    inverse: bool  # the file has one direction of each edge
    split: str


_KNOWN = {
    "ogbn-proteins": _Facts(True, "species"),
    "ogbn-products": _Facts(True, "sales_ranking"),
    "ogbn-arxiv": _Facts(False, "time"),
    "ogbn-papers100M": _Facts(False, "time"),
    "ogbl-ppa": _Facts(True, "throughput"),
    "ogbl-collab": _Facts(True, "time"),
    "ogbl-citation2": _Facts(False, "time"),
    "ogbl-wikikg2": _Facts(False, "time"),
    "ogbl-ddi": _Facts(True, "target"),
    "ogbl-vessel": _Facts(False, "spatial"),
}
_PLAIN = ("edge_index", "num_nodes", "node_feat", "edge_feat")


@dataclass(frozen=True, eq=False, repr=False)
class Ogb:
    """A data set of OGB's, with one homogeneous graph.

    Attributes
    ----------
    name : str
        Such as "ogbn-arxiv".
    graph : Graph
        N nodes, E edges, int64 ids; edge e is column e of OGB's ``edge_index``. If OGB adds the
        inverse of each edge, edges 2k and 2k + 1 are the two directions of line k.
    features : array, shape [N, D], or None
        OGB's ``node_feat``.
    edge_features : array, shape [E, D], or None
        OGB's ``edge_feat``, to be indexed by edge ids.
    labels : array, shape [N, T], or None
    train, val, test : int64 arrays, or None
        The nodes of the standard split. None for link prediction: ``get_edge_split`` of OGB's
        loader has those edges.
    more : dict
        Further arrays of the graph, such as "node_year" or "edge_weight".
    """

    name: str
    graph: Graph
    features: NDArray[Any] | None = None
    edge_features: NDArray[Any] | None = None
    labels: NDArray[Any] | None = None
    train: NDArray[Any] | None = None
    val: NDArray[Any] | None = None
    test: NDArray[Any] | None = None
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def num_nodes(self) -> int:
        return int(self.graph.num_nodes)

    @property
    def num_edges(self) -> int:
        return int(self.graph.num_edges)

    def __repr__(self) -> str:
        return f"Ogb({self.name!r}, num_nodes={self.num_nodes}, num_edges={self.num_edges})"


def ogb(dataset: Any, *, root: Any = "dataset", add_inverse_edge: bool | None = None) -> Ogb:
    """A node or link property data set of the Open Graph Benchmark.

    Parameters
    ----------
    dataset : str, or a data set that OGB's package has loaded
        A name, such as "ogbn-products": the files under ``root`` are read where they are there
        (neither ogb nor PyTorch is needed then, but pandas helps), else the package ogb loads the
        data set, which may download it and asks before it does. Or a ``NodePropPredDataset`` or
        ``LinkPropPredDataset``, also those for PyG and for DGL.
    root : str or os.PathLike
        OGB's folder of data sets: the files are in ``root/ogbn_products/raw`` and so on, as CSV
        packed with gzip, or in ``data.npz``.
    add_inverse_edge : bool, optional
        Whether the file has one direction of each edge and the other is to be added; needed for
        names that are not OGB's.

    Raises
    ------
    TypeError, ValueError
        For a heterogeneous graph, data sets of many graphs, and files that do not fit together.
    ImportError
        Where there are no files and the package ogb is not installed.
    """
    if not isinstance(dataset, str):
        return _of_object(dataset)
    kind = dataset.partition("-")[0]
    if kind not in ("ogbn", "ogbl"):
        raise ValueError(
            f"dataset: expected the name of a node or link property data set (ogbn-..., ogbl-...), "
            f"got {dataset!r}"
        )
    folder = Path(os.fspath(root)) / dataset.replace("-", "_")
    if (folder / "raw").is_dir() and any((folder / "raw").iterdir()):
        return _of_files(dataset, folder, add_inverse_edge)
    try:
        if kind == "ogbn":
            loader = import_module("ogb.nodeproppred").NodePropPredDataset
        else:
            loader = import_module("ogb.linkproppred").LinkPropPredDataset
    except ImportError as error:
        raise ImportError(
            f"datasets.ogb: expected files in {folder / 'raw'} or the package ogb, found neither; "
            "pip install ogb"
        ) from error
    return _of_object(loader(dataset, root=os.fspath(root)))


def _not_homogeneous(name: str) -> str:
    hint = "; datasets.ogbn_mag has it" if name == "ogbn-mag" else ""
    return f"dataset: expected a homogeneous graph, got {name}, which is not{hint}"


def _of_object(dataset: Any) -> Ogb:
    """Returns the data that one of OGB's loaders has loaded."""
    name = getattr(dataset, "name", None)
    if not isinstance(name, str) or not hasattr(dataset, "__getitem__"):
        raise TypeError(
            f"dataset: expected a name or a data set of the package ogb, got {describe(dataset)}"
        )
    if getattr(dataset, "is_hetero", False):
        raise TypeError(_not_homogeneous(name))
    if len(dataset) != 1:
        raise ValueError(f"dataset: expected one graph, got {len(dataset)} of {name}")
    item = dataset[0]
    graph, labels = item if isinstance(item, tuple) else (item, None)
    if isinstance(graph, dict):
        made = _of_arrays(name, graph, labels)
    else:
        made = _of_framework(name, graph, labels)
    if not hasattr(dataset, "get_idx_split"):
        return made
    return _with_split(made, dataset.get_idx_split())


def _of_arrays(name: str, arrays: dict[str, Any], labels: Any) -> Ogb:
    """Reads OGB's own format: a dictionary of NumPy arrays."""
    import numpy as np

    from pygsampler._graph.graph import Graph

    both = np.asarray(arrays["edge_index"])
    if both.ndim != 2 or both.shape[0] != 2:
        raise ValueError(f"{name}: edge_index: expected shape (2, E), got {both.shape}")
    nodes = int(arrays["num_nodes"])
    graph = Graph.from_coo(
        np.ascontiguousarray(both[0], np.int64),
        np.ascontiguousarray(both[1], np.int64),
        num_nodes=nodes,
    )
    for key, value in arrays.items():
        count = {"node": nodes, "edge": graph.num_edges}.get(key.partition("_")[0])
        if (
            count is not None
            and key not in _PLAIN[:2]
            and value is not None
            and len(value) != count
        ):
            raise ValueError(f"{name}: {key}: expected {count} rows, got {len(value)}")
    if labels is not None and len(labels) != nodes:
        raise ValueError(f"{name}: labels: expected {nodes} rows, got {len(labels)}")
    return Ogb(
        name,
        graph,
        arrays.get("node_feat"),
        arrays.get("edge_feat"),
        labels,
        more={key: value for key, value in arrays.items() if key not in _PLAIN},
    )


def _of_framework(name: str, graph: Any, labels: Any) -> Ogb:
    """Reads the format of OGB's loaders for PyG and for DGL, without a copy of the tensors."""
    from pygsampler._graph.graph import Graph

    if hasattr(graph, "adj_tensors"):
        taken = {f"node_{key}": value for key, value in graph.ndata.items()}
        taken.update({f"edge_{key}": value for key, value in graph.edata.items()})
        made = Graph.from_dgl(graph)._plain()
    else:
        names = {"x": "node_feat", "edge_attr": "edge_feat", "y": "labels"}
        taken = {names.get(key, key): value for key, value in graph.to_dict().items()}
        labels = taken.pop("labels", labels)
        made = Graph.from_pyg(graph)._plain()
    more = {
        key: value
        for key, value in taken.items()
        if key not in (*_PLAIN, "adj_t") and value is not None
    }
    return Ogb(name, made, taken.get("node_feat"), taken.get("edge_feat"), labels, more=more)


def _with_split(dataset: Ogb, split: Any) -> Ogb:
    from dataclasses import replace

    import numpy as np

    train, val, test = (
        None if part is None else np.asarray(part).astype(np.int64, copy=False)
        for part in (split.get(key) for key in ("train", "valid", "test"))
    )
    return replace(dataset, train=train, val=val, test=test)


def _of_files(name: str, folder: Path, add_inverse_edge: bool | None) -> Ogb:
    """The files that OGB's download is unpacked to."""
    from pygsampler.datasets import _ogb_files

    facts = _KNOWN.get(name)
    raw = folder / "raw"
    if _ogb_files.is_heterogeneous(raw):
        raise TypeError(_not_homogeneous(name))
    inverse = add_inverse_edge
    if inverse is None:
        inverse = facts.inverse if facts is not None else None
    arrays, labels = _ogb_files.read(name, raw, inverse)
    made = _of_arrays(name, arrays, labels)
    if not name.startswith("ogbn"):
        return made
    split = _ogb_files.split(folder / "split", None if facts is None else facts.split)
    return made if split is None else _with_split(made, split)
