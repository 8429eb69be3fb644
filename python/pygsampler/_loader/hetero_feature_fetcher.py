"""``HeteroFeatureFetcher``: reads the rows of each batch of a heterogeneous graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from pygsampler._arrays.tensor_frames import FrameRows, is_tensor_frame
from pygsampler._batch.block import Block
from pygsampler._batch.minibatch import MiniBatch
from pygsampler._engine.checks import describe
from pygsampler._features.remote import RemoteFeatures
from pygsampler._graph.schema import by_name, check_by_type
from pygsampler._loader.feature_fetcher import (
    LABELS,
    FeatureFetcher,
    check_name,
    check_names,
    checked,
    in_reach,
    place_features,
)

if TYPE_CHECKING:
    import torch

    from pygsampler._features.features import Features
    from pygsampler._graph.graph import Graph

__all__ = ["HeteroFeatureFetcher"]

# The name of an attribute, the type, and what its rows are of.
_Of = list[tuple[str, Any, Any]]


class HeteroFeatureFetcher(FeatureFetcher):
    """The features, labels and edge features of a loader, by name and type."""

    __slots__ = ("_of_edges", "_of_labels", "_of_nodes")

    def __init__(self, graph: Graph, features: Any, labels: Any, edge_features: Any) -> None:
        self._device, self._frames = graph._device, {}
        self._caches = []
        self.step_times = None
        nodes = graph.num_nodes
        edges = {kind: of._row_counts()[0].number for kind, of in graph._relations().items()}
        check_names(by_name(features, nodes) if isinstance(features, Mapping) else None, labels)
        taken = None if labels is None else {LABELS: labels}
        batch, block = MiniBatch, Block
        self._of_nodes = list(self._features_by_type(features, "features", nodes, "nodes", batch))
        self._of_labels = list(self._features_by_type(taken, "labels", nodes, "nodes", batch))
        self._of_edges = list(
            self._features_by_type(edge_features, "edge_features", edges, "edges", block)
        )

    def __bool__(self) -> bool:
        return bool(self._of_nodes or self._of_labels or self._of_edges)

    def tables(self) -> Iterator[tuple[str, Any]]:
        """All that are read; those called x of type paper are ``x['paper']``."""
        for name, kind, features in (*self._of_nodes, *self._of_labels, *self._of_edges):
            yield f"{name}[{kind!r}]", features

    def label_tables(self) -> Iterator[tuple[str, Features]]:
        """Yields by node type its labels that are in reach."""
        return in_reach((kind, labels) for _, kind, labels in self._of_labels)

    def node_tables(self, kind: str) -> Iterator[tuple[str, Features]]:
        """Yields the features of the nodes of a type, by their names, that are in reach."""
        return in_reach(
            (f"features[{name!r}][{kind!r}]", each)
            for name, of, each in self._of_nodes
            if of == kind
        )

    def _wanted(self, batch: Any) -> Iterator[tuple[Any, str, Any, torch.Tensor]]:
        frames = {
            (name, kind): FrameRows(frame, partial(batch._attach, name, node_type=kind))
            for (name, kind), frame in self._frames.items()
        }
        # Visits along a metapath are of one type alone.
        for tables, ids in (
            (self._of_nodes, batch.input_nodes),
            (self._of_labels, batch.output_nodes),
        ):
            for name, kind, features in tables:
                if kind in ids:
                    of_frame = frames.get((name.rpartition(".")[0], kind)) if frames else None
                    attach: Any = partial(batch._attach, node_type=kind)
                    if of_frame is not None:
                        attach = of_frame.add
                    yield attach, name, features, ids[kind]
        for name, kind, features in self._of_edges:
            for hop in batch.blocks:
                yield hop[kind]._attach, name, features, hop[kind].edge_ids

    def _features_by_type(
        self, value_by_name: Any, where: str, counts: Mapping[Any, int], row_noun: str, owner: type
    ) -> Iterator[tuple[str, Any, Any]]:
        if value_by_name is None:
            return
        _mapping(
            value_by_name, where, "names to mappings of types to arrays, as {'x': {'paper': x}}"
        )
        labels = where == "labels"
        for name, of_types in (
            value_by_name.items() if labels else by_name(value_by_name, counts).items()
        ):
            if not labels:
                check_name(name, where, owner)
            called = where if labels else f"{where}[{name!r}]"
            _mapping(of_types, called, "types to arrays")
            for kind, value in check_by_type(of_types, called, counts).items():
                here = f"{called}[{kind!r}]"
                if isinstance(value, RemoteFeatures):
                    about = here, counts[kind], f"{row_noun} of that type"
                    yield name, kind, self._checked_remote(value, *about)
                    continue
                if is_tensor_frame(value) and where == "features":
                    for part, values in self._tables((name, kind), value, here).items():
                        inside = f"{where}[{part!r}][{kind!r}]"
                        features = checked(values, inside, counts[kind], f"{row_noun} of that type")
                        yield part, kind, place_features(features, inside, self._device, False)
                    continue
                features = checked(value, here, counts[kind], f"{row_noun} of that type")
                if features._cache is not None:
                    raise ValueError(
                        f"{here}: expected features without a cache for a heterogeneous graph, got "
                        f"one of policy {features._cache.policy!r}"
                    )
                yield name, kind, place_features(features, here, self._device, labels)


def _mapping(value: Any, where: str, expected: str) -> None:
    if not isinstance(value, Mapping):
        raise TypeError(f"{where}: expected a mapping of {expected}, got {describe(value)}")
