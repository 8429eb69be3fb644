"""``blockwise``: models of PyG that compute the rows of a batch that they need, and no others."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch.nn.parameter import UninitializedBuffer, UninitializedParameter
from torch_geometric.data import Data, HeteroData
from torch_geometric.nn import MessagePassing
from torch_geometric.nn.models.basic_gnn import BasicGNN

from pygsampler._batch.minibatch import MiniBatch
from pygsampler._engine.checks import describe
from pygsampler._ops.segments import is_compiling
from pygsampler.pyg.batch_slices import BatchSlices
from pygsampler.pyg.block_slices import BlockSlices
from pygsampler.pyg.compiled_run import PreparedRun, RunPlans
from pygsampler.pyg.fused_layers import fused_layer
from pygsampler.pyg.layer_run import (
    LayerRun,
    RestartRun,
    UnknownLayerError,
    may_use_statistics,
    probe_settings,
    uses_statistics,
)
from pygsampler.pyg.table_rows import TableRows, gather_rows, rows_of_batch

__all__ = ["blockwise", "layers"]

# A run that begins again does so with more rows; of layers that change nobody knows when to stop.
_MOST_RUNS = 4
_COUNTS = ("num_sampled_nodes_per_hop", "num_sampled_edges_per_hop")


class LayerReport(NamedTuple):
    """A line of a report: a layer, its class, how it runs, and why so."""

    layer: str
    kind: str
    runs: str
    reason: str


class ModelReport(tuple[LayerReport, ...]):
    """Lines on the layers of a model; ``str()`` has them as a table."""

    __slots__ = ()

    def __str__(self) -> str:
        lines = [LayerReport._fields, *self]
        widths = [max(len(line[column]) for line in lines) for column in range(4)]
        return "\n".join(
            "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        )


class Blockwise(torch.nn.Module):
    """A model of PyG that runs layer by layer on slices of a batch; ``blockwise`` makes it."""

    _model: torch.nn.Module

    def __init__(self, model: torch.nn.Module) -> None:
        training = model.training
        self.__dict__["_model"] = model
        super().__init__()
        # The very containers of the model: parameters, buffers and layers are the same, under the
        # same names, whoever replaces one.
        for name in ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set"):
            self.__dict__[name] = model.__dict__[name]
        self.training = training
        # The modes of layers that are compared with themselves, by name and whether all edges of a
        # batch are theirs; and, by training and blocks, the number of layers and the last layer
        # with a row for each node.
        self._modes: dict[tuple[str, bool], str] = {}
        self._facts: dict[tuple[bool, bool], tuple[int, int]] = {}
        self._is_ready = False
        self._parts: tuple[list[Any], list[tuple[int, Any]]] | None = None
        self._lines: dict[str, tuple[str, str]] = {}
        # For a compiler alone.
        self._plans = RunPlans()
        self._compiled: Callable[[PreparedRun], Any] | None = None

    @property
    def training(self) -> bool:
        """The flag of the model."""
        return self._model.training

    @training.setter
    def training(self, value: bool) -> None:
        self._model.training = value

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if "_model" not in self.__dict__:
                raise
            return getattr(self._model, name)

    def __repr__(self) -> str:
        return f"blockwise({self._model!r})"

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the state of the model."""
        return self._model.state_dict(*args, **kwargs)

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Loads a state into the model."""
        return self._model.load_state_dict(*args, **kwargs)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compiles the layers, and what the model does between them, at the next batches.

        Each batch is looked at and its edges are grouped before, as ever. The first batch of
        training, and the first of evaluation, runs without the compiler, and decides how layers
        run: call this again after a change of layers. ``torch.compile(module)`` does the same,
        with a break of the graph before the layers and one after them.

        Parameters
        ----------
        *args, **kwargs
            As for ``torch.compile``; ``dynamic=True`` unless said otherwise, so that one graph
            serves batches of all sizes.

        Raises
        ------
        NotImplementedError
            With PyTorch 2.3 and older, whose compilers know no operators of this package.
        """
        if not hasattr(torch.library, "register_autograd"):
            raise NotImplementedError(
                f"compile: expected PyTorch 2.4 or newer, got {torch.__version__}; call the module "
                "without compile()"
            )
        kwargs.setdefault("dynamic", True)
        self._plans = RunPlans()
        self._compiled = torch.compile(PreparedRun.result, *args, **kwargs)

    def __getstate__(self) -> dict[str, Any]:
        """Returns the state for copies and pickles, which are not compiled."""
        return {**self.__dict__, "_compiled": None, "_plans": RunPlans()}

    def explain(self) -> ModelReport:
        """Returns how each layer runs, and why; complete after the first batch."""
        lines = []
        for name, module in self._layers():
            layer = fused_layer(module)
            if name in self._lines:
                runs, reason = self._lines[name]
            elif isinstance(layer, str):
                runs, reason = "by its own forward", layer
            else:
                runs, reason = layer.name, ""
            lines.append(LayerReport(name, type(module).__name__, runs, reason))
        return ModelReport(lines)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the model's rows of the seeds.

        Parameters
        ----------
        *args
            A batch of a ``NeighborLoader``, or ``x, edge_index`` and the numbers by hop; behind
            them, and by name, what else the model takes. Or a ``MiniBatch`` alone, of whose blocks
            each layer takes one.
        num_sampled_nodes_per_hop, num_sampled_edges_per_hop : list or dict, by name
            As PyG's models take them, for ``x, edge_index``.
        table : tensor or Features [num_nodes, width], or a mapping of node types, by name
            The features of all nodes of the graph, for a batch without ``x``. A first layer of a
            PyG model that adds rows up before it maps them reads them there.

        Returns
        -------
        torch.Tensor, or what the model returns
            Each tensor with the rows of the seeds; of a ``MiniBatch`` those of its last block's
            destinations.
        """
        if is_compiling():
            # torch.compile of this module breaks its graph here, and compiles what is behind it.
            out = _ready_outside(self, args, kwargs)
            if not isinstance(out, PreparedRun):
                return out
            result = out.result()
            _end_outside(out)
            return result
        plans = None if self._compiled is None else self._plans
        out = self._ready(args, kwargs, plans)
        if self._compiled is not None and isinstance(out, PreparedRun):
            out.run.begin()
            try:
                return self._compiled(out)
            finally:
                out.run.end()
        return out

    def _ready(self, args: Any, kwargs: dict[str, Any], plans: RunPlans | None) -> Any:
        """Returns the result for a batch, or its run where that is a known one."""
        rest: Any
        counts = [kwargs.pop(name, None) for name in _COUNTS]
        batch, table = None, kwargs.pop("table", None)
        slices: BatchSlices
        if args and isinstance(args[0], (Data, HeteroData, MiniBatch)):
            batch, *rest = args
            if any(count is not None for count in counts):
                raise TypeError(f"{_COUNTS[0]}: expected none with a batch, which has them")
            hetero = isinstance(batch, HeteroData)
            if isinstance(batch, MiniBatch):
                _refuse_edge_values(rest, kwargs)
                blocks = BlockSlices(batch)
                slices, edge_index = blocks, blocks.edge_index
            else:
                edge_index = batch.edge_index_dict if hetero else batch.edge_index
                slices = BatchSlices.from_batch(batch, edge_index)
            if table is None:
                x = batch.x_dict if hetero else batch.x
            else:
                x = self._read(slices, table, batch)
            batch = None if slices.by_block else batch
        else:
            if table is not None:
                raise TypeError("table: expected a batch with it, whose ids name rows, got x")
            hetero = "x_dict" in kwargs or "edge_index_dict" in kwargs
            x, edge_index, rest = _inputs(list(args), kwargs)
            if None in counts:
                raise TypeError(
                    "batch: expected a Data or HeteroData of a NeighborLoader, or x, edge_index, "
                    f"{_COUNTS[0]}= and {_COUNTS[1]}=, got {describe(args[0] if args else None)}; "
                    "without hops there is nothing to leave out: call the model itself"
                )
            slices = BatchSlices(edge_index, *counts)
        if not isinstance(x, TableRows):
            slices.check_rows(x)
        if isinstance(self._model, torch.jit.ScriptModule):
            raise TypeError("model: expected one that was not scripted, got a ScriptModule")
        call = _Call(self._model, x, edge_index, rest, kwargs, batch)
        self._initialize(call)
        return self._run(slices, call, batch is None and not slices.by_block, plans)

    def _read(self, slices: BatchSlices, table: Any, batch: Any) -> Any:
        """Returns a table's rows of a batch's nodes; a layer that may read them itself does."""
        if isinstance(batch, MiniBatch):
            ids = batch.input_nodes
        else:
            ids = batch.n_id_dict if slices.is_hetero else batch.n_id
        slices.check_rows(ids)
        rows = rows_of_batch(table, ids)
        first: Any = self._model.convs[0] if self._is_basic() else None  # type: ignore[index]
        # Hooks see the tensors that a layer gets.
        hooked = first is None or first._forward_hooks or first._forward_pre_hooks
        return gather_rows(rows) if hooked else rows

    def _run(self, slices: BatchSlices, call: _Call, trimmed: bool, plans: RunPlans | None) -> Any:
        basic, key = self._is_basic(), (self.training, slices.by_block)
        facts = self._facts.get(key)
        trims = basic and trimmed
        if basic:
            convs: Any = self._model.convs
            if len(convs) > slices.hops:
                raise _too_many_layers(len(convs), slices.hops)
            most = -1
            if not slices.by_block:
                most = max(self._last_statistics(), most if facts is None else facts[1])
            first = len(convs)
            if any(self._is_unknown(number, conv) for number, conv in enumerate(convs)):
                first, most = self._probe(slices, call, basic, trims, most)
        elif any(each._backward_hooks or each._backward_pre_hooks for each in self.modules()):
            raise NotImplementedError(
                "model: expected no full backward hooks on modules of a model of one's own, whose "
                "tensors they replace, got some; use forward hooks, or run the model itself"
            )
        elif facts is None:
            first, most = self._probe(slices, call, basic, trims, -1)
        else:
            first, most = facts
            first = min(first, slices.hops) if most < 0 else slices.hops
        for _ in range(_MOST_RUNS):
            run = LayerRun(self, slices, basic, trims, first, most)
            try:
                if plans is None:
                    return run.seeds(call)
                prepared = plans.prepare(run, call)
                if prepared is not None:
                    return prepared
                run.plans = []
                out = run.seeds(call)
                plans.add(run, call)
                return out
            except RestartRun as restart:
                first, most = slices.hops, max(most, restart.most)
                self._facts[key] = first, most
            except UnknownLayerError:
                first, most = self._probe(slices, call, basic, trims, most)
        raise self._restless()

    def _probe(
        self, slices: BatchSlices, call: _Call, basic: bool, trims: bool, most: int
    ) -> tuple[int, int]:
        """Runs the model without gradients, which says how its layers may run.

        Returns how many hops the first layer takes, and the last layer that has to give a row for
        each node.
        """
        training, hops = self.training, slices.hops
        first: int = len(self._model.convs) if basic else hops  # type: ignore[arg-type]
        may_shrink = not basic
        with probe_settings(self._model):
            # Each layer may be the first to need all rows.
            for _ in range(_MOST_RUNS + len(list(self._layers()))):
                run = LayerRun(self, slices, basic, trims, first, most, training)
                try:
                    run.seeds(call)
                except RestartRun as restart:
                    may_shrink = may_shrink and first == hops
                    first, most = first if basic else hops, max(most, restart.most)
                    continue
                if not run.calls:
                    raise ValueError(
                        "model: expected calls of layers of PyG (MessagePassing) in its forward, "
                        "got none; call the model itself"
                    )
                if not may_shrink or most >= 0 or not run.lowest:
                    self._facts[training, slices.by_block] = first, most
                    return first, most
                # Hops that no layer needs are left out, and layers looked at once more.
                first -= run.lowest
        raise self._restless()

    def _restless(self) -> RuntimeError:
        return RuntimeError(
            "model: expected layers that are called in the same order each time, got others; run "
            "the model itself, or its layers on the slices of pygsampler.pyg.layers(batch)"
        )

    def _initialize(self, call: _Call) -> None:
        """Runs the model as it is where parameters wait for their shapes."""
        lazy = UninitializedParameter, UninitializedBuffer
        if self._is_ready:
            return
        self._is_ready = True
        if any(isinstance(each, lazy) for each in self._model.parameters()):
            with probe_settings(self._model, keep_numbers=True):
                call(gather_rows(call.x))

    def _is_basic(self) -> bool:
        """True if the model is PyG's, with a forward that works row by row between layers."""
        model: Any = self._model
        return (
            isinstance(model, BasicGNN)
            and type(model).forward is BasicGNN.forward
            and "forward" not in model.__dict__
            and (model.act is None or type(model.act).__module__.startswith("torch.nn"))
        )

    def _layers(self) -> Iterator[tuple[str, Any]]:
        for name, module in self._model.named_modules():
            if isinstance(module, MessagePassing):
                yield name or type(module).__name__, module

    def _is_unknown(self, number: int, conv: Any) -> bool:
        if not LayerRun.is_unknown(conv):
            return False
        return self._modes.keys().isdisjoint({(f"convs.{number}", all_) for all_ in (False, True)})

    def _last_statistics(self) -> int:
        """The last layer of a model of PyG whose rows a norm takes statistics of, or -1."""
        model: Any = self._model
        parts = [*model.convs, *(model.norms or ())]
        if self._parts is None or self._parts[0] != parts:
            # Looked for once, since a step on a GPU waits for Python.
            count, norms = len(model.convs), []
            for number, part in enumerate(parts):
                if number == 2 * count - 1 and model.jk_mode is None:
                    continue
                found = [each for each in part.modules() if may_use_statistics(each)]
                norms += [(number % count, each) for each in found]
            self._parts = parts, norms
        return max(
            (n for n, each in self._parts[1] if uses_statistics(each, self.training)), default=-1
        )


