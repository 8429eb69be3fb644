"""A run of a model in which each layer of PyG computes slices of a batch."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch.nn.modules import batchnorm, instancenorm
from torch_geometric.nn import MessagePassing, norm
from torch_geometric.nn import conv as layers
from torch_geometric.nn.models import JumpingKnowledge

from pygsampler.pyg.batch_slices import BatchSlices, EdgeGroups, LayerEdges
from pygsampler.pyg.fused_layers import FusedLayer, fused_layer
from pygsampler.pyg.node_rows import NodeRows, Reach, first_rows, plain_tensors, rows_of
from pygsampler.pyg.table_rows import gather_rows

__all__ = [
    "LayerForward",
    "LayerPlan",
    "LayerRun",
    "RestartRun",
    "UnknownLayerError",
    "parameter_names",
    "probe_settings",
    "uses_statistics",
]

# Ways of layers with a forward of their own: on rows of sources and of destinations, on the former
# alone, of which the result's first rows are taken, or on all nodes and edges of a batch.
PAIR, SQUARE, ALL = "pair", "square", "all"
_WAYS: dict[type, str] = {
    layers.EdgeConv: PAIR,
    layers.GATConv: PAIR,
    layers.GATv2Conv: PAIR,
    layers.GINConv: PAIR,
    layers.GINEConv: PAIR,
    layers.GraphConv: PAIR,
    layers.PNAConv: SQUARE,
    layers.RGCNConv: PAIR,
    layers.SAGEConv: PAIR,
    layers.TransformerConv: PAIR,
}
_SAID = {
    PAIR: "by its own forward, on (x_source, x_target)",
    SQUARE: "by its own forward, on the rows of its sources",
    ALL: "by its own forward, on all nodes of the batch",
}
# Norms that take a mean of running ones in evaluation, and all whose result for a row may depend
# on others. PyG's BatchNorm has one of torch's.
_RUNNING = batchnorm._BatchNorm, instancenorm._InstanceNorm
_BY_ROW = norm.MessageNorm, norm.BatchNorm, norm.HeteroLayerNorm
_STATISTICS = (
    *_RUNNING,
    *(each for each in map(norm.__dict__.get, norm.__all__) if isinstance(each, type)),
)


def _certain_way(module: Any) -> str | None:
    """Returns how a layer's own forward runs on slices, None where nobody knows."""
    return _WAYS.get(type(module)) if module.flow == "source_to_target" else None


class RestartRun(Exception):
    """A run that has to begin again, with a row for each node up to the layer ``most``."""

    def __init__(self, most: int) -> None:
        super().__init__(most)
        self.most = most


class UnknownLayerError(Exception):
    """A layer of which nobody knows how it may run."""


def may_use_statistics(module: Any) -> bool:
    """True if a norm's result for a row depends on other rows, in training at least."""
    return isinstance(module, _STATISTICS) and not isinstance(module, _BY_ROW)


def uses_statistics(module: Any, training: bool) -> bool:
    """True if a norm's result for a row depends on other rows."""
    if not may_use_statistics(module):
        return False
    if isinstance(module, _RUNNING):
        return training or module.running_mean is None
    return not isinstance(module, norm.LayerNorm) or bool(module.mode == "graph")


@contextmanager
def replaced_forwards(forwards: Iterable[tuple[Any, Any]]) -> Iterator[None]:
    """Gives modules, for a while, other forwards, so that their hooks are called.

    The next pair is asked for when the one before has been replaced: a layer that a model has twice
    is wrapped twice.
    """
    before = []
    try:
        for module, forward in forwards:
            before.append((module, module.__dict__.get("forward")))
            module.__dict__["forward"] = forward
        yield
    finally:
        for module, own in reversed(before):
            if own is None:
                del module.__dict__["forward"]
            else:
                module.__dict__["forward"] = own


@contextmanager
def probe_settings(model: torch.nn.Module, keep_numbers: bool = False) -> Iterator[None]:
    """Evaluation without gradients, after which flags and torch's random numbers are as before."""
    flags = [(module, module.training) for module in model.modules()]
    devices = {each.device for each in model.parameters() if each.is_cuda}
    try:
        with torch.no_grad(), torch.random.fork_rng(list(devices), enabled=not keep_numbers):
            model.eval()
            yield
    finally:
        for module, training in flags:
            module.training = training


