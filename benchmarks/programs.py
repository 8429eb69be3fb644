"""Algorithms as programs against the same ones in torch's own operators, on the CPU::

    python -m benchmarks.programs --quick
    python -m benchmarks.programs
    python -m benchmarks.programs --ablation --out FOLDER

Both sample the same seeds in turn. Before the clock starts both sample a few batches, whose edges
and vertices must agree in number within their noise. A batch of ours has numbered vertices and a
CSR of local ids for each hop; torch's (``benchmarks/eager_torch.py``) is what its operators leave.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from tqdm import tqdm

import pygsampler as pgs
from pygsampler import samplers
from pygsampler._cli.bench.check import CheckError
from pygsampler._cli.bench.csc import CscGraph
from pygsampler.samplers import layer_wise

from . import eager_torch, environment, graphs, report
from .weights import weights_of

# Batches of a check, and the standard errors that means may differ by.
CHECKED, _ERRORS = 12, 6.0


# The passes that an ablation turns on, one after another.
PASSES = (
    *("fold", "cse", "dce", "extract_select", "edge_map", "edge_map_reduce", "vector_map"),
    *("preprocess", "layout", "recognise"),
)
STAGES = (
    *(("plain", ()), ("fusion", PASSES[:7]), ("pre-processing", PASSES[:8])),
    *(("layout", PASSES[:9]), ("all", PASSES)),
)
ABLATED = (
    *("graphsage 25,10", "ladies 512,512", "fastgcn 512,512", "kgcn 8,8", "shadow 10,10"),
    "labor 10,10",
)


class Setting(NamedTuple):
    """An algorithm with its parameters: ours, torch's, and the seeds of a batch."""

    name: str
    seeds: int
    ours: Callable[..., Any]  # takes options of programs
    torch: Callable[[Tables, torch.Tensor], list[eager_torch.Hop]]


class Tables(NamedTuple):
    """The inputs of torch's algorithms: the graph, and vectors that depend on it alone."""

    graph: eager_torch.Graph
    norms: torch.Tensor  # [V]: the squared norm of each row's weights
    degrees: torch.Tensor  # [V], float64
    scores: torch.Tensor  # [V, 2]
    features: torch.Tensor | None = None  # [V, d] of PASS


SETTINGS = (
    Setting(
        "graphsage 25,10",
        512,
        lambda **o: samplers.graphsage(fanouts=[10, 25], seed=1, **o),
        lambda t, seeds: eager_torch.sage(t.graph, seeds, [25, 10]),
    ),
    Setting(
        "ladies 4000,4000,4000",
        512,
        lambda **o: samplers.ladies(nodes=[4000] * 3, weight="w", seed=1, **o),
        lambda t, seeds: eager_torch.ladies(t.graph, seeds, [4000] * 3),
    ),
    Setting(
        "ladies 512,512",
        512,
        lambda **o: samplers.ladies(nodes=[512] * 2, weight="w", seed=1, **o),
        lambda t, seeds: eager_torch.ladies(t.graph, seeds, [512] * 2),
    ),
    Setting(
        "fastgcn 2000,2000",
        512,
        lambda **o: samplers.fastgcn(nodes=[2000] * 2, weight="w", seed=1, **o),
        lambda t, seeds: eager_torch.fastgcn(t.graph, seeds, [2000] * 2, t.norms),
    ),
    Setting(
        "asgcn 512,512",
        256,
        lambda **o: samplers.asgcn(nodes=[512] * 2, weight="w", seed=1, **o),
        lambda t, seeds: eager_torch.asgcn(t.graph, seeds, [512] * 2, t.scores),
    ),
    Setting(
        "labor 10,10",
        1024,
        lambda **o: layer_wise.labor(fanouts=[10, 10], seed=1, **o),
        lambda t, seeds: eager_torch.labor(t.graph, seeds, [10, 10]),
    ),
    Setting(
        "kgcn 8,8",
        1024,
        lambda **o: samplers.kgcn(fanouts=[8, 8], seed=1, **o),
        lambda t, seeds: eager_torch.kgcn(t.graph, seeds, [8, 8]),
    ),
    Setting(
        "kgcn 10,25",
        1024,
        lambda **o: samplers.kgcn(fanouts=[10, 25], seed=1, **o),
        lambda t, seeds: eager_torch.kgcn(t.graph, seeds, [25, 10]),
    ),
    Setting(
        "with replacement 10,25",
        1024,
        lambda **o: samplers.graphsage(fanouts=[10, 25], replace=True, seed=1, **o),
        lambda t, seeds: eager_torch.again(t.graph, seeds, [25, 10]),
    ),
    Setting(
        "fastgcn 512,512",
        512,
        lambda **o: samplers.fastgcn(nodes=[512] * 2, weight="w", seed=1, **o),
        lambda t, seeds: eager_torch.fastgcn(t.graph, seeds, [512] * 2, t.norms),
    ),
    Setting(
        "shadow 10,10",
        512,
        lambda **o: samplers.shadow(fanouts=[10, 10], seed=1, **o),
        lambda t, seeds: eager_torch.shadow(t.graph, seeds, [10, 10]),
    ),
    Setting(
        "saint, 6000 nodes",
        0,
        lambda **o: samplers.saint_node(budget=6000, by="in_degree", seed=1, **o),
        lambda t, seeds: eager_torch.saint_nodes(t.graph, 6000, t.degrees),
    ),
    Setting(
        "saint walks 2000x4",
        0,
        lambda **o: samplers.saint_walk(roots=2000, length=4, seed=1, **o),
        lambda t, seeds: eager_torch.saint_walks(t.graph, 2000, 4),
    ),
)


