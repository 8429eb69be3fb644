"""Calls on small graphs beside the same calls of DGL and PyG::

    python -m benchmarks.small_calls --quick
    python -m benchmarks.small_calls --out results

A graph of 200 nodes and 800 edges, where nothing but the call itself takes time: to make a loader
of PyG's, to pack the traces of walks, to walk twenty times from one node, with a metapath too, and
to sample or walk on a DGL graph that was made for the call; and to sample with every tensor of the
batch, beside the same with tensors by capsules, as torch before 2.11 has them. Before the clock
starts both give the same where chance has no part: the CSC of a loader, all neighbors, and walks on
a ring. Then they take turns, round by round, in one process; a time is the median over the rounds
of a round's time by its calls, and the ratio that of the rounds, with its quartiles. Libraries
that are not installed are left out.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from pygsampler import Graph, PGSampler
from pygsampler._arrays import exchange
from pygsampler._cli.bench.check import CheckError

from . import environment, report

NODES, EDGES, STEPS = 200, 800, 10
PATTERN = ["out", "back"]
_CALLS, _WARM = 20, 40
CLOCKS = {"wall": time.perf_counter, "processor": time.process_time}


class Case(NamedTuple):
    """The same call of ours and of a peer, and what both give where chance has no part."""

    name: str
    peer: str
    ours: Callable[[], Any]
    theirs: Callable[[], Any]
    ours_exactly: Callable[[], Any]
    theirs_exactly: Callable[[], Any]


def edges() -> tuple[torch.Tensor, torch.Tensor]:
    """Random edges."""
    random = np.random.default_rng(7)
    src, dst = random.integers(0, NODES, (2, EDGES))
    return torch.from_numpy(src), torch.from_numpy(dst)


def ring() -> tuple[torch.Tensor, torch.Tensor]:
    """An edge from each node to the next one."""
    nodes = torch.arange(NODES)
    return nodes, (nodes + 1) % NODES


def by_row(indptr: torch.Tensor, ids: torch.Tensor) -> list[torch.Tensor]:
    """The rows of a CSC, and its edges by row and id."""
    rows = torch.arange(NODES).repeat_interleave(indptr.diff())
    return [indptr, (rows * EDGES + ids).sort().values]


def of_pyg() -> list[Case]:
    """Cases beside PyG."""
    with warnings.catch_warnings():
        # PyG's import and its sampler use what is about to be dropped.
        warnings.simplefilter("ignore")
        from torch_geometric.data import Data
        from torch_geometric.loader import NeighborLoader as Theirs

        from pygsampler.pyg import NeighborLoader as Ours
    warnings.filterwarnings("ignore", category=UserWarning, module="torch_geometric")
    data = Data(x=torch.rand(NODES, 8), edge_index=torch.stack(edges()), num_nodes=NODES)

    def made(kind: Any) -> Callable[[], Any]:
        return lambda: kind(data, [5, 5], batch_size=20)

    # PyG samples by packages that need not be there, but makes its CSC without them.
    def ours() -> Any:
        graph = made(Ours)().node_sampler.graph
        return by_row(graph.indptr.torch(), graph.edge_ids.torch())

    def theirs() -> Any:
        sampler = made(Theirs)().node_sampler
        return by_row(sampler.colptr, sampler.perm)

    return [Case("a loader", "PyG", made(Ours), made(Theirs), ours, theirs)]


def of_dgl() -> list[Case]:
    """Cases beside DGL."""
    import dgl

    from pygsampler import dgl as ours

    theirs = dgl.sampling

    def plain(pair: tuple[torch.Tensor, torch.Tensor]) -> Any:
        return dgl.graph(pair, num_nodes=NODES)

    def typed(pair: tuple[torch.Tensor, torch.Tensor]) -> Any:
        relations = {("a", "out", "b"): pair, ("b", "back", "a"): pair}
        return dgl.heterograph(relations, num_nodes_dict={"a": NODES, "b": NODES})

    def walked(of: Any, g: Any) -> Callable[[], Any]:
        return lambda: of.random_walk(g, seeds, length=STEPS)

    def by_path(of: Any, g: Any) -> Callable[[], Any]:
        return lambda: of.random_walk(g, seeds, metapath=PATTERN * (STEPS // 2))

    def fresh(sampler: Any) -> Callable[[], Any]:
        return lambda: sampler.sample_blocks(plain(random), few)

    def all_blocks(sampler: Any) -> Callable[[], Any]:
        return lambda: [b.edata[dgl.EID].sort().values for b in fresh(sampler)()[2]]

    random, chain = edges(), ring()
    seeds, few = torch.zeros(20, dtype=torch.int64), torch.arange(20)
    g, on_ring, h, typed_ring = plain(random), plain(chain), typed(random), typed(chain)
    traces, types = theirs.random_walk(g, torch.arange(100), length=STEPS)
    whole = ours.NeighborSampler([-1, -1]), dgl.dataloading.NeighborSampler([-1, -1])
    some = ours.NeighborSampler([5, 5]), dgl.dataloading.NeighborSampler([5, 5])

    def case(name: str, call: Callable[[Any], Any], exact: Callable[[Any], Any]) -> Case:
        return Case(name, "DGL", call(ours), call(theirs), exact(ours), exact(theirs))

    def packed(of: Any) -> Callable[[], Any]:
        return lambda: of.pack_traces(traces, types)

    return [
        case("pack_traces, 100 walks", packed, packed),
        case("20 walks", lambda of: walked(of, g), lambda of: walked(of, on_ring)),
        case(
            "20 walks by a metapath", lambda of: by_path(of, h), lambda of: by_path(of, typed_ring)
        ),
        Case("blocks of a fresh graph", "DGL", *map(fresh, some), *map(all_blocks, whole)),
        case(
            "20 walks on a fresh graph",
            lambda of: lambda: walked(of, plain(random))(),
            lambda of: lambda: walked(of, plain(chain))(),
        ),
    ]


def of_tensors() -> list[Case]:
    """Every tensor of a batch by one call of torch's C API, beside tensors by capsules."""
    graph = Graph.from_coo(*edges(), num_nodes=NODES)
    sampler, seeds = PGSampler([5, 5], seed=1), torch.arange(20)
    table = exchange.exchange_api()

    def sampled() -> list[torch.Tensor]:
        batch = sampler.sample(graph, seeds, epoch=0, batch=0).torch()
        tensors = [batch.input_nodes, batch.output_nodes, batch.output_index]
        for block in batch.blocks:
            tensors += block.indptr, block.indices, block.edge_ids, block.src_nodes, block.dst_nodes
        return tensors

    def by_capsules() -> list[torch.Tensor]:
        exchange._TorchTable.address = 0
        try:
            return sampled()
        finally:
            exchange._TorchTable.address = table

    return [Case("sample + tensors", "capsules", sampled, by_capsules, sampled, by_capsules)]


