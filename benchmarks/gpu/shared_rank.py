"""One of the processes of ``peers``: ``python -m benchmarks.gpu.shared_rank JSON``.

Process 0 prints a line of JSON for each row.
"""

from __future__ import annotations

import functools
import gc
import json
import statistics
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

import pygsampler as pgs
from pygsampler import distributed
from pygsampler._cli.bench.check import CheckError
from pygsampler._graph.shared_arrays import EVERYONE

from . import check
from .direct import Direct
from .graphs import Made, make
from .shared import FLIGHTS, bound
from .throughput import in_flight

_LENGTH = 40
_ROW = 128  # float32, 512 bytes
_CALLS = 8  # for rows of features, one behind the other


def together(rounds: int, work: Callable[[], Any], alone: bool = False) -> float:
    """Seconds of the slowest process, the median of some rounds; alone: of process 0 only."""
    works, times = not alone or dist.get_rank() == 0, []
    for _ in range(rounds + 1):
        torch.cuda.synchronize()
        dist.barrier()
        begin = time.perf_counter()
        if works:
            work()
        torch.cuda.synchronize()
        mine = torch.tensor(
            [time.perf_counter() - begin if not alone or not dist.get_rank() else 0.0]
        )
        dist.all_reduce(mine, dist.ReduceOp.MAX)
        times.append(float(mine))
    return statistics.median(times[1:])


def remote(graph: pgs.Graph, positions: Any) -> float:
    """The share of the edges at these positions that are other devices'."""
    seat = graph._source._seat
    if seat is None:
        return 0.0
    host = graph._host
    assert host is not None
    values = host._source._open().indices
    pieces = seat.peers.pieces(values)  # type: ignore[attr-defined]
    ends = np.cumsum([piece.size for piece in pieces]) // (values._bits // 8)
    places = np.array([piece.place for piece in pieces])[np.searchsorted(ends, positions, "right")]
    return float(((places != EVERYONE) & (places != seat.place)).mean())  # type: ignore[attr-defined]


def measured(made: Made, on_cpu: pgs.Graph, given: dict[str, Any]) -> dict[str, Any]:
    """Batches and walks of all processes at a time, after the proof that they are the CPU's."""
    fanouts, rounds = given["fanouts"], given["rounds"]
    check.parity(made, on_cpu, fanouts, "auto")
    direct = Direct(made, fanouts)
    batches = made.seeds(given["batch"], given["count"], made.indices.dtype, seed=5 + given["rank"])
    found = direct.learn(batches[:16])
    edges = sum(edges for edges, _ in found) / len(found)
    # Whatever else one of the batches needs is known then.
    in_flight(direct, batches, FLIGHTS)
    seconds = together(rounds, lambda: in_flight(direct, batches, FLIGHTS))
    few = direct.sampler.sample(made.graph, batches[0], epoch=0, batch=0)
    positions = np.concatenate([block.edge_ids.cpu().numpy() for block in few.blocks])
    walks = pgs.RandomWalk(
        length=_LENGTH, seed=1, mode_options={"layout": "csr"}, direction="in", edge_ids=True
    )
    starts = torch.randint(
        made.num_nodes, (given["walks"],), dtype=made.indices.dtype, device="cuda"
    )
    got = walks.sample(made.graph, starts[:2000], epoch=0, batch=0).cpu().nodes.numpy()
    want = walks.sample(on_cpu, starts[:2000].cpu(), epoch=0, batch=0).nodes.numpy()
    if (got != want).any():
        raise CheckError(f"{walks!r}: walks of {made.graph!r} differ from the CPU's")

    # Walks stop where nobody leads on.
    steps = walks.sample(made.graph, starts, epoch=0, batch=1).cpu()
    walked_at = steps.edge_ids.numpy().ravel()
    walked_at = walked_at[walked_at >= 0]
    bare = pgs.RandomWalk(length=_LENGTH, seed=1, mode_options={"layout": "csr"}, direction="in")

    def walk() -> None:
        bare.launch(made.graph, starts, epoch=0, batch=1, form="torch").result()

    walked = together(rounds, walk)
    share, walk_share = remote(made.graph, positions), remote(made.graph, walked_at)
    return {
        "edges": round(edges),
        "batches_per_second": given["world"] * given["count"] / seconds,
        "greads": edges * given["count"] / seconds / 1e9,
        "remote": share,
        "gsteps": len(walked_at) / walked / 1e9,
        "walk_remote": walk_share,
    }


