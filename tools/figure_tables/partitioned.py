"""Graphs in parts, and the copies of those that GPUs share."""

from __future__ import annotations

from partition_model import modelled

from figure_tables.record import Record, figure, source, table, unmeasured


@figure("parts.json", unmeasured("python -m benchmarks.partitioned", "figures"))
def parts(record: Record) -> str:
    rows = []
    for row in record["rows"]:
        count = row["processes"]
        cells = [f"{row[way]['median']:.1f}" for way in ("alone", "ahead", "round")]
        total = max(count, 1) * 1e3 / row["ahead"]["median"]
        name = "the whole graph" if not count else "1 part" if count == 1 else f"{count} parts"
        rows.append([name, *cells, f"{total:.0f}"])
    head = ["", "ms a batch, one at a time", "four on their way", "ms a round", "batches/s, all"]
    edges = sum(hop["edges"] for hop in record["hops"])
    about = f"`{record['graph']}`, 1024 x (15, 10, 5), {edges:,} edges a batch. "
    return table(head, rows, 4) + "\n" + about + source(record)


@figure("parts.json", unmeasured("python -m benchmarks.partitioned", "figures"))
def parts_model(record: Record) -> str:
    rows = [
        [
            f"{row['machines']:.0f}",
            f"{row['bytes'] / 1e6:.1f}",
            f"{row['messages']:.0f}",
            f"{1e3 * row['seconds']:.1f}",
        ]
        for row in modelled(record)
    ]
    return table(["machines", "MB sent", "messages", "ms a batch"], rows, 4)


@figure(
    "copies.json",
    "No figures for this version yet; `python -m benchmarks.replication` counts them.\n",
)
def copies(record: Record) -> str:
    """Returns the part of a shared graph's reads that its copies answer."""
    rows = []
    for row in record["rows"]:
        for name, of in ((row["graph"], "pages"), ("the hottest rows of as many bytes", "rows")):
            rows.append([name, *(f"{found[of]:.2f}" for found in row["answered"])])
    shares = [f"{found['share']:.0%}" for found in record["rows"][0]["answered"]]
    shares[0] += " copied"
    return f"{source(record)}\n{table(['', *shares], rows, 4)}"
