"""Contexts of fixed length: rows around each seed, latest first, for relational transformers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pygsampler._arrays.array import Array
from pygsampler._batch.contexts import Contexts
from pygsampler._engine.checks import describe, integer
from pygsampler._graph.graph import is_homogeneous
from pygsampler._sampling.dispatch import dispatch
from pygsampler._sampling.engine_sampler import HeteroEngineSampler
from pygsampler._sampling.plan import Plan
from pygsampler._sampling.request import HeteroRequest, SampleRequest, TemporalRequest
from pygsampler._sampling.sampler import Sampler
from pygsampler.samplers.neighbor_plan import rule_fields
from pygsampler.samplers.temporal import Temporal, as_rule, check_window_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from pygsampler._engine.memory import Memory
    from pygsampler._graph.graph import Graph
    from pygsampler._sampling.pending import PendingBatch

__all__ = ["ContextSampler", "context"]

_ORDERS = ("breadth",)
_UNITS = ("row", "cell")
# The engine's bound, checked here since its error names the field of the plan.
_MOST_CELLS = 1 << 16


def __dir__() -> list[str]:
    return sorted(__all__)


class _ContextEngineSampler(HeteroEngineSampler):
    """A plan of contexts, for one number of cells of each node type, and its engine handle."""

    __slots__ = ()

    def _view(self, graph: Any, memory: Memory, epoch: int, batch: int) -> Contexts[Array]:
        # A relation of a homogeneous graph has none.
        schema = getattr(graph, "_schema", None)
        types = None if schema is None else schema.node_types
        return Contexts._from_memory(memory, epoch, batch, self._seed, types)


class ContextSampler(Sampler[Contexts[Array]]):
    """Collects rows around each seed until a budget; ``context`` makes it."""

    _takes_types = True

    def __init__(
        self,
        budget: int,
        order: str,
        time: str | Temporal | None,
        by: str,
        width: int | None,
        cells: int | Mapping[str, int] | None,
        seed: int | None,
    ) -> None:
        super().__init__(seed)
        if by not in _UNITS:
            raise ValueError(f"by: expected one of {_UNITS}, got {describe(by)}")
        if order not in _ORDERS:
            raise ValueError(f"order: expected one of {_ORDERS}, got {describe(order)}")
        if cells is not None and by != "cell":
            raise ValueError(f"cells: expected None with by={by!r}, got {describe(cells)}")
        self._rule = as_rule(time, "time")
        self._by_cell = by == "cell"
        self._cells = _checked_cells(cells)
        self._fields = {
            "budget": budget,
            "order": order,
            "width": width,
            **({} if self._rule is None else _time_fields(self._rule)),
        }
        self._plan = Plan(family="context", **self._fields)
        # By the numbers of cells of a graph's node types, which the engine's plan has.
        self._engines: dict[tuple[int, ...] | None, _ContextEngineSampler] = {}

    @property
    def plan(self) -> Hashable:
        """The options."""
        cells = self._cells
        if isinstance(cells, dict):
            return self._plan, self._by_cell, tuple(sorted(cells.items()))
        return self._plan, self._by_cell, cells

    @property
    def result_kind(self) -> str:
        """``"contexts"``."""
        return "contexts"

    @property
    def temporal(self) -> Temporal | None:
        """The rule that says which rows are not later than a seed; None: rows have no times."""
        return self._rule

    def launch(
        self,
        graph: Graph,
        seeds: Any,
        *,
        epoch: int,
        batch: int,
        exclude: Any = None,
        threads: int = 0,
        form: str = "array",
        asynchronous: bool = False,
        seed_time: Any = None,
    ) -> PendingBatch[Contexts[Array]]:
        """Starts a batch as ``Sampler.launch`` does; NotImplementedError for ``exclude``."""
        if exclude is not None:
            raise NotImplementedError(
                f"exclude: expected None for contexts, got {describe(exclude)}; bound the rows by "
                "time="
            )
        if graph._service is not None:
            raise NotImplementedError(
                "graph: expected one in one piece for contexts, got a partitioned one"
            )
        rule = self._rule
        if rule is None and seed_time is not None:
            raise ValueError("seed_time: expected None for contexts without time=, got some")
        check_window_of(graph, rule)
        engine = self._engine_for(graph)
        how: dict[str, Any] = {
            "epoch": epoch,
            "batch": batch,
            "threads": threads,
            "asynchronous": asynchronous,
        }
        if not is_homogeneous(graph):
            return dispatch(HeteroRequest(engine, graph, seeds, seed_time, **how))
        if rule is not None:
            return dispatch(TemporalRequest(engine, graph, seeds, seed_time, **how))
        return dispatch(SampleRequest(engine, graph._source, seeds, **how))

    def sample(
        self,
        graph: Graph,
        seeds: Any,
        *,
        epoch: int | None = None,
        batch: int | None = None,
        exclude: Any = None,
        threads: int = 0,
        seed_time: Any = None,
    ) -> Contexts[Array]:
        """Collects contexts, as ``Sampler.sample`` samples; with ``time`` it needs ``seed_time``.

        Parameters
        ----------
        seed_time : array of shape [N], or one for all seeds, optional
            As ``PGSampler.sample`` has it: no row of a context is later than its seed's time.
        """
        more = {} if seed_time is None else {"seed_time": seed_time}
        job = self._start(graph, seeds, epoch, batch, exclude, threads, asynchronous=False, **more)
        result: Contexts[Array] = job.result()
        return result

    def submit(
        self,
        graph: Graph,
        seeds: Any,
        *,
        epoch: int | None = None,
        batch: int | None = None,
        exclude: Any = None,
        threads: int = 0,
        seed_time: Any = None,
    ) -> PendingBatch[Contexts[Array]]:
        """Starts contexts as ``Sampler.submit`` does, with ``seed_time`` as in ``sample``."""
        more = {} if seed_time is None else {"seed_time": seed_time}
        return self._start(graph, seeds, epoch, batch, exclude, threads, asynchronous=True, **more)

    def sample_many(
        self,
        graph: Graph,
        seeds: Iterable[Any],
        *,
        epoch: int | None = None,
        batch: int | None = None,
        memory: int | None = None,
        seed_time: Any = None,
    ) -> list[Contexts[Array]]:
        """Collects contexts for each set of seeds, as ``Sampler.sample_many`` does.

        Parameters
        ----------
        seed_time : sequence of arrays, or one time for all, optional
            For each set of seeds what ``sample`` takes with them. With ``time`` it is needed.
        """
        return self._sample_sets(graph, seeds, epoch, batch, memory, seed_time)

    def with_seed(self, seed: int | None) -> ContextSampler:
        """Returns a sampler of the same contexts that begins with batch 0 of epoch 0."""
        other = super().with_seed(seed)
        other._engines = {}
        return other

    def _engine_for(self, graph: Graph) -> _ContextEngineSampler:
        """Returns the engine's sampler for the cells of a graph's rows."""
        cells = self._cells_of(graph) if self._by_cell else None
        engine = self._engines.get(cells)
        if engine is None:
            plan = self._plan if cells is None else Plan(**self._plan_fields(), cells=cells)
            engine = self._engines[cells] = _ContextEngineSampler(plan, self.seed)
        return engine

    def _plan_fields(self) -> dict[str, Any]:
        return {"family": "context", **self._fields}

    def _cells_of(self, graph: Graph) -> tuple[int, ...]:
        """Returns how many cells a row of each of a graph's node types has."""
        given = self._cells
        if is_homogeneous(graph):
            if isinstance(given, dict):
                raise TypeError(f"cells: expected one number for a homogeneous graph, got {given}")
            return (max(len(graph.ndata), 1) if given is None else given,)
        types = graph.node_types
        if isinstance(given, int):
            return (given,) * len(types)
        if given is None:
            return tuple(max(len(graph.ndata[kind]), 1) for kind in types)
        for kind in given:
            if kind not in types:
                raise ValueError(f"cells: expected node types of the graph, got {kind!r}")
        missing = [kind for kind in types if kind not in given]
        if missing:
            raise ValueError(
                f"cells: expected a number for each node type, got none for {missing[0]!r}"
            )
        return tuple(given[kind] for kind in types)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_engines": {}}

    def __repr__(self) -> str:
        fields = {
            "order": self._fields["order"],
            "time": self._rule,
            "by": "cell" if self._by_cell else "row",
            "width": self._fields["width"],
            "cells": self._cells,
        }
        usual = context.__kwdefaults__ or {}
        shown = [f"{name}={value!r}" for name, value in fields.items() if value != usual[name]]
        text = ", ".join([f"budget={self._fields['budget']}", *shown])
        return f"context({text}, seed={self.seed})"


