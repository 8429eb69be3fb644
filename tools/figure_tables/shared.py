"""Several GPUs that share a graph."""

from __future__ import annotations

from figure_tables.record import Record, figure, source, table, unmeasured


def several(record: Record) -> bool:
    """True if the record has two or more GPUs."""
    gpus: int = record["rows"][0]["gpus"]
    return gpus > 1


PEERS = "gpu/peers.json", unmeasured("python -m benchmarks.gpu peers --out FOLDER")


@figure(*PEERS, of=several)
def gpu_peers(record: Record) -> str:
    """A graph in the memory of several GPUs beside a copy on each: batches and walks."""
    rows = []
    for row in record["rows"]:
        if "remote" not in row:
            continue
        fanouts = ",".join(map(str, reversed(row["fanouts"])))
        cells = [f"{row['shape']} ({fanouts})", row["ways"], f"{row['graph_gb']:.2f}"]
        cells += [f"{row['batches_per_second']:,.0f}", f"{row['times_one']:.2f}"]
        cells += [f"{row['of_replicated']:.2f}", f"{row['remote']:.2f}", f"{row['greads']:.1f}"]
        walked = f"{row['gsteps']:.1f}"
        # If hardly any read leaves the GPU, the bound of remote reads says nothing.
        cells += [walked, *([f"{row['walk_bound']:.1f}"] if row["remote"] > 0.17 else [""])]
        rows.append(cells)
    head = ["graph", "", "GB a GPU", "batches/s in all", "times one GPU", "of copies"]
    head += ["reads of other GPUs", "G edges/s a GPU", "walks, G steps/s a GPU", "bound"]
    return f"{source(record)}\n{table(head, rows, 8)}"


@figure(*PEERS, of=several)
def gpu_peers_rows(record: Record) -> str:
    """Rows of features of a GPU's own part and of another one's."""
    rows = [
        [row["shape"], row["ways"].removeprefix("features, "), f"{row['feature_gb']:,.0f}"]
        for row in record["rows"]
        if "feature_gb" in row
    ]
    return table(["table", "rows of 512 bytes", "GB/s a GPU"], rows, 1)


@figure(*PEERS, of=several)
def gpu_peers_threads(record: Record) -> str:
    """One process with a thread for each GPU: batches a second, and times one GPU."""
    rows = []
    for row in record["rows"]:
        if row["ways"] != "threads":
            continue
        fanouts = ",".join(map(str, reversed(row["fanouts"])))
        for way, times in row["times_one"].items():
            rates = (row["batches_per_second"][f"{way}, {which}"] for which in ("one", "each"))
            rows.append([f"({fanouts})", way, *(f"{rate:,}" for rate in rates), f"{times:.2f}"])
    head = [record["rows"][0]["shape"], "", "one thread, batches/s", "one a GPU", "times one"]
    return f"{source(record)}\n{table(head, rows, 3)}"


@figure(*PEERS, of=several)
def gpu_peers_epoch(record: Record) -> str:
    """Epochs of GraphSAGE: seconds."""
    names = ("sampling_s", "loader_s", "training_s")
    rows = [
        [f"{row['gpus']}", f"{row['steps']:,}", *(f"{row[name]:.2f}" for name in names)]
        for row in record["rows"]
        if row["ways"] == "epoch"
    ]
    head = ["GPUs", "batches a GPU", "samples, s", "and rows of features, s", "and training, s"]
    return f"{source(record)}\n{table(head, rows, 5)}"
