"""Slices of a sampled batch by hop: the sources, destinations and edges that a layer needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate
from typing import Any

import torch
from torch_geometric import EdgeIndex as PyGEdgeIndex

from pygsampler._engine.checks import describe
from pygsampler._ops.segments import SUM, Segments, is_compiling, reduce
from pygsampler.pyg.edge_index import EdgeIndex, index2ptr, version

__all__ = ["BatchSlices", "LayerEdges", "mark_grouped"]

Counts = Any  # A list of numbers by hop, or a mapping of types to such lists.


def mark_grouped(edge_index: torch.Tensor) -> None:
    """Notes on edges that their destinations ascend, and hop by hop, so that nobody looks."""
    edge_index._grouped_at = version(edge_index)  # type: ignore[attr-defined]


class LoopEdges:
    """Edges in which one loop for each destination replaces all loops.

    A row begins with its loop. Entries behind the last row are padding.
    """

    def __init__(self, edges: LayerEdges) -> None:
        rows, self._targets = edges.segments, edges.destinations()
        self.num_edges, self.num_targets = edges.edges, edges.targets
        src, dst = rows.indices, self._targets
        stays = src != dst
        before = src.new_zeros(self.num_edges + 1)
        torch.cumsum(stays, 0, out=before[1:])
        # An edge has as many loops before it as rows up to its own.
        self._nodes = torch.arange(self.num_targets + 1, dtype=src.dtype, device=src.device)
        self._indptr = before[rows.indptr] + self._nodes
        # Loops that the edges have go behind all.
        last = self.num_edges + self.num_targets
        self._places = torch.where(stays, before[:-1] + (dst + 1), last)
        sources = self._spread(src, self._nodes[:-1])
        self.segments = Segments(self._indptr, sources, edges.sources)

    def _spread(self, of_edges: torch.Tensor, of_loops: torch.Tensor) -> torch.Tensor:
        """Returns values in the order of the segments."""
        found = of_edges.new_zeros(self.num_edges + self.num_targets + 1)
        found[self._places] = of_edges
        found[self._indptr[:-1]] = of_loops
        return found[:-1]

    def targets(self) -> torch.Tensor:
        """Returns the destination of each edge; some destination for padding."""
        found = self._spread(self._targets, self._nodes[:-1])
        return found.clamp(max=max(self.num_targets - 1, 0))

    def order(self) -> torch.Tensor:
        """Returns the place of each edge in the layer; row i's loop is at E + i, behind E edges."""
        last = self.num_edges + self.num_targets
        every = torch.arange(last, dtype=self._nodes.dtype, device=self._nodes.device)
        return self._spread(every[: self.num_edges], every[self.num_edges :])


