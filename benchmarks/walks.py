"""Random walks on the CPU against those of DGL, and of torch_cluster where it is installed::

    python -m benchmarks.walks --quick
    python -m benchmarks.walks

Contenders take turns on one graph of the papers' shape, along its out-edges, and give vertices
and no edges. Before the clock starts each of them walks a small graph, where the law of a step is
known, and then this one with edges: every step is an edge, and a walk ends only where there is
none. torch_cluster's node2vec has another law, and is timed nevertheless. The out-edges, tables of
weights and DGL's formats are made before, too.
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
from pygsampler._cli.bench.check import CheckError
from pygsampler._cli.bench.csc import CscGraph

from . import environment, graphs, report
from .weights import weights_of

# Walks and the steps of each that are checked, walks of the check of the law, and the standard
# errors that shares may differ by.
_CHECKED, _CHECKED_STEPS = 20_000, 20
_LAW_WALKS, _ERRORS = 50_000, 6.0
P, Q = 0.5, 2.0
# Vertices and, where they are asked for, edges of walks: [walks, steps + 1] and [walks, steps].
Walked = tuple[torch.Tensor, torch.Tensor | None]


class Setting(NamedTuple):
    """A kind of walk; a round is a number of calls of a number of walks with a number of steps."""

    name: str
    walks: int
    steps: int
    calls: int
    weighted: bool = False
    second: bool = False

    @property
    def total(self) -> int:
        return self.walks * self.steps * self.calls


SETTINGS = (
    Setting("uniform", 200_000, 40, 1),
    Setting("uniform, few", 1024, 10, 20),
    Setting("by weight", 50_000, 20, 1, weighted=True),
    Setting("node2vec", 50_000, 20, 1, second=True),
    Setting("node2vec by weight", 20_000, 10, 1, weighted=True, second=True),
)


class Ours:
    """``RandomWalk.sample`` of the core."""

    name, label = "sample", "RandomWalk.sample"

    def __init__(self, graph: CscGraph, weights: Any) -> None:
        self.graph = pgs.Graph.from_csc(graph.indptr, graph.indices, edge_data={"w": weights})
        self.samplers: dict[tuple[Setting, bool], pgs.RandomWalk] = {}

    def __call__(self, at: Setting, seeds: torch.Tensor, edges: bool) -> Walked | None:
        sampler = self.samplers.get((at, edges))
        if sampler is None:
            options: dict[str, Any] = {"p": P, "q": Q} if at.second else {}
            if at.weighted:
                options["prob"] = "w"
            sampler = pgs.RandomWalk(at.steps, edge_ids=edges, seed=1, **options)
            self.samplers[at, edges] = sampler
        walks = sampler.sample(self.graph, seeds).torch()
        return walks.nodes, walks.edge_ids if edges else None


class Dgl:
    """DGL's functions, or ours in their place."""

    def __init__(self, g: Any, module: Any, name: str, label: str) -> None:
        self.g, self.module, self.name, self.label = g, module, name, label

    def __call__(self, at: Setting, seeds: torch.Tensor, edges: bool) -> Walked | None:
        options: dict[str, Any] = {"prob": "w"} if at.weighted else {}
        options["return_eids"] = edges
        if at.second:
            found = self.module.node2vec_random_walk(self.g, seeds, P, Q, at.steps, **options)
            return found if edges else (found, None)
        found = self.module.random_walk(self.g, seeds, length=at.steps, **options)
        return found[0], found[1] if edges else None


class TorchCluster:
    """``torch.ops.torch_cluster.random_walk``, which knows no weights and stays at dead ends."""

    name, label = "torch_cluster", "torch_cluster.random_walk"

    def __init__(self, g: Any) -> None:
        self.indptr, self.indices, self.edge_ids = g.adj_tensors("csr")
        if len(self.edge_ids) == 0:
            self.edge_ids = torch.arange(len(self.indices))

    def __call__(self, at: Setting, seeds: torch.Tensor, edges: bool) -> Walked | None:
        if at.weighted:
            return None
        p, q = (P, Q) if at.second else (1.0, 1.0)
        nodes, taken = torch.ops.torch_cluster.random_walk(
            self.indptr, self.indices, seeds, at.steps, p, q
        )
        if not edges:
            return nodes, None
        ended = taken < 0
        # Padded as the others are.
        nodes[:, 1:][ended] = -1
        return nodes, torch.where(ended, -1, self.edge_ids[taken.clamp(min=0)])


