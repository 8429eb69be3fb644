"""``python -m pygsampler tables``."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import click

from pygsampler._cli import options


@click.command(short_help="Write tables with keys as a graph file, or show their schema.")
@click.argument(
    "folder", metavar="FOLDER", type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option(
    "--schema",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="A YAML or JSON file with keys, links and times; guessed by default.",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="OUT.pgs",
    help="The graph file to write; without it the schema is shown.",
)
@click.option(
    "--unmatched",
    type=click.Choice(["error", "drop"]),
    default="error",
    show_default=True,
    help="Foreign keys that match no row: an error, or dropped edges.",
)
@options.as_json
def command(
    folder: Path, schema: Path | None, out: Path | None, unmatched: str, as_json: bool
) -> None:
    """Write tables with keys as a heterogeneous graph file with a node for each row.

    Each file of FOLDER is a table (Parquet, Arrow or CSV) with the file's name, without the suffix;
    so is each folder in it, whose files are one table. Without --out the schema is printed as YAML,
    for editing: keys, links to other tables, and times. The times are the first column of dates
    without gaps; a column with gaps is shown only if a table has no other, with a comment, since a
    graph needs a time for each row. The tables may be larger than memory: half of the free memory
    is used, and a temporary folder next to OUT. OUT is written as a whole or not at all: an error
    or Ctrl-C leaves the old file. Graph.from_tables does the same in Python.
    """
    from pygsampler._cli import output
    from pygsampler._cli.progress import Progress
    from pygsampler._graph import table_schema, table_sources
    from pygsampler._graph.graph import Graph

    tables: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        if path.name.startswith((".", "_")):
            continue
        name = path.name if path.is_dir() else path.stem
        if name in tables:
            raise click.UsageError(
                f"{folder}: expected tables of different names, got {tables[name].name} and "
                f"{path.name}; rename one, or put both into a folder"
            )
        tables[name] = path
    if not tables:
        raise click.UsageError(f"{folder}: expected files of tables, found none")
    if out is None:
        sources = table_sources.open_tables(tables)
        found = table_schema.schema_document(sources, schema)
        notes = {
            name: f"{missing} of {total} rows have none, which --out refuses: drop them, name "
            "another column, or delete this line"
            for name, (missing, total) in table_schema.times_with_gaps(sources, found).items()
        }
        if as_json:
            # JSON has no comments.
            for name, note in notes.items():
                click.echo(f"Note: {name}: time {found[name]['time']}: {note}", err=True)
        click.echo(json.dumps(found, indent=2) if as_json else _yaml(found, notes))
        return
    start = time.perf_counter()
    try:
        with output.log_to_stderr(), Progress("reading tables", "rows") as progress:
            Graph.from_tables(
                tables, schema, unmatched=unmatched, out=out, progress=progress
            ).close()
    except ValueError as error:
        raise ValueError(str(error).replace('unmatched="drop"', "--unmatched drop")) from error
    seconds = time.perf_counter() - start
    written: dict[str, Any] = output.written_graph(out)
    output.show_written({"source": str(folder), **written, "seconds": seconds}, as_json)


def _yaml(schema: dict[str, Any], time_notes: dict[str, str]) -> str:
    """A schema as YAML, whose texts are quoted where a plain one would be read otherwise.

    Notes on the times of tables are comments.
    """
    lines = []
    for table, fields in schema.items():
        lines.append(f"{_text(table)}:" if fields else f"{_text(table)}: {{}}")
        for name, value in fields.items():
            if isinstance(value, dict):
                lines.append(f"  {name}:")
                lines += [f"    {_text(column)}: {_text(to)}" for column, to in value.items()]
            elif isinstance(value, list):
                lines.append(f"  {name}: [{', '.join(map(_text, value))}]")
            else:
                lines.append(f"  {name}: {_text(value)}")
                if name == "time" and table in time_notes:
                    lines[-1] += f"  # {time_notes[table]}"
    return "\n".join(lines)


def _text(value: str) -> str:
    plain = value.isidentifier() and value.lower() not in _WORDS
    # PyYAML reads escaped pairs of surrogates as two characters.
    return value if plain else json.dumps(value, ensure_ascii=False)


# The words that YAML reads as something else than text.
_WORDS = ("true", "false", "yes", "no", "on", "off", "null", "y", "n")