class LayerPlan(NamedTuple):
    """A call of a layer: the hops of its sources, and whether each of these got a row.

    ``trimmed`` has the hops that degrees were counted in, and ``computation`` is a fused layer, or
    the way in which the layer's own forward ran.
    """

    depth: int
    is_square: bool
    trimmed: int | None
    computation: Any


class LayerRun:
    """A call of a model, whose layers it replaces meanwhile.

    In a model of PyG layers are numbered, and x are plain tensors; in other models x are
    ``NodeRows``, which know the rows of a layer.
    """

    def __init__(
        self,
        owner: Any,
        slices: BatchSlices,
        basic: bool,
        trims: bool,
        depth: int,
        most: int,
        probe: bool | None = None,
    ) -> None:
        """Prepares a run whose first layer takes ``depth`` hops.

        ``most`` is the last layer that gives a row for each node, and ``probe`` the model's flag
        for training where layers are only looked at.
        """
        self.owner, self.slices, self.basic, self.trims = owner, slices, basic, trims
        self.depth, self.most, self.probe = depth, most, probe
        self.training = owner.training if probe is None else probe
        self.calls, self.lowest = 0, depth
        # For a compiler, which asks for it by a list: how each call of a layer runs, and what the
        # result is. Tensors of different reaches may meet, a batch may not tell how a layer runs,
        # and a layer may be called in a way that is not followed.
        self.plans: list[LayerPlan] | None = None
        self.result: Any = None
        self.is_mixed, self.is_decided = False, True
        self.foreign: str | None = None

    @staticmethod
    def is_unknown(module: Any) -> bool:
        """True if a layer is neither replaced nor one that runs on slices for sure."""
        return _certain_way(module) is None and isinstance(fused_layer(module), str)

    def seeds(self, call: Any) -> Any:
        """Returns the model's result for the seeds."""
        with replaced_forwards(self._forwards()):
            if self.basic:
                out = call(call.x)
                return out[: self.slices.nodes[None][0]]
            x: Any = call.x
            if self.slices.is_hetero:
                x = {kind: self._first_rows(kind, each) for kind, each in x.items()}
            else:
                x = self._first_rows(None, x)
            out = call(x)
        if self.plans is not None:
            self.result = rows_of(out)
        return first_rows(out)

    def _first_rows(self, kind: Any, x: torch.Tensor) -> NodeRows:
        reach = Reach(kind, self.slices.nodes[kind], self.depth, self)
        return NodeRows.of_rows(x[: reach.num_rows], reach)

    def _modules(self) -> Iterator[tuple[str, Any]]:
        """Yields what may be replaced."""
        model = self.owner._model
        if not self.basic:
            yield from model.named_modules()
            return
        for number, layer in enumerate(model.convs):
            yield f"convs.{number}", layer
        if hasattr(model, "jk"):
            yield "jk", model.jk

    def _forwards(self) -> Iterator[tuple[Any, Any]]:
        """Yields layers with a forward of ours, which calls their hooks."""
        for name, module in self._modules():
            method: Any = None
            if isinstance(module, MessagePassing):
                method = self._layer
            elif isinstance(module, JumpingKnowledge):
                method = self._jump
            elif not self.basic and uses_statistics(module, self.training):
                method = self._statistics
            if method is not None:
                yield module, functools.partial(method, name, module, module.forward)

    def _jump(self, name: str, module: Any, forward: Any, xs: Any, *more: Any) -> Any:
        """Gives jumping knowledge the rows that all its inputs have."""
        if self.basic:
            least = min(map(len, xs))
            return forward([each[:least] for each in xs], *more)
        reach = min((each._reach for each in xs), key=lambda reach: reach.depth)
        self.is_mixed = True
        out = forward([each.plain(reach.num_rows) for each in xs], *more)
        return NodeRows.of_rows(out, reach)

    def _statistics(self, name: str, module: Any, forward: Any, x: Any, *more: Any) -> Any:
        """Runs a norm that takes all rows there are."""
        if not isinstance(x, NodeRows):
            return forward(x, *more)
        if not x._reach.is_full and not self.slices.by_block:
            raise RestartRun(self.calls - 1)
        return NodeRows.of_rows(forward(x.plain(), *plain_tensors(more)), x._reach)

    def _layer(self, name: str, module: Any, forward: Any, *args: Any, **kwargs: Any) -> Any:
        name = name or type(module).__name__
        found = _arguments(forward, args, kwargs)
        groups = None if found is None else self.slices.find(found[1])
        if self.basic:
            if found is None or groups is None:
                raise NotImplementedError(
                    f"{name}: expected the batch's own edge_index, got others, as a hook may make "
                    "them; call the model itself"
                )
            return self._numbered(name, module, forward, groups, found[0], found[2])
        nodes = [each for each in (args, kwargs) if _has_rows(each)]
        if not nodes:
            # A layer within another.
            return forward(*args, **kwargs)
        number, self.calls = self.calls, self.calls + 1
        x = found[0] if found is not None else None
        pair = x if isinstance(x, (tuple, list)) else (x, x)
        fits = len(pair) == 2 and all(isinstance(each, NodeRows) for each in pair)
        if found is None or groups is None or not fits or found[3]:
            return self._foreign(name, module, forward, number, args, kwargs)
        source, target = pair
        reaches = source._reach, target._reach
        if tuple(reach.kind for reach in reaches) != groups.types:
            return self._foreign(name, module, forward, number, args, kwargs)
        depth = min(reach.depth for reach in reaches)
        shrinks = number > self.most and not self.slices.by_block
        if shrinks and any(uses_statistics(each, self.training) for each in module.modules()):
            raise RestartRun(number)
        if number <= self.most:
            if not all(reach.is_full for reach in reaches):
                raise RestartRun(number)
            edges = groups.all_rows(depth)
        else:
            if depth == 0:
                raise self._too_deep()
            edges = groups.layer(depth)
            depth -= 1
        rows = source.plain(edges.sources)
        ends = None if source is target else target.plain(edges.targets)
        out = self._compute(name, module, forward, rows, ends, edges, found[2], number)
        self.lowest = min(self.lowest, depth)
        return NodeRows.of_rows(out, Reach(groups.types[1], groups.targets, depth, self))

    def _too_deep(self) -> Exception:
        if self.depth < self.slices.hops:
            return RestartRun(self.most)
        hops = self.slices.hops
        return ValueError(
            f"model: expected at most {hops} layers, one after the other, for a batch of {hops} "
            "hops, got more; sample as many hops as there are layers, or call the model itself"
        )

    def _numbered(
        self, name: str, module: Any, forward: Any, groups: EdgeGroups, x: Any, extras: Any
    ) -> torch.Tensor:
        number, self.calls = self.calls, self.calls + 1
        depth = self.depth - number
        # PyG trims the outermost hops, be there layers for them or not.
        trimmed = self.slices.hops - number if self.trims else None
        if number > self.most:
            edges = groups.layer(depth)
        else:
            edges = groups.all_rows(self.slices.hops if trimmed is None else trimmed)
        edges.trimmed = trimmed
        rows = x if len(x) == edges.sources else x[: edges.sources]
        return self._compute(name, module, forward, rows, None, edges, extras, number)

    def _foreign(
        self, name: str, module: Any, forward: Any, number: int, args: Any, kwargs: Any
    ) -> Any:
        """Runs a layer as it is on inputs that are not sliced: on all rows."""
        nodes = list(_all_rows((args, kwargs)))
        by_block = self.slices.by_block
        if by_block or not all(each._reach.is_full for each in nodes):
            if number > self.most and not by_block:
                raise UnknownLayerError if self.probe is None else RestartRun(number)
            raise NotImplementedError(
                f"{name}: expected x and the batch's own edge_index, got others; leave trimming "
                "(trim_to_layer) to blockwise, and changed edges to a transform of the loader, or "
                "run the layers on the slices of pygsampler.pyg.layers(batch)"
            )
        self.foreign = name
        self._say(name, _SAID[ALL], "it takes more than x and the batch's edge_index")
        out = forward(*plain_tensors(args), **plain_tensors(kwargs))
        last = nodes[-1]._reach
        if isinstance(out, torch.Tensor) and len(out) == last.num_rows:
            return NodeRows.of_rows(out, last)
        return out

    def _note(self, edges: LayerEdges, is_square: bool, computation: Any) -> None:
        if self.plans is not None:
            self.plans.append(LayerPlan(edges.depth, is_square, edges.trimmed, computation))

    def _say(self, name: str, runs: str, reason: str) -> None:
        self.owner._lines[name] = runs, reason

    def _compute(
        self,
        name: str,
        module: Any,
        forward: Any,
        x: torch.Tensor,
        target: torch.Tensor | None,
        edges: LayerEdges,
        extras: dict[str, torch.Tensor],
        number: int,
    ) -> torch.Tensor:
        """The layer's result for the destinations: replaced, or by its own forward."""
        more = "a row for each node, for a norm's statistics" if number <= self.most else ""
        layer: Any = "a forward of its own"
        if not _is_patched(module, forward):
            layer = fused_layer(module)
        obstacle = layer
        if isinstance(layer, FusedLayer):
            obstacle = _input_obstacle(module, layer, x, target, edges, extras)
            if obstacle is None:
                rows = x if layer.reads_table(module, edges) else gather_rows(x)
                try:
                    out = layer.run(module, rows, target, edges, **extras)
                except NotImplementedError as error:
                    obstacle = str(error)
                else:
                    self._say(name, layer.name, more)
                    self._note(edges, bool(more), layer)
                    return out
        own = LayerForward(forward, gather_rows(x), target, edges, extras)
        if number <= self.most:
            self._say(name, _SAID[ALL], obstacle)
            self._note(edges, True, ALL)
            return own.run(ALL)
        way = _certain_way(module)
        if way == PAIR and edges.one_type is False and getattr(module, "add_self_loops", False):
            way = None
        if way is None:
            way = self._way(name, own, edges, number)
        if way is None:
            self.is_decided = False
            return own.padded()
        self._say(name, _SAID[way], obstacle)
        self._note(edges, False, way)
        return own.run(way)

    def _way(self, name: str, layer: LayerForward, edges: LayerEdges, number: int) -> str | None:
        """Returns how a layer runs that is compared with itself on all edges of a batch, once.

        None where this batch does not tell, and of blocks where the layer needs all rows.
        """
        if not edges.edges:
            return None
        key = name, edges.edges == edges.groups.hops[-1]
        way: str | None = self.owner._modes.get(key)
        if way is None:
            if self.probe is None:
                raise UnknownLayerError
            way = self.owner._modes[key] = layer.compare()
        if way == ALL and self.slices.by_block:
            return None
        if way == ALL:
            if self.probe is None:
                raise UnknownLayerError
            raise RestartRun(number)
        return way


