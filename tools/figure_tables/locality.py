"""GNNSampler's experiments: samplers by locality and their vanilla forms."""

from __future__ import annotations

from figure_tables.record import Record, figure, source, table, unmeasured

NONE = unmeasured("python -m benchmarks.research.locality --out FOLDER", "such figures")
RATIOS = ("sample_ratio", "gather_ratio", "epoch_ratio")


def having(part: str) -> dict[str, object]:
    """Returns the arguments of ``figure`` for a part of the record."""
    return {"none": NONE, "of": lambda record: part in record}


def share(value: float | None) -> str:
    """Returns a part as a percentage, or nothing."""
    return "" if value is None else f"{value:.1%}"


@figure("locality.json", **having("graphs"))
def locality_graphs(record: Record) -> str:
    """Returns the paper's Table 1 for the graphs here, and the seconds of their scores."""
    rows = [
        [
            row["graph"],
            *(f"{row[what]:,}" for what in ("nodes", "edges")),
            f"{row['average_neighbors']:.1f}",
            str(row["most_neighbors_of_90_percent"]),
            share(row["reusing_rate"]),
            *(f"{row[what]:.2f}" for what in ("published_s", "repaired_s")),
        ]
        for row in record["graphs"]
    ]
    head = ["graph", "nodes", "edges", "ANN", "MNN", "NRR", "published scores, s", "repaired, s"]
    return table(head, rows, 7)


@figure("locality.json", **having("neighbors"))
def locality(record: Record) -> str:
    """Returns ways to draw neighbors: times by uniform ones', accuracy, pages and triads."""
    rows = [
        [
            row["graph"],
            row["way"],
            *(f"{row[what]:.2f}" for what in RATIOS),
            share(row["accuracy"]),
            *(f"{row[what]:,.0f}" for what in ("rows", "pages", "closed_triads")),
            f"{row['clustering']:.3f}",
        ]
        for row in record["neighbors"]
    ]
    head = ["graph", "neighbors", "sample", "read", "epoch", "accuracy"]
    head += ["rows", "pages", "closed triads", "clustering"]
    return f"{table(head, rows, 8)}\n{source(record)}"


@figure("locality.json", **having("training"))
def locality_training(record: Record) -> str:
    """Returns the paper's models: times by the vanilla form's, and accuracy."""
    rows = [
        [
            row["graph"],
            row["model"],
            row["way"],
            share(row["marked"]),
            share(row["sample_s"] / row["epoch_s"]),
            *(f"{row[what]:.2f}" for what in RATIOS),
            f"{row['training_s']:.2f}",
            share(row["accuracy"]),
        ]
        for row in record["training"]
    ]
    head = ["graph", "model", "way", "marked nodes", "sampling", "sample", "read", "epoch"]
    head += [f"{record['epochs']} epochs, s", "accuracy"]
    return table(head, rows, 7)


@figure("locality.json", **having("sweep"))
def locality_sweep(record: Record) -> str:
    """Returns epochs and accuracy by n and s, the vanilla form first."""
    rows = [
        [
            row["graph"],
            row["model"],
            "vanilla" if row["n"] is None else f"{row['n']} / {row['s']}",
            share(row["marked"]),
            f"{row['epoch_ratio']:.2f}",
            share(row["accuracy"]),
        ]
        for row in record["sweep"]
    ]
    head = ["graph", "model", "n / s", "marked nodes", "epoch", "accuracy"]
    return table(head, rows, 3)


@figure("locality.json", **having("subgraphs"))
def locality_subgraphs(record: Record) -> str:
    """Returns coefficients and triads by the number of subgraphs, a line for each way."""
    lines: dict[tuple[str, str], list[str]] = {}
    counts = list(dict.fromkeys(row["subgraphs"] for row in record["subgraphs"]))
    for what, digits in (("clustering", ".4f"), ("closed_triads", ",.0f")):
        for row in record["subgraphs"]:
            key = row["graph"], row["way"]
            lines.setdefault(key, [*key]).append(f"{row[what]:{digits}}")
    head = ["graph", "way", *(f"{what}, {n}" for what in ("clustering", "triads") for n in counts)]
    return table(head, list(lines.values()), 2 * len(counts))


@figure("locality.json", **having("cache"))
def locality_cache(record: Record) -> str:
    """Returns the misses by way, or the reason why the machine counted none."""
    rows = [
        [row["graph"], way, *(f"{count:,}" for count in counts.values())]
        for row in record["cache"]
        if "reason" not in row
        for way, counts in row.items()
        if way != "graph"
    ]
    reasons = dict.fromkeys(row["reason"] for row in record["cache"] if "reason" in row)
    text = "".join(f"Not counted on this machine: `{reason}`.\n" for reason in reasons)
    if rows:
        counted = next(row["vanilla"] for row in record["cache"] if "reason" not in row)
        text += table(["graph", "way", *counted], rows, len(counted))
    return text
