"""``Subgraph``: some vertices of the graph, and edges among them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygsampler.array import Array
from pygsampler.minibatch import MiniBatch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pygsampler.block import Block


class Subgraph(MiniBatch):
    """Vertices of the graph, and edges among them in local ids: what ``A.induce(V)`` gives.

    It is a batch of one block, from all of its vertices to all of them, and has what that has
    beside the names here: ``torch()``, ``numpy()`` and ``arrow()`` give such a batch.
    """

    __slots__ = ()

    @property
    def block(self) -> Block:
        """The edges: sources and destinations are ``nodes``, in their order."""
        return self.blocks[0]

    @property
    def nodes(self) -> Array:
        """Original ids of the vertices, distinct: shape [V], in the graph's id dtype."""
        return self.input_nodes

    @property
    def num_nodes(self) -> int:
        """How many vertices there are."""
        return len(self.nodes)

    @property
    def root_index(self) -> Array:
        """For each seed its place in ``nodes``, -1 for one that is not there: shape [N]."""
        return self.output_index

    @property
    def indptr(self) -> Array:
        """Where the in-edges of each vertex begin: shape [V + 1], in the graph's id dtype."""
        return self.block.indptr

    @property
    def indices(self) -> Array:
        """The source of each edge, a place in ``nodes``: shape [E], in the graph's id dtype."""
        return self.block.indices

    @property
    def edge_ids(self) -> Array:
        """Original id of each edge: shape [E]."""
        return self.block.edge_ids

    @property
    def edge_data(self) -> Mapping[str, Array]:
        """Values of the edges: ``"w"``, float32, shape [E]."""
        return self.block.edge_data

    def coo(self) -> tuple[Array, Array]:
        """The edges as (source, destination), places in ``nodes``: each of shape [E]."""
        return self.block.coo()

    def __repr__(self) -> str:
        numbers = f"epoch={self.epoch}, batch={self.batch}"
        return f"Subgraph(nodes={self.num_nodes}, edges={self.num_edges}, {numbers}{self._where()})"

    def _repr_html_(self) -> Any:
        return super()._repr_html_().replace("MiniBatch", "Subgraph", 1)