@torch.compiler.disable  # type: ignore[untyped-decorator]
def _ready_outside(model: Blockwise, args: Any, kwargs: Any) -> Any:
    """Returns a batch's run, which has begun, or the result of a first batch."""
    out = model._ready(args, dict(kwargs), model._plans)
    if isinstance(out, PreparedRun):
        out.run.begin()
    return out


@torch.compiler.disable  # type: ignore[untyped-decorator]
def _end_outside(prepared: PreparedRun) -> None:
    prepared.run.end()


class _Call:
    """A call of a model with features in the place of those of the batch."""

    def __init__(
        self, model: Any, x: Any, edge_index: Any, args: Any, kwargs: Any, batch: Any
    ) -> None:
        self.model, self.x, self.edge_index = model, x, edge_index
        self.args, self.kwargs = args, kwargs
        self.batch = batch if batch is not None and _takes_batch(model) else None

    def __call__(self, x: Any) -> Any:
        args, kwargs = self.arguments(x)
        return self.model(*args, **kwargs)

    def arguments(self, x: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Returns what the model takes with features x."""
        if self.batch is None:
            return (x, self.edge_index, *self.args), self.kwargs
        batch = copy.copy(self.batch)
        if isinstance(x, dict):
            for kind, rows in x.items():
                batch[kind].x = rows
            for kind, edges in self.edge_index.items():
                batch[kind].edge_index = edges
        else:
            batch.x, batch.edge_index = x, self.edge_index
        return (batch, *self.args), self.kwargs


def _refuse_edge_values(args: list[Any], kwargs: dict[str, Any]) -> None:
    found = [name for name in kwargs if name.startswith("edge_")]
    if args or found:
        raise TypeError(
            f"{found[0] if found else 'arguments'}: expected no more arguments with a "
            "MiniBatch, whose blocks have the edges, got some; edge values need a batch of "
            "NeighborLoader"
        )


def _takes_batch(model: Any) -> bool:
    """True if a model's forward takes one argument."""
    function = getattr(model.forward, "__func__", model.forward)
    names, required, more = _signature(function)
    bound = function is not model.forward
    return not more and names - bound == 1 == required - bound


@functools.lru_cache(maxsize=256)
def _signature(function: Any) -> tuple[int, int, bool]:
    """The numbers of arguments, and of these without a default, and whether there may be more."""
    parameters = inspect.signature(function).parameters.values()
    kinds = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    named = [each for each in parameters if each.kind in kinds]
    required = [each for each in named if each.default is each.empty]
    more = any(each.kind == each.VAR_POSITIONAL for each in parameters)
    return len(named), len(required), more


def _inputs(args: list[Any], kwargs: dict[str, Any]) -> tuple[Any, Any, list[Any]]:
    found = []
    for name in ("x", "edge_index"):
        for key in (name, f"{name}_dict"):
            if key in kwargs:
                found.append(kwargs.pop(key))
                break
        else:
            if not args:
                raise TypeError(f"{name}: expected a tensor or a mapping of types, got none")
            found.append(args.pop(0))
    return found[0], found[1], args


def _too_many_layers(count: int, hops: int) -> ValueError:
    return ValueError(
        f"model: expected at most {hops} layers for a batch of {hops} hops, got {count}; sample as "
        "many hops as there are layers, or call the model itself"
    )


def blockwise(model: torch.nn.Module) -> Blockwise:
    """Returns a module that runs a model of PyG on the rows of a batch that count.

    ``forward(batch)``, for a batch of ``NeighborLoader``, equals
    ``model(batch.x, batch.edge_index)[:batch.batch_size]``, and so do gradients: layer i runs on
    the sources and destinations that the layers after it need. Layers that this package knows are
    reductions over a CSR, in which no edge has a row of its own; ``explain()`` says which.

    Parameters
    ----------
    model : torch.nn.Module
        A model of ``torch_geometric.nn.models``, or one of your own with layers of PyG, also by
        ``to_hetero`` and ``HeteroConv``, whose forward takes ``(x, edge_index, ...)`` or a batch
        and works node by node between its layers.

    Returns
    -------
    torch.nn.Module
        It shares the parameters, under the same names, and may be trained, moved, copied and
        saved in the model's place.

    Raises
    ------
    TypeError, ValueError
        For a model without layers of PyG, or with ``GCNConv(cached=True)``, whose degrees would be
        those of another batch. In ``forward``, for batches without numbers of hops, or with fewer
        hops than the model has layers, and for a ``MiniBatch`` with ``frontier="new"``.
    NotImplementedError
        In ``forward``, for a model of one's own that mixes the rows of nodes outside of its layers.
    """
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"model: expected a torch.nn.Module, got {describe(model)}")
    if isinstance(model, Blockwise):
        return model
    found = [module for module in model.modules() if isinstance(module, MessagePassing)]
    if not found:
        raise ValueError(
            f"model: expected layers of PyG (MessagePassing), got {type(model).__name__} without "
            "any; call the model itself"
        )
    for module in found:
        if getattr(module, "cached", False):
            raise ValueError(
                f"model: expected cached=False, since each batch is another graph, got "
                f"{type(module).__name__} with cached=True"
            )
    return Blockwise(model)


def layers(batch: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Yields the sources, destinations and edges that each layer needs, outermost first.

    A layer runs as ``x = conv((x[:sources], x[:destinations]), edges)``.

    Parameters
    ----------
    batch : Data or HeteroData
        A batch of a ``NeighborLoader`` with ``subgraph_type="directional"``.

    Yields
    ------
    sources, destinations : int, or dict of node types to int
        The numbers of first rows.
    edges : tensor of shape [2, edges], or dict of edge types to these
        The first edges of the batch.

    Raises
    ------
    TypeError, ValueError
        For batches without numbers of hops, or with edges that are not by hop.
    """
    if not isinstance(batch, (Data, HeteroData)):
        raise TypeError(f"batch: expected a Data or HeteroData, got {describe(batch)}")
    hetero = isinstance(batch, HeteroData)
    slices = BatchSlices.from_batch(batch, batch.edge_index_dict if hetero else batch.edge_index)
    return slices.layers()
