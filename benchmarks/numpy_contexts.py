"""Contexts of fixed length in NumPy: ``pygsampler.samplers.context`` written once more.

All seeds of a call go side by side, hop by hop, and no loop is over rows or edges: the rows of a
hop are expanded by ``repeat``, ordered by one sort and thinned by ``unique``. The tests compare
with it, and ``benchmarks.contexts`` takes its time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

Ints = np.ndarray[Any, np.dtype[np.int64]]


class Relation(NamedTuple):
    """The in-edges of the nodes of a type, each row in the order of time."""

    src: int
    dst: int
    indptr: Ints
    indices: Ints
    rank: Ints | None  # of each edge's time among all times; None: no times
    keys: Ints | None  # destination and rank as one number, ascending


class Reference:
    """A graph by its edge types, ``(source type, destination type, source, destination, time)``.

    The time is None for an edge type without times. Edges with times, and edges into the same node,
    have the order of the graph's CSC.
    """

    def __init__(
        self, num_nodes: Sequence[int], edges: Sequence[tuple[int, int, Any, Any, Any]]
    ) -> None:
        self.num_nodes = np.asarray(num_nodes)
        with_times = [np.asarray(time) for *_, time in edges if time is not None]
        self.times = np.unique(np.concatenate(with_times)) if with_times else np.zeros(0)
        self.relations = [self._sorted(*each) for each in edges]
        self.size = int(self.num_nodes.max())

    def _sorted(self, src_type: int, dst_type: int, src: Any, dst: Any, time: Any) -> Relation:
        src, dst = np.asarray(src, np.int64), np.asarray(dst, np.int64)
        indptr = np.zeros(self.num_nodes[dst_type] + 1, np.int64)
        np.cumsum(np.bincount(dst, minlength=self.num_nodes[dst_type]), out=indptr[1:])
        if time is None:
            order = np.argsort(dst, kind="stable")
            return Relation(src_type, dst_type, indptr, src[order], None, None)
        rank = np.searchsorted(self.times, time)
        order = np.lexsort((rank, dst))
        keys = dst[order] * (len(self.times) + 1) + rank[order]
        return Relation(src_type, dst_type, indptr, src[order], rank[order], keys)

    def sample(
        self,
        seeds: Ints,
        types: Ints,
        bounds: Any = None,
        *,
        budget: int,
        width: int | None = None,
        cells: Sequence[int] | None = None,
        inclusive: bool = True,
        window: float | None = None,
    ) -> Mapping[str, Any]:
        """Returns the arrays of ``Contexts`` for seeds of the node types ``types``."""
        costs = np.asarray([1] * len(self.num_nodes) if cells is None else cells, np.int64)
        places = max(budget // int(costs.min()), 1)
        count = len(seeds)
        nodes, kinds, hops, parents = (np.full((count, places), -1, np.int64) for _ in range(4))
        nodes[:, 0], kinds[:, 0], hops[:, 0] = seeds, types, 0
        lengths, left = np.ones(count, np.int64), budget - costs[types]
        low, high = self._ranks(bounds, inclusive, window)
        known = np.sort(self._keys(np.arange(count), types, seeds))
        rows = np.arange(count), np.zeros(count, np.int64)
        for hop in range(1, places):
            found = self._edges(*rows, nodes, kinds, low, high, width)
            if found is None:
                break
            of, parent, kind, node = found
            keys = self._keys(of, kind, node)
            first = np.zeros(len(keys), bool)
            first[np.unique(keys, return_index=True)[1]] = True
            at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
            new = np.flatnonzero(first & (known[at] != keys))
            of, parent, kind, node = of[new], parent[new], kind[new], node[new]
            # The rows of each seed before the first row that does not fit.
            spent = np.cumsum(costs[kind])
            begin = np.searchsorted(of, np.arange(count))
            before = np.concatenate([[0], spent])[begin]
            fits = spent - before[of] <= left[of]
            place = np.arange(len(of)) - begin[of] + lengths[of]
            full = np.zeros(count, bool)
            full[of[~fits]] = True
            of, parent, kind, node, place = (x[fits] for x in (of, parent, kind, node, place))
            nodes[of, place], kinds[of, place], parents[of, place] = node, kind, parent
            hops[of, place] = hop
            lengths += np.bincount(of, minlength=count)
            left -= np.bincount(of, costs[kind], count).astype(np.int64)
            known = np.sort(np.concatenate([known, keys[new][fits]]))
            goes_on = (~full & (left > 0))[of]
            rows = of[goes_on], place[goes_on]
        mask = np.arange(places) < lengths[:, None]
        found_cells = None if cells is None else np.where(mask, costs[kinds], 0)
        return {
            "nodes": nodes,
            "types": kinds,
            "hops": hops,
            "parents": parents,
            "mask": mask,
            "cells": found_cells,
            "lengths": lengths,
        }

    def _keys(self, of: Ints, kinds: Ints, nodes: Ints) -> Ints:
        return (of * len(self.num_nodes) + kinds) * self.size + nodes

    def _ranks(self, bounds: Any, inclusive: bool, window: float | None) -> tuple[Any, Any]:
        """Returns the ranks that a seed's edges have: from the first of these, below the second."""
        if bounds is None:
            return None, None
        high = np.searchsorted(self.times, bounds, "right" if inclusive else "left")
        if window is None:
            return np.zeros_like(high), high
        return np.searchsorted(self.times, np.asarray(bounds) - window, "left"), high

    def _edges(
        self, of: Ints, places: Ints, nodes: Ints, kinds: Ints, low: Any, high: Any, width: Any
    ) -> tuple[Ints, Ints, Ints, Ints] | None:
        """Returns the edges that the rows of a hop look at, in the order of the rule.

        They are the place of the seed, the place of the row that an edge leads into, and the node
        type and the node that it leads from.
        """
        parts = []
        number, base = len(self.times), len(self.times) + 1
        row_nodes, row_kinds = nodes[of, places], kinds[of, places]
        for place, relation in enumerate(self.relations):
            at = np.flatnonzero(row_kinds == relation.dst)
            v = row_nodes[at]
            start, end = relation.indptr[v], relation.indptr[v + 1]
            if relation.keys is not None:
                start = np.maximum(start, np.searchsorted(relation.keys, v * base + low[of[at]]))
                end = np.minimum(end, np.searchsorted(relation.keys, v * base + high[of[at]]))
            counts = np.maximum(end - start, 0)
            if width is not None:
                counts = np.minimum(counts, width)
            total = int(counts.sum())
            if not total:
                continue
            each = np.repeat(np.arange(len(at)), counts)
            steps = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
            edge = end[each] - 1 - steps
            late = np.zeros(total, np.int64)
            if relation.rank is not None:
                late = number - relation.rank[edge]
            relations = np.full(total, place)
            sources = np.full(total, relation.src)
            seed, parent = of[at][each], places[at][each]
            parts.append((seed, late, parent, relations, steps, sources, relation.indices[edge]))
        if not parts:
            return None
        seed, late, parent, relations, steps, sources, node = map(
            np.concatenate, zip(*parts, strict=True)
        )
        fields = [seed, late, parent, relations, steps]
        order = _order(fields, [int(field.max()) + 1 for field in fields])
        return seed[order], parent[order], sources[order], node[order]


def _order(fields: Sequence[Ints], sizes: Sequence[int]) -> Ints:
    """Returns the order by some fields, the first one above the others: by one sort if it can."""
    if float(np.prod(np.asarray(sizes, np.float64))) >= 2.0**62:
        return np.lexsort(fields[::-1])
    key = fields[0].copy()
    for field, size in zip(fields[1:], sizes[1:], strict=True):
        key *= size
        key += field
    return np.argsort(key, kind="stable")
