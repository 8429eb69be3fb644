"""Reads the nodes and edges that are arguments of a loader, in PyG's formats."""

from __future__ import annotations

from typing import Any

import torch
from torch_geometric.data import HeteroData
from torch_geometric.sampler import EdgeSamplerInput, NodeSamplerInput

from pygsampler._arrays.datetimes import as_numpy_dates, datetime_kind
from pygsampler._arrays.tensors import as_tensor
from pygsampler._engine.checks import describe
from pygsampler._graph.schema import edge_type_of
from pygsampler.pyg.options import check_range, ids

__all__ = [
    "check_input_type",
    "check_link_type",
    "check_mask",
    "check_rows",
    "checked_times",
    "input_edges",
    "input_nodes",
    "input_rows",
    "inputs_at",
    "named_links",
    "node_ids",
    "seed_times",
]


def input_nodes(value: Any, heterogeneous: bool) -> Any:
    """``input_nodes``, with ids or a mask as a tensor.

    A mask that is no tensor would be ids 0 and 1 to PyG.
    """
    if value is None or (heterogeneous and isinstance(value, str)):
        return value
    if not heterogeneous:
        return _ids(value, "input_nodes")
    kind, nodes = value
    return kind if nodes is None else (kind, _ids(nodes, "input_nodes"))


def check_mask(nodes: Any, count: int, where: str = "input_nodes") -> None:
    """Raises ValueError for a mask, as ``nodes_given`` has it, that is not of so many nodes."""
    mask = nodes[1] if isinstance(nodes, tuple) else nodes
    if isinstance(mask, torch.Tensor) and mask.dtype == torch.bool and len(mask) != count:
        raise ValueError(
            f"{where}: expected a mask with a value for each of {count} nodes, got {len(mask)}"
        )


def node_ids(value: Any, where: str, count: int) -> torch.Tensor:
    """Returns the ids of ``value``, ids or a mask of ``count`` nodes; all nodes for None."""
    if value is None:
        return torch.arange(count)
    nodes = _tensor(value, where, "ids or a mask of nodes")
    if nodes.dtype == torch.bool:
        check_mask(_ids(nodes, where), count, where)
        nodes = nodes.nonzero().view(-1)
    nodes = ids(nodes, where)
    check_range(nodes, where, count)
    return nodes


def input_edges(value: Any, heterogeneous: bool, stored: bool = False) -> Any:
    """``edge_label_index``, with edges as a tensor of shape [2, E].

    PyG has (None, edges) where the data are stores without types.
    """
    if heterogeneous or (stored and isinstance(value, (tuple, list)) and value[0] is None):
        kind, edges = value if _has_edges(value) else (value, None)
        return kind if edges is None else (kind, _pairs(edges))
    return None if value is None else _pairs(value)


def _has_edges(value: Any) -> bool:
    """True for (type of edges, edges), and not for a type, which may have two parts as well."""
    return not isinstance(value[0], str)


def input_rows(value: Any, where: str) -> Any:
    """Returns values of which each node or edge has one, as a tensor; or None."""
    return None if value is None else _tensor(value, where, "a tensor")


def check_rows(values: Any, where: str, count: int, row_noun: str) -> None:
    """Raises ValueError unless there is one row for each of ``count`` things.

    PyG looks rows up by place, and would read rows of other things.
    """
    if values is None or (values.dim() and len(values) == count):
        return
    hint = "; of a mask those that it selects" if row_noun == "input nodes" else ""
    raise ValueError(
        f"{where}: expected one for each of {count} {row_noun}, got shape "
        f"{tuple(values.shape)}{hint}"
    )


def checked_times(values: Any, where: str, count: int, row_noun: str) -> Any:
    """Returns times after check_rows, one for all as often as there are things.

    ValueError with the place of a time that is NaN.
    """
    if values is not None and values.dim() == 0:
        values = values.repeat(count)
    check_rows(values, where, count, row_noun)
    if values is not None and values.is_floating_point() and values.isnan().any():
        place = int(values.isnan().nonzero()[0, 0])
        raise ValueError(f"{where}[{place}]: expected a time, got nan")
    return values


def _ids(value: Any, where: str) -> torch.Tensor:
    nodes = _tensor(value, where, "ids or a mask of nodes")
    if nodes.dim() != 1:
        raise ValueError(f"{where}: expected ids of one dimension, got {tuple(nodes.shape)}")
    return nodes


def _pairs(value: Any) -> torch.Tensor:
    edges = _tensor(value, "edge_label_index", "edges, shape [2, E]")
    if edges.dim() != 2 or edges.shape[0] != 2:
        raise ValueError(
            f"edge_label_index: expected edges, shape [2, E], got shape {tuple(edges.shape)}"
        )
    return edges


