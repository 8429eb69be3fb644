"""Rows of a table by random ids: our gather, torch's, and a copy of as many bytes, in turns.

A launch of the gather takes one table here. Ids differ from launch to launch, and copies are of
other parts of the table each time, so that the L2 helps all alike: tables of a few bytes a row lie
in it, the others do not. A round puts its launches behind a kernel that only waits, so that none
waits for Python.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

import torch

from pygsampler._cli.bench.check import CheckError
from pygsampler._engine.library import call

from .record import Budget, Record, spread

# Bytes of a row: labels, and features of 16 to 602 numbers.
ROW_BYTES = (4, 64, 256, 400, 512, 1024, 2408)
COUNT, ROWS = 200_000, 2_400_000
# Bytes of the largest table, on the device and on the host.
MOST = {"device": 4_000_000_000, "page-locked": 2_000_000_000}
# Sets of ids that take turns; a table has that many parts of COUNT rows, or parts overlap.
SETS = 8
LAUNCHES = {"device": 16, "page-locked": 4}
ROUNDS = 7
_AHEAD_CYCLES = 4_000_000  # 2 ms, longer than Python takes for the launches of a round


def words(ids: torch.Tensor, table: torch.Tensor, out: torch.Tensor) -> array[int]:
    """A table of a call of ``DeviceGather``, without a cache, and nothing counted."""
    rows, row_bytes = table.shape[0], table.shape[1] * table.element_size()
    bits = 8 * ids.element_size()
    about = (ids.data_ptr(), len(ids), bits, table.data_ptr(), rows, row_bytes, 0, 0)
    return array("q", (*about, out.data_ptr(), 0, 0))


def gathers(
    sets: list[torch.Tensor], table: torch.Tensor, out: torch.Tensor
) -> Callable[[int], object]:
    """Launch ``i`` of ours."""
    lists = [words(ids, table, out) for ids in sets]
    device = out.device.index or 0
    stream = torch.cuda.current_stream().cuda_stream

    def run(i: int) -> object:
        return call("DeviceGather", device, 1, lists[i % SETS].buffer_info()[0], 0, stream)

    return run


def ways(
    sets: list[torch.Tensor], table: torch.Tensor, out: torch.Tensor
) -> dict[str, Callable[[int], object]]:
    """Each way's launch ``i``; torch's own for a table on the device alone."""
    count, rows = len(out), len(table)

    def copy(i: int) -> object:
        first = min(i % SETS * count, rows - count)
        return out.copy_(table[first : first + count], non_blocking=True)

    found: dict[str, Callable[[int], object]] = {"gather": gathers(sets, table, out)}
    if table.is_cuda:
        found["torch"] = lambda i: torch.index_select(table, 0, sets[i % SETS], out=out)
    found["copy"] = copy
    return found


def proven(
    sets: list[torch.Tensor], table: torch.Tensor, out: torch.Tensor, like: torch.Tensor
) -> None:
    """CheckError unless each set's rows are those of ``like``, the same table on the device."""
    run = gathers(sets, table, out)
    for i, ids in enumerate(sets):
        out.fill_(-1)
        run(i)
        if not torch.equal(out, like[ids]):
            raise CheckError(f"{tuple(table.shape)} on {table.device}: not the rows of torch")


def measure(found: dict[str, Callable[[int], object]], launches: int) -> dict[str, list[float]]:
    """Microseconds of a launch in each round, by the device's clock."""
    times: dict[str, list[float]] = {name: [] for name in found}
    for turn in range(ROUNDS + 1):
        # In changing order; the first round warms up.
        names = list(found)
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda._sleep(_AHEAD_CYCLES)
            begin.record()
            for i in range(launches):
                found[name](turn * launches + i)
            end.record()
            end.synchronize()
            if turn:
                times[name].append(1e3 * begin.elapsed_time(end) / launches)
    return times


def result(
    place: str, table: torch.Tensor, count: int, times: dict[str, list[float]]
) -> dict[str, Any]:
    """A row of the record. Bytes are read and written, of host memory those that cross the link."""
    row_bytes = table.shape[1] * table.element_size()
    moved = count * row_bytes * (2 if place == "device" else 1)
    us = {name: spread(values) for name, values in times.items()}
    ours = times["gather"]
    return {
        "table": place,
        "row_bytes": row_bytes,
        "rows": len(table),
        "count": count,
        "us": us,
        "gb_per_second": {name: round(moved / t["median"] / 1e3, 1) for name, t in us.items()},
        # Within a round: above 1 the gather is faster.
        "ratio": {
            name: spread([b / a for a, b in zip(ours, values, strict=True)])["median"]
            for name, values in times.items()
            if name != "gather"
        },
    }


def line(row: dict[str, Any]) -> str:
    """One line for a row."""
    speeds = ", ".join(
        f"{name} {row['us'][name]['median']:.1f} us {speed:.0f} GB/s"
        + (f" ({row['ratio'][name]:.2f}x)" if name in row["ratio"] else "")
        for name, speed in row["gb_per_second"].items()
    )
    about = f"{row['table']:11} {row['count']} of {row['rows']} rows of {row['row_bytes']:4} B"
    return f"{about}: {speeds}"


def run(record: Record, budget: Budget, trial: bool) -> None:
    """A row for each size of a row and each place of the table."""
    count, rows = (1000, 12_000) if trial else (COUNT, ROWS)
    most = {place: min(most, rows * max(ROW_BYTES)) for place, most in MOST.items()}
    # Locked once: that takes longer than all that is read from it.
    locked = torch.empty(most["page-locked"] // 4, dtype=torch.float32, pin_memory=True)
    for row_bytes in ROW_BYTES:
        if budget.over():
            record.skip(f"{row_bytes} bytes a row")
            continue
        width = row_bytes // 4
        table = torch.rand(min(rows, most["device"] // row_bytes), width, device="cuda")
        out = torch.empty(count, width, device="cuda")
        for place in MOST:
            some = min(rows, most[place] // row_bytes)
            read = table if place == "device" else locked[: some * width].view(some, width)
            if place == "page-locked":
                read.copy_(table[:some])
            sets = [torch.randint(some, (count,), device="cuda") for _ in range(SETS)]
            proven(sets, read, out, table)
            times = measure(ways(sets, read, out), 2 if trial else LAUNCHES[place])
            row = result(place, read, count, times)
            print(line(row), flush=True)
            record.add(row)
        del table, out, read, sets
        torch.cuda.empty_cache()
