"""Opens and saves graph files."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pygsampler._arrays.array import Array, as_array
from pygsampler._arrays.dtypes import ArrayRegion
from pygsampler._arrays.interning import BYTES, OFFSETS
from pygsampler._arrays.mmap_file import CSC, MappedFile, checksum
from pygsampler._engine import memory
from pygsampler._engine.checks import boolean, describe
from pygsampler._engine.progress import Progress, progress_counter
from pygsampler._graph import file_sections
from pygsampler._graph import file_writer as graph_save
from pygsampler._graph import named_arrays as graph_data
from pygsampler._graph.csc_arrays import CscArrays
from pygsampler._graph.table_columns import is_of_columns

if TYPE_CHECKING:
    from pygsampler._graph.named_arrays import NamedArrays
    from pygsampler._graph.relation_state import RelationState

Section = Array | file_sections.SectionWriter
Sections = Mapping[str, Any]
# The section with the names of the types and their numbers of nodes.
_TYPES = "types"
# The sections of a type's nodes begin with this and its place.
_NODES = "nodes"


def as_path(value: Any, where: str = "path", hint: str = "") -> str:
    """A path as str; TypeError for anything else, ValueError for what no path can be."""
    try:
        path = os.fsdecode(os.fspath(value))
    except TypeError:
        expected = "a str or os.PathLike"
        raise TypeError(f"{where}: expected {expected}, got {describe(value)}{hint}") from None
    if "\0" in path:
        raise ValueError(f"{where}: expected no null character, got {path!r}")
    return path


def map_graph_file(path: Any, verify: bool, progress: Progress) -> MappedFile:
    """The mapped file; with ``verify`` all of it has been read and compared."""
    check = boolean(verify, "verify")
    pages = MappedFile(as_path(path))
    if check:
        with progress_counter(progress, pages.identity[0], "verify") as report:
            pages.verify(report)
    return pages


def arrays(pages: MappedFile) -> dict[str, Array]:
    """All sections of a file, or of a part of one, by name."""
    return {
        section["name"]: Array._of_region(
            ArrayRegion(
                pages.address + section["offset"],
                section["dtype"],
                tuple(section["shape"] or ()),
                pages,
                True,
            )
        )
        for section in pages.header["sections"]
    }


def arrays_of(pages: MappedFile) -> tuple[CscArrays, dict[str, Array]]:
    """The arrays of the graph in a mapped file, and the further arrays of the file by name."""
    found = arrays(pages)
    for section in (*file_sections.in_file(pages).values(), file_sections.out_edges_in_file(pages)):
        if section is not None:
            del found[section["name"]]
    indptr, indices, edge_ids = (found.pop(name, None) for name in CSC)
    assert indptr is not None
    assert indices is not None
    return CscArrays(indptr, indices, edge_ids), found


def tables(graph: RelationState) -> dict[str, dict[str, Any]]:
    """The sections of tables in a graph's file, by the arrays that they were computed from."""
    host = graph if graph._host is None else graph._host
    file = host._file
    if file is None:
        return {}
    # Tables of other arrays are ignored: a version that knows no tables may have copied them.
    return {
        name: about
        for name, about in file_sections.in_file(file).items()
        if graph._edata.is_stored(name)
        and file_sections.mapped_tables(file, name, host._open()) is not None
    }


def weighted_relation(graph: RelationState, name: str) -> CscArrays | None:
    """The graph's edges with the tables of an edge array that its file has; else None."""
    file = _file_of(graph)
    if file is None or not graph._edata.is_stored(name):
        return None
    return file_sections.mapped_tables(file, name, graph._open())


def _file_of(graph: RelationState) -> MappedFile | None:
    """The file that a graph was opened from; None for a graph derived from an opened one."""
    return graph._file if graph._whole is None else None


def mapped_out_edges(graph: RelationState) -> CscArrays | None:
    """The graph by its out-edges, which its file has; else None."""
    file = _file_of(graph)
    return (
        None if file is None else file_sections.out_edges_of(file, graph._open(), graph._num_nodes)
    )


def has_out_edges(graph: RelationState) -> bool:
    """True if the file of a graph has its out-edges, too."""
    return mapped_out_edges(graph) is not None


def save(
    host: RelationState,
    path: Any,
    arrays: Any,
    weighted: Mapping[str, RelationState],
    by_out_edges: RelationState | None,
    progress: Progress,
) -> None:
    """Writes a graph that is on the CPU, and its data; ``arrays`` None means those that it has.

    ``weighted`` are the graphs that are drawn by edge arrays, of those whose tables are to be
    there, and ``by_out_edges`` is the graph by its out-edges where that is.
    """
    beside: dict[str, Section] = {
        **graph_save.check_file_arrays(host._arrays if arrays is None else arrays),
        **graph_data.sections(host._edata, host._ndata),
    }
    for name, graph in weighted.items():
        section = file_sections.table_section_name(name)
        if section in beside:
            raise ValueError(
                f"tables: expected a graph file without the array {section!r}, which {name!r} needs"
            )
        beside[section] = file_sections.table_section(
            graph._open(), host._open(), host._edata[name]
        )
    if by_out_edges is not None:
        if file_sections.OUT_EDGES in beside:
            expected = (
                f"a graph file without the array {file_sections.OUT_EDGES!r}, got one with it"
            )
            raise ValueError(f"out_edges: expected {expected}")
        whole = host._open()
        beside[file_sections.OUT_EDGES] = file_sections.out_edges_section(
            by_out_edges._open(), whole
        )
    sections = {**graph_save.csc_sections(host._open()), **beside}
    graph_save.write_graph_file(as_path(path), sections, host._num_nodes, progress)


