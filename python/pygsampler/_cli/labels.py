"""Labels of nodes: their names in files and on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pygsampler._graph.graph import Graph


class Labels:
    """The names or original ids of nodes by type; the type of all nodes is None without types.

    Nodes without either are called by their numbers, as texts where others have names.
    """

    def __init__(self, graph: Graph) -> None:

        if not graph.is_homogeneous:
            self._names: dict[Any, Any] = dict(graph.node_names)
            self._ids: dict[Any, Any] = dict(graph.node_ids)
        else:
            self._names = {None: graph.node_names} if graph.node_names is not None else {}
            self._ids = {None: graph.node_ids} if graph.node_ids is not None else {}
        self.text = bool(self._names)
        self._arrow: dict[str | None, Any] = {}
        self._numpy: dict[str | None, Any] = {}

    def names(self, kind: str | None) -> Any:
        """The names of the nodes of a type, or None."""
        return self._names.get(kind)

    def ids(self, kind: str | None) -> Any:
        """The original ids of the nodes of a type, or None."""
        return self._ids.get(kind)

    def arrow(self, kind: str | None, nodes: Any) -> Any:
        """Returns the labels of nodes of a type, an Arrow array of int64 or of texts."""
        import pyarrow as pa

        if kind not in self._arrow:
            names, ids = self._names.get(kind), self._ids.get(kind)
            known = None if ids is None else pa.array(ids)
            self._arrow[kind] = known if names is None else pa.array(names.tolist(), pa.string())
        known = self._arrow[kind]
        nodes = nodes.cast(pa.int64())
        found = nodes if known is None else known.take(nodes)
        return found.cast(pa.string()) if self.text else found

    def numpy(self, kind: str | None, nodes: Any, *, text: bool = False) -> Any:
        """Returns the labels of nodes of a type, -1 for none: int64, or with ``text`` objects."""
        import numpy as np

        ids = self._ids.get(kind)
        numbers = nodes.astype(np.int64)
        if ids is not None:
            numbers = np.where(nodes < 0, -1, ids.numpy()[nodes])
        if not (text and self.text):
            return numbers
        if kind not in self._names:
            return numbers.astype(str).astype(object)
        if kind not in self._numpy:
            self._numpy[kind] = np.array([*self._names[kind].tolist(), ""], object)
        return self._numpy[kind][nodes]
