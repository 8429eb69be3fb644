"""Walks and samples by steps on a GPU."""

from __future__ import annotations

from figure_tables.record import Record, figure, source, table, unmeasured


@figure("gpu/transit.json", unmeasured("python -m benchmarks.gpu transit --out FOLDER"))
def gpu_transit(record: Record) -> str:
    """Walks by transits: 10**9 steps a second of each way, and the paper's share of its index."""
    rows = []
    for row in record["rows"]:
        cells = [row["shape"], row["walk"], f"{row['walks']:,}", f"{row['a_vertex']:.2g}"]
        cells += [f"{row['gsteps'][way]:.2f}" for way in ("csr", "sample", "transit")]
        cells += [f"{row['ratio_csr']:.2f}x", f"{row['ratio']:.2f}x"]
        share = row["index_share"]
        rows.append([*cells, "" if share is None else f"{100 * share:.0f} %"])
    head = ["graph", "walk", "walks", "walks a node", "by sample, csr", "by sample", "by transit"]
    head += ["transit to csr", "transit to sample", "index, of transit"]
    return f"{source(record)}\n{table(head, rows, 8)}"


@figure("gpu/khop.json", unmeasured("python -m benchmarks.gpu khop --out FOLDER"))
def gpu_khop(record: Record) -> str:
    """Samples by steps: 10**9 nodes a second of each way; other batches in microseconds."""
    rows = []
    for row in record["rows"]:
        cells = [row["shape"], row["kind"], f"{row['samples']:,}"]
        cells += [f"{row['us'][way]['median']:,.0f}" if way in row["us"] else "" for way in _WAYS]
        rates = row.get("gvertices", {})
        cells += [f"{rates[way]:.2f}" if way in rates else "" for way in _WAYS]
        share = row.get("index_share")
        cells += [f"{row['ratio']:.2f}x" if "ratio" in row else ""]
        rows.append([*cells, "" if share is None else f"{100 * share:.0f} %"])
    head = ["graph", "what", "samples", "by sample, us", "by transit, us"]
    head += ["G nodes/s by sample", "by transit", "transit to sample", "index, of transit"]
    return f"{source(record)}\n{table(head, rows, 7)}"


_WAYS = ("sample", "transit")


_NEXTDOOR = "Not measured yet: `python -m benchmarks.gpu nextdoor --out FOLDER`.\n"


@figure("gpu/nextdoor.json", _NEXTDOOR)
def gpu_nextdoor_devices(record: Record) -> str:
    """Figure 10: speedups of several GPUs over one, of sampling, and times with the collection."""
    rows = []
    for row in record["rows"]:
        if row["what"] == "devices":
            most = list(row["sampled_us"])[-1]
            times = [row[of][way]["median"] for of in _TIMES for way in ("1", most)]
            rows.append(
                [row["shape"], row["kind"], f"{row['samples']:,}", most]
                + [f"{us:,.0f}" for us in times]
                + [f"{row['speedup'][most]:.2f}x"]
            )
    head = ["graph", "what", "samples", "GPUs", "one, us", "all, us", "one, collected, us"]
    head += ["all, collected, us", "speedup"]
    return f"{source(record)}\n{table(head, rows, 7)}"


_TIMES = ("sampled_us", "collected_us")


@figure("gpu/nextdoor.json", _NEXTDOOR)
def gpu_nextdoor_ablation(record: Record) -> str:
    """Executions by transits with less and less of what they have: microseconds of a call."""
    rows = []
    for row in record["rows"]:
        if row["what"] == "ablation":
            times = [f"{us['median']:,.0f}" for us in row["us"].values()]
            rows.append([row["shape"], row["kind"], f"{row['samples']:,}", *times])
    head = ["graph", "what", "samples", "by sample, us", "by transit", "without shared memory"]
    return f"{source(record)}\n{table([*head, 'nor classes'], rows, 5)}"


