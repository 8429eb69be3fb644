"""NextDoor's programming interface: classes with ``next`` and a sample for each root.

Functions have the paper's names and arguments (Jangda et al., 2021, section 4.1, figures 3 and 4).
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pygsampler._engine.checks import describe, index, integer
from pygsampler._engine.public_home import set_public_module
from pygsampler._sampling.pending import CompletedJob
from pygsampler._sampling.sampler import Sampler, check_graph, from_pickle
from pygsampler.research.class_checks import check_methods

if TYPE_CHECKING:
    from pygsampler._graph.graph import Graph
    from pygsampler.research.transit_calls import Call, Edges, Ints, Nodes, TransitEdges, Words

__all__ = [
    "INF",
    "NULL",
    "NextDoor",
    "NextDoorSamples",
    "SamplingType",
    "graph",
    "randFloat",
    "randInt",
    "rejection_smpl",
]

NULL = -1
INF = -1

_METHODS = {
    "next": ("s", "transits", "srcEdges", "step"),
    "steps": (),
    "sampleSize": ("step",),
    "unique": ("step",),
    "samplingType": (),
    "stepTransits": ("step", "s", "transitIdx"),
    "numTransits": ("step",),
}
_NEEDED = ("next", "steps", "sampleSize", "samplingType", "stepTransits")
# Rounds of a unique step: the first, and those that sample again.
_ROUNDS = 32
# Lanes of a first step that are sampled at a time.
_LANES = 1 << 16


class SamplingType(enum.Enum):
    """The granularity of ``next``: each transit, or all transits of a sample together."""

    Individual = "individual"
    Collective = "collective"


def randInt(low: Any, high: Any) -> Any:
    """Returns an integer from ``low`` up to ``high``, ``high`` excluded; ``low`` if they are equal.

    To be called in ``next`` and ``stepTransits``. ValueError for ``high < low``. A number is a
    function of seed, epoch, batch, sample, step, slot and the calls of the slot before it.
    """
    import numpy as np

    call = _current_call("randInt")
    first, bounds = call.lanes(low), call.lanes(high) - call.lanes(low)
    if (bounds < 0).any():
        lane = int((bounds < 0).argmax())
        raise ValueError(
            f"randInt: expected high >= {first[lane]}, got {first[lane] + bounds[lane]}"
        )
    from pygsampler.research.transit_calls import below

    return call.shown(first + below(call.draw(), bounds.astype(np.uint64)))


def randFloat() -> Any:
    """Returns a float64 from 0 up to 1, 1 excluded, as ``randInt`` returns integers."""
    import numpy as np

    call = _current_call("randFloat")
    return call.shown((call.draw() >> np.uint64(11)) * 2.0**-53)


def rejection_smpl(
    transit: Nodes, srcEdges: Edges, maxW: Any, t: Nodes, tEdges: Edges, p: float, q: float
) -> Nodes:
    """Samples node2vec's next node by rejection: the function that figure 4a calls.

    An edge of ``srcEdges`` to u is drawn uniformly, and accepted with probability
    ``weight * f / (maxW * max(1/p, 1, 1/q))``, f being 1/p if u is ``t``, 1 if u is in ``tEdges``,
    else 1/q; 1 if ``t`` is NULL. NULL where there is no edge of a weight above 0.

    Parameters
    ----------
    transit, srcEdges
        The transit, and its edges.
    maxW : float64
        The largest weight of the edges.
    t, tEdges
        The transit of the step before, and its edges.
    p, q : float
        node2vec's parameters, above 0.

    Notes
    -----
    Source: node2vec (Grover and Leskovec, 2016), section 3.2; rejection by KnightKing (Yang et al.,
    2019). NextDoor's text has p for a return and 1/q for a common neighbor.
    """
    import numpy as np

    call = _current_call("rejection_smpl")
    bound = call.lanes(maxW, np.float64) * max(1 / p, 1, 1 / q)
    result = np.full(bound.shape, NULL)
    waiting = (call.lanes(srcEdges.size()) > 0) & (bound > 0)
    if not (np.isfinite(bound).all() and 0 < p < np.inf and 0 < q < np.inf):
        raise ValueError(
            f"rejection_smpl: expected finite weights, and p and q above 0, got p={p}, q={q}"
        )
    while waiting.any():
        asked, before = waiting.copy(), call.drawn
        idx = randInt(0, srcEdges.size())
        u = srcEdges[idx]
        near = np.where(tEdges.has(u, where=waiting & (call.lanes(u != t, bool))), 1, 1 / q)
        factor = np.where(t < 0, 1, np.where(u == t, 1 / p, near))
        draws = call.lanes(randFloat(), np.float64) * bound
        kept = waiting & (draws < call.lanes(srcEdges.weight(idx) * factor, np.float64))
        result[kept] = call.lanes(u)[kept]
        waiting &= ~kept
        # Lanes that had theirs before have not drawn.
        drawn = np.zeros(asked.shape, np.uint64) if before is None else before
        call.drawn = np.where(asked, np.asarray(call.drawn), drawn)
    return call.nodes(result)


class graph:
    """The graph that is sampled, in ``next`` and ``stepTransits``."""

    @staticmethod
    def vertices() -> int:
        """The number of nodes."""
        return _current_call("graph.vertices").graph.num_nodes

    @staticmethod
    def edges() -> int:
        """The number of edges."""
        return len(_current_call("graph.edges").graph.indices)


def _current_call(name: str) -> Call:
    from pygsampler.research.transit_calls import current

    return current(name)


@dataclass(frozen=True, repr=False)
class NextDoorSamples:
    """Samples that a ``NextDoor`` sampler returns, as int64 arrays on the CPU.

    Attributes
    ----------
    roots : shape [samples, roots of each]
        -1 where a sample has fewer roots than others.
    steps : tuple of arrays of shape [samples, width of the step]
        The node of each slot; -1 where the step added none. A slot is ``transitIdx * sampleSize +
        j`` with individual sampling, and j with collective sampling.
    edges : shape [edges, 4]
        Edges that ``s.addEdge`` added: sample, step, transit, node; by sample, step and slot.
    complete : bool, shape [samples]
        False if the sample still had transits after ``max_steps`` steps.
    epoch, batch, seed : int
        The numbers that the samples belong to.
    """

    roots: Any
    steps: tuple[Any, ...]
    edges: Any
    complete: Any
    epoch: int
    batch: int
    seed: int

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays."""
        arrays = (self.roots, *self.steps, self.edges, self.complete)
        return sum(int(array.nbytes) for array in arrays)

    def __len__(self) -> int:
        return len(self.roots)

    @property
    def form(self) -> str:
        """The library of the arrays: ``"numpy"`` or ``"torch"``."""
        return "torch" if hasattr(self.roots, "detach") else "numpy"

    @property
    def num_edges(self) -> int:
        """The nodes that all steps would have added if each slot had found one."""
        return sum(step.shape[0] * step.shape[1] for step in self.steps)

    def per_step(self) -> tuple[Any, ...]:
        """Returns ``steps``: NextDoor's second format of outputs (section 4.1)."""
        return self.steps

    def per_sample(self) -> Any:
        """Returns all nodes of all steps of each sample: shape [samples, sum of widths].

        NextDoor's first format of outputs (section 4.1), which ``getFinalSamples`` returns there.
        """
        if self.form == "torch":
            import torch

            return torch.cat([self.roots[:, :0], *self.steps], dim=1)
        import numpy as np

        return np.concatenate([self.roots[:, :0], *self.steps], axis=1)

    def torch(self) -> NextDoorSamples:
        """Returns the same samples with torch tensors, which share their memory."""
        import torch

        return self._with(torch.as_tensor)

    def numpy(self) -> NextDoorSamples:
        """Returns the same samples with NumPy arrays, which share their memory."""
        import numpy as np

        return self._with(np.asarray)

    def _with(self, convert: Any) -> NextDoorSamples:
        return replace(
            self,
            roots=convert(self.roots),
            steps=tuple(map(convert, self.steps)),
            edges=convert(self.edges),
            complete=convert(self.complete),
        )

    def __repr__(self) -> str:
        return (
            f"NextDoorSamples({len(self)}, steps={len(self.steps)}, edges={len(self.edges)}, "
            f"epoch={self.epoch}, batch={self.batch})"
        )


