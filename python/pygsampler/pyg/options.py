"""Options of PyG that its users may ask for, and refusals of others."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Set, Sized
from typing import Any

import numpy
import torch
from torch_geometric.sampler import NumNeighbors
from torch_geometric.sampler.base import SubgraphType

from pygsampler._arrays import devices
from pygsampler._arrays.ids import check_node_ids
from pygsampler._engine.checks import boolean, describe, integer
from pygsampler._engine.limits import MAX_FANOUT, MAX_HOPS

__all__ = [
    "assignable",
    "backward",
    "bounds",
    "check_inputs",
    "check_range",
    "flag",
    "ids",
    "num_neighbors",
    "place",
    "subgraph",
    "subgraph_type",
    "weights",
]

# The attributes that a sampler, ours or PyG's, reads once from its data.
_OF_THE_GRAPH = {
    "colptr",
    "colptr_dict",
    "data_type",
    "device",
    "edge_permutation",
    "edge_time",
    "edge_types",
    "edge_weight",
    "graph",
    "is_hetero",
    "is_sorted",
    "is_temporal",
    "node_time",
    "node_types",
    "num_edges",
    "num_nodes",
    "perm",
    "row",
    "row_dict",
    "sample_direction",
    "to_edge_type",
    "to_rel_type",
}


def flag(value: Any, where: str) -> bool:
    """``value`` as True or False: a truth value, NumPy's too, or 0 or 1, as PyG takes them."""
    if isinstance(value, (int, numpy.integer, numpy.bool_)) and value in (0, 1):
        return bool(value)
    return boolean(value, where)


def place(device: Any) -> int:
    """The index of a device that is there, -1 for the CPU."""
    index = devices.parse(device)
    if index >= 0:
        devices.require(index)
    return index


def assignable(name: str, value: Any) -> None:
    """An error for attributes of a sampler that would be without effect if they were assigned."""
    if name in _OF_THE_GRAPH:
        raise AttributeError(
            f"{name}: cannot be assigned, since a sampler uses the graph that it was created "
            "with; create another sampler"
        )
    elif name == "seed":
        raise AttributeError("seed: cannot be assigned; set_seed(n) takes another")


def weights(weight_attr: str | None, names: Iterable[str]) -> str | None:
    """The name of the weights that a sampler uses from now on, among the arrays that it has."""
    if weight_attr is None or weight_attr in names:
        return weight_attr
    have = ", ".join(map(repr, names)) or "none"
    raise ValueError(
        f"weight_attr: expected None or the name of an array that the sampler was "
        f"created with ({have}), got {describe(weight_attr)}; make another sampler"
    )


def backward(sample_direction: Any) -> bool:
    """True if out-neighbors are sampled."""
    if sample_direction not in ("forward", "backward"):
        raise ValueError(
            f"sample_direction: expected 'forward' or 'backward', got {describe(sample_direction)}"
        )
    return bool(sample_direction == "backward")


def num_neighbors(num_neighbors: Any, where: str = "num_neighbors") -> list[int]:
    """Returns the numbers of neighbors, the seeds' first; may be empty. ``where`` is their name."""
    values = num_neighbors.values if isinstance(num_neighbors, NumNeighbors) else num_neighbors
    if isinstance(values, Mapping):
        raise NotImplementedError(
            f"{where}: expected a list of int, got a dict for each edge type, which "
            "NeighborLoader takes of a HeteroData alone; data.to_homogeneous() makes a Data of one"
        )
    if (
        isinstance(values, (str, bytes, bytearray, Set))
        or not isinstance(values, Sized)
        or not isinstance(values, Iterable)
        or getattr(values, "ndim", 1) == 0
    ):
        raise TypeError(
            f"{where}: expected a list of int, the seeds' number first, "
            f"got {describe(num_neighbors)}"
        )
    if len(values) > MAX_HOPS:
        raise ValueError(f"{where}: expected at most {MAX_HOPS} hops, got {len(values)}")
    return [integer(value, f"{where}[{i}]", -1, MAX_FANOUT) for i, value in enumerate(values)]


def subgraph(subgraph_type: Any, directed: bool) -> Any:
    """The type of the subgraph, where ``directed=False`` is PyG's old way to say induced."""
    if flag(directed, "directed"):
        return subgraph_type
    warnings.warn(
        "directed=False is deprecated in PyG: subgraph_type='induced' says the same", stacklevel=3
    )
    return SubgraphType.induced


def subgraph_type(subgraph_type: Any) -> SubgraphType:
    """PyG's type of that name."""
    try:
        return SubgraphType(subgraph_type)
    except ValueError:
        names = tuple(each.value for each in SubgraphType)
        raise ValueError(
            f"subgraph_type: expected one of {names}, got {describe(subgraph_type)}"
        ) from None


def no_induced(subgraph_type: SubgraphType) -> None:
    """Raises ValueError for what has edges of any time."""
    if subgraph_type == SubgraphType.induced:
        raise ValueError(
            "subgraph_type: expected 'directional' or 'bidirectional' with time_attr, got "
            "'induced', whose edges would be of any time"
        )


def check_inputs(inputs: Any, time: str, more: dict[str, Any], with_times: bool) -> None:
    """Raises an error for unsupported inputs of a sampler.

    NotImplementedError for seeds of a type, ValueError for times without a temporal sampler,
    TypeError for unknown arguments. ``time`` is the loaders' name for the seeds' times.
    """
    if inputs.time is not None and not with_times:
        raise ValueError(f"{time}: expected None without time_attr, got {describe(inputs.time)}")
    if inputs.input_type is not None:
        raise NotImplementedError(
            f"input_type: expected None, got {describe(inputs.input_type)}; a PGSampler "
            "of a HeteroData takes it, and data.to_homogeneous() makes a Data of one"
        )
    if more:
        raise TypeError(f"sample: expected no more arguments, got {sorted(more)}")


def bounds(values: torch.Tensor, where: str, name: str, float_: bool) -> torch.Tensor:
    """Returns the times of seeds, checked against the dtype of the attribute ``name``."""
    if values.dim() != 1:
        raise ValueError(f"{where}: expected one dimension, got shape {tuple(values.shape)}")
    if values.is_floating_point() and not float_:
        raise TypeError(f"{where}: expected integers, as {name!r} has them, got {values.dtype}")
    return values


def ids(values: torch.Tensor, where: str) -> torch.Tensor:
    """Nodes as the engine takes them: int64, 1-D, on the CPU. ``where`` is the user's name."""
    if values.dtype not in (torch.int32, torch.int64):
        raise TypeError(f"{where}: expected int32 or int64 ids, got {values.dtype}")
    if values.dtype == torch.int64 and values.dim() == 1 and values.is_cpu:
        return values.contiguous()
    return values.reshape(-1).cpu().long().contiguous()


def check_range(values: torch.Tensor, where: str, num_nodes: int) -> None:
    """Raises IndexError unless all of ``values``, shape [n], are in ``[0, num_nodes)``."""
    if values.dim() != 1:
        raise ValueError(f"{where}: expected ids of one dimension, got {tuple(values.shape)}")
    if values.dtype not in (torch.int32, torch.int64):
        raise TypeError(f"{where}: expected int32 or int64 ids, got {values.dtype}")
    check_node_ids(values, where, num_nodes)
