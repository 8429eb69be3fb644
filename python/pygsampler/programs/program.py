"""``program``: samplers that are written as functions over the graph as a matrix."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from textwrap import indent
from time import perf_counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

from pygsampler._batch.edge_values import EdgeValueName
from pygsampler._batch.minibatch import MiniBatch, as_torch
from pygsampler._batch.subgraph import Subgraph
from pygsampler._batch.torch_sources import TensorSource
from pygsampler._engine import library
from pygsampler._engine.checks import describe, integer
from pygsampler._engine.compile_log import log_compile_times
from pygsampler._engine.progress import wait_indicator
from pygsampler._graph.program_arrays import ProgramArrayNames
from pygsampler._sampling.device_job import sample_many
from pygsampler._sampling.dispatch import dispatch
from pygsampler._sampling.engine_sampler import EngineSampler
from pygsampler._sampling.extensions import function_of_class
from pygsampler._sampling.pending import GroupLauncher
from pygsampler._sampling.plan import Plan
from pygsampler._sampling.request import SampleRequest
from pygsampler._sampling.sampler import Sampler, check_graph
from pygsampler._sampling.torch_group import TorchLauncher
from pygsampler.programs._language import inputs
from pygsampler.programs._language.expressions import (
    Input,
    NodeList,
)
from pygsampler.programs._language.graph_matrix import GraphMatrix
from pygsampler.programs._language.inputs import InputContent, input_of
from pygsampler.programs._language.outputs import output_line
from pygsampler.programs._language.reports import Explanation, Profile
from pygsampler.programs._language.text import arrays, extras, nodes_follow_seeds, operator_arrays
from pygsampler.programs._language.trace import (
    ProgramTrace,
    check_deterministic,
    constant,
    source_location,
)
from pygsampler.programs.hetero_program import HeteroProgram
from pygsampler.programs.node_inputs import NodeInputs
from pygsampler.programs.walk_program import WalkProgram

if TYPE_CHECKING:
    import torch

    from pygsampler._engine.memory import Memory
    from pygsampler._graph.graph import Graph as Stored
    from pygsampler._graph.schema import EdgeType
    from pygsampler._sampling.job import SampleJob

__all__ = ["Program", "ProgramFunction", "program"]


def __dir__() -> list[str]:
    return sorted(__all__)


# Options of the sampler, which no program has as arguments.
_OWN = ("passes", "seed", "weight")
# Operators that have an input by its name.
_TAKES_INPUT = ("project", "item")
# Passes that choose where edges and values are stored, and who makes them.
_LAYOUT = ("extract_select", "edge_map", "edge_map_reduce", "vector_map", "recognise")
# Layouts that are the other ones than usual, whatever they cost by the model: of the CPU's engine,
# and of GPUs.
_OTHERS = ("vertices", "all_rows", "out_edges")
_OTHERS_ON_DEVICE = ("out_edges",)
# After so many batches nobody waits for a compiler any more.
_TOLD = 4
# The name of the times of a timed batch, which no value of a program can have.
_TIMES = "us of each operator"


def program(function: Callable[..., Any]) -> ProgramFunction:
    """Turns a function over the graph as a matrix into a factory of samplers.

    The function takes the graph ``A`` and the nodes ``seeds`` of a batch, and by name constants:
    numbers, strings, and lists of them. It runs when a sampler is created, on stand-ins that record
    the operators, so loops and branches on constants unroll. It runs twice: a difference between
    the runs, such as a random number of Python's, would be constant over all batches, and is an
    error.

        @pgs.program
        def sage(A, seeds, fanouts):
            blocks = []
            for K in reversed(fanouts):
                B = A[:, seeds].individual_sample(K)
                blocks.insert(0, B)
                seeds = seeds | B.row()
            return blocks

        sampler = sage(fanouts=[10, 10], seed=1)

    It returns matrices, outermost hop first, for a ``MiniBatch``; ``A.induce(V)``, or V and a
    matrix of edges among its nodes, for a ``Subgraph``; a dictionary of vectors and lists by name;
    a tuple of one of these and a dictionary; or ``A.walk(seeds, length)``, for ``Walks``: see
    ``WalkProgram``. With ``A["author", "writes", "paper"]``, the matrix of a relation, it samples a
    ``HeteroGraph``: see ``HeteroProgram``. docs/algorithms/operators.md has the operators, which
    are gSampler's (Gong et al., SOSP 2023, Table 4) and more.

    A class is a factory of samplers too, with the constants that its ``__init__`` takes, if it has
    the methods of NextDoor's or GNNSampler's style (docs/algorithms/programs.md).
    """
    if inspect.isclass(function):
        function = function_of_class(function)
    return ProgramFunction(function)


class ProgramFunction:
    """A traced function; a call with its constants returns a ``Program``.

    In addition to the function's arguments a call takes ``weight``, the name of the edge array that
    the values of A are, ones by default; ``seed``, as for ``PGSampler``; and ``passes``, the names
    of compiler passes to leave out, for experiments: the batches are the same.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        if not callable(function):
            raise TypeError(f"program: expected a function, got {describe(function)}")
        try:
            signature = inspect.signature(function)
        except ValueError:
            raise TypeError(
                f"program: expected a function whose arguments are known, got {describe(function)}"
            ) from None
        parameters = list(signature.parameters.values())
        if len(parameters) < 2:
            raise TypeError(
                f"program: expected a function of the graph, seeds and constants, got {signature}"
            )
        for parameter in parameters[2:]:
            if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
                raise TypeError(
                    f"program: {parameter.name}: expected constants by name, got {parameter}"
                )
            if parameter.name in _OWN:
                raise TypeError(
                    f"program: {parameter.name}: expected another name, since samplers have that"
                )
        functools.update_wrapper(self, function)
        self._function = function
        self._known = {p.name: p for p in parameters[2:]}
        # A functools.partial is called as what it calls, and another object as its class.
        called = getattr(function, "func", function)
        self._name = str(getattr(called, "__name__", type(called).__name__))
        code = getattr(called, "__code__", None) or getattr(type(called).__call__, "__code__", None)
        self._place = (
            None if code is None else source_location(code.co_filename, code.co_firstlineno)
        )

    def __call__(
        self,
        *positional: NoReturn,
        weight: str | None = None,
        seed: int | None = None,
        passes: Sequence[str] = (),
        **constants: Any,
    ) -> Program | Any:
        """Returns the sampler of these constants.

        It is a ``HeteroProgram`` for a function that names relations, a ``WalkProgram`` for a
        function that returns walks, and else a ``Program``.

        Raises
        ------
        TypeError, ValueError
            For arguments that the function does not have, or that are no constants; for code that
            cannot be traced, with the line; and for operators that do not fit, with the line.
        """
        name = self._name
        if positional:
            known = ", ".join(f"{each}=" for each in [*self._known, *_OWN])
            raise TypeError(
                f"{name}: expected {known} by name, got {describe(positional[0])}; what it returns "
                "samples graphs"
            )
        if isinstance(passes, str):
            raise TypeError(f"{name}: passes: expected a list of names, got {describe(passes)}")
        for given in constants:
            if given not in self._known:
                known = ", ".join([*self._known, *_OWN])
                raise TypeError(f"{name}: {given}: expected one of {known}")
        missing = [
            p.name for p in self._known.values() if p.default is p.empty and p.name not in constants
        ]
        if missing:
            raise TypeError(f"{name}: expected {'=, '.join(missing)}=, got none")
        constants = {key: inputs.as_constant(value) for key, value in constants.items()}
        tensors = {
            key: InputContent.from_value(f"{name}: {key}", value)
            for key, value in constants.items()
            if inputs.is_tensor(value)
        }
        fixed = {
            key: constant(value, f"{name}: {key}")
            for key, value in constants.items()
            if key not in tensors
        }
        trace, last, lists = self._traced(weight, fixed, tensors, ())
        check_deterministic(trace, last, *self._traced(weight, fixed, tensors, ())[:2])
        if trace.relations:
            # The matrix of a relation depends on the relations that are named after it.
            relations = tuple(trace.relations)
            trace, last, lists = self._traced(weight, fixed, tensors, relations)
        lines = [*trace.lines, last]
        fields: dict[str, Any] = {"code": lines, "weight": weight, "passes": list(passes)}
        of_nodes = {key: tensors[key] for key in inputs.of_nodes(trace.nodes) if key in tensors}
        weights = {attributes["name"] for op, _, attributes in trace.nodes if op in _TAKES_INPUT}
        if weights:
            # An input that no operator reads stays an input, too.
            rest = {key: of for key, of in tensors.items() if key in weights or key not in of_nodes}
            fields["inputs"] = inputs.input_texts(rest)
        try:
            sampler = Program(fields, seed, name, fixed, NodeInputs(of_nodes, name))
        except (TypeError, ValueError) as error:
            raise trace.located(error) from None
        if trace.steps is not None:
            if weight is not None:
                raise ValueError(
                    f"{name}: weight: expected None of a program that returns walks, whose steps "
                    f"are uniform, got {weight!r}; RandomWalk(prob=) goes by weight"
                )
            try:
                return WalkProgram(sampler, trace.steps)
            except ValueError as error:
                raise trace.located(error) from None
        return HeteroProgram(sampler, trace.known, lists) if trace.known else sampler

    def _traced(
        self,
        weight: str | None,
        fixed: Mapping[str, Any],
        tensors: Mapping[str, InputContent],
        relations: tuple[EdgeType, ...],
    ) -> tuple[ProgramTrace, str, tuple[str, ...]]:
        """The function's lines, the last one, and the names of lists that it returns."""
        trace = ProgramTrace(self._name, relations)
        seeds = NodeList(trace, trace.add("seeds"))
        # Lists of its own, since it may change them and the sampler shows what was given.
        own = {key: constant(value, key) for key, value in fixed.items()}
        own |= {key: Input(trace, key, content) for key, content in tensors.items()}
        made = self._function(GraphMatrix(trace, weight), seeds, **own)
        trace.ended = self._place
        # It may add a node: the whole matrix, where that is returned.
        return trace, *output_line(trace, made)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and hasattr(Program, name):
            raise AttributeError(f"{self._name}: {name}: expected a sampler, {self._remedy()}")
        raise AttributeError(name)

    def _remedy(self) -> str:
        """Advice on how to make a sampler, for those who have the function in its place."""
        known = ", ".join(f"{each}=" for each in [*self._known, *_OWN])
        return f"which {self._name}({known}) makes"

    def __repr__(self) -> str:
        return f"<program {self._name}{inspect.signature(self._function)}>"

    def __reduce__(self) -> str:
        # By its name, as functions are: the function itself stands under no name.
        return str(getattr(self, "__qualname__", self._name))