class LayerForward:
    """A layer's own forward, on slices of a batch in one way or the other."""

    def __init__(
        self,
        forward: Callable[..., Any],
        x: torch.Tensor,
        target: torch.Tensor | None,
        edges: LayerEdges,
        extras: dict[str, torch.Tensor],
    ) -> None:
        self.forward, self.x, self.target = forward, x, target
        self.edges, self.extras = edges, extras

    def run(self, way: str) -> torch.Tensor:
        """Returns the rows of the destinations."""
        edges = self.edges
        extras = {name: each[: edges.edges] for name, each in self.extras.items()}
        if self.target is not None:
            x: Any = self.x, self.target
        elif way == PAIR:
            x = self.x, self.x[: edges.targets]
        else:
            x = self.x
        if way == SQUARE and self.target is None:
            # Square edges have as many destinations as sources.
            square = LayerEdges(edges.groups, edges.sources, edges.sources, edges.edges, True)
            edge_index = square.edge_index()
        else:
            edge_index = edges.edge_index()
        out: torch.Tensor = self.forward(x, edge_index=edge_index, **extras)
        return out[: edges.targets]

    def padded(self) -> torch.Tensor:
        """Returns the same of all nodes and edges, with any rows for nodes that x lacks."""
        edges = self.edges
        counted = edges.counted()
        x: Any = _padded(self.x, counted.sources)
        if self.target is not None:
            x = x, _padded(self.target, counted.targets)
        extras = {name: each[: counted.edges] for name, each in self.extras.items()}
        out: torch.Tensor = self.forward(x, edge_index=counted.edge_index(), **extras)
        return out[: edges.targets]

    def compare(self) -> str:
        """Returns the way that gives what all nodes and edges give, or ``ALL``."""
        expected = self.padded()
        for way in (PAIR, SQUARE) if self.target is None else (PAIR,):
            try:
                out = self.run(way)
            except (
                *(TypeError, ValueError, AttributeError, RuntimeError, IndexError),
                *(AssertionError, KeyError, NotImplementedError),
            ):
                continue
            if out.shape == expected.shape and _is_close(out, expected):
                return way
        return ALL