@figure("gpu/nextdoor.json", _NEXTDOOR)
def gpu_nextdoor_outside(record: Record) -> str:
    """Section 8.4: rows read from the host, beside the least that copies of sub-graphs take."""
    rows = [
        [
            *(row["shape"], row["kind"], f"{row['samples']:,}"),
            f"{row['pinned_us']['median'] / 1e3:,.1f}",
            f"{row['copy_us'] / 1e3:,.1f}",
            f"{row['copied_us'] / 1e3:,.1f}",
            f"{row['ratio']['pinned']:.2f}x",
        ]
        for row in record["rows"]
        if row["what"] == "outside"
    ]
    head = ["graph", "what", "samples", "page-locked, ms", "a copy, ms", "copies, ms", "ratio"]
    return f"{source(record)}\n{table(head, rows, 5)}"


# The bare kernel that reads what a walk reads.
BARE = {"uniform": "packed", "csr": "two", "weighted": "alias", "ppr": "stopping"}


@figure("gpu/walks.json", unmeasured("python -m benchmarks.gpu walks --out FOLDER"))
def gpu_walks(record: Record) -> str:
    """Walks on a GPU: 10**9 steps a second of whole calls, and of bare kernels of such reads."""
    bare = {row["shape"]: row["bare"] for row in record["rows"] if row["walk"] == "bare"}
    rows = []
    for row in record["rows"]:
        if row["walk"] == "bare":
            continue
        name = row["walk"]
        like = BARE.get(name)
        cells = [row["shape"], name]
        if "gsteps" in row:
            cells += [f"{row['walks']:,}", f"{row['gsteps']:.1f}"]
            most = bare[row["shape"]].get(like, {}).get("gsteps")
            cells += [f"{most:.1f}", f"{row['gsteps'] / most:.0%}"] if most else ["", ""]
        else:
            cells += ["", "", "", ""]
        cells += [f"{row['engine_us']['median']:.0f}", f"{row['torch_us']['median']:.0f}"]
        rows.append(cells)
    head = ["graph", "walks of 80 steps", "how many", "G steps/s", "bare kernel", "of it"]
    head += ["1024 seeds, us", "as torch tensors, us"]
    return f"{source(record)}\n{table(head, rows, 6)}"


# Random reads of an H200, 10**9 a second: of tables that its L2 has no room for, and of others.
GATHERS, GATHERS_IN_L2, L2_BYTES = 38.0, 150.0, 50e6


# Graphs with fewer walks than nodes.
VERTICES = {"papers100m": 111_059_956}


# Bytes of the reads of a step, one after the other; whether the first is of the vertices' offsets,
# which are 4 bytes each; and bytes that are written.
STEPS = {
    "uniform": ((16,), False, 4),
    "with edges": ((16,), False, 8),
    "csr": ((8, 4), True, 4),
    "weighted": ((32,), False, 4),
    "weighted csr": ((8, 8, 4), True, 4),
}


@figure("gpu/walks.json", unmeasured("python -m benchmarks.gpu walks --out FOLDER"))
def gpu_walks_roofline(record: Record) -> str:
    """Returns the reads of a step, the steps that such reads allow, and the measured steps."""
    rows = []
    for row in record["rows"]:
        if row["walk"] not in STEPS:
            continue
        reads, offsets, written = STEPS[row["walk"]]
        vertices = VERTICES.get(row["shape"], row["walks"])
        near = int(offsets and 4 * vertices <= L2_BYTES)
        most = 1 / ((len(reads) - near) / GATHERS + near / GATHERS_IN_L2)
        cells = [row["shape"], row["walk"], " + ".join(map(str, reads)), f"{written}", f"{near}"]
        cells += [f"{most:.1f}", f"{row['gsteps']:.1f}", f"{row['gsteps'] / most:.0%}"]
        rows.append(cells)
    head = ["graph", "walk", "bytes read a step", "written", "reads in the L2", "bound, G steps/s"]
    return f"{source(record)}\n{table([*head, 'measured', 'of it'], rows, 6)}"
