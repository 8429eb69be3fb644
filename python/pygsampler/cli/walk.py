"""``python -m pygsampler walk``."""

from __future__ import annotations

import re
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click

from pygsampler.cli import options


def _types(ctx: click.Context, param: click.Parameter, value: str | None) -> list[int] | None:
    if value is None:
        return None
    if not re.fullmatch(r"\s*\d{1,9}(\s*,\s*\d{1,9})*\s*", value):
        raise click.BadParameter(f"expected types like 0,1,0, got {value!r}")
    return [int(part) for part in value.split(",")]


@click.command(short_help="Walk from vertices at random; write the walks.")
@click.argument("file", metavar="FILE")
@click.option(
    "--seeds",
    default="all",
    show_default=True,
    metavar="FILE|LIST|all",
    help="A file of vertex ids, ids like 1,2,3, or all vertices.",
)
@click.option(
    "--length", type=click.IntRange(0, 1 << 20), default=80, show_default=True, help="Steps."
)
@click.option(
    "--walks", type=click.IntRange(1), default=1, show_default=True, help="Walks of each seed."
)
@click.option("--prob", metavar="NAME", help="The edges' array of weights to draw by.")
@click.option(
    "--stop", type=float, default=0.0, show_default=True, help="Chance to end before a step."
)
@click.option(
    "--restart", type=float, default=0.0, show_default=True, help="Chance to go back to the seed."
)
@click.option("--count-jumps", is_flag=True, help="Going back is a step of its own.")
@click.option("-p", type=float, default=1.0, show_default=True, help="node2vec's return parameter.")
@click.option("-q", type=float, default=1.0, show_default=True, help="node2vec's in-out parameter.")
@click.option(
    "--metapath", callback=_types, metavar="TYPE,...", help="The types of the edges to take."
)
@click.option("--edge-types", metavar="NAME", help="The edges' array of types.")
@click.option(
    "--direction",
    type=click.Choice(["out", "in"]),
    default="out",
    show_default=True,
    help="Along the edges, or against them.",
)
@click.option(
    "--shuffle", is_flag=True, help="Take the seeds in an order drawn by --seed and --epoch."
)
@click.option(
    "--batch-size",
    type=click.IntRange(1),
    default=1024,
    show_default=True,
    help="Seeds that are walked from at once.",
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
    help="What a GPU keeps to walk on.",
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
    length: int,
    walks: int,
    prob: str | None,
    stop: float,
    restart: float,
    count_jumps: bool,
    p: float,
    q: float,
    metapath: list[int] | None,
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

    FILE is what convert wrote, or "debian". A row of OUT is a walk, in original ids: a list without
    padding in Parquet and Arrow, numbers with blanks between them in a line of text, and in NumPy's
    formats a row that -1 fills up. It is written as batches come, and is there as a whole or not at
    all. Walks are those of RandomWalk with the same seed and epoch.
    """
    from pygsampler.cli import corpus, output
    from pygsampler.cli.progress import Progress
    from pygsampler.cli.seeds import in_graph, read_seeds
    from pygsampler.random_walk import RandomWalk

    if out is not None:
        options.check_output(out, corpus.SUFFIXES, {"FILE": file, "--seeds": seeds})
        if edge_ids and out.suffix not in corpus.WITH_EDGES:
            raise click.BadParameter(
                f"expected a suffix of {', '.join(corpus.WITH_EDGES)}, got {str(out)!r}",
                param_hint="--edge-ids",
            )
        corpus.check(out.suffix)
    given = read_seeds(seeds)
    walked = {
        "length": length,
        "prob": prob,
        "stop": stop,
        "restart": restart,
        "p": p,
        "q": q,
        "metapath": metapath,
        "edge_types": edge_types,
        "direction": direction,
        "walks_per_seed": walks,
        "count_jumps": count_jumps,
        "seed": seed,
    }
    # Ids of edges take room, and time: only for a file that is to have them.
    sampler = RandomWalk(**walked, layout=layout, edge_ids=edge_ids and out is not None)  # type: ignore[arg-type]
    about: dict[str, Any] = {
        "file": file,
        **walked,
        "epoch": epoch,
        "batch_size": batch_size,
        "shuffle": shuffle,
    }
    start = time.perf_counter()
    with options.open_graph(file) as graph:
        node_ids = graph.arrays.get("node_ids")
        vertices = in_graph(given, graph, node_ids)
        batches = -(-len(vertices) // batch_size)
        count = len(vertices) * walks
        about.update(seeds=len(vertices), walks=count, batches=batches)
        steps = done = 0
        with (
            nullcontext()
            if out is None
            else corpus.corpus(out, count, length, about, node_ids, edge_ids) as add,
            Progress("walking", "walks") as progress,
            options.batches(
                graph.to(device), sampler, vertices, batch_size, epoch, shuffle
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
    from pygsampler.doctor.report import size

    shown = output.console()
    output.title(shown, file)
    pairs = [
        ("seeds", f"{len(vertices):,} in {batches:,} batches"),
        ("walks", f"{count:,}"),
        ("steps", f"{steps:,}, {output.rate(steps / seconds)} steps/s"),
        ("time", f"{seconds:.1f} s"),
    ]
    if out is not None:
        pairs.append(("written", f"{out}, {size(out.stat().st_size)}"))
    output.facts(shown, pairs)