def _is_close(out: torch.Tensor, expected: torch.Tensor) -> bool:
    if not expected.is_floating_point():
        return bool(torch.equal(out, expected))
    # The order of sums differs.
    bound = 1e3 * torch.finfo(expected.dtype).eps
    most = expected[expected.isfinite()].abs().max() if expected.numel() else expected.sum()
    return torch.allclose(out, expected, rtol=bound, atol=bound * float(most), equal_nan=True)


def _padded(x: torch.Tensor, count: int) -> torch.Tensor:
    missing = count - len(x)
    if missing <= 0:
        return x
    if not len(x):
        return x.new_ones((count, *x.shape[1:]))
    more = torch.arange(missing, device=x.device) % len(x)
    return torch.cat([x, x.index_select(0, more)])


def _is_patched(module: Any, forward: Any) -> bool:
    """True if somebody has assigned another forward to a layer."""
    return getattr(forward, "__func__", None) is not type(module).forward


def _input_obstacle(
    module: Any,
    layer: FusedLayer,
    x: torch.Tensor,
    target: torch.Tensor | None,
    edges: LayerEdges,
    extras: dict[str, torch.Tensor],
) -> str | None:
    if len(x.shape) != 2 or not x.dtype.is_floating_point:
        return f"x of shape {tuple(x.shape)}, {x.dtype}"
    if not layer.extras.issuperset(extras):
        return ", ".join(sorted(set(extras) - layer.extras))
    if not edges.one_type and (
        not layer.bipartite or getattr(module, "add_self_loops", False) or target is None
    ):
        return "self loops between nodes of two types"
    return None


