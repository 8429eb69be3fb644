"""``python -m pygsampler partition``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from pygsampler._cli import options


@click.command(short_help="Split a graph file into parts for several processes.")
@click.argument("file", metavar="FILE")
@click.option(
    "--parts", "num_parts", type=click.IntRange(1, 1 << 16), required=True, help="Number of parts."
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="The folder of the parts; FILE with the suffix .parts by default.",
)
@click.option(
    "--reorder",
    "by",
    type=click.Choice(["rcm", "metis"]),
    help="Renumber the nodes first, so that parts have fewer edges between them.",
)
@click.option("--out-edges", is_flag=True, help="Write the out-edges, too, which walks follow.")
@click.option(
    "--times",
    multiple=True,
    metavar="NAME",
    help="A node array with the times of edges; may be repeated.",
)
@click.option(
    "--node-data",
    multiple=True,
    metavar="NAME",
    help="An array with a row for each node, to write to the parts; may be repeated.",
)
@click.option("--replace", is_flag=True, help="Replace existing parts.")
@options.as_json
def command(
    file: str,
    num_parts: int,
    out: Path | None,
    by: str | None,
    out_edges: bool,
    times: tuple[str, ...],
    node_data: tuple[str, ...],
    replace: bool,
    as_json: bool,
) -> None:
    """Split a graph file into parts of contiguous nodes with about as many edges each.

    FILE is an output of convert or Graph.save, or "debian". FOLDER has a graph file for each part,
    and partition.json; pygsampler.distributed.open gives each process of torchrun its part. Nodes
    keep their ids, unless --reorder numbers them anew: the array node_ids has the old ids. Arrays
    of nodes and of edges are written too; further arrays of convert are written if --node-data
    names them.
    """
    from pygsampler._cli import output
    from pygsampler._cli.progress import Progress
    from pygsampler.distributed.partition import partition
    from pygsampler.distributed.reorder import reorder

    folder = Path(file).with_suffix(".parts") if out is None else out
    if folder.exists() and not replace:
        raise click.UsageError(
            f"{folder}: expected a folder that is not there; --replace is for it"
        )
    start = time.perf_counter()
    opened: Any = options.open_graph(file)
    if not opened.is_homogeneous:
        if by is not None:
            raise click.UsageError("--reorder: expected none for a heterogeneous graph")
        if node_data:
            raise click.UsageError(
                "--node-data: expected none for a heterogeneous graph, "
                "all of whose arrays are written"
            )
        more = {"out_edges": out_edges, "times": times, "replace": replace}
        with opened as types:
            _types(types, file, folder, num_parts, more, as_json, start)
        return
    with opened as graph, Progress("partitioning", "edges") as progress:
        given = _with_arrays(graph, node_data)
        given = given if by is None else reorder(given, by, parts=num_parts)
        options_: dict[str, Any] = {"replace": replace, "progress": progress}
        made = partition(given, folder, num_parts, out_edges=out_edges, times=times, **options_)
        shares = [_inside(made.shard(rank)) for rank in range(num_parts)]
    edges = [
        end - first for first, end in zip(made.edge_bounds, made.edge_bounds[1:], strict=False)
    ]
    found: dict[str, Any] = {
        "file": file,
        "folder": str(folder),
        "parts": num_parts,
        "num_nodes": made.num_nodes,
        "num_edges": made.num_edges,
        "bounds": list(made.bounds),
        "edges": edges,
        "edges_inside": sum(shares),
        "out_edges": out_edges,
        "bytes": sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()),
        "seconds": time.perf_counter() - start,
    }
    if as_json:
        output.write_json(found)
        return
    from pygsampler._cli.doctor.report import size

    out_console = output.console()
    output.title(out_console, str(folder))
    mean = made.num_edges / num_parts
    most = f", the largest {max(edges) / mean:.2f} times the mean" if made.num_edges else ""
    inside = f"{sum(shares) / made.num_edges:.1%}" if made.num_edges else "none"
    facts = [
        ("nodes", output.count(made.num_nodes)),
        ("edges", output.count(made.num_edges)),
        ("parts", f"{num_parts}{most}"),
        ("edges within a part", inside),
        ("size", size(found["bytes"])),
        ("time", f"{found['seconds']:.1f} s"),
    ]
    output.facts(out_console, facts)


def _types(
    graph: Any,
    file: str,
    folder: Path,
    num_parts: int,
    more: dict[str, Any],
    as_json: bool,
    start: float,
) -> None:
    """Partitions a heterogeneous graph, with the same options."""
    from pygsampler._cli import output
    from pygsampler._cli.progress import Progress
    from pygsampler._graph.schema import relation_name
    from pygsampler.distributed.partition import partition

    with Progress("partitioning", "edges") as progress:
        made: Any = partition(graph, folder, num_parts, progress=progress, **more)
    edges = {relation_name(kind): count for kind, count in made.num_edges.items()}
    found = {
        "file": file,
        "folder": str(folder),
        "parts": num_parts,
        "num_nodes": dict(made.num_nodes),
        "num_edges": edges,
        "bytes": sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()),
        "seconds": time.perf_counter() - start,
    }
    if as_json:
        output.write_json(found)
        return
    shown = output.console()
    output.title(shown, str(folder))
    facts = [(name, f"{output.count(count)} nodes") for name, count in made.num_nodes.items()]
    facts += [(name, f"{output.count(count)} edges") for name, count in edges.items()]
    output.facts(shown, [*facts, ("parts", str(num_parts)), ("time", f"{found['seconds']:.1f} s")])


def _with_arrays(graph: Any, names: tuple[str, ...]) -> Any:
    """Returns the graph with further arrays of its file as arrays of its nodes."""
    for name in names:
        if name not in graph.file_arrays:
            known = ", ".join(sorted(graph.file_arrays)) or "none"
            raise click.UsageError(
                f"--node-data: expected an array of the file, one of {known}, got {name}"
            )
    return graph.with_data(node_data={name: graph.file_arrays[name] for name in names})


def _inside(shard: Any) -> int:
    """Counts the edges of a part that lead from its own nodes, read a piece at a time."""
    inside, indices, piece = 0, shard.graph.indices, 1 << 22
    for at in range(0, len(indices), piece):
        values = indices[at : at + piece].numpy()
        inside += int(((values >= shard.first) & (values < shard.last)).sum())
    return inside
