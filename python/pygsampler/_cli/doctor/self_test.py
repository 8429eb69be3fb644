"""The part of a report that samples: every engine has to give the same, and nothing wrong."""

from __future__ import annotations

import random
from array import array
from collections.abc import Iterator
from typing import Any, NamedTuple

from pygsampler import cuda
from pygsampler._batch.minibatch import MiniBatch
from pygsampler._cli.doctor.remedies import remedy
from pygsampler._cli.doctor.report import Problem, Section
from pygsampler._graph.graph import Graph
from pygsampler._sampling.extensions import MODES
from pygsampler.samplers.neighbor import PGSampler
from pygsampler.samplers.neighbor_plan import NEIGHBOR

CPU_MODES = ("auto", *(name for name, mode in MODES.items() if mode.has_cpu_code))
DEVICE_MODES = (*NEIGHBOR, *MODES)
_VERTICES, _SEEDS, _HUB = 1200, 300, 3000


class Case(NamedTuple):
    """A graph with ids of so many bits, and how it is sampled."""

    bits: int
    fanouts: tuple[int, ...]
    replace: bool


CASES = (Case(32, (5, 10, 3), False), Case(64, (4, -1), False), Case(64, (7, 7), True))


def self_test() -> Section:
    """A random graph sampled by each engine in each mode, and compared array by array."""
    facts: list[dict[str, Any]] = []
    lines, problems = [], []
    for device, modes in _devices():
        failed: dict[str, list[str]] = {}
        results = []
        for mode in modes:
            error = run(device, mode)
            results.append(f"{mode} {'fails' if error else 'ok'}")
            facts.append({"device": device, "mode": mode, "ok": error is None, "error": error})
            if error is not None:
                failed.setdefault(error, []).append(mode)
        lines.append((device, ", ".join(results)))
        problems += [
            Problem(f"self-test on {device}, mode {', '.join(those)}: {error}", remedy(error))
            for error, those in failed.items()
        ]
    return Section("self_test", {"runs": facts}, tuple(lines), tuple(problems))


def run(device: str, mode: str) -> str | None:
    """Returns what is wrong with ``mode`` on ``device``; None where nothing is."""
    try:
        for case in CASES:
            wrong = _compare(case, device, mode)
            if wrong:
                return f"{case}: {wrong}"
    except Exception as error:
        # Whatever it is: the other modes and devices are still worth a look.
        return f"{type(error).__name__}: {error}"
    return None


def _devices() -> Iterator[tuple[str, tuple[str, ...]]]:
    yield "cpu", CPU_MODES
    if cuda.is_available():
        for index in range(cuda.device_count()):
            yield f"cuda:{index}", DEVICE_MODES


def _compare(case: Case, device: str, mode: str) -> str | None:
    registered = MODES.get(mode)
    if case.replace and registered is not None and not registered.takes_replace:
        return None
    indptr, indices, seeds = _graph(case)
    graph = Graph.from_csc(indptr, indices)
    equals_auto = registered is None or registered.equals_auto
    expected = _sample(graph, case, seeds, "auto" if equals_auto else mode)
    wrong = _breach(case, indptr, indices, expected)
    if wrong:
        return wrong
    if device == "cpu":
        batch = _sample(graph, case, seeds, mode)
    else:
        with graph.to(device) as copy:
            batch = _sample(copy, case, seeds, mode).cpu()
    for (name, want), (_, got) in zip(_arrays(expected), _arrays(batch), strict=True):
        if want != got:
            return f"{name} is not that of the CPU"
    return None


def _sample(graph: Graph, case: Case, seeds: array[int], mode: str) -> MiniBatch:
    sampler = PGSampler(case.fanouts, replace=case.replace, seed=1, mode=mode)
    return sampler.sample(graph, seeds, epoch=0, batch=0)


def _graph(case: Case) -> tuple[array[int], array[int], array[int]]:
    """``indptr``, ``indices`` and seeds: nodes without edges, parallel edges, and a hub."""
    draw = random.Random(case.bits)
    degrees = [draw.choice((0, 1, 2, 3, 10, 40)) for _ in range(_VERTICES)]
    degrees[7] = _HUB
    kind = "i" if case.bits == 32 else "q"
    indptr = array(kind, [0])
    for degree in degrees:
        indptr.append(indptr[-1] + degree)
    indices = array(kind, (draw.randrange(_VERTICES) for _ in range(indptr[-1])))
    seeds = array(kind, (draw.randrange(_VERTICES) for _ in range(_SEEDS)))
    seeds[5] = 7
    return indptr, indices, seeds


def _arrays(batch: MiniBatch) -> Iterator[tuple[str, tuple[str, list[int]]]]:
    """Name, dtype and values of all that a batch has."""
    named = [("input_nodes", batch.input_nodes), ("output_nodes", batch.output_nodes)]
    named.append(("output_index", batch.output_index))
    for hop, block in enumerate(batch.blocks):
        named += [
            (f"blocks[{hop}].indptr", block.indptr),
            (f"blocks[{hop}].indices", block.indices),
            (f"blocks[{hop}].edge_ids", block.edge_ids),
        ]
    for name, values in named:
        yield name, (values.dtype, values.tolist())


def _breach(case: Case, indptr: array[int], indices: array[int], batch: MiniBatch) -> str | None:
    """Returns which law the CPU's batch breaks: edges are the graph's, and as many as asked for."""
    for hop, (block, fanout) in enumerate(zip(batch.blocks, case.fanouts, strict=True)):
        starts, sources = block.indptr.tolist(), block.indices.tolist()
        edges, nodes = block.edge_ids.tolist(), block.src_nodes.tolist()
        for row, vertex in enumerate(block.dst_nodes.tolist()):
            first, last = indptr[vertex], indptr[vertex + 1]
            mine = range(starts[row], starts[row + 1])
            degree = last - first
            if fanout < 0 or (degree <= fanout and not case.replace):
                take = degree
            else:
                take = fanout if degree else 0
            if len(mine) != take:
                return f"blocks[{hop}], row {row}: expected {take} edges, got {len(mine)}"
            drawn = [edges[at] for at in mine]
            if any(not first <= edge < last for edge in drawn):
                return f"blocks[{hop}], row {row}: an edge is not one of node {vertex}"
            if len(set(drawn)) < len(drawn) and not case.replace:
                return f"blocks[{hop}], row {row}: an edge came twice"
            if any(nodes[sources[at]] != indices[edges[at]] for at in mine):
                return f"blocks[{hop}], row {row}: a source is not that of its edge"
    return None
