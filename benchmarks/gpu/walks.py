"""Random walks: steps a second beside bare kernels of the same reads, and the latency of few walks.

A graph's columns are walked (``direction="in"``), as gSampler does, so that nothing has to be
turned over; the bare kernels walk the same ones. They know neither seeds nor ends of walks, check
nothing, and write what ours write: the vertices, step by step.

- two reads    a row's offsets, then the neighbour
- packed       16 bytes an edge: the neighbour and its row, one read a step
- alias        32 bytes an edge: the alias table's threshold and both candidates, one read a step
- stopping     packed, and a coin before each step: all that is to be -1 is filled before

Some walks of each sampler are compared with the CPU engine's before a clock starts. ``gsteps`` are
10**9 steps a second of whole calls, results in torch's memory as a user gets them; walks that end
count the steps that they took.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

import torch

import pygsampler as pgs
from pygsampler._cli.bench.check import CheckError
from pygsampler._engine.pending import PackedJob
from pygsampler._sampling.request import SampleRequest

from .graphs import Made, make
from .record import Budget, Record, spread

SHAPES = ("livejournal", "products", "papers100m")
LENGTH = 80
STOP = 0.15
# One walk a vertex, but of the largest graph.
MOST_WALKS = 10_000_000
FEW = 1024
_ROUNDS, _CALLS = 7, 300
_CHECKED = 2000

SOURCE = r"""
typedef unsigned int u32;
typedef unsigned long long u64;
__device__ __forceinline__ u64 mix(u64 z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}
#define G 0x9E3779B97F4A7C15ull
extern "C" __global__ void two(const int* indptr, const int* indices, const int* seeds, u64 walks,
                               int steps, int* out, u64 seed) {
  u64 w = blockIdx.x * (u64)blockDim.x + threadIdx.x;
  if (w >= walks) return;
  int v = seeds[w];
  u64 state = mix(seed + w * G);
  for (int s = 0; s < steps; s++) {
    int start = indptr[v], degree = indptr[v + 1] - start;
    if (!degree) break;
    v = indices[start + (int)__umul64hi(mix(state + (s + 1) * G), (u64)degree)];
    out[s * walks + w] = v;
  }
}
extern "C" __global__ void packed(const int* indptr, const int4* edges, const int* seeds, u64 walks,
                               int steps, int* out, u64 seed) {
  u64 w = blockIdx.x * (u64)blockDim.x + threadIdx.x;
  if (w >= walks) return;
  int v = seeds[w], start = indptr[v], degree = indptr[v + 1] - start;
  u64 state = mix(seed + w * G);
  for (int s = 0; s < steps && degree; s++) {
    int4 e = edges[start + (int)__umul64hi(mix(state + (s + 1) * G), (u64)degree)];
    v = e.x, start = e.y, degree = e.z;
    out[s * walks + w] = v;
  }
}
extern "C" __global__ void alias(const int* indptr, const int4* edges, const int* seeds, u64 walks,
                               int steps, int* out, u64 seed) {
  u64 w = blockIdx.x * (u64)blockDim.x + threadIdx.x;
  if (w >= walks) return;
  int v = seeds[w], start = indptr[v], degree = indptr[v + 1] - start;
  u64 state = mix(seed + w * G);
  for (int s = 0; s < steps && degree; s++) {
    u64 r = mix(state + (s + 1) * G);
    u64 at = 2 * (u64)(start + (int)__umul64hi(r, (u64)degree));
    int4 x = edges[at], y = edges[at + 1];
    bool own = (u32)((r * (u64)degree) >> 32) < (u32)x.x;
    v = own ? x.y : y.x, start = own ? x.z : y.y, degree = own ? x.w : y.z;
    out[s * walks + w] = v;
  }
}
// Lanes whose walk has ended write beside the others, so that a warp writes whole lines.
extern "C" __global__ void stopping(const int* indptr, const int4* edges, const int* seeds,
                               u64 walks, int steps, int* out, u64 seed, u64 stop) {
  u64 w = blockIdx.x * (u64)blockDim.x + threadIdx.x;
  bool is = w < walks, going = is;
  int v = is ? seeds[w] : 0, start = indptr[v], degree = indptr[v + 1] - start;
  u64 state = mix(seed + w * G);
  for (int s = 0; s < steps; s++) {
    u64 r = mix(state + (s + 1) * G);
    going = going && degree && (mix(r + G) >> 1) >= stop;
    if (!__any_sync(~0u, going)) break;
    if (going) {
      int4 e = edges[start + (int)__umul64hi(r, (u64)degree)];
      v = e.x, start = e.y, degree = e.z;
    }
    if (is) out[s * walks + w] = going ? v : -1;
  }
}
"""


def bare(cupy: Any, made: Made, seeds: torch.Tensor) -> dict[str, Any]:
    """G steps a second of the bare kernels."""
    module = cupy.RawModule(code=SOURCE, options=("-std=c++17",))
    walks = len(seeds)
    out = torch.empty(walks * LENGTH, dtype=torch.int32, device="cuda")
    offsets = made.indptr.to(torch.int32)
    degrees = (made.indptr[1:] - made.indptr[:-1]).to(torch.int32)
    found: dict[str, Any] = {}

    def measure(name: str, edges: torch.Tensor, *, stop: float = 0) -> None:
        kernel = module.get_function(name)
        threads = 128 if walks > 50_000 else 32
        tensors = [cupy.asarray(t) for t in (offsets, edges.reshape(-1), seeds)]
        times = []
        for i in range(_ROUNDS):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            stream = cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream)
            begin.record()
            if stop:
                out.fill_(-1)
            with stream:
                kernel(
                    (-(-walks // threads),),
                    (threads,),
                    (
                        *tensors,
                        cupy.uint64(walks),
                        cupy.int32(LENGTH),
                        cupy.asarray(out),
                        cupy.uint64(i),
                        *([cupy.uint64(int(stop * 2**63))] if stop else []),
                    ),
                )
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end))
        steps = int((out >= 0).sum()) if stop else walks * LENGTH
        found[name] = {
            "us": spread([1e3 * t for t in times[1:]], 1),
            "gsteps": round(steps / min(times[1:]) / 1e6, 2),
        }

    def built(width: int, fill: Callable[[torch.Tensor, torch.Tensor], None]) -> torch.Tensor:
        edges = torch.empty((len(made.indices), width), dtype=torch.int32, device="cuda")
        for start in range(0, len(edges), 1 << 26):
            part = made.indices[start : start + (1 << 26)].long()
            fill(edges[start : start + (1 << 26)], part)
        return edges

    def one(part: torch.Tensor, v: torch.Tensor) -> None:
        part[:, 0], part[:, 1], part[:, 2], part[:, 3] = v, offsets[v], degrees[v], 0

    def both(part: torch.Tensor, v: torch.Tensor) -> None:
        u = v.flip(0)
        random = torch.randint(-(2**31), 2**31, (len(v),), device="cuda")
        part[:, 0], part[:, 1], part[:, 2], part[:, 3] = random, v, offsets[v], degrees[v]
        part[:, 4], part[:, 5], part[:, 6], part[:, 7] = u, offsets[u], degrees[u], 0

    measure("two", made.indices)
    edges = built(4, one)
    measure("packed", edges)
    measure("stopping", edges, stop=STOP)
    del edges
    edges = built(8, both)
    measure("alias", edges)
    return found


def checked(
    sampler: pgs.RandomWalk, there: pgs.Graph, here: pgs.Graph, seeds: torch.Tensor
) -> None:
    """CheckError unless some walks are those of the CPU engine."""
    few = seeds[:_CHECKED].contiguous()
    got = sampler.sample(there, few, epoch=0, batch=0).cpu().nodes.numpy()
    want = sampler.sample(here, few.cpu(), epoch=0, batch=0).nodes.numpy()
    if (got != want).any():
        raise CheckError(f"{sampler!r}: walks of the GPU differ from the CPU's")


def whole_calls(sampler: pgs.RandomWalk, graph: pgs.Graph, seeds: torch.Tensor) -> dict[str, Any]:
    """Calls for all walks, in torch's memory: microseconds, and steps that were taken."""
    times, steps = [], 0
    for batch in range(_ROUNDS):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        walks = sampler.launch(graph, seeds, epoch=0, batch=batch, form="torch").result()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
        if batch == 0:
            steps = int(walks.lengths.sum(dtype=torch.int64))
        del walks
    best = min(times[1:])
    return {
        "us": spread([1e6 * t for t in times[1:]], 1),
        "steps": steps,
        "gsteps": round(steps / best / 1e9, 2),
    }


