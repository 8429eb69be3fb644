"""``HeteroBatchFeatures``: features beside what PyG's loaders look up in data with types."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from torch_geometric.data import HeteroData

from pygsampler._adapters.engine_batch import worker_threads
from pygsampler._arrays import devices
from pygsampler._engine.checks import describe
from pygsampler._features.features import Features
from pygsampler._features.read_many import read_many
from pygsampler._graph.schema import by_name, check_by_type
from pygsampler.pyg.batch_features import BatchFeatures, check_edge_ids, check_features

if TYPE_CHECKING:
    from pygsampler.pyg.base_sampler import Sampler

__all__ = ["HeteroBatchFeatures"]


class _FeatureColumn(NamedTuple):
    """Features that batches have by this name in the store of this type."""

    name: str
    kind: Any
    features: Features


class HeteroBatchFeatures(BatchFeatures):
    """``BatchFeatures`` by name and type: ``{"x": {"paper": x}}``, of edges ``{"w": {cites: w}}``.

    They are read where those of ``BatchFeatures`` are.
    """

    __slots__ = ("_of_edges", "_of_nodes")

    def __init__(self, features: Any, edge_features: Any, sampler: Sampler | None) -> None:
        super().__init__(None, None, None)
        counts: Any = (None, None) if sampler is None else (sampler.num_nodes, sampler.num_edges)
        self._of_nodes = list(_by_type(features, "features", "nodes", counts[0]))
        self._of_edges = list(_by_type(edge_features, "edge_features", "edges", counts[1]))
        place = -1 if sampler is None else devices.parse(sampler.device)
        for of in (self._of_nodes, self._of_edges):
            for i, each in enumerate(of):
                if place >= 0 and each.features._where() < 0:
                    of[i] = each._replace(features=each.features.pin(place))
        graph: Any = None if sampler is None else sampler.graph
        for name, kind, features in self._of_edges if graph is not None else []:
            # Backward the relations that are sampled are those of the reversed edges.
            sampled = kind if kind in graph.edge_types else kind[::-1]
            check_edge_ids(graph[sampled], {name: features}, f"edge_features[{name!r}][{kind!r}]")

    def __bool__(self) -> bool:
        return bool(self._of_nodes or self._of_edges)

    @property
    def on_gpu(self) -> bool:
        """Whether a GPU reads any of them, which workers cannot use."""
        return any(each.features._where() >= 0 for each in (*self._of_nodes, *self._of_edges))

    def without(self, data: Any) -> Any:
        """``data`` without the attributes that these take the place of, which PyG would look up."""
        if not isinstance(data, HeteroData):
            return data
        known = [
            each for each in (*self._of_nodes, *self._of_edges) if each.name in data[each.kind]
        ]
        if not known:
            return data
        counts = {kind: data[kind].num_nodes for kind in data.node_types}
        data = copy.copy(data)
        for name, kind, _ in known:
            del data[kind][name]
        for kind in {each.kind for each in known if isinstance(each.kind, str)}:
            data[kind].num_nodes = counts[kind]
        return data

    def attach(self, batch: Any, data: Any, nodes: Any, edges: Any) -> None:
        """As ``BatchFeatures.put``."""
        super().attach(batch, data, nodes, edges)
        for each in self._of_edges:
            if edges is None or edges[each.kind] is None:
                raise ValueError(
                    "edge_features: expected batches with the ids of their edges, got one without "
                    f"those of {each.kind}"
                )
        wanted = [(each.features, nodes[each.kind]) for each in self._of_nodes]
        wanted += [(each.features, edges[each.kind]) for each in self._of_edges]
        if not wanted:
            return
        found = read_many(wanted, threads=worker_threads())
        for each, rows in zip((*self._of_nodes, *self._of_edges), found, strict=True):
            batch[each.kind][each.name] = rows


def _by_type(given: Any, where: str, things: str, counts: Any) -> Iterator[_FeatureColumn]:
    if given is None:
        return
    kinds = "{'x': {'paper': x}}" if things == "nodes" else "{'w': {('a', 'to', 'b'): w}}"
    if not isinstance(given, Mapping):
        raise TypeError(
            f"{where}: expected a mapping of names to mappings of types to arrays, as {kinds}, "
            f"got {describe(given)}"
        )
    for name, of_types in (given if counts is None else by_name(given, counts)).items():
        if not isinstance(of_types, Mapping):
            raise TypeError(
                f"{where}[{name!r}]: expected a mapping of types to arrays for data with types, as "
                f"{kinds}, got {describe(of_types)}"
            )
        if counts is not None:
            of_types = check_by_type(of_types, f"{where}[{name!r}]", counts, "data")
        for kind, values in of_types.items():
            count = None if counts is None else counts[kind]
            features = check_features({name: values}, where, f"{things} of {kind!r}", count)[name]
            if features._cache is not None:
                raise ValueError(
                    f"{where}[{name!r}][{kind!r}]: expected features without a cache for data with "
                    f"types, got one of policy {features._cache.policy!r}"
                )
            yield _FeatureColumn(name, kind, features)
