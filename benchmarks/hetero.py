"""Graphs with types on the CPU against DGL's own sampler, on a graph of ogbn-mag's counts::

    python -m benchmarks.hetero --quick
    python -m benchmarks.hetero --out results

Eight types of edges over papers, authors, institutions and fields, 42 million in all, with the skew
that the other benchmarks have; 1024 papers a batch, (10, 10) for each type of edges.
Contenders take turns and get the same seeds. Before the clock whole batches of each are checked
edge by edge; in every timed batch the first hop has exactly as many edges as it must, and the mean
of all agrees. The rows "by weight" and "one type" say what weights cost, and what types cost where
there is one of each; "trees" what times cost beside disjoint trees.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from pygsampler._cli.bench.check import CheckError, Int64s
from pygsampler._cli.bench.compare import Quartiles, await_idle
from pygsampler._cli.bench.contenders import int64
from pygsampler._graph.schema import EdgeType

from . import environment, graphs, report

NODES = {"paper": 736_389, "author": 1_134_649, "institution": 8_740, "field": 59_965}
EDGES: dict[EdgeType, int] = {
    ("author", "writes", "paper"): 7_145_660,
    ("author", "affiliated_with", "institution"): 1_043_998,
    ("paper", "cites", "paper"): 5_416_271,
    ("paper", "has_topic", "field"): 7_505_078,
}
# Each has its reverse, as ogbn-mag is trained on.
SIZE, FANOUTS = 1024, (10, 10)
CHECKED = 2


class Relation(NamedTuple):
    """A CSC: row v lists the sources of the edges into v; the id of an edge is its place."""

    indptr: Int64s
    indices: Int64s


class Typed(NamedTuple):
    """A graph with types."""

    nodes: dict[str, int]
    relations: dict[EdgeType, Relation]
    weights: dict[EdgeType, Any]


def load(scale: int = 1, seed: int = 1) -> Typed:
    """The graph, of a ``scale``-th of the vertices and edges."""
    import pygsampler as pgs

    rng = np.random.default_rng(seed)
    nodes = {kind: max(count // scale, 10) for kind, count in NODES.items()}
    relations: dict[EdgeType, Relation] = {}
    for kind, count in EDGES.items():
        src, name, dst = kind
        edges = count // scale
        degrees = graphs.degrees(graphs.Shape(nodes[dst], edges, 2.4), rng)
        indptr = np.concatenate([[0], np.cumsum(degrees)])
        popular = graphs.neighbours(graphs.Shape(nodes[src], edges, 2.4), edges, rng)
        indices = np.concatenate(list(popular)).astype(np.int64)
        relations[kind] = Relation(indptr, indices)
        rows = np.repeat(np.arange(nodes[dst]), degrees)
        size = max(nodes[src], nodes[dst])
        back = pgs.Graph.from_coo(rows, indices, num_nodes=size)
        relations[dst, f"rev_{name}", src] = Relation(
            int64(back.indptr)[: nodes[src] + 1], int64(back.indices)
        )
    weights = {
        kind: np.power(1 - rng.random(len(of.indices)), -1 / 1.2).astype(np.float32)
        for kind, of in relations.items()
    }
    return Typed(nodes, relations, weights)


# ---- contenders: each makes a function of seeds, epoch and batch ----


class Contender(NamedTuple):
    """The function that samples a batch, and the functions by which the check reads it."""

    name: str
    open: Callable[[Typed, int], Callable[[Int64s, int], Any]]
    # Returns the hops of a batch, outermost first, each as its blocks by type.
    hops: Callable[[Any], Sequence[Mapping[EdgeType, Any]]]
    # Return (dst nodes, src nodes, row, col, edge ids) of a block, and its number of edges.
    view: Callable[[Any], tuple[Int64s, Int64s, Int64s, Int64s, Int64s]]
    count: Callable[[Any], int]


def _ours(typed: Typed) -> Any:
    import pygsampler as pgs

    edges = {kind: tuple(of) for kind, of in typed.relations.items()}
    return pgs.HeteroGraph(
        edges, typed.nodes, edge_data={kind: {"w": w} for kind, w in typed.weights.items()}
    )


def _sample(**options: Any) -> Callable[[Typed, int], Callable[[Int64s, int], Any]]:
    def opened(typed: Typed, seed: int) -> Callable[[Int64s, int], Any]:
        import pygsampler as pgs

        graph, sampler = _ours(typed), pgs.PGSampler(FANOUTS, seed=seed, **options)
        return lambda seeds, batch: sampler.sample(graph, {"paper": seeds}, batch=batch)

    return opened


def _our_view(block: Any) -> tuple[Int64s, Int64s, Int64s, Int64s, Int64s]:
    src, dst = (int64(ids) for ids in block.coo())
    row = dst - block.dst_offset
    return int64(block.dst_nodes), int64(block.src_nodes), row, src, int64(block.edge_ids)


def _dgl_graph(typed: Typed) -> Any:
    import dgl
    import torch

    def csc(of: Relation) -> Any:
        return "csc", (*map(torch.from_numpy, of), torch.empty(0, dtype=torch.int64))

    relations = {kind: csc(of) for kind, of in typed.relations.items()}
    graph = dgl.heterograph(relations, typed.nodes)
    for kind, weights in typed.weights.items():
        graph.edges[kind].data["w"] = torch.from_numpy(weights)
    return graph


def _dgl(ours: bool, **options: Any) -> Callable[[Typed, int], Callable[[Int64s, int], Any]]:
    def opened(typed: Typed, seed: int) -> Callable[[Int64s, int], Any]:
        import dgl
        import torch

        from pygsampler.dgl import PGSampler

        dgl.seed(seed)
        graph = _dgl_graph(typed)
        kind = PGSampler if ours else dgl.dataloading.NeighborSampler
        sampler = kind(list(FANOUTS), **options)
        return lambda seeds, batch: sampler.sample(graph, {"paper": torch.from_numpy(seeds)})[2]

    return opened


class _DglBlock(NamedTuple):
    block: Any
    kind: EdgeType


def _dgl_hops(batch: Any) -> list[dict[EdgeType, _DglBlock]]:
    return [{kind: _DglBlock(hop, kind) for kind in hop.canonical_etypes} for hop in batch]


def _dgl_view(of: _DglBlock) -> tuple[Int64s, Int64s, Int64s, Int64s, Int64s]:
    import dgl

    block, (src, _, dst) = of
    col, row = block.edges(order="eid", etype=of.kind)
    ids = block.edges[of.kind].data[dgl.EID]
    nodes = block.dstnodes[dst].data[dgl.NID], block.srcnodes[src].data[dgl.NID]
    return int64(nodes[0]), int64(nodes[1]), int64(row), int64(col), int64(ids)


def contenders(by_weight: bool) -> list[Contender]:
    """DGL's first."""
    options = {"prob": "w"} if by_weight else {}
    ours = lambda batch: batch.blocks, _our_view, lambda block: block.num_edges
    dgl = _dgl_hops, _dgl_view, lambda of: of.block.num_edges(of.kind)
    return [
        Contender("DGL NeighborSampler", _dgl(False, **options), *dgl),
        Contender("PGSampler.sample", _sample(**options), *ours),
        Contender("pygsampler.dgl.PGSampler", _dgl(True, **options), *dgl),
    ]


