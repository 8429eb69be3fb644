"""``python -m benchmarks.rgat --gpus N``: R-GAT in the shape of MLPerf's benchmark.

    python -m benchmarks.rgat --gpus 1 --out results
    python -m benchmarks.rgat --gpus 8 --gigabytes 80 --out results
    python -m benchmarks.rgat --gpus 2 --device cpu --trial

Rows are printed and written as they come, for a batch of 1,024 and one of 2,048 seeds a GPU.
``step_ms`` is a step that is one CUDA graph, with sampling and rows of features, ``eager_ms`` the
same step of a loop, and seeds a second are of the faster one. ``sampling_ms`` and ``loader_ms`` are
batches without rows, and with rows and without a model.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch

from ..gpu.record import Record
from ..gpu.shared import processes
from . import igbh
from .model import FANOUTS, HEADS, HIDDEN, LAYERS

# MLPerf Training v5.1, R-GAT on IGBH-Full: eight H200, 2,048 seeds a GPU, 81 ms a step.
MLPERF_SEEDS_PER_SECOND = 25_100


def scale_for(gigabytes: float, gpus: int) -> float:
    """The scale of IGBH-Full at which so many gigabytes a GPU hold all rows of features."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        fits = igbh.Sizes.at(middle).rows * (igbh.FEATURES + 4) <= gigabytes * 1e9 * gpus
        low, high = (middle, high) if fits else (low, middle)
    return low


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rgat", description=__doc__)
    parser.add_argument("--gpus", type=int, default=1, help="processes, each with a GPU")
    parser.add_argument("--gigabytes", type=float, default=40, help="rows of features a GPU")
    parser.add_argument("--batch", type=int, nargs="+", default=[1024, 2048], help="seeds a GPU")
    parser.add_argument("--steps", type=int, default=40, help="steps of a timed run")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for rgat.json")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--trial", action="store_true", help="so small that figures mean nothing")
    parser.add_argument("--timeout", type=float, default=540, help="seconds for all processes")
    parser.add_argument("--commit", help="of the package, if it was built elsewhere")
    options = parser.parse_args(arguments)
    available = torch.cuda.device_count()
    if options.device == "cuda" and available < options.gpus:
        parser.error(f"--gpus: expected at most {available} GPUs, got {options.gpus}")
    scale = 2e-6 if options.trial else scale_for(options.gigabytes, options.gpus)
    settings = {
        "device": options.device,
        "scale": scale,
        "batches": [16, 32] if options.trial else options.batch,
        "steps": 3 if options.trial else options.steps,
        "hidden": 16 if options.trial else HIDDEN,
        "width": 32 if options.trial else igbh.FEATURES,
        "classes": 5 if options.trial else igbh.CLASSES,
        "rows": str(options.out / "rgat.jsonl"),
    }
    options.out.mkdir(parents=True, exist_ok=True)
    record = Record("rgat", options.out, arguments, options.commit, "benchmarks.rgat")
    record.content["model"] = {
        "layers": LAYERS, "heads": HEADS, "fanouts": list(FANOUTS), "features": "float8_e4m3",
        "mlperf_seeds_per_second_per_gpu": MLPERF_SEEDS_PER_SECOND, **settings,
    }  # fmt: skip
    for row in processes(settings, options.gpus, options.timeout, "benchmarks.rgat.rank"):
        record.add(row)
        print(
            f"{row['gpus']} x {row['batch']} seeds: {row['eager_ms']:.1f} ms an eager step, "
            f"{row['step_ms']:.1f} a captured one, {row['seeds_per_second_per_gpu']:,.0f} seeds/s "
            f"a GPU; sampling {row['sampling_ms']:.1f} ms, with rows {row['loader_ms']:.1f}; "
            f"{row['input_nodes']:,} nodes, {row['edges']:,} edges",
            flush=True,
        )
    record.write()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
