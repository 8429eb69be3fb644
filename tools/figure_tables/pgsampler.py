"""Kernels, hops and fetch sizes of the paper PGSampler, and curves of training."""

from __future__ import annotations

import statistics

from figure_tables.record import CASE, Record, case, figure, source, table, unmeasured
from figure_tables.turbognn import of_kind

_TIMES = unmeasured("python -m benchmarks.gpu pgsampler")
_CURVES = unmeasured("python -m benchmarks.research.convergence", "curves")


@figure("gpu/pgsampler.json", _TIMES)
def gpu_pgsampler_kernels(record: Record) -> str:
    """Kernels of each mode against those of `bsp`: figure 8, by graph and number of hops."""
    cases: dict[tuple[str, int], list[dict[str, float]]] = {}
    for row in of_kind(record, "kernel"):
        if row["us"]:
            cases.setdefault((row["shape"], len(row["fanouts"])), []).append(row["us"])
    modes = ["fused", "persistent", "queue"]
    rows = []
    for (shape, hops), found in cases.items():
        cells = [shape, str(hops), str(len(found))]
        for mode in modes:
            ratios = [us["bsp"] / us[mode] for us in found]
            cells.append(f"{statistics.geometric_mean(ratios):.2f}x (up to {max(ratios):.2f}x)")
        rows.append(cells)
    head = ["graph", "hops", "cases", *(f"`{mode}`" for mode in modes)]
    return f"{source(record)}\n{table(head, rows, len(modes) + 1)}"


@figure("gpu/pgsampler.json", _TIMES)
def gpu_pgsampler_hops(record: Record) -> str:
    """Each hop of `bsp`: table I."""
    rows = [
        [
            *case(row),
            str(row["hop"]),
            f"{row['rows']:,}",
            *(
                [f"{row['pre_us']:.1f}", f"{row['kernel_us']:.1f}", f"{100 * row['of_copy']:.1f} %"]
                if "pre_us" in row
                else [""] * 3
            ),
        ]
        for row in of_kind(record, "hop")
    ]
    head = [*CASE, "hop", "rows", "pre, us", "kernels, us", "of a copy"]
    return table(head, rows, 5)


@figure("gpu/pgsampler.json", _TIMES)
def gpu_pgsampler_fetch_sizes(record: Record) -> str:
    """Microseconds of a batch by the queue, by the tasks that a block fetches at a time."""
    cases: dict[tuple[str, ...], dict[tuple[int | None, bool], float]] = {}
    for row in of_kind(record, "fetch"):
        times = cases.setdefault(tuple(case(row)), {})
        times[row["fetch_size"], row["ordered"]] = row["us"]["median"]
    sizes = list(dict.fromkeys(row["fetch_size"] for row in of_kind(record, "fetch")))
    rows = [
        [*name, "canonical" if ordered else "as found", *(f"{us[n, ordered]:.0f}" for n in sizes)]
        for name, us in cases.items()
        for ordered in (True, False)
    ]
    head = [*CASE, "order of nodes", *("own rule" if n is None else str(n) for n in sizes)]
    return table(head, rows, len(sizes))


def _curves(record: Record) -> str:
    found: dict[tuple[str, int, str], list[float]] = {}
    for row in record["rows"]:
        key = row["graph"], row["layers"], row["sampler"]
        found.setdefault(key, []).append(row["accuracy"][-1])
    rows = [
        [graph, str(layers), sampler, *(f"{100 * f(ends):.2f} %" for f in _OF_RUNS)]
        for (graph, layers, sampler), ends in found.items()
    ]
    head = ["graph", "layers", "sampler", "mean", "least", "most"]
    return f"{source(record)}\n{table(head, rows, 3)}"


_OF_RUNS = (statistics.mean, min, max)


@figure("convergence.json", _CURVES)
def convergence(record: Record) -> str:
    """Accuracy after the last epoch, of the runs with each sampler: figure 11."""
    return _curves(record)


@figure("convergence-cuda.json", _CURVES)
def convergence_of_gpu(record: Record) -> str:
    """Returns the same accuracies, sampled and trained on a GPU."""
    return _curves(record)
