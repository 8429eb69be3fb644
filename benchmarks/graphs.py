"""Power-law graphs in CSC with the node and edge counts of the papers' data sets.

Degrees follow a Pareto law and neighbours are drawn with a power-law popularity, so that both the
rows that a sampler reads and the vertices that it meets again are as skewed as in real graphs.
They are made once with NumPy from a seed and kept as ``.npy`` files::

    python -m benchmarks.graphs products        # make it now, print its size

The folder is ``$PYGSAMPLER_CACHE/graphs``, or ``~/.cache/pygsampler/graphs``.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pygsampler._cli.bench.csc import CscGraph

# Part of the file names: graphs made by an older recipe are never read by mistake.
_RECIPE = 1
# Edges drawn at a time. 4 M edges need 70 MB of temporaries, which bounds the memory of any graph.
_CHUNK = 1 << 22


@dataclass(frozen=True)
class Shape:
    """Size and skew of a graph.

    ``degree`` is the exponent a of the in-degrees, P(degree = k) ~ k^-a; ``popularity`` is the
    power g in rank = nodes * u^g, so g = 1 makes every vertex equally popular as a neighbour.
    """

    nodes: int
    edges: int
    degree: float
    popularity: float = 2.0


SHAPES = {
    "quick": Shape(5_000, 100_000, 2.3),  # not from a paper: tests and --quick
    "physics": Shape(34_493, 495_924, 2.4),
    "flickr": Shape(89_250, 899_756, 2.4),
    "yelp": Shape(716_847, 13_954_819, 2.3),
    "arxiv": Shape(169_343, 1_166_243, 2.4),
    "reddit": Shape(232_965, 114_615_892, 2.2),
    "products": Shape(2_449_029, 123_718_280, 2.2),
    "livejournal": Shape(4_847_571, 68_993_773, 2.4),
    "papers/20": Shape(5_552_998, 80_784_294, 2.4),  # a twentieth of papers100M
}


def cache_folder() -> Path:
    """Folder of the generated graphs; it need not exist."""
    root = os.environ.get("PYGSAMPLER_CACHE")
    base = Path(root) if root else Path.home() / ".cache" / "pygsampler"
    return base / "graphs"


def load(name: str, dtype: npt.DTypeLike = np.int64, *, seed: int = 1) -> CscGraph:
    """Returns the graph `name` with indices of `dtype` (int32 or int64), made first if need be.

    The arrays are private memory, not maps of the files: the first batches of a benchmark would
    otherwise pay for reading the disk. ValueError for an unknown name or another dtype.
    """
    if name not in SHAPES:
        raise ValueError(f"graph: expected one of {', '.join(SHAPES)}, got {name!r}")
    kind = np.dtype(dtype)
    if kind not in (np.dtype(np.int32), np.dtype(np.int64)):
        raise ValueError(f"dtype: expected int32 or int64, got {kind}")
    stem = f"{name.replace('/', '-')}-seed{seed}-r{_RECIPE}"
    folder = cache_folder()
    files = folder / f"{stem}.indptr.npy", folder / f"{stem}.indices.npy"
    if not all(file.exists() for file in files):
        _make_files(SHAPES[name], seed, name, *files)
    indptr = np.load(files[0])
    stored = np.load(files[1], mmap_mode="r")
    indices = np.empty(len(stored), kind)
    for lo, hi in _spans(len(stored), _CHUNK):
        indices[lo:hi] = stored[lo:hi]
    return CscGraph(name, indptr, indices)


def degrees(shape: Shape, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """In-degrees of a graph of this shape, int64 [nodes], whose sum is exactly ``shape.edges``."""
    weights = rng.random(shape.nodes)
    np.maximum(weights, 1e-12, out=weights)
    np.power(weights, -1.0 / (shape.degree - 1.0), out=weights)
    # An unbounded Pareto tail of exponent near 2 would give most edges to one vertex.
    np.minimum(weights, max(shape.nodes / 20, 1.0), out=weights)
    weights *= shape.edges / weights.sum()
    degree = weights.astype(np.int64)
    np.minimum(degree, max(shape.nodes - 1, 1), out=degree)
    missing = shape.edges - int(degree.sum())  # rounding down and the cap leave some over
    for lo, hi in _spans(missing, _CHUNK):
        degree += np.bincount(rng.integers(shape.nodes, size=hi - lo), minlength=shape.nodes)
    return degree


def neighbours(shape: Shape, count: int, rng: np.random.Generator) -> Iterator[npt.NDArray[Any]]:
    """Chunks of `count` neighbour ids (int32) in all, popular vertices more often than others."""
    by_rank = rng.permutation(shape.nodes).astype(np.int32)
    for lo, hi in _spans(count, _CHUNK):
        rank = rng.random(hi - lo)
        np.power(rank, shape.popularity, out=rank)
        rank *= shape.nodes
        yield by_rank[rank.astype(np.int64)]


def generate(shape: Shape, seed: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Returns (indptr, indices) of a graph of this shape without touching the cache."""
    rng = np.random.default_rng(seed)
    indptr = _indptr(degrees(shape, rng))
    return indptr, np.concatenate([np.empty(0, np.int32), *neighbours(shape, shape.edges, rng)])


def _make_files(shape: Shape, seed: int, name: str, indptr_file: Path, indices_file: Path) -> None:
    indptr_file.parent.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    indptr = _indptr(degrees(shape, rng))
    with _replacing(indices_file) as path, _bar(shape.edges, f"making {name}") as bar:
        npy: Any = np.lib.format
        header = {"descr": "<i4", "fortran_order": False, "shape": (shape.edges,)}
        with path.open("wb") as file:
            npy.write_array_header_1_0(file, header)
            for part in neighbours(shape, shape.edges, rng):
                file.write(part.astype("<i4", copy=False).data)
                bar.update(len(part))
    with _replacing(indptr_file) as path, path.open("wb") as file:
        np.save(file, indptr)


def _indptr(degree: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    indptr = np.zeros(len(degree) + 1, np.int64)
    np.cumsum(degree, out=indptr[1:])
    return indptr


def _spans(count: int, step: int) -> Iterator[tuple[int, int]]:
    for lo in range(0, count, step):
        yield lo, min(lo + step, count)


@contextmanager
def _replacing(file: Path) -> Iterator[Path]:
    """A path to write to that becomes `file` at the end, so that half a graph is never read."""
    path = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        yield path
        path.replace(file)
    finally:
        path.unlink(missing_ok=True)


def _bar(total: int, label: str) -> Any:
    from tqdm import tqdm

    return tqdm(total=total, desc=label, unit="edge", unit_scale=True, leave=False)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.graphs", description=__doc__)
    parser.add_argument("names", nargs="*", default=[], metavar="graph", help=", ".join(SHAPES))
    for name in parser.parse_args().names or SHAPES:
        graph = load(name, np.int32)
        degree = np.diff(graph.indptr)
        print(
            f"{name:12} {graph.num_nodes:>10,} nodes {graph.num_edges:>12,} edges, "
            f"in-degree median {int(np.median(degree))}, largest {int(degree.max()):,}"
        )


if __name__ == "__main__":
    main()