def same(ours: Any, theirs: Any) -> bool:
    """True if tensors, or sequences of tensors, are equal."""
    if isinstance(ours, torch.Tensor):
        return torch.equal(ours, theirs)
    return len(ours) == len(theirs) and all(map(same, ours, theirs))


def measure(
    case: Case, rounds: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, Any]:
    """A row: microseconds a call of each, and the ratio."""
    if not same(case.ours_exactly(), case.theirs_exactly()):
        raise CheckError(f"{case.name}: ours gives something else than {case.peer}")
    contenders = {"ours": case.ours, "theirs": case.theirs}
    for call in contenders.values():
        for _ in range(_WARM):
            call()
    # Garbage of the imports is collected first, so that no contender pays for it.
    gc.collect()
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(rounds):
        for name in (list(contenders), list(reversed(contenders)))[turn % 2]:
            begin = clock()
            for _ in range(_CALLS):
                contenders[name]()
            times[name].append(1e6 * (clock() - begin) / _CALLS)
    ratios = [mine / other for mine, other in zip(times["ours"], times["theirs"], strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    return {
        "case": case.name,
        "peer": case.peer,
        "ours_us": round(statistics.median(times["ours"]), 1),
        "theirs_us": round(statistics.median(times["theirs"]), 1),
        "ratio": round(middle, 3),
        "quartiles": [round(low, 3), round(high, 3)],
    }


def line(row: dict[str, Any]) -> str:
    """One line for a row."""
    low, high = row["quartiles"]
    return (
        f"{row['case']:26} ours {row['ours_us']:8.1f} us   {row['peer']} {row['theirs_us']:8.1f} us"
        f"   ours to {row['peer']}'s {row['ratio']:.2f} ({low:.2f} to {high:.2f})"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """0, or 1 after a failed check."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = argparse.ArgumentParser(prog="python -m benchmarks.small_calls", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rounds, seconds")
    parser.add_argument("--repeat", type=int, default=40, help="rounds (default: 40)")
    parser.add_argument(
        "--clock", choices=tuple(CLOCKS), default="wall", help="processor: for a busy machine"
    )
    parser.add_argument("--out", type=Path, help="folder for small_calls.json")
    options = parser.parse_args(given)
    rounds = min(options.repeat, 4) if options.quick else options.repeat
    record = environment.describe(given, module="benchmarks.small_calls")
    print(environment.summary(record), end="\n\n")
    rows = []
    try:
        for partner, cases in (("torch", of_tensors), ("torch_geometric", of_pyg), ("dgl", of_dgl)):
            if importlib.util.find_spec(partner) is None:
                print(f"{partner} is not installed: left out")
                continue
            for case in cases():
                rows.append(measure(case, rounds, CLOCKS[options.clock]))
                print(line(rows[-1]), flush=True)
    except CheckError as error:
        print(f"refused: {error}", file=sys.stderr)
        return 1
    if options.out:
        report.write_json(options.out / "small_calls.json", record | {"rows": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
