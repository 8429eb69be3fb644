"""Files of heterogeneous graphs: sections for each relation (docs/developer/file-format.md)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pygsampler._arrays.array import Array, as_array
from pygsampler._arrays.interning import BYTES, OFFSETS
from pygsampler._arrays.mmap_file import MappedFile, checksum
from pygsampler._engine import memory
from pygsampler._graph import file as graph_file
from pygsampler._graph import file_writer as graph_save
from pygsampler._graph import named_arrays as graph_data

if TYPE_CHECKING:
    from pygsampler._engine.progress import Progress
    from pygsampler._graph.file_sections import SectionWriter
    from pygsampler._graph.named_arrays import NamedArrays
    from pygsampler._graph.relation_state import RelationState

# What the types are called, and how many vertices they have.
_TYPES = "types"
# The sections of a type's vertices begin with this and its place.
_NODES = "nodes"


def write_hetero_file(
    path: str,
    relations: Mapping[tuple[str, str, str], RelationState],
    nodes: Mapping[str, int],
    node_data: Mapping[str, NamedArrays],
    names: Mapping[str, Mapping[str, Array]],
    progress: Progress,
) -> None:
    """Writes the relations of a graph that is on the CPU, and the arrays of all types."""
    types = {"nodes": dict(nodes), "edges": list(relations)}
    sections: dict[str, Array | SectionWriter] = {
        _TYPES: as_array(json.dumps(types).encode(), _TYPES)
    }
    for place, graph in enumerate(relations.values()):
        of_graph = graph_save.csc_sections(graph._open()) | graph_data.sections(graph._edata, {})
        sections.update((f"{place}.{name}", array) for name, array in of_graph.items())
    for place, (kind, of_type) in enumerate(node_data.items()):
        of_nodes = {**graph_data.sections({}, of_type), **names.get(kind, {})}
        sections.update((f"{_NODES}{place}.{name}", array) for name, array in of_nodes.items())
    graph_save.write_graph_file(path, sections, max(nodes.values()), progress, typed=True)


def read_types(pages: MappedFile) -> tuple[dict[str, int], dict[tuple[str, str, str], MappedFile]]:
    """How many vertices the types have, and the part of the file that each relation is.

    ValueError where the file is of a graph without types, and where its list of them is damaged.
    """
    if not pages.header["typed"]:
        raise ValueError(
            f"{pages.path}: expected a graph with types, got one without; Graph.open opens it"
        )
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
    """The arrays of the vertices of each type."""
    found = {}
    for place, (kind, count) in enumerate(nodes.items()):
        part = pages.within(f"{_NODES}{place}.", count)
        rows = graph_data.RowCount(graph_data.NODES, count)
        found[kind] = graph_data.arrays_from_file(graph_file.arrays(part), rows, part)
    return found


def names_of(pages: MappedFile, nodes: Mapping[str, int]) -> dict[str, Mapping[str, Array]]:
    """The arrays with the names of the nodes of each type that has names.

    ValueError for names that are not as many as the type has nodes.
    """
    found: dict[str, Mapping[str, Array]] = {}
    for place, (kind, count) in enumerate(nodes.items()):
        arrays = graph_file.arrays(pages.within(f"{_NODES}{place}.", count))
        names = {name: arrays[name] for name in (OFFSETS, BYTES) if name in arrays}
        if not names:
            continue
        if len(names) < 2 or names[OFFSETS].shape != (count + 1,):
            where = f"{pages.path}: section '{_NODES}{place}.{OFFSETS}'"
            raise ValueError(f"{where}: expected names of {count} nodes, got others")
        found[kind] = names
    return found
