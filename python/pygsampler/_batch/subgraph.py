"""``Subgraph``: some vertices of the graph, and edges among them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from pygsampler._arrays.array import Array
from pygsampler._batch.exports import SubgraphExports
from pygsampler._batch.minibatch import MiniBatch
from pygsampler._batch.torch_minibatch import ArrowMiniBatch, NumpyMiniBatch, TorchMiniBatch

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch

__all__ = ["ArrowSubgraph", "NumpySubgraph", "Subgraph", "TorchSubgraph"]


def __dir__() -> list[str]:
    return sorted(__all__)


ArrayT = TypeVar("ArrayT")


class _SubgraphFields(Generic[ArrayT]):
    """A batch of one block, from all of its vertices to all of them, by the names of a graph."""

    __slots__ = ()

    if TYPE_CHECKING:
        blocks: Any
        input_nodes: Any
        output_index: Any

    @property
    def nodes(self) -> ArrayT:
        """Original ids of the vertices, distinct: shape [V], in the graph's id dtype."""
        found: ArrayT = self.input_nodes
        return found

    @property
    def num_nodes(self) -> int:
        """How many vertices there are."""
        count: int = self.blocks[0].num_dst_nodes
        return count

    @property
    def root_index(self) -> ArrayT:
        """For each seed its place in ``nodes``, -1 for one that is not there: shape [N]."""
        found: ArrayT = self.output_index
        return found

    @property
    def indptr(self) -> ArrayT:
        """Where the in-edges of each vertex begin: shape [V + 1], in the graph's id dtype."""
        found: ArrayT = self.blocks[0].indptr
        return found

    @property
    def indices(self) -> ArrayT:
        """The source of each edge, a place in ``nodes``: shape [E], in the graph's id dtype."""
        found: ArrayT = self.blocks[0].indices
        return found

    @property
    def edge_ids(self) -> ArrayT:
        """Original id of each edge: shape [E]."""
        found: ArrayT = self.blocks[0].edge_ids
        return found

    @property
    def edge_data(self) -> Mapping[str, ArrayT]:
        """Values of the edges, float32, shape [E]: ``"w"``, and those of other names."""
        found: Mapping[str, ArrayT] = self.blocks[0].edge_data
        return found

    def coo(self) -> tuple[ArrayT, ArrayT]:
        """The edges as (source, destination), places in ``nodes``: each of shape [E]."""
        found: tuple[ArrayT, ArrayT] = self.blocks[0].coo()
        return found

    def __repr__(self) -> str:
        edges = self.blocks[0].num_edges
        return f"{type(self).__name__}(nodes={self.num_nodes}, edges={edges})"


class RootedSubgraph(NamedTuple):
    """A subgraph as a CSC, with a vertex for each seed in front."""

    nodes: torch.Tensor
    indptr: torch.Tensor
    indices: torch.Tensor
    edge_ids: torch.Tensor
    edge_weights: torch.Tensor | None
    edge_values: Mapping[str, torch.Tensor]
    # Where the vertices were before; None: where they are.
    old: torch.Tensor | None


class TorchSubgraph(SubgraphExports, _SubgraphFields["torch.Tensor"], TorchMiniBatch):
    """A subgraph of torch tensors. A loader's ``features`` are those of ``nodes``."""

    @property
    def edge_index(self) -> torch.Tensor:
        """The edges as PyG takes them: int64, shape [2, E], row 0 the sources."""
        found: torch.Tensor = self.blocks[0].edge_index
        return found

    def _rooted(self, rooted: bool) -> RootedSubgraph:
        """As it is, or, where it is rooted, with a vertex for each seed in front, then the others.

        A seed that is given twice has two vertices: each has the edges into it, and those out of it
        come from the first. ValueError for a seed that is not there.
        """
        import torch

        from pygsampler._batch.repeated_seeds import select_rows

        nodes, indptr, indices = self.nodes, self.indptr, self.indices
        edge_ids, values = self.edge_ids, self.blocks[0].edge_weights
        named = self.blocks[0].edge_values
        if not rooted:
            return RootedSubgraph(nodes, indptr, indices, edge_ids, values, named, None)
        roots = self.root_index.long()
        missing = self.output_nodes[roots < 0]
        if len(missing):
            raise ValueError(
                f"sampler: expected a program whose subgraphs have all of their seeds, as with "
                f"V = seeds.unique() | ..., got one without vertex {int(missing[0])}"
            )
        others = torch.ones(len(nodes), dtype=torch.bool, device=nodes.device)
        others[roots] = False
        # Which vertex each of the new ones is, and the first of the new ones that each is now.
        old = torch.cat([roots, others.nonzero().squeeze(1)])
        count = torch.arange(len(old), device=nodes.device)
        new = torch.zeros(len(nodes), dtype=torch.int64, device=nodes.device)
        new.scatter_reduce_(0, old, count, "amin", include_self=False)
        indptr, places = select_rows(indptr, old)
        return RootedSubgraph(
            nodes[old],
            indptr,
            new[indices.long()[places]].to(indices.dtype),
            edge_ids[places],
            None if values is None else values[places],
            {name: array[places] for name, array in named.items()},
            old,
        )


class NumpySubgraph(_SubgraphFields[Any], NumpyMiniBatch):
    """A subgraph of NumPy arrays."""


class ArrowSubgraph(_SubgraphFields[Any], ArrowMiniBatch):
    """A subgraph of ``pyarrow.Array``."""


class Subgraph(SubgraphExports, _SubgraphFields[Array], MiniBatch):
    """Vertices of the graph, and edges among them in local ids: what ``A.induce(V)`` gives.

    It is a batch of one block, from all of its vertices to all of them, and has what that has
    beside the names here.
    """

    __slots__ = ()

    _torch = TorchSubgraph
    _numpy = NumpySubgraph
    _arrow = ArrowSubgraph

    def __repr__(self) -> str:
        numbers = f"epoch={self.epoch}, batch={self.batch}"
        return f"Subgraph(nodes={self.num_nodes}, edges={self.num_edges}, {numbers}{self._where()})"
