"""A run over all nodes: each layer in ranges that fit into a bound of memory."""

from __future__ import annotations

import itertools
import logging
import math
import os
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import torch

from pygsampler._arrays import devices
from pygsampler._engine.checks import describe
from pygsampler._engine.memory import free_memory
from pygsampler._features.cached_rows import cached_rows
from pygsampler._features.features import Features
from pygsampler._inference.range_pipeline import RangeInputs, RangePipeline
from pygsampler._inference.ranges import InEdges, NodeRange, number_sources
from pygsampler._inference.tables import NodeTable, Output, map_file

if TYPE_CHECKING:
    from torch import Tensor

    from pygsampler._inference.finished_layers import FinishedLayers
    from pygsampler._inference.process_share import ProcessShare

__all__ = [
    "APART",
    "BY_EDGE",
    "FIRST",
    "REDUCED",
    "ROWS",
    "WHOLE",
    "InferenceRun",
    "Layer",
    "available_memory",
]

# The rows that a layer takes. FIRST: the rows of sources, which begin with the destinations' rows.
# APART: the rows of sources, and the destinations' rows apart from them. ROWS: the destinations'
# rows alone. WHOLE: the rows of all nodes at once, for layers that may not run on ranges.
FIRST, APART, ROWS, WHOLE = "first", "apart", "rows", "whole"
# BY_EDGE is FIRST for layers that write rows for edges. REDUCED is APART for layers that only add
# up rows of sources, so that each range costs what its own edges cost.
BY_EDGE, REDUCED = "by edge", "reduced"
# Bytes of a range of such layers on a CPU: for more the system makes new pages each time, which
# takes longer than to write them.
_RANGE_BYTES = {REDUCED: 16 << 20, BY_EDGE: 64 << 20}
_CACHED_BYTES = 16 << 20
_LOG = logging.getLogger("pygsampler")


class Layer(Protocol):
    """A layer as a run sees it."""

    name: str

    def access(self, csc: InEdges | None, source: NodeTable, fits: bool) -> str:
        """Returns which rows the layer takes; ``fits`` if all nodes may be one range."""
        ...

    def cost(self, source: NodeTable) -> tuple[int, int]:
        """Returns estimates of the bytes that the layer needs for a node and for an edge."""
        ...

    def run(self, nodes: NodeRange | None, x_src: Tensor, x_dst: Tensor, access: str) -> Tensor:
        """Returns the rows of a range."""
        ...


def _check_rows(layer: str, result: Any, count: int) -> None:
    """Raises TypeError or ValueError unless a layer's result has a row for each node."""
    if not isinstance(result, torch.Tensor):
        raise TypeError(f"{layer}: expected a tensor from the layer, got {describe(result)}")
    if result.shape[:1] != (count,):
        raise ValueError(
            f"{layer}: expected a row for each of {count} nodes, got shape {tuple(result.shape)}"
        )


def available_memory(device: torch.device) -> int:
    """Returns how many bytes a run may take by default: half of what is free."""
    if device.type == "cuda":
        return devices.free_memory(devices.parse(device)) // 2
    return free_memory() // 2


