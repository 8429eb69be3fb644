"""``DistributedHeteroGraph``: a graph with types whose parts lie in several processes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from pygsampler._arrays import devices
from pygsampler._engine.handle import EngineHandle
from pygsampler._graph.graph import Graph
from pygsampler._graph.hetero_graph import HeteroGraph
from pygsampler._graph.schema import ByEdgeType
from pygsampler.distributed.device_row_server import typed_owner_of
from pygsampler.distributed.features import DistributedFeatures
from pygsampler.distributed.graph import DistributedGraph, no_rows
from pygsampler.distributed.hetero_partition import HeteroPartition
from pygsampler.distributed.hetero_row_server import SEPARATOR
from pygsampler.distributed.partitioned import PartitionedGraph
from pygsampler.distributed.row_service import RowService
from pygsampler.distributed.temporal import times_of

if TYPE_CHECKING:
    from pygsampler._arrays.array import Array
    from pygsampler._graph.hetero_graph import EdgeType
    from pygsampler.distributed.exchange import Exchange
    from pygsampler.distributed.hetero_partition import HeteroShard
    from pygsampler.distributed.partition import Partition


class _NoService:
    """Stands for the service of a relation by itself, which has none."""

    def check(self, plan: Any) -> NoReturn:
        """ValueError."""
        raise ValueError(
            "graph: expected a graph with types in parts, got a relation of one by itself"
        )

    def not_here(self, what: str) -> NoReturn:
        """ValueError."""
        raise ValueError(
            f"graph: expected a graph on this machine for its {what}, got a relation of one in "
            "parts"
        )


class _Relation(Graph):
    """A relation whose rows lie elsewhere."""

    __slots__ = ("_num_edges",)

    _num_edges: int
    _service = _NoService()

    @classmethod
    def _of(cls, partition: Partition) -> Graph:
        made = cls._new(no_rows(partition), partition.num_nodes)
        made._num_edges = partition.num_edges
        return made

    @property
    def num_edges(self) -> int:
        """Number of edges, of all parts."""
        return self._num_edges

    @property
    def indptr(self) -> Array:
        """No process has it: ValueError."""
        return self._service.not_here("indptr")

    @property
    def indices(self) -> Array:
        """No process has them: ValueError."""
        return self._service.not_here("indices")

    @property
    def edge_ids(self) -> Array | None:
        """No process has them: ValueError."""
        return self._service.not_here("edge_ids")

    def save(self, path: Any, **options: Any) -> NoReturn:
        """ValueError: no process has the edges."""
        self._service.not_here("edges")

    def share(self, devices: Any, **options: Any) -> NoReturn:
        """ValueError: no process has all rows."""
        self._service.not_here("rows")

    def _kept(self, key: Any, make: Any) -> NoReturn:
        self._service.check(None)


class _SingleTypeGraph(HeteroGraph):
    """A graph without types in parts, as one of a type of vertices and one of edges."""

    __slots__ = ("_service",)

    def _drawn_by(self, kind: str, name: str) -> HeteroGraph:
        # As DistributedHeteroGraph.
        return self


def of_one_type(graph: Graph, kind: EdgeType) -> HeteroGraph:
    """A ``DistributedGraph`` for ``LaborSampler``, which uses the service of the graph."""
    made = object.__new__(_SingleTypeGraph)
    EngineHandle.__init__(made)
    about: DistributedGraph = graph  # type: ignore[assignment]
    made._hold({kind[0]: graph.num_nodes}, {kind: _Relation._of(about.partition)})
    made._service = about._service
    return made


class DistributedHeteroGraph(PartitionedGraph["HeteroPartition", "HeteroShard"], HeteroGraph):
    """A graph with types in parts, of which this process has one, from
    ``pygsampler.distributed.open``.

    ``PGSampler`` takes it for a ``HeteroGraph``, with all that it has on the CPU, and so do
    ``HGTSampler``, ``LaborSampler`` and ``MetaPathWalk``. A batch is byte for byte that of
    the whole graph on one machine, for any number of parts.

    ``close()`` (or leaving a ``with`` block) is for all processes: each goes on answering the
    others until all have closed.
    """

    __slots__ = ("_partition", "_service", "_shard")

    _partition: HeteroPartition
    _shard: HeteroShard | None

    @classmethod
    def _opened(
        cls, partition: HeteroPartition, exchange: Exchange, device: int = devices.CPU
    ) -> DistributedHeteroGraph:
        made: DistributedHeteroGraph = object.__new__(cls)
        EngineHandle.__init__(made)
        hollow = {
            kind: _Relation._of(relation)
            for kind, relation in zip(partition.edge_types, partition.relations, strict=True)
        }
        made._hold(dict(partition.num_nodes), hollow)
        made._partition, made._shard, owner = partition, None, None
        if exchange.owns:
            owner = typed_owner_of(partition, exchange.rank, device)
            made._shard = owner.shard
        of_nodes = {kind: nodes.arrays["nodes"] for kind, nodes in partition.nodes.items()}
        sources = [of_nodes.get(kind[0], {}) for kind in partition.edge_types]
        names = {name for arrays in of_nodes.values() for name in arrays}
        times = partial(times_of, partition.relations, sources, names)
        made._service = RowService(exchange, owner, partition.relations, partition.out, times)
        return made

    @property
    def num_edges(self) -> ByEdgeType[int]:
        """How many edges each type has, of all parts."""
        return ByEdgeType(self._partition.num_edges)

    def features(self, node_type: str, name: str) -> DistributedFeatures:
        """The array of that name of the vertices of a type, whose rows lie with them.

        Raises
        ------
        KeyError
            Where the parts have none.
        """
        nodes = self._partition.nodes.get(node_type)
        if nodes is None or name not in nodes.arrays["nodes"]:
            raise KeyError(f"expected a type and an array of it, got {node_type!r} and {name!r}")
        about = nodes.arrays["nodes"][name]
        count = self._partition.num_nodes[node_type]
        called = f"{node_type}{SEPARATOR}{name}"
        return DistributedFeatures(self._service, called, about, count, nodes.bounds)

    def _timed(self, name: str, mask: str | None = None, prob: str | None = None) -> NoReturn:
        self._not_here("times")

    def _joint(self, *given: Any) -> NoReturn:
        self._not_here("relations together")

    def to_homogeneous(self, **options: Any) -> NoReturn:
        """ValueError: no process has the graph."""
        self._not_here("edges")

    def close(self) -> None:
        """Leaves: returns once all processes have closed theirs."""
        self._service.close()
        super().close()

    def __repr__(self) -> str:
        return f"DistributedHeteroGraph({self._partition!r})"
