"""``BatchFeatures``: features beside what PyG's loaders look up in ``data``."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from torch_geometric.data import Data

from pygsampler._adapters.engine_batch import worker_threads
from pygsampler._arrays import devices
from pygsampler._engine.checks import describe
from pygsampler._features.features import Features
from pygsampler._features.read_many import read_many
from pygsampler.pyg.stores import FeatureStore

if TYPE_CHECKING:
    from pygsampler._graph.graph import Graph
    from pygsampler.pyg.base_sampler import Sampler

__all__ = ["BatchFeatures", "check_edge_ids", "check_features"]

# What batches of PyG's loaders, and of ours, have already.
_TAKEN = {
    "adj_t", "batch", "batch_size", "dst_neg_index", "dst_pos_index", "e_id", "edge_index",
    "edge_label", "edge_label_index", "edge_label_time", "input_id", "n_id", "num_nodes",
    "num_sampled_edges", "num_sampled_nodes", "ptr", "seed_time", "src_index",
}  # fmt: skip


class BatchFeatures:
    """The features of nodes and of edges that a loader was given.

    Those on a GPU are read there. Others are read where the sampler is: on a GPU out of page-locked
    memory.
    """

    __slots__ = ("_edges", "_nodes")

    def __init__(self, features: Any, edge_features: Any, sampler: Sampler | None) -> None:
        counts = (None, None) if sampler is None else (sampler.num_nodes, sampler.num_edges)
        self._nodes = check_features(features, "features", "nodes", counts[0])
        self._edges = check_features(edge_features, "edge_features", "edges", counts[1])
        both = sorted(self._nodes.keys() & self._edges.keys())
        if both:
            raise ValueError(f"edge_features: expected other names than features has, got {both}")
        place = -1 if sampler is None else devices.parse(sampler.device)
        for named in (self._nodes, self._edges):
            for name, each in named.items():
                if place >= 0 and each._where() < 0:
                    named[name] = each.pin(place)
        if sampler is not None:
            check_edge_ids(sampler.graph, self._edges, "edge_features[{!r}]")
            for each in self._nodes.values():
                if each._cache is not None and each._cache.wants_graph:
                    each._cache.fill(sampler.graph)

    def __bool__(self) -> bool:
        return bool(self._nodes or self._edges)

    @property
    def on_gpu(self) -> bool:
        """Whether a GPU reads any of them, which workers cannot use."""
        return any(each._where() >= 0 for each in (*self._nodes.values(), *self._edges.values()))

    def without(self, data: Any) -> Any:
        """``data`` without the attributes that these take the place of, which PyG would look up."""
        if not isinstance(data, Data):
            return data
        known = [name for name in (*self._nodes, *self._edges) if name in data]
        if not known:
            return data
        num_nodes = data.num_nodes
        data = copy.copy(data)
        for name in known:
            del data[name]
        data.num_nodes = num_nodes
        return data

    def attach(self, batch: Any, data: Any, nodes: Any, edges: Any) -> None:
        """Gives a batch of these nodes and edges its rows, and those of edges of our store.

        They are tensors, or of a graph with types dicts of them.
        """
        store: Any = data[0] if isinstance(data, (tuple, list)) else None
        stored = store.get_edge_attrs() if isinstance(store, FeatureStore) else []
        if edges is None and (self._edges or stored):
            raise ValueError(
                "edge_features: expected batches with the ids of their edges, got one without"
            )
        wanted = [(each, nodes) for each in self._nodes.values()]
        if edges is not None:
            wanted += [(each, edges) for each in self._edges.values()]
        if not wanted and not stored:
            return
        found = read_many(wanted, threads=worker_threads())
        for name, rows in zip((*self._nodes, *self._edges), found, strict=True):
            batch[name] = rows
        if isinstance(edges, Mapping):
            stored = [attr for attr in stored if attr.group_name in edges]
        for attr in stored:
            attr.index = edges[attr.group_name] if isinstance(edges, Mapping) else edges
            if attr.index is None:
                raise ValueError(
                    f"edge_features: expected batches with the ids of their edges, got one without "
                    f"those of {attr.group_name}"
                )
        if stored:
            for attr, rows in zip(stored, store.multi_get_tensor(stored), strict=True):
                of = batch[attr.group_name] if isinstance(edges, Mapping) else batch
                of[attr.attr_name] = rows


def check_features(given: Any, where: str, things: str, count: int | None) -> dict[str, Features]:
    """What a loader was given by name, with a row for each of ``count`` things."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(
            f"{where}: expected a mapping of names to arrays, as {{'x': x}}, got {describe(given)}"
        )
    named = {}
    for name, values in given.items():
        if not isinstance(name, str) or not name.isidentifier() or name.startswith("_"):
            raise ValueError(f"{where}: expected names of attributes, got {name!r}")
        if name in _TAKEN:
            raise ValueError(f"{where}: expected names that batches do not have, got {name!r}")
        try:
            named[name] = Features.from_tensor(values)
            rows = len(named[name])
        except (TypeError, ValueError) as error:
            text = str(error).removeprefix("features: ")
            raise type(error)(f"{where}[{name!r}]: {text}") from None
        if count is not None and rows < count:
            raise ValueError(
                f"{where}[{name!r}]: expected a row for each of {count} {things}, got {rows}"
            )
        if count is not None and rows > count and things.startswith("nodes"):
            # Ids of edges may lie above their number, and those of nodes may not.
            raise ValueError(
                f"{where}[{name!r}]: expected a row for each of {count} {things}, got {rows}; "
                f"data.num_nodes={rows} has as many, [:{count}] takes the first"
            )
    return named


def check_edge_ids(graph: Graph, edges: Mapping[str, Features], where: str) -> None:
    """ValueError for features on a GPU, called ``where``, without a row for each edge.

    Edges may have any ids, and on a GPU nobody would notice one without a row.
    """
    if not any(each._where() >= 0 for each in edges.values()):
        return
    ids = graph.edge_ids
    if ids is None or not len(ids):
        return
    # Not as a tensor of those of a file, which torch would copy.
    most = int((ids.torch() if ids.device != "cpu" else ids.numpy()).max())
    for name, features in edges.items():
        if len(features) <= most:
            raise ValueError(
                f"{where.format(name)}: expected a row for each edge id up to {most}, "
                f"got {len(features)}"
            )
