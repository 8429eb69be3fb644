"""Tensors whose rows are nodes of a batch: they follow a model that works row by row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

__all__ = ["NodeRows", "Reach", "first_rows", "first_rows_like", "plain_tensors", "rows_of"]

# Functions that give a row for each row, in place or not.
_NAMES = """
abs add addcdiv addcmul addmm alpha_dropout atan bfloat16 bilinear bool celu clamp clamp_max
clamp_min clone contiguous cos cpu cuda detach div double dropout elu embedding eq erf exp exp2
expm1 feature_dropout fill float floor floor_divide ge gelu gt half hardshrink hardsigmoid
hardswish hardtanh hypot int isinf isnan le leaky_relu lerp linear log log1p log2 logical_and
logical_not logical_or logsigmoid long lt masked_fill matmul maximum minimum mish mul multiply
nan_to_num ne neg negative one_hot ones_like pow prelu rand_like randn_like reciprocal relu relu6
round rrelu rsqrt selu sigmoid sign silu sin softplus softshrink softsign sqrt square sub subtract
tanh tanhshrink threshold to true_divide trunc type type_as where xlogy zero zeros_like
"""
_BY_ROW = frozenset(_NAMES.split())
# Functions whose other tensors have no rows of nodes.
_FIRST_ALONE = frozenset({"linear", "matmul", "embedding", "bilinear", "prelu", "layer_norm"})
# The position of the dimension that functions work along, and its default; None: all dimensions.
_DIMENSION: dict[str, tuple[int, int | None]] = {
    "all": (1, None),
    "amax": (1, None),
    "amin": (1, None),
    "any": (1, None),
    "argmax": (1, None),
    "argmin": (1, None),
    "cat": (1, 0),
    "chunk": (2, 0),
    "concat": (1, 0),
    "cumsum": (1, None),
    "flatten": (1, 0),
    "glu": (1, -1),
    "log_softmax": (1, None),
    "logsumexp": (1, None),
    "max": (1, None),
    "mean": (1, None),
    "min": (1, None),
    "norm": (2, None),
    "normalize": (2, 1),
    "prod": (1, None),
    "softmax": (1, None),
    "split": (2, 0),
    "squeeze": (1, None),
    "stack": (1, 0),
    "sum": (1, None),
    "unbind": (1, 0),
    "unsqueeze": (1, None),
}
_REDUCTIONS = frozenset({"sum", "mean", "max", "min", "prod", "amax", "amin", "all", "any"})
# Operators in place, and with the tensor on the right.
_OPERATORS = {
    f"{way}{name}": {"truediv": "div"}.get(name, name)
    for name in ("add", "sub", "mul", "div", "truediv", "pow", "matmul")
    for way in ("i", "r", "")
}
# Functions that need no rows.
_QUERIES = """
__format__ __len__ __repr__ dim element_size get_device is_complex is_contiguous is_floating_point
ndimension new_empty new_full new_ones new_tensor new_zeros numel register_hook requires_grad_
retain_grad size stride
"""
_ABOUT = frozenset(_QUERIES.split())


class Reach(NamedTuple):
    """The rows that a tensor has of the nodes of a type: those of the first ``depth`` hops.

    They are exact; of nodes behind them nothing was computed. ``counts`` has the number of nodes
    after each hop. ``run`` learns of functions whose tensors reach differently far.
    """

    kind: str | None
    counts: list[int]
    depth: int
    run: Any

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return self.counts[self.depth]

    @property
    def is_full(self) -> bool:
        """True if all nodes of the batch have a row."""
        return self.depth == len(self.counts) - 1


class RowsOf(NamedTuple):
    """Stands for rows of nodes of a type in a result."""

    kind: str | None


class NodeRows(torch.Tensor):
    """A tensor with a row for each of the first nodes of a batch.

    Functions that work row by row give such tensors again; of two that reach differently far the
    rows that both have are used, since no layer after them needs others. Functions that mix rows
    are refused where rows are missing.
    """

    _reach: Reach
    # The dimension of the nodes: 1 after torch.stack of several.
    _axis: int

    @classmethod
    def of_rows(cls, x: torch.Tensor, reach: Reach, axis: int = 0) -> NodeRows:
        """Returns x as such a tensor."""
        made = x.as_subclass(cls)
        made._reach, made._axis = reach, axis
        return made

    def plain(self, count: int | None = None) -> torch.Tensor:
        """Returns the tensor itself, or its first rows."""
        with torch._C.DisableTorchFunctionSubclass():
            x = self.as_subclass(torch.Tensor)
            if count is not None and count < x.shape[self._axis]:
                x = x.narrow(self._axis, 0, count)
            return x

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        name: str = getattr(func, "__name__", "")
        if name == "__get__":
            attribute = func.__self__.__name__
            if attribute not in ("T", "mT", "H", "mH", "data"):
                with torch._C.DisableTorchFunctionSubclass():
                    return func(*args, **kwargs)
            name = attribute
        elif name in _ABOUT:
            with torch._C.DisableTorchFunctionSubclass():
                return func(*args, **kwargs)
        nodes = list(_node_rows((args, kwargs)))
        first = nodes[0]
        if name == "__getitem__" and len(nodes) == 1 and _within(args[1], first):
            return func(first.plain(), *args[1:])
        least = min((each._reach for each in nodes), key=lambda reach: reach.depth)
        if len(nodes) > 1 and any(each._reach.depth != least.depth for each in nodes):
            least.run.is_mixed = True
        one_kind = all(each._reach.kind == least.kind for each in nodes)
        axis = _result_axis(name, args, kwargs, nodes) if one_kind else None
        if axis is None:
            if not all(each._reach.is_full for each in nodes):
                raise NotImplementedError(
                    f"blockwise: expected a model that works node by node between its layers, got "
                    f"torch's {name!r}, which needs rows of nodes that no layer computes; run the "
                    "model itself, or its layers on the slices of pygsampler.pyg.layers(batch)"
                )
            args, kwargs = _plain((args, kwargs), None)
            return func(*args, **kwargs)
        args, kwargs = _plain((args, kwargs), least.num_rows)
        return _wrapped(func(*args, **kwargs), least, axis, f"{name!r} of {tuple(first.shape)}")


def first_rows(value: Any) -> Any:
    """Returns a result of a model with the rows of the seeds only, as plain tensors."""
    return _each(value, lambda x: x.plain(x._reach.counts[0]))


def rows_of(value: Any) -> Any:
    """Returns a result of a model with ``RowsOf`` in the place of its rows of nodes."""
    return _each(value, lambda x: RowsOf(x._reach.kind))


def first_rows_like(value: Any, pattern: Any, seeds: dict[str | None, int]) -> Any:
    """Returns a result of plain tensors with the rows of the seeds only.

    ``pattern`` is ``rows_of`` another result of the model.
    """
    if isinstance(pattern, RowsOf):
        return value[: seeds[pattern.kind]]
    if isinstance(value, dict):
        return type(value)(
            {key: first_rows_like(each, pattern[key], seeds) for key, each in value.items()}
        )
    if isinstance(value, (list, tuple)):
        parts = [first_rows_like(*both, seeds) for both in zip(value, pattern, strict=True)]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


def plain_tensors(value: Any) -> Any:
    """Returns the same with plain tensors."""
    return _each(value, lambda x: x.plain())


def _each(value: Any, change: Any) -> Any:
    if isinstance(value, NodeRows):
        return change(value)
    if isinstance(value, dict):
        return type(value)({key: _each(each, change) for key, each in value.items()})
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*[_each(each, change) for each in value])
    if isinstance(value, (list, tuple)):
        return type(value)([_each(each, change) for each in value])
    return value


def _plain(value: Any, count: int | None) -> Any:
    return _each(value, lambda x: x.plain(count))


def _node_rows(value: Any) -> Iterator[NodeRows]:
    if isinstance(value, NodeRows):
        yield value
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from _node_rows(each)
    elif isinstance(value, dict):
        yield from _node_rows(list(value.values()))


def _result_axis(name: str, args: Any, kwargs: Any, nodes: list[NodeRows]) -> int | None:
    """The dimension of nodes in a function's result, None where it mixes rows."""
    first, plain_name = nodes[0], name.strip("_")
    plain_name = _OPERATORS.get(plain_name, plain_name)
    if first._axis or any(each._axis for each in nodes):
        dims = _dimension(plain_name, args, kwargs, first)
        return 0 if plain_name in _REDUCTIONS and dims == [0] and len(nodes) == 1 else None
    dims_differ = any(each.dim() != first.dim() for each in nodes)
    if plain_name in ("data", "getitem"):
        return 0 if plain_name == "data" or _keeps_rows(args[1], first) else None
    if plain_name == "batch_norm":
        training = kwargs.get("training", args[5] if len(args) > 5 else False)
        return 0 if first._reach.is_full or not training else None
    if plain_name in ("view", "reshape", "unflatten"):
        shape = _shape(args[1:], kwargs)
        return 0 if shape is not None and _first_stays(shape, first) else None
    if plain_name in ("transpose", "swapaxes"):
        both = [*args[1:], *kwargs.values()]
        return 0 if all(dim % first.dim() for dim in both) else None
    if plain_name == "permute":
        order = _shape(args[1:], kwargs)
        return 0 if order is not None and order[0] in (0, -first.dim()) else None
    if plain_name == "layer_norm":
        shape = kwargs.get("normalized_shape", args[1] if len(args) > 1 else ())
        return 0 if len(shape) < first.dim() else None
    if plain_name in ("max", "min") and len(args) > 1 and isinstance(args[1], torch.Tensor):
        plain_name = "maximum"
    if plain_name in _DIMENSION:
        dims = _dimension(plain_name, args, kwargs, first)
        if plain_name == "stack" and dims == [0] and not dims_differ:
            return 1
        return 0 if dims and all(dims) and not dims_differ else None
    if plain_name in _BY_ROW and not dims_differ:
        inputs = args[0] if args else kwargs.get("input")
        others = nodes[1:]
        if plain_name in _FIRST_ALONE and (inputs is not first or others):
            return None
        if plain_name == "matmul":
            return 0 if args[1].dim() <= 2 <= first.dim() else None
        return 0
    return None


