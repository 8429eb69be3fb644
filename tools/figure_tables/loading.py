"""Tables of the costs of loaders besides samples: PyG's batches, feature rows, the pipeline."""

from __future__ import annotations

from typing import Any

from figure_tables.record import (
    NONE_OF_GPU,
    Record,
    figure,
    milliseconds,
    source,
    table,
    unmeasured,
)


@figure("pyg_layers-cuda.json", unmeasured("python -m benchmarks.pyg_layers --device cuda"))
def pyg_layers(record: Record) -> str:
    """Steps of PyG's layers on batches of its loader, as ours makes them, on a GPU."""
    ways = ("coo", "edge_index", "features=")
    rows = [
        [row["setting"], row["what"], *(f"{row[f'{way}, ms']:.2f}" for way in ways)]
        for row in record["rows"]
    ]
    head = ["batch x fanouts", "model", '`"coo"`', '`"edge_index"`', '`"coo"`, `features=`']
    return f"Milliseconds a step. {source(record)}\n{table(head, rows, 3)}"


@figure("pyg_share.json", unmeasured("python -m benchmarks.pyg_breakdown", "figures"))
def pyg_share(record: Record) -> str:
    """Returns the parts of a batch of PyG's loader, by the number of batches sampled ahead."""
    parts: dict[tuple[str, Any], dict[str, Record]] = {}
    for row in record["rows"]:
        parts.setdefault((row["graph"], row["prefetch"]), {})[row["part"]] = row
    rows = []
    for (graph, prefetch), of in parts.items():
        way = "default" if prefetch is None else f"`prefetch={prefetch}`"
        cells = [milliseconds(of[part]) if part in of else "" for part in PARTS]
        rows.append([graph, way, *cells, f"{of['sampler']['share']['median']:.0%}"])
    head = ["graph", "", "sampling", "conversion", "waiting for both", "features", "building"]
    text = table([*head, "a batch", "sampler's share"], rows, 7)
    return f"Milliseconds a batch. {source(record)}\n{text}"


PARTS = "sampling", "conversion", "waiting", "features", "building", "whole"


@figure(
    "pipeline-cuda-cache.json",
    unmeasured("python -m benchmarks.pipeline --device cuda --cache 0.2"),
)
def pipeline_cache(record: Record) -> str:
    """Steps whose features are on the host, some of them cached, and what the link allows."""
    rows = []
    for row in record["rows"]:
        part = "none" if "cached" not in row else f"{row['cached']:.0%}"
        if row.get("features") == "device":
            part = "all, on the GPU"
        hits = "" if row["hit_rate"] is None else f"{row['hit_rate']:.1%}"
        cells = [part, hits, f"{row['training, ms']:.2f}", f"{row['both, ms']:.2f}"]
        cells += [f"{row['waiting_share']:.1%}", f"{row['gathering_share']:.1%}"]
        if "link, ms" in row:
            cells += [f"{row['link, MB a step']:.1f}", f"{row['link, ms']:.2f}"]
            cells.append(f"{row['link / both']:.1%}")
        rows.append([*cells, *[""] * (9 - len(cells))])
    head = ["rows cached", "hits", "training alone, ms", "both, ms", "waits for samples"]
    head += ["reads rows", "over the link, MB", "the link alone, ms", "the link alone / both"]
    return f"{source(record)}\n{table(head, rows, 8)}"


@figure(
    "pipeline-cuda-share.json",
    unmeasured("python -m benchmarks.pipeline --device cuda --share 1 0.5 0.25"),
)
def pipeline_shares(record: Record) -> str:
    """Steps of an eager loop by `sampler_share`."""
    keys = ("data, ms", "training, ms", "both, ms")
    rows = []
    for row in record["rows"]:
        share = "none" if row["sampler_share"] is None else f"{row['sampler_share']:g}"
        rows.append([share, *(f"{row[key]:.3f}" for key in keys), f"{row['waiting_share']:.1%}"])
    head = ["`gpu_share`", "loading alone, ms", "training alone, ms", "both, ms"]
    return f"{source(record)}\n{table([*head, 'waits for samples'], rows, 5)}"


@figure("gpu/cache.json", NONE_OF_GPU)
def gpu_cache(record: Record) -> str:
    """Rows of which a part is cached, by the share of hits."""
    rows = [
        [f"{row['row_bytes']} bytes", f"{row['hits']:.0%}"]
        + [f"{row['us'][way]['median']:.0f}" for way in ("link", "static", "lru", "device")]
        for row in record["rows"]
        if "hits" in row
    ]
    head = ["rows of", "hits", "no cache", "a cache", "`lru`", "all on the device"]
    return (
        f"Microseconds to read 200,000 rows out of page-locked memory. {source(record)}\n"
        f"{table(head, rows, 5)}"
    )


@figure("contexts.json", unmeasured("python -m benchmarks.contexts", "figures"))
def contexts(record: Record) -> str:
    """Contexts a second, by the sampler and by the same rule in NumPy."""
    settings: dict[str, dict[str, Record]] = {}
    for row in record["rows"]:
        settings.setdefault(row["setting"], {})[row["way"]] = row
    rows = []
    for name, ways in settings.items():
        numpy = max(row["contexts a second"] for way, row in ways.items() if "NumPy" in way)
        ours = [row for way, row in ways.items() if "NumPy" not in way]
        cells = [f"{numpy:,.0f}"]
        for row in ours:
            cells += [f"{row['contexts a second']:,.0f}", f"{row['times NumPy']:.0f}"]
        rows.append([name, f"{ours[0]['rows']:.0f}", *cells])
    head = ["budget", "rows a context", "NumPy", "one thread", "times NumPy"]
    text = table([*head, "two threads", "times NumPy"], rows, 6)
    return f"Contexts a second. {source(record)}\n{text}"
