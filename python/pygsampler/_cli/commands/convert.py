"""``python -m pygsampler convert``."""

from __future__ import annotations

import re
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from pygsampler._cli import named_datasets, options

if TYPE_CHECKING:
    from pygsampler._cli.progress import Progress

FORMATS = ("snap", "csv", "tsv", "parquet", "arrow", "npz", "mtx")
QUANTIZED = ("float16", "bfloat16", "float8_e4m3", "int8", "int4")


def _edge_types(
    ctx: click.Context, param: click.Parameter, value: tuple[str, ...]
) -> list[tuple[str, str, str]]:
    found: list[tuple[str, str, str]] = []
    for text in value:
        names = [name.strip() for name in text.split(",")]
        if len(names) != 3 or not all(names):
            raise click.BadParameter(f"expected a type like user,buys,item, got {text!r}")
        found.append((names[0], names[1], names[2]))
    return found


@click.command(short_help="Write a list of edges as a graph file.")
@click.argument("sources", metavar="IN...", nargs=-1, required=True)
@click.argument("target", metavar="OUT", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    help="The format of IN; by default its suffix decides.",
)
@click.option("--src", metavar="COLUMN", help="The column of sources: a name, or a number from 0.")
@click.option("--dst", metavar="COLUMN", help="The column of destinations.")
@click.option(
    "--num-nodes",
    type=click.IntRange(0),
    help="The number of nodes, if nodes after the largest id have no edges.",
)
@click.option("--undirected", is_flag=True, help="Add the reverse of each edge.")
@click.option(
    "--renumber/--no-renumber",
    default=None,
    help="Number the nodes that occur from 0 and keep their ids as the array node_ids; by "
    "default if ids of the format snap have gaps and --num-nodes is absent.",
)
@click.option(
    "--dtype",
    type=click.Choice(["int32", "int64"]),
    help="The dtype of ids; by default the dtype of the columns.",
)
@click.option(
    "--edge-data",
    metavar="COLUMN",
    multiple=True,
    help="A column to store as an array; may be repeated. RELATION:COLUMN names one relation's.",
)
@click.option(
    "--features",
    metavar="NAME=FILE",
    multiple=True,
    help="A NumPy file (.npy) with a row for each node, to store as the array NAME; may be "
    "repeated. pygsampler.Features.open(OUT, NAME) reads it.",
)
@click.option(
    "--quantize",
    type=click.Choice(QUANTIZED),
    help="Store features in fewer bits, also the features of a data set.",
)
@click.option(
    "--types",
    callback=_edge_types,
    metavar="TYPE,RELATION,TYPE",
    multiple=True,
    help="The edge type of IN, such as user,buys,item: one for each IN, or one for all.",
)
@click.option("--relation", metavar="COLUMN", help="The column with the relation of each edge.")
@click.option("--src-type", metavar="COLUMN", help="The column with the source type of each edge.")
@click.option(
    "--dst-type", metavar="COLUMN", help="The column with the destination type of each edge."
)
@click.option(
    "--one-kind",
    is_flag=True,
    help="Number both columns as one node type, even if they are user and item.",
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
    sources: tuple[str, ...],
    target: Path,
    format_: str | None,
    src: str | None,
    dst: str | None,
    num_nodes: int | None,
    undirected: bool,
    renumber: bool | None,
    dtype: str | None,
    edge_data: tuple[str, ...],
    features: tuple[str, ...],
    quantize: str | None,
    types: list[tuple[str, str, str]],
    relation: str | None,
    src_type: str | None,
    dst_type: str | None,
    one_kind: bool,
    root: Path,
    as_json: bool,
) -> None:
    """Write the edges of IN as a graph file, which opens at once whatever its size.

    IN is a list of edges (SNAP's text, CSV, TSV, Parquet, Arrow IPC, MatrixMarket; text may be
    compressed with gzip), a sparse matrix of SciPy (npz), "debian", the data set that comes with
    the package, or the name of one of OGB's, such as "ogbn-arxiv". Several IN, a folder of files
    and a pattern in quotes are one list; with --types each IN may be the edges of another type, and
    with --relation, --src-type and --dst-type columns name the types. Columns other than the two
    ends of an edge, such as weights, are skipped but for those of --edge-data. OUT is written as a
    whole or not at all: an error or Ctrl-C leaves the old file. It replaces a graph file of that
    name, and no other file.
    """
    from pygsampler._cli import output
    from pygsampler._cli.progress import Progress

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
        "one_kind": one_kind or None,
    }
    columns_of_types = {"relation": relation, "src_type": src_type, "dst_type": dst_type}
    of_types = {name: _column(text) for name, text in columns_of_types.items() if text is not None}
    typed = _source_of_types(sources, types, of_types)
    source: Any = sources[0] if len(sources) == 1 else list(sources)
    known = len(sources) == 1 and named_datasets.is_dataset_name(sources[0])
    _check_target(target, () if known else sources)
    tables = _features_of(features, quantize, known, typed is not None)
    with Progress("converting", "B") as progress:
        if known:
            _refuse({**given, "types": types or None, "features": features or None, **of_types})
            named_datasets.save(sources[0], root, target, progress, quantize)
        elif typed is not None:
            _convert_types(typed, target, {**given, **of_types}, progress)
        elif tables:
            _convert_with_features(source, target, given, progress, tables, quantize)
        else:
            _convert(source, target, given, progress)
    seconds = time.perf_counter() - start
    found = {"source": source, **output.written_graph(target), "seconds": seconds}
    if not _total(found["num_edges"]):
        click.echo(f"Note: {', '.join(sources)} has no edges", err=True)
    output.show_written(found, as_json)


