"""The engine's batch of a program's text beside the reference's."""

from __future__ import annotations

import ctypes
import math
import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from program_graphs import INPUTS, SINGLE_INPUTS, Arrays, seeds_of
from program_numbers import BatchError
from program_reference import Block, Program, Result, parse, reference, unquoted
from random_programs import only

import pygsampler as pgs
from pygsampler._arrays.array import Array
from pygsampler._batch import layout as at
from pygsampler._sampling.dispatch import dispatch
from pygsampler._sampling.engine_sampler import EngineSampler
from pygsampler._sampling.plan import Plan
from pygsampler._sampling.request import SampleRequest
from pygsampler._sampling.sampler import Sampler
from pygsampler.programs._language.inputs import InputContent, input_texts

PASSES = (
    "fold",
    "cse",
    "dce",
    "preprocess",
    "extract_select",
    "edge_map",
    "edge_map_reduce",
    "vector_map",
    "layout",
    "recognise",
)
# The layouts that are forced on the CPU.
LAYOUTS = (("vertices",), ("all_rows",), ("out_edges",), ("vertices", "all_rows", "out_edges"))


class TextProgram(EngineSampler, Sampler[Result]):
    """A program by its text, and its batches as lists: without Python's surface."""

    def __init__(
        self,
        code: str,
        weight: str | None,
        seed: int,
        without: tuple[str, ...] = (),
        layouts: tuple[str, ...] = (),
    ) -> None:
        Sampler.__init__(self, seed)
        nodes = parse(code).nodes
        fields: dict[str, Any] = {"code": code.split("\n"), "weight": weight, "passes": without}
        if layouts:
            fields["layouts"] = layouts
        if any(n.op in ("project", "item") for n in nodes):
            given = {k: np.array(v, np.float32) for k, v in INPUTS.items()}
            fields["inputs"] = input_texts(
                {k: InputContent.from_value(k, v) for k, v in given.items()}
            )
        plan = Plan(family="program", **fields)
        EngineSampler.__init__(self, plan, seed)
        edges, vertices, rows = (
            {unquoted(n.attrs["name"]) for n in nodes if n.op == op}
            for op in ("data", "vertices", "features")
        )
        edges |= {weight} if weight else set()
        self.names = sorted(edges), sorted(vertices), None, sorted(rows)

    @property
    def plan(self) -> Plan:
        return self._plan

    def sampled_graph(self, graph: pgs.Graph) -> pgs.Graph:
        return graph._source._with_arrays(*self.names)

    def launch(self, graph: pgs.Graph, seeds: Any, *, epoch: int, batch: int, **how: Any) -> Any:
        request = SampleRequest(
            self, self.sampled_graph(graph), seeds, epoch=epoch, batch=batch, **how
        )
        return dispatch(request)

    def _view(self, graph: pgs.Graph, memory: Any, epoch: int, batch: int) -> Result:
        return read(memory)


