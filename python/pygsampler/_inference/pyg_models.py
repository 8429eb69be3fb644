"""Models of PyG on a whole graph."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.nn import MessagePassing
from torch_geometric.nn.models.basic_gnn import BasicGNN

from pygsampler._inference.block_layers import RowLayer
from pygsampler._inference.pyg_layers import ConvLayer
from pygsampler._inference.tables import NodeTable, NodeTableGroup
from pygsampler.pyg.blockwise_model import Blockwise, _takes_batch
from pygsampler.pyg.layer_run import _arguments, replaced_forwards, uses_statistics

if TYPE_CHECKING:
    from torch import Tensor

    from pygsampler._inference.layer_runs import InferenceRun
    from pygsampler._inference.ranges import InEdges
    from pygsampler._inference.tables import Output

__all__ = ["count_layers", "has_layers", "run_basic", "run_model", "works_by_layer"]

_HOOKS = "_forward_hooks", "_forward_pre_hooks"


def has_layers(value: Any) -> bool:
    """True if a value is a module that is, or has, a layer of PyG."""
    return isinstance(value, torch.nn.Module) and count_layers(value) > 0


def count_layers(model: torch.nn.Module) -> int:
    """Returns the number of layers of PyG in a model."""
    return sum(isinstance(each, MessagePassing) for each in model.modules())


def unwrapped(model: torch.nn.Module) -> torch.nn.Module:
    """Returns the model in a module of ``blockwise``."""
    return model._model if isinstance(model, Blockwise) else model


def works_by_layer(model: Any) -> bool:
    """True if a model is PyG's own, whose layers and functions of rows are known."""
    return (
        isinstance(model, BasicGNN)
        and type(model).forward is BasicGNN.forward
        and "forward" not in model.__dict__
        and not any(getattr(each, name) for each in model.modules() for name in _HOOKS)
        and not any(uses_statistics(each, False) for each in model.modules())
    )


def run_basic(
    run: InferenceRun,
    model: Any,
    csc: InEdges,
    source: NodeTable,
    edge_data: dict[str, Tensor],
    out: Output,
) -> NodeTable:
    """Returns the rows of a model of ``torch_geometric.nn.models``, layer by layer."""
    extras = {
        name: each for name, each in edge_data.items() if getattr(model, f"supports_{name}", False)
    }
    joins = [getattr(model, name) for name in ("jk", "lin") if hasattr(model, name)]
    keeps = hasattr(model, "jk")
    count, tables, x = len(model.convs), [], source
    for number, conv in enumerate(model.convs):
        last = number == count - 1
        functions: list[Any] = []
        if not last or model.jk_mode is not None:
            norm = model.norms[number] if number < len(model.norms or ()) else None
            act = [] if model.act is None else [model.act]
            norms = [] if norm is None else [norm]
            functions = act + norms if model.act_first else norms + act
        if last and not keeps:
            functions += joins
        layer = ConvLayer(f"convs.{number}", conv, conv.forward, extras, functions)
        following = run.layer(layer, csc, x, x, out if last and not keeps else None)
        if not keeps and x is not source:
            run.release(x)
        x = following
        if keeps:
            tables.append(x)
    if not keeps:
        return x
    group = NodeTableGroup(tables)
    return run.layer(RowLayer(joins), None, group, group, out)


def run_model(
    run: InferenceRun, model: Any, cscs: Mapping[Any, InEdges], x: Any, edge_data: Any
) -> Any:
    """Returns the result of a model of one's own, whose layers run over all nodes in ranges.

    ``x`` is a tensor, or a mapping of node types to tensors; ``edge_data`` are tensors, or
    mappings of edge types to tensors, by the names of the model's arguments. All else of the model
    runs as it is, on all rows at once.
    """
    edges = {kind: csc.edge_index() for kind, csc in cscs.items()}
    hetero = None not in edges
    edge_index = edges if hetero else edges[None]
    by_id = {id(edge_index): cscs[kind] for kind, edge_index in edges.items()}
    takes_batch = _takes_batch(model)
    with replaced_forwards(_forwards(run, model, by_id)):
        if not takes_batch:
            return model(x, edge_index, **edge_data)
        data: Any = HeteroData() if hetero else Data(x=x, edge_index=edge_index, **edge_data)
        if hetero:
            for kind, rows in x.items():
                data[kind].x = rows
            for edge_type, each in edges.items():
                data[edge_type].edge_index = each
        return model(copy.copy(data))


def _forwards(
    run: InferenceRun, model: Any, by_id: Mapping[int, InEdges]
) -> Iterator[tuple[Any, Any]]:
    """Yields layers with a forward that runs over ranges."""
    for name, module in model.named_modules():
        if isinstance(module, MessagePassing):
            place = name or type(module).__name__
            yield module, functools.partial(_run_layer, run, by_id, place, module, module.forward)


def _run_layer(
    run: InferenceRun,
    by_id: Mapping[int, InEdges],
    name: str,
    module: Any,
    forward: Any,
    *args: Any,
    **kwargs: Any,
) -> Any:
    found = _arguments(forward, args, kwargs)
    csc = None if found is None else by_id.get(id(found[1]))
    if found is None or csc is None or found[3]:
        return forward(*args, **kwargs)
    x, _, extras, _ = found
    pair = tuple(x) if isinstance(x, (tuple, list)) else (x, x)
    sizes = csc.num_src, csc.num_dst
    fits = all(isinstance(each, torch.Tensor) for each in pair)
    if not fits or tuple(map(len, pair)) != sizes:
        return forward(*args, **kwargs)
    source = NodeTable(pair[0].contiguous())
    apart = pair[0] is not pair[1]
    own = NodeTable(pair[1].contiguous()) if apart else source
    layer = ConvLayer(name, module, forward, extras, pair=apart)
    result = run.layer(layer, csc, source, own)
    run.release(result)
    # A model may overwrite its rows, as activations in place do; those of a finished layer stay.
    return result.tensor.to(run.device, copy=run.finished is not None)
