"""Small random graphs, and a batch as plain lists."""

from __future__ import annotations

from array import array
from dataclasses import dataclass

import hypothesis.strategies as st
import reference

import pygsampler as pgs

CODES = {32: "i", 64: "q"}


@dataclass
class Case:
    """A graph in lists, with parallel edges, self loops and isolated vertices."""

    indptr: list[int]
    indices: list[int]
    edge_ids: list[int] | None
    num_nodes: int

    def graph(self, bits: int = 64, indptr_bits: int = 64) -> pgs.Graph:
        return pgs.Graph.from_csc(
            array(CODES[indptr_bits], self.indptr),
            array(CODES[bits], self.indices),
            edge_ids=None if self.edge_ids is None else array(CODES[bits], self.edge_ids),
            num_nodes=self.num_nodes,
        )


@st.composite
def cases(draw: st.DrawFn, most_nodes: int = 12, most_degree: int = 9) -> Case:
    num_nodes = draw(st.integers(1, most_nodes))
    rows = draw(st.integers(0, num_nodes))
    row = st.lists(st.integers(0, num_nodes - 1), max_size=most_degree)
    neighbors = draw(st.lists(row, min_size=rows, max_size=rows))
    indptr = [0]
    for row_of_one in neighbors:
        indptr.append(indptr[-1] + len(row_of_one))
    indices = [u for row_of_one in neighbors for u in row_of_one]
    edge_ids = None
    if draw(st.booleans()):
        edge_ids = draw(st.permutations(range(len(indices))))
    return Case(indptr, indices, edge_ids, num_nodes)


def circulant(num_nodes: int, degree: int, bits: int = 64) -> pgs.Graph:
    """Vertex v has in-neighbours v + 1, ..., v + degree (mod num_nodes)."""
    indptr = array("q", range(0, num_nodes * degree + 1, degree))
    indices = array(
        CODES[bits], ((v + i) % num_nodes for v in range(num_nodes) for i in range(1, degree + 1))
    )
    return pgs.Graph.from_csc(indptr, indices)


as_lists = reference.Batch.of