def seed_times(value: Any, where: str) -> Any:
    """Returns the times of seeds as a tensor, of one for all without dimensions; None for None.

    TypeError for dates: the data's times are tensors, which may have days, or seconds.
    """
    value = None if value is None else as_numpy_dates(value, where)
    if datetime_kind(value):
        raise TypeError(
            f"{where}: expected numbers, in the unit of the data's times, got {value.dtype}; "
            "times.astype('datetime64[s]').astype('int64') has seconds since 1970"
        )
    return input_rows(value, where)


def _tensor(value: Any, where: str, what: str) -> torch.Tensor:
    if isinstance(value, torch.Tensor):
        return value
    try:
        made = as_tensor(value)
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"{where}: expected {what}, got {describe(value)}") from None
    return made if made.numel() else made.long()


def inputs_at(inputs: Any, places: torch.Tensor) -> Any:
    """The inputs of a loader at some places, as ``given[places]`` is in PyG.

    PyG indexes each array by torch's most general way, which for a small batch takes as long as
    concatenating its hops.
    """
    kind = type(inputs)
    if kind is not NodeSamplerInput and kind is not EdgeSamplerInput:
        return inputs[places]

    def select(values: torch.Tensor | None) -> torch.Tensor | None:
        return None if values is None else values.index_select(0, places)

    try:
        input_id = places if inputs.input_id is None else select(inputs.input_id)
        if kind is NodeSamplerInput:
            return kind(input_id, select(inputs.node), select(inputs.time), inputs.input_type)
        ends = select(inputs.row), select(inputs.col)
        return kind(input_id, *ends, select(inputs.label), select(inputs.time), inputs.input_type)
    except (IndexError, RuntimeError):
        # Places may count from the end, or be wrong.
        return inputs[places]


def named_links(data: Any, edge_label_index: Any) -> Any:
    """``edge_label_index`` with the edge type that it names by its relation, or in one text."""
    pair = isinstance(edge_label_index, (tuple, list)) and len(edge_label_index) == 2
    kind = edge_label_index[0] if pair else edge_label_index
    if not isinstance(kind, str) or (pair and isinstance(edge_label_index[1], str)):
        return edge_label_index
    kind = edge_type_of(kind, _edge_types(data), "edge_label_index", "data")
    return (kind, edge_label_index[1]) if pair else kind


def check_link_type(data: Any, edge_label_index: Any) -> None:
    """An error unless it is a type of edges, or such a type and its edges, between known nodes."""
    kind = edge_label_index
    if isinstance(kind, (tuple, list)) and len(kind) == 2 and not isinstance(kind[0], str):
        kind = kind[0]
    if not isinstance(kind, tuple) or not all(isinstance(part, str) for part in kind):
        raise TypeError(
            "edge_label_index: expected a type of edges of data with types, or (type, edges), got "
            f"{describe(edge_label_index)}"
        )
    types = _node_types(data)
    if kind[0] not in types or kind[-1] not in types:
        raise ValueError(
            f"edge_label_index: expected a type between the types {types}, got {kind!r}"
        )
    if isinstance(data, HeteroData) and kind is edge_label_index:
        known = data._to_canonical(*kind)
        if known not in data.edge_types:
            raise ValueError(
                f"edge_label_index: expected a type of edges of data ({data.edge_types}), or "
                f"(type, edges), got {kind!r}"
            )


def _node_types(data: Any) -> list[str]:
    """The types of nodes of a HeteroData, or of stores with types of edges."""
    if isinstance(data, HeteroData):
        types: list[str] = data.node_types
        return types
    groups = (attr.group_name for attr in data[0].get_all_tensor_attrs())
    ends = [end for kind in _edge_types(data) for end in (kind[0], kind[-1])]
    return list(dict.fromkeys([*ends, *(kind for kind in groups if isinstance(kind, str))]))


def _edge_types(data: Any) -> list[Any]:
    """The types of edges of a HeteroData, or of stores with types of edges."""
    if isinstance(data, HeteroData):
        return list(map(tuple, data.edge_types))
    kinds = (attr.edge_type for attr in data[1].get_all_edge_attrs())
    return list(dict.fromkeys(tuple(kind) for kind in kinds))


def check_input_type(data: Any, input_nodes: Any) -> None:
    """An error unless they are a type, or a type and its nodes: PyG would make a new type."""
    types = _node_types(data)
    kind = input_nodes
    if isinstance(input_nodes, (tuple, list)) and len(input_nodes) == 2:
        kind = input_nodes[0]
    if not isinstance(kind, str):
        raise TypeError(
            "input_nodes: expected a type of nodes, or (type, ids or mask), for data with types, "
            f"got {describe(input_nodes)}"
        )
    if kind not in types:
        raise ValueError(f"input_nodes: expected one of the types {types}, got {describe(kind)}")
