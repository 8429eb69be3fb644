"""``Limits``: how much a request may ask for."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

from pygsampler._engine.checks import integer
from pygsampler._sampling.extensions import FAMILIES
from pygsampler._sampling.plan import Plan

# A record batch has to fit a message of gRPC's, and lists count in 32 bits.
_MOST_BYTES = (1 << 31) - (1 << 20)


class Limits(NamedTuple):
    """Limits of a request, and of how many may be answered at once."""

    seeds: int
    edges: int
    bytes: int
    requests: int

    def check(self) -> Limits:
        """Itself; TypeError or ValueError where one is no such number."""
        highest = {"bytes": _MOST_BYTES}
        for name, value in self._asdict().items():
            integer(value, f"max_{name}", 1, highest.get(name))
        return self

    def check_seeds(self, count: int) -> None:
        """Raises ValueError for more than may be."""
        if count > self.seeds:
            raise ValueError(
                f"seeds: expected at most {self.seeds} a request (max_seeds), got {count}"
            )

    def check_bytes(self, count: int) -> None:
        """Raises ValueError for a result that is larger than may be."""
        if count > self.bytes:
            raise ValueError(
                f"result: expected at most {self.bytes} bytes (max_bytes), got {count}; ask for "
                "fewer seeds"
            )


class Most:
    """The most edges that plans draw of a graph."""

    def __init__(self, graph: Any) -> None:
        self._graphs = list(graph._relations().values())
        self._edges: int = sum(one.num_edges for one in self._graphs)
        self._degree: int | None = None
        self._lock = threading.Lock()

    def check(self, plan: Plan, seeds: int, limits: Limits) -> None:
        """Raises ValueError for a plan that may draw more than it may."""
        most = self.edges(plan, seeds)
        if most > limits.edges:
            raise ValueError(
                f"plan: expected one that draws at most {limits.edges} edges (max_edges), got one "
                f"that draws up to {most} of {seeds} seeds"
            )

    def edges(self, plan: Plan, seeds: int) -> int:
        """Returns the most edges of a plan; 0 for a program, whose edges are not known.

        For walks, and for registered families, it is the exact number of draws.
        """
        family = plan["family"]
        if family == "program":
            return 0
        if family == "walk":
            roots, walks = plan["roots"] or 1, plan["walks_per_seed"] or 1
            return int(seeds // roots * walks * plan["length"])
        if family in FAMILIES:
            return FAMILIES[family].num_edges(plan, seeds)
        if family in ("hgt", "labor"):
            hops: int = len(plan["num_samples" if family == "hgt" else "fanouts"])
            return self._edges * hops
        return self._tree(plan, seeds)

    def _tree(self, plan: Plan, seeds: int) -> int:
        """Bounds the edges of hops.

        If nodes are shared and drawn once, no hop has more edges than the graph.
        """
        own = plan["family"] == "temporal" or plan.get("time") is not None or plan["disjoint"]
        repeats = own or plan["replace"]
        found: int = 0
        reached = seeds
        for hop in reversed(plan["fanouts"]):
            drawn = reached * self._fanout(plan, hop, repeats)
            drawn = drawn if repeats else min(drawn, self._edges)
            found += drawn
            reached += drawn
        return found

    def _fanout(self, plan: Plan, hop: Any, repeats: bool) -> int:
        """Returns how many edges a node draws: of all relations together."""
        default = plan.get("default_fanout")
        numbers: list[int] = list(hop.values()) if isinstance(hop, dict) else [hop]
        if len(numbers) < len(self._graphs):
            rest = default if isinstance(hop, dict) else hop
            numbers += [rest or 0] * (len(self._graphs) - len(numbers))
        if any(number < 0 for number in numbers):
            everything = self._most_edges() if repeats else self._edges
            return everything + sum(max(number, 0) for number in numbers)
        return sum(numbers)

    def _most_edges(self) -> int:
        """The largest number of in-edges of a node, of all relations together; counted once."""
        with self._lock:
            if self._degree is None:
                self._degree = sum(map(_largest_degree, self._graphs))
            return self._degree


# Offsets that are read at once.
_PIECE = 1 << 20


def _largest_degree(graph: Any) -> int:
    """The largest number of in-edges of a node of a relation."""
    import pyarrow
    from pyarrow import compute

    most = 0
    offsets = graph._on_cpu().indptr if graph._device >= 0 else graph.indptr
    for start in range(0, len(offsets) - 1, _PIECE):
        values = pyarrow.array(offsets[start : start + _PIECE + 1])
        found = compute.max(compute.subtract(values[1:], values[:-1])).as_py()
        most = max(most, found or 0)
    return most