def _dimension(name: str, args: Any, kwargs: Any, first: NodeRows) -> list[int] | None:
    """The dimensions that a function works along, None: all, or what nobody knows."""
    if name not in _DIMENSION:
        return None
    place, default = _DIMENSION[name]
    dim = kwargs.get("dim", kwargs.get("start_dim", args[place] if len(args) > place else default))
    if dim is None or isinstance(dim, (bool, torch.Tensor)):
        return None
    most = first.dim() + (name in ("stack", "unsqueeze"))
    dims = [dim] if isinstance(dim, int) else list(dim)
    return [each % most for each in dims]


def _shape(args: Any, kwargs: Any) -> Any:
    found = args or tuple(kwargs.values())
    if len(found) == 1 and isinstance(found[0], (tuple, list)):
        found = tuple(found[0])
    return found if found and all(isinstance(each, int) for each in found) else None


def _first_stays(shape: Any, x: NodeRows) -> bool:
    size = 1
    for each in shape[1:]:
        size *= each
    count = x.shape[0]
    if shape[0] == -1:
        return size * count == x.numel() and size > 0 and count > 0
    return bool(shape[0] == count)


def _keeps_rows(index: Any, x: NodeRows) -> bool:
    """Returns True for an index of columns only."""
    if not isinstance(index, tuple):
        index = (index,)
    first = index[0] if index else None
    if isinstance(first, slice):
        return first == slice(None)
    return first is Ellipsis and len(index) <= x.dim() and None not in index[1:]


