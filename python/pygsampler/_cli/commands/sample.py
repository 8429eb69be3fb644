"""``python -m pygsampler sample``."""

from __future__ import annotations

import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click

from pygsampler._cli import options


def _number(text: str) -> int | float | None:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None


def _moment(ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
    from pygsampler._arrays.datetimes import is_date_text

    if value is None:
        return None
    number = _number(value)
    if number is not None:
        return number
    if not is_date_text(value):
        raise click.BadParameter(f"expected a number or a date like 2024-03-01, got {value!r}")
    return value


def _span(ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
    from pygsampler._arrays.datetimes import as_numpy_span

    if value is None:
        return None
    number = _number(value)
    if number is not None:
        return number
    try:
        return as_numpy_span(value)
    except TypeError as error:
        raise click.BadParameter(str(error).removeprefix("window: ")) from None


@click.command(short_help="Sample neighborhoods in batches; write their edges.")
@click.argument("file", metavar="FILE")
@click.option(
    "--seeds",
    required=True,
    metavar="FILE|LIST|all",
    help="A file of ids or names of nodes, ids like 1,2,3, names, or all nodes.",
)
@options.node_type
@options.fanouts("10,10")
@click.option("--batch-size", type=click.IntRange(1), default=1024, show_default=True)
@click.option("--epoch", type=click.IntRange(0, 2**24 - 1), default=0, show_default=True)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**64 - 1),
    default=0,
    show_default=True,
    help="The same seed gives the same samples.",
)
@click.option("--replace", is_flag=True, help="Draw with replacement.")
@click.option(
    "--frontier",
    type=click.Choice(["all", "new"]),
    default="all",
    show_default=True,
    help="Expand every node at each hop, as DGL does, or only new ones, as PyG does.",
)
@click.option("--time", "time_", metavar="NAME", help="The array with the times of edges or nodes.")
@click.option(
    "--seed-time",
    callback=_moment,
    metavar="DATE|NUMBER",
    help="Sample nothing later than this, with --time.",
)
@click.option(
    "--window",
    callback=_span,
    metavar="SPAN|NUMBER",
    help="Sample nothing earlier than this before --seed-time: a number, or 7d, 12h, 30m, 5s.",
)
@options.device
@click.option(
    "--out",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    metavar="OUT.arrow|.parquet",
    help="Write the sampled edges; without it they are only counted.",
)
@options.as_json
def command(
    file: str,
    seeds: str,
    node_type: str | None,
    fanouts: tuple[int, ...],
    batch_size: int,
    epoch: int,
    seed: int,
    replace: bool,
    frontier: str,
    time_: str | None,
    seed_time: Any,
    window: Any,
    device: str,
    out: Path | None,
    as_json: bool,
) -> None:
    """Sample the neighborhoods of seeds of a graph file, in batches, and write their edges.

    FILE is an output of convert, or "debian"; for a heterogeneous graph --node-type is the type of
    the seeds. OUT has a row for each sampled edge: batch, hop (0 at the seeds), src, dst and
    edge_id, all of them original ids or names, and the types. It is written batch by batch, as a
    whole or not at all. Batches are equal to batches of PGSampler with the same seed and epoch.
    """
    from pygsampler._cli import output
    from pygsampler._cli.edge_table import ARROW, PARQUET, edge_table
    from pygsampler._cli.labels import Labels
    from pygsampler._cli.progress import Progress
    from pygsampler._cli.seeds import seeds_of
    from pygsampler.samplers.neighbor import PGSampler
    from pygsampler.samplers.temporal import Temporal

    if out is not None:
        options.check_output(out, ARROW + PARQUET, {"FILE": file, "--seeds": seeds})
        # Before any work: it may be missing.
        import pyarrow  # noqa: F401
    if (time_ is None) is not (seed_time is None):
        missing, other = ("--time", "--seed-time") if time_ is None else ("--seed-time", "--time")
        raise click.UsageError(f"{missing}: expected one with {other}, got none")
    rule = None if time_ is None else Temporal(time_, window=window)
    sampler = PGSampler(fanouts, replace=replace, seed=seed, frontier=frontier, temporal=rule)
    about: dict[str, Any] = {
        "file": file,
        "fanouts": list(fanouts),
        "replace": replace,
        "frontier": frontier,
        "seed": seed,
        "epoch": epoch,
        "batch_size": batch_size,
    }
    if time_ is not None:
        about.update(time=time_, seed_time=seed_time, window=sampler.plan["window"])
    start = time.perf_counter()
    with options.open_graph(file) as graph:
        kind, labels = options.node_type_of(graph, node_type), Labels(graph)
        nodes = seeds_of(graph, labels, kind, seeds)
        steps = -(-len(nodes) // batch_size)
        about.update(seeds=len(nodes), batches=steps)
        hops = [0] * len(fanouts)
        with (
            nullcontext()
            if out is None
            else edge_table(out, about, labels, kind is not None) as table,
            Progress("sampling", "batches") as progress,
            options.batches_of(
                graph.to(device), sampler, kind, nodes, batch_size, epoch, seed_time=seed_time
            ) as batches,
        ):
            for number, batch in enumerate(batches):
                for hop, block in enumerate(reversed(batch.blocks)):
                    by_type = [block] if kind is None else block.values()
                    hops[hop] += sum(each.num_edges for each in by_type)
                if table is not None:
                    table.add(number, batch.cpu())
                progress(number + 1, steps)
    seconds = time.perf_counter() - start
    edges = sum(hops)
    found = {
        **about,
        "edges": edges,
        "edges_by_hop": hops,
        "seconds": seconds,
        "edges_per_second": edges / seconds,
        "out": None if out is None else str(out),
        "bytes": None if out is None else out.stat().st_size,
    }
    if as_json:
        output.write_json(found)
        return
    from pygsampler._cli.doctor.report import size

    shown = output.console()
    output.title(shown, file)
    pairs = [
        ("seeds", f"{len(nodes):,} in {steps:,} batches"),
        ("edges", f"{edges:,}, {output.rate(edges / seconds)} edges/s"),
        *((f"hop {hop}", output.count(n)) for hop, n in enumerate(hops)),
        ("time", f"{seconds:.1f} s"),
    ]
    if out is not None:
        pairs.append(("written", f"{out}, {size(out.stat().st_size)}"))
    output.facts(shown, pairs)