class EdgeGroups:
    """The edges of one type of a batch, with their CSR over the destinations once it is used.

    ``sources`` and ``targets`` are the numbers of nodes that are known after each hop, and
    ``hops`` the numbers of edges.
    """

    def __init__(
        self,
        edge_index: torch.Tensor,
        hops: list[int],
        sources: list[int],
        targets: list[int],
        types: tuple[str | None, str | None],
    ) -> None:
        self.edge_index = edge_index
        self.hops, self.sources, self.targets, self.types = hops, sources, targets, types
        self._csr: tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor | None] | None
        self._csr = None
        self._values: dict[Any, tuple[Any, Any]] = {}

    def csr(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor | None]:
        """Returns ``(indptr, sources, destinations, order)`` of all edges, grouped.

        ``order`` has the edges' places in the batch, or is None where they are grouped there.
        """
        if self._csr is None:
            self._csr = self._group()
        return self._csr

    def _group(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor | None]:
        edges, count = self.edge_index, self.targets[-1]
        indptr = None
        if isinstance(edges, PyGEdgeIndex):
            if type(edges) is EdgeIndex and edges.sort_order == "col":
                indptr = edges._indptr
            edges = edges.as_tensor()
        src, dst = edges[0].contiguous(), edges[1].contiguous()
        order = None
        known = indptr is not None or (
            getattr(self.edge_index, "_grouped_at", None) == version(self.edge_index)
        )
        if not known:
            order = self._check(src, dst)
            if order is not None:
                src, dst = src[order], dst[order]
        if indptr is None or len(indptr) <= count:
            indptr = index2ptr(dst, count)
        return indptr[: count + 1].to(src.dtype).contiguous(), src, dst, order

    def _check(self, src: torch.Tensor, dst: torch.Tensor) -> torch.Tensor | None:
        """Returns the order that groups the edges, None if they are.

        Raises ValueError unless each node is a destination in one hop alone, the one after it is
        reached.
        """
        if not len(dst):
            return None
        hop = torch.tensor(self.hops, device=dst.device).diff()
        low = torch.tensor([0, *self.targets[:-2]], device=dst.device)
        high = torch.tensor(self.targets[:-1], device=dst.device)
        most = torch.tensor(self.sources[1:], device=dst.device)
        low, high, most = (each.repeat_interleave(hop) for each in (low, high, most))
        fits = ((dst >= low) & (dst < high) & (src < most) & (src >= 0)).all()
        # One look at the device for both.
        fit, ascends = torch.stack([fits, (dst[1:] >= dst[:-1]).all()]).tolist()
        if not fit:
            raise ValueError(
                "batch: expected edges by hop, each into a node that the hop before has reached, "
                "got others; a sampler that expands a node in several hops, or edges that were "
                "changed after sampling, need the model itself"
            )
        return None if ascends else dst.argsort(stable=True)

    def traceable(self) -> EdgeGroups:
        """Returns the same edges, grouped, of plain tensors that a compiler takes."""
        plain = self.edge_index
        if isinstance(plain, PyGEdgeIndex):
            plain = plain.as_tensor()
        made = EdgeGroups(plain, self.hops, self.sources, self.targets, self.types)
        made._csr = self.csr()
        return made

    def layer(self, depth: int) -> LayerEdges:
        """Returns the edges of the layer that takes nodes of so many hops."""
        sizes = self.sources[depth], self.targets[depth - 1], self.hops[depth]
        return LayerEdges(self, *sizes, depth=depth)

    def all_rows(self, depth: int) -> LayerEdges:
        """Returns the edges of a layer that gives a row for each node that it takes."""
        sizes = self.sources[depth], self.targets[depth], self.hops[depth]
        return LayerEdges(self, *sizes, padded=depth < len(self.hops) - 1, depth=depth)

    def cached(self, key: Any, value: Any, compute: Callable[[], Any]) -> Any:
        """Returns what ``compute`` gives, once for a key and an object ``value``.

        A compiler finds by itself what is computed twice.
        """
        if is_compiling():
            return compute()
        key = key, id(value)
        if key not in self._values:
            self._values[key] = value, compute()
        return self._values[key][1]