def alone(made: Made, given: dict[str, Any]) -> float:
    """Batches a second of process 0, while the others wait."""
    direct = Direct(made, given["fanouts"])
    batches = made.seeds(given["batch"], given["count"], made.indices.dtype)
    direct.learn(batches[:16])
    in_flight(direct, batches, FLIGHTS)
    work = functools.partial(in_flight, direct, batches, FLIGHTS)
    return float(given["count"] / together(given["rounds"], work, alone=True))


def features(rank: int, world: int, device: int, rounds: int, rows: int) -> list[dict[str, Any]]:
    """GB a second of rows of a process's own part, and of another one's: all at a time, and one."""
    table = torch.arange(rows * _ROW, dtype=torch.float32).reshape(rows, _ROW)
    shared = distributed.share_features(pgs.Features.from_tensor(table), device=device)
    found = []
    peer = (rank + 1) % world
    ways = (
        ("own part", rank, False),
        ("of a peer", peer, False),
        ("of a peer, one way", peer, True),
    )
    for name, place, alone in ways:
        # Well inside of that part: where it is cut is a matter of pages.
        first, last = rows * place // world + rows // 50, rows * (place + 1) // world - rows // 50
        ids = torch.randint(first, last, (min(1 << 20, 4 * rows),), device="cuda")
        few = ids[:1000]
        if not torch.equal(shared[few].cpu(), table[few.cpu()]):
            raise CheckError(f"{name}: other rows than the table's")

        def read(ids: torch.Tensor = ids) -> None:
            for _ in range(_CALLS):
                shared[ids]

        rate = _CALLS * len(ids) * _ROW * 4 / together(rounds, read, alone) / 1e9
        found.append({"ways": f"features, {name}", "row": 4 * _ROW, "feature_gb": round(rate, 1)})
    shared.close()
    return found


def main(given: dict[str, Any]) -> None:
    """Copies first, which the others are compared with."""
    rank, world = given["rank"], given["world"]
    device = given["devices"][rank]
    torch.cuda.set_device(device)
    dist.init_process_group(
        "gloo",
        init_method=f"file://{given['meeting']}",
        rank=rank,
        world_size=world,
        timeout=timedelta(seconds=300),
    )
    copy = make(given["shape"], hot_first=given["hot_first"], device=f"cuda:{device}")
    on_cpu = copy.on_cpu()
    name = given["shape"] + (", hot first" if given["hot_first"] else "")
    about = {"shape": name, "fanouts": given["fanouts"], "batch": given["batch"], "gpus": world}

    def report(row: dict[str, Any]) -> None:
        everyone: list[Any] = [None] * world
        dist.all_gather_object(everyone, row)
        if rank == 0:
            rounded = {k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()}
            if "remote" in row:
                # All take as long as the one that reads most from the others.
                for share, most in (("remote", "bound"), ("walk_remote", "walk_bound")):
                    rounded[f"{share}_of_each"] = [round(one[share], 4) for one in everyone]
                    rounded[share] = max(rounded[f"{share}_of_each"])
                    rounded[most] = round(bound(rounded[share]), 2)
            print(json.dumps({**about, **rounded}), flush=True)

    one = alone(copy, given)
    row = measured(copy, on_cpu, given)
    row["graph_gb"] = (copy.indptr.nbytes + copy.indices.nbytes) / 1e9
    copies = row["batches_per_second"]

    def compared(row: dict[str, Any]) -> dict[str, Any]:
        rate = row["batches_per_second"]
        return {**row, "times_one": rate / one, "of_replicated": rate / copies}

    report({"ways": "a copy on each", **compared(row)})
    nodes, none = copy.num_nodes, copy.indices[:0].clone()
    del copy
    gc.collect()
    torch.cuda.empty_cache()
    for replicate in given["replicated"]:
        pgs.cuda.trim(device)
        before = pgs.cuda.memory_stats(device)["used"]
        begin = time.perf_counter()
        graph = distributed.share(on_cpu, device=device, replicate=replicate)
        seconds = time.perf_counter() - begin
        # Before there are workspaces, which are not the graph's.
        graph_gb = (pgs.cuda.memory_stats(device)["used"] - before) / 1e9
        # Seeds are drawn by the number of vertices alone.
        shared = Made(name, torch.empty(nodes + 1, device="cuda"), none, graph)
        row = {**measured(shared, on_cpu, given), "graph_gb": graph_gb, "share_seconds": seconds}
        report({"ways": f"shared, {replicate:.0%} copied", **compared(row)})
        graph.close()
        del graph, shared
        gc.collect()
    for row in features(rank, world, device, given["rounds"], min(2_000_000, max(nodes, 200_000))):
        report(row)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
