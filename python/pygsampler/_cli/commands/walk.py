"""``python -m pygsampler walk``."""

from __future__ import annotations

import re
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from pygsampler._cli import options

# The options that walks of a heterogeneous graph do not have.
_WITHOUT_TYPES = ("stop", "restart", "count_jumps", "p", "q", "edge_types", "layout")


def _type_numbers(value: str | None) -> list[int] | None:
    """A metapath of a graph whose edges have numbers as their types."""
    if value is None:
        return None
    if not re.fullmatch(r"\s*\d{1,9}(\s*,\s*\d{1,9})*\s*", value):
        raise click.BadParameter(
            f"expected types like 0,1,0, got {value!r}", param_hint="--metapath"
        )
    return [int(part) for part in value.split(",")]


def _walks_of_types(
    graph: Any, metapath: str | None, walked: dict[str, Any], edge_ids: bool
) -> Any:
    """Returns the sampler of walks in a heterogeneous graph."""
    from pygsampler.walks.metapath_walk import MetaPathWalk

    context = click.get_current_context()

    def is_on_command_line(name: str) -> bool:
        return context.get_parameter_source(name) is ParameterSource.COMMANDLINE

    for name in _WITHOUT_TYPES:
        if is_on_command_line(name):
            option = f"-{name}" if len(name) == 1 else f"--{name.replace('_', '-')}"
            raise click.UsageError(f"{option}: expected none for a heterogeneous graph")
    if metapath is None:
        raise click.BadParameter(
            f"expected relations of {', '.join(':'.join(kind) for kind in graph.edge_types)}, "
            "got none",
            param_hint="--metapath",
        )
    kinds = [options.relation_of(graph, text.strip()) for text in metapath.split(",")]
    walked["metapath"] = [":".join(kind) for kind in kinds]
    walked["length"] = walked["length"] if is_on_command_line("length") else len(kinds)
    names = ("length", "prob", "direction", "walks_per_seed", "seed")
    return MetaPathWalk(kinds, edge_ids=edge_ids, **{name: walked[name] for name in names})


