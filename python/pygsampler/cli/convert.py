"""``python -m pygsampler convert``."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pygsampler.cli import collection, options

if TYPE_CHECKING:
    from pygsampler.cli.progress import Progress

FORMATS = ("snap", "csv", "tsv", "parquet", "arrow", "npz", "mtx")


@click.command(short_help="Write a list of edges as a graph file.")
@click.argument("source", metavar="IN")
@click.argument("target", metavar="OUT", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    help="Of IN; by its suffix when not given.",
)
@click.option("--src", metavar="COLUMN", help="Where the sources are: a name, or a number from 0.")
@click.option("--dst", metavar="COLUMN", help="Where the destinations are.")
@click.option(
    "--num-nodes", type=click.IntRange(0), help="Where vertices past the largest id have no edges."
)
@click.option("--undirected", is_flag=True, help="Add each edge backwards, too.")
@click.option(
    "--renumber/--no-renumber",
    default=None,
    help="Number the vertices that occur from 0 and keep their ids as the array node_ids; by "
    "default where ids of the format snap have gaps and --num-nodes is not given.",
)
@click.option(
    "--dtype", type=click.Choice(["int32", "int64"]), help="Of ids; by the columns when not given."
)
@click.option(
    "--edge-data", metavar="COLUMN", multiple=True, help="To keep, as an array; may be repeated."
)
@click.option(
    "--root",
    type=click.Path(file_okay=False, path_type=Path),
    default="dataset",
    show_default=True,
    help="OGB's folder of data sets.",
)
@options.as_json
def command(
    source: str,
    target: Path,
    format_: str | None,
    src: str | None,
    dst: str | None,
    num_nodes: int | None,
    undirected: bool,
    renumber: bool | None,
    dtype: str | None,
    edge_data: tuple[str, ...],
    root: Path,
    as_json: bool,
) -> None:
    """Write the edges of IN as a graph file, which opens at once whatever its size.

    IN is a list of edges (SNAP's text, CSV, TSV, Parquet, Arrow IPC, MatrixMarket; text may be
    compressed with gzip), a sparse matrix of SciPy (npz), "debian", the data set that comes with
    the package, or the name of one of OGB's, such as "ogbn-arxiv". Columns beside the two ends of
    an edge, such as weights, are skipped but for those of --edge-data. OUT is there as a whole or
    not at all: an error or Ctrl-C leaves what was there before. It replaces a graph file of that
    name, and no other file.
    """
    from pygsampler._graph.data import sections
    from pygsampler.cli import output
    from pygsampler.cli.progress import Progress
    from pygsampler.graph import Graph

    start = time.perf_counter()
    columns = {"src": _column(src), "dst": _column(dst)}
    given = {
        "format": format_,
        **columns,
        "num_nodes": num_nodes,
        "undirected": undirected or None,
        "renumber": renumber,
        "dtype": dtype,
        "edge_data": {name: _column(name) for name in edge_data} or None,
    }
    _check_target(target, None if collection.is_known(source) else source)
    with Progress("converting", "B") as progress:
        if collection.is_known(source):
            _refuse(given)
            collection.save(source, root, target, progress)
        else:
            _convert(source, target, given, progress)
    seconds = time.perf_counter() - start
    with Graph.open(target) as graph:
        found: dict[str, Any] = {
            "source": source,
            "file": str(target),
            "bytes": target.stat().st_size,
            "num_nodes": graph.num_nodes,
            "num_edges": graph.num_edges,
            "dtype": graph.dtype,
            "arrays": sorted([*graph.arrays, *sections(graph.edata, graph.ndata)]),
            "seconds": seconds,
        }
    if not found["num_edges"]:
        click.echo(f"Note: {source} has no edges", err=True)
    if as_json:
        output.write_json(found)
        return
    from pygsampler.doctor.report import size

    pairs = [
        ("vertices", output.count(found["num_nodes"])),
        ("edges", output.count(found["num_edges"])),
        ("ids", found["dtype"]),
        ("arrays", ", ".join(found["arrays"])),
        ("size", size(found["bytes"])),
        ("time", f"{seconds:.1f} s"),
    ]
    out = output.console()
    output.title(out, found["file"])
    output.facts(out, [(label, text) for label, text in pairs if text])


def _column(text: str | None) -> str | int | None:
    return int(text) if text is not None and text.isdecimal() else text


def _convert(source: str, target: Path, given: dict[str, Any], progress: Progress) -> None:
    from pygsampler.datasets import convert

    chosen = {name: value for name, value in given.items() if value is not None}
    try:
        with _notes():
            convert(source, target, **chosen, progress=progress)
    except ValueError as error:
        raise ValueError(_by_options(str(error))) from error


@contextmanager
def _notes() -> Iterator[None]:
    """What is logged meanwhile is said on stderr."""

    class Notes(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            click.echo(f"Note: {_by_options(record.getMessage())}", err=True)

    logger, handler = logging.getLogger("pygsampler"), Notes()
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def _by_options(text: str) -> str:
    """A text about arguments of Python's, with the options in their place."""

    def option(found: re.Match[str]) -> str:
        name, value = found.groups()
        return f"--{name}" if value in (None, "True") else f"--{name} {value.strip(chr(34))}"

    return re.sub(r'\b(src|dst|format|renumber)=(True|"\w+")?', option, text)


def _check_target(target: Path, source: str | None) -> None:
    """Here, and not by ``convert`` alone: graphs of data sets are saved without it."""
    from pygsampler.datasets._plan import require_file, require_target

    if source is not None:
        require_file(source)
    try:
        require_target(str(target), source)
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def _refuse(given: dict[str, Any]) -> None:
    for name, value in given.items():
        if value is not None:
            raise click.UsageError(
                f"--{name.replace('_', '-')}: expected a file of edges, got a data set"
            )
