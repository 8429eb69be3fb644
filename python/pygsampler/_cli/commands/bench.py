"""``python -m pygsampler bench``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pygsampler._cli import options

if TYPE_CHECKING:
    from pygsampler._cli.bench.compare import ComparisonRow, Setting
    from pygsampler._cli.bench.csc import CscGraph
    from pygsampler._graph.graph import Graph

# So many are taken where the machine is fast and the time long; medians gain no more from others.
_MOST_ROUNDS = 50
# Names of --against: the modules that a peer needs, with their names, and how they get there.
_PEERS = {
    "dgl": ({"torch": "PyTorch", "dgl": "DGL"}, "pip install torch dgl"),
    "pyg": (
        {"torch": "PyTorch", "torch_geometric": "PyG", "pyg_lib": "pyg-lib"},
        "pip install torch torch_geometric, and pyg-lib from https://data.pyg.org/whl",
    ),
    "kumo": ({"torch": "PyTorch", "diskgraph": "Kumo Engine"}, "pip install kumo-engine"),
}


@click.command(short_help="Time sampling of your graph, and compare with installed libraries.")
@click.argument("file", metavar="[FILE]", default="debian")
@options.fanouts("10,10")
@click.option("--batch-size", type=click.IntRange(1), default=1024, show_default=True)
@click.option(
    "--seconds",
    type=click.FloatRange(0),
    default=10.0,
    show_default=True,
    help="Of timing, for each comparison; there are at least 3 rounds.",
)
@click.option(
    "--against",
    multiple=True,
    type=click.Choice(list(_PEERS)),
    help="Compare with this one; may be repeated.  [default: all that are installed]",
)
@options.device
@options.picture("Draw edges a second with matplotlib")
@options.as_json
def command(
    file: str,
    fanouts: tuple[int, ...],
    batch_size: int,
    seconds: float,
    against: tuple[str, ...],
    device: str,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Time sampling of a graph file, or of the data set "debian", and compare with other samplers.

    Every sampler is checked edge by edge before the clock starts, and its edges are counted while
    it runs; a sampler that loses edges ends the run with exit code 1. All read the same arrays and
    take turns on the same seeds. DGL's NeighborSampler takes part if DGL is installed, PyG's if
    pyg-lib is; since a hop of PyG expands only new nodes, our sampler is compared with it in that
    mode. Kumo Engine takes part if kumo-engine is installed: it samples a separate subgraph for
    each seed, from tables, so the graph's edges are a table in a temporary folder, and our sampler
    is compared with it on that table, too. With --device cuda the GPU takes part in addition to the
    CPU and DGL.
    """
    from pygsampler._cli import output
    from pygsampler._cli.atomic_file import atomic_write
    from pygsampler._cli.bench import machine
    from pygsampler._cli.bench.check import CheckError
    from pygsampler._cli.bench.compare import Setting
    from pygsampler._cli.group import CommandError

    options.check_picture(plot)
    with options.open_graph(file) as graph:
        if not graph.is_homogeneous:
            raise CommandError(
                f"{file}: expected a homogeneous graph, got a heterogeneous one; "
                "Graph.open(path).to_homogeneous().save(other) writes one without"
            )
        csc = _arrays(Path(file).name, graph)
        setting = Setting(min(batch_size, csc.num_nodes), fanouts)
        if not setting.batch_size:
            raise CommandError(f"{file}: expected a graph with nodes, got none")
        fields, notes = _contenders(device, against)
        try:
            compared = [(field[0], _compare(csc, setting, field, seconds)) for field in fields]
        except CheckError as error:
            raise CommandError(f"refused: {error}") from error
    rows = [row for _, found in compared for row in found]
    record = {"hardware": machine.hardware(), "versions": machine.versions()}
    if plot is not None:
        from pygsampler._cli.bench.report import plot as draw

        with atomic_write(plot) as temporary:
            draw(rows, temporary, machine.summary(record))
    if as_json:
        found = [
            {**row.as_json(), "baseline": base.name, "frontier": base.frontier}
            for base, of_one in compared
            for row in of_one
        ]
        output.write_json({"file": file, **record, "notes": notes, "rows": found})
        return
    _show(rows, machine.summary(record), notes, plot)


def _arrays(name: str, graph: Graph) -> CscGraph:
    """The graph as all contenders read it: where it lies, but for offsets of 32 bits."""
    import numpy as np

    from pygsampler._cli.bench.csc import CscGraph

    indptr = graph.indptr.numpy().astype(np.int64, copy=False)
    behind = graph.num_nodes + 1 - len(indptr)
    if behind:
        indptr = np.concatenate([indptr, np.full(behind, indptr[-1])])
    return CscGraph(name, indptr, graph.indices.numpy())