def _column(text: str | None) -> str | int | None:
    return int(text) if text is not None and text.isdecimal() else text


def _features_of(
    arguments: tuple[str, ...], quantize: str | None, is_data_set: bool, has_types: bool
) -> dict[str, Path]:
    """The files of features by their names."""
    if quantize is not None and not arguments and not is_data_set:
        raise click.UsageError("--quantize: expected --features, whose rows it is for")
    if arguments and has_types:
        raise click.UsageError("--features: expected none for a heterogeneous graph")
    found = {}
    for text in arguments:
        name, mark, file = text.partition("=")
        path = Path(file)
        if not name or not mark or path.suffix != ".npy" or not path.is_file():
            raise click.UsageError(
                f"--features: expected NAME=FILE with a file that is there and ends with .npy, "
                f"got {text!r}"
            )
        found[name] = path
    return found


def _convert_with_features(
    source: Any,
    target: Path,
    read_options: dict[str, Any],
    progress: Progress,
    tables: dict[str, Path],
    quantize: str | None,
) -> None:
    """Writes a graph first, which says how many rows there are to be, then it with features."""
    import numpy as np

    from pygsampler import Features

    with TemporaryDirectory(dir=target.parent, prefix=f".{target.stem}.") as folder:
        graph_file = Path(folder) / "graph.pgs"
        _convert(source, graph_file, read_options, progress)
        arrays: dict[str, Any] = {}
        with options.open_graph(str(graph_file)) as graph:
            for name, path in tables.items():
                features = Features.from_tensor(np.load(path, mmap_mode="r", allow_pickle=False))
                if len(features) != graph.num_nodes:
                    raise click.UsageError(
                        f"--features {name}={path}: expected a row for each of {graph.num_nodes} "
                        f"nodes, got {len(features)}; --num-nodes makes a graph of as many"
                    )
                if quantize is not None:
                    features = features._quantize_in_file(quantize, Path(folder), True)
                arrays[name] = features
            graph.save(target, arrays={**graph.file_arrays, **arrays}, progress=progress)


