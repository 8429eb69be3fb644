"""A run of a model for a compiler: how its layers run was decided before, on another batch."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.nn import MessagePassing
from torch_geometric.nn.models import JumpingKnowledge

from pygsampler.pyg.batch_slices import BatchSlices, EdgeGroups
from pygsampler.pyg.fused_layers import FusedLayer
from pygsampler.pyg.layer_run import LayerForward, LayerRun, parameter_names
from pygsampler.pyg.node_rows import first_rows_like
from pygsampler.pyg.table_rows import TableRows, gather_rows

__all__ = ["CompiledRun", "PreparedRun", "RunPlans"]


class PreparedRun(NamedTuple):
    """A run of a batch that is ready to be traced; ``seeds`` has the numbers of seeds by type."""

    run: CompiledRun
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    seeds: dict[str | None, int]

    def result(self) -> Any:
        """Returns the model's result for the seeds: this is compiled."""
        out = self.run(self.args, self.kwargs)
        if self.run.is_basic:
            return out[: self.seeds[None]]
        return first_rows_like(out, self.run.result, self.seeds)


class CompiledRun:
    """A model whose layers run like the layers of a recorded run, on plain tensors.

    Between layers tensors have the rows that the next layer takes. If tensors with different
    numbers of rows meet, as in a custom residual model, all have as many rows as the first layer
    takes, and rows that no layer computes are copies of others.
    """

    def __init__(self, run: LayerRun) -> None:
        """Takes over how layers ran in a run that is done."""
        self.model, self.plans = run.owner._model, run.plans or []
        self.is_padded = run.is_mixed
        # The hops whose nodes have features.
        self.depth = self.plans[0].depth if run.basic else run.depth
        self.is_basic, self.result = run.basic, run.result
        self._next = 0
        # A compiler looks at the forwards that modules have when it begins, and compiles anew for
        # others: so these are there before, and the same in each run. After an error within a
        # module that torch.compile was given they stay until the next run; without edges of a
        # batch they call the module's own.
        self._forwards: list[tuple[Any, Any, Any]] = []
        for module in self.model.modules():
            forward, own = module.forward, module.__dict__.get("forward")
            if isinstance(module, MessagePassing):
                names = parameter_names(forward)
                run_layer = functools.partial(self._layer, module, forward, names)
                self._forwards.append((module, run_layer, own))
            elif isinstance(module, JumpingKnowledge):
                self._forwards.append((module, functools.partial(_jump, forward), own))

    def prepare(self, slices: BatchSlices, call: Any) -> PreparedRun:
        """Returns what the model takes of a batch, whose edges are grouped now."""
        edges = {kind: each.traceable() for kind, each in slices.groups.items()}
        x = call.x
        if isinstance(x, TableRows) and not isinstance(x.table, torch.Tensor):
            # The engine reads these, outside of a graph.
            x = x.gather()
        if slices.is_hetero:
            call.edge_index = edges
            x = {kind: _first(each, slices.nodes[kind][self.depth]) for kind, each in x.items()}
        else:
            call.edge_index = edges[None]
            x = _first(x, slices.nodes[None][self.depth])
        args, kwargs = call.arguments(x)
        seeds = {kind: counts[0] for kind, counts in slices.nodes.items()}
        return PreparedRun(self, args, kwargs, seeds)

    def begin(self) -> None:
        """Gives layers the forwards of this run."""
        for module, forward, _ in self._forwards:
            module.__dict__["forward"] = forward

    def end(self) -> None:
        """Gives layers their own forwards."""
        for module, _, own in self._forwards:
            if own is None:
                module.__dict__.pop("forward", None)
            else:
                module.__dict__["forward"] = own

    def __call__(self, args: Any, kwargs: Any) -> Any:
        """Calls the model, once the run has begun: this is traced."""
        self._next = 0
        return self.model(*args, **kwargs)

    def _layer(
        self,
        module: Any,
        forward: Any,
        names: tuple[str, ...],
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        values = {**dict(zip(names, args, strict=False)), **kwargs}
        groups = values.pop("edge_index", None)
        if not isinstance(groups, EdgeGroups):
            # A layer within another.
            return forward(*args, **kwargs)
        plan = self.plans[self._next]
        self._next += 1
        x = values.pop("x")
        source, target = x if isinstance(x, (tuple, list)) else (x, None)
        if target is source:
            target = None
        extras = {name: each for name, each in values.items() if each is not None}
        edges = groups.all_rows(plan.depth) if plan.is_square else groups.layer(plan.depth)
        edges.trimmed = plan.trimmed
        rows = source.shape[0] if target is None else target.shape[0]
        source = _first(source, edges.sources)
        target = None if target is None else _first(target, edges.targets)
        layer = plan.computation
        if not isinstance(layer, FusedLayer):
            out = LayerForward(forward, gather_rows(source), target, edges, extras).run(layer)
        elif layer.reads_table(module, edges):
            out = layer.run(module, source, target, edges, **extras)
        else:
            out = layer.run(module, gather_rows(source), target, edges, **extras)
        return _padded(out, rows) if self.is_padded else out


def _jump(forward: Any, xs: Any, *more: Any) -> Any:
    """Gives jumping knowledge the rows of its last input: others have as many or more."""
    return forward([_first(each, xs[-1].shape[0]) for each in xs], *more)


def _first(x: Any, count: int) -> Any:
    return x if x.shape[0] == count else x[:count]


def _padded(x: Tensor, count: int) -> Tensor:
    """Adds rows, so many in all, that are numbers like others, and have no gradient."""
    missing = count - x.shape[0]
    if missing == 0:
        return x
    copies = torch.arange(missing, device=x.device) % x.shape[0]
    return torch.cat([x, x.detach().index_select(0, copies)])


class RunPlans:
    """The runs of a model that a batch has decided on."""

    def __init__(self) -> None:
        self._runs: dict[Any, CompiledRun] = {}

    def prepare(self, run: LayerRun, call: Any) -> PreparedRun | None:
        """Returns a batch's run for a compiler, or None while no batch of its kind has run."""
        known = self._runs.get(_kind(run, call))
        return None if known is None else known.prepare(run.slices, call)

    def add(self, run: LayerRun, call: Any) -> None:
        """Takes over how layers ran in a run that is done, if that was decided."""
        if run.foreign is not None:
            raise NotImplementedError(
                f"{run.foreign}: expected x and the batch's own edge_index in a compiled model, "
                "got others; leave blockwise uncompiled for this model, or compile the model itself"
            )
        if run.is_decided:
            self._runs[_kind(run, call)] = CompiledRun(run)


def _kind(run: LayerRun, call: Any) -> Any:
    """Tells runs apart whose layers may run differently."""
    there = (
        [each is None for each in call.args],
        [(name, each is None) for name, each in sorted(call.kwargs.items())],
    )
    return (
        run.training,
        run.slices.by_block,
        run.slices.hops,
        run.depth,
        run.most,
        run.trims,
        str(there),
    )