def read(memory: Any) -> Result:
    """A batch in lists, of the words that describe it."""
    data = memory
    if memory.device >= 0 and memory.size:
        whole = Array._from_address(memory.data, memory.size // 4, 32, memory, device=memory.device)
        data = whole.cpu()._owner

    def array(dtype: str, offset: int, count: int) -> Any:
        text = ctypes.string_at(data.data + offset, count * np.dtype(dtype).itemsize)
        return np.frombuffer(text, dtype)

    def words_at(start: int, count: int) -> list[int]:
        text = ctypes.string_at(memory.header + 8 * start, 8 * count)
        return [int(word) for word in np.frombuffer(text, np.int64)]

    words = words_at(0, at.FIRST_BLOCK)
    hops = words[at.NUM_HOPS]
    (edge_id_bits,) = words_at(at.edge_id_bits_at(hops), 1)
    ids, edge_ids = f"int{words[at.ID_BITS]}", f"int{edge_id_bits}"
    seeds = words[at.NUM_OUTPUT]
    found = Result(
        array(ids, words[at.NODES], words[at.NUM_NODES]).tolist(),
        array(ids, words[at.OUTPUT_NODES], seeds).tolist(),
        array(ids, words[at.OUTPUT_INDEX], seeds).tolist(),
        [],
        {},
    )
    start = at.FIRST_BLOCK
    for _ in range(hops):
        block = words_at(start, at.WORDS)
        assert block[at.FIRST_DST] == 0
        edges, values = block[at.NUM_EDGES], block[at.EDGE_WEIGHTS]
        found.blocks.append(
            Block(
                array(ids, block[at.INDPTR], block[at.NUM_DST] + 1).tolist(),
                array(ids, block[at.INDICES], edges).tolist(),
                array(edge_ids, block[at.EDGE_IDS], edges).tolist(),
                # A program that the persistent kernel runs has no values: they are ones.
                array("float32", values, edges).tolist() if values else [1.0] * edges,
                block[at.NUM_SRC],
                block[at.NUM_DST],
            )
        )
        start += at.WORDS
    start = at.num_words(hops)
    for i in range(words[at.NUM_EXTRAS]):
        kind, count, offset, _ = words_at(start, at.EXTRA_WORDS)
        dtype = ids if kind else "float32"
        found.extras[str(i)] = array(dtype, offset, count).tolist()
        start += at.EXTRA_WORDS
    return found


def bits(values: list[Any]) -> npt.NDArray[Any]:
    """Returns the ids of a list as they are, and the bits of a vector; all NaN are one."""
    if all(isinstance(x, int) for x in values):
        return np.array(values, np.int64)
    return np.array([math.nan if x != x else x for x in values], np.float32).view(np.int32)


def difference(got: Result, want: Result, vectors: bool = False) -> str:
    """Returns a text about the first array that differs in a bit, "" if none does.

    For a program that returns ``vectors`` alone the nodes of the batch are not compared.
    """
    pairs = [("output_nodes", got.output_nodes, want.output_nodes)]
    if not vectors:
        pairs += [
            ("nodes", got.nodes, want.nodes),
            ("output_index", got.output_index, want.output_index),
        ]
    pairs.append(("blocks", [len(got.blocks)], [len(want.blocks)]))
    for i, (mine, theirs) in enumerate(zip(got.blocks, want.blocks, strict=False)):
        sizes = [[b.num_src, b.num_dst] for b in (mine, theirs)]
        pairs.append((f"blocks[{i}]: sources and destinations", *sizes))
        for name in ("indptr", "indices", "edge_ids", "values"):
            pairs.append((f"blocks[{i}].{name}", getattr(mine, name), getattr(theirs, name)))
    pairs.append(("extras", [len(got.extras)], [len(want.extras)]))
    extras = zip(got.extras.values(), want.extras.items(), strict=False)
    pairs += [(f"extra {name!r}", mine, theirs) for mine, (name, theirs) in extras]
    for name, mine, theirs in pairs:
        if len(mine) != len(theirs) or (bits(mine) != bits(theirs)).any():
            return f"{name}: expected\n{theirs}\ngot\n{mine}"
    return ""


class Trial:
    """A program on a graph, and what its batch has to be."""

    def __init__(
        self,
        code: str,
        case: Arrays,
        seeds: list[int],
        weight: str | None,
        seed: int,
        exclude: list[int] | None = None,
    ) -> None:
        self.code = code
        self.case = case
        self.seeds = seeds
        self.weight = weight
        self.exclude = exclude
        self.numbers = {"epoch": seed % 1000, "batch": seed << 7 & (1 << 40) - 1}
        self.seed = seed
        self.layouts: tuple[str, ...] = ()

    def want(self, code: str, more: int = 0, everything: bool = False) -> Result | BatchError:
        numbers = {**self.numbers, "batch": self.numbers["batch"] + more}
        given: dict[str, Any] = {"seed": self.seed, "weight": self.weight, **numbers}
        given |= {"inputs": SINGLE_INPUTS, "exclude": self.exclude or ()}
        try:
            return reference(code, self.case, self.seeds, everything=everything, **given)
        except BatchError as error:
            return error

    def got(self, code: str, without: tuple[str, ...], threads: int, width: int) -> Any:
        sampler = TextProgram(code, self.weight, self.seed, without, self.layouts)
        seeds = np.array(self.seeds, f"int{width}")
        try:
            given: dict[str, Any] = {"threads": threads, **self.numbers}
            if self.exclude is not None:
                given["exclude"] = np.array(self.exclude, np.int64)
            return sampler.sample(self.case.graph(width), seeds, **given)
        except ValueError as error:
            return error

    def judged(self, code: str, got: Any, want: Result | BatchError) -> str:
        if isinstance(got, Exception):
            refused = self.exclude and str(got).startswith("exclude: expected a program")
            if refused and " = walk" in code:
                return ""
            if isinstance(want, BatchError) or isinstance(
                self.want(code, everything=True), BatchError
            ):
                return ""
            return f"expected a batch, got {type(got).__name__}: {got}"
        if isinstance(want, BatchError):
            return f"expected an error, {want}, got a batch"
        return difference(got, want, parse(code).result == "vectors")

    def wrong(self, code: str, without: tuple[str, ...], threads: int, width: int) -> str:
        got = self.got(code, without, threads, width)
        return self.judged(code, got, self.want(code))

    def check(
        self,
        without: tuple[str, ...] = (),
        threads: int = 1,
        width: int = 64,
        layouts: tuple[str, ...] = (),
    ) -> None:
        """AssertionError with the smallest part of the program that differs."""
        self.layouts = layouts
        what = self.wrong(self.code, without, threads, width)
        if not what:
            return
        code, why = self.part(without, threads, width) or (self.code, what)
        case = self.case
        raise AssertionError(
            f"{why}\nof the program, weight={self.weight!r},\n{code}\nwithout {without}, "
            f"layouts {layouts}, {threads} threads, int{width}, seed={self.seed}, "
            f"{self.numbers}, seeds={self.seeds}\n"
            f"indptr={case.indptr}\nindices={case.indices}\nedge_ids={case.edge_ids}"[:6000]
        )

    def part(self, without: tuple[str, ...], threads: int, width: int) -> tuple[str, str] | None:
        """The first node whose value differs, alone."""
        program = parse(self.code)
        kinds = kinds_of(program)
        for i in sorted(program.needed):
            if kinds[i] not in ("matrix", "other"):
                continue
            if program.nodes[i].op == "whole":
                continue
            code = only(self.code, i, matrix=kinds[i] == "matrix")
            try:
                why = self.wrong(code, without, threads, width)
            except Exception:  # of a value that is no result by itself
                continue
            if why:
                return code, why
        return None

    def many(self, width: int = 64, batches: int = 3) -> None:
        """The same batches by ``sample_many``."""
        assert self.exclude is None
        want = [self.want(self.code, more) for more in range(batches)]
        if any(isinstance(one, BatchError) for one in want):
            return
        sampler = TextProgram(self.code, self.weight, self.seed)
        seeds = [np.array(self.seeds, f"int{width}")] * batches
        try:
            got = sampler.sample_many(self.case.graph(width), seeds, **self.numbers)
        except ValueError as error:
            why = self.judged(self.code, error, want[0])
            assert not why, f"{why}\n{self.code}"
            return
        for mine, theirs in zip(got, want, strict=True):
            why = self.judged(self.code, mine, theirs)
            assert not why, f"sample_many: {why}\n{self.code}"


def check_algorithm(sampler: Any, cases: Mapping[str, Arrays], rng: random.Random) -> None:
    """Compares a program of the package with the reference on each graph, byte for byte."""
    edges = 0
    for number, case in enumerate(cases.values()):
        weight = sampler.plan["weight"]
        trial = Trial(sampler.code, case, seeds_of(case, rng), weight, number + 1)
        trial.check(threads=4, width=32)
        trial.check(PASSES, width=64)
        want = trial.want(sampler.code)
        # Some graphs have weights that LADIES and FastGCN refuse.
        edges += 0 if isinstance(want, BatchError) else sum(len(b.indices) for b in want.blocks)
    assert edges > 0


def kinds_of(program: Program) -> list[str]:
    """Returns the kind of each node: a matrix, a scalar, or another value."""
    kinds: list[str] = []
    lists = {"seeds", "column", "row", "union", "unique", "concat", "pick", "draw"}
    dense = {"features", "take", "project", "multiply", "entry"}
    vectors = {"vertices", "degree", "gather", "times", "cap", "labor", "level"}
    matrices = {"whole", "slice", "cross", "data", "individual", "collective", "filter", "top_k"}
    for node in program.nodes:
        given = [kinds[i] for i in node.inputs]
        if node.op in lists | dense | vectors:
            kinds.append("other")
        elif node.op in matrices or node.op in ("merge", "spread", "independent", "dependent"):
            kinds.append("matrix")
        elif node.op in ("sum", "mean", "largest", "smallest", "count"):
            kinds.append("other" if "axis" in node.attrs else "scalar")
        elif node.op == "random":
            kinds.append("matrix" if given else "other")
        elif "matrix" in given:
            kinds.append("matrix")
        else:
            kinds.append("other" if "other" in given else "scalar")
    return kinds
