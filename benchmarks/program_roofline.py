"""Computes the memory's part of a program's batch on a GPU: its work over the GPU's limits.

    python -m benchmarks.program_roofline --out FOLDER

The work is counted in batches that the CPU engine samples of graphs with the same counts, so that
no GPU is needed; what a batch took, and what the GPU can do, are the figures that are kept in
``results/gpu``. Counted is what an engine needs that reads and writes nothing twice:

- ``rows_us``: the in-edges of columns that are read whole, with weights, at the speed of a copy;
- ``draws_us``: a sector of 32 bytes for each edge that is drawn, at random places of `indices`;
- ``map_us``: for each edge that is looked at, a read and an atomic operation in the map of vertices
  (a read alone where vertices of a subgraph are looked for), and a read of each vector of vertices
  that chances are taken from;
- ``writes_us``: the bytes of the batch.

Their sum is what a batch takes whose parts do not overlap, and whose reads never wait for one
another.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from tqdm import tqdm

import pygsampler as pgs

from . import environment, programs
from .gpu import ceilings
from .gpu.graphs import Made, make
from .gpu.programs import SHAPES, with_data

_RESULTS = Path(__file__).parent / "results" / "gpu"
_BATCHES = 4


class Reads(NamedTuple):
    """The reads of an algorithm: whole columns, their weights, and a number of vectors of rows."""

    whole: bool
    weighted: bool = False
    vectors: int = 0


# KGCN's chances and LABOR's numbers are made of what a map's word or no memory at all has.
_READS = {
    "graphsage": Reads(whole=False),
    "with": Reads(whole=False),
    "ladies": Reads(whole=True, weighted=True),
    "fastgcn": Reads(whole=True, weighted=True, vectors=1),
    "asgcn": Reads(whole=True, weighted=True, vectors=1),
    "labor": Reads(whole=True),
    "kgcn": Reads(whole=True),
    "shadow": Reads(whole=False),
    "saint": Reads(whole=False),
}


def work(at: programs.Setting, graph: pgs.Graph, seeds: torch.Tensor) -> dict[str, int]:
    """Edges that a batch looks at, draws, looks up and claims, and its bytes."""
    degrees = np.diff(np.asarray(graph.indptr))
    batch = at.ours().sample(graph, seeds, epoch=0, batch=0)
    made = batch.numpy()
    found = dict.fromkeys(("looked_at", "drawn", "claimed", "found", "bytes"), 0)
    if not isinstance(batch, pgs.samplers.Subgraph):
        for block in made.blocks:
            edges = int(degrees[block.dst_nodes].sum()) if _reads(at).whole else block.num_edges
            found["looked_at" if _reads(at).whole else "drawn"] += edges
            found["claimed"] += edges
            found["bytes"] += block.indptr.nbytes + block.indices.nbytes + block.edge_ids.nbytes
            found["bytes"] += sum(values.nbytes for values in block.edge_data.values())
        found["bytes"] += made.input_nodes.nbytes
        return found
    # A subgraph: its vertices were drawn and claimed, then all of their in-edges are looked up.
    found["claimed"] = found["drawn"] = _drawn(at, made)
    found["looked_at"] = found["found"] = int(degrees[made.nodes].sum())
    found["bytes"] = made.nodes.nbytes + made.indptr.nbytes + made.indices.nbytes
    found["bytes"] += made.edge_ids.nbytes
    return found


def _reads(at: programs.Setting) -> Reads:
    return _READS[at.name.split()[0].rstrip(",")]


def _drawn(at: programs.Setting, made: Any) -> int:
    """Draws of a subgraph's vertices: at least one for each; steps of walks are asked for."""
    if at.name == "saint walks 2000x4":
        return 2000 * (4 + 1)
    return int(made.num_nodes)


def bound(
    at: programs.Setting, graph: pgs.Graph, need: dict[str, int], limits: dict[str, Any]
) -> dict[str, float]:
    """Microseconds of each part of the work."""
    reads = _reads(at)
    copy = limits["copy_tb_per_second"] * 1e12
    width = np.asarray(graph.indices).itemsize
    vertices = 8 * graph.num_nodes

    def rate(name: str, size: int) -> float:
        return ceilings.rate(limits[name], size)

    asked = need["claimed"] + need["found"]
    parts = {
        "rows_us": need["looked_at"] * (width + 4 * reads.weighted) / copy,
        "draws_us": need["drawn"] / rate("gather", width * graph.num_edges),
        "map_us": asked / rate("gather", vertices)
        + need["claimed"] / rate("atomic", vertices)
        + reads.vectors * need["looked_at"] / rate("gather", 8 * graph.num_nodes),
        # A copy reads as much as it writes.
        "writes_us": need["bytes"] / (copy / 2),
    }
    return {name: round(1e6 * value, 2) for name, value in parts.items()}


def rows(shape: str, made: Made, kept: dict[tuple[str, str], Any], limits: dict[str, Any]) -> Any:
    """A row for each setting that figures are kept of."""
    graph, _, _ = with_data(made)
    for at in programs.SETTINGS:
        known = kept.get((shape, at.name))
        if known is None:
            continue
        sets = [s[: at.seeds] for s in made.seeds(max(at.seeds, 1), _BATCHES, torch.int64)]
        needs = [work(at, graph, seeds) for seeds in sets]
        need = {name: round(sum(n[name] for n in needs) / len(needs)) for name in needs[0]}
        parts = bound(at, graph, need, limits)
        total = round(sum(parts.values()), 2)
        measured = known["engine_us"]["median"]
        yield {
            **{"shape": shape, "setting": at.name, **need, **parts, "sum_us": total},
            **{"engine_us": measured, "many_us": known["many_us"]},
            "share": round(total / measured, 3),
            "share_of_many": round(total / known["many_us"], 3),
        }


def line(row: dict[str, Any]) -> str:
    """One line for a row."""
    return (
        f"{row['shape']:11} {row['setting']:24} rows {row['rows_us']:6.1f} "
        f"draws {row['draws_us']:6.1f} map {row['map_us']:6.1f} writes {row['writes_us']:6.1f} us; "
        f"{100 * row['share']:.0f} % of {row['engine_us']:.0f} us, "
        f"{100 * row['share_of_many']:.0f} % of {row['many_us']:.0f}"
    )


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.program_roofline")
    parser.add_argument("--out", type=Path, help="a folder for program_roofline.json")
    parser.add_argument("--shapes", nargs="+", default=SHAPES, choices=SHAPES)
    options = parser.parse_args(arguments)
    kept = json.loads((_RESULTS / "programs.json").read_text())
    by_name = {(row["shape"], row["setting"]): row for row in kept["rows"]}
    limits = json.loads((_RESULTS / "roofline.json").read_text())["ceilings"]
    record = environment.describe(arguments, "benchmarks.program_roofline")
    record.update(measured_by=kept["command"], measured_at=kept["commit"], gpu=kept["gpu"], rows=[])
    for shape in tqdm(options.shapes, unit="graph"):
        made = make(shape, torch.int32, device="cpu")
        for row in rows(shape, made, by_name, limits):
            record["rows"].append(row)
            tqdm.write(line(row))
        del made
        gc.collect()
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        text = json.dumps(record, indent=1) + "\n"
        (options.out / "program_roofline.json").write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