def context(
    *,
    budget: int = 1024,
    order: str = "breadth",
    time: str | Temporal | None = None,
    by: str = "row",
    width: int | None = 128,
    cells: int | Mapping[str, int] | None = None,
    seed: int | None = None,
) -> ContextSampler:
    """Contexts of fixed length: around each seed the nearest rows, latest first, until a budget.

    A relational transformer reads the rows around a row of a database as one sequence (Ranjan et
    al., "Relational Transformer", 2025, whose contexts are breadth-first, bounded in width, and
    have 1024 cells). ``sample(graph, seeds, seed_time=...)`` gives ``Contexts``: dense arrays of
    node ids, with a mask, hops and parents. Nothing is random, and the bytes are equal on the CPU
    and on a GPU, for any number of threads.

    The rule, for a seed and its time:

    1. The seed is the first row. Hop 0 is the seed, and hop h + 1 are the rows that in-edges of the
       rows of hop h lead from, along all edge types, and that no earlier row is.
    2. For each row and edge type, the ``width`` last edges that are not later than the seed's time
       are looked at. Edges are in the order of time, and at one time, or without times, in the
       order of the graph's CSC.
    3. The edges that a hop looks at are taken in this order: first those of edge types without
       times, then those with times, the latest first; among these, and at one time, by the place of
       the row that they lead into, then by the edge type's place in ``graph.edge_types``, then the
       last one in the graph's CSC first. A row that is in the context already is not taken again.
    4. The first row that does not fit into the budget ends the context, as does a hop without rows.

    Parameters
    ----------
    budget : int
        1 to 65536: the rows of a context, or its cells.
    order : str
        ``"breadth"``.
    time : str or Temporal, optional
        The name of the node array, or of the edge array, with times, as ``PGSampler`` has
        ``temporal``: with a node array an edge has the time of the row that it leads from. Edge
        types without that array have no times. A ``Temporal`` also has a ``window`` and
        ``inclusive``; ``carry`` must be ``"seed"``, and every ``strategy`` is ``"last"`` here.
    by : str
        ``"row"``: the budget counts rows. ``"cell"``: it counts their cells.
    width : int, optional
        Edges of a row and an edge type that are looked at, so that no hub fills the budget. None:
        all.
    cells : int or mapping of node types to int, optional
        With ``by="cell"``, the cells of a row, of all node types or by type, 1 to 65536. None: as
        many as the type has arrays in ``graph.ndata``, and at least one.
    seed : int, optional
        Of no effect on contexts; loaders shuffle by it.

    Raises
    ------
    TypeError, ValueError
        For options of a wrong type or value; by ``sample`` also for times that do not fit, and for
        a budget that is below the cells of a seed.
    NotImplementedError
        By ``sample``, for ``exclude`` and for partitioned graphs.
    """
    return ContextSampler(budget, order, time, by, width, cells, seed)


def _time_fields(rule: Temporal) -> dict[str, Any]:
    """Returns the fields of a plan that say which rows are not later than a seed."""
    if rule.carry != "seed":
        raise ValueError(f"time: expected carry='seed' for contexts, got {rule.carry!r}")
    return {**rule_fields(rule), "strategy": "last"}


def _checked_cells(cells: Any) -> int | dict[str, int] | None:
    if cells is None:
        return None
    if not isinstance(cells, Mapping):
        return integer(cells, "cells", 1, _MOST_CELLS)
    for kind in cells:
        if not isinstance(kind, str):
            raise TypeError(f"cells: expected names of node types, got {describe(kind)}")
    return {
        kind: integer(number, f"cells[{kind!r}]", 1, _MOST_CELLS) for kind, number in cells.items()
    }