Contender = Ours | Dgl | TorchCluster


def contenders(graph: CscGraph, weights: Any) -> list[Contender]:
    """DGL's first, where it is installed: it is the baseline."""
    found: list[Contender] = []
    try:
        import dgl
    except ImportError:
        print("DGL is not installed: times without a ratio.\n")
        return [Ours(graph, weights)]
    from pygsampler import dgl as face

    none = torch.empty(0, dtype=torch.int64)
    csc = torch.from_numpy(graph.indptr), torch.from_numpy(graph.indices), none
    g = dgl.graph(("csc", csc), num_nodes=graph.num_nodes)
    g.edata["w"] = torch.from_numpy(weights)
    found += [Dgl(g, dgl.sampling, "dgl", "DGL"), Ours(graph, weights)]
    found.append(Dgl(g, face, "adapter", "pygsampler.dgl"))
    try:
        import torch_cluster  # noqa: F401
    except ImportError:
        print("torch_cluster is not installed.\n")
    else:
        found.append(TorchCluster(g))
    return found


def check(graph: CscGraph, weights: Any, at: Setting, each: Contender, seeds: torch.Tensor) -> None:
    """CheckError unless all steps are edges, and walks end where there is none."""
    few = at._replace(steps=_CHECKED_STEPS)
    made = each(few, seeds, True)
    if made is None:
        return
    assert made[1] is not None
    nodes, edges = (part.numpy() for part in made)
    where = f"{each.label}, {at.name}"
    if nodes.shape != (len(seeds), few.steps + 1) or not (nodes[:, 0] == seeds.numpy()).all():
        raise CheckError(f"{where}: expected walks from the seeds, got shape {nodes.shape}")
    going = edges >= 0
    if not ((nodes[:, 1:] >= 0) == going).all():
        raise CheckError(f"{where}: vertices and edges end at other steps")
    taken = edges[going]
    right = graph.indices[taken] == nodes[:, :-1][going]
    right &= np.searchsorted(graph.indptr, taken, "right") - 1 == nodes[:, 1:][going]
    if at.weighted:
        right &= weights[taken] > 0
    if not right.all():
        raise CheckError(f"{where}: {np.count_nonzero(~right)} steps are no edges")
    ended = ~going & (nodes[:, :-1] >= 0)
    leaving = np.bincount(graph.indices, minlength=graph.num_nodes)
    if leaving[nodes[:, :-1][ended]].any():
        raise CheckError(f"{where}: a walk ends where there are edges")


def check_law(opened: Callable[[CscGraph, Any], Sequence[Contender]]) -> None:
    """CheckError unless all contenders draw by the law of each kind of walks.

    On the graph 0-1, 0-2, 1-2, 2-3, with the weights 1 to 4: where walks go that came from 0 to 2.
    """
    ends = [(0, 1, 1), (0, 2, 2), (1, 2, 3), (2, 3, 4)]
    edges = sorted([(v, u, w) for u, v, w in ends] + ends)
    counts = np.bincount([v for v, _, _ in edges], minlength=4)
    small = CscGraph(
        "small",
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        np.array([u for _, u, _ in edges], np.int64),
    )
    chosen = opened(small, np.array([w for _, _, w in edges], np.float32))
    seeds = torch.zeros(_LAW_WALKS, dtype=torch.int64)
    for at in SETTINGS:
        weights = np.array([2, 3, 0, 4]) if at.weighted else np.array([1, 1, 0, 1])
        law = weights * (np.array([1 / P, 1, 0, 1 / Q]) if at.second else 1)
        law = law / law.sum()
        for each in chosen:
            made = each(at._replace(steps=2), seeds, False)
            # torch_cluster tries a rejected step back again as one further away.
            if made is None or (at.second and isinstance(each, TorchCluster)):
                continue
            nodes = made[0].numpy()
            third = nodes[nodes[:, 1] == 2, 2]
            share = np.bincount(third, minlength=4) / max(len(third), 1)
            noise = np.sqrt(law * (1 - law) / max(len(third), 1))
            if (np.abs(share - law) > _ERRORS * noise).any():
                raise CheckError(
                    f"{each.label}, {at.name}: from 0 over 2 to {share.round(4)}: expected "
                    f"{law.round(4)}"
                )