def write_hetero_file(
    path: str,
    relations: Mapping[tuple[str, str, str], RelationState],
    nodes: Mapping[str, int],
    node_data: Mapping[str, NamedArrays],
    names: Mapping[str, Mapping[str, Array]],
    progress: Progress,
) -> None:
    """Writes the relations of a graph that is on the CPU, and the arrays of all types."""
    of_relations = {
        kind: graph_save.csc_sections(graph._open()) | graph_data.sections(graph._edata, {})
        for kind, graph in relations.items()
    }
    of_nodes = {
        kind: {**graph_data.sections({}, of_type), **names.get(kind, {})}
        for kind, of_type in node_data.items()
    }
    write_hetero_sections(path, nodes, of_relations, of_nodes, progress)


def write_hetero_sections(
    path: str,
    nodes: Mapping[str, int],
    of_relations: Mapping[tuple[str, str, str], Sections],
    of_nodes: Mapping[str, Sections],
    progress: Progress,
) -> None:
    """Writes the sections of relations, and those of the nodes of each type, by their names."""
    types = {"nodes": dict(nodes), "edges": list(of_relations)}
    sections: dict[str, Section] = {_TYPES: as_array(json.dumps(types).encode(), _TYPES)}
    for place, of_relation in enumerate(of_relations.values()):
        sections.update((f"{place}.{name}", array) for name, array in of_relation.items())
    for place, of_type in enumerate(of_nodes.values()):
        sections.update((f"{_NODES}{place}.{name}", array) for name, array in of_type.items())
    graph_save.write_graph_file(path, sections, max(nodes.values()), progress, heterogeneous=True)


def read_types(pages: MappedFile) -> tuple[dict[str, int], dict[tuple[str, str, str], MappedFile]]:
    """Returns the number of nodes of each type, and the part of the file that each relation is.

    ValueError where the list of types is damaged.
    """
    about = next(one for one in pages.header["sections"] if one["name"] == _TYPES)
    address, size = pages.address + about["offset"], about["bytes"]
    where = f"{pages.path}: section {_TYPES!r}"
    if checksum(address, size) != about["checksum"]:
        raise ValueError(f"{where}: expected another checksum: the file is damaged")
    relations: dict[tuple[str, str, str], MappedFile] = {}
    try:
        types = json.loads(bytes(memory.memory_view(address, size)))
        nodes: dict[str, int] = dict(types["nodes"])
        for place, (src, kind, dst) in enumerate(types["edges"]):
            part = pages.within(f"{place}.", max(nodes[src], nodes[dst]))
            if part.header["sections"]:
                relations[src, kind, dst] = part
        sound = len(relations) == len(types["edges"])
    except (ValueError, TypeError, KeyError):
        sound = False
    if not sound:
        raise ValueError(f"{where}: expected the types of the relations in the file, got others")
    return nodes, relations


def read_node_data(pages: MappedFile, nodes: Mapping[str, int]) -> dict[str, NamedArrays]:
    """Returns the arrays of the nodes of each type."""
    found = {}
    for place, (kind, count) in enumerate(nodes.items()):
        part = pages.within(f"{_NODES}{place}.", count)
        rows = graph_data.RowCount(graph_data.NODES, count)
        found[kind] = graph_data.arrays_from_file(arrays(part), rows, part)
    return found


def labels_of(pages: MappedFile, nodes: Mapping[str, int]) -> dict[str, Mapping[str, Array]]:
    """The arrays with the names of the nodes of each type, and those with its columns.

    ValueError for names that are not as many as the type has nodes.
    """
    found: dict[str, Mapping[str, Array]] = {}
    for place, (kind, count) in enumerate(nodes.items()):
        beside = arrays(pages.within(f"{_NODES}{place}.", count))
        names = {name: beside[name] for name in (OFFSETS, BYTES) if name in beside}
        if names and (len(names) < 2 or names[OFFSETS].shape != (count + 1,)):
            where = f"{pages.path}: section '{_NODES}{place}.{OFFSETS}'"
            raise ValueError(f"{where}: expected names of {count} nodes, got others")
        more = {name: array for name, array in beside.items() if is_of_columns(name)}
        if names or more:
            found[kind] = {**names, **more}
    return found
