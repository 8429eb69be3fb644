"""Compares a batch with the limits of the GPU: its least work over the ceilings.

The work is counted in a batch itself, for an engine that reads and writes nothing twice:

- sectors of 32 bytes of `indices` that hold a sampled edge, counted once a hop: random reads in a
  table of the size of `indices`;
- sectors of `indptr` that hold the ends of a row, likewise;
- one atomic operation in the map of vertices for each edge of a hop, since every edge asks who came
  first, and one read of it;
- the bytes of the batch, written at the speed of a copy.

`bound_us` is the longest of the times for the reads, the atomic operations and the writes, as if
they overlapped fully, plus an empty launch; `sum_us` is their sum, as if they did not at all.
`near` is bound over measured, and `near_sum` sum over measured, which overlap can take beyond 1.
"""

from __future__ import annotations

import gc
from typing import Any

import torch

from . import ceilings, check
from .cases import by_shape, reference, tiny
from .direct import Direct
from .graphs import Made, make
from .latency import engine
from .record import Budget, Record, spread

_SECTOR = 32
_BATCHES = 30


def work_of_hop(made: Made, block: Any) -> dict[str, int]:
    """Sectors, edges, rows and bytes of one block, in tensors."""
    # Without edge ids of its own an edge's id is its place in `indices`.
    places = block.edge_ids.long() * made.indices.element_size() // _SECTOR
    ends = block.dst_nodes.long() * 8
    return {
        "index_sectors": len(places.unique()),
        "offset_sectors": len((torch.cat([ends, ends + 8]) // _SECTOR).unique()),
        "edges": block.num_edges,
        "rows": block.num_dst_nodes,
        "bytes": block.num_edges * (block.indices.element_size() + block.edge_ids.element_size())
        + block.num_dst_nodes * block.indptr.element_size(),
    }


def work(made: Made, direct: Direct, seeds: torch.Tensor) -> dict[str, int]:
    """Sectors, atomic operations and bytes of one batch."""
    batch = direct.sampler.sample(made.graph, seeds, epoch=0, batch=0).torch()
    hops = [work_of_hop(made, block) for block in batch.blocks]
    found = {name: sum(hop[name] for hop in hops) for name in hops[0]}
    found["input_nodes"] = len(batch.input_nodes)
    found["bytes"] += len(batch.input_nodes) * batch.input_nodes.element_size()
    return found


def bound(made: Made, need: dict[str, int], limits: dict[str, Any]) -> dict[str, float]:
    """Microseconds of each part of the work, and together."""
    # Eight bytes for a vertex: who was first, and its number.
    vertices = 8 * made.num_nodes
    reads = need["index_sectors"] / ceilings.rate(limits["gather"], made.indices.nbytes)
    reads += need["offset_sectors"] / ceilings.rate(limits["gather"], made.indptr.nbytes)
    asks = need["edges"] / ceilings.rate(limits["gather"], vertices)
    atomics = need["edges"] / ceilings.rate(limits["atomic"], vertices)
    # A copy reads as much as it writes.
    writes = need["bytes"] / (limits["copy_tb_per_second"] * 1e12 / 2)
    parts = {"reads_us": reads + asks, "atomics_us": atomics, "writes_us": writes}
    found = {name: round(1e6 * value, 2) for name, value in parts.items()}
    found["bound_us"] = round(1e6 * max(parts.values()) + limits["launch_us"], 2)
    found["sum_us"] = round(1e6 * sum(parts.values()) + limits["launch_us"], 2)
    return found


def run(record: Record, budget: Budget, trial: bool) -> None:
    """The rows of reference.csv, large batches first: they are what memory bounds."""
    import cupy

    free = torch.cuda.mem_get_info()[0]
    limits = ceilings.measure(cupy, free * 0.5)
    record.content["ceilings"] = limits
    for name in ("gather", "atomic", "atomic_returns"):
        rates = "  ".join(f"{p['bytes'] / 1e6:g} MB: {p['giga_per_second']}" for p in limits[name])
        print(f"{name}, G a second: {rates}")
    print(f"copy {limits['copy_tb_per_second']} TB/s, launch {limits['launch_us']} us", flush=True)
    cupy.get_default_memory_pool().free_all_blocks()
    record.write()
    cases = tiny(reference()) if trial else reference()
    order = by_shape(cases)
    for shape in sorted(order, key=lambda name: name != "papers100m"):
        made: Made | None = None
        for case in sorted(order[shape], key=lambda c: -c.batch):
            if budget.over():
                record.skip(case)
                continue
            made = made or make(shape)
            direct = Direct(made, case.fanouts)
            batches = made.seeds(case.batch, _BATCHES + 5, made.indices.dtype)
            check.edges(case, direct.learn(batches))
            engine(direct, batches[:5])
            times = spread(engine(direct, batches[5:]))
            need = work(made, direct, batches[0])
            times_of = bound(made, need, limits)
            row = {
                "shape": case.shape,
                "batch": case.batch,
                "fanouts": list(case.fanouts),
                "ids": case.ids,
                "engine_us": times,
                **need,
                "sectors_per_edge": round(need["index_sectors"] / max(need["edges"], 1), 3),
                "bytes_per_edge": round(need["bytes"] / max(need["edges"], 1), 2),
                **times_of,
                "near": round(times_of["bound_us"] / times["median"], 3),
                "near_sum": round(times_of["sum_us"] / times["median"], 3),
            }
            print(line(row), flush=True)
            record.add(row)
            del direct, batches
        del made
        gc.collect()
        torch.cuda.empty_cache()


def line(row: dict[str, Any]) -> str:
    """One line for a row."""
    fanouts = ",".join(map(str, row["fanouts"]))
    return (
        f"{row['shape']:11} {row['batch']:6}x({fanouts}) {row['engine_us']['median']:8.1f} us; "
        f"reads {row['reads_us']} atomics {row['atomics_us']} writes {row['writes_us']} us; "
        f"bound {row['bound_us']} ({100 * row['near']:.0f} %), "
        f"sum {row['sum_us']} ({100 * row['near_sum']:.0f} %)"
    )