def measure(
    graph: CscGraph, at: Setting, chosen: Sequence[Contender], rounds: int, tick: Callable[[], Any]
) -> list[dict[str, Any]]:
    """A row for each contender, by rounds that they take in turn."""
    random = np.random.default_rng(3)
    times: dict[str, list[float]] = {}
    loads = []
    for turn in range(rounds + 1):
        calls = [
            torch.from_numpy(random.integers(0, graph.num_nodes, at.walks)) for _ in range(at.calls)
        ]
        others = environment.OtherLoad()
        for each in (*chosen[turn % len(chosen) :], *chosen[: turn % len(chosen)]):
            begin = time.perf_counter()
            made = [each(at, seeds, False) for seeds in calls]
            spent = time.perf_counter() - begin
            # The first round is for what is made at a first call.
            if turn and made[0] is not None:
                times.setdefault(each.name, []).append(spent)
        loads.append(others.share())
        tick()
    base = times.get("dgl")
    rows = []
    for each in chosen:
        spent_by = times.get(each.name)
        if spent_by is None:
            continue
        ratio = None
        if base is not None:
            ratio = statistics.median(b / t for b, t in zip(base, spent_by, strict=True))
        median = statistics.median(spent_by)
        rows.append(
            {
                "graph": graph.name,
                "setting": at._asdict(),
                "contender": each.label,
                "ms_a_call": 1e3 * median / at.calls,
                "msteps_per_second": at.total / median / 1e6,
                "ratio": ratio,
                "others": max(loads),
                "seconds": spent_by,
            }
        )
    return rows


def line(row: dict[str, Any]) -> str:
    at = row["setting"]
    ratio = "" if row["ratio"] is None else f"{row['ratio']:8.2f} x DGL"
    busy = f"  (others took {row['others']:.0%})" if row["others"] > 0.05 else ""
    return (
        f"{row['graph']:9} {at['name']:19} {at['walks']:>7,} x {at['steps']:<3} "
        f"{row['contender']:26} {row['ms_a_call']:10.3f} ms a call "
        f"{row['msteps_per_second']:8.2f} M steps/s{ratio}{busy}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """0, or 1 after a failed check."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = argparse.ArgumentParser(prog="python -m benchmarks.walks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small graph, seconds")
    parser.add_argument("--graph", choices=tuple(graphs.SHAPES), default="products")
    parser.add_argument("--setting", action="append", choices=[at.name for at in SETTINGS])
    parser.add_argument("--repeat", type=int, default=7, help="rounds (default: 7)")
    parser.add_argument("--out", type=Path, help="folder for walks.json")
    options = parser.parse_args(given)
    name, chosen = options.graph, [a for a in SETTINGS if a.name in (options.setting or [a.name])]
    if options.quick:
        name, chosen = "quick", [at._replace(walks=min(at.walks, 2000)) for at in chosen]
    record = environment.describe(given, module="benchmarks.walks")
    print(environment.summary(record), end="\n\n")
    graph = graphs.load(name)
    weights = weights_of(graph, "[1, 5)")
    rows = []
    seeds = torch.from_numpy(np.random.default_rng(7).integers(0, graph.num_nodes, _CHECKED))
    try:
        check_law(contenders)
        everyone = contenders(graph, weights)
        for at in chosen:
            for each in everyone:
                check(graph, weights, at, each, seeds)
            total = options.repeat + 1
            with tqdm(total=total, desc=at.name, unit="round", leave=False) as bar:
                done = measure(graph, at, everyone, options.repeat, bar.update)
            for row in done:
                print(line(row), flush=True)
            rows += done
    except CheckError as error:
        print(f"refused: {error}", file=sys.stderr)
        return 1
    if options.out:
        report.write_json(options.out / "walks.json", record | {"rows": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
