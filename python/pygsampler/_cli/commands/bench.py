"""``python -m pygsampler bench``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pygsampler._cli import options
from pygsampler._cli.bench.libraries import LIBRARIES, MEASURES

if TYPE_CHECKING:
    from pygsampler._cli.bench.compare import ComparisonRow, Setting
    from pygsampler._cli.bench.csc import CscGraph
    from pygsampler._cli.bench.fields import Field
    from pygsampler._cli.bench.libraries import Absence
    from pygsampler._graph.graph import Graph

# So many are taken where the machine is fast and the time long; medians gain no more from others.
_MOST_ROUNDS = 50


def _measures(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(part.strip() for part in (value or "").split(",") if part.strip()))
    wrong = [name for name in names if name not in MEASURES]
    if wrong or (value is not None and not names):
        raise click.BadParameter(f"expected some of {','.join(MEASURES)}, got {value!r}")
    return names


@click.command(short_help="Time sampling of your graph, and compare with installed libraries.")
@click.argument("file", metavar="[FILE]", default="debian")
@options.fanouts("10,10")
@click.option("--batch-size", type=click.IntRange(1), default=1024, show_default=True)
@click.option(
    "--seconds",
    type=click.FloatRange(0),
    default=10.0,
    show_default=True,
    help="Time of each comparison, at least 3 rounds.",
)
@click.option(
    "--against",
    multiple=True,
    type=click.Choice(["all", *LIBRARIES]),
    help="Compare with this library; may be repeated. With all: in all measures, with all "
    "installed libraries.  [default: all installed ones, in sampling]",
)
@click.option(
    "--measure",
    callback=_measures,
    metavar="NAME,...",
    help=f"Some of {', '.join(MEASURES)}.  [default: sampling; with --against all: all three]",
)
@click.option(
    "--width",
    type=click.IntRange(1),
    default=100,
    show_default=True,
    help="Features per node for loader and step, random float32.",
)
@options.device
@options.picture("Draw milliseconds a batch with matplotlib")
@click.option("--markdown", is_flag=True, help="Print the table in Markdown, for pasting.")
@options.as_json
def command(
    file: str,
    fanouts: tuple[int, ...],
    batch_size: int,
    seconds: float,
    against: tuple[str, ...],
    measure: tuple[str, ...],
    width: int,
    device: str,
    plot: Path | None,
    markdown: bool,
    as_json: bool,
) -> None:
    """Time sampling of a graph file, or of the data set "debian", and compare with other libraries.

    Every sampler is checked edge by edge before the clock starts, and its edges are counted while
    it runs; a sampler that loses edges ends the run with exit code 1. All read the same arrays and
    take turns on the same seeds. "loader" is a batch of a library's own loader with features, which
    are compared with the table; "step" is a training step of GraphSAGE on a sampled batch,
    whose losses are compared.

    DGL, PyG (whose sampler needs pyg-lib or torch-sparse), torch-cluster, cuGraph (with --device
    cuda) and Kumo Engine take part if they are installed. They sample by different rules: each is
    compared with ours by its own rule, and the ratio is to the fastest other library of that rule.
    With --device cuda the GPU takes part in addition to the CPU.
    """
    from pygsampler._cli import output
    from pygsampler._cli.atomic_file import atomic_write
    from pygsampler._cli.bench import machine
    from pygsampler._cli.bench.compare import Setting
    from pygsampler._cli.group import CommandError

    options.check_picture(plot)
    if markdown and as_json:
        raise click.UsageError("--markdown: expected no --json with it")
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
        fields, absent, notes = _fields(device, against, measure)
        compared = _compare_all(csc, setting, fields, seconds, width, against, absent)
    record = {
        "file": file,
        "commit": machine.commit(),
        "hardware": machine.hardware(device),
        "versions": machine.versions(),
    }
    summary = machine.summary(record)
    if plot is not None:
        from pygsampler._cli.bench.report import draw

        with atomic_write(plot) as temporary:
            draw(compared, temporary, summary)
    if as_json:
        rows = [
            {"measure": field.measure, "frontier": field.frontier, **row.as_json()}
            for field, of_one in compared
            for row in of_one
        ]
        missing = [vars(each) for each in absent]
        output.write_json({**record, "absent": missing, "notes": notes, "rows": rows})
        return
    facts = [("machine", summary), ("checked", _CHECKED)]
    facts += [("absent", str(each)) for each in absent]
    facts += [("note", note) for note in notes]
    facts += [("plot", str(plot))] if plot is not None else []
    _show(compared, facts, markdown)


_CHECKED = "edges of whole batches, counts of all timed ones, rows of features, losses"


def _arrays(name: str, graph: Graph) -> CscGraph:
    """The graph as all contenders read it: where it lies, but for offsets of 32 bits."""
    import numpy as np

    from pygsampler._cli.bench.csc import CscGraph

    indptr = graph.indptr.numpy().astype(np.int64, copy=False)
    behind = graph.num_nodes + 1 - len(indptr)
    if behind:
        indptr = np.concatenate([indptr, np.full(behind, indptr[-1])])
    return CscGraph(name, indptr, graph.indices.numpy())


def _fields(
    device: str, against: Sequence[str] = (), measures: Sequence[str] = ()
) -> tuple[list[Field], list[Absence], list[str]]:
    """Returns who is compared with whom, who takes no part, and notes.

    The libraries in `against` take part, each of which must be installed, or by default, and with
    "all", all that are installed. Without DGL ours are compared with each other, unless only other
    libraries were named.
    """
    from pygsampler._cli.bench.contenders import OneBatch
    from pygsampler._cli.bench.fields import Field, fields
    from pygsampler._cli.bench.libraries import absences
    from pygsampler._cli.group import CommandError

    named = [] if "all" in against else list(dict.fromkeys(against))
    measures = measures or (MEASURES if "all" in against else ("sampling",))
    absent = [each for name in named or LIBRARIES for each in absences(name, measures, device)]
    for each in absent:
        if named and (each.remedy is not None or each.measures == tuple(measures)):
            text = each.reason if each.remedy is None else f"{each.reason}; {each.remedy}"
            who = f"--against {each.name}: expected {each.library} for"
            raise CommandError(f"{who} {' and '.join(each.measures)}, got none: {text}")
    notes: list[str] = []
    without_torch = [each.reason for each in absent if each.reason.startswith("PyTorch ")]
    if without_torch:
        if "sampling" not in measures:
            who = f"--measure {','.join(measures)}: expected PyTorch, got none"
            raise CommandError(f"{who}: {without_torch[0]}; pip install torch")
        devices = ["cpu"] if device == "cpu" else ["cpu", device]
        alone = Field("sampling", [OneBatch(device=where) for where in devices])
        return [alone], absent, notes
    result = []
    for measure in measures:
        gone = {each.name for each in absent if measure in each.measures}
        present = [name for name in named or LIBRARIES if name not in gone]
        result += fields(
            measure, present, device, include_ours=not named or device != "cpu", remarks=notes
        )
    return result, absent, notes


def _compare_all(
    csc: CscGraph,
    setting: Setting,
    fields: Sequence[Field],
    seconds: float,
    width: int,
    against: Sequence[str],
    absent: list[Absence],
) -> list[tuple[Field, list[ComparisonRow]]]:
    """Compares each field; a library that fails joins `absent`, unless it was named."""
    import warnings

    from pygsampler._cli.bench.check import CheckError
    from pygsampler._cli.bench.compare import ContenderError
    from pygsampler._cli.bench.libraries import Absence, first_line
    from pygsampler._cli.group import CommandError

    result: list[tuple[Field, list[ComparisonRow]]] = []
    rich = _with_features(csc, width) if {f.measure for f in fields} - {"sampling"} else csc
    for field in fields:
        while field.contenders:
            try:
                with warnings.catch_warnings():
                    # Warnings of other libraries are no part of the result.
                    warnings.simplefilter("ignore")
                    graph = csc if field.measure == "sampling" else rich
                    result.append((field, _compare(graph, setting, field, seconds)))
                break
            except CheckError as error:
                raise CommandError(f"refused: {error}") from error
            except ContenderError as error:
                if error.contender not in field.peers:
                    # Ours, or ours behind another library's interface: that is a mistake of ours.
                    raise error.error from error
                library = field.libraries[error.contender]
                if library in against:
                    raise CommandError(f"--against {library}: {field.measure}: {error}") from error
                (label,) = (each.label for each in field.contenders if each.name == error.contender)
                field.drop(error.contender)
                title = LIBRARIES[library].title
                reason = f"{label} fails with {first_line(error.error)}"
                absent.append(Absence(library, title, (field.measure,), reason, None))
    return result


def _with_features(csc: CscGraph, width: int) -> CscGraph:
    """The graph with random features, of which no two rows are equal."""
    import dataclasses

    import numpy as np

    numbers = np.random.default_rng(0).standard_normal((csc.num_nodes, width), np.float32)
    return dataclasses.replace(csc, features=numbers)


def _compare(csc: CscGraph, setting: Setting, field: Field, seconds: float) -> list[ComparisonRow]:
    import time

    from pygsampler._cli.progress import Progress

    run: Callable[..., list[ComparisonRow]]
    if field.measure == "step":
        from pygsampler._cli.bench.steps import compare_steps as run
    else:
        from pygsampler._cli.bench.compare import compare as run
    start = time.monotonic()
    whole = max(int(seconds), 1)
    with Progress(f"{field.measure}, {csc.name} {setting}", "s") as progress:
        return run(
            csc,
            setting,
            field.contenders,
            rounds=_MOST_ROUNDS,
            seconds=seconds,
            baseline=field.baselines,
            tick=lambda: progress(min(int(time.monotonic() - start), whole), whole),
        )


def _show(
    compared: Sequence[tuple[Field, Sequence[ComparisonRow]]],
    facts: list[tuple[str, str]],
    markdown: bool,
) -> None:
    from pygsampler._cli import output
    from pygsampler._cli.bench import report

    out = output.console()
    first = compared[0][1][0]
    disturbed = sum(rows[0].disturbed for _, rows in compared)
    if disturbed:
        rounds = sum(rows[0].rounds for _, rows in compared)
        text = f"other processes were busy in {disturbed} of {rounds} rounds"
        facts = [*facts, ("note", text)]
    if markdown:
        out.print(f"{first.graph}, {first.setting}\n")
        out.print(report.markdown(compared))
        out.print("\n" + "\n".join(f"- {label}: {text}" for label, text in facts))
        return
    output.title(out, f"{first.graph} {first.setting}")
    output.table(out, report.HEAD, report.cells(compared), text_columns=3)
    out.print()
    for field, rows in compared:
        output.title(out, f"{report.title(field)}: milliseconds a batch")
        bars = [(row.label, row.milliseconds.median, report.milliseconds(row)) for row in rows]
        output.bars(out, bars)
        out.print()
    output.facts(out, facts)
