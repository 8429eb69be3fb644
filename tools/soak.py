"""Many batches through a loader, and what the process holds meanwhile.

    python tools/soak.py --loader torch --batches 200000 --out benchmarks/results/soak
    python tools/soak.py --loader dgl
    python tools/soak.py --loader weights       # torch's, by weights and masks that change
    python tools/soak.py --loader programs
    python tools/soak.py --device cuda          # where a GPU samples

Resident memory, descriptors, threads and the engine's own counts are read at regular times. After a
warm-up they have to be flat: status 1 and a sentence where they are not. OUT gets a JSON file with
every reading and a picture of them. Ctrl-C stops it, and draws what there is.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

READINGS = 250
# Loaders fill their pools and frameworks their caches within this part of the run.
WARM = 0.1
# Bytes that may grow from a third to the next: 100 bytes of each of 60,000 batches are more.
SLACK = 4 << 20
# The system's threads and files come and go; Go's runtime opens two files at its first timer,
# which may be late in a run.
COUNTS = {"descriptors": 3, "threads": 3, "live": 12, "jobs": 12, "flights": 12, "workspaces": 0}
BYTES = ("resident", "live_bytes", "pooled_bytes", "used", "reserved", "torch_allocated")

Reading = dict[str, float]


def read(device: str) -> Reading:
    """Returns the memory and handles that the process holds now."""
    import pygsampler as pgs

    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[1])
    found: Reading = {
        "resident": pages * os.sysconf("SC_PAGE_SIZE"),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": len(os.listdir("/proc/self/task")),
    }
    stats = pgs.engine.memory_stats()
    names = ("live", "live_bytes", "pooled_bytes", "jobs")
    found |= {name: stats[name] for name in names if name in stats}
    if device != "cpu":
        import torch

        stats = pgs.cuda.memory_stats()
        found |= {name: stats[name] for name in ("used", "reserved", "workspaces", "flights")}
        if torch.cuda.is_available():
            found["torch_allocated"] = torch.cuda.memory_allocated()
    return found


def verdict(readings: list[Reading]) -> list[str]:
    """Returns a sentence for each reading that grew from its second third to its last."""
    warm = readings[int(len(readings) * WARM) :]
    third = len(warm) // 3
    if third < 3:
        return ["too few readings to say anything"]
    before, after = warm[third : 2 * third], warm[2 * third :]
    faults = []
    for name in readings[0]:
        then = statistics.median(reading[name] for reading in before)
        now = statistics.median(reading[name] for reading in after)
        if now > then + (SLACK if name in BYTES else COUNTS[name]):
            faults.append(f"{name} grows: {then:,.0f}, later {now:,.0f}")
    return faults


# ---- what is looped over ----


def graph_arrays(num_nodes: int = 20_000, degree: int = 15) -> tuple[Any, Any]:
    import numpy as np

    random = np.random.default_rng(1)
    indptr = np.arange(0, num_nodes * degree + 1, degree)
    return indptr, random.integers(0, num_nodes, num_nodes * degree)


def torch_batches(device: str) -> Iterator[Any]:
    """Passes over a loader one after the other, each with its own order."""
    import torch

    import pygsampler as pgs
    from pygsampler.torch import DataLoader

    indptr, indices = graph_arrays()
    graph = pgs.Graph.from_csc(indptr, indices)
    loader = DataLoader(
        graph,
        torch.arange(graph.num_nodes),
        [5, 5],
        batch_size=32,
        shuffle=True,
        prefetch=4,
        seed=1,
        device=device,
    )
    while True:
        for batch in loader:
            yield batch.input_nodes, batch.blocks[0].edge_index if batch.batch % 8 == 0 else None


def weighted_batches(device: str) -> Iterator[Any]:
    """Batches by weights and around a mask in turn, of arrays that are new in each pass."""
    import numpy as np

    import pygsampler as pgs
    from pygsampler.torch import DataLoader

    indptr, indices = graph_arrays()
    plain = pgs.Graph.from_csc(indptr, indices)
    seeds, random = range(plain.num_nodes), np.random.default_rng(2)
    options: dict[str, Any] = {"batch_size": 32, "shuffle": True, "prefetch": 4, "seed": 1}
    while True:
        weights = random.pareto(1.2, len(indices)) * (random.random(len(indices)) < 0.8)
        graph = plain.with_data(edge_data={"w": weights})
        loaders = [
            DataLoader(graph, seeds, sampler, device=device, **options)
            for sampler in (pgs.PGSampler([5, 5], prob="w"), pgs.PGSampler([5, 5], mask="w"))
        ]
        # Else small batches take the pooled memory of the former pass's tables, now and then.
        pgs.engine.trim()
        for pair in zip(*loaders, strict=True):
            for batch in pair:
                yield batch.input_nodes, batch.blocks[0].edge_index


def program_batches(device: str) -> Iterator[Any]:
    """Batches of a layer-wise program."""
    import torch

    import pygsampler as pgs
    from pygsampler import samplers
    from pygsampler.torch import DataLoader

    indptr, indices = graph_arrays()
    graph = pgs.Graph.from_csc(indptr, indices)
    sampler = samplers.ladies(nodes=[64, 64], seed=1)
    seeds = torch.arange(graph.num_nodes)
    loader = DataLoader(
        graph, seeds, sampler, batch_size=32, shuffle=True, prefetch=4, device=device
    )
    while True:
        for batch in loader:
            yield batch.input_nodes, batch.blocks[0].edge_data["w"]


def dgl_batches(device: str) -> Iterator[Any]:
    """The same through DGL's loader, whose blocks are DGL's."""
    import warnings

    warnings.simplefilter("ignore")
    import dgl
    import torch

    from pygsampler.dgl import PGSampler

    indptr, indices = graph_arrays()
    graph = dgl.graph(("csc", (torch.from_numpy(indptr), torch.from_numpy(indices), [])))
    if device != "cpu":
        graph = graph.to(device)
    seeds = torch.arange(graph.num_nodes(), device=graph.device)
    options = {"batch_size": 32, "shuffle": True, "device": device, "num_workers": 0}
    loader = dgl.dataloading.DataLoader(graph, seeds, PGSampler([5, 5], seed=1), **options)
    while True:
        yield from loader


LOADERS: dict[str, Callable[[str], Iterator[Any]]] = {
    "torch": torch_batches,
    "weights": weighted_batches,
    "programs": program_batches,
    "dgl": dgl_batches,
}


def run(
    loader: str,
    batches: int,
    device: str = "cpu",
    readings: int = READINGS,
    update: Callable[[int], Any] = lambda count: None,
    found: list[Reading] | None = None,
) -> list[Reading]:
    """So many batches; what was held at each reading, the number of the batch with it."""
    import torch

    # Threads of torch's that wait by spinning only take cores away from the sampling.
    torch.set_num_threads(1)
    found = [] if found is None else found
    every = max(batches // readings, 1)
    source = LOADERS[loader](device)
    with contextlib.closing(source):  # type: ignore[type-var]
        for number in range(1, batches + 1):
            next(source)
            if number == 1:
                # The modules of frameworks are a million objects, to be looked through each time.
                gc.collect()
                gc.freeze()
            if number % every == 0:
                gc.collect()
                found.append(read(device))
                update(every)
    return found


# ---- the report ----


def about(arguments: argparse.Namespace) -> dict[str, Any]:
    import torch

    import pygsampler as pgs

    processor = platform.processor() or platform.machine()
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as file:
        models = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
        processor = models[0] if models else processor
    versions = {"python": platform.python_version(), "torch": torch.__version__}
    versions |= {name: sys.modules[name].__version__ for name in ("dgl",) if name in sys.modules}
    return {
        "command": "python tools/soak.py " + " ".join(sys.argv[1:]),
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        "processor": f"{processor}, {len(os.sched_getaffinity(0))} cores",
        "gpu": pgs.cuda.device_name(0) if arguments.device != "cpu" else None,
        "versions": versions,
        "graph": "20,000 vertices, 300,000 edges; batches of 32 seeds, fanouts (5, 5)",
    }


def draw(readings: list[Reading], every: int, title: str, path: Path) -> None:
    try:
        import matplotlib
    except ImportError:
        print("no picture: matplotlib is not installed")
        return
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = [name for name in readings[0] if name not in ("live", "jobs", "flights")]
    figure, axes = plt.subplots(len(names), sharex=True, figsize=(8, 1.3 * len(names) + 1))
    places = [every * (i + 1) / 1000 for i in range(len(readings))]
    for axis, name in zip(axes, names, strict=True):
        scale = 1 << 20 if name in BYTES else 1
        axis.plot(places, [reading[name] / scale for reading in readings], lw=1, color="#1f5fa8")
        most = max(reading[name] for reading in readings) / scale
        axis.set_ylim(0, 1.2 * most or 1)
        label = name.replace("_", " ") + (", MiB" if scale > 1 else "")
        axis.set_title(label, fontsize=8, loc="left", pad=2)
        axis.tick_params(labelsize=7)
        axis.axvspan(0, WARM * places[-1], color="#dddddd", lw=0)
    axes[-1].set_xlabel("thousand batches; grey: warm-up", fontsize=8)
    figure.suptitle(title, fontsize=9)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def bar_of(total: int, quiet: bool) -> Any:
    if quiet:
        return contextlib.nullcontext()
    from tqdm import tqdm

    return tqdm(total=total, unit="batch", unit_scale=True)


def main() -> int:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--loader", choices=LOADERS, default="torch")
    parser.add_argument("--batches", type=int, default=200_000)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, help="folder for the JSON file and the picture")
    parser.add_argument("--commit", help="kept in the JSON file")
    parser.add_argument("--quiet", action="store_true", help="no bar")
    arguments = parser.parse_args()
    every = max(arguments.batches // READINGS, 1)
    readings: list[Reading] = []
    begin, stopped = time.monotonic(), False
    with bar_of(arguments.batches, arguments.quiet) as bar:
        update = bar.update if bar is not None else lambda count: None
        try:
            run(arguments.loader, arguments.batches, arguments.device, READINGS, update, readings)
        except KeyboardInterrupt:
            stopped = True
    seconds = time.monotonic() - begin
    done = every * len(readings)
    faults = verdict(readings)
    result = "; ".join(faults) or "flat after the warm-up"
    title = f"{arguments.loader} loader, {arguments.device}: {done:,} batches in {seconds:.0f} s"
    print(f"{title}: {result}")
    if readings and arguments.out is not None:
        arguments.out.mkdir(parents=True, exist_ok=True)
        name = arguments.loader + ("" if arguments.device == "cpu" else "_gpu")
        words: dict[str, Any] = about(arguments)
        words |= {"commit": arguments.commit, "batches": done, "seconds": round(seconds, 1)}
        words |= {"every": every, "result": result, "readings": readings}
        text = json.dumps(words, indent=1)
        (arguments.out / f"{name}.json").write_text(text + "\n")
        draw(readings, every, title, arguments.out / f"{name}.png")
    if stopped:
        return 130
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