class LayerEdges:
    """The edges of a layer, from its first sources to its first destinations.

    Degrees are those of all edges of the batch, or with ``trimmed`` of its first hops, so many;
    with ``padded`` the last destinations have edges in the batch, but not here. ``depth`` is the
    number of hops whose nodes are sources.
    """

    def __init__(
        self,
        groups: EdgeGroups,
        sources: int,
        targets: int,
        edges: int,
        padded: bool = False,
        depth: int = 0,
    ) -> None:
        self.groups, self.padded, self.depth = groups, padded, depth
        self.trimmed: int | None = None
        self.sources, self.targets, self.edges = sources, targets, edges
        self._segments: Segments | None = None

    @property
    def one_type(self) -> bool:
        """True if destinations are the first of the sources."""
        return self.groups.types[0] == self.groups.types[1]

    @property
    def segments(self) -> Segments:
        """The CSR over the destinations."""
        if self._segments is None:
            indptr, src, _, _ = self.groups.csr()
            indptr = indptr[: self.targets + 1]
            if self.padded:
                indptr = indptr.clamp(max=self.edges)
            self._segments = Segments(indptr, src[: self.edges], self.sources)
        return self._segments

    def destinations(self) -> torch.Tensor:
        """Returns the destination of each edge of the segments."""
        return self.groups.csr()[2][: self.edges]

    def values(self, values: torch.Tensor) -> torch.Tensor:
        """Returns what edges of the batch have, for those of the segments, in their order."""
        order = self.groups.csr()[3]
        if order is None:
            return values[: self.edges]
        return values.index_select(0, order[: self.edges])

    def counted(self) -> LayerEdges:
        """Returns the edges that degrees are counted in, with a row for each node."""
        depth = len(self.groups.hops) - 1 if self.trimmed is None else self.trimmed
        return self.groups.all_rows(depth)

    def sum_of_edges(self, values: torch.Tensor) -> torch.Tensor:
        """Returns the sum over each destination's edges of values [edges, width]."""
        rows = self.segments
        places = torch.arange(self.edges, dtype=rows.indices.dtype, device=rows.indices.device)
        return reduce(Segments(rows.indptr, places, self.edges), values, SUM)

    def edge_index(self) -> torch.Tensor:
        """Returns the edges as a layer of PyG takes them, with ``(x_source, x_target)``."""
        whole = self.groups.edge_index
        if type(whole) is not EdgeIndex:
            # PyG's own class knows its size, and would have to be told the other.
            plain = whole.as_tensor() if isinstance(whole, PyGEdgeIndex) else whole
            prefix: torch.Tensor = plain[:, : self.edges]
            return prefix
        indptr = None
        if whole.sort_order == "col":
            indptr = self.segments.indptr
        return EdgeIndex._from_ordered(
            whole._data[:, : self.edges], (self.sources, self.targets), whole.sort_order, indptr
        )

    def with_loops(self) -> LoopEdges:
        """Returns the edges with a loop for each destination; on a GPU nobody waits for them."""
        return LoopEdges(self)


