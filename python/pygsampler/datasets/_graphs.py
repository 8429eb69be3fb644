"""Graphs of files that the engine has read."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pygsampler._arrays.array import Array, as_array
from pygsampler._arrays.dtypes import KINDS, ArrayRegion
from pygsampler._engine import memory as memories
from pygsampler.datasets import _read_options, _tables

if TYPE_CHECKING:
    from pygsampler._arrays.datetimes import Kind
    from pygsampler._engine.progress import Progress
    from pygsampler._graph.graph import Graph
    from pygsampler.datasets._sources import Files

# The words at the start of the memory that the engine returns.
_WORDS = 9


def graph_of(files: Files, plan: dict[str, Any], progress: Progress) -> Graph:
    """Returns the graph of files, as a plan that is checked says."""
    if files.one:
        _read_options.require_file(files.paths[0])
    if plan["format"] == "npz":
        from pygsampler.datasets import _npz

        return _npz.read(files.paths[0], plan, progress)
    return graph_in(_tables.load(files, "", plan, progress), plan)


def graph_in(loaded: _tables.Loaded, plan: dict[str, Any]) -> Graph:
    """Returns the graph in a memory of the engine, with the plan's arrays over its edges."""
    from pygsampler._graph.graph import Graph
    from pygsampler._graph.relation import Relation

    memory = loaded.memory
    assert isinstance(memory, memories.Memory)
    names = [column["name"] for column in plan["data"]]
    words = memories.read_int64(memory.data, _WORDS + 2 * len(names))
    nodes, edges, bits, edge_bits, indptr, indices, edge_ids, node_ids, rows = words[:_WORDS]
    relation = Relation._checked(
        Array._from_address(memory.data + indptr, nodes + 1, 64, memory),
        Array._from_address(memory.data + indices, edges, bits, memory),
        Array._from_address(memory.data + edge_ids, edges, edge_bits, memory)
        if edge_bits
        else None,
        nodes,
    )
    if node_ids:
        known = Array._of_region(
            ArrayRegion(memory.data + node_ids, "int64", (nodes,), memory, False)
        )
        relation._arrays = MappingProxyType({"node_ids": known})
    elif loaded.names is not None:
        labels = {name: as_array(values, name) for name, values in loaded.names.items()}
        relation._arrays = MappingProxyType(labels)
    data = {}
    for name, kind, at in zip(names, words[_WORDS::2], words[_WORDS + 1 :: 2], strict=True):
        # The numbers of dtypes are those of the file format, which KINDS has in their order.
        region = ArrayRegion(memory.data + at, list(KINDS)[kind - 1], (rows,), memory, False)
        data[name] = Array._of_region(region)
    relation._add_arrays(data, None)
    kinds: dict[str, Kind] = loaded.kinds
    relation._edata._kinds.update(kinds)
    return Graph._wrap(relation)
