"""Programs, LABOR and graphs with types on a GPU."""

from __future__ import annotations

import statistics
from typing import NamedTuple

from figure_tables.record import Record, figure, source, table, unmeasured


@figure("gpu/programs.json", unmeasured("python -m benchmarks.gpu programs --out FOLDER"))
def gpu_programs(record: Record) -> str:
    """Programs on a GPU: microseconds a batch, beside torch's operators and gSampler."""
    rows = []
    for row in record["rows"]:
        known, us = row["kept_us"], row["us"]["median"]
        cells = [row["shape"], row["setting"], f"{us:.0f}", f"{row['engine_us']['median']:.0f}"]
        cells += [
            f"{row['many_us']:.0f}",
            f"{row['torch_us']['median']:,.0f}",
            f"{row['ratio']:.1f}x",
        ]
        names = ("gsampler", "torch", "gsampler, many")
        cells += [f"{known[name]:,.0f}" if name in known else "" for name in names]
        single = [known[name] for name in names[:2] if name in known]
        cells.append(f"{min(single) / us:.1f}x" if single else "")
        many = known.get(names[2])
        rows.append([*cells, f"{many / row['many_us']:.1f}x" if many else ""])
    head = ["graph", "algorithm", "us", "engine", "of 64", "torch here", "ratio"]
    head += [
        "gSampler, earlier",
        "torch, earlier",
        "gSampler of many, earlier",
        "to the faster",
        "of many",
    ]
    return f"{source(record)}\n{table(head, rows, 10)}"


@figure(
    "gpu/program_roofline.json", unmeasured("python -m benchmarks.program_roofline --out FOLDER")
)
def gpu_program_roofline(record: Record) -> str:
    """Returns the part of a program's batch that its memory traffic explains."""
    rows = [
        [
            *(row["shape"], row["setting"]),
            f"{(row['looked_at'] + row['drawn']) / 1e3:,.0f}",
            *(f"{row[part]:.1f}" for part in ("rows_us", "draws_us", "map_us", "writes_us")),
            *(f"{row['engine_us']:.0f}", f"{100 * row['share']:.0f} %"),
            *(f"{row['many_us']:.0f}", f"{100 * row['share_of_many']:.0f} %"),
        ]
        for row in record["rows"]
    ]
    head = ["graph", "algorithm", "thousand edges", "rows, us", "draws, us", "map, us"]
    head += ["writes, us", "engine, us", "memory of it", "of 64, us", "memory of it"]
    return (
        f"Counted by `{record['command']}` at commit {record['commit'][:7]}; measured at commit "
        f"{record['measured_at'][:7]}, as above.\n\n{table(head, rows, 9)}"
    )


@figure("gpu/programs.json", unmeasured("python -m benchmarks.gpu programs --out FOLDER"))
def gpu_program_times(record: Record) -> str:
    """Algorithms on a GPU: microseconds a batch alone, and of 64 together, by graph."""
    shapes = list(dict.fromkeys(row["shape"] for row in record["rows"]))
    found: dict[str, dict[str, list[str]]] = {}
    for row in record["rows"]:
        both = [f"{row['us']['median']:.0f}", f"{row['many_us']:.0f}"]
        found.setdefault(row["setting"], {})[row["shape"]] = both
    rows = [
        [setting, *(cell for shape in shapes for cell in of.get(shape, ["", ""]))]
        for setting, of in found.items()
    ]
    head = ["", *(name for shape in shapes for name in (f"{shape}, us", "of 64"))]
    return f"{source(record)}\n{table(head, rows, 2 * len(shapes))}"


@figure("gpu/passes.json", unmeasured("python -m benchmarks.gpu passes --out FOLDER"))
def gpu_passes(record: Record) -> str:
    """Programs with more and more of the passes: microseconds a batch."""
    stages = list(record["rows"][0]["us"])
    rows = [
        [row["shape"], row["setting"], *(f"{row['us'][stage]:,.0f}" for stage in stages)]
        for row in record["rows"]
    ]
    return f"{source(record)}\n{table(['graph', 'algorithm', *stages], rows, len(stages))}"


@figure("gpu/labor.json", unmeasured("python -m benchmarks.gpu labor --out FOLDER"))
def gpu_labor(record: Record) -> str:
    """LABOR on a GPU: microseconds a batch, beside DGL's."""
    rows = [
        [
            row["shape"],
            f"LABOR-{row['importance']}",
            f"{row['batch']}x({row['fanouts'].replace('x', ',')})",
            f"{row['mean_edges']:,}",
            f"{row['us']['median']:,.0f}",
            f"{int(row['dgl_us']):,}",
            f"{row['ratio']:.1f}x",
        ]
        for row in record["rows"]
    ]
    head = ["graph", "", "batch", "edges", "us", "DGL, us", "ratio"]
    return f"{source(record)}\n{table(head, rows, 4)}"