# ---- checks ----


def check_batch(typed: Typed, contender: Contender, batch: Any, seeds: Int64s) -> None:
    """CheckError unless the batch is a sample of the graph around the seeds."""
    frontier = {kind: np.empty(0, np.int64) for kind in typed.nodes}
    frontier["paper"] = seeds
    for hop, fanout in zip(reversed(contender.hops(batch)), reversed(FANOUTS), strict=True):
        after = dict(frontier)
        for kind, of in typed.relations.items():
            where = f"{contender.name}: {'__'.join(kind)}"
            dst, src, row, col, ids = contender.view(hop[kind])
            _expect(np.array_equal(dst, frontier[kind[2]]), f"{where}: not the frontier")
            want = np.minimum(of.indptr[dst + 1] - of.indptr[dst], fanout)
            _expect(
                np.array_equal(np.bincount(row, minlength=len(dst)), want),
                f"{where}: expected {want.sum()} edges, got {len(row)}",
            )
            _expect(len(np.unique(ids)) == len(ids), f"{where}: an edge stands twice")
            rows = dst[row]
            _expect(
                bool(((of.indptr[rows] <= ids) & (ids < of.indptr[rows + 1])).all()),
                f"{where}: an edge of another row",
            )
            _expect(np.array_equal(of.indices[ids], src[col]), f"{where}: from another vertex")
            if len(src) > len(after[kind[0]]):
                after[kind[0]] = src
        for kind, nodes in after.items():
            _expect(len(np.unique(nodes)) == len(nodes), f"{kind}: a vertex stands twice")
        frontier = after