def _contenders(device: str, against: Sequence[str] = ()) -> tuple[list[list[Any]], list[str]]:
    """Returns the samplers to compare, the baseline first, and notes about missing ones.

    The peers in `against` take part, each of which must be installed, or by default all installed
    peers. Without DGL our samplers are compared with each other, unless only other peers were
    named.
    """
    from pygsampler._cli.bench.contenders import Loader, OneBatch
    from pygsampler._cli.group import CommandError

    missing = {peer: package for peer in _PEERS if (package := _missing(peer))}
    for peer in against:
        if peer in missing:
            text = f"expected {missing[peer]}, which is not installed; {_PEERS[peer][1]}"
            raise CommandError(f"--against {peer}: {text}")
    devices = ["cpu"] if device == "cpu" else ["cpu", device]
    if "PyTorch" in missing.values():
        notes = ["torch is not installed: without the loader, DGL, PyG and Kumo Engine"]
        return [[OneBatch(device=where) for where in devices]], notes
    from pygsampler._cli.bench import frameworks

    notes = [] if against else [f"{package} is not installed" for package in missing.values()]
    peers = against or tuple(peer for peer in _PEERS if peer not in missing)
    ours = [form(device=where) for where in devices for form in (OneBatch, Loader)]
    fields: list[list[Any]] = []
    if "dgl" in peers:
        fields.append([frameworks.DglSampler(), *ours, frameworks.DglAdapter()])
        if device != "cpu":
            if frameworks.dgl_runs_on(device):
                fields[0].insert(1, frameworks.DglSampler(device))
            else:
                notes.append("this DGL was built without CUDA: it samples on the CPU alone")
    elif not against or device != "cpu":
        fields.append(ours)
    if "pyg" in peers:
        fields.append([frameworks.PygSampler(), OneBatch(frontier="new"), frameworks.PygAdapter()])
    if "kumo" in peers:
        from pygsampler._cli.bench.kumo import KumoSampler, TableSampler

        fields.append([KumoSampler(), TableSampler(), OneBatch(frontier="trees")])
    return fields, notes


def _missing(peer: str) -> str | None:
    """The name of the first package that `peer` needs and that is not installed."""
    from importlib.util import find_spec

    for module, package in _PEERS[peer][0].items():
        if module == "pyg_lib":
            from pygsampler._cli.bench import frameworks

            # Installed for another torch it does not load.
            found = frameworks.pyg_lib()
        else:
            found = find_spec(module) is not None
        if not found:
            return package
    return None


def _compare(
    csc: CscGraph, setting: Setting, field: list[Any], seconds: float
) -> list[ComparisonRow]:
    import time

    from pygsampler._cli.bench.compare import compare
    from pygsampler._cli.progress import Progress

    start = time.monotonic()
    whole = max(int(seconds), 1)
    with Progress(f"{csc.name} {setting}", "s") as progress:
        return compare(
            csc,
            setting,
            field,
            rounds=_MOST_ROUNDS,
            seconds=seconds,
            baseline=field[0].name,
            tick=lambda: progress(min(int(time.monotonic() - start), whole), whole),
        )


def _show(
    comparisons: list[ComparisonRow], summary: str, remarks: list[str], plot: Path | None
) -> None:
    from pygsampler._cli import output

    out = output.console()
    first = comparisons[0]
    output.title(out, f"{first.graph} {first.setting}")
    head = ("sampler", "ms a batch", "quartiles", "edges a batch", "M edges/s", "ratio")
    body = []
    for row in comparisons:
        spread = row.milliseconds
        body.append(
            [
                row.label,
                f"{spread.median:.3f}",
                f"{spread.q25:.3f} - {spread.q75:.3f}",
                output.count(row.edges_per_batch),
                f"{row.edges_per_second / 1e6:.1f}",
                "" if row.ratio is None else f"{row.ratio.median:.2f}x",
            ]
        )
    output.table(out, head, body, text_columns=1)
    out.print()
    output.title(out, "million edges a second")
    output.bars(
        out, [(r.label, r.edges_per_second, f"{r.edges_per_second / 1e6:.1f}") for r in comparisons]
    )
    out.print()
    facts = [("machine", summary), ("checked", "edges of whole batches, counts of all timed ones")]
    facts += [("note", note) for note in remarks]
    if first.disturbed:
        text = f"other processes were busy in {first.disturbed} of {first.rounds} rounds"
        facts.append(("note", text))
    if plot is not None:
        facts.append(("plot", str(plot)))
    output.facts(out, facts)
