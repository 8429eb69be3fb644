"""``python -m pygsampler info``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pygsampler._cli import options

if TYPE_CHECKING:
    from rich.console import Console

    from pygsampler._graph.graph import Graph


@click.command(short_help="Describe a graph file: degrees, arrays, checks.")
@click.argument("file", metavar="FILE")
@click.option("--check", is_flag=True, help="Check the checksums, and every offset and id.")
@click.option("--parallel-edges", is_flag=True, help="Count repeated edges; slower.")
@options.picture("Draw the degrees with matplotlib")
@options.as_json
def command(file: str, check: bool, parallel_edges: bool, plot: Path | None, as_json: bool) -> None:
    """Describe and check a graph file: sizes, arrays, degrees, self loops.

    FILE is an output of convert or Graph.save, or "debian". The file is read once, from
    beginning to end. The exit code is 1 when a check fails.
    """
    from pygsampler._cli import output
    from pygsampler._cli.atomic_file import atomic_write
    from pygsampler._cli.progress import Progress
    from pygsampler._graph import degrees

    options.check_picture(plot)
    found: dict[str, Any] = {"file": file, "ok": True}
    with options.open_graph(file) as graph:
        if not graph.is_homogeneous:
            from pygsampler._cli import hetero_info

            hetero_info.tell(file, graph, check, parallel_edges, plot, as_json)
            return
        found.update(_shape(file, graph))
        if check:
            found["checks"] = _checks(file, graph)
            found["ok"] = set(found["checks"].values()) == {"ok"}
        if found["ok"]:
            with Progress("counting", "nodes") as progress:
                profile = degrees.profile(graph._source, parallel=parallel_edges, progress=progress)
            found.update(_counts(found, profile))
            if plot is not None:
                with atomic_write(plot) as temporary:
                    _draw(file, profile, temporary)
                found["plot"] = str(plot)
    if as_json:
        output.write_json(found)
    else:
        _show(output.console(), found)
    if not found["ok"]:
        raise SystemExit(1)


def _checks(file: str, graph: Graph) -> dict[str, str]:
    """Returns what was checked: "ok", or what is wrong with it."""
    from pygsampler._cli.progress import Progress
    from pygsampler._graph.graph import Graph

    found: dict[str, str] = {}

    def check(name: str, work: Callable[[], Graph]) -> None:
        try:
            work().close()
        except (ValueError, IndexError) as error:
            found[name] = str(error)
        else:
            found[name] = "ok"

    def again() -> Graph:
        # From arrays a graph is always checked, from a file only where that is asked for.
        parts = (graph.indptr, graph.indices)
        return Graph.from_csc(*parts, edge_ids=graph.edge_ids, num_nodes=graph.num_nodes)

    if graph.path is not None:
        with Progress("reading", "B") as progress:
            check("checksums", lambda: Graph.open(file, verify=True, progress=progress))
    check("offsets and ids", again)
    return found


def _shape(file: str, graph: Graph) -> dict[str, Any]:
    from pygsampler._graph.file import tables
    from pygsampler._graph.named_arrays import sections

    path = Path(file)
    arrays = {
        name: {"dtype": str(values.dtype), "shape": list(values.shape)}
        for name, values in {**graph.file_arrays, **sections(graph.edata, graph.ndata)}.items()
    }
    for about in tables(graph._source).values():
        arrays[about["name"]] = {"dtype": about["dtype"], "shape": about["shape"]}
    return {
        "bytes": path.stat().st_size if path.exists() else None,
        "num_nodes": graph.num_nodes,
        "num_edges": graph.num_edges,
        "dtypes": {
            "indptr": graph.indptr.dtype,
            "indices": graph.indices.dtype,
            "edge_ids": None if graph.edge_ids is None else graph.edge_ids.dtype,
        },
        "arrays": dict(sorted(arrays.items())),
    }


def _counts(shape: dict[str, Any], profile: dict[str, Any]) -> dict[str, Any]:
    """The profile without every single degree, for which histograms stand."""
    nodes, edges = shape["num_nodes"], shape["num_edges"]
    repeats = profile["parallel_edges"]
    result: dict[str, Any] = {
        "self_loops": profile["self_loops"],
        "isolated": profile["isolated"],
        "parallel_edges": None if repeats < 0 else repeats,
    }
    for side in ("in", "out"):
        degrees = dict(profile[side])
        counts = degrees.pop("counts")
        degrees["mean"] = edges / nodes if nodes else 0.0
        degrees["histogram"] = _histogram(counts)
        result[f"{side}_degree"] = degrees
    return result


def _histogram(counts: list[list[int]]) -> list[dict[str, int]]:
    """Nodes by degree: of none, of 1, 2 to 3, 4 to 7, and so on."""
    bins: dict[int, int] = {}
    for degree, number in counts:
        bins[degree.bit_length()] = bins.get(degree.bit_length(), 0) + number
    return [
        {
            "from": 1 << bits - 1 if bits else 0,
            "to": (1 << bits) - 1,
            "nodes": bins.get(bits, 0),
        }
        for bits in range(max(bins, default=-1) + 1)
    ]


def _show(out: Console, info: dict[str, Any]) -> None:
    from pygsampler._cli import output
    from pygsampler._cli.doctor.report import size

    dtypes, repeats = info["dtypes"], info.get("parallel_edges")
    pairs = [
        ("nodes", output.count(info["num_nodes"])),
        ("edges", output.count(info["num_edges"])),
        ("size", "" if info["bytes"] is None else size(info["bytes"])),
        ("ids", f"{dtypes['indices']}, offsets {dtypes['indptr']}"),
        ("edge ids", dtypes["edge_ids"] or "the place in the file"),
    ]
    if "isolated" in info:
        pairs += [
            ("self loops", output.count(info["self_loops"])),
            ("parallel edges", "" if repeats is None else output.count(repeats)),
            ("isolated", f"{info['isolated']:,} nodes without any edge"),
        ]
    output.title(out, info["file"])
    output.facts(out, [(label, text) for label, text in pairs if text])
    _show_arrays(out, info["arrays"])
    if "isolated" in info:
        _show_degrees(out, info)
    if "checks" in info:
        output.title(out, "checks")
        output.facts(out, info["checks"].items())
    if "plot" in info:
        output.facts(out, [("plot", info["plot"])])


def _show_arrays(out: Console, arrays: dict[str, Any]) -> None:
    from pygsampler._cli import output

    if arrays:
        output.title(out, "arrays")
        output.facts(
            out,
            [
                (name, f"{about['dtype']} [{', '.join(f'{n:,}' for n in about['shape'])}]")
                for name, about in arrays.items()
            ],
        )


def _show_degrees(out: Console, info: dict[str, Any]) -> None:
    from pygsampler._cli import output

    output.title(out, "degrees")
    head = ("", "min", "median", "mean", "p99", "max", "none")
    rows = []
    for side in ("in", "out"):
        spread = info[f"{side}_degree"]
        whole = [output.count(spread[name]) for name in ("min", "median")]
        rest = [output.count(spread[name]) for name in ("p99", "max", "zero")]
        rows.append([side, *whole, f"{spread['mean']:,.1f}", *rest])
    output.table(out, head, rows, text_columns=1)
    for side in ("in", "out"):
        out.print()
        output.title(out, f"nodes by {side}-degree")
        bins = info[f"{side}_degree"]["histogram"]
        # From the first to the last that has any.
        first = next((place for place, one in enumerate(bins) if one["nodes"]), 0)
        output.bars(
            out,
            [(_range(one), one["nodes"], output.count(one["nodes"])) for one in bins[first:]],
        )


def _range(one: dict[str, int]) -> str:
    low, high = one["from"], one["to"]
    return f"{low:,}" if low == high else f"{low:,}-{high:,}"


def _draw(file: str, profile: dict[str, Any], path: Path) -> None:
    """Nodes over degree, both on logarithmic axes, where a power law is a line."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    scale = "linear"
    for side, mark in (("in", "o"), ("out", "x")):
        points = [(degree, number) for degree, number in profile[side]["counts"] if degree]
        # A logarithmic axis of nothing is an error.
        scale = "log" if points else scale
        degrees, numbers = zip(*points, strict=True) if points else ((), ())
        axes.plot(degrees, numbers, mark, markersize=3, alpha=0.6, label=f"{side}-degree")
    axes.set(xscale=scale, yscale=scale, xlabel="degree", ylabel="nodes", title=file)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=150)