class NextDoor(Sampler[NextDoorSamples]):
    """Sampler of an application that is written as user-defined functions of NextDoor.

    An application is an object with the paper's functions: ``next(s, transits, srcEdges, step)``,
    ``steps()``, ``sampleSize(step)``, ``samplingType()``, ``stepTransits(step, s, transitIdx)``,
    and optionally ``unique(step)``. Samples keep their identity: ``s`` has ``prevVertex``,
    ``prevEdges``, ``roots``, ``numRoots``, ``size`` and ``addEdge``. All functions of a step see
    the samples as they are before it; ``s.roots.replace`` has its effect after the step.

    A sample with R roots has R transits in the first step, and then one for each slot of the step
    before, unless ``numTransits(step)`` says how many; NULL ones count, and have no ``next``. It
    ends with the first step in which all its transits are NULL. Edges of a node are its in-edges,
    as for ``KHop``.

    Python calls the functions, on one thread of the CPU. A call of one lane takes tens of
    microseconds; ``batched`` spreads that over all samples
    (docs/research/nextdoor.md).

    Parameters
    ----------
    application : object
        An instance with these methods. It is called from one thread at a time for a batch.
    max_steps : int
        Steps at most where ``steps()`` returns INF: 1 to 2**20. A sample that has transits after
        them is cut, and has False in ``NextDoorSamples.complete``.
    prob : str, optional
        Name of the edge array with the weights, which ``maxEdgeWeight``, ``prefixSum`` and
        ``srcEdges.weight`` read: numbers >= 0. All weights are 1 by default.
    batched : bool
        False: a call is for one slot of one sample, as in the paper, and its values are numbers.
        True: a call is for all slots of many samples, and its values are NumPy arrays with an
        element for each, so that ``numpy.where`` stands where an ``if`` would. The samples are the
        same, where both make the same calls of ``randInt`` and ``randFloat``.
    seed : int, optional
        As for ``PGSampler``.

    Raises
    ------
    TypeError, ValueError
        For an application without these functions, and an option of the wrong type or range.

    Notes
    -----
    Source: NextDoor (Jangda et al., 2021), sections 3 and 4; ``numTransits`` is not in the paper.
    With ``unique(step)`` a slot gives up a node that a lower slot has, or one of an earlier round,
    and ``next`` is called again for it, up to 32 times in all; then it is NULL (section 6.3).
    docs/developer/walk-draws.md has the rules of draws.
    """

    __slots__ = ("__weakref__", "_arguments", "_numbers")

    def __init__(
        self,
        application: Any,
        *,
        max_steps: int = 1000,
        prob: str | None = None,
        batched: bool = False,
        seed: int | None = None,
    ) -> None:
        if isinstance(application, type):
            raise TypeError(
                f"application: expected an instance, got the class {application.__name__}; "
                f"{application.__name__}() is one"
            )
        check_methods(type(application), _METHODS, _NEEDED)
        if prob is not None and not isinstance(prob, str):
            raise TypeError(f"prob: expected the name of an edge array, got {describe(prob)}")
        if not isinstance(batched, bool):
            raise TypeError(f"batched: expected True or False, got {describe(batched)}")
        self._arguments = {
            "application": application,
            "max_steps": integer(max_steps, "max_steps", 1, 1 << 20),
            "prob": prob,
            "batched": batched,
        }
        super().__init__(seed)

    @property
    def plan(self) -> Any:
        """The application and the options."""
        return ("nextdoor", *self._arguments.values())

    @property
    def result_kind(self) -> str:
        """``"steps"``."""
        return "steps"

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
    ) -> CompletedJob:
        """Samples from roots, before it returns.

        Parameters
        ----------
        graph : Graph
            On the CPU.
        seeds : integers, shape [N] or [N, R], or int
            A root for each sample; R roots for each, with -1 behind the roots of samples that have
            fewer; or the number of samples, each with a random root.
        epoch, batch, form
            As for ``Sampler.launch``.
        exclude, threads, asynchronous
            None; the others have no effect.

        Raises
        ------
        TypeError, IndexError
            For roots of another shape or type, and for one that is not a node.
        NotImplementedError
            For ``exclude``, and for a graph on a GPU.
        """
        check_graph(graph)
        if exclude is not None:
            raise NotImplementedError(f"exclude: expected None, got {describe(exclude)}")
        if graph.device != "cpu":
            raise NotImplementedError(
                f"graph: expected one on the CPU, since Python calls the application, got one on "
                f"{graph.device}; use graph.to('cpu')"
            )
        samples = self._sampled(graph, seeds, epoch, batch)
        return CompletedJob(samples.torch() if form == "torch" else samples)

    def _sampled(self, graph: Graph, seeds: Any, epoch: int, batch: int) -> NextDoorSamples:
        import numpy as np

        from pygsampler.research import transit_calls as calls

        rows = calls.TransitEdges(graph, self._arguments["prob"])
        roots = _roots(seeds, rows.num_nodes)
        count = len(roots)
        states = calls.sample_states(self.seed, epoch, batch, np.arange(count))
        if roots.shape[1] == 0:
            # One random root each, by a draw of the state itself, which no step reads.
            bounds = np.full(count, rows.num_nodes, np.uint64)
            roots = calls.below(calls.part_states(states, 1 << 62), bounds)[:, None]
        run = _Run(self._arguments["application"], rows, self._arguments)
        size = max(_LANES // max(roots.shape[1], run.sample_size(0)), 1)
        size = size if self._arguments["batched"] else 1
        parts = [run(roots[i : i + size], states[i : i + size], i) for i in range(0, count, size)]
        if not parts:
            parts = [run(roots, states, 0)]
        steps = [
            np.concatenate(
                [
                    part.steps[k]
                    if k < len(part.steps)
                    else np.full((len(part.complete), run.widths[k]), NULL)
                    for part in parts
                ]
            )
            for k in range(max(len(part.steps) for part in parts))
        ]
        return NextDoorSamples(
            roots,
            tuple(steps),
            np.concatenate([part.edges for part in parts]),
            np.concatenate([part.complete for part in parts]),
            epoch,
            batch,
            self.seed,
        )

    def __repr__(self) -> str:
        given = self._arguments
        usual = {"max_steps": 1000, "prob": None, "batched": False}
        options = [f"{k}={given[k]!r}" for k, value in usual.items() if given[k] != value]
        return f"NextDoor({', '.join([repr(given['application']), *options])}, seed={self.seed})"

    def __reduce__(self) -> tuple[Any, ...]:
        return from_pickle, (
            NextDoor,
            self._arguments,
            self.seed,
            self.epoch,
            self._numbers.next,
        )


def _roots(seeds: Any, num_nodes: int) -> Ints:
    """Roots of samples, shape [N, R]; R is 0 where they are to be random."""
    import numpy as np

    if hasattr(seeds, "detach"):
        seeds = seeds.detach().cpu().numpy()
    elif hasattr(seeds, "__dlpack__") and not isinstance(seeds, np.ndarray):
        seeds = np.from_dlpack(seeds)
    try:
        count = integer(index(seeds), "seeds", 0, 2**31 - 1)
    except TypeError:
        pass
    else:
        if count and not num_nodes:
            raise ValueError("seeds: expected 0 for a graph without nodes, got more")
        return np.empty((count, 0), np.int64)
    values = np.asarray(seeds)
    if values.size == 0:
        values = values.astype(np.int64).reshape(len(values), -1 if len(values) else 1)
    if values.dtype.kind not in "iu" or values.ndim not in (1, 2) or not values.shape[-1] + 1:
        raise TypeError(f"seeds: expected integers of shape [N] or [N, R], got {describe(seeds)}")
    roots: Ints = values.astype(np.int64).reshape(len(values), -1 if len(values) else 1)
    low = 0 if values.ndim == 1 else NULL
    wrong = (roots < low) | (roots >= num_nodes)
    if low < 0:
        # NULL stands behind the roots, of which there is one at least.
        absent = roots == NULL
        wrong |= absent & ~np.logical_and.accumulate(absent[:, ::-1], axis=1)[:, ::-1]
        wrong[:, :1] |= absent[:, :1]
    if wrong.any():
        place = [int(i) for i in np.argwhere(wrong)[0]][: values.ndim]
        raise IndexError(
            f"seeds{place}: expected an id in [0, {num_nodes})"
            f"{', or -1 behind all ids of the row' if low < 0 else ''}, got "
            f"{roots[wrong][0]}"
        )
    return roots


@dataclass
class _RunSamples:
    """The samples of a run."""

    steps: list[Ints]
    edges: Ints
    complete: Any


class _Run:
    """Runs an application on some samples at a time."""

    def __init__(self, application: Any, in_edges: TransitEdges, options: dict[str, Any]) -> None:
        self.application, self.in_edges = application, in_edges
        self.scalar, self.name = not options["batched"], type(application).__name__
        steps = application.steps()
        self.endless = steps in (INF, float("inf"))
        self.limit = options["max_steps"] if self.endless else self._integer("steps", steps)
        kind = application.samplingType()
        if not isinstance(kind, SamplingType):
            raise TypeError(
                f"{self.name}.samplingType: expected a SamplingType, got {describe(kind)}"
            )
        self.individual = kind is SamplingType.Individual
        self.widths: list[int] = []

    def _integer(self, name: str, value: Any) -> int:
        return integer(value, f"{self.name}.{name}", 1, 1 << 20)

    def sample_size(self, step: int) -> int:
        """The draws of a step."""
        return self._integer("sampleSize", self.application.sampleSize(step))

    def _unique(self, step: int) -> bool:
        unique = self.application.unique(step) if hasattr(self.application, "unique") else False
        if not isinstance(unique, bool):
            raise TypeError(f"{self.name}.unique: expected True or False, got {describe(unique)}")
        return unique

    def __call__(self, roots: Ints, states: Words, first: int) -> _RunSamples:
        import numpy as np

        roots_now = roots.copy()
        history, edges = [roots], np.empty((0, 4), np.int64)
        live = np.ones(len(roots), bool)
        sizes = (roots >= 0).sum(axis=1)
        for step in range(self.limit + 1):
            if step == self.limit and not self.endless:
                break
            if self.endless and not live.any() and history[1:]:
                break
            count = self.sample_size(step)
            wanted = history[-1].shape[1]
            if hasattr(self.application, "numTransits"):
                wanted = self._integer("numTransits", self.application.numTransits(step))
            transits = self._transits(step, wanted, live, states, (roots_now, history, sizes))
            live &= (transits >= 0).any(axis=1)
            if step == self.limit or (self.endless and not live.any()):
                break
            width = count * (wanted if self.individual else 1)
            if len(self.widths) == step:
                self.widths.append(width)
            nodes, found = self._step(
                step, count, width, transits, live, states, (roots_now, history, sizes)
            )
            history.append(nodes)
            sizes = sizes + (nodes >= 0).sum(axis=1)
            edges = np.concatenate([edges, found])
        edges = edges[np.argsort(edges[:, 0], kind="stable")]
        edges[:, 0] += first
        complete = ~live if self.endless else np.ones(len(roots), bool)
        return _RunSamples(history[1:], edges, complete)

    def _transits(self, step: int, wanted: int, live: Any, states: Words, samples: Any) -> Ints:
        """The transits of each sample, shape [samples, wanted]."""
        import numpy as np

        from pygsampler.research import transit_calls as calls

        transits = np.full((len(live), wanted), NULL)
        lanes = np.flatnonzero(np.repeat(live, wanted))
        own = calls.part_states(
            calls.part_states(states, 2 * step + 1)[lanes // wanted], lanes % wanted
        )
        for some in self._calls(len(lanes)):
            call = calls.Call(self.in_edges, lanes[some] // wanted, own[some], self.scalar)
            at = lanes[some] % wanted
            value = self._enter(
                call,
                "stepTransits",
                step,
                calls.Sample(call, *samples),
                int(at[0]) if self.scalar else at,
            )
            transits.reshape(-1)[lanes[some]] = value
        return transits

    def _step(
        self,
        step: int,
        count: int,
        width: int,
        transits: Ints,
        live: Any,
        states: Words,
        samples: Any,
    ) -> tuple[Ints, Ints]:
        """The nodes of a step, shape [samples, width], and the edges that it adds."""
        import numpy as np

        from pygsampler.research import transit_calls as calls

        nodes = np.full((len(live), width), NULL)
        drawing = live[:, None]
        if self.individual:
            drawing = drawing & (transits >= 0)
        lanes = np.flatnonzero(np.repeat(drawing, count, axis=1))
        own = calls.part_states(calls.part_states(states, 2 * step)[lanes // width], lanes % width)
        unique = self._unique(step)
        replaced: list[Any] = []
        edges: list[Any] = []
        for attempt in range(_ROUNDS if unique else 1):
            tried = calls.part_states(own, attempt)
            values = np.empty(len(lanes), np.int64)
            effects: list[tuple[list[Any], Any]] = []
            for some in self._calls(len(lanes)):
                call = calls.Call(self.in_edges, lanes[some] // width, tried[some], self.scalar)
                groups = call.samples
                sources = transits
                if self.individual:
                    slots = lanes[some] % width // count
                    sources, groups = transits[groups, slots][:, None], np.arange(len(groups))
                values[some] = self._enter(
                    call,
                    "next",
                    calls.Sample(call, *samples),
                    calls.Transits(call, sources, groups),
                    calls.Edges(call, sources, groups),
                    step,
                )
                for to, changes in ((replaced, call.replaced), (edges, call.edges)):
                    for at, *change in changes:
                        effects.append(([some[at], *change], to))
            kept = np.ones(len(lanes), bool)
            if unique:
                kept = _first_of_each(nodes, lanes, values, width)
            nodes.reshape(-1)[lanes[kept]] = values[kept]
            for (at, *change), to in effects:
                chosen = kept[at]
                to.append((lanes[at[chosen]], *(part[chosen] for part in change)))
            if not unique or kept.all():
                break
            lanes, own = lanes[~kept], own[~kept]
        _replace(samples[0], replaced, width)
        if not edges:
            return nodes, np.empty((0, 4), np.int64)
        slots = np.concatenate([at for at, _ in edges])
        ends = np.concatenate([change for _, change in edges])
        order = np.argsort(slots, kind="stable")
        return nodes, np.column_stack([slots // width, ends])[order]

    def _calls(self, lanes: int) -> Any:
        """The lanes of each call."""
        import numpy as np

        every = np.arange(lanes)
        if self.scalar:
            return (every[i : i + 1] for i in range(lanes))
        return (every,) if lanes else ()

    def _enter(self, call: Call, name: str, *arguments: Any) -> Ints:
        from pygsampler.research import transit_calls as calls

        method = getattr(self.application, name)
        try:
            value = calls.entered(call, method, *arguments)
        except ValueError as error:
            if self.scalar or "truth value" not in str(error):
                raise
            raise TypeError(
                f"{self.name}.{name}: expected numpy.where, or where=, instead of a condition on "
                f"many samples with batched=True ({error}); batched=False calls it for one"
            ) from error
        return calls.returned_nodes(call, value, f"{self.name}.{name}")


def _first_of_each(nodes: Ints, lanes: Ints, values: Ints, width: int) -> Any:
    """True for lanes whose node no slot of the sample has, nor a lower lane; and for NULL."""
    import numpy as np

    samples = lanes // width
    # The nodes of earlier rounds come first, so that they are the first of their number.
    at = np.flatnonzero(nodes.reshape(-1) >= 0)
    both = np.column_stack(
        [np.append(at // width, samples), np.append(nodes.reshape(-1)[at], values)]
    )
    _, first = np.unique(both, axis=0, return_index=True)
    fresh = np.zeros(len(both), bool)
    fresh[first] = True
    return fresh[len(at) :] | (values == NULL)


def _replace(roots: Ints, replaced: list[Any], width: int) -> None:
    """Puts nodes in the place of roots, in the order of slots."""
    import numpy as np

    if not replaced:
        return
    slots, old, new = (np.concatenate(parts) for parts in zip(*replaced, strict=True))
    order = np.argsort(slots, kind="stable")
    samples, old, new = slots[order] // width, old[order], new[order]
    while len(samples):
        _, now = np.unique(samples, return_index=True)
        match = (roots[samples[now]] == old[now, None]) & (new[now, None] >= 0)
        some = match.any(axis=1) & (old[now] >= 0)
        roots[samples[now[some]], match[some].argmax(axis=1)] = new[now[some]]
        later = np.ones(len(samples), bool)
        later[now] = False
        samples, old, new = samples[later], old[later], new[later]


set_public_module(globals())


def __dir__() -> list[str]:
    return sorted(__all__)
