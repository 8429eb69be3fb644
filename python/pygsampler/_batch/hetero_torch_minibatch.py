"""``HeteroTorchMiniBatch``: mini-batches of graphs with types in torch's tensors."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pygsampler._batch.attached_features import HasFeatures
from pygsampler._batch.exports import HeteroExports
from pygsampler._batch.html_tables import types_html
from pygsampler._batch.torch_block import TorchBlock
from pygsampler._engine.checks import describe
from pygsampler._graph.schema import ByEdgeType, ByNodeType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import torch

    from pygsampler._arrays.array import Array
    from pygsampler._batch.block import Block
    from pygsampler._features.features import Features
    from pygsampler._graph.hetero_graph import EdgeType
    from pygsampler._graph.schema import EdgeTypeMapping

    Tensors = Mapping[str, torch.Tensor]

__all__ = ["HeteroTorchBlock", "HeteroTorchMiniBatch"]


def __dir__() -> list[str]:
    return sorted(__all__)


class HeteroTorchBlock(TorchBlock):
    """The sampled edges of one type, in torch's tensors: see ``TorchBlock``.

    ``indices`` count among the sources' type, and destination i is vertex ``dst_offset + i`` of the
    destinations' type. ``sum``, ``mean``, ``max``, ``weighted_sum``, ``softmax`` and ``attend``
    take rows of the sources, and give rows of the destinations.
    """

    @property
    def edge_type(self) -> EdgeType:
        """(source type, relation, destination type)."""
        kind: EdgeType = self.__dict__["_kind"]
        return kind

    def self_and_reduce(
        self,
        x: Any,
        reduce: str = "mean",
        *,
        of: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """As ``TorchBlock.self_and_reduce``; x may be ``(x_src, x_dst)`` (between types: must).

        ``x_dst`` has a row for each vertex of the destinations' type, at least up to the last
        destination.
        """
        if isinstance(x, (tuple, list)):
            if len(x) != 2:
                raise ValueError(f"x: expected (x_src, x_dst), got {len(x)} of them")
            from pygsampler._ops.self_rows import take_rows

            src, dst = x
            return take_rows(dst, self._own_places()), self._reduced_by(src, reduce, of)
        src_type, _, dst_type = self.edge_type
        if src_type != dst_type:
            raise TypeError(
                f"x: expected (x_src, x_dst) for edges from {src_type!r} to {dst_type!r}, got "
                f"{describe(x)}"
            )
        return super().self_and_reduce(x, reduce, of=of)

    def _reduced_by(
        self, x: torch.Tensor | Features, reduce: str, of: torch.Tensor | None
    ) -> torch.Tensor:
        if reduce not in ("sum", "mean", "max"):
            raise ValueError(f"reduce: expected 'sum', 'mean' or 'max', got {describe(reduce)}")
        made: torch.Tensor = getattr(self, reduce)(x, of=of)
        return made

    def _moved(self, move: Any, nodes: Tensors) -> HeteroTorchBlock:
        """On another device, where its batch's vertices are ``input_nodes``."""
        src, _, dst = self.edge_type
        first = self.dst_offset
        weights = self.edge_weights
        made = type(self)(
            move(self.indptr),
            move(self.indices),
            move(self.edge_ids),
            nodes[src][: self.num_src_nodes],
            nodes[dst][first : first + self.num_dst_nodes],
            first,
            None if weights is None else move(weights),
            {name: move(values) for name, values in self.edge_values.items()},
        )
        made.__dict__["_kind"] = self.edge_type
        for name, rows in self.features.items():
            made._attach(name, move(rows))
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        kind, arrays, features = super().__reduce__()
        return _block, (kind, self.edge_type, arrays), features