def _arguments(
    forward: Any, args: Any, kwargs: Any
) -> tuple[Any, Any, dict[str, torch.Tensor], bool] | None:
    """x, edge_index, tensors of edges, and whether there is more; None where these are not there.

    Tensors of edges are known by their names, ``edge_``.
    """
    names = parameter_names(forward)
    if names[:2] == ("x", "edge_index") and len(args) == 2 and not kwargs:
        return args[0], args[1], {}, False
    found = {**dict(zip(names, args, strict=False)), **kwargs}
    if "x" not in found or "edge_index" not in found or len(args) > len(names):
        return None
    x, edge_index = found.pop("x"), found.pop("edge_index")
    extras, more = {}, False
    for name, value in found.items():
        if name.startswith("edge_") and isinstance(value, torch.Tensor):
            extras[name] = value
        elif value is not None:
            more = True
    return x, edge_index, extras, more


def parameter_names(forward: Any) -> tuple[str, ...]:
    """Returns the names of the arguments that a layer's forward takes by place."""
    function = getattr(forward, "__func__", forward)
    return _parameter_names(function)[function is not forward :]


@functools.lru_cache(maxsize=256)
def _parameter_names(function: Any) -> tuple[str, ...]:
    kinds = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = inspect.signature(function).parameters.values()
    return tuple(each.name for each in parameters if each.kind in kinds)


def _all_rows(value: Any) -> Iterator[NodeRows]:
    if isinstance(value, NodeRows):
        yield value
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from _all_rows(each)
    elif isinstance(value, dict):
        yield from _all_rows(list(value.values()))


def _has_rows(value: Any) -> bool:
    return next(_all_rows(value), None) is not None
