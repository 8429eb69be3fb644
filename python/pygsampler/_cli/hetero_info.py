"""Output of ``info`` for a heterogeneous graph."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console

    from pygsampler._graph.graph import Graph


def tell(
    file: str, graph: Graph, check: bool, parallel: bool, plot: Path | None, as_json: bool
) -> None:
    """Prints types, arrays and degrees, and ends with 1 where a check fails."""
    from pygsampler._cli import output

    if plot is not None:
        raise click.UsageError("--plot: expected none for a heterogeneous graph")
    found: dict[str, Any] = {"file": file, "ok": True, **_shape(file, graph)}
    if check:
        found["checks"] = _checks(file)
        found["ok"] = set(found["checks"].values()) == {"ok"}
    if found["ok"]:
        found["relations"] = {
            ":".join(kind): _degrees(graph, kind, parallel) for kind in graph.edge_types
        }
    if as_json:
        output.write_json(found)
    else:
        _show(output.console(), found)
    if not found["ok"]:
        raise SystemExit(1)


def _shape(file: str, graph: Graph) -> dict[str, Any]:
    arrays = {
        f"{name}.{array}": values
        for name, of in (
            *((":".join(kind), graph.edata[kind]) for kind in graph.edge_types),
            *((kind, graph.ndata[kind]) for kind in graph.node_types),
        )
        for array, values in of.items()
    }
    return {
        "bytes": Path(file).stat().st_size,
        "num_nodes": dict(graph.num_nodes),
        "num_edges": {":".join(kind): count for kind, count in graph.num_edges.items()},
        "dtype": graph.dtype,
        "names": sorted(graph.node_names),
        "arrays": {
            name: {"dtype": str(values.dtype), "shape": list(values.shape)}
            for name, values in sorted(arrays.items())
        },
    }


def _checks(file: str) -> dict[str, str]:
    """Checks the checksums, and every offset and id: "ok", or the text of an error."""
    from pygsampler._cli.progress import Progress
    from pygsampler._graph.graph import Graph

    found: dict[str, str] = {}
    with Progress("reading", "B") as progress:
        try:
            with Graph.open(file, verify=True, progress=progress) as graph:
                found["checksums"] = "ok"
                for kind in graph.edge_types:
                    part = graph[kind]
                    # From arrays a graph is always checked, from a file only on request.
                    whole = part.indptr, part.indices
                    Graph.from_csc(*whole, edge_ids=part.edge_ids, num_nodes=part.num_nodes).close()
        except (ValueError, IndexError) as error:
            found["offsets and ids" if found else "checksums"] = str(error)
        else:
            found["offsets and ids"] = "ok"
    return found


def _degrees(graph: Graph, kind: tuple[str, str, str], parallel: bool) -> dict[str, Any]:
    """The degrees of a relation, among the nodes that have its types."""
    from pygsampler._graph import degrees

    result: dict[str, Any] = {"parallel_edges": None}
    if parallel:
        result["parallel_edges"] = degrees.profile(graph[kind]._source, parallel=True)[
            "parallel_edges"
        ]
    result["in_degree"] = _spread(graph.in_degrees(edge_type=kind).numpy())
    result["out_degree"] = _spread(graph.out_degrees(edge_type=kind).numpy())
    return result


def _spread(degree: Any) -> dict[str, Any]:
    """The smallest, middle and largest degrees; quantiles are of the nearest rank."""
    import numpy as np

    count = len(degree)
    if not count:
        return {"min": 0, "median": 0, "p99": 0, "max": 0, "mean": 0.0, "zero": 0}
    ordered = np.sort(degree)
    return {
        "min": int(ordered[0]),
        "median": int(ordered[(count + 1) // 2 - 1]),
        "p99": int(ordered[-(count // 100) - 1]),
        "max": int(ordered[-1]),
        "mean": float(ordered.mean()),
        "zero": count - int(np.count_nonzero(ordered)),
    }


def _show(out: Console, info: dict[str, Any]) -> None:
    from pygsampler._cli import output
    from pygsampler._cli.doctor.report import size

    output.title(out, info["file"])
    pairs = [
        *output.counts("nodes", info["num_nodes"]),
        *output.counts("edges", info["num_edges"]),
        ("size", size(info["bytes"])),
        ("ids", info["dtype"]),
        ("names", ", ".join(info["names"])),
    ]
    output.facts(out, [(label, text) for label, text in pairs if text])
    if info["arrays"]:
        output.title(out, "arrays")
        arrays = info["arrays"].items()
        shapes = {name: ", ".join(f"{n:,}" for n in about["shape"]) for name, about in arrays}
        output.facts(out, [(name, f"{about['dtype']} [{shapes[name]}]") for name, about in arrays])
    if "relations" in info:
        output.title(out, "degrees")
        rows = []
        for name, of in info["relations"].items():
            for side in ("in", "out"):
                spread = of[f"{side}_degree"]
                counts = [output.count(spread[key]) for key in ("min", "median")]
                rest = [output.count(spread[key]) for key in ("p99", "max", "zero")]
                label = name if side == "in" else ""
                rows.append([label, side, *counts, f"{spread['mean']:,.1f}", *rest])
        head = ("", "", "min", "median", "mean", "p99", "max", "none")
        output.table(out, head, rows, text_columns=2)
        repeats = [
            (name, f"{of['parallel_edges']:,} parallel edges")
            for name, of in info["relations"].items()
            if of["parallel_edges"] is not None
        ]
        output.facts(out, repeats)
    if "checks" in info:
        output.title(out, "checks")
        output.facts(out, info["checks"].items())
