"""Batches of the engine for other frameworks: sampled into torch's memory, in workers too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from torch.utils.data import get_worker_info

from pygsampler._batch.minibatch import as_torch
from pygsampler._batch.repeated_seeds import unique_by_first

if TYPE_CHECKING:
    import torch

    from pygsampler._batch.minibatch import MiniBatch
    from pygsampler._sampling.sampler import Sampler

__all__ = ["ExtraArrays", "engine_batch", "extra_arrays", "worker_threads"]


def worker_threads() -> int:
    """Returns how many threads a batch may use: 1 in a worker of torch's loader, else 0, all."""
    return 0 if get_worker_info() is None else 1


def engine_batch(
    sampler: Any, graph: Any, seeds: Any, epoch: int, batch: int, exclude: Any = None
) -> Any:
    """Samples the batch of ``seeds`` without the edges ``exclude``, and returns it as tensors."""
    job = sampler.launch(
        graph,
        seeds,
        epoch=epoch,
        batch=batch,
        exclude=exclude,
        threads=worker_threads(),
        form="torch",
    )
    return as_torch(job.result())


class ExtraArrays(NamedTuple):
    """Arrays by name: a row for each of some nodes, or for each seed."""

    of_nodes: dict[str, torch.Tensor]
    of_seeds: dict[str, torch.Tensor]


def extra_arrays(
    sampler: Sampler[Any],
    batch: MiniBatch,
    nodes: torch.Tensor,
    old: torch.Tensor | None = None,
) -> ExtraArrays:
    """Returns what a program gave of nodes of a batch and of seeds, in addition to its edges.

    ``nodes`` are the nodes of the rows that are wanted, and ``old`` says where these have been in
    the subgraph, where its nodes were put into another order.
    """
    result = ExtraArrays({}, {})
    if not batch.extra:
        return result
    for name, place in sampler.extra_places.items():
        values = batch.extra[name]
        if place == "all_nodes":
            result.of_nodes[name] = values[nodes.long()]
        elif place == "nodes":
            result.of_nodes[name] = values if old is None else values[old]
        elif place == "seeds":
            result.of_seeds[name] = values
        elif place == "unique_seeds":
            repeated = len(values) != len(batch.output_nodes)
            result.of_seeds[name] = (
                values[unique_by_first(batch.output_nodes)[1]] if repeated else values
            )
    return result
