"""``python -m benchmarks.gpu``: figures of one GPU, each part into a JSON file of its own.

Parts, in the order in which they run when none is named:

- latency     one batch at a time, at the rows of reference.csv
- calls       what the public calls take beside the engine
- throughput  batches in flight, and several to a call
- grid        the paper's grid against DGL
- ablation    bsp, fused, persistent and queue side by side
- pgsampler   kernels of the modes, hops of bsp, and fetch sizes of the queue
- training    the share of a training step that waits for a sample
- steps       whole training steps: plain torch, the helpers, one CUDA graph
- pyg_steps   whole training steps of PyG's own layers: our loader and calls, and one CUDA graph
- weights     weighted sampling beside uniform sampling
- gather      rows of a table by their ids, beside torch's index_select and a copy
- turbo       TurboGNN's sampling kernels, their thresholds and switches, beside ours
- turbo_training  epochs of TurboGNN's models with its kernels, its pipeline, both, and ours
- cache       rows that are on the host and in part on the device, and what keeping them takes
- walks       random walks, beside bare kernels of the same reads
- transit     NextDoor's transit-parallel walks, beside a thread a walk
- khop        NextDoor's k-hop and layer sampling, by transit and by sample, and its other samples
- nextdoor    NextDoor's figure 10 on all GPUs, parts of its transits, and graphs outside of the GPU
- programs    algorithms as programs, beside gSampler's and torch's
- large_programs  programs on graphs of papers100M's and Friendster's size, also page-locked
- labor       LABOR, beside DGL's
- passes      programs with more and more of the passes: gSampler's figure 10
- layouts     edges of programs by their columns, by their rows, and by costs
- typed       a graph with types of ogbn-mag's counts, and what types cost
- rgcn        whole training steps of R-GCN on it
- peers       graphs and features in the memory of several GPUs, and threads for several
- roofline    how near the batches are to what the GPU can do

It needs torch with CUDA and matplotlib; roofline needs CuPy, pyg_steps PyG. Times of others
stand in reference.csv, dgl_grid.csv and dgl_labor.csv, with where they come from.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

PARTS = (
    *("latency", "calls", "throughput", "grid", "ablation", "pgsampler", "training", "steps"),
    "pyg_steps",
    *("weights", "gather", "turbo", "turbo_training", "cache", "walks", "transit", "khop"),
    *("nextdoor", "programs", "large_programs"),
    *("labor", "passes", "layouts", "typed", "rgcn", "peers", "roofline"),
)
_RESEARCH = (
    *("ablation", "khop", "large_programs", "nextdoor", "pgsampler"),
    *("transit", "turbo", "turbo_training"),
)
# Parts are called as the files of their results, some modules by what they measure.
_MODULES = {
    "calls": "benchmarks.gpu.call_overhead",
    "peers": "benchmarks.gpu.shared",
    "steps": "benchmarks.gpu.training_steps",
    "typed": "benchmarks.gpu.hetero",
    **{name: f"benchmarks.research.{name}" for name in _RESEARCH},
}
# The shares of the parts in the budget.
_SHARES = {
    "latency": 5,
    "calls": 2,
    "throughput": 3,
    "grid": 5,
    "ablation": 5,
    "pgsampler": 3,
    "training": 1,
    "steps": 2,
    "pyg_steps": 2,
    "weights": 3,
    "gather": 1,
    "turbo": 3,
    "turbo_training": 4,
    "cache": 1,
    "walks": 3,
    "transit": 3,
    "programs": 3,
    "large_programs": 3,
    "khop": 2,
    "nextdoor": 2,
    "labor": 2,
    "passes": 3,
    "layouts": 1,
    "typed": 2,
    "rgcn": 1,
    "peers": 3,
    "roofline": 3,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0, 1 where a part failed, 2 for a mistake on the command line."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = _parser().parse_args(given)
    import torch

    import pygsampler as pgs

    from . import record

    if not torch.cuda.is_available() or not pgs.cuda.is_available():
        print("benchmarks.gpu: expected a CUDA device and a torch that uses it, got none")
        return 1
    chosen = [part for part in PARTS if part in options.parts] or list(PARTS)
    total = sum(_SHARES[part] for part in chosen)
    clock = record.Budget(options.budget)
    failed = 0
    for part in chosen:
        # The time that a part leaves goes to the next parts.
        budget = record.Budget(max(clock.left(), 1) * _SHARES[part] / total)
        total -= _SHARES[part]
        print(f"\n== {part}, up to {budget.seconds:.0f} s", flush=True)
        kept = record.Record(part, options.out, given, options.commit)
        try:
            module = importlib.import_module(_MODULES.get(part, f"benchmarks.gpu.{part}"))
            module.run(kept, budget, options.trial)
        except Exception as error:
            # The parts after it still say something, and so do its rows before.
            failed += 1
            kept.content["error"] = f"{type(error).__name__}: {error}"
            traceback.print_exc()
        kept.write()
        if kept.left_out:
            print(f"no time for {len(kept.left_out)} rows, named in {kept.path}", flush=True)
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[], metavar="part")
    parser.add_argument("--out", type=Path, required=True, help="folder for JSON and pictures")
    parser.add_argument(
        "--budget", type=float, default=600, help="seconds for all parts together (default: 600)"
    )
    parser.add_argument(
        "--commit", help="the commit that the package was built from, where git cannot tell"
    )
    parser.add_argument(
        "--trial", action="store_true", help="tiny graphs: whether the code works, no figures"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
