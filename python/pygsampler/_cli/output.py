"""Output of commands: lines with a label, tables, bars of characters, one document of JSON.

Everything goes to stdout and has colours only on a terminal; where it is none, lines are as long
as they are.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

if TYPE_CHECKING:
    from rich.console import Console

# The width of lines in a file or a pipe, where nothing is to be wrapped.
_ENDLESS = 10_000
_BAR_WIDTH = 40


def console(*, err: bool = False) -> Console:
    """Returns where text for people goes. It takes no markup: paths may have brackets."""
    from rich.console import Console

    made = Console(stderr=err, markup=False, emoji=False, highlight=False, soft_wrap=True)
    if not made.is_terminal:
        made.width = _ENDLESS
    return made


def write_json(document: Any) -> None:
    """The one document of a command with ``--json``."""
    click.echo(json.dumps(document, indent=2, allow_nan=False))


def title(out: Console, text: str) -> None:
    """The head of a part."""
    out.print(text, style="bold")


def facts(out: Console, pairs: Iterable[tuple[str, str]], *, width: int = 0) -> None:
    """Lines of a label and a text, below each other; no label continues the line above."""
    from rich.text import Text

    lines = list(pairs)
    width = max([width, *(len(label) for label, _ in lines)])
    for label, text in lines:
        line = Text.assemble("  ", (f"{label:{width}}", "dim"), f"  {text}")
        line.rstrip()
        out.print(line)


def table(
    out: Console, head: Sequence[str], table_rows: Iterable[Sequence[str]], *, text_columns: int
) -> None:
    """A table whose first ``text_columns`` columns are words and whose others are numbers."""
    from rich import box
    from rich.table import Table

    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for place, name in enumerate(head):
        side: Literal["left", "right"] = "left" if place < text_columns else "right"
        made.add_column(name if place else f"  {name}", justify=side, no_wrap=True)
    for first, *others in table_rows:
        made.add_row(f"  {first}", *others)
    out.print(made)


def bars(out: Console, labelled_values: Sequence[tuple[str, float, str]]) -> None:
    """Bars of characters: label, value, and what is written behind the bar."""
    from rich.text import Text

    most = max((value for _, value, _ in labelled_values), default=0)
    labels = max((len(label) for label, _, _ in labelled_values), default=0)
    for label, value, text in labelled_values:
        length = round(_BAR_WIDTH * value / most) if most else 0
        # A bar of any value but 0 is visible.
        length = max(length, 1) if value else 0
        stroke = ("█" if out.encoding.startswith("utf") else "#") * length
        out.print(
            Text.assemble("  ", (f"{label:>{labels}}", "dim"), " ", (stroke, "cyan"), f" {text}")
        )


def count(number: float) -> str:
    """A number of things: ``"1,234,567"``."""
    return f"{number:,.0f}"


def counts(label: str, count_by_type: int | Mapping[str, int]) -> list[tuple[str, str]]:
    """Facts of a number of things, or of the number of each type."""
    if not isinstance(count_by_type, Mapping):
        return [(label, count(count_by_type))]
    lines = [f"{count(number)} {name}" for name, number in count_by_type.items()]
    return [(label if place == 0 else "", line) for place, line in enumerate(lines)]


def rate(number: float) -> str:
    """A number a second: ``"3.4 M"``."""
    for unit, step in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= step:
            return f"{number / step:.1f} {unit}"
    return f"{number:.0f}"


@contextmanager
def log_to_stderr(text: Callable[[str], str] = str) -> Iterator[None]:
    """Writes on stderr, for a while, what is logged, as ``text`` makes it."""

    class StderrHandler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            click.echo(f"Note: {text(record.getMessage())}", err=True)

    logger, handler = logging.getLogger("pygsampler"), StderrHandler()
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def written_graph(target: Path) -> dict[str, Any]:
    """Returns the counts and the arrays of a graph file that a command has written."""
    from pygsampler._cli.options import open_graph
    from pygsampler._graph.named_arrays import sections

    found: dict[str, Any] = {"file": str(target), "bytes": target.stat().st_size}
    with open_graph(str(target)) as graph:
        if not graph.is_homogeneous:
            arrays = [
                f"{':'.join(kind)}.{name}"
                for kind in graph.edge_types
                for name in graph.edata[kind]
            ]
            arrays += [f"{kind}.{name}" for kind in graph.node_types for name in graph.ndata[kind]]
            nodes: Any = dict(graph.num_nodes)
            edges: Any = {":".join(kind): count for kind, count in graph.num_edges.items()}
        else:
            arrays = [*graph.file_arrays, *sections(graph.edata, graph.ndata)]
            nodes, edges = graph.num_nodes, graph.num_edges
        found.update(num_nodes=nodes, num_edges=edges, dtype=graph.dtype, arrays=sorted(arrays))
    return found


def show_written(graph_facts: dict[str, Any], as_json: bool) -> None:
    """Prints what ``written_graph`` returns, and the ``seconds`` that it took, as text or JSON."""
    if as_json:
        write_json(graph_facts)
        return
    from pygsampler._cli.doctor.report import size

    pairs = [
        *counts("nodes", graph_facts["num_nodes"]),
        *counts("edges", graph_facts["num_edges"]),
        ("ids", graph_facts["dtype"]),
        ("arrays", ", ".join(graph_facts["arrays"])),
        ("size", size(graph_facts["bytes"])),
        ("time", f"{graph_facts['seconds']:.1f} s"),
    ]
    out = console()
    title(out, graph_facts["file"])
    facts(out, [(label, text) for label, text in pairs if text])
