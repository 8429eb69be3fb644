"""Samplers on the CPU: beside DGL's, by size and threads, and caches."""

from __future__ import annotations

from figure_tables.record import Record, figure, milliseconds, source, table, unmeasured

BASELINE = "dgl"


OURS = {
    "sample": "`PGSampler.sample`",
    "loader": "`pygsampler.torch.DataLoader`",
    "adapter": "`pygsampler.dgl.PGSampler`",
}


@figure("sampling.json")
def ratios(record: Record) -> str:
    """A line for each graph and setting: DGL's time, and how many times as fast ours are."""
    cases: dict[tuple[str, str], dict[str, Record]] = {}
    for row in record["rows"]:
        cases.setdefault((row["graph"], row["setting"]), {})[row["contender"]] = row
    rows = [
        [*case, milliseconds(found[BASELINE])]
        + [f"{found[name]['ratio']['median']:.1f}x" for name in OURS]
        for case, found in cases.items()
    ]
    head = ["graph", "batch x fanouts", "DGL, ms a batch", *OURS.values()]
    return f"{table(head, rows, 4)}\n{source(record)}"


@figure("sampling.json")
def all_rows(record: Record) -> str:
    rows = []
    for row in record["rows"]:
        spread, ratio = row["milliseconds"], row["ratio"]
        rows.append(
            [
                row["graph"],
                row["setting"],
                OURS.get(row["contender"], row["label"]),
                f"{spread['median']:.2f} ({spread['q25']:.2f} to {spread['q75']:.2f})",
                f"{row['edges_per_batch']:,.0f}",
                f"{row['edges_per_second'] / 1e6:.0f}",
                f"{ratio['median']:.2f} ({ratio['q25']:.2f} to {ratio['q75']:.2f})",
                f"{row['rounds'] - row['disturbed']} of {row['rounds']}",
            ]
        )
    head = ["graph", "batch x fanouts", "sampler", "ms a batch", "edges a batch"]
    head += ["M edges/s", "x DGL", "undisturbed rounds"]
    return f"{source(record)}\n{table(head, rows, 5)}"


def side_by_side(found: list[Record], head: str) -> str:
    """Milliseconds, a line for each setting and a column for each sampler."""
    labels = list(dict.fromkeys(row["label"] for row in found))
    lines: dict[str, list[str]] = {}
    for row in found:
        begin = [row["setting"], f"{row['edges_per_batch']:,.0f}"]
        lines.setdefault(row["setting"], begin).append(milliseconds(row))
    columns = [head, "edges a batch", *(f"{label}, ms" for label in labels)]
    return table(columns, list(lines.values()), len(labels) + 1)


@figure("scaling.json")
def growth(record: Record) -> str:
    exponents = {row["label"]: record["growth"][row["contender"]] for row in record["sizes"]}
    return (
        f"{source(record)}\n{side_by_side(record['sizes'], record['sizes'][0]['graph'])}\n"
        + "Fitted k: "
        + "; ".join(f"{label} {k:.2f}" for label, k in exponents.items())
        + ".\n"
    )


@figure("scaling.json")
def threads(record: Record) -> str:
    return side_by_side(record["threads"], record["threads"][0]["graph"])


@figure("scaling.json")
def hub(record: Record) -> str:
    rows = [
        [
            row["label"],
            row["seeds"],
            f"{row['edges']:,.0f}",
            f"{1e3 * row['milliseconds']['median']:.1f}",
            f"{row['to_ordinary']['median']:.2f}",
        ]
        for row in record["hub"]
    ]
    head = ["sampler", "seeds", "edges a batch", "us a batch", "x without the hub"]
    text = table(head, rows, 3)
    return f"The hub has {record['hub_degree']:,} neighbors; fanouts are (10,10).\n\n{text}"


@figure("cache.json")
def cache_hits(record: Record) -> str:
    """Hit rates of caches of some sizes, by policy."""
    policies = ["random", "degree", "presampled", "exact", "best set", "lru", "belady"]
    rows = [
        [
            f"{row['graph']}, {row['batch']}x({','.join(map(str, row['fanouts']))})",
            f"{row['size_percent']} %",
            *(f"{100 * row['hit_rate'][policy]:.1f}" for policy in policies),
        ]
        for row in record["rows"]
        if row["size_percent"] in (1, 5, 20, 40)
    ]
    head = ["graph, batches", "rows in the cache", *policies]
    return f"{table(head, rows, len(policies) + 1)}\n{source(record)}"


@figure("small_calls.json", unmeasured("python -m benchmarks.small_calls --out FOLDER", "figures"))
def small_calls(record: Record) -> str:
    """Microseconds of calls on a small graph, beside the same calls of PyG and DGL."""
    rows = [
        [
            row["case"],
            f"{row['ours_us']:.0f}",
            f"{row['peer']} {row['theirs_us']:.0f}",
            f"{row['ratio']:.2f}",
            f"{row['quartiles'][0]:.2f} to {row['quartiles'][1]:.2f}",
        ]
        for row in record["rows"]
    ]
    head = ["call", "ours, us", "theirs, us", "ours to theirs", "quartiles"]
    return f"{table(head, rows, 4)}\n{source(record)}"