def prepare(graph: CscGraph) -> tuple[pgs.Graph, Tables]:
    """The graph of both, with weights that sum to 1 over each column, and scores of vertices."""
    random = np.random.default_rng(5)
    degree = np.diff(graph.indptr)
    weights = weights_of(graph, "[1, 5)") / np.maximum(degree, 1).repeat(degree).astype(np.float32)
    scores = random.standard_normal((graph.num_nodes, 2)).astype(np.float32)
    ours = pgs.Graph.from_csc(
        graph.indptr,
        graph.indices,
        edge_data={"w": weights},
        node_data={"h_source": scores[:, 0].copy(), "h_target": scores[:, 1].copy()},
    )
    arrays = (torch.from_numpy(a) for a in (graph.indptr, graph.indices, weights, scores))
    return ours, tables(*arrays)


def tables(
    indptr: torch.Tensor, indices: torch.Tensor, weight: torch.Tensor, scores: torch.Tensor
) -> Tables:
    """Returns the inputs of torch's algorithms on the tensors' device."""
    indptr, indices = indptr.long(), indices.long()
    norms = torch.zeros(len(indptr) - 1, device=weight.device)
    norms.index_add_(0, indices, weight * weight)
    return Tables(eager_torch.Graph(indptr, indices, weight), norms, indptr.diff().double(), scores)


def _counts_of_ours(made: Any) -> list[int]:
    """Edges of each hop, from the seeds on."""
    blocks = made.blocks if hasattr(made, "blocks") else [made]
    return [block.num_edges for block in reversed(blocks)]


def check(at: Setting, graph: pgs.Graph, given: Tables, seeds: Sequence[torch.Tensor]) -> None:
    """CheckError where the edges of a hop differ by more than noise."""
    sampler = at.ours()
    found = np.array([_counts_of_ours(sampler.sample(graph, ids)) for ids in seeds], float)
    want = np.array([[len(h.rows) for h in at.torch(given, ids)] for ids in seeds], float)
    noise = np.hypot(found.std(axis=0, ddof=1), want.std(axis=0, ddof=1)) / np.sqrt(len(seeds))
    if (np.abs(found.mean(axis=0) - want.mean(axis=0)) > _ERRORS * noise + 1e-9).any():
        raise CheckError(
            f"{at.name}: expected about {want.mean(axis=0).round(1)} edges a hop, "
            f"got {found.mean(axis=0).round(1)}"
        )


def measure(
    name: str, at: Setting, graph: pgs.Graph, tables: Tables, rounds: int, tick: Callable[[], Any]
) -> dict[str, Any]:
    """Both in turn, a batch each; the first round is for what is made at a first call."""
    random = np.random.default_rng(3)
    sampler = at.ours()
    contenders: list[Callable[[torch.Tensor], Any]] = [
        lambda ids: sampler.sample(graph, ids),
        lambda ids: at.torch(tables, ids),
    ]
    times: list[list[float]] = [[], []]
    others = environment.OtherLoad()
    for turn in range(rounds + 1):
        ids = torch.from_numpy(random.choice(graph.num_nodes, at.seeds, replace=False))
        for who in (turn % 2, 1 - turn % 2):
            begin = time.perf_counter()
            contenders[who](ids)
            if turn:
                times[who].append(time.perf_counter() - begin)
        tick()
    ours, theirs = times
    return {
        "graph": name,
        "setting": at.name,
        "seeds": at.seeds,
        "ms_a_batch": 1e3 * statistics.median(ours),
        "torch_ms_a_batch": 1e3 * statistics.median(theirs),
        "ratio": statistics.median(t / o for o, t in zip(ours, theirs, strict=True)),
        "others": others.share(),
        "seconds": ours,
        "torch_seconds": theirs,
    }