def _within(index: Any, x: NodeRows) -> bool:
    """Returns True if an index takes first rows that are all there: they are exact."""
    first = index[0] if isinstance(index, tuple) and index else index
    return (
        isinstance(first, slice)
        and first.start in (None, 0)
        and first.step in (None, 1)
        and isinstance(first.stop, int)
        and 0 <= first.stop <= x.shape[0]
        and not x._axis
    )


def _wrapped(result: Any, reach: Reach, axis: int, where: str) -> Any:
    if isinstance(result, torch.Tensor):
        if result.dim() <= axis or result.shape[axis] != reach.num_rows:
            raise NotImplementedError(
                f"blockwise: expected a row for each of {reach.num_rows} nodes of {where}, got "
                f"shape {tuple(result.shape)}; run the model itself, or its layers on "
                "the slices of pygsampler.pyg.layers(batch)"
            )
        return NodeRows.of_rows(result, reach, axis)
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return type(result)(*[_wrapped(each, reach, axis, where) for each in result])
    if isinstance(result, tuple) and type(result).__module__ == "torch.return_types":
        return type(result)([_wrapped(each, reach, axis, where) for each in result])
    if isinstance(result, (tuple, list)):
        return type(result)([_wrapped(each, reach, axis, where) for each in result])
    return result
