"""Loaders that make whole subgraphs of ``data``, as PyG's own do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils.data import DataLoader

from pygsampler.pyg.base_sampler import Sampler
from pygsampler.pyg.order import begin_epoch, shuffle_by_seed

__all__ = ["SubgraphLoader", "fill_batch"]


class SubgraphLoader(DataLoader):  # type: ignore[type-arg]
    """A loader of torch's whose batches a function makes of numbers, by a sampler."""

    def __init__(
        self, numbers: Any, sampler: Sampler, collate: Callable[[Any], Any], **kwargs: Any
    ) -> None:
        # As in PyG, for Lightning.
        for name in ("dataset", "collate_fn"):
            kwargs.pop(name, None)
        self._sampled_by = sampler
        super().__init__(numbers, collate_fn=collate, **kwargs)
        shuffle_by_seed(self, sampler._identity, kwargs)

    def __iter__(self) -> Any:
        begin_epoch(self, self._sampled_by._identity)
        return super().__iter__()

    def set_seed(self, seed: int | None) -> None:
        """As ``PGSampler.set_seed``."""
        self._sampled_by.set_seed(seed)

    def set_epoch(self, epoch: int | None) -> None:
        """As ``PGSampler.set_epoch``: call it before each epoch to make a run repeatable."""
        self._sampled_by.set_epoch(epoch)


def fill_batch(
    batch: Any,
    data: Any,
    nodes: torch.Tensor,
    row: torch.Tensor,
    col: torch.Tensor,
    edges: torch.Tensor,
    skip: tuple[str, ...] = (),
) -> None:
    """Gives a batch of these nodes and edges their ids, and the attributes of ``data`` but some.

    Edges are ordered by their source, then by their target, as in PyG's batches.
    """
    order = (row.long() * len(nodes) + col.long()).argsort(stable=True)
    edges = edges[order]
    batch.edge_index = torch.stack([row[order], col[order]])
    batch.n_id, batch.e_id = nodes, edges
    for name, value in data:
        if name in ("edge_index", "adj_t", "num_nodes", *skip):
            continue
        if isinstance(value, torch.Tensor) and value.dim() and len(value) == data.num_nodes:
            value = value[nodes.to(value.device)]
        elif isinstance(value, torch.Tensor) and value.dim() and len(value) == data.num_edges:
            value = value[edges.to(value.device)]
        batch[name] = value
