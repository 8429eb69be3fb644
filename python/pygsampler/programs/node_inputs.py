"""``NodeInputs``: tensors of a sampler that have something for each node of the graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from pygsampler._engine import library
from pygsampler.programs._language.inputs import InputContent, input_array, input_of

if TYPE_CHECKING:
    from pygsampler._graph.graph import Graph as Stored
    from pygsampler._graph.program_arrays import ProgramArrayNames


class NodeInputs:
    """The contents of inputs that are read as arrays of the graph; immutable.

    Samplers that ``with_seed`` and the like make of one another have the same.

    A graph gets them when it is first sampled, as arrays of its own; on a GPU they are copied
    there.
    """

    def __init__(self, contents: Mapping[str, InputContent], program: str) -> None:
        self.contents = dict(contents)
        self._program = program
        # By graph its relation with the arrays.
        self._graphs: WeakKeyDictionary[Stored, Any] = WeakKeyDictionary()

    def changed(self, contents: Mapping[str, InputContent]) -> NodeInputs:
        """Returns these with other contents of the same names."""
        return NodeInputs({**self.contents, **contents}, self._program)

    def attached(self, graph: Stored, reads: ProgramArrayNames) -> Any:
        """Returns the graph with the arrays that a program reads, these among them.

        Raises
        ------
        ValueError
            For another number of nodes than a tensor has, and for a partitioned graph.
        """
        with library.handle_lock():
            known = self._graphs.get(graph)
        if known is None:
            known = self._attach(graph, reads)
            with library.handle_lock():
                known = self._graphs.setdefault(graph, known)
        return known

    def _attach(self, graph: Stored, reads: ProgramArrayNames) -> Any:
        if graph._service is not None:
            raise ValueError(
                f"{self._program}: expected a graph on this machine for the inputs "
                f"{', '.join(self.contents)} with a row for each node, got a partitioned "
                "one; put them on its nodes, as ndata"
            )
        relation: Any = graph._source
        host = relation._on_cpu()
        by_edge = {input_of(name) for name in reads.edges} - {None}
        edges, nodes = {}, {}
        for name, content in self.contents.items():
            self._check(name, content.shape, graph.num_nodes, name in by_edge)
            values = content.array()
            if name in by_edge:
                edges[input_array(name)] = _at_edges(host, values)
            if name not in by_edge or input_array(name) in (*reads.vertices, *reads.rows):
                nodes[input_array(name)] = values
        return relation._with_inputs(reads, edges, nodes)

    def _check(self, name: str, shape: tuple[int, ...], num_nodes: int, by_edge: bool) -> None:
        wanted = (num_nodes, num_nodes) if by_edge else (num_nodes, *shape[1:])
        if shape != wanted:
            raise ValueError(
                f"{self._program}: {name}: expected shape {wanted} for a graph of {num_nodes} "
                f"nodes, got {shape}"
            )


def _at_edges(relation: Any, values: Any) -> Any:
    """Returns what a matrix of all nodes has at the edges of a relation on the CPU, by edge id."""
    import numpy as np

    indptr, indices, ids = relation.indptr.numpy(), relation.indices.numpy(), relation.edge_ids
    targets = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    found = values[indices, targets]
    if ids is None or not len(found):
        return found
    by_id = np.zeros(int(ids.numpy().max()) + 1, values.dtype)
    by_id[ids.numpy()] = found
    return by_id