def latency(sampler: pgs.RandomWalk, graph: pgs.Graph, seeds: torch.Tensor) -> dict[str, Any]:
    """Microseconds of one call for few walks: of the engine's, and as a torch user makes it."""
    walked = sampler.sampled_graph(graph)
    engine, user = [], []
    for batch in range(_CALLS):
        request = SampleRequest(sampler, walked, seeds, epoch=0, batch=batch)
        request.on_device(torch.cuda.current_stream().cuda_stream)
        job = PackedJob(request.words)
        begin = time.perf_counter()
        job.begin()
        engine.append(1e6 * (time.perf_counter() - begin))
        del job
    for batch in range(_CALLS):
        begin = time.perf_counter()
        walks = sampler.launch(graph, seeds, epoch=0, batch=batch, form="torch").result()
        user.append(1e6 * (time.perf_counter() - begin))
        del walks
    return {"engine_us": spread(engine[20:], 1), "torch_us": spread(user[20:], 1)}


def samplers(shape: str) -> dict[str, Callable[..., pgs.RandomWalk]]:
    """Returns the measured walks by name; each takes further options."""

    def of(**options: Any) -> Callable[..., pgs.RandomWalk]:
        return lambda **more: pgs.RandomWalk(LENGTH, direction="in", seed=7, **options, **more)

    found = {"uniform": of(), "csr": of(mode_options={"layout": "csr"}), "ppr": of(stop=STOP)}
    # More than half of the memory that is free, for the largest graph: so it is asked for.
    found["weighted"] = of(prob="w", mode_options={"layout": "packed"})
    if shape != "papers100m":
        found["with edges"] = of(edge_ids=True)
        found["weighted csr"] = of(prob="w", mode_options={"layout": "csr"})
        found["node2vec"] = of(p=2.0, q=0.5)
        found["node2vec p=.25 q=4"] = of(p=0.25, q=4.0)
    return found


