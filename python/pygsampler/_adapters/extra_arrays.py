"""What programs return beside blocks and subgraphs, as DGL's and PyG's batches have vertices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pygsampler._batch.unique import unique_by_first

if TYPE_CHECKING:
    import torch

    from pygsampler._batch.torch_minibatch import TorchMiniBatch
    from pygsampler._sampling.sampler import Sampler

__all__ = ["ExtraArrays", "extra_arrays"]


class ExtraArrays(NamedTuple):
    """Arrays by name: with a row for each of some vertices, and with one for each seed as given."""

    of_nodes: dict[str, torch.Tensor]
    of_seeds: dict[str, torch.Tensor]


def extra_arrays(
    sampler: Sampler[Any],
    batch: TorchMiniBatch,
    nodes: torch.Tensor,
    old: torch.Tensor | None = None,
) -> ExtraArrays:
    """Those of a batch that are of all vertices, of a subgraph's or of the seeds.

    ``nodes`` are the vertices of the rows that are wanted, and ``old`` says where these have been
    in the subgraph, where its vertices were put into another order.
    """
    made = ExtraArrays({}, {})
    if not batch.extra:
        return made
    for name, place in sampler.places.items():
        values = batch.extra[name]
        if place == "vertices":
            made.of_nodes[name] = values[nodes.long()]
        elif place == "nodes":
            made.of_nodes[name] = values if old is None else values[old]
        elif place == "given":
            made.of_seeds[name] = values
        elif place == "seeds":
            repeated = len(values) != len(batch.output_nodes)
            made.of_seeds[name] = (
                values[unique_by_first(batch.output_nodes)[1]] if repeated else values
            )
    return made
