"""``BidirectionalNeighborSampler``: neighbors along edges and against them."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch_geometric.sampler import NumNeighbors, SamplerOutput
from torch_geometric.sampler.base import SubgraphType

from pygsampler._adapters.batch_number import batch_number_of_ids
from pygsampler._engine.checks import describe
from pygsampler.pyg.hetero_stores import is_hetero
from pygsampler.pyg.neighbor_sampler import NeighborSampler, PGSampler

__all__ = ["BidirectionalNeighborSampler"]


class BidirectionalNeighborSampler(NeighborSampler):
    """Samples in-neighbors and out-neighbors of each node, hop by hop, in a homogeneous graph.

    It replaces ``torch_geometric.sampler.BidirectionalNeighborSampler``. In each hop the nodes that
    the hop before was the first to reach draw ``num_neighbors[hop]`` in-neighbors, and then as many
    out-neighbors. Nodes and edges are in the order in which they are first reached, each once, also
    with ``replace=True``.

    Parameters
    ----------
    data, num_neighbors, subgraph_type, replace, disjoint, weight_attr, share_memory, seed, device
        As for ``PGSampler``; not ``subgraph_type="induced"``.
    temporal_strategy, time_attr
        Not supported, as in PyG.
    is_sorted, directed
        As for ``PGSampler``.

    Notes
    -----
    ``num_sampled_nodes`` has two numbers, of seeds and of others, for the in-neighbors of a hop and
    two for its out-neighbors, and ``num_sampled_edges`` one for each: the numbers of new ones, as
    in PyG.

    Raises
    ------
    NotImplementedError
        For times, types, induced subgraphs, and negatives of links.
    TypeError, ValueError
        For the reasons of ``PGSampler``.
    """

    def __init__(
        self,
        data: Any,
        num_neighbors: Sequence[int] | NumNeighbors,
        subgraph_type: str | SubgraphType = "directional",
        replace: bool = False,
        disjoint: bool = False,
        temporal_strategy: str = "uniform",
        time_attr: str | None = None,
        weight_attr: str | None = None,
        is_sorted: bool = False,
        share_memory: bool = False,
        directed: bool = True,
        *,
        seed: int | None = None,
        device: Any = None,
    ) -> None:
        if is_hetero(data):
            raise NotImplementedError(
                f"data: expected one without types, got {describe(data)}; NeighborSampler takes "
                "it, and to_homogeneous() of a HeteroData makes a Data of it"
            )
        if time_attr is not None:
            raise NotImplementedError(
                f"time_attr: expected None, got {time_attr!r}; NeighborSampler has times, with "
                "sample_direction='backward' too"
            )
        super().__init__(
            data,
            num_neighbors,
            subgraph_type,
            replace,
            disjoint,
            temporal_strategy,
            weight_attr=weight_attr,
            is_sorted=is_sorted,
            share_memory=share_memory,
            directed=directed,
            seed=seed,
            device=device,
        )
        options: dict[str, Any] = {
            "replace": replace,
            "disjoint": disjoint,
            "weight_attr": weight_attr,
        }
        self.forward_sampler = PGSampler(self.graph, [1], **options)
        self.backward_sampler = PGSampler(self.graph, [1], sample_direction="backward", **options)
        self._share_identity()

    def __copy__(self) -> Any:
        other = super().__copy__()
        other.forward_sampler = copy.copy(self.forward_sampler)
        other.backward_sampler = copy.copy(self.backward_sampler)
        other._share_identity()
        return other

    def _share_identity(self) -> None:
        for way in (self.forward_sampler, self.backward_sampler):
            way._identity = self._identity

    def sample_from_edges(self, index: Any, neg_sampling: Any = None, **kwargs: Any) -> Any:
        """Samples around edges, as ``PGSampler.sample_from_edges`` does, without negatives.

        Parameters
        ----------
        index, **kwargs
            The arguments of ``PGSampler.sample_from_edges``.
        neg_sampling : None
            Not supported: NotImplementedError for another value.
        """
        if neg_sampling is not None:
            raise NotImplementedError(
                f"neg_sampling: expected None, as in PyG, got {neg_sampling!r}; PGSampler has it"
            )
        return super().sample_from_edges(index, None, **kwargs)

    def _begin(self, inputs: Any, neg_sampling: Any = None) -> None:
        """None: a batch is several calls, each of what the one before reached."""

    def _sample(
        self, seeds: torch.Tensor, identity: tuple[int, int], times: torch.Tensor | None
    ) -> SamplerOutput:
        if self.subgraph_type == SubgraphType.induced:
            raise NotImplementedError(
                "subgraph_type: expected 'directional' or 'bidirectional', got 'induced'"
            )
        disjoint, count = self.disjoint, self.num_nodes
        if not disjoint and len(seeds) > len(_first(seeds)):
            raise ValueError(
                f"input_nodes: expected distinct nodes without disjoint=True, got {len(seeds)} "
                f"with {len(_first(seeds))} distinct ones"
            )
        self._take_seed()
        epoch, batch = identity
        # A node of a tree is tree * count + node: its key.
        seen = torch.arange(len(seeds)) * count + seeds if disjoint else seeds
        current = seen
        nodes, edges = [seen[:0]], [(seen[:0], seen[:0], seen[:0])]
        for hop, fanout in enumerate(self.num_neighbors.values):
            for side, way in enumerate((self.forward_sampler, self.backward_sampler)):
                way._sampler = self._engine_sampler()._with(fanouts=[fanout])
                number = batch_number_of_ids(torch.tensor([batch, hop, side]))
                out = way._finished(way._sample(current % max(count, 1), (epoch, number), None))
                keys = out.node.long().cpu()
                if disjoint:
                    keys = keys + (current // count)[out.batch.long().cpu()] * count
                nodes += keys[: len(current)], keys[len(current) :]
                ends = keys[out.row.long().cpu()], keys[out.col.long().cpu()]
                edges.append((*ends, out.edge.long().cpu()))
            current = _distinct(torch.cat(nodes[-4:]))
            current = current[~torch.isin(current, seen)]
            seen = torch.cat([seen, current])
        return self._merge(seen, nodes[1:], edges[1:])

    def _merge(
        self,
        keys: torch.Tensor,
        nodes: list[torch.Tensor],
        edges: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]],
    ) -> SamplerOutput:
        """The nodes of these keys, and the edges of all calls, each once."""
        count, place = max(self.num_nodes, 1), torch.device(self.device)
        row, col, edge = (torch.cat(each) for each in zip(*edges, strict=True)) if edges else (
            keys[:0], keys[:0], keys[:0]
        )  # fmt: skip
        # The id of an edge, and its tree.
        _, ids = torch.unique(edge, return_inverse=True)
        first = _first(row // count * max(len(edge), 1) + ids)
        order = keys.argsort()
        ends = [order[torch.searchsorted(keys[order], end[first])] for end in (row, col)]
        dtype = self.graph.indices.torch().dtype
        node, rows, cols = (each.to(place, dtype) for each in (keys % count, *ends))
        subgraph_ids = (keys // count).to(place, dtype) if self.disjoint else None
        out = SamplerOutput(
            node,
            rows,
            cols,
            edge[first].to(place),
            batch=subgraph_ids,
            num_sampled_nodes=_news(nodes, _first(torch.cat(nodes))) if nodes else [len(node)],
            num_sampled_edges=_news([each[2] for each in edges], first),
        )
        out.sort_order = None
        return out


def _first(values: torch.Tensor) -> torch.Tensor:
    """Returns the first place of each distinct value, in ascending order."""
    distinct, inverse = torch.unique(values, return_inverse=True)
    places = torch.arange(len(values))
    first = torch.full((len(distinct),), len(values))
    return first.scatter_reduce_(0, inverse, places, "amin").sort().values


def _distinct(values: torch.Tensor) -> torch.Tensor:
    return values[_first(values)]


def _news(pieces: list[torch.Tensor], first: torch.Tensor) -> list[int]:
    """Returns the number of these places of the concatenated parts that are in each part."""
    part = torch.arange(len(pieces)).repeat_interleave(torch.tensor([*map(len, pieces)]).long())
    numbers: list[int] = torch.bincount(part[first], minlength=len(pieces)).tolist()
    return numbers