def neighbours() -> dict[str, pgs.RandomWalk]:
    """Samplers of which the latency is measured alone."""
    return {
        "pinsage": pgs.walks.PinSAGE(2, 0.5, 10, 10, direction="in", seed=7),
        "multirw": pgs.walks.MultiRW(128, LENGTH, direction="in", seed=7),
    }


def run(kept: Record, budget: Budget, trial: bool) -> None:
    """Rows of every graph and sampler."""
    import cupy

    for shape in ("tiny",) if trial else SHAPES:
        if budget.over():
            kept.skip(shape)
            continue
        made = make(shape)
        walks = min(made.num_nodes, MOST_WALKS)
        seeds = torch.randperm(made.num_nodes, device="cuda")[:walks].to(torch.int32)
        few = seeds[:FEW].contiguous()
        row = {"shape": shape, "walks": walks, "length": LENGTH, "bare": bare(cupy, made, seeds)}
        row["bare_few"] = bare(cupy, made, few) if shape != "papers100m" else None
        torch.cuda.empty_cache()
        print(shape, {name: found["gsteps"] for name, found in row["bare"].items()}, flush=True)
        random = torch.Generator().manual_seed(3)
        weights = {"w": torch.rand(len(made.indices), generator=random) * 4 + 1}
        # The largest is walked where it was made, and its walks are not compared once more.
        here = None
        if shape == "papers100m":
            there = pgs.Graph.from_csc(made.indptr, made.indices, edge_data=weights)
        else:
            here = made.on_cpu().with_data(edge_data=weights)
            there = here.to("cuda")
        for name, sampler in samplers(shape).items():
            if budget.over():
                kept.skip(f"{shape} {name}")
                continue
            begin = time.perf_counter()
            walker = sampler()
            walker.sample(there, few)
            first = time.perf_counter() - begin
            if here is not None:
                checked(walker, there, here, seeds)
            found = whole_calls(walker, there, seeds)
            found.update(latency(walker, there, few), first_call_s=round(first, 2))
            print(
                f"{shape} {name}: {found['gsteps']} G steps/s, {found['engine_us']['median']} us, "
                f"torch {found['torch_us']['median']} us, first {first:.1f} s",
                flush=True,
            )
            kept.add(
                {
                    "shape": shape,
                    "walk": name,
                    "length": LENGTH,
                    "few": FEW,
                    "walks": walks,
                    **found,
                }
            )
        kept.add({**row, "walk": "bare"})
        for name, sampler in neighbours().items():
            found = latency(sampler, there, few)
            print(f"{shape} {name}: {found['engine_us']['median']} us", flush=True)
            kept.add({"shape": shape, "walk": name, "few": FEW, **found})
        del made, there, here
        gc.collect()
        torch.cuda.empty_cache()
    kept.write()