def _source_of_types(
    sources: tuple[str, ...], types: list[tuple[str, str, str]], columns: dict[str, Any]
) -> Any:
    """The source of ``read``; None for a graph without types."""
    if not types:
        if not columns:
            return None
        for name in ("relation", "src_type", "dst_type"):
            if name not in columns:
                missing = f"--{name.replace('_', '-')}"
                raise click.UsageError(
                    f"{missing}: expected a column, as for the other options, got none"
                )
        return sources[0] if len(sources) == 1 else list(sources)
    if columns:
        raise click.UsageError("--relation: expected none with --types, which names the types")
    if len(types) == 1:
        return {types[0]: list(sources)}
    if len(types) != len(sources):
        raise click.UsageError(
            f"--types: expected one, or one of each of {len(sources)} files, got {len(types)}"
        )
    by_type: dict[tuple[str, str, str], list[str]] = {}
    for kind, source in zip(types, sources, strict=True):
        by_type.setdefault(kind, []).append(source)
    return by_type


def _convert_types(
    source: Any, target: Path, read_options: dict[str, Any], progress: Progress
) -> None:
    from pygsampler.datasets import read

    chosen = {name: value for name, value in read_options.items() if value is not None}
    for name in ("num_nodes", "undirected", "one_kind"):
        if name in chosen:
            option = f"--{name.replace('_', '-')}"
            raise click.UsageError(f"{option}: expected none for a heterogeneous graph")
    if isinstance(source, dict):
        source = {kind: each[0] if len(each) == 1 else each for kind, each in source.items()}
        chosen["edge_data"] = {
            kind: _of_relation(kind[1], source, chosen.get("edge_data", {})) for kind in source
        }
    from pygsampler._cli import output

    try:
        with output.log_to_stderr(_by_options):
            read(source, **chosen, progress=progress).save(target)
    except ValueError as error:
        raise ValueError(_by_options(str(error))) from error


def _of_relation(relation: str, kinds: Any, columns: dict[str, Any]) -> dict[str, Any]:
    """The columns of a relation: those without one, and those of ``RELATION:COLUMN``."""
    known = {kind[1] for kind in kinds}
    found: dict[str, Any] = {}
    for name, column in columns.items():
        of, mark, rest = name.partition(":")
        if not mark or of not in known:
            found[name] = column
        elif of == relation:
            found[rest] = _column(rest)
    return found


def _total(counts: Any) -> int:
    return sum(counts.values()) if isinstance(counts, dict) else int(counts)


def _convert(source: Any, target: Path, read_options: dict[str, Any], progress: Progress) -> None:
    from pygsampler._cli import output
    from pygsampler.datasets import convert

    chosen = {name: value for name, value in read_options.items() if value is not None}
    try:
        with output.log_to_stderr(_by_options):
            convert(source, target, **chosen, progress=progress)
    except ValueError as error:
        raise ValueError(_by_options(str(error))) from error


def _by_options(text: str) -> str:
    """A text about arguments of Python's, with the options in their place."""

    def option(match: re.Match[str]) -> str:
        name, value = match.groups()
        flag = f"--{name.replace('_', '-')}"
        return flag if value in (None, "True") else f"{flag} {value.strip(chr(34))}"

    text = re.sub(r'types=\("(.*?)", "to", "(.*?)"\) makes', r"--types \1,RELATION,\2 makes", text)
    return re.sub(r'\b(src|dst|format|renumber|one_kind)=(True|"\w+")?', option, text)


def _check_target(target: Path, sources: tuple[str, ...]) -> None:
    """Checks the target also for graphs of data sets, which are saved without ``convert``."""
    from pygsampler.datasets._read_options import require_file, require_target
    from pygsampler.datasets._sources import files_of

    paths = [path for source in sources for path in files_of(source).paths]
    for path in paths:
        require_file(path)
    others: list[str | None] = [*paths] or [None]
    try:
        for other in others:
            require_target(str(target), other)
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def _refuse(read_options: dict[str, Any]) -> None:
    for name, value in read_options.items():
        if value is not None:
            raise click.UsageError(
                f"--{name.replace('_', '-')}: expected a file of edges, got a data set"
            )
