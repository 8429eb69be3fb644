"""``Subgraph``: some nodes of the graph, and edges among them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pygsampler._batch.exports import SubgraphExports
from pygsampler._batch.minibatch import MiniBatch

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch

__all__ = ["Subgraph"]


def __dir__() -> list[str]:
    return sorted(__all__)


class RootedSubgraph(NamedTuple):
    """A subgraph as a CSC, with a node for each seed in front."""

    nodes: torch.Tensor
    indptr: torch.Tensor
    indices: torch.Tensor
    edge_ids: torch.Tensor
    edge_weights: torch.Tensor | None
    edge_values: Mapping[str, torch.Tensor]
    # The former places of the nodes; None if they have not moved.
    old: torch.Tensor | None


class Subgraph(SubgraphExports, MiniBatch):
    """Nodes of the graph, and edges among them in local ids: the result of ``A.induce(V)``.

    It is a batch of one block, from all of its nodes to all of them, and has the names of a batch
    too. A loader's ``features`` are the rows of ``nodes``.
    """

    __slots__ = ()

    @property
    def nodes(self) -> Any:
        """Original ids of the nodes, distinct: shape [V], in the graph's id dtype."""
        return self.input_nodes

    @property
    def num_nodes(self) -> int:
        """The number of nodes."""
        count: int = self.blocks[0].num_dst_nodes
        return count

    @property
    def root_index(self) -> Any:
        """The place of each seed in ``nodes``, -1 for a seed that is not there: shape [N]."""
        return self.output_index

    @property
    def indptr(self) -> Any:
        """The first in-edge of each node: shape [V + 1], in the graph's id dtype."""
        return self.blocks[0].indptr

    @property
    def indices(self) -> Any:
        """The source of each edge, a place in ``nodes``: shape [E], in the graph's id dtype."""
        return self.blocks[0].indices

    @property
    def edge_ids(self) -> Any:
        """Original id of each edge: shape [E]."""
        return self.blocks[0].edge_ids

    @property
    def edge_data(self) -> Mapping[str, Any]:
        """Values of the edges, float32, shape [E]: ``"w"``, and those of other names."""
        data: Mapping[str, Any] = self.blocks[0].edge_data
        return data

    @property
    def edge_index(self) -> Any:
        """The edges as PyG takes them: int64, shape [2, E], row 0 the sources."""
        return self.blocks[0].edge_index

    def coo(self) -> tuple[Any, Any]:
        """The edges as (source, destination), places in ``nodes``: each of shape [E]."""
        edges: tuple[Any, Any] = self.blocks[0].coo()
        return edges

    def _rooted(self, rooted: bool) -> RootedSubgraph:
        """Returns the subgraph, with a node for each seed in front if it is ``rooted``.

        A seed that occurs twice has two nodes: each has the edges into it, and the edges out of it
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
                f"V = seeds.unique() | ..., got one without node {int(missing[0])}"
            )
        others = torch.ones(len(nodes), dtype=torch.bool, device=nodes.device)
        others[roots] = False
        # `old` is the former place of each new node, `new` the first new place of each former node.
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

    def __repr__(self) -> str:
        numbers = f"epoch={self.epoch}, batch={self.batch}{self._where()}"
        return f"{type(self).__name__}(nodes={self.num_nodes}, edges={self.num_edges}, {numbers})"
