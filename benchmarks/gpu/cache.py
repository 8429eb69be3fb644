"""Rows that are page-locked on the host and in part on the device: what a cache brings and costs.

A tenth of a table is cached, and ids hit it as often as each row of the record says. Beside the
cache, static or of what was read lately, stand the same rows without one, over the link, and all of
them on the device. Then what it takes to count a batch's ids, and to change a cache for an epoch.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

import pygsampler as pgs
from pygsampler._arrays.ids import as_ids
from pygsampler._cli.bench.check import CheckError
from pygsampler._features.cache_policy import replacements
from pygsampler._features.gather import gather_on_device
from pygsampler._features.read_counts import ReadCounts

from .gather import COUNT, SETS, measure
from .record import Budget, Record, spread

ROWS = 2_400_000
ROW_BYTES = (400, 1024)
HITS = (0.0, 0.5, 0.8, 0.9, 0.95, 1.0)
LAUNCHES = 4
CHANGES = 5  # times that a cache is changed


def batches(rows: int, hot: int, count: int, hits: float) -> list[torch.Tensor]:
    """Sets of ids that read the first ``hot`` rows so often."""
    made = []
    for _ in range(SETS):
        near = torch.randint(hot, (count,), device="cuda")
        far = torch.randint(hot, rows, (count,), device="cuda")
        made.append(torch.where(torch.rand(count, device="cuda") < hits, near, far))
    return made


def reads(
    features: pgs.Features, sets: list[torch.Tensor], out: torch.Tensor
) -> Callable[[int], object]:
    """Launch ``i``, which waits for nothing."""
    views = [as_ids(ids, "ids", 0) for ids in sets]

    def run(i: int) -> object:
        return gather_on_device(0, [features._part(views[i % SETS], out.data_ptr())])

    return run


def cached(host: pgs.Features, hot: int, policy: str) -> pgs.Features:
    """With the first ``hot`` rows."""
    made = host.cache(rows=hot, policy=policy)
    assert made._cache is not None
    made._cache.take(torch.arange(hot, device="cuda"))
    return made


def run(record: Record, budget: Budget, trial: bool) -> None:
    """A row for each size of a row and share of hits, and what counting and changing take."""
    count, rows = (1000, 12_000) if trial else (COUNT, ROWS)
    hot = rows // 10
    for row_bytes in ROW_BYTES:
        if budget.over():
            record.skip(f"{row_bytes} bytes a row")
            continue
        x = torch.rand(rows, row_bytes // 4)
        host, out = pgs.Features.from_tensor(x), torch.empty(count, x.shape[1], device="cuda")
        places = {
            "link": host.pin(),
            "static": cached(host, hot, "presampled"),
            "device": host.to("cuda"),
        }
        for hits in HITS:
            sets = batches(rows, hot, count, hits)
            # Anew, since what it has changes.
            now = {**places, "lru": cached(host, hot, "lru")}
            for name, features in now.items():
                launch = reads(features, sets, out)
                for i, ids in enumerate(sets):
                    launch(i)
                    if not torch.equal(out.cpu(), x[ids.cpu()]):
                        raise CheckError(f"{name}, {row_bytes} bytes: not the table's rows")
            ways = {name: reads(features, sets, out) for name, features in now.items()}
            row = {
                "row_bytes": row_bytes,
                "rows": rows,
                "cached": hot,
                "count": count,
                "hits": hits,
                "us": {n: spread(t) for n, t in measure(ways, LAUNCHES).items()},
            }
            print(line(row), flush=True)
            record.add(row)
        row = costs(places["static"], rows, hot, count)
        print(f"{row_bytes:5} B: {row}", flush=True)
        record.add({"row_bytes": row_bytes, **row})


def costs(features: pgs.Features, rows: int, hot: int, count: int) -> dict[str, Any]:
    """Microseconds to count the ids of a batch, and milliseconds to change a cache."""
    counts = ReadCounts(0, rows)
    views = [as_ids(ids, "ids", 0) for ids in batches(rows, hot, count, 0.5)]
    tally = measure({"tally": lambda i: counts.add(views[i % SETS])}, LAUNCHES)["tally"]
    assert features._cache is not None
    table, source = features._cache.table, features._cache._source
    seconds, brought = [], 0
    for _ in range(CHANGES):
        some = torch.randint(0, 50, (rows,), device="cuda", dtype=torch.int32)
        torch.cuda.synchronize()
        start = time.perf_counter()
        coming, places = replacements(some, table.held().cuda())
        table.put(coming, places, source)
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
        brought = len(coming)
    times = spread([1e3 * each for each in seconds])
    return {"tally_us": spread(tally), "change_ms": times, "brought": brought}


def line(row: dict[str, Any]) -> str:
    """One line for a row."""
    times = ", ".join(f"{name} {us['median']:.1f} us" for name, us in row["us"].items())
    far = (1 - row["hits"]) * row["us"]["link"]["median"]
    about = f"{row['count']} rows of {row['row_bytes']} B, {100 * row['hits']:.0f} % hits"
    return f"{about}: {times}; the link alone {far:.1f} us"