class InferenceRun:
    """A run over the layers of a model, one after the other."""

    def __init__(
        self,
        device: torch.device,
        batch_size: int | None,
        memory: int,
        finished: FinishedLayers | None,
        tell: Callable[[int, int], object],
        share: ProcessShare | None = None,
    ) -> None:
        self.device, self.batch_size, self.memory = device, batch_size, memory
        self.finished, self._tell, self.share = finished, tell, share
        self._number = self._done = self._total = 0
        # Tables that this run holds in the memory that is bounded, by the id of the tensor.
        self._held: dict[int, int] = {}

    def expect(self, count: int) -> None:
        """Notes that so many rows are to come, for the bar."""
        self._total += count

    @property
    def free(self) -> int:
        """The bytes that layers may take in addition to those that they have."""
        return max(self.memory - sum(self._held.values()), 1)

    def release(self, table: NodeTable) -> None:
        """Notes that the rows of a layer are no longer needed."""
        self._held.pop(id(table.values), None)

    def layer(
        self,
        layer: Layer,
        csc: InEdges | None,
        source: NodeTable,
        target: NodeTable,
        out: Output | None = None,
    ) -> NodeTable:
        """Returns the rows of a layer for all destinations.

        Parameters
        ----------
        layer : Layer
        csc : InEdges or None
            The edges; None for a layer that works row by row.
        source, target : NodeTable
            The rows of all sources and of all destinations.
        out : Output, optional
            The place for the rows; without it the run chooses one.
        """
        if out is not None and (out.overlaps(source) or out.overlaps(target)):
            # Later ranges read what the first ones would overwrite.
            rows = self.layer(layer, csc, source, target).tensor
            return NodeTable(out.allocate(tuple(rows.shape), rows.dtype).copy_(rows))
        number, self._number = self._number, self._number + 1
        count = target.shape[0] if csc is None else csc.num_dst
        if self.finished is not None and out is None:
            known = self.finished.load(number, layer.name)
            if known is not None:
                self.advance(count)
                return NodeTable(known)
        free = self.free
        moved = source if csc is None else self._on_device(source, free)
        if moved is not source:
            # Both are one table where they were.
            target = moved if target is source else target
            source = moved
            self._hold(moved.tensor)
            free = self.free
        fits = csc is not None and self._fits(layer, csc, source, free // 2)
        access = layer.access(csc, source, fits)
        bounds = None if access == WHOLE else self._bounds(layer, csc, source, count)
        own = (0, count)
        if self.share is not None and bounds is not None:
            own = self.share.node_range(bounds)
        cuts = self._cuts(layer, csc, source, access, free, fits, own)
        if not count:
            # One range without nodes says how wide rows are.
            cuts = [0, 0]
        if csc is not None and len(cuts) > 2:
            cached = self._with_cache(source, csc, free // 4)
            target = cached if target is source else target
            source = cached
        _LOG.info(
            "inference: layer %s, %d nodes in %d ranges, %d bytes of %d free for rows of layers",
            *(layer.name, own[1] - own[0], len(cuts) - 1, free, self.memory),
        )

        def read(number: int) -> RangeInputs:
            return self._inputs(csc, source, target, access, *cuts[number : number + 2])

        def compute() -> Tensor | None:
            result: Tensor | None = None
            with closing(RangePipeline(read, len(cuts) - 1, self.device)) as pipeline:
                for place, (first, last) in enumerate(itertools.pairwise(cuts)):
                    rows: Any = layer.run(*pipeline.take(place))
                    pipeline.read_ahead(place + 1)
                    _check_rows(layer.name, rows, last - first)
                    if result is None:
                        shape = count, *rows.shape[1:]
                        if last - first == count and self._may_return(rows, out):
                            # The one range is the result.
                            result = rows
                            self._hold(result)
                        else:
                            result = self.allocate(shape, rows.dtype, out, number)
                    if result.shape[1:] != rows.shape[1:]:
                        raise ValueError(
                            f"{layer.name}: expected rows of one shape, got "
                            f"{tuple(result.shape[1:])} for the first nodes and "
                            f"{tuple(rows.shape[1:])} for nodes from {first} on"
                        )
                    if result is not rows:
                        pipeline.write(result[first:last], rows)
                    del rows
                    self.advance(last - first)
                pipeline.finish()
            return result

        if bounds is None:
            result = compute()
        else:
            result = self._shared(compute, bounds, layer.name, out, number)
        assert result is not None
        if self.finished is not None and out is None:
            self.finished.complete(number, layer.name, result)
        if moved is not source:
            self.release(moved)
        return NodeTable(result)

    def _may_return(self, result: Tensor, out: Output | None) -> bool:
        """True if rows of all nodes are where the result has to be."""
        if out is None:
            return self.finished is None
        return out.given is None and out.device == result.device

    def advance(self, count: int) -> None:
        """Notes that so many rows are done, and tells the bar."""
        self._done += count
        self._total = max(self._total, self._done)
        self._tell(self._done, self._total)

    def _hold(self, tensor: Tensor) -> None:
        if tensor.device.type == self.device.type:
            self._held[id(tensor)] = tensor.numel() * tensor.element_size()

    def _on_device(self, table: NodeTable, free: int) -> NodeTable:
        """Returns a table on the device where there is room for it."""
        if self.device.type == "cpu":
            # Rows in memory or in a mapped file are read where they are.
            return table if table.device.type == "cpu" else NodeTable(table.read_all(self.device))
        if table.device == self.device and table.values is not None:
            return table
        return table if table.nbytes > free // 2 else NodeTable(table.read_all(self.device))

    def _is_local(self, table: NodeTable) -> bool:
        """True if layers read a table where it is."""
        return table.values is not None and table.device == self.device

    def _fits(self, layer: Layer, csc: InEdges, source: NodeTable, room: int) -> bool:
        """True if all nodes may be one range."""
        row_cost, edge_cost = layer.cost(source)
        size = csc.num_dst * row_cost + csc.num_edges * edge_cost
        return self.batch_size is None and self._is_local(source) and size <= room

    def _cuts(
        self,
        layer: Layer,
        csc: InEdges | None,
        source: NodeTable,
        access: str,
        free: int,
        fits: bool,
        nodes: tuple[int, int],
    ) -> list[int]:
        """Returns where the ranges of this process's nodes begin, and where the last one ends."""
        row_cost, edge_cost = layer.cost(source)
        first, last = nodes
        room = free // 2
        if csc is None:
            step = self.batch_size or max(1, min(room, _CACHED_BYTES) // row_cost)
            return [*range(first, last, step), last]
        limit = _RANGE_BYTES.get(access) if self.device.type == "cpu" else None
        if access == WHOLE or (fits and limit is None):
            return [first, last] if first < last else [last]
        if self.device.type == "cuda":
            # The next range is read beside this one, and rows that many need may be kept.
            room = free // 4
        room = room if limit is None else min(room, limit)
        if access not in (APART, REDUCED) or not self._is_local(source):
            # Each edge may bring the row of another source.
            edge_cost += row_cost
        return csc.ranges(self.batch_size, row_cost, edge_cost, room, nodes)

    def _inputs(
        self,
        csc: InEdges | None,
        source: NodeTable,
        target: NodeTable,
        access: str,
        first: int,
        last: int,
    ) -> RangeInputs:
        if csc is None:
            rows = target.read_range(first, last, self.device)
            return RangeInputs(None, rows, rows, ROWS)
        nodes = csc.range(first, last)
        here = self._is_local(source)
        if access == WHOLE or (here and nodes.covers_all):
            x_src = source.read_all(self.device)
            x_dst = x_src if target is source else target.read_all(self.device)
            return RangeInputs(nodes, x_src, x_dst, access)
        x_dst = target.read_range(first, last, self.device)
        if access in (APART, REDUCED) and here:
            return RangeInputs(nodes, source.tensor, x_dst, access)
        shares = access in (FIRST, BY_EDGE) and target is source
        others = number_sources([nodes], (first, last) if shares else None)
        x_src = source.gather(others, self.device)
        if shares:
            x_src = torch.cat([x_dst, x_src])
            x_dst = x_src[: nodes.size]
        return RangeInputs(nodes, x_src, x_dst, access)

    def _with_cache(self, source: NodeTable, csc: InEdges, room: int) -> NodeTable:
        """Returns rows of the host as a GPU reads them best for several ranges.

        They are page-locked, and those that most edges lead from are on the GPU, too, as many as
        have room: the rule of PaGraph (Lin et al., SoCC 2020), whose counts are exact here.
        """
        if self.device.type != "cuda" or source.device.type != "cpu":
            return source
        if source.nbytes > available_memory(torch.device("cpu")):
            return source
        if source.features is None:
            features = Features.from_tensor(source.tensor)
        else:
            features = source.features
        found = cached_rows(features, str(self.device), room, csc.out_degrees)
        return source if found is None else NodeTable(found)

    def _bounds(
        self, layer: Layer, csc: InEdges | None, source: NodeTable, count: int
    ) -> list[int] | None:
        """Returns where the nodes of each process begin; None where one process has them all."""
        if self.share is None or self.share.size == 1 or not count:
            return None
        if csc is None:
            return self.share.bounds(count, lambda node: node)
        row_cost, edge_cost = layer.cost(source)
        offset = csc.offset
        return self.share.bounds(count, lambda node: node * row_cost + offset(node) * edge_cost)

    def _shared(
        self,
        compute: Callable[[], Tensor | None],
        bounds: list[int],
        name: str,
        out: Output | None,
        number: int,
    ) -> Tensor:
        """Returns the rows of all nodes, of which each process computes its own."""
        assert self.share is not None
        result = compute()
        shape = None if result is None else (tuple(result.shape), result.dtype)
        shapes = self.share.agree(f"layer {name} of nodes {bounds}", shape)
        sizes, dtype = next(each for each in shapes if each is not None)
        self.share.check_equal([each or (sizes, dtype) for each in shapes])
        if None in shapes:
            if result is None:
                # No node is this process's: there are fewer than processes.
                result = self.allocate(sizes, dtype, out, number)
            self.share.agree("room for rows")
        assert result is not None
        self.share.exchange(result, bounds)
        first, last = self.share.node_range(bounds)
        self.advance(bounds[-1] - (last - first))
        return result

    def allocate(
        self,
        shape: tuple[int, ...],
        dtype: torch.dtype,
        out: Output | None = None,
        number: int | None = None,
    ) -> Tensor:
        """Returns room for the rows of a layer, ``number`` being its place among finished ones."""
        if out is not None:
            return out.allocate(shape, dtype)
        if self.finished is not None and number is not None:
            return self.finished.create(number, shape, dtype)
        size, free = math.prod(shape) * dtype.itemsize, self.free
        # On a GPU rows that have no room there are in the host's memory, which is larger.
        places = {self.device: free, torch.device("cpu"): available_memory(torch.device("cpu"))}
        if self.device.type == "cpu":
            places = {self.device: free}
        for device, room in places.items():
            if size <= room // 2:
                result = torch.empty(shape, dtype=dtype, device=device)
                self._hold(result)
                return result
        _LOG.info("inference: %d bytes of a layer are in a file in %s", size, tempfile.gettempdir())
        file, path = tempfile.mkstemp(prefix="pygsampler-")
        os.close(file)
        try:
            return map_file(Path(path), shape, dtype)
        finally:
            # Mapped rows stay until the tensor goes, also where the process is killed.
            os.unlink(path)