@figure("gpu/layouts.json", unmeasured("python -m benchmarks.gpu layouts --out FOLDER"))
def gpu_layouts(record: Record) -> str:
    """`A[R, S]` on a GPU by in-edges of S, by out-edges of R and by costs: microseconds a batch."""
    ways = list(record["rows"][0]["us"])
    rows = [
        [
            row["shape"],
            row["program"],
            f"{row['rows']:,}",
            *(f"{row['us'][way]['median']:,.0f}" for way in ways),
            f"{row['us'][ways[0]]['median'] / row['us'][ways[-1]]['median']:.1f}x",
        ]
        for row in record["rows"]
    ]
    head = ["graph", "program", "rows", *ways, "gain"]
    return f"{source(record)}\n{table(head, rows, len(ways) + 2)}"


@figure("gpu/typed.json", unmeasured("python -m benchmarks.gpu typed --out FOLDER"))
def gpu_typed(record: Record) -> str:
    """Graphs with types on a GPU: microseconds a batch, beside the CPU engine."""
    rows = []
    for row in record["rows"]:
        gpu, cpu = (row["us"][name]["median"] for name in ("gpu", "cpu"))
        cells = [row["kind"], f"{row['relations']}", f"{row['edges']:,}", f"{gpu:,.0f}"]
        rows.append([*cells, f"{cpu:,.0f}", f"{cpu / gpu:.1f}x"])
    head = ["graph", "types of edges", "edges a batch", "GPU, us", "CPU, us", "ratio"]
    return f"{source(record)}\n{table(head, rows, 5)}"


@figure("gpu/large_programs.json", unmeasured("python -m benchmarks.gpu large_programs"))
def gpu_large_programs(record: Record) -> str:
    """Programs on large graphs, on the device and page-locked on the host."""
    rows = [
        [
            row["shape"],
            row["place"],
            row["setting"],
            f"{row['us']['median']:.0f}",
            f"{row['engine_us']['median']:.0f}",
            f"{row['many_us']:.0f}",
            f"{row['memory_mb']:.0f}" if "memory_mb" in row else "",
            *(percent(share) for share in row.get("busy", {"one": None, "many": None}).values()),
        ]
        for row in record["rows"]
    ]
    head = ["graph", "place", "algorithm", "us a batch", "engine, us", "us a batch of 64"]
    head += ["memory, MB", "GPU busy", "GPU busy, many"]
    return f"{source(record)}\n{table(head, rows, 3)}"


def percent(share: float | None) -> str:
    """A share as it is shown; nothing where the profiler saw no kernel."""
    return "" if share is None else f"{share:.0%}"


_TRAINING = unmeasured("python -m benchmarks.research.gsampler_training", "figures of training")


@figure("gsampler_training.json", _TRAINING)
def gsampler_training(record: Record) -> str:
    """Seconds, sampling and accuracy of training by programs and by torch's operators: table 8."""
    return _training(record)


@figure("gsampler_training-cuda.json", _TRAINING)
def gsampler_training_of_gpu(record: Record) -> str:
    """The same, sampled and trained on a GPU."""
    return _training(record)


_NEXTDOOR = unmeasured("python -m benchmarks.research.nextdoor_training", "figures of training")


@figure("nextdoor_training.json", _NEXTDOOR)
def nextdoor_training(record: Record) -> str:
    """Training by the steps of the papers' programs, and by our samplers: NextDoor's table 5."""
    return _replaced(record)


@figure("nextdoor_training-cuda.json", _NEXTDOOR)
def nextdoor_training_of_gpu(record: Record) -> str:
    """The same, trained on a GPU, where ours are sampled, too."""
    return _replaced(record)


def _replaced(record: Record) -> str:
    means = _means(record)
    rows = []
    for key in dict.fromkeys((graph, algorithm) for graph, algorithm, _ in means):
        vanilla, ours = (means[(*key, system)] for system in ("vanilla", "pygsampler"))
        times = [cell for of in (vanilla, ours) for cell in of.times()]
        ratio = f"{vanilla.seconds / ours.seconds:.2f}x"
        rows.append([*key, *times, ratio, vanilla.percent(), ours.percent()])
    head = ["graph", "algorithm", "vanilla, s", "sampling of it", "ours, s", "sampling of it"]
    head += ["ratio", "accuracy, vanilla", "accuracy, ours"]
    return f"{source(record)}\n{table(head, rows, 7)}"


def _training(record: Record) -> str:
    rows = [[*key, *of.times(), of.percent()] for key, of in _means(record).items()]
    head = ["graph", "algorithm", "sampler", "seconds", "sampling", "accuracy"]
    return f"{source(record)}\n{table(head, rows, 3)}"


class _Means(NamedTuple):
    """Means over the runs of an algorithm by a sampler."""

    seconds: float
    sampling: float
    accuracy: float

    def times(self) -> list[str]:
        return [f"{self.seconds:.2f}", f"{100 * self.sampling:.0f} %"]

    def percent(self) -> str:
        return f"{100 * self.accuracy:.2f} %"


def _means(record: Record) -> dict[tuple[str, str, str], _Means]:
    found: dict[tuple[str, str, str], list[Record]] = {}
    for row in record["rows"]:
        found.setdefault((row["graph"], row["algorithm"], row["sampler"]), []).append(row)
    return {
        key: _Means(
            statistics.mean(run["seconds"] for run in runs),
            statistics.mean(run["sampling"] for run in runs),
            statistics.mean(run["accuracy"][-1] for run in runs),
        )
        for key, runs in found.items()
    }
