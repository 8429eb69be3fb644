"""Opens and saves graph files."""

from __future__ import annotations

import os
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pygsampler._check import boolean, describe
from pygsampler._graph import save as graph_save
from pygsampler._graph.pages import CSC, Pages
from pygsampler._shaped import ShapedArray
from pygsampler.array import Array

if TYPE_CHECKING:
    from pygsampler._graph.pages import Identity
    from pygsampler._graph.save import Progress
    from pygsampler._graph.state import GraphState
    from pygsampler.graph import Graph


def path_of(value: Any) -> str:
    """A path as str; TypeError for anything else, ValueError for what no path can be."""
    try:
        path = os.fsdecode(os.fspath(value))
    except TypeError:
        raise TypeError(f"path: expected a str or os.PathLike, got {describe(value)}") from None
    if "\0" in path:
        raise ValueError(f"path: expected no null character, got {path!r}")
    return path


def open_pages(path: Any, verify: bool, progress: Progress) -> Pages:
    """The mapped file; with ``verify`` all of it has been read and compared."""
    check = boolean(verify, "verify")
    pages = Pages(path_of(path))
    if check:
        with graph_save.reporting(progress, pages.identity[0], "verify") as report:
            pages.verify(report)
    return pages


def mapped(pages: Pages) -> Graph:
    """The graph of a mapped file."""
    from pygsampler.graph import Graph

    found: dict[str, ShapedArray] = {
        section["name"]: ShapedArray._shaped(
            pages.address + section["offset"],
            section["dtype"],
            tuple(section["shape"] or ()),
            pages,
            True,
        )
        for section in pages.header["sections"]
    }
    indptr, indices, edge_ids = (_ids(found.pop(name, None)) for name in CSC)
    assert indptr is not None
    assert indices is not None
    graph = Graph._new((indptr, indices, edge_ids), pages.header["num_nodes"])
    graph._file = pages
    graph._arrays = MappingProxyType(found)
    graph._handle()
    return graph


def reopened(path: str, identity: Identity) -> Graph:
    """An opened graph that was pickled; ValueError where its path is another file's now."""
    return mapped(Pages.reopened(path, identity))


def beside(*parts: Any) -> Graph:
    """A graph in memory that was pickled with arrays beside it."""
    from pygsampler.graph import Graph

    *checked, arrays = parts
    graph = Graph._checked(*checked)
    graph._arrays = MappingProxyType(arrays)
    return graph


def _ids(values: ShapedArray | None) -> Array | None:
    if values is None:
        return None
    return Array._of(
        values._address, values._length, values._bits, values._owner, readonly=values._readonly
    )


def save(host: GraphState, path: Any, arrays: Any, progress: Progress) -> None:
    """Writes a graph that is on the CPU; ``arrays`` None means those that it has."""
    beside = graph_save.named(host._arrays if arrays is None else arrays)
    graph_save.save(path_of(path), host._open(), host._num_nodes, beside, progress)