def ablation(
    name: str, at: Setting, graph: pgs.Graph, rounds: int, tick: Callable[[], Any]
) -> dict[str, Any]:
    """Batches with more and more of the passes, in turn; the same batches, which is checked."""
    random = np.random.default_rng(3)
    stages = {stage: at.ours(passes=[p for p in PASSES if p not in on]) for stage, on in STAGES}
    times: dict[str, list[float]] = {stage: [] for stage in (*stages, "16 together")}
    for turn in range(rounds + 1):
        sets = [random.choice(graph.num_nodes, at.seeds, replace=False) for _ in range(16)]
        found = set()
        for stage, sampler in stages.items():
            begin = time.perf_counter()
            made = sampler.sample(graph, sets[0], epoch=0, batch=turn)
            times[stage].append(time.perf_counter() - begin)
            found.add(tuple(_counts_of_ours(made)))
        begin = time.perf_counter()
        sampler.sample_many(graph, sets, epoch=0, batch=16 * turn)
        times["16 together"].append((time.perf_counter() - begin) / len(sets))
        if len(found) > 1:
            raise CheckError(f"{at.name}: passes change the batch: {found}")
        tick()
    return {
        "graph": name,
        "setting": at.name,
        "ms_a_batch": {k: 1e3 * statistics.median(v[1:]) for k, v in times.items()},
    }


def drawn(rows: list[dict[str, Any]], path: Path) -> None:
    """The picture of an ablation: how many times as fast as without any pass."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(2 + 1.1 * len(rows), 3.2), layout="constrained")
    stages = list(rows[0]["ms_a_batch"])
    width = 0.8 / len(stages)
    for i, stage in enumerate(stages):
        gains = [row["ms_a_batch"][stages[0]] / row["ms_a_batch"][stage] for row in rows]
        places = [k + (i - len(stages) / 2 + 0.5) * width for k in range(len(rows))]
        axis.bar(places, gains, width, label=stage)
    axis.set_xticks(range(len(rows)), [row["setting"] for row in rows], fontsize=8)
    axis.set_yscale("log")
    axis.set_ylabel("times as fast")
    axis.legend(fontsize=7, ncols=3, frameon=False)
    axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


def line(row: dict[str, Any]) -> str:
    busy = f"  (others took {row['others']:.0%})" if row["others"] > 0.05 else ""
    return (
        f"{row['graph']:11} {row['setting']:22} {row['seeds']:>5} seeds "
        f"{row['ms_a_batch']:9.3f} ms, torch {row['torch_ms_a_batch']:9.3f} ms, "
        f"{row['ratio']:7.2f} x{busy}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """0, or 1 after a failed check."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = argparse.ArgumentParser(prog="python -m benchmarks.programs", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small graph, seconds")
    parser.add_argument("--graph", choices=tuple(graphs.SHAPES), default="products")
    parser.add_argument("--setting", action="append", choices=[at.name for at in SETTINGS])
    parser.add_argument("--repeat", type=int, default=11, help="rounds (default: 11)")
    parser.add_argument("--ablation", action="store_true", help="passes instead of torch")
    parser.add_argument("--out", type=Path, help="folder for programs.json")
    options = parser.parse_args(given)
    name = "quick" if options.quick else options.graph
    record = environment.describe(given, module="benchmarks.programs")
    print(environment.summary(record), end="\n\n")
    graph, kept = prepare(graphs.load(name))
    random = np.random.default_rng(7)
    rows = []
    try:
        for at in SETTINGS:
            if at.name not in (options.setting or (ABLATED if options.ablation else [at.name])):
                continue
            if options.ablation:
                with tqdm(total=options.repeat + 1, desc=at.name, leave=False) as bar:
                    rows.append(ablation(name, at, graph, options.repeat, bar.update))
                print(at.name, {k: round(v, 2) for k, v in rows[-1]["ms_a_batch"].items()})
                continue
            checked = [
                torch.from_numpy(random.choice(graph.num_nodes, at.seeds, replace=False))
                for _ in range(CHECKED)
            ]
            check(at, graph, kept, checked)
            with tqdm(total=options.repeat + 1, desc=at.name, unit="round", leave=False) as bar:
                rows.append(measure(name, at, graph, kept, options.repeat, bar.update))
            print(line(rows[-1]), flush=True)
    except CheckError as error:
        print(f"refused: {error}", file=sys.stderr)
        return 1
    if options.out:
        file = "programs_ablation.json" if options.ablation else "programs.json"
        report.write_json(options.out / file, record | {"rows": rows})
        if options.ablation:
            drawn(rows, options.out / "programs_ablation.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