class BatchSlices:
    """The hops of a batch: numbers of nodes of each type, and edges of each type by hop.

    A homogeneous batch has one type of each, None.
    """

    # True if each layer has edges of its own, and no layer may give a row for more nodes.
    by_block = False

    def __init__(self, edge_index: Any, nodes: Counts, edges: Counts) -> None:
        is_hetero = isinstance(edge_index, Mapping)
        self.is_hetero = is_hetero
        if isinstance(nodes, Mapping) != is_hetero or isinstance(edges, Mapping) != is_hetero:
            shape = (
                "mappings of types to numbers by hop" if is_hetero else "lists of numbers by hop"
            )
            raise TypeError(
                f"num_sampled_nodes_per_hop, num_sampled_edges_per_hop: expected {shape}, got "
                f"{describe(nodes)} and {describe(edges)}"
            )
        by_node = nodes if is_hetero else {None: nodes}
        by_edge = edges if is_hetero else {None: edges}
        self.nodes = {kind: _sums(counts) for kind, counts in by_node.items()}
        self.hops = len(next(iter(self.nodes.values()), [0])) - 1
        self.groups: dict[Any, EdgeGroups] = {}
        for edge_type, tensor in (edge_index if is_hetero else {None: edge_index}).items():
            self.groups[edge_type] = self._groups(edge_type, tensor, by_edge)
        self._by_id = {id(each.edge_index): each for each in self.groups.values()}

    def _groups(self, kind: Any, edge_index: Any, counts: Mapping[Any, Any]) -> EdgeGroups:
        where = "edge_index" if kind is None else f"edge_index of {kind}"
        if not isinstance(edge_index, torch.Tensor) or edge_index.layout != torch.strided:
            raise TypeError(
                f"{where}: expected a tensor of shape [2, edges], got {describe(edge_index)}; "
                "give the edges as edge_index, or call the model itself"
            )
        src: str | None = None if kind is None else kind[0]
        dst: str | None = None if kind is None else kind[-1]
        hops = [0, *_sums(counts.get(kind, []))]
        if len(hops) == 1:
            hops = [0] * (self.hops + 1)
        sources, targets = self.nodes.get(src), self.nodes.get(dst)
        if sources is None or targets is None:
            raise ValueError(f"{where}: expected numbers of nodes by hop of both ends, got none")
        if len(hops) != self.hops + 1 or not len(sources) == len(targets) == self.hops + 1:
            raise ValueError(
                f"{where}: expected the nodes of one more hop than edges, got {len(sources)} hops "
                f"of nodes and {len(hops) - 1} of edges; a sampler that counts otherwise needs the "
                "model itself"
            )
        if hops[-1] != edge_index.shape[1]:
            raise ValueError(
                f"{where}: expected the {hops[-1]} edges that num_sampled_edges counts, got "
                f"{edge_index.shape[1]}; edges that were added or removed after sampling need the "
                "model itself"
            )
        return EdgeGroups(edge_index, hops, sources, targets, (src, dst))

    def find(self, edge_index: Any) -> EdgeGroups | None:
        """Returns the edges that this very tensor holds, or an alias of it, as hooks make them."""
        found = self._by_id.get(id(edge_index))
        if found is None and type(edge_index) is torch.Tensor and edge_index.numel():
            for groups in self.groups.values():
                known = groups.edge_index
                if type(known) is torch.Tensor and _place(known) == _place(edge_index):
                    return groups
        return found

    def check_rows(self, x: Any) -> None:
        """Raises ValueError unless features have a row for each node."""
        for kind, each in (x if self.is_hetero else {None: x}).items():
            nodes = self.nodes.get(kind)
            if nodes is None or not isinstance(each, torch.Tensor) or len(each) != nodes[-1]:
                found = tuple(each.shape) if isinstance(each, torch.Tensor) else describe(each)
                where = "x" if kind is None else f"x of {kind!r}"
                count = "no" if nodes is None else nodes[-1]
                raise ValueError(f"{where}: expected rows of {count} nodes, got {found}")

    @classmethod
    def from_batch(cls, batch: Any, edge_index: Any) -> BatchSlices:
        """Returns the hops of a batch of a ``NeighborLoader``."""
        hetero = isinstance(edge_index, Mapping)
        found = []
        for name, stores in (("num_sampled_nodes", "node"), ("num_sampled_edges", "edge")):
            try:
                # A HeteroData returns a mapping by node type here.
                value = getattr(batch, f"{name}_dict" if hetero else name)
            except (AttributeError, KeyError):
                value = None
            if not value:
                raise ValueError(
                    f"batch: expected {name}, the numbers of {stores}s of each hop, got a batch "
                    'without; NeighborLoader with subgraph_type="directional" has them, and other '
                    "batches need the model itself: model(batch.x, batch.edge_index)"
                )
            found.append(value)
        return cls(edge_index, *found)

    def layers(self) -> Iterator[tuple[Any, Any, Any]]:
        """Yields the sources, destinations and edges of each layer, outermost first."""
        for depth in range(self.hops, 0, -1):
            for groups in self.groups.values():
                groups.csr()
            edges = {kind: each.layer(depth) for kind, each in self.groups.items()}
            cut = {kind: each.edge_index() for kind, each in edges.items()}
            sources = {kind: counts[depth] for kind, counts in self.nodes.items()}
            targets = {kind: counts[depth - 1] for kind, counts in self.nodes.items()}
            if self.is_hetero:
                yield sources, targets, cut
            else:
                yield sources[None], targets[None], cut[None]


def _place(x: torch.Tensor) -> tuple[Any, ...]:
    return x.data_ptr(), x.shape, x.stride(), x.dtype, x.device


def _sums(counts: Any) -> list[int]:
    return list(accumulate(map(int, counts)))