def _expect(law: bool, message: str) -> None:
    if not law:
        raise CheckError(message)


def _exact(typed: Typed, seeds: Int64s) -> int:
    """Returns the number of edges of the first hop."""
    into = [of for kind, of in typed.relations.items() if kind[2] == "paper"]
    degrees = [of.indptr[seeds + 1] - of.indptr[seeds] for of in into]
    return int(sum(np.minimum(each, FANOUTS[-1]).sum() for each in degrees))


# ---- the clock ----


def run(
    typed: Typed, chosen: Sequence[Contender], options: argparse.Namespace, seed: int = 1
) -> dict[str, Any]:
    """Returns each contender's times per batch in rounds, in turns, and its edges per batch."""
    rng = np.random.default_rng(seed)
    size = min(SIZE, typed.nodes["paper"] // 4)

    def draw(count: int) -> list[Int64s]:
        return [rng.choice(typed.nodes["paper"], size, replace=False) for _ in range(count)]

    sample = {one.name: one.open(typed, seed) for one in chosen}
    for one in chosen:
        for number, seeds in enumerate(draw(CHECKED)):
            check_batch(typed, one, sample[one.name](seeds, number), seeds)
    times: dict[str, list[float]] = {one.name: [] for one in chosen}
    edges: dict[str, list[int]] = {one.name: [] for one in chosen}
    patience = options.wait
    for number in tqdm(range(options.repeat), unit="round", leave=False):
        patience -= await_idle(patience)
        drawn = draw(options.batches)
        turn = number % len(chosen)
        for one in (*chosen[turn:], *chosen[:turn]):
            spent = 0.0
            for place, seeds in enumerate(drawn):
                start = time.perf_counter()
                batch = sample[one.name](seeds, CHECKED + number * options.batches + place)
                spent += time.perf_counter() - start
                hops = [sum(map(one.count, hop.values())) for hop in one.hops(batch)]
                _expect(hops[-1] == _exact(typed, seeds), f"{one.name}: edges are lost")
                edges[one.name].append(sum(hops))
            times[one.name].append(spent / len(drawn))
    means = {name: float(np.mean(counts)) for name, counts in edges.items()}
    first = means[chosen[0].name]
    for name, mean in means.items():
        _expect(abs(mean / first - 1) < 0.01, f"{name}: {mean:.0f} edges, others {first:.0f}")
    return {"times": times, "edges": means}


def one_type(typed: Typed) -> tuple[Typed, list[Contender]]:
    """The citations alone, with their type and without."""
    kind = "paper", "cites", "paper"
    alone = Typed(
        {"paper": typed.nodes["paper"]},
        {kind: typed.relations[kind]},
        {kind: typed.weights[kind]},
    )

    def without(of: Typed, seed: int) -> Callable[[Int64s, int], Any]:
        import pygsampler as pgs

        graph, sampler = pgs.Graph.from_csc(*of.relations[kind]), pgs.PGSampler(FANOUTS, seed=seed)
        return lambda seeds, batch: sampler.sample(graph, seeds, batch=batch)

    def hops(batch: Any) -> list[dict[EdgeType, Any]]:
        return [{kind: block} for block in batch.blocks]

    count = lambda block: block.num_edges  # noqa: E731
    return alone, [
        Contender("without types", without, hops, _our_view, count),
        Contender("one type", _sample(), lambda batch: batch.blocks, _our_view, count),
    ]


def by_time(typed: Typed, options: argparse.Namespace, seed: int = 1) -> dict[str, Any]:
    """Times of trees over the citations, without times and with times that leave all edges.

    If rows are in the order of time, and all edges before the bounds, both sample the same batches,
    which is checked.
    """
    import pygsampler as pgs

    of = typed.relations["paper", "cites", "paper"]
    edges = len(of.indices)
    # With ids, which rows in another order need.
    ids = np.arange(edges)
    graph = pgs.Graph.from_csc(*of, edge_ids=ids, edge_data={"t": ids})
    plain = pgs.PGSampler(FANOUTS, seed=seed, disjoint=True)
    timed = pgs.PGSampler(FANOUTS, seed=seed, temporal="t")
    sample: dict[str, Callable[[Int64s, int], Any]] = {
        "disjoint": lambda seeds, batch: plain.sample(graph, seeds, batch=batch),
        "by time": lambda seeds, batch: timed.sample(graph, seeds, seed_time=edges, batch=batch),
    }
    rng = np.random.default_rng(seed)
    size = min(SIZE, typed.nodes["paper"] // 4)
    times: dict[str, list[float]] = {name: [] for name in sample}
    counts = 0
    for number in range(options.repeat + 1):
        spent = dict.fromkeys(sample, 0.0)
        for place in range(options.batches):
            seeds = rng.integers(0, typed.nodes["paper"], size)
            made = {}
            for name in sorted(sample, reverse=bool((number + place) % 2)):
                start = time.perf_counter()
                made[name] = sample[name](seeds, number * options.batches + place)
                spent[name] += time.perf_counter() - start
            same = (int64(b.blocks[0].edge_ids) for b in made.values())
            _expect(np.array_equal(*same), "by time: other edges than without times")
            counts += made["by time"].num_edges
        # The first round warms up.
        for name, each in times.items():
            each += [spent[name] / options.batches] if number else []
    edges_of = counts / (options.batches * (options.repeat + 1))
    return {"times": times, "edges": dict.fromkeys(sample, edges_of)}


def rows(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A row a contender: its setting, milliseconds, and the ratio to the first of its setting."""
    typed = load(options.scale)
    alone, of_one = one_type(typed)
    settings = {
        "uniform": (typed, contenders(False)),
        "by weight": (typed, contenders(True)),
        "one type": (alone, of_one),
    }
    measured: dict[str, Callable[[], dict[str, Any]]] = {}
    for setting, (graph, chosen) in settings.items():
        if options.ours:
            chosen = [one for one in chosen if "DGL" not in one.name and "dgl" not in one.name]
        measured[setting] = partial(run, graph, chosen, options)
    measured["trees"] = partial(by_time, typed, options)
    for setting, measure in measured.items():
        found = measure()
        names = list(found["times"])
        base = np.array(found["times"][names[0]])
        for name in names:
            own = np.array(found["times"][name])
            row = {
                "setting": setting,
                "contender": name,
                "edges": found["edges"][name],
                "milliseconds": vars(Quartiles.from_values(1e3 * own)),
                "ratio": vars(Quartiles.from_values(base / own)),
            }
            print(
                f"{setting:10} {name:26} {row['milliseconds']['median']:8.2f} ms "
                f"{row['edges']:10,.0f} edges {row['ratio']['median']:6.2f}x",
                flush=True,
            )
            yield row


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0, or 1 after a failed check."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hetero", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="seconds instead of a minute")
    parser.add_argument("--ours", action="store_true", help="without DGL")
    parser.add_argument("--repeat", type=int, default=20, help="rounds (default: 20)")
    parser.add_argument("--batches", type=int, default=16, help="batches in a round (default: 16)")
    parser.add_argument("--scale", type=int, default=1, help="a graph that is so much smaller")
    parser.add_argument("--wait", type=float, default=60, help="as in python -m benchmarks")
    parser.add_argument("--note", help="as in python -m benchmarks")
    parser.add_argument("--out", type=Path, help="folder for typed.json")
    options = parser.parse_args(given)
    if options.quick:
        options.repeat, options.batches, options.wait, options.scale = 3, 2, 0, 200
    record = environment.describe(given, "benchmarks.hetero", note=options.note)
    print(environment.summary(record), end="\n\n")
    try:
        found = list(rows(options))
    except CheckError as error:
        print(f"refused: {error}", file=sys.stderr)
        return 1
    if options.out:
        record["rows"] = found
        report.write_json(options.out / "typed.json", record)
        print(f"\nwritten: {options.out / 'typed.json'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