@click.command(short_help="Walk from nodes at random; write the walks.")
@click.argument("file", metavar="FILE")
@click.option(
    "--seeds",
    default="all",
    show_default=True,
    metavar="FILE|LIST|all",
    help="A file of ids or names of nodes, ids like 1,2,3, names, or all nodes.",
)
@options.node_type
@click.option(
    "--length",
    type=click.IntRange(0, 1 << 20),
    default=80,
    show_default=True,
    help="Steps per walk.",
)
@click.option(
    "--walks", type=click.IntRange(1), default=1, show_default=True, help="Walks per seed."
)
@click.option("--prob", metavar="NAME", help="The edge array of weights to draw by.")
@click.option(
    "--stop", type=float, default=0.0, show_default=True, help="Probability to end before a step."
)
@click.option(
    "--restart",
    type=float,
    default=0.0,
    show_default=True,
    help="Probability to return to the seed.",
)
@click.option("--count-jumps", is_flag=True, help="Count a return as a step.")
@click.option("-p", type=float, default=1.0, show_default=True, help="node2vec's return parameter.")
@click.option("-q", type=float, default=1.0, show_default=True, help="node2vec's in-out parameter.")
@click.option(
    "--metapath", metavar="TYPE,...", help="The edge types to follow: numbers, or relations."
)
@click.option("--edge-types", metavar="NAME", help="The edge array of edge types.")
@click.option(
    "--direction",
    type=click.Choice(["out", "in"]),
    default="out",
    show_default=True,
    help="Follow edges forward (out) or backward (in).",
)
@click.option(
    "--shuffle", is_flag=True, help="Take the seeds in an order drawn by --seed and --epoch."
)
@click.option(
    "--batch-size",
    type=click.IntRange(1),
    default=1024,
    show_default=True,
    help="Seeds per batch.",
)
@click.option("--epoch", type=click.IntRange(0, 2**24 - 1), default=0, show_default=True)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**64 - 1),
    default=0,
    show_default=True,
    help="The same seed gives the same walks.",
)
@options.device
@click.option(
    "--layout",
    type=click.Choice(["auto", "packed", "csr"]),
    default="auto",
    show_default=True,
    help="The layout of the graph in the GPU's memory.",
)
@click.option("--edge-ids", is_flag=True, help="Write the edges of the steps, too.")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    metavar="OUT.parquet|.arrow|.npy|.npz|.txt",
    help="Write the walks; without it their steps are only counted.",
)
@options.as_json
def command(
    file: str,
    seeds: str,
    node_type: str | None,
    length: int,
    walks: int,
    prob: str | None,
    stop: float,
    restart: float,
    count_jumps: bool,
    p: float,
    q: float,
    metapath: str | None,
    edge_types: str | None,
    direction: str,
    shuffle: bool,
    batch_size: int,
    epoch: int,
    seed: int,
    device: str,
    layout: str,
    edge_ids: bool,
    out: Path | None,
    as_json: bool,
) -> None:
    """Walk at random from seeds of a graph file, and write the walks.

    FILE is an output of convert, or "debian". A row of OUT is a walk, in original ids: a list
    without padding in Parquet and Arrow, numbers with blanks between them in a line of text, and in
    NumPy's formats a row that -1 fills up. It is written batch by batch, as a whole or not at all.
    Walks are equal to walks of RandomWalk with the same seed and epoch, or for a heterogeneous
    graph, whose --metapath has relations, of MetaPathWalk.
    """
    from pygsampler._cli import output, walk_files
    from pygsampler._cli.labels import Labels
    from pygsampler._cli.progress import Progress
    from pygsampler._cli.seeds import seeds_of
    from pygsampler.walks.random_walk import RandomWalk

    if out is not None:
        options.check_output(out, walk_files.SUFFIXES, {"FILE": file, "--seeds": seeds})
        if edge_ids and out.suffix not in walk_files.WITH_EDGES:
            raise click.BadParameter(
                f"expected a suffix of {', '.join(walk_files.WITH_EDGES)}, got {str(out)!r}",
                param_hint="--edge-ids",
            )
        walk_files.check(out.suffix)
    walked: dict[str, Any] = {
        "length": length,
        "prob": prob,
        "stop": stop,
        "restart": restart,
        "p": p,
        "q": q,
        "metapath": None,
        "edge_types": edge_types,
        "direction": direction,
        "walks_per_seed": walks,
        "count_jumps": count_jumps,
        "seed": seed,
    }
    # Ids of edges take room, and time: only for a file that is to have them.
    with_edges = edge_ids and out is not None
    start = time.perf_counter()
    with options.open_graph(file) as graph:
        sampler: Any
        if not graph.is_homogeneous:
            sampler = _walks_of_types(graph, metapath, walked, with_edges)
            kind: str | None = sampler.node_types[0]
            if node_type not in (None, kind):
                raise click.BadParameter(
                    f"expected {kind}, where the metapath begins, got {node_type}",
                    param_hint="--node-type",
                )
        else:
            kind = options.node_type_of(graph, node_type)
            walked["metapath"] = _type_numbers(metapath)
            sampler = RandomWalk(**walked, mode_options={"layout": layout}, edge_ids=with_edges)
        length, labels = walked["length"], Labels(graph)
        about: dict[str, Any] = {
            "file": file,
            **walked,
            "epoch": epoch,
            "batch_size": batch_size,
            "shuffle": shuffle,
        }
        nodes = seeds_of(graph, labels, kind, seeds)
        batches = -(-len(nodes) // batch_size)
        count = len(nodes) * walks
        about.update(seeds=len(nodes), walks=count, batches=batches)
        steps = done = 0
        with (
            nullcontext()
            if out is None
            else walk_files.walk_file(out, count, length, about, labels, edge_ids) as add,
            Progress("walking", "walks") as progress,
            options.batches_of(
                graph.to(device), sampler, kind, nodes, batch_size, epoch, shuffle
            ) as found,
        ):
            for batch in found:
                steps += sum(batch.lengths.cpu())
                if add is not None:
                    add(batch.cpu())
                done += len(batch)
                progress(done, count)
    seconds = time.perf_counter() - start
    result = {
        **about,
        "steps": steps,
        "seconds": seconds,
        "steps_per_second": steps / seconds,
        "out": None if out is None else str(out),
        "bytes": None if out is None else out.stat().st_size,
    }
    if as_json:
        output.write_json(result)
        return
    from pygsampler._cli.doctor.report import size

    shown = output.console()
    output.title(shown, file)
    pairs = [
        ("seeds", f"{len(nodes):,} in {batches:,} batches"),
        ("walks", f"{count:,}"),
        ("steps", f"{steps:,}, {output.rate(steps / seconds)} steps/s"),
        ("time", f"{seconds:.1f} s"),
    ]
    if out is not None:
        pairs.append(("written", f"{out}, {size(out.stat().st_size)}"))
    output.facts(shown, pairs)
