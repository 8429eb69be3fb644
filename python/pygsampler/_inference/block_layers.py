"""Layers of a list: functions of a block and rows, and functions of rows."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.modules import batchnorm, instancenorm

from pygsampler._engine.checks import describe
from pygsampler._inference.layer_runs import APART, FIRST, ROWS

if TYPE_CHECKING:
    from torch import Tensor

    from pygsampler._inference.ranges import InEdges, NodeRange
    from pygsampler._inference.tables import NodeTable

__all__ = [
    "BlockLayer",
    "RowLayer",
    "check_by_row",
    "count_arguments",
    "layer_name",
    "modules_of",
    "widest",
]

# Functions of rows run on so many bytes at a time.
_CACHED_BYTES = 1 << 20
# The cell of a variable that has no value yet.
_EMPTY = types.CellType()
_RUNNING = batchnorm._BatchNorm, instancenorm._InstanceNorm


def count_arguments(function: Any) -> int:
    """Returns how many arguments a layer needs; 1 for functions that do not say it."""
    # A compiled module takes any arguments, the one that it was made of says which.
    target = getattr(function, "_orig_mod", function)
    target = target.forward if isinstance(target, torch.nn.Module) else target
    try:
        parameters = inspect.signature(target).parameters.values()
    except (TypeError, ValueError):
        return 1
    kinds = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    return sum(each.kind in kinds and each.default is each.empty for each in parameters)


def layer_name(layer: Any) -> str:
    """Returns a name of a layer for messages and manifests."""
    if isinstance(layer, torch.nn.Module):
        return type(layer).__name__
    if isinstance(layer, functools.partial):
        return layer_name(layer.func)
    return str(getattr(layer, "__qualname__", type(layer).__name__))


def modules_of(layers: Any) -> Iterator[torch.nn.Module]:
    """Yields modules, and those that functions, methods and objects of a list refer to."""
    for layer in layers:
        if isinstance(layer, torch.nn.Module):
            yield layer
        elif isinstance(layer, functools.partial):
            yield from modules_of([layer.func, *layer.args, *layer.keywords.values()])
        elif inspect.ismethod(layer):
            yield from modules_of([layer.__self__, layer.__func__])
        elif inspect.isfunction(layer):
            values = [layer.__globals__.get(name) for name in layer.__code__.co_names]
            values += [cell.cell_contents for cell in layer.__closure__ or () if cell != _EMPTY]
            yield from (each for each in values if isinstance(each, torch.nn.Module))
        else:
            values = [*getattr(layer, "__dict__", {}).values()]
            yield from (each for each in values if isinstance(each, torch.nn.Module))


def check_by_row(layer: Any) -> None:
    """Raises ValueError for a norm whose result for a node depends on other nodes in evaluation."""
    for module in modules_of([layer]):
        for each in module.modules():
            if isinstance(each, _RUNNING) and each.running_mean is None:
                raise ValueError(
                    f"model: expected norms with running statistics, got {type(each).__name__} "
                    "with track_running_stats=False, which takes the mean of all nodes at once"
                )
            if _takes_all_nodes(each):
                raise ValueError(
                    "model: expected norms that work row by row in a list, got "
                    f"{type(each).__name__}, which takes the mean of all nodes at once; give a "
                    "module of PyG whose forward has the norm"
                )


def _takes_all_nodes(module: torch.nn.Module) -> bool:
    """True for a norm of PyG whose result for a row depends on other rows in evaluation."""
    if type(module).__module__.partition(".")[0] != "torch_geometric":
        return False
    from pygsampler.pyg.layer_run import uses_statistics

    return uses_statistics(module, False)


def widest(layers: Any, source: NodeTable) -> int:
    """Returns the bytes of the widest row that layers are likely to write."""
    shapes = [each.shape for module in modules_of(layers) for each in module.parameters()]
    width = max((max(shape, default=1) for shape in shapes), default=1)
    size = 4 if source.values is None else max(4, source.values.element_size())
    return size * max(width, source.width)


class RowLayer:
    """Functions that work row by row: activations, linear layers, norms in evaluation."""

    def __init__(self, functions: list[Callable[[Any], Any]], copies: bool = False) -> None:
        """Copies the rows with ``copies``, since functions may overwrite rows of the caller."""
        self.functions, self.copies = functions, copies
        self.name = ", ".join(map(layer_name, functions))

    def access(self, csc: InEdges | None, source: NodeTable, fits: bool) -> str:
        return ROWS

    def cost(self, source: NodeTable) -> tuple[int, int]:
        return 3 * widest(self.functions, source), 0

    def run(self, nodes: NodeRange | None, x_src: Tensor, x_dst: Tensor, access: str) -> Tensor:
        if self.copies:
            x_dst = x_dst.clone()
        rows: Tensor = apply_functions(self.functions, x_dst)
        return rows


def apply_functions(functions: Any, x: Any) -> Any:
    """Returns the result of functions, one after the other."""
    for each in functions:
        x = each(x)
    return x


def apply_in_place(functions: Any, x: Tensor) -> Tensor:
    """Returns the same for rows that nothing else has, which may be overwritten.

    Functions run on some rows at a time, whose results stay in a CPU's caches: for new rows of all
    nodes the system takes longer to make pages than functions to write them.
    """
    step = max(1, _CACHED_BYTES // max(1, x[:1].numel() * x.element_size()))
    if not functions or x.is_cuda or step >= len(x):
        result: Tensor = apply_functions(functions, x)
        return result
    out = x
    for first in range(0, len(x), step):
        rows = apply_functions(functions, x[first : first + step])
        if rows.shape[1:] != out.shape[1:] or rows.dtype != out.dtype:
            out = rows.new_empty((len(x), *rows.shape[1:]))
        out[first : first + step] = rows
    return out


class BlockLayer:
    """A function ``f(block, x)`` or ``f(block, x_src, x_dst)``, and functions of its rows."""

    def __init__(self, function: Any, functions: list[Callable[[Any], Any]]) -> None:
        self.function, self.functions = function, functions
        self.arguments = count_arguments(function)
        self.name = layer_name(function)
        if self.arguments not in (2, 3):
            raise TypeError(
                "model: expected layers f(block, x), f(block, x_src, x_dst) or f(x), got "
                f"{describe(function)} with {self.arguments} arguments"
            )

    def access(self, csc: InEdges | None, source: NodeTable, fits: bool) -> str:
        return FIRST if self.arguments == 2 else APART

    def cost(self, source: NodeTable) -> tuple[int, int]:
        row = widest([self.function, *self.functions], source)
        # A layer of somebody's own may write a row for each edge.
        return 3 * row, row + 16

    def run(self, nodes: NodeRange | None, x_src: Tensor, x_dst: Tensor, access: str) -> Tensor:
        assert nodes is not None
        bipartite = self.arguments == 3
        block = nodes.block()
        rows = self.function(block, x_src, x_dst) if bipartite else self.function(block, x_src)
        if not isinstance(rows, torch.Tensor):
            raise TypeError(f"{self.name}: expected a tensor from the layer, got {describe(rows)}")
        result: Tensor = apply_functions(self.functions, rows)
        return result