class HeteroTorchMiniBatch(HasFeatures, HeteroExports):
    """A mini-batch of a heterogeneous graph as torch tensors; ``HeteroMiniBatch.torch`` returns it.

    Names and shapes are those of ``HeteroMiniBatch``. A loader that was given ``features`` puts,
    under each name, a mapping of node types to rows of ``input_nodes``, as attributes and in
    ``features``, and the ``labels`` of ``output_nodes`` as ``y``.
    """

    input_nodes: Tensors
    """Original ids of the vertices of each type; the seeds are first."""
    output_nodes: Tensors
    """The seeds of each type as they were given, duplicates kept."""
    output_index: Tensors
    """For each seed of a type its place among ``input_nodes`` of that type."""
    subgraph_ids: Tensors | None
    """For each of ``input_nodes`` which seed's tree it is in; None without ``disjoint=True``."""
    blocks: tuple[EdgeTypeMapping[HeteroTorchBlock], ...]
    """Of each hop, the outermost first, a mapping of all edge types to blocks."""
    num_sampled_nodes: Mapping[str, list[int]]
    """Of each type the distinct seeds, and how many vertices each hop found."""
    num_sampled_edges: Mapping[EdgeType, list[int]]
    """Of each type how many edges each hop has, that of the seeds first."""
    num_edges: int
    """Number of sampled edges of all blocks."""
    epoch: int
    batch: int

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __init__(self, **parts: Any) -> None:
        self.__dict__.update(parts)

    @classmethod
    def _of(cls, batch: Any) -> HeteroTorchMiniBatch:
        nodes = ByNodeType((kind, ids.torch()) for kind, ids in batch.input_nodes.items())
        views = _HeteroSource(batch, nodes)
        flat = iter(range(len(views.flat)))
        blocks = tuple(
            ByEdgeType((kind, _viewed(views, next(flat), kind)) for kind in hop).read_only()
            for hop in batch.blocks
        )
        subgraph_ids = batch.subgraph_ids
        return cls(
            input_nodes=MappingProxyType(nodes),
            output_nodes=_tensors(batch.output_nodes),
            output_index=_tensors(batch.output_index),
            subgraph_ids=None if subgraph_ids is None else _tensors(subgraph_ids),
            blocks=blocks,
            num_sampled_nodes=batch.num_sampled_nodes,
            num_sampled_edges=batch.num_sampled_edges,
            num_edges=batch.num_edges,
            epoch=batch.epoch,
            batch=batch.batch,
        )

    @property
    def features(self) -> Mapping[str, Any]:
        """Those that a loader was asked for, by name and type; each is an attribute too."""
        return super().features

    @property
    def edge_index_dict(self) -> dict[EdgeType, torch.Tensor]:
        """The edges of all hops by type, as PyG's models take them: int64, shape [2, E], row 0 the
        sources, in local ids; those of the seeds' hop first.

        With ``frontier="new"`` an edge is there once, as in a batch of PyG's; with ``"all"``
        vertices are expanded again in each hop, and such models take ``blocks`` one by one.
        """
        import torch

        return {
            kind: torch.cat([hop[kind].edge_index for hop in reversed(self.blocks)], dim=1)
            for kind in self.blocks[0]
        }

    def to(
        self, device: torch.device | str | int, non_blocking: bool = False
    ) -> HeteroTorchMiniBatch:
        """The batch on another device; tensors that are there already are shared."""
        return self._map(lambda tensor: tensor.to(device, non_blocking=non_blocking))

    def pin_memory(self) -> HeteroTorchMiniBatch:
        """The batch in page-locked memory, as torch's DataLoader asks for it."""
        return self._map(lambda tensor: tensor.pin_memory())

    def _map(self, move: Any) -> HeteroTorchMiniBatch:
        known = {name: value for name, value in self.__dict__.items() if name not in self.features}
        known.pop("_features", None)
        nodes = _mapped(move, self.input_nodes)
        known |= {
            "input_nodes": nodes,
            "output_nodes": _mapped(move, self.output_nodes),
            "output_index": _mapped(move, self.output_index),
            "subgraph_ids": None if self.subgraph_ids is None else _mapped(move, self.subgraph_ids),
            "blocks": tuple(
                ByEdgeType(
                    (kind, block._moved(move, nodes)) for kind, block in hop.items()
                ).read_only()
                for hop in self.blocks
            ),
        }
        made = type(self)(**known)
        for name, of_types in self.features.items():
            made._attach(name, {kind: move(rows) for kind, rows in of_types.items()})
        return made

    def _of_type(self, kind: str) -> NodeTypeView:
        return NodeTypeView(self, kind)

    def __repr__(self) -> str:
        nodes = ", ".join(f"{kind}={len(ids)}" for kind, ids in self.input_nodes.items())
        return (
            f"{type(self).__name__}({nodes}, hops={len(self.blocks)}, edges={self.num_edges}, "
            f"epoch={self.epoch}, batch={self.batch})"
        )

    def _repr_html_(self) -> str:
        return types_html(repr(self), self.blocks)

    def __reduce__(self) -> tuple[Any, ...]:
        plain = {
            name: dict(value) if isinstance(value, MappingProxyType) else value
            for name, value in self.__dict__.items()
            if name not in self.features and name != "_features"
        }
        plain["blocks"] = [dict(hop) for hop in self.blocks]
        return _batch, (type(self), plain), dict(self.features)


