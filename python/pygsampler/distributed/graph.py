"""``DistributedGraph``: a graph whose parts lie in several processes."""

from __future__ import annotations

from array import array
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from pygsampler._arrays import devices
from pygsampler._arrays.array import Array, as_array
from pygsampler._graph import named_arrays as graph_data
from pygsampler._graph.csc_arrays import CscArrays
from pygsampler._graph.graph import Graph
from pygsampler.distributed.device_row_server import row_server
from pygsampler.distributed.features import DistributedFeatures
from pygsampler.distributed.partition import Partition
from pygsampler.distributed.partitioned import PartitionedGraph
from pygsampler.distributed.row_service import RowService
from pygsampler.distributed.temporal import times_of

if TYPE_CHECKING:
    from pygsampler._graph.program_arrays import ProgramArrayNames
    from pygsampler.distributed.exchange import Exchange
    from pygsampler.distributed.partition import Shard


class DistributedGraph(PartitionedGraph["Partition", "Shard"], Graph):
    """A graph in parts, of which this process has one, as ``pygsampler.distributed.open`` gives it.

    Samplers and loaders take it for a ``Graph``: ``PGSampler`` with all that it has on the CPU for
    graphs without types, all walks, and programs of which columns are all that they take of A, such
    as ``LaborSampler``. A batch is byte for byte that of the whole graph on one machine, for any
    number of parts. Its rows are drawn where they lie, and numbered here; those of a program come
    whole.

    ``close()`` (or leaving a ``with`` block) is for all processes: each goes on answering the
    others until all have closed.
    """

    __slots__ = ("_num_edges", "_outward", "_partition", "_service", "_shard")

    # Whose rows are the out-edges; None where the parts have none.
    _outward: DistributedGraph | None
    _partition: Partition
    _shard: Shard | None
    _num_edges: int

    @classmethod
    def _opened(
        cls, partition: Partition, exchange: Exchange, device: int = devices.CPU
    ) -> DistributedGraph:
        graph, out, owner = cls._without_rows(partition), partition.out, None
        if exchange.owns:
            owner = row_server(partition, exchange.rank, device)
            graph._shard = owner.shard
        nodes = partition.arrays["nodes"]
        times = partial(times_of, [partition], [nodes], nodes)
        outward = [] if out is None else [out]
        graph._service = RowService(exchange, owner, [partition], outward, times)
        if out is not None:
            graph._outward = cls._without_rows(out)
            graph._outward._service = graph._service
        return graph

    @classmethod
    def _without_rows(cls, partition: Partition) -> DistributedGraph:
        """A graph of the engine's for the vertices of all parts."""
        graph = cls._new(no_rows(partition), partition.num_nodes)
        graph._partition, graph._num_edges = partition, partition.num_edges
        graph._shard = graph._outward = None
        return graph

    @property
    def num_edges(self) -> int:
        """Number of edges, of all parts."""
        return self._num_edges

    def features(self, name: str) -> DistributedFeatures:
        """The vertex array of that name, whose rows lie with the vertices, for loaders.

        Raises
        ------
        KeyError
            Where the parts have none of that name.
        """
        nodes = self._partition.arrays["nodes"]
        if name not in nodes:
            have = ", ".join(map(repr, nodes)) or "none"
            raise KeyError(
                f"expected the name of a vertex array of the graph ({have}), got {name!r}"
            )
        return DistributedFeatures(self._service, name, nodes[name], self.num_nodes)

    @property
    def indptr(self) -> Array:
        """No process has it: ValueError."""
        return self._not_here("indptr")

    @property
    def indices(self) -> Array:
        """No process has them: ValueError."""
        return self._not_here("indices")

    @property
    def edge_ids(self) -> Array | None:
        """No process has them: ValueError; ``shard.edge_ids`` are those of this one's part."""
        return self._not_here("edge_ids")

    def with_data(self, edge_data: Any = None, node_data: Any = None) -> NoReturn:
        """ValueError: arrays come along when a graph is written in parts."""
        self._not_here("arrays")

    def _kept(self, key: Any, make: Any) -> NoReturn:
        raise ValueError(
            "sampler: expected one of neighbours, walks or a program for a graph in parts, got one "
            "of another family"
        )

    def _with_named(self, names: ProgramArrayNames) -> DistributedGraph:
        # Those of edges come with the rows.
        self._service.check_arrays(list(names.edges), names.weight)
        if of_nodes := sorted({*names.vertices, *names.rows}):
            self._not_here(f"vertex arrays ({', '.join(map(repr, of_nodes))})")
        return self

    def _walked(
        self,
        direction: Literal["in", "out"],
        prob: str | None = None,
        types: str | None = None,
        kinds: int = 0,
        second: bool = False,
    ) -> DistributedGraph:
        if direction == "in":
            return self
        # Where there are none the service says so.
        return self if self._outward is None else self._outward

    def _rows(self) -> tuple[graph_data.RowCount, graph_data.RowCount]:
        return (
            graph_data.RowCount(graph_data.EDGES, self._num_edges, self._partition.has_edge_ids),
            graph_data.RowCount(graph_data.NODES, self._num_nodes),
        )

    def close(self) -> None:
        """Leaves: returns once all processes have closed theirs."""
        self._service.close()
        if self._outward is not None:
            Graph.close(self._outward)
        super().close()

    def __repr__(self) -> str:
        return (
            f"DistributedGraph(num_nodes={self.num_nodes}, num_edges={self.num_edges}, "
            f"{'in' if self._shard is None else f'part {self._shard.rank} of'} "
            f"{self._partition.num_parts}{' parts' if self._shard is None else ''})"
        )


def no_rows(partition: Partition) -> CscArrays:
    """The arrays of a graph without rows, as wide as those of the parts."""
    kind = "i" if partition.dtype == "int32" else "q"
    ids = "i" if partition.edge_id_bits == 32 else "q"
    return CscArrays(
        as_array(array("q", [0]), "indptr"),
        as_array(array(kind), "indices"),
        as_array(array(ids), "edge_ids"),
    )