class Program(EngineSampler, Sampler[Any]):
    """A sampler that runs a program; a ``ProgramFunction`` returns it.

    Its batches are a pure function of (graph, plan, seed, epoch, batch, seeds): the same for every
    number of threads, and with each compiler pass on or off. A program may be used from many
    threads at once. A pickle has the plan, and needs no source.

    Parameters
    ----------
    fields : mapping
        The fields of the plan.
    seed : int or None
        See ``PGSampler``.
    name : str
        The name of the function.
    constants : mapping
        The constants of the function, by name.
    node_inputs : NodeInputs, optional
        The inputs with a value or a row for each node.
    """

    edge_values = "w"

    __slots__ = (
        "__weakref__",
        "_constants",
        "_extras",
        "_name",
        "_names",
        "_node_inputs",
        "_numbers",
        "_places",
        "_reads",
        "_result",
        "_rooted",
        "_row_names",
        "_told",
        "_version",
    )

    def __init__(
        self,
        fields: Mapping[str, Any],
        seed: int | None,
        name: str,
        constants: Mapping[str, Any],
        node_inputs: NodeInputs | None = None,
    ) -> None:
        Sampler.__init__(self, seed)
        plan = Plan(family="program", **fields)
        EngineSampler.__init__(self, plan, self._numbers.seed)
        self._name = name
        self._constants = dict(constants)
        lines: Sequence[str] = plan["code"]
        self._node_inputs = NodeInputs({}, name) if node_inputs is None else node_inputs
        names, rows = arrays(lines), operator_arrays(lines, "features")
        self._reads = ProgramArrayNames.from_names(*names, plan["weight"], rows)
        edges, nodes, rows = (
            tuple(each for each in of if input_of(each) is None) for of in (*names, rows)
        )
        self._names, self._row_names = (edges, nodes), rows
        self._places: dict[str, str] | None = None
        self._version = 0
        self._told = 0
        self._result = lines[-1].split(" ")[1]
        self._rooted = self._result != "subgraph" or nodes_follow_seeds(lines)
        self._extras = extras(lines)

    @property
    def plan(self) -> Plan:
        """The program's text and the options: immutable, hashable, and picklable."""
        return self._plan

    @property
    def name(self) -> str:
        """The name of the program's function."""
        return self._name

    @property
    def code(self) -> str:
        """The program's text, a line for each operator."""
        return "\n".join(self._plan["code"])

    @property
    def result_kind(self) -> str:
        """``"blocks"``, ``"subgraph"`` or ``"vectors"``."""
        return self._result

    @property
    def is_rooted(self) -> bool:
        """True if a batch is around its seeds: the nodes of a subgraph may not depend on seeds."""
        return self._rooted

    @property
    def array_names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of the edge and of the node arrays that the program reads, ``weight`` too.

        They are the graph's own: inputs are none of them. Features are among the node arrays.
        """
        (edges, nodes), weight = self._names, self._plan["weight"]
        every = tuple(dict.fromkeys([*([weight] if weight else []), *edges]))
        return every, tuple(dict.fromkeys([*nodes, *self._row_names]))

    @property
    def extra_places(self) -> Mapping[str, str]:
        """The nodes that vectors, dense rows and lists returned by name belong to."""
        if self._places is None:
            names = [name for name in self._extras if not isinstance(name, EdgeValueName)]
            found = library.call("ProgramPlaces", self._plan.document) if names else ""
            self._places = dict(zip(names, found.split("\n"), strict=False))
        return self._places

    @property
    def version(self) -> int:
        """The number of times that ``update`` has changed the inputs."""
        return self._version

    @property
    def _changes(self) -> bool:
        return bool(self._contents() or self._node_inputs.contents)

    @property
    def inputs(self) -> dict[str, Any]:
        """The tensors that it reads, as they are now: float32 copies, by name."""
        contents = {**self._contents(), **self._node_inputs.contents}
        return {name: content.array() for name, content in contents.items()}

    def update(self, **tensors: Any) -> int:
        """Changes inputs from the next batch on, and gives the version.

        Batches that have been submitted keep what they were submitted with. While it runs no other
        thread may submit batches of this sampler.

        Parameters
        ----------
        **tensors : array or tensor of floats
            New contents by name, of the shapes that the inputs have; they are copied, as float32.

        Raises
        ------
        TypeError
            For what is no input of the program, or no tensor of floats.
        ValueError
            For another shape.
        """
        weights, of_nodes = self._contents(), self._node_inputs.contents
        new = inputs.checked({**weights, **of_nodes}, tensors, self._name)
        plan = self._plan
        if not weights.keys().isdisjoint(new):
            changed = {key: new.get(key, content) for key, content in weights.items()}
            fields = {**self._fields(), "inputs": inputs.input_texts(changed)}
            plan = Plan(family="program", **fields)
        node_inputs = self._node_inputs
        if not of_nodes.keys().isdisjoint(new):
            node_inputs = node_inputs.changed({k: v for k, v in new.items() if k in of_nodes})
        with library.handle_lock():
            self._release()
            self._plan, self._node_inputs = plan, node_inputs
            self._version += 1
        return self._version

    def recompute(
        self,
        graph: Stored,
        batch: Any,
        tensors: Mapping[str, torch.Tensor],
        *,
        exclude: Any = None,
    ) -> tuple[list[dict[str, torch.Tensor]], dict[str, torch.Tensor]]:
        """Computes the values of a batch once more, by torch, so that inputs learn from them.

        The batch says which edges were drawn. All that their values depend on, sums over all
        candidates of a column too, is computed of ``tensors`` in their dtype, to rounding as the
        engine does. Edges that the program draws must be among what it returns. For PASS (Yoon et
        al., NeurIPS 2021) it returns the chances p of the drawn edges; ``p / p.detach()`` as
        weights of the edges has the paper's gradient in the mean.

        Parameters
        ----------
        graph : Graph
            The graph that was sampled.
        batch : MiniBatch
            A batch of this sampler; its device computes the values.
        tensors : mapping of str to torch.Tensor
            Contents of inputs by name, all of one dtype of floats; other inputs have their
            contents of now.
        exclude : int32 or int64, shape [K], optional
            The edges that the batch left out.

        Returns
        -------
        edge_data : list of dict of str to torch.Tensor
            For each block the values of its edges by name, ``"w"`` too, shape [num_edges].
        extra : dict of str to torch.Tensor
            Vectors and dense rows, as ``batch.extra`` has them; no lists.

        Raises
        ------
        TypeError
            For tensors that are no tensors of floats of torch, of one dtype, or no inputs.
        ValueError
            For other shapes, for a batch with other edges, and for values that depend on random
            numbers or on edges that were drawn and are not returned.

        Notes
        -----
        Gradients are torch's: of ``(d > 0).select(1 / d, 0)`` they are NaN where d is 0, unlike
        those of ``(d > 0).select(1 / d.maximum(1e-9), 0)``.
        """
        import torch

        from pygsampler.programs.recomputed import recomputed

        check_graph(graph)
        given = as_torch(batch)
        device = given.output_nodes.device
        contents = {**self._contents(), **self._node_inputs.contents}
        new = inputs.learned(contents, tensors, self._name)
        dtype = next(iter(new.values())).dtype
        of = {
            name: new[name].to(device)
            if name in new
            else torch.from_numpy(content.array()).to(device, dtype)
            for name, content in contents.items()
        }
        without = None
        if exclude is not None:
            without = torch.as_tensor(exclude, dtype=torch.int64, device=device)
        code: Sequence[str] = self._plan["code"]
        return recomputed(graph, given, code, self._plan["weight"], of, without)

    def _contents(self) -> dict[str, InputContent]:
        return inputs.contents(self._plan.get("inputs") or ())

    def sampled_graph(self, graph: Stored) -> Stored:
        """The graph with the arrays that the program reads."""
        node_inputs = self._node_inputs
        read: Stored = (
            node_inputs.attached(graph, self._reads)
            if node_inputs.contents
            else graph._source._with_named(self._reads)
        )
        return read

    def explain(self, graph: Stored, seeds: int = 1024, *, batches: int = 0) -> Explanation:
        """Explains the plan before and after each compiler pass, and the costs of a batch.

        Parameters
        ----------
        graph : Graph
        seeds : int
            The number of seeds of a batch.
        batches : int
            The number of batches to sample and to measure, as ``profile`` does, with nodes at equal
            distances as seeds; with 0 costs are only those of the model.

        Returns
        -------
        Explanation
            Its text is for people; notebooks show a drawing of the plan above it.
        """
        check_graph(graph)
        if graph._service is not None:
            raise ValueError(
                "graph: expected one on this machine, whose edges are counted, got one in parts"
            )
        seeds = integer(seeds, "seeds", 0)
        batches = integer(batches, "batches", 0)
        text: str = library.call(
            "ProgramExplain", self.sampled_graph(graph)._handle(), self._plan.document, seeds
        )
        if batches:
            ids = [i * graph.num_nodes // seeds for i in range(seeds if graph.num_nodes else 0)]
            times = self.profile(graph, ids, batches=batches)
            text += f"\nmeasured, the median of {batches} batches:\n{indent(times, '  ')}\n"
        return Explanation(text)

    def tuned(self, graph: Stored, seeds: Any, *, epoch: int = 0, batches: int = 5) -> Program:
        """Returns the same sampler with the compiler passes that save time on a graph.

        Each compiler pass that chooses a layout of values and edges is left out in turn, and stays
        out if batches then take less time, by 3 % at least. Each choice by costs, on a GPU the
        choice for A[R, S], is also tried the other way. The batches are the same.

        Parameters
        ----------
        graph : Graph
            On the CPU or on a GPU.
        seeds : array_like of int, shape [seeds]
            The seeds of each batch.
        epoch : int
            The epoch whose batches 0, 1, ... are sampled.
        batches : int
            The number of batches for each plan, at least 1; their median counts.

        Returns
        -------
        Program
            A sampler of the same seed, at batch 0 of epoch 0.
        """
        check_graph(graph)
        batches = integer(batches, "batches", 1)
        best = self._with_fields(self._fields())
        found = best._median(graph, seeds, epoch, batches)

        def tried(field: str, name: str) -> None:
            nonlocal best, found
            given = best._plan.get(field) or ()
            if name not in given:
                fields = {**best._fields(), field: [*given, name]}
                other = self._with_fields(fields)
                took = other._median(graph, seeds, epoch, batches)
                if took < 0.97 * found:
                    best, found = other, took

        for name in _LAYOUT:
            tried("passes", name)
        tried("passes", "layout")
        if "layout" not in best._plan["passes"]:
            for name in _OTHERS if graph._device < 0 else _OTHERS_ON_DEVICE:
                tried("layouts", name)
        return best

    def _median(self, graph: Stored, seeds: Any, epoch: int, batches: int) -> float:
        """The median of the seconds of a batch, after a first batch that builds cached tables."""
        times = []
        for batch in range(batches + 1):
            begin = perf_counter()
            self.sample(graph, seeds, epoch=epoch, batch=batch)
            times.append(perf_counter() - begin)
        return median(times[1:])

    def profile(
        self,
        graph: Stored,
        seeds: Any,
        *,
        epoch: int = 0,
        batches: int = 10,
    ) -> Profile:
        """Measures where the time of batches goes, operator by operator.

        The batches are sampled by the program itself, even if ``PGSampler`` has the same plan.
        Tables that are built once for a graph or a device are built before the clock starts.

        Parameters
        ----------
        graph : Graph
            On the CPU or on a GPU.
        seeds : array_like of int, shape [seeds]
            The seeds of each batch.
        epoch : int
            The epoch whose batches 0, 1, ... are sampled.
        batches : int
            The number of batches; the median of each operator counts.

        Returns
        -------
        Profile
            A text for people, with the times in ``microseconds``. On the CPU values are computed
            where they are used, so the time of a map is part of the operator which reads it.
        """
        check_graph(graph)
        batches = integer(batches, "batches", 1)
        timed = self._with_fields({**self._fields(), "timed": True})
        timed._extras = (*timed._extras, _TIMES)
        lines = library.call("ProgramLines", timed._plan.document).split("\n")
        columns: list[list[float]] = []
        for batch in range(-2, batches):
            made: Any = timed.sample(graph, seeds, epoch=epoch, batch=max(batch, 0)).cpu()
            if batch >= 0:
                columns.append(made.extra[_TIMES].tolist())
        return Profile._from_times(lines, [median(each) for each in zip(*columns, strict=True)])

    def launch(
        self,
        graph: Stored,
        seeds: Any,
        *,
        epoch: int,
        batch: int,
        exclude: Any = None,
        threads: int = 0,
        form: str = "array",
        asynchronous: bool = False,
    ) -> SampleJob:
        """Starts a batch as ``Sampler.launch`` does.

        Parameters
        ----------
        exclude : int32 or int64, shape [K], optional
            Ids of edges that are in no ``A[:, S]`` and ``A[R, S]``, nor in edges drawn from A; A
            itself, and values computed only from A, have all edges. ValueError for programs that
            walk.
        graph, seeds, epoch, batch, threads, form, asynchronous
            The arguments of ``Sampler.launch``.
        """
        read = self.sampled_graph(graph)
        how: dict[str, Any] = {
            "epoch": epoch,
            "batch": batch,
            "exclude": exclude,
            "threads": threads,
            "form": form,
            "asynchronous": asynchronous,
            "row_plan": None if graph._service is None else self._full_rows_plan(),
        }
        if graph._device < 0 or self._told == _TOLD:
            return dispatch(SampleRequest(self, read, seeds, **how))
        # The first batches of a device wait for the compiler, at times behind this call.
        self._told += 1
        with wait_indicator(f"{self._name}: compiling for the GPU"):
            job = dispatch(SampleRequest(self, read, seeds, **how))
        log_compile_times()
        return job

    def _full_rows_plan(self) -> Plan:
        """Returns the plan that requests rows and edge arrays from a partitioned graph."""
        edges, _ = self.array_names
        return Plan(family="rows", arrays=sorted(edges))

    def with_gpu_share(self, share: float) -> Program:
        return self._bounded(self._with_fields(self._fields()), share)

    def with_seed(self, seed: int | None) -> Program:
        """Another sampler of this plan, with that seed, that begins with batch 0 of epoch 0."""
        return Program(self._fields(), seed, self._name, self._constants, self._node_inputs)

    def _with_fields(self, fields: Mapping[str, Any]) -> Program:
        """Another sampler of the same draws, with batch 0 of epoch 0 as its next."""
        other = Program(fields, self.seed, self._name, self._constants, self._node_inputs)
        other._numbers.is_drawn = self._numbers.is_drawn
        return other

    def _view(self, graph: Stored, memory: Memory, epoch: int, batch: int) -> MiniBatch | Subgraph:
        if self._result == "subgraph":
            return Subgraph._from_memory(memory, epoch, batch, self._extras)
        return MiniBatch._from_memory(memory, epoch, batch, self._extras)

    def group_launcher(
        self, graph: Stored, *, epoch: int, form: str = "array"
    ) -> GroupLauncher | None:
        return TorchLauncher.for_sampler(self, Program, graph, epoch, form)

    def _torch_view(
        self, graph: Stored, region: torch.Tensor, words: Sequence[int], epoch: int, batch: int
    ) -> Any:
        kind = Subgraph if self._result == "subgraph" else MiniBatch
        source = TensorSource(region, words, graph._device)
        return kind._of_source(source, epoch, batch, self._extras)

    def _many(
        self, graph: Stored, many: list[Any], epoch: int, batch: int, memory: int | None
    ) -> list[Any]:
        if graph._device >= 0:
            return sample_many(self.sampled_graph(graph), self, many, epoch, batch, memory)
        return super()._many(graph, many, epoch, batch, memory)

    def __repr__(self) -> str:
        given = [f"{key}={value!r}" for key, value in self._constants.items()]
        if self._plan["weight"] is not None:
            given.append(f"weight={self._plan['weight']!r}")
        if self._plan["passes"]:
            given.append(f"passes={list(self._plan['passes'])!r}")
        return f"{self._name}({', '.join([*given, f'seed={self.seed}'])})"

    def __reduce__(self) -> tuple[Any, ...]:
        about = self._fields(), self._name, self._constants
        place = self.seed, self.epoch, self._numbers.next, self._version
        return _restored, (*about, *place, self._node_inputs.contents)


def _restored(
    fields: dict[str, Any],
    name: str,
    constants: dict[str, Any],
    seed: int,
    epoch: int,
    number: int,
    version: int = 0,
    node_inputs: Mapping[str, InputContent] = MappingProxyType({}),
) -> Program:
    made = Program(fields, seed, name, constants, NodeInputs(node_inputs, name))
    made._numbers.go_on(epoch, number)
    made._version = version
    return made
