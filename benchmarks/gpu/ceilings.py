"""Measures the limits of this GPU: random reads, atomics, copies, launches."""

from __future__ import annotations

import bisect
import math
import statistics
import time
from collections.abc import Callable
from typing import Any

# A table of 32-bit words in random order: an independent read (one sector of 32 bytes) or atomic
# operation for each draw of a generator.
SOURCE = r"""
typedef unsigned int u32;
typedef unsigned long long u64;
__device__ __forceinline__ u64 mix(u64 z) {
  z += 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}
extern "C" __global__ void gather(const u32* table, u64 words, u64 count, u64 seed, u32* out) {
  u64 first = blockIdx.x * (u64)blockDim.x + threadIdx.x, step = gridDim.x * (u64)blockDim.x;
  u32 sum = 0;
  // Eight reads of a thread are on their way at a time.
  for (u64 j = first * 8; j < count; j += step * 8) {
    u32 v[8];
#pragma unroll
    for (int u = 0; u < 8; u++) v[u] = table[__umul64hi(mix(seed + j + u), words)];
#pragma unroll
    for (int u = 0; u < 8; u++) sum += v[u];
  }
  if (sum == 123456789u) out[0] = sum;
}
extern "C" __global__ void claim(u64* table, u64 words, u64 count, u64 seed, u32* out) {
  u64 first = blockIdx.x * (u64)blockDim.x + threadIdx.x, step = gridDim.x * (u64)blockDim.x;
  for (u64 j = first; j < count; j += step)
    atomicMin(&table[__umul64hi(mix(seed + j), words)], j);
}
extern "C" __global__ void claim_returns(u64* table, u64 words, u64 count, u64 seed, u32* out) {
  u64 first = blockIdx.x * (u64)blockDim.x + threadIdx.x, step = gridDim.x * (u64)blockDim.x;
  u32 sum = 0;
  for (u64 j = first; j < count; j += step)
    sum += (u32)atomicMin(&table[__umul64hi(mix(seed + j), words)], j);
  if (sum == 123456789u) out[0] = sum;
}
extern "C" __global__ void nothing() {}
"""

# Bytes of the tables: what fits the L2 and what does not.
TABLES = (4e5, 2e6, 5e6, 2e7, 4e7, 1e8, 5e8, 1e9, 3e9, 6.5e9)
_COUNT = 1 << 26


def measure(cupy: Any, most_bytes: float) -> dict[str, Any]:
    """G operations a second by table size, TB/s of a copy, microseconds of a launch."""
    module = cupy.RawModule(code=SOURCE, options=("-std=c++17",))
    blocks = cupy.cuda.Device().attributes["MultiProcessorCount"] * 8
    out = cupy.zeros(64, cupy.uint32)
    found: dict[str, Any] = {"gather": [], "atomic": [], "atomic_returns": []}
    for size in TABLES:
        if size > most_bytes:
            continue
        table = cupy.full(int(size) // 8, (1 << 63) - 1, cupy.uint64)
        for name, kernel, width in (
            ("gather", "gather", 4),
            ("atomic", "claim", 8),
            ("atomic_returns", "claim_returns", 8),
        ):
            run = module.get_function(kernel)
            words = cupy.uint64(table.nbytes // width)

            def launch(seed: int, run: Any = run, words: Any = words, table: Any = table) -> None:
                arguments = (table, words, cupy.uint64(_COUNT), cupy.uint64(seed * _COUNT), out)
                run((blocks,), (256,), arguments)

            rate = _COUNT / seconds(cupy, launch) / 1e9
            found[name].append({"bytes": int(size), "giga_per_second": round(rate, 2)})
        del table
    half = cupy.zeros(int(min(most_bytes / 3, 4e9)), cupy.uint8)
    other = cupy.empty_like(half)

    def copy(seed: int) -> None:
        other[...] = half

    found["copy_tb_per_second"] = round(2 * half.nbytes / seconds(cupy, copy) / 1e12, 3)
    found["launch_us"] = round(_launch(cupy, module.get_function("nothing")), 2)
    return found


def seconds(cupy: Any, launch: Callable[[int], None]) -> float:
    """The median of seven runs by the device's clock."""
    launch(0)
    times = []
    for seed in range(1, 8):
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        launch(seed)
        end.record()
        end.synchronize()
        times.append(cupy.cuda.get_elapsed_time(begin, end) / 1e3)
    return statistics.median(times)


def _launch(cupy: Any, kernel: Any) -> float:
    """Microseconds from the call until the host knows that an empty kernel is done."""
    stream = cupy.cuda.get_current_stream()
    times = []
    for _ in range(200):
        begin = time.perf_counter_ns()
        kernel((1,), (32,), ())
        stream.synchronize()
        times.append((time.perf_counter_ns() - begin) / 1e3)
    return statistics.median(times)


def rate(points: list[dict[str, Any]], size: float) -> float:
    """Operations a second on a table of ``size`` bytes, between the sizes that were measured."""
    sizes = [math.log(point["bytes"]) for point in points]
    rates = [1e9 * float(point["giga_per_second"]) for point in points]
    at = math.log(max(size, 1.0))
    place = bisect.bisect(sizes, at)
    if place == 0 or place == len(sizes):
        return rates[min(place, len(rates) - 1)]
    share = (at - sizes[place - 1]) / (sizes[place] - sizes[place - 1])
    return rates[place - 1] + share * (rates[place] - rates[place - 1])