class NodeTypeView:
    """A batch, for who gives it rows of the vertices of one type."""

    __slots__ = ("_batch", "_kind")

    def __init__(self, batch: HasFeatures, kind: str) -> None:
        self._batch = batch
        self._kind = kind

    def _attach(self, name: str, rows: torch.Tensor) -> None:
        batch = self._batch
        if name not in batch.features:
            batch._attach(name, {})
        of_types: Any = batch.features[name]
        of_types[self._kind] = rows


class _HeteroSource:
    """The arrays of the blocks of all hops and types, on the batch's memory."""

    __slots__ = ("_nodes", "flat", "kinds")

    def __init__(self, batch: Any, nodes: dict[str, torch.Tensor]) -> None:
        self.flat: list[Block] = []
        self.kinds: list[EdgeType] = []
        for hop in batch.blocks:
            self.flat += hop.values()
            self.kinds += hop
        self._nodes = nodes

    def of_block(self, place: int, name: str) -> Mapping[str, torch.Tensor | None]:
        block, (src, _, dst) = self.flat[place], self.kinds[place]
        if name == "src_nodes":
            return {name: self._nodes[src][: block.num_src_nodes]}
        if name == "dst_nodes":
            first = block.dst_offset
            return {name: self._nodes[dst][first : first + block.num_dst_nodes]}
        values: Array | None = getattr(block, name)
        return {name: None if values is None else values.torch()}

    def counts(self, place: int) -> tuple[int, int, int]:
        block = self.flat[place]
        return block.num_src_nodes, block.num_dst_nodes, block.num_edges

    def dst_offset(self, place: int) -> int:
        return self.flat[place].dst_offset

    def destinations(self, place: int) -> None:
        return None

    def edge_index(self, place: int) -> None:
        return None


def _viewed(views: _HeteroSource, place: int, kind: EdgeType) -> HeteroTorchBlock:
    block = HeteroTorchBlock._of(views, place)
    assert isinstance(block, HeteroTorchBlock)
    block.__dict__["_kind"] = kind
    return block


def _tensors(arrays: Mapping[str, Array]) -> Tensors:
    return MappingProxyType(ByNodeType((kind, values.torch()) for kind, values in arrays.items()))


def _mapped(move: Any, tensors: Tensors) -> Tensors:
    return MappingProxyType(ByNodeType((kind, move(values)) for kind, values in tensors.items()))


def _block(kind: type, edge_type: EdgeType, arrays: Sequence[Any]) -> Any:
    made = kind(*arrays)
    made.__dict__["_kind"] = edge_type
    return made


def _batch(kind: type, parts: dict[str, Any]) -> Any:
    for name in ("input_nodes", "output_nodes", "output_index", "subgraph_ids"):
        if parts[name] is not None:
            parts[name] = MappingProxyType(ByNodeType(parts[name]))
    parts["blocks"] = tuple(ByEdgeType(hop).read_only() for hop in parts["blocks"])
    return kind(**parts)
