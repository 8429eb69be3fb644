"""PyG's sampling contract in plain Python, and the graphs and looks that the PyG tests share.

The draws are those of the engine, by ``reference.choose``; what is done with them is written from
what pyg-lib does: one list of nodes that grows, of which each hop expands the part that the hop
before has added.
"""

from __future__ import annotations

from typing import Any

import pytest
import reference
import torch
from partners import partner

# First: what imports this module may then import PyG, whose import warns of torch.
partner("torch_geometric")

from torch_geometric.data import Data  # noqa: E402
from torch_geometric.sampler import BaseSampler, SamplerOutput  # noqa: E402

NODES, EDGES = 100, 500


def random_data(
    nodes: int = NODES, edges: int = EDGES, seed: int = 0, dtype: torch.dtype = torch.int64
) -> Any:
    """A multigraph with hubs, parallel edges, self loops, and isolated nodes at the end."""
    random = torch.Generator().manual_seed(seed)
    src = torch.randint(0, nodes, (edges,), generator=random)
    dst = (torch.rand(edges, generator=random) ** 3 * nodes * 0.9).long()
    data = Data(
        x=torch.arange(nodes, dtype=torch.float32).reshape(-1, 1),
        edge_index=torch.stack([src, dst]).to(dtype),
        edge_attr=torch.arange(edges),
        y=torch.arange(nodes) % 5,
    )
    data.train_mask = torch.arange(nodes) % 3 == 0
    return data


class ReferenceSampler(BaseSampler):
    """Directional sampling with the numbers of ``like``, a PGSampler whose epoch is set."""

    def __init__(self, data: Any, like: Any) -> None:
        self.like = like
        self.rows: list[list[tuple[int, int]]] = [[] for _ in range(data.num_nodes)]
        for edge, (source, target) in enumerate(data.edge_index.t().tolist()):
            self.rows[target].append((source, edge))

    def sample_from_nodes(self, index: Any, **kwargs: Any) -> SamplerOutput:
        out = self.sample(index.node.tolist(), self.like._identity.number(index.node.long()))
        out.metadata = (index.input_id, index.time)
        return out

    def sample_from_edges(self, index: Any, neg_sampling: Any = None) -> SamplerOutput:
        raise NotImplementedError

    def sample(self, seeds: list[int], identity: tuple[int, int]) -> SamplerOutput:
        like = self.like
        nodes = [(tree if like.disjoint else -1, v) for tree, v in enumerate(seeds)]
        place = {node: i for i, node in reversed(list(enumerate(nodes)))}
        begin, num_nodes, num_edges = 0, [len(nodes)], []
        row, col, edges = [], [], []
        for hop, count in enumerate(like.num_neighbors.values):
            before, end = len(row), len(nodes)
            for target in range(begin, end):
                tree, v = nodes[target]
                state = reference.row_state(like.seed, *identity, hop, v)
                if like.disjoint:
                    state = reference.part(state, tree)
                around = self.rows[v]
                for position in reference.choose(len(around), count, like.replace, state):
                    source, edge = around[position]
                    if (tree, source) not in place:
                        place[tree, source] = len(nodes)
                        nodes.append((tree, source))
                    row.append(place[tree, source])
                    col.append(target)
                    edges.append(edge)
            num_nodes.append(len(nodes) - end)
            num_edges.append(len(row) - before)
            begin = end
        trees, ids = zip(*nodes, strict=True)
        return SamplerOutput(
            *[torch.tensor(values, dtype=torch.int64) for values in (ids, row, col, edges)],
            batch=torch.tensor(trees) if like.disjoint else None,
            num_sampled_nodes=num_nodes,
            num_sampled_edges=num_edges,
        )


def stored(batch: Any) -> list[Any]:
    """The tensors of each store of a batch by their names."""
    stores = batch.stores
    return [{key: of.tolist() for key, of in s.items() if torch.is_tensor(of)} for s in stores]


def content(batch: Any) -> dict[str, Any]:
    """A batch of a loader, or a SamplerOutput, as something to compare."""
    items = batch.to_dict() if isinstance(batch, Data) else dict(vars(batch))
    return {
        name: value.tolist() if isinstance(value, torch.Tensor) else value
        for name, value in items.items()
        if name not in ("metadata", "_seed_node", "sort_order")
    }


def check_edges(data: Any, batch: Any, both_ways: bool = False) -> None:
    """The batch's edges are edges of ``data``, and its nodes and edges carry their features.

    ``both_ways``: or the reverse of edges of ``data``.
    """
    found, expected = batch.n_id[batch.edge_index], data.edge_index[:, batch.e_id].long()
    right = (found == expected).all(0)
    if both_ways:
        right |= (found == expected.flip(0)).all(0)
    assert bool(right.all())
    assert batch.x.equal(data.x[batch.n_id])
    assert batch.edge_attr.equal(data.edge_attr[batch.e_id])
    # As with pyg-lib, ids are as wide as in the data, but for those of edges.
    assert batch.edge_index.dtype == batch.n_id.dtype == data.edge_index.dtype
    assert batch.e_id.dtype == torch.int64


def pairs(edge_index: torch.Tensor) -> set[tuple[int, ...]]:
    return set(map(tuple, edge_index.t().tolist()))


def check_errors_in_their_turn(of: Any) -> None:
    """That an error of a loader's sampler at its second batch comes after the first one."""
    plain, calls = of.node_sampler.sample_from_nodes, []

    def failing(index: Any) -> Any:
        calls.append(index)
        if len(calls) == 2:
            raise RuntimeError("the second")
        return plain(index)

    of.node_sampler.sample_from_nodes = failing
    batches = iter(of)
    next(batches)
    with pytest.raises(RuntimeError, match="the second"):
        next(batches)
